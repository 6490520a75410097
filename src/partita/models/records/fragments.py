"""Fragments as users give them: mappings from attribute to values, checked and made plain."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

from partita._core.collecting import uncollected
from partita.models.records.arrow import is_table, rows_of_table
from partita.models.records.nesting import flattened

TEXTUAL = (datetime.date, datetime.time, datetime.timedelta, Decimal, Fraction, UUID)  # plain as text


LONGEST_INTEGER = 3322  # bits: a thousand digits, as Python refuses to write some thousand


def check_fragments(X: Any) -> list[dict[str, list[Any]]]:
    """Fragments as mappings from attribute to the list of values that say something."""
    with uncollected():
        return list(checked(X))


def checked(X: Any) -> Iterator[dict[str, list[Any]]]:
    """The same, one by one."""
    row = -1
    for row, fragment in enumerate(rows_of(X)):
        if not isinstance(fragment, Mapping):
            raise TypeError(f"row {row} must map attributes to values, got {type(fragment).__name__}")
        yield check_fragment(f"row {row}", fragment)
    if row < 0:
        raise ValueError("there is no fragment: at least one is needed")


def rows_of(X: Any) -> Iterable[Any]:
    """What a DataFrame, a table or any iterable holds, row by row."""
    if is_table(X):
        return rows_of_table(X)
    if hasattr(X, "to_dict") and hasattr(X, "columns"):  # a pandas DataFrame
        if len(set(X.columns)) < len(X.columns):
            raise ValueError(f"columns of the same name: {sorted(map(str, X.columns))}")
        X = X.to_dict("records")
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable):
        hint = "; give what its collect() returns" if is_lazy(X) else ""
        raise TypeError(f"fragments must be a list of mappings or a table, got {type(X).__name__}{hint}")
    return X


def is_lazy(X: Any) -> bool:
    """Whether this is a LazyFrame of polars, whose rows nobody has computed."""
    return hasattr(type(X), "collect_schema") and hasattr(type(X), "collect")


def check_fragment(place: str, fragment: Mapping[Any, Any]) -> dict[str, list[Any]]:
    """One fragment, with every attribute's values in a list, and without those that say nothing.

    Mappings among them are flattened: what they say has dotted names. Errors name its place, such as "row 3".
    """
    if (found := _of_texts(fragment)) is not None:
        return found
    found = {}
    for name, values in flattened(place, fragment).items():
        if name is None:
            raise TypeError(
                f"{place}: {values!r} has no attribute; if it comes from csv.DictReader, the row has more "
                "fields than the header has names"
            )
        if not isinstance(name, str):
            raise TypeError(f"{place}: attributes are named by text, got {name!r}")
        if type(values) is str:  # as nearly all are
            if not is_missing(values):
                found[name] = [values]
            continue
        if isinstance(values, np.ndarray):
            values = values.tolist()
        elif isinstance(values, set | frozenset):
            values = sorted(values, key=repr)
        if isinstance(values, list | tuple):
            kept = [value for value in values if not is_missing(value)]
        else:
            kept = [] if is_missing(values) else [values]
        if kept:
            try:
                found[name] = [as_plain(value) for value in kept]
            except ValueError as error:
                raise ValueError(f"{place}, attribute {name!r}: {error}") from None
    return found


def _of_texts(fragment: Mapping[Any, Any]) -> dict[str, list[Any]] | None:
    """:func:`check_fragment`, where all values are texts, lists of texts or None, as they nearly always are."""
    found: dict[str, list[Any]] = {}
    for name, values in fragment.items():
        if type(name) is not str:
            return None
        if type(values) is str:
            if values and not values.isspace():
                found[name] = [values]
        elif type(values) is list:
            for value in values:
                if type(value) is not str:
                    return None
            if kept := [value for value in values if value and not value.isspace()]:
                found[name] = kept
        elif values is not None:
            return None
    return found


def as_plain(value: Any) -> Any:
    """A value as JSON can hold it, if it can: dates and the like as text, NumPy's scalars as Python's."""
    if type(value) is str:
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and value.bit_length() > LONGEST_INTEGER:
        raise ValueError("an integer of more than a thousand digits; give it as a text")
    return str(value) if isinstance(value, TEXTUAL) else value


def as_text(raw: Any) -> str:
    """A raw value as text; ValueError if it is neither text nor a number nor a date."""
    if isinstance(raw, str):
        return raw
    if isinstance(raw, bool | int | datetime.date):
        return str(raw)
    if isinstance(raw, float):
        return str(int(raw)) if raw.is_integer() else repr(raw)
    if hasattr(raw, "item") and getattr(raw, "ndim", None) == 0:  # NumPy's scalars
        return as_text(raw.item())
    raise ValueError(f"must be text, a number or a date, not {type(raw).__name__}")


def is_missing(raw: Any) -> bool:
    """Whether a raw value says nothing."""
    if isinstance(raw, str):
        return not raw or raw.isspace()
    if raw is None:
        return True
    try:
        return bool(raw != raw)
    except (TypeError, ValueError):  # the NA of pandas, which is neither equal nor unequal; arrays
        return type(raw).__name__ == "NAType"


def are_fragments(X: Any) -> bool:
    """Whether these are mappings, or a DataFrame of pandas with columns that are no numbers."""
    if is_lazy(X):
        return True  # which is refused when they are read, and asking for its columns would warn
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        return any(kind.kind not in "biuf" for kind in X.dtypes if hasattr(kind, "kind"))
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(x, Mapping) for x in X)


class ReadFragment(dict[str, list[Any]]):
    """A fragment that a record model has read: with what it says, as the model compares it.

    Attributes
    ----------
    pairs : list of (attribute, value)
        Attributes by their numbers in the model, values as parsed.
    """

    __slots__ = ("pairs",)
    pairs: list[tuple[int, str]]
