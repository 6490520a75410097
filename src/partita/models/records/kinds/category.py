"""Categories: the same or not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from partita.models.records.corpus import UNSEEN
from partita.models.records.kinds.attribute import Attribute
from partita.models.registry import register


@register
@dataclass(frozen=True)
class Category(Attribute):
    """One of many values that are either the same or not: an occupation, a country, a genre.

    Parameters
    ----------
    theta : float
        Concentration of the entity's urn: near 0 all its fragments agree, the larger the more they vary.
    corpus : Corpus
        How often each value occurs; agreement on a rare one says more.
    """

    kind: ClassVar[str] = "category"

    def value_base(self, value: str) -> tuple[bool, float]:
        corpus = self.corpus.values
        count = corpus.counts.get(value, UNSEEN)
        return True, math.log((count + 0.5) / (corpus.total + UNSEEN + 0.5 * (len(corpus.counts) + 1)))
