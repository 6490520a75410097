"""One true value per entity, seen through typos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from partita.models.records.kinds.text import Text
from partita.models.registry import register


@register
@dataclass(frozen=True)
class Value(Text):
    """One true value per entity, seen through typos: a surname, a postcode.

    Compared as a text; that an entity has one shows in the prior ``agreement``, which expects values to be the same.

    Parameters
    ----------
    agreement, weight, corpus, references
        See :class:`Attribute`.
    """

    agreement: tuple[float, ...] = (0.05, 0.03, 0.03, 0.03, 0.03, 0.03, 0.05, 0.75)

    kind: ClassVar[str] = "value"
