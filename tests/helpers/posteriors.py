"""Posteriors made by hand."""

import numpy as np

import partita as pt


def certain_posterior(labels, alpha):
    """One that is certain of these labels, 0..K−1."""
    starts = np.arange(np.max(labels) + 2)
    n = len(starts) - 1
    return pt.Posterior(
        observation_block=labels,
        blocks_start=starts,
        rows_start=starts,
        cells_start=starts,
        cells=np.arange(n),
        log_weights=np.zeros(n),
        row_scores=np.zeros(n),
        alpha=alpha,
    )


def pairs_posterior(n, probability):
    """One in which each of n pairs of observations is together with this probability, and apart else."""
    rows = np.sort([probability, 1.0 - probability])[::-1]
    both, apart = np.array([0, 0]), np.array([1, 2])
    cells = np.array([both, apart] if probability >= 0.5 else [apart, both]).ravel()
    return pt.Posterior(
        observation_block=np.arange(2 * n),
        blocks_start=2 * np.arange(n + 1),
        rows_start=2 * np.arange(n + 1),
        cells_start=4 * np.arange(n + 1),
        cells=(cells + 3 * np.arange(n)[:, None]).ravel(),
        log_weights=np.tile(np.log(rows), n),
        row_scores=np.tile(np.log(rows), n),
        alpha=10.0,
    )
