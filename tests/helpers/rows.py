"""Rows of statistics, as the samplers' kernels see them, one step at a time."""

import math

import numpy as np
from numba import njit

from partita.models.records.tables import CAPACITY, COUNT, START, kept_tables
from partita.models.scoring.families import begin, extend, gains, join, log_marginal, reduce

GAIN, EXTEND, REDUCE, JOIN, MARGINAL = range(5)


@njit(error_model="numpy")  # not cached: it would outlive a change of what it calls
def perform(family, statistics, sizes, data, steps, out):
    """Run steps (what, child, one, other) on rows of statistics, of which row 0 is the empty cluster."""
    gain = np.empty(statistics.shape[0])
    begin(family, statistics, np.int64(1))
    for k in range(steps.shape[0]):
        what, child, one, other = steps[k, 0], steps[k, 1], steps[k, 2], steps[k, 3]
        if what == GAIN:
            ids = np.full(1, child, np.int64)
            gains(family, statistics, ids, np.int64(0), np.int64(1), data, one, gain)
            out[k] = gain[child] - math.log(max(sizes[child], 1))
        elif what == EXTEND:
            extend(family, statistics, child, one, sizes[one], data, other)
            sizes[child] = sizes[one] + 1
        elif what == REDUCE:
            reduce(family, statistics, child, one, sizes[one], data, other)
            sizes[child] = sizes[one] - 1
        elif what == JOIN:
            size = sizes[one] + sizes[other]
            join(family, statistics, child, one, other, sizes[one], sizes[other], np.int64(1))
            sizes[child] = size
        else:
            out[k] = log_marginal(family, statistics, child, sizes[child], np.int64(1))


class Rows:
    """Rows of statistics of some clusters of observations."""

    def __init__(self, model, X, n_rows=8):
        model.check(1)
        self.data = model.encode(model.validate(X))
        self.family = model.family(1)
        self.statistics = np.zeros((n_rows, model.width(1)))
        self.sizes = np.zeros(n_rows, np.int64)

    def __call__(self, *steps):
        """Run steps; returns the number that each gives."""
        out = np.full(len(steps), np.nan)
        table = np.array([(*step, 0, 0)[:4] for step in steps], np.int64).reshape(-1, 4)
        perform(self.family, self.statistics, self.sizes, self.data, table, out)
        return out

    def fill(self, row, members):
        """Make a row the cluster of these observations; returns the gains along the way."""
        steps = []
        for k, x in enumerate(members):
            steps += [(GAIN, row if k else 0, x), (EXTEND, row, row if k else 0, x)]
        return self(*steps)[::2]

    def marginal(self, row):
        return float(self((MARGINAL, row))[0])

    def counts(self, row):
        """A row's table, without what it has forgotten."""
        return {
            feature: entry if isinstance(entry, int) else entry[0]
            for feature, entry in self.table(row).items()
        }

    def table(self, row):
        """A row's counts, each with the sum beside it where there is one, without what it has forgotten."""
        pool, sums, _ = kept_tables(self.family.tables)
        start, capacity = self.statistics[row, [START, CAPACITY]].astype(int)
        found = {}
        for k in range(start, start + capacity):
            if count := int(pool[k] & COUNT):
                found[int(pool[k] >> 32)] = (count, float(sums[k])) if len(sums) else count
        return found
