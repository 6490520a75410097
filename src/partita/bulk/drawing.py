"""The records that a model is learnt from: some drawn at random, and whoever may be of one entity with a few of these.

Of a million records fifty thousand are drawn, among which hardly one has the others of its entity: from these alone it
would seem that no two records are of one. So the first that are drawn bring along whoever shares a rare value with
them, of all there are. These neighbourhoods are clustered to learn from; the others tell how common values are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from partita._core.typing import Integers
from partita.bulk.place import Place
from partita.bulk.records import Mark, Said, as_mark
from partita.learning.records import SAMPLE as CLUSTERED
from partita.learning.records import SHARED, gathered
from partita.models.records.record import OTHER, Record


class Sample(NamedTuple):
    """Records to learn from.

    Attributes
    ----------
    rows : int array
        Their numbers, in ascending order.
    said : list
        What they say.
    around : pair of lists of int
        Which of them, counted in the sample, are to be clustered, and which of these were drawn at random.
    """

    rows: Integers
    said: list[Said]
    around: tuple[list[int], list[int]]


def with_neighbourhoods(place: Place, schema: Record, drawn: Integers, said: Mapping[int, Said]) -> Sample:
    """Records that were drawn, in that order, and whoever shares a rare value with the first of them."""
    first = drawn[:CLUSTERED].tolist()
    marks = {row: list(marks_of(schema, said[row])) for row in first}
    wanted = sorted({mark for own in marks.values() for mark in own})
    holders = dict(zip(wanted, place.holders(wanted, SHARED), strict=True))
    chosen, seeds = gathered(first, ((x for mark in marks[row] for x in holders[mark]) for row in first))
    more = np.setdiff1d(chosen, drawn)
    every = {**said, **dict(zip(more.tolist(), place.sample(more), strict=True))}
    rows = np.array(sorted(every))
    around = tuple(np.searchsorted(rows, found).tolist() for found in (chosen, seeds))
    return Sample(rows, [every[row] for row in rows.tolist()], around)


def marks_of(schema: Record, said: Said) -> Iterator[Mark]:
    """What a record may share with others: its values, each with its attribute, unless that is ignored."""
    attributes = schema.attributes or {}
    for name, values in said.items():
        if attributes.get(name if name in attributes else OTHER) is not None:
            yield from ((name, as_mark(value)) for value in values)
