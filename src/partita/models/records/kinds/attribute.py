"""What an attribute of a record is, whatever its kind (DESIGN, section 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from partita._core.checks import positive_number
from partita.models import registry
from partita.models.records.comparisons.family import LEVELS, SAME
from partita.models.records.comparisons.parts import Parts, named
from partita.models.records.corpus import Corpus
from partita.models.records.folding import folded
from partita.models.records.fragments import as_text
from partita.models.records.kinds.column import Column, Noted

# How alike the values of an entity are to each degree, if nothing is known: python -m benchmarks.hyperpriors
AGREEMENT = (0.142, 0.043, 0.045, 0.06, 0.063, 0.059, 0.03, 0.558)
SILENT = 0.01  # the weight of an attribute that says nothing, which must be above 0


@dataclass(frozen=True)
class Attribute:
    """What all kinds of attributes share, and the way to write your own: one class in one file.

    A kind reads a raw value (:meth:`parse`) and says what of it is compared (``measure``, :meth:`vector`,
    :meth:`number`), or how likely the values of a cluster are, by a kernel of its own (``family_class``,
    ``log_values``). It is called ``kind`` in a schema, where its fields are its parameters. ``@register`` makes it
    known; docs/extending.md has a whole one.

    Parameters
    ----------
    agreement : tuple of float
        How often two values of one entity are alike to each of eight degrees, from not at all to the very same.
    weight : float
        What the attribute's evidence counts, below 1 where others say the same.
    corpus : Corpus
        In how many entities each value occurs.
    references : tuple of str
        Values of different entities: what a value is compared with to see how many are alike to it by chance.
    kin : float
        How many of the references are of the same entity as a value, on average.
    by_chance : tuple of float
        How often two values of different entities are so alike, whatever they are; else each value's references tell.
        The attribute of records that say one thing alone has it, and has all of the record be compared by average
        linkage (:mod:`..comparisons.family`).
    noted : Noted, optional
        What was seen of its values, and why it is of this kind, if that was inferred.
    missing : tuple of str
        Values that stand for nothing, just as they are written: "n/a", "-".
    separator : str
        What divides a text into several values, such as "; "; empty if a text is one value.
    """

    agreement: tuple[float, ...] = AGREEMENT
    weight: float = 1.0
    corpus: Corpus = field(default_factory=Corpus, repr=False)
    references: tuple[str, ...] = field(default=(), repr=False)
    kin: float = field(default=0.0, repr=False)
    by_chance: tuple[float, ...] = ()
    noted: Noted | None = field(default=None, repr=False, compare=False)
    missing: tuple[str, ...] = field(default=(), repr=False)
    separator: str = ""

    kind: ClassVar[str]
    measure: ClassVar[int] = SAME
    neutral: ClassVar[int] = 0  # degrees of likeness, from none at all, that are no evidence either way
    learnt: ClassVar[tuple[str, ...]] = ("weight",)  # parameters, all above 0
    family_class: ClassVar[type | None] = (
        None  # of a kernel of its own: a named tuple of what it needs to know
    )
    log_values: ClassVar[Any] = (
        None  # and the kernel, (family, values, counts, n) → log p(values of a cluster)
    )

    @classmethod
    def _entries(cls) -> list[tuple[dict[Any, Any], Any]]:
        """Where ``register`` writes it: its name in schemas, and its kernel."""
        if not (isinstance(getattr(cls, "kind", None), str) and cls.kind):
            raise TypeError(f"{cls.__name__} has no kind, its name in a schema: see docs/extending.md")
        if (cls.family_class is None) != (cls.log_values is None):
            raise TypeError(f"{cls.__name__} needs both family_class and log_values, or neither")
        own = [] if cls.family_class is None else [(registry.FAMILIES, cls.family_class)]
        return [(registry.KINDS, cls.kind), *own]

    @classmethod
    def why(cls, column: Column) -> str:
        """Why an attribute with such a name and such values is of this kind; empty if it is not.

        ``Record.infer`` takes the first kind that has a reason, in the order in which they were registered.
        """
        return ""

    def __deepcopy__(self, memo: object) -> Self:
        return self  # nothing ever changes it

    def check(self, name: str) -> None:
        """Raise ValueError if a hyperparameter makes no sense."""
        for parameter in self.learnt:
            positive_number(f"{parameter} of {name!r}", getattr(self, parameter))
        for parameter in ("agreement", *(("by_chance",) if self.by_chance else ())):
            shares = getattr(self, parameter)
            if len(shares) != LEVELS or not all(
                isinstance(share, int | float) and 0.0 < share < 1.0 for share in shares
            ):
                raise ValueError(
                    f"{parameter} of {name!r} must be {LEVELS} numbers between 0 and 1, got {shares!r}"
                )

    def items(self, raw: Any) -> list[Any]:
        """The values that a raw one consists of: none if it stands for nothing, several if it is a list.

        >>> Attribute(missing=("n/a",), separator="; ").items("red; n/a; blue")
        ['red', 'blue']
        """
        if not self.missing and not self.separator:
            return [raw]
        if not isinstance(raw, str):
            return [raw] if not self.missing or as_text(raw) not in self._missing else []
        if raw.strip() in self._missing:
            return []
        if not self.separator or (mark := self.separator.strip() or self.separator) not in raw:
            return [raw]
        found = (item.strip() for item in raw.split(mark))
        return [item for item in found if item and item not in self._missing]

    @cached_property
    def _missing(self) -> frozenset[str]:
        return frozenset(self.missing)

    def with_corpus(self, counts: Mapping[str, float]) -> Self:
        """The same attribute, with these counts of its values."""
        return replace(self, corpus=Corpus(counts))

    def parse(self, raw: Any) -> str:
        """A raw value as the model compares it; ValueError if it cannot be one."""
        return folded(as_text(raw))

    def vector(self, value: str) -> dict[str, float]:
        """The parts that a value is compared by, and what each counts; of use where values are ALIKE."""
        return {}

    def parts(self, values: Sequence[str]) -> Parts:
        """What :meth:`vector` says of each of some values."""
        return named(map(self.vector, values))

    def number(self, value: str) -> float:
        """The number that stands for a value; of use where values are NEAR, or to a kernel of its own."""
        return 0.0

    @cached_property
    def scale(self) -> float:
        """How far numbers may lie apart to be alike at all."""
        return 1.0

    def family(self) -> Any:
        """What a kernel of its own needs to know: an instance of ``family_class``."""
        raise TypeError(f"{type(self).__name__} must define family()")

    def learnt_from(self, clusters: list[Counter[str]]) -> Self:
        """The same attribute with parameters of its own kernel learnt from what clusters say, with counts."""
        return self

    def words(self, value: str) -> list[str]:
        """The words that a value is found by."""
        return value.split(" ")
