"""The attributes that a schema says entities are named by."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def check_named_by(name: Sequence[str] | None, attributes: Iterable[str]) -> None:
    """Raise ValueError unless a model has the attributes that entities are to be named by."""
    if name is None:
        return
    listed = isinstance(name, list | tuple)
    if not (listed and name and all(isinstance(one, str) for one in name)):
        raise ValueError(f"name must be a list of attributes that make a name together, got {name!r}")
    known = [one for one in attributes if one != "*"]
    for one in name:
        if one not in known:
            near = difflib.get_close_matches(one, known, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(
                f"entities cannot be named by {one!r}: there is no such attribute; {hint}there are "
                + ", ".join(map(repr, known))
            )
    if len(set(name)) < len(name):
        raise ValueError(f"name has an attribute twice: {list(name)!r}")
