"""Numbers: exact repeats, and others nearby."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from partita._core.typing import Floats
from partita.models.records.comparisons.family import NEAR
from partita.models.records.kinds.attribute import Attribute
from partita.models.records.kinds.column import Column
from partita.models.registry import register

MARKS = "[, '’_\u00a0\u2009\u202f]"  # between thousands
WRITTEN = re.compile(
    rf"[+-]?(?=\.?\d)(?:\d+|\d{{1,3}}(?P<mark>{MARKS})\d{{3}}(?:(?P=mark)\d{{3}})*)?(?:\.\d*)?(?:[eE][+-]?\d+)?"
)
PLAIN = re.compile(
    r"[+-]?(?:0|[1-9]\d{0,14})(?:\.\d+)?"
)  # a number as CSV has it; no code with leading zeros
NOTHING = "nothing"  # what a text that is no number may be taken for
LARGEST = 1e100  # squares of numbers must stay finite


def as_number(raw: Any) -> float:
    """The number, of a number or of a text with nothing else in it.

    >>> as_number("1,234.50")
    1234.5
    """
    if isinstance(raw, str):
        text = raw.strip().replace("−", "-")
        if not WRITTEN.fullmatch(text):
            raise ValueError(
                f'{raw!r} is not a number; write 1234.5 or 1,234.5, and no unit, or give the attribute kind = "text"'
            )
        raw = re.sub(MARKS, "", text)
    elif isinstance(raw, bool | np.bool_) or np.ndim(raw) != 0:
        raise ValueError(f"{raw!r} is not a number")
    try:
        number = float(raw)
    except OverflowError:  # an integer
        number = math.inf
    except (TypeError, ValueError):
        raise ValueError(f"{raw!r} is not a number") from None
    if not abs(number) < LARGEST:
        what = repr(raw)
        what = what if len(what) < 40 else f"{what[:20]}… of {len(what)} digits"
        raise ValueError(f"a number must be finite and below {LARGEST:g}, got {what}")
    return number + 0.0  # no negative zero


def is_readable(raw: Any) -> bool:
    """Whether a raw value is a number, or is no text: what else it may be is refused, not passed over."""
    if isinstance(raw, str):
        try:
            as_number(raw)
        except ValueError:
            return False
    return True


def centre_and_deviation(values: Floats, weights: Floats) -> tuple[float, float]:
    """The median, and the standard deviation of a normal distribution with the same quartiles."""
    order = np.argsort(values)
    values, weights = values[order], weights[order]
    at = np.searchsorted(np.cumsum(weights), np.array([0.25, 0.5, 0.75]) * weights.sum())
    low, middle, high = values[np.minimum(at, len(values) - 1)].tolist()
    if low < high:
        return middle, (high - low) / 1.349
    return middle, math.sqrt(np.average((values - middle) ** 2, weights=weights))


def resolution_of(values: Any) -> float:
    """The largest power of ten that divides nearly all of the numbers.

    >>> resolution_of([1250.0, 830.0, 40.0])
    10.0
    """
    kept = np.abs(np.asarray(values, np.float64))
    kept = kept[kept > 0.0]
    if len(kept) == 0:
        return 1.0
    for power in range(12, -18, -1):
        steps = kept / 10.0**power
        if np.mean(np.abs(steps - np.round(steps)) <= 1e-13 * steps) >= 0.95:
            return float(10.0**power)
    return 1e-18


@register
@dataclass(frozen=True)
class Number(Attribute):
    """Numbers: the same ones again, and others nearby.

    Parameters
    ----------
    spread : float
        How far numbers may lie apart to be alike at all, relative to how far apart those of the corpus lie.
    unreadable : str
        What a text is that is no number: refused, or if this is "nothing", one that stands for nothing. It is so
        where nobody declared that the attribute has numbers: its values were numbers so far.
    agreement, weight, corpus, references
        See :class:`Attribute`.
    """

    spread: float = 0.5
    unreadable: str = ""

    kind: ClassVar[str] = "number"
    measure: ClassVar[int] = NEAR
    learnt: ClassVar[tuple[str, ...]] = ("weight", "spread")

    @classmethod
    def why(cls, column: Column) -> str:
        values = column.values
        if not values or not all(
            type(value) in (int, float) or (isinstance(value, str) and PLAIN.fullmatch(value.strip()))
            for value in values
        ):
            return ""
        whole = all(float(value).is_integer() for value in values)  # those may be codes of anything
        return "" if whole else f"all {len(values):,} values are numbers, with fractions"

    def check(self, name: str) -> None:
        super().check(name)
        if self.unreadable not in ("", NOTHING):
            raise ValueError(
                f"unreadable of {name!r} must be {NOTHING!r}, or left out, got {self.unreadable!r}"
            )

    def items(self, raw: Any) -> list[Any]:
        found = super().items(raw)
        return [item for item in found if is_readable(item)] if self.unreadable else found

    def parse(self, raw: Any) -> str:
        number = as_number(raw)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)

    @cached_property
    def scale(self) -> float:
        numbers = np.array([float(value) for value in self.corpus.counts])
        step = resolution_of(numbers)
        if not len(numbers):
            return step
        _, deviation = centre_and_deviation(numbers, np.array(list(self.corpus.counts.values())))
        return max(self.spread * deviation, step)

    def number(self, value: str) -> float:
        return float(value)

    def words(self, value: str) -> list[str]:
        return [value]
