"""What is wrong in entities, against counting pair by pair."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita.kb
from partita.kb.queries.mistakes import mistaken
from tests.helpers.people import fragments

ROWS, TRUTH = fragments(60)


def as_held(found, true):
    """Of each entity and each true one the fragments."""
    held = {}
    for k, (entity, label) in enumerate(zip(found, true, strict=True)):
        held.setdefault(entity, {}).setdefault(label, []).append(str(k))
    return held


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from("ABCD")), min_size=1, max_size=25))
def test_each_wrong_pair_is_of_one_entity(items):
    found, true = zip(*items, strict=True)
    joined = dict.fromkeys(found, 0)
    missed = 0
    for i, j in combinations(range(len(items)), 2):
        joined[found[i]] += found[i] == found[j] and true[i] != true[j]
        missed += found[i] != found[j] and true[i] == true[j]
    wrong = mistaken(as_held(found, true))
    assert {one.entity: one.joined for one in wrong if one.joined} == {
        f"E{e}": n for e, n in joined.items() if n
    }
    assert sum(one.missed for one in wrong) == missed
    assert all(one.joined + one.missed > 0 for one in wrong)
    for one in wrong:
        sizes = [len(ids) for ids in one.holds.values()]
        assert sizes == sorted(sizes, reverse=True)
        assert sum(sizes) == found.count(int(one.entity[1:]))
        for label, share in one.spread.items():
            assert share == {
                f"E{e}": sum(x == (e, label) for x in items) for e in found if (e, label) in items
            }
            assert share[one.entity] == max(share.values())


def test_what_is_wrong_in_a_knowledge_base(tmp_path):
    with partita.kb.open(tmp_path / "kb.db") as kb:
        kb.add(ROWS)
        first, second = list(kb.entities())[:2]
        own = {id: entity.id for entity in kb.entities() for id in entity.fragments}
        assert kb.worst(own) == []
        kb.confirm(first.id, second.id)
        ours, theirs = len(first.fragments), len(second.fragments)
        (one,) = kb.worst(own)
        assert (one.entity, one.joined, one.missed) == (first.id, ours * theirs, 0)
        assert one.holds == {first.id: first.fragments, second.id: second.fragments}
        assert one.name == kb.entity(first.id).name
        assert kb.worst(own, limit=0) == []
        some = {first.fragments[0]: "A", first.fragments[1]: "B", second.fragments[0]: "A"}
        (one,) = kb.worst(some)
        assert one.joined == 2
        kb.undo()
        wrong = kb.worst(some)
        assert (sum(one.joined for one in wrong), sum(one.missed for one in wrong)) == (1, 1)
        assert [one.spread for one in wrong if one.missed] == [{"A": {first.id: 1, second.id: 1}}]
        with pytest.raises(ValueError, match="none of the ids"):
            kb.worst({"nobody": "A"})
