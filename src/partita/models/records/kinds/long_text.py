"""Long texts, such as descriptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from partita.models.records.kinds.text import Text
from partita.models.registry import register


@register
@dataclass(frozen=True)
class LongText(Text):
    """Long texts, such as descriptions, where that two have nothing in common says nothing.

    Of an entity there is more to say than fits into one text. ``Record.infer`` never chooses it: on data where it could
    be measured, that two texts have nothing in common did tell strangers apart.

    Parameters
    ----------
    agreement, weight, corpus, references
        See :class:`Attribute`.
    """

    kind: ClassVar[str] = "long_text"
    neutral: ClassVar[int] = 1
