"""Categories: the same or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from partita.models.records.kinds.attribute import Attribute
from partita.models.registry import register


@register
@dataclass(frozen=True)
class Category(Attribute):
    """One of many values that are either the same or not: an occupation, a country, a genre.

    Parameters
    ----------
    agreement, weight, corpus, references
        See :class:`Attribute`; agreement on a rare value says more.
    """

    kind: ClassVar[str] = "category"
