"""The paper's Gaussian points, where the shared data are; a test that needs them is skipped elsewhere."""

from pathlib import Path

import numpy as np
import pytest

import partita as pt

SHARED = Path(__file__).resolve().parents[3] / "shared"
POINTS = SHARED / "data" / "points"
ALPHA = 20.0

needs_data = pytest.mark.skipif(not POINTS.is_dir(), reason=f"no data at {POINTS}")


def model():
    """The paper's model of them."""
    return pt.Gaussian(shape=2.0, rate=0.5, mean=0.0, precision=2e-4)


def table():
    """The points in two columns, and the true clusters in a third."""
    return np.genfromtxt(POINTS / "gauss700.csv", delimiter=",", skip_header=1)
