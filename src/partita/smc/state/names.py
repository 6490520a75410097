"""Names of the clusters in the best clustering, for those who follow it observation by observation.

The best clustering is the first row of every subproblem. Who gives its clusters names that last, such as a
knowledge base its entities, has them kept here: nearly always a new observation joins one of these clusters or
begins another, and all others stay as they are, which :mod:`partita.smc.steps.follow` tells without a look at
settled observations.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.experimental import structref

from partita._core.kernel import kernel

FIELDS = [
    ("on", types.int64),  # 0: nobody follows
    ("of_observation", types.int64[::1]),  # the name of each one's cluster; −1 for one that is new or removed
    ("marks", types.int64[::1]),  # working memory: one for each name, old or to come; 0 to begin with
    ("next", types.int64),  # the name of the next new cluster
]


@structref.register
class NamesType(types.StructRef):  # type: ignore[misc]
    """Numba's type of :class:`Names`."""

    def preprocess_fields(self, fields):
        """Fields are declared with their final types."""
        return fields


class Names(structref.StructRefProxy):  # type: ignore[misc]
    """The names, as kernels see them; ``FIELDS`` says what is in it."""


structref.define_boxing(NamesType, Names)
NAMES = NamesType(FIELDS)


@kernel
def no_names():
    """Nobody follows."""
    names = structref.new(NAMES)
    names.on, names.next = 0, 0
    names.of_observation, names.marks = np.empty(0, np.int64), np.empty(0, np.int64)
    return names


@kernel
def follow_with(names, of_observation, marks, following):
    """Keep names in these arrays from now on."""
    names.on, names.next = 1, following
    names.of_observation, names.marks = of_observation, marks


@kernel
def next_name(names):
    """The name of the next new cluster."""
    return names.next


@kernel
def stop_following(names):
    """Nobody follows from now on."""
    names.on = 0
