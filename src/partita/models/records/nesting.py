"""Mappings within mappings, made flat: ``{"address": {"city": "Paris"}}`` says ``{"address.city": "Paris"}``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEEPEST = 100  # mappings and lists within one another
PLAIN = frozenset({str, int, float, bool, type(None)})  # what needs no closer look


def flattened(place: str, fragment: Mapping[Any, Any], kept: str | None = None) -> Mapping[Any, Any]:
    """The same without mappings among its values: each has the dotted name of its path.

    In a list of mappings each path collects its values: ``{"films": [{"year": 1}, {"year": 2}]}`` says
    ``{"films.year": [1, 2]}``.

    Parameters
    ----------
    place : str
        Such as "row 3", for messages.
    fragment : mapping
    kept : str, optional
        A name whose mapping is kept as it is.

    Examples
    --------
    >>> flattened("row 0", {"name": "Ada", "address": [{"city": "Paris", "zip": {"code": 1}}, {"city": "Rome"}]})
    {'name': 'Ada', 'address.city': ['Paris', 'Rome'], 'address.zip.code': 1}
    """
    if PLAIN.issuperset(map(type, fragment.values())):
        return fragment
    if not any(name != kept and _has_mappings(value) for name, value in fragment.items()):
        return fragment
    found: dict[Any, Any] = {}
    for name, value in fragment.items():
        if name == kept or not _has_mappings(value):
            _collect(found, name, value)
        else:
            _unfold(place, found, name, value, 0)
    return found


def _has_mappings(value: Any) -> bool:
    if type(value) in PLAIN:
        return False
    if isinstance(value, (list, tuple)):
        return any(type(element) not in PLAIN and isinstance(element, Mapping) for element in value)
    return isinstance(value, Mapping)


def _unfold(place: str, found: dict[Any, Any], name: Any, value: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError(
            f"{place}, attribute {name[:40]!r}…: more than {DEEPEST} mappings within one another"
        )
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{place}, attribute {name!r}: attributes are named by text, got {key!r}")
            _unfold(place, found, f"{name}.{key}", inner, depth + 1)
    elif _has_mappings(value):
        for element in value:
            _unfold(place, found, name, element, depth + 1)
    else:
        _collect(found, name, value)


def _collect(found: dict[Any, Any], name: Any, value: Any) -> None:
    """Add a value, or several, to those of the same name."""
    if name not in found:
        found[name] = value
        return
    before = found[name] if isinstance(found[name], list) else [found[name]]
    found[name] = [*before, *(value if isinstance(value, list | tuple | set | frozenset) else [value])]
