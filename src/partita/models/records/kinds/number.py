"""Numbers: exact repeats, and new ones near those that the cluster has.

A number is drawn from the cluster's urn: with probability n_v / (N + θ) it is one that is there, else it is
new. The distinct numbers of a cluster are normal, with mean and variance of the cluster integrated out
(normal–inverse-gamma, so a new number is Student t), and the density times the resolution, the step between
numbers as they are written, is a probability:

    p(c) = [Γ(θ) / Γ(θ + N)] · Π_v θ·r·Γ(n_v) · NIG(distinct numbers).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from partita._core.checks import positive_number
from partita._core.kernel import inner
from partita._core.typing import Floats
from partita.models.records.kinds.attribute import Attribute
from partita.models.registry import register

NUMBER = 2  # the mode of such an attribute
MEAN, PRECISION, SHAPE, RATE, STEP = range(5)  # its settings; the last is log r
MARKS = "[, '’_\u00a0\u2009\u202f]"  # between thousands
WRITTEN = re.compile(
    rf"[+-]?(?=\.?\d)(?:\d+|\d{{1,3}}(?P<mark>{MARKS})\d{{3}}(?:(?P=mark)\d{{3}})*)?(?:\.\d*)?(?:[eE][+-]?\d+)?"
)
LARGEST = 1e100  # squares of numbers must stay finite


@inner
def log_numbers(chosen, base, settings, theta, a, n, column):
    """log p of the numbers in the first n rows of ``chosen``, whose counts are in one column."""
    distinct, draws, mean, squares, total = 0, 0, 0.0, 0.0, 0.0
    for i in range(n):
        if chosen[i, column] > 0:
            distinct += 1
            draws += chosen[i, column]
            mean += base[chosen[i, 0]]
            total += math.lgamma(chosen[i, column])
    if distinct == 0:
        return 0.0
    mean /= distinct
    for i in range(n):
        if chosen[i, column] > 0:
            squares += (base[chosen[i, 0]] - mean) ** 2
    total += (
        distinct * (math.log(theta) + settings[a, STEP]) + math.lgamma(theta) - math.lgamma(theta + draws)
    )
    precision, shape, rate = settings[a, PRECISION], settings[a, SHAPE], settings[a, RATE]
    away = mean - settings[a, MEAN]
    squares += precision * distinct / (precision + distinct) * away * away
    total += (
        math.lgamma(shape + 0.5 * distinct) - math.lgamma(shape) - 0.5 * distinct * math.log(2.0 * math.pi)
    )
    total += 0.5 * math.log(precision / (precision + distinct)) - 0.5 * distinct * math.log(rate)
    return total - (shape + 0.5 * distinct) * math.log1p(0.5 * squares / rate)


@inner
def numbers_gain(chosen, base, settings, theta, a, n):
    """log p of the numbers in the first n rows of ``chosen``, with the observation over without it."""
    without, with_it = np.int64(1), np.int64(2)
    before = log_numbers(chosen, base, settings, theta, a, n, without)
    return log_numbers(chosen, base, settings, theta, a, n, with_it) - before


def as_number(raw: Any) -> float:
    """The number, of a number or of a text with nothing else in it.

    >>> as_number("1,234.50")
    1234.5
    """
    if isinstance(raw, str):
        text = raw.strip().replace("−", "-")
        if not WRITTEN.fullmatch(text):
            raise ValueError(f"{raw!r} is not a number; write 1234.5 or 1,234.5, and no unit")
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
    theta : float
        Concentration of the entity's urn: near 0 all its fragments agree, the larger the more they vary.
    spread : float
        How far the different numbers of an entity lie apart, relative to those of the corpus.
    shape : float
        How alike entities are in that: half the degrees of freedom of the Student t.
    corpus : Corpus
        How often each number occurs.
    """

    spread: float = 0.1
    shape: float = 1.0

    kind: ClassVar[str] = "number"
    family_mode: ClassVar[int] = NUMBER

    def check(self, name: str) -> None:
        for parameter in ("theta", "spread", "shape"):
            positive_number(f"{parameter} of {name!r}", getattr(self, parameter))

    def parse(self, raw: Any) -> str:
        number = as_number(raw)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)

    @cached_property
    def settings(self) -> list[float]:
        """What the kernels need to know, in the order of MEAN, PRECISION, …."""
        numbers = np.array([float(value) for value in self.corpus.counts])
        step = resolution_of(numbers)
        mean, deviation = 0.0, step
        if len(numbers):
            mean, deviation = centre_and_deviation(numbers, np.array(list(self.corpus.counts.values())))
        deviation = max(deviation, step)
        within = max(self.spread * deviation, step)  # what is written differs by so much at least
        return [mean, (within / deviation) ** 2, self.shape, self.shape * within**2, math.log(step)]

    def value_base(self, value: str) -> tuple[bool, float]:
        return True, float(value)
