"""Things that are joined are in one set, and no others are: against a naive search."""

from hypothesis import given
from hypothesis import strategies as st

from partita.kb.groups import Groups

THINGS = "abcdef"


@given(st.lists(st.lists(st.sampled_from(THINGS), max_size=4), max_size=5))
def test_things_are_of_one_set_if_a_path_joins_them(joined):
    groups = Groups()
    for some in joined:
        groups.join(some)
    for one in THINGS:
        reached, before = {one}, set()
        while reached != before:
            before = set(reached)
            reached.update(*(some for some in joined if reached & set(some)))
        assert {other for other in THINGS if groups.of(other) == groups.of(one)} == reached
