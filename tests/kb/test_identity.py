"""Entities keep their numbers by the rules, whatever happens to the clusters."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from partita.kb.identity import NOBODY, Change, renamed
from tests.helpers.effort import examples

quick = examples(300)


def named(before, clusters, next_entity=100):
    after, changes, following = renamed(
        np.arange(len(before)), np.array(before), np.array(clusters), next_entity
    )
    return after.tolist(), changes, following


def test_nothing_changes():
    assert named([1, 1, 2], [7, 7, 8]) == ([1, 1, 2], [], 100)


def test_a_new_one_is_created_or_joins():
    after, changes, following = named([1, NOBODY, NOBODY], [7, 7, 8])
    assert (after, following) == ([1, 1, 100], 101)
    assert changes == [Change("joined", 1, member=1), Change("created", 100, member=2)]


def test_the_larger_one_survives_a_merge():
    after, changes, _ = named([1, 2, 2], [7, 7, 7])
    assert (after, changes) == ([2, 2, 2], [Change("merged", 2, 1)])


def test_of_equal_ones_the_older_one_survives():
    after, changes, _ = named([5, 3], [7, 7])
    assert (after, changes) == ([3, 3], [Change("merged", 3, 5)])


def test_the_larger_part_keeps_the_number():
    after, changes, following = named([1, 1, 1], [7, 8, 8])
    assert (after, following) == ([100, 1, 1], 101)
    assert changes == [Change("split", 1, 100)]


def test_of_equal_parts_that_with_the_earliest_fragment_keeps_it():
    after, changes, _ = named([1, 1], [9, 8])
    assert (after, changes) == ([1, 100], [Change("split", 1, 100)])


def test_one_may_change_sides():
    after, changes, _ = named([1, 1, 1, 2, 2], [7, 7, 8, 8, 8])
    assert (after, changes) == ([1, 1, 2, 2, 2], [Change("moved", 2, 1, 2)])


@given(st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 4)), min_size=1, max_size=25))
@quick
def test_the_rules_hold(pairs):
    before, clusters = (list(column) for column in zip(*pairs, strict=True))
    after, changes, following = named(before, clusters)
    # Names and clusters correspond one to one, and new names are new.
    assert len(set(zip(after, clusters, strict=True))) == len(set(after)) == len(set(clusters))
    new = sorted(set(after) - set(before))
    assert new == list(range(100, following))
    sizes, held = Counter(before), Counter(zip(before, after, strict=True))
    gone = {change.other: change.entity for change in changes if change.kind == "merged"}
    for entity in set(before) - {NOBODY}:
        mine = {name: n for (e, name), n in held.items() if e == entity}
        if entity in after:  # it kept no smaller a part than any other
            assert entity not in gone
            assert mine[entity] == max(mine.values())
        else:  # another brought as much to where most of it went
            into = gone[entity]
            assert mine[into] == max(mine.values())
            assert held[into, into] >= mine[into]
        if 2 * max(mine.values()) > sizes[entity] and entity not in after:
            assert into in before
    # A replay of the changes tells where every fragment is.
    told = list(before)
    for change in changes:
        if change.kind in ("created", "joined", "moved"):
            assert told[change.member] == (change.other if change.kind == "moved" else NOBODY)
            told[change.member] = change.entity
    splits = {change.other: change.entity for change in changes if change.kind == "split"}
    assert set(splits) == {
        name for name in new if any(b >= 0 for b, a in zip(before, after, strict=True) if a == name)
    }
    for was, told_now, now in zip(before, told, after, strict=True):
        assert told_now == now or gone.get(was) == now or splits.get(now) == was
