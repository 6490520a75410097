"""What everybody knows of people, with nothing but what is learnt from the records; see benchmarks/scenarios.py."""

import pytest

from benchmarks.common_sense import run
from benchmarks.scenarios import CASES, COPIES, COPY_CASES, LARGE, choices, copies_of
from tests.helpers.effort import LONG, effort

COMMON_NAMES = 1  # the seed of names that people share
SMALL = dict(copies_of(columns, 20, COPIES[k % 3]) for k, columns in enumerate(choices()))
COPIED = list(enumerate(effort(SMALL, COPY_CASES | LARGE)))  # each with names of its own
# What is still wrong: two people of one name, each with an address of their own, are taken for one with two.
MISSED = {"copies of name+email, 20 x 5"}


def marked(name, *values):
    """A case, or one of which it is known that it fails, and will be noticed when it no longer does."""
    wrong = pytest.mark.xfail(strict=not LONG, reason="the answer is still wrong")
    return pytest.param(*values, name, marks=[wrong] if name in MISSED else [], id=name)


@pytest.mark.parametrize("seed", effort([COMMON_NAMES], range(4)))
@pytest.mark.parametrize("name", [marked(name) for name in CASES])
def test_people_are_who_they_are(name, seed):
    verdict = run(name, seed)
    assert verdict.holds, verdict


@pytest.mark.parametrize(("seed", "name"), [marked(name, seed) for seed, name in COPIED])
def test_copies_are_together(name, seed):
    verdict = run(name, seed)
    assert verdict.holds, verdict
