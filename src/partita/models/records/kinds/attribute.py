"""What an attribute of a record is, whatever its kind (DESIGN, section 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from partita._core.checks import positive_number
from partita.models import registry
from partita.models.records.corpus import Corpus
from partita.models.records.folding import folded
from partita.models.records.fragments import as_text
from partita.models.records.kinds.learning import concentration

MOST_LETTERS = 10  # of an n-gram


@dataclass(frozen=True)
class Attribute:
    """What all kinds of attributes share, and the way to write your own: one class in one file.

    A kind reads a raw value (:meth:`parse`), and says how likely values are: by the urns of
    :mod:`partita.models.records.urns`, or by a kernel of its own (``family_class``, ``log_values``). It learns its
    hyperparameters from the values of clusters (:meth:`learnt_from`), and is called ``kind`` in a schema, where its
    fields are its parameters. ``@register`` makes it known; docs/extending.md has a whole one.

    Parameters
    ----------
    theta : float
        Concentration of the entity's urn of values: near 0 all its fragments agree, the larger the more they vary.
    corpus : Corpus
        How often each value occurs.
    """

    theta: float = 1.0
    corpus: Corpus = field(default_factory=Corpus, repr=False)

    kind: ClassVar[str]
    phi: ClassVar[float] = -1.0
    order: ClassVar[int] = 1
    learnt: ClassVar[tuple[str, ...]] = ("theta",)  # parameters, all above 0
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

    def __deepcopy__(self, memo: object) -> Self:
        return self  # nothing ever changes it

    def check(self, name: str) -> None:
        """Raise ValueError if a hyperparameter makes no sense."""
        for parameter in self.learnt:
            positive_number(f"{parameter} of {name!r}", getattr(self, parameter))

    def with_corpus(self, counts: Mapping[str, float]) -> Self:
        """The same attribute, with these counts of its values."""
        return replace(self, corpus=Corpus(counts))

    def parse(self, raw: Any) -> str:
        """A raw value as the model compares it; ValueError if it cannot be one."""
        return folded(as_text(raw))

    def family(self) -> Any:
        """What a kernel of its own needs to know: an instance of ``family_class``."""
        raise TypeError(f"{type(self).__name__} must define family()")

    def learnt_from(self, clusters: list[Counter[str]]) -> Self:
        """The same attribute with hyperparameters learnt from what each of many clusters says, with counts."""
        sizes = [sum(cluster.values()) for cluster in clusters]
        return replace(self, theta=concentration(sizes, sum(len(cluster) for cluster in clusters)))

    def words(self, value: str) -> list[str]:
        """The words that a value is composed of."""
        return []

    def value_base(self, value: str) -> tuple[bool, float]:
        """Whether a value is common, and the log-probability of it, or of being none of the common ones.

        For a kernel of its own: true, and the number that stands for the value.
        """
        raise TypeError(f"{type(self).__name__} must define value_base(value)")


def check_letters(name: str, letters: Any) -> None:
    """Raise ValueError if n-grams of so many letters make no sense."""
    if not isinstance(letters, int) or isinstance(letters, bool) or not 1 <= letters <= MOST_LETTERS:
        raise ValueError(
            f"letters of {name!r} must be a whole number from 1 to {MOST_LETTERS}, got {letters!r}"
        )
