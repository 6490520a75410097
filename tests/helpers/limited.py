"""A user's model under which some clusters are impossible, or fail to be scored."""

import math

import numpy as np

from tests.helpers import oracle

LIMITED = np.array([[60.0], [1.0], [70.0], [2.0], [30.0]])


class Limited(oracle.Poisson):
    """Clusters whose counts add up to more than 100 have the given log-likelihood."""

    def __init__(self, value=-math.inf):
        super().__init__(1.0, 0.05)
        self.value = value

    def log_marginal(self, totals, sizes):
        if self.value is None and (totals[:, 0] > 100).any():
            raise KeyboardInterrupt
        return np.where(totals[:, 0] > 100, self.value, super().log_marginal(totals, sizes))


def state_of(estimator):
    """All that an estimator knows, for comparison."""
    return {name: str(value) for name, value in vars(estimator).items()}
