"""What everybody knows of people, with nothing but what is learnt from the records; see benchmarks/scenarios.py."""

import pytest

from benchmarks.common_sense import run
from benchmarks.scenarios import CASES, COPIES, COPY_CASES, LARGE, choices, copies_of
from tests.helpers.effort import effort

COMMON_NAMES = 1  # the seed of names that people share
SMALL = dict(copies_of(columns, 20, COPIES[k % 3]) for k, columns in enumerate(choices()))
COPIED = list(enumerate(effort(SMALL, COPY_CASES | LARGE)))  # each with names of its own


@pytest.mark.parametrize("seed", effort([COMMON_NAMES], range(4)))
@pytest.mark.parametrize("name", CASES)
def test_people_are_who_they_are(name, seed):
    verdict = run(name, seed)
    assert verdict.holds, verdict


@pytest.mark.parametrize(("seed", "name"), COPIED, ids=[name for _, name in COPIED])
def test_copies_are_together(name, seed):
    verdict = run(name, seed)
    assert verdict.holds, verdict
