"""The base of models whose clusters are tables of counts: of letters, or of the values of attributes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from partita._core.typing import Floats, Integers
from partita.models.base import CompiledModel
from partita.models.records.tables import WIDTH, filled_tables, kept_tables


class TextModel(CompiledModel):
    """Base of the models whose clusters are tables of counts."""

    reads_rows: ClassVar[bool] = False
    always_possible: ClassVar[bool] = True  # whatever is said, it has a probability
    keeps_sums: ClassVar[bool] = False  # whether tables have numbers beside their counts
    _vocabulary: Any

    def _pairs(self, observation: Any) -> Iterable[tuple[int, str]]:
        """What a validated observation says: attributes, by number, and values."""
        raise TypeError(f"{type(self).__name__} must define _pairs(observation)")

    def encoded_width(self, X: Any) -> int:
        return 2

    def encode(self, X: Any) -> Floats:
        return self._vocabulary.encode([self._pairs(observation) for observation in X])

    def family(self, n_features: int) -> Any:
        return self._vocabulary.family()

    def after_encoding(self, family: Any) -> Any:
        return self._vocabulary.family(family.tables)

    def width(self, n_features: int) -> int:
        return WIDTH

    def keys(self, X: Any) -> tuple[Integers, Integers]:
        """Keys of candidates: values and words, and how words begin, of each attribute."""
        return self._vocabulary.keys([self._pairs(observation) for observation in X])

    def kept_tables(self, family: Any) -> tuple[Integers, Floats, Integers]:
        """The contents of a family's tables, as plain arrays."""
        found: tuple[Integers, Floats, Integers] = kept_tables(family.tables)
        return found

    def with_tables(self, family: Any, pool: Integers, sums: Floats, free: Integers) -> Any:
        """The family with tables of such contents."""
        return family._replace(tables=filled_tables(pool, sums, free, self.keeps_sums))
