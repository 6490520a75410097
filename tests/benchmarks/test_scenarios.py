"""The scenarios of common sense: what they are made of, and how answers are judged."""

from random import Random

import numpy as np
import pytest

from benchmarks import people, scenarios
from benchmarks.common_sense import options, show_all


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", scenarios.CASES)
def test_the_truth_holds(name, seed):
    made = scenarios.CASES[name](seed)
    assert len(made.records) == len(made.truth) == len(made.alike)
    verdict = scenarios.judge(made, made.truth)
    assert verdict.holds
    assert verdict.whole == verdict.pure == 1.0
    assert made.records == scenarios.CASES[name](seed).records


def test_seeds_differ():
    every = [scenarios.households(seed).records for seed in range(4)]
    assert all(one != other for k, one in enumerate(every) for other in every[:k])


def test_verdicts():
    made = scenarios.copies(0, n_people=10, n_copies=2)
    alone = scenarios.judge(made, np.arange(20))
    assert (alone.whole, alone.pure, alone.clusters, alone.holds) == (0.0, 1.0, 20, False)
    joined = scenarios.judge(made, np.where(made.truth == 3, 4, made.truth))
    assert (joined.whole, joined.people, joined.holds) == (1.0, 10, False)
    assert joined.pure == pytest.approx(0.8)


def test_who_cannot_be_told_apart_may_be_joined():
    made = scenarios.copies(0, ("city",), n_people=100)
    assert len(set(made.alike)) < 50
    verdict = scenarios.judge(made, made.alike)
    assert verdict.holds
    assert verdict.clusters == len(set(made.alike))


def test_strangers_never_say_the_same():
    made = scenarios.strangers(1, ("name",), 500)
    assert len({record["name"] for record in made.records}) == 500


def test_there_are_no_more_rows_than_fit():
    assert len(scenarios.choices()) == 31
    assert max(n * k for n, k in scenarios.sizes()) <= scenarios.MOST_ROWS
    assert {k for _, k in scenarios.sizes()} == set(scenarios.COPIES)


def test_families():
    made = scenarios.households(1, 9)
    homes = {}
    for one in range(9):
        row = int(np.flatnonzero(made.truth == one)[0])
        homes.setdefault(one // 3, []).append(made.records[row]["first_name"])
    assert all(len(firsts) == 3 for firsts in homes.values())


@pytest.mark.parametrize("names", people.NAMES)
def test_people_have_all_columns(names):
    someone = people.person(Random(0), names)
    assert tuple(someone) == people.COLUMNS
    assert all(someone.values())
    assert someone == people.person(Random(0), names)


def test_typos():
    rng = Random(0)
    assert sum(people.typo(rng, "Lovelace") != "Lovelace" for _ in range(200)) > 180
    assert all(abs(len(people.typo(rng, "1815-12-10")) - 10) <= 1 for _ in range(50))
    assert people.with_typos(rng, {"name": "Ada"}, 0.0) == {"name": "Ada"}


def test_the_table_of_verdicts():
    verdict = scenarios.judge(scenarios.single(0), [0])._asdict()
    show_all({"one row": {"0": verdict, "1": verdict}}, [0, 1])
    assert options([]).seeds == [0, 1, 2, 3]
