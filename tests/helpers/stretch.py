"""A third party's kind of attribute, with a kernel of its own."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import partita as pt


class StretchFamily(NamedTuple):
    """What the kernel needs to know."""

    rate: float


@pt.inner
def log_values(family, values, counts, n):
    """What a stretch of numbers costs, and each that is said again."""
    low, high, again = values[0], values[0], 0
    for i in range(n):
        low, high, again = min(low, values[i]), max(high, values[i]), again + counts[i] - 1
    return -family.rate * (high - low) - math.log(1.0 + n) + 0.5 * again


@pt.register
@dataclass(frozen=True)
class Stretch(pt.Attribute):
    """Whole numbers that lie close together."""

    rate: float = 0.5

    kind: ClassVar[str] = "stretch"
    learnt: ClassVar[tuple[str, ...]] = ("rate",)
    family_class = StretchFamily
    log_values = log_values

    def parse(self, raw):
        return str(int(raw))

    def number(self, value):
        return float(value)

    def family(self):
        return StretchFamily(float(self.rate))

    def log_p(self, said):
        """The kernel's formula in plain Python."""
        if not said:
            return 0.0
        numbers = [int(value) for value in said]
        again = len(said) - len(Counter(said))
        return -self.rate * (max(numbers) - min(numbers)) - math.log(1 + len(set(said))) + 0.5 * again
