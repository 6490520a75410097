"""Sets of things that are joined through what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


class Groups:
    """Sets of things, of which some are joined."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def of(self, thing: str) -> str:
        """One of a thing's set, the same for all of it."""
        root = thing
        while (parent := self._parent.get(root, root)) != root:
            root = parent
        while (parent := self._parent.get(thing, thing)) != root:
            self._parent[thing], thing = root, parent
        return root

    def join(self, things: Sequence[str]) -> None:
        """Make one set of those of some things."""
        for one, other in pairwise(things):
            self._parent[self.of(other)] = self.of(one)
