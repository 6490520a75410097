"""Fragments: partial observations of entities, as a knowledge base takes them in.

Whatever describes a thing becomes a :class:`Fragment`: the nested form of REBEL and MS-KeBAB,
``{"properties": {"name": ["Standard Liège"]}, "id": …, "source": …}``, or a flat mapping such as a row of a
CSV file, where every field but the id and the source is a property. Here it is decided what a fragment's id
is, which rows of a stream are the same fragment, and what text can be stored.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

from partita.models.records.fragments import as_plain, check_fragment, is_missing, rows_of
from partita.models.records.nesting import flattened

Scalar = str | int | float | bool
ID, SOURCE = "id", "source"  # the usual fields
DIGEST_BYTES = 10  # two of a million fragments share a digest with a probability below 1e-12
UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # NUL and lone surrogates, which databases refuse in text


class EmptyFragment(ValueError):
    """A fragment without a single property."""


@dataclass(frozen=True)
class Fragment:
    """A partial observation of an entity.

    Parameters
    ----------
    id : str
    source : str or None
        Where it is from.
    properties : dict
        From attribute to a list of values, of which there is one at least.
    """

    id: str
    source: str | None
    properties: dict[str, list[Scalar]]

    @cached_property
    def digest(self) -> str:
        """A hash of what it says and of its source, whatever its id: 20 hexadecimal digits."""
        return digest_of(self.properties, self.source)


def digest_of(properties: Mapping[str, list[Scalar]], source: str | None) -> str:
    """A hash that depends on contents alone, not on the order of attributes, nor on the version of Python."""
    text = json.dumps([source, properties], sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()


# ---------------------------------------------------------------------- one fragment


def as_fragment(
    given: Mapping[Any, Any],
    row: int,
    id_field: str | None = ID,
    source_field: str | None = SOURCE,
    ignore: Collection[str] = (),
    from_source: str | None = None,
) -> Fragment:
    """A fragment of the nested or the flat form.

    Parameters
    ----------
    given : mapping
        If it maps "properties" to a mapping, these are the properties, and what else there is beside them is
        left out. Otherwise every field is a property but those named below. Mappings among the fields, and among
        the properties, are flattened, and their fields have dotted names.
    row : int
        Its place, for messages.
    id_field, source_field : str or None
        The fields that hold the id and the source; None if no field does. One with another name than the
        usual must be there, though it may be empty. Without an id the digest serves.
    ignore : collection of str
        Attributes to leave out.
    from_source : str, optional
        Where it is from, whatever its field says.

    Returns
    -------
    Fragment
        Without values that say nothing (None, blank text, NaN); single values in lists of one.

    Raises
    ------
    TypeError, ValueError
        That name the row and the field; :class:`EmptyFragment` if no property is left.

    Examples
    --------
    >>> as_fragment({"id": 7, "name": "Ada", "born": 1815, "died": None}, row=0)
    Fragment(id='7', source=None, properties={'name': ['Ada'], 'born': [1815]})
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"row {row} must map attributes to values, got {type(given).__name__}")
    if None in given:  # where csv.DictReader puts fields beyond the header's
        raise ValueError(f"row {row}: more fields than the header has; is a field with commas not quoted?")
    nested = given.get("properties")
    hidden: set[str | None] = set(ignore)
    if not isinstance(nested, Mapping):
        nested = given
        hidden |= {id_field, source_field}
    place = f"row {row}"
    said = {name: values for name, values in nested.items() if name not in hidden}
    flat = flattened(place, said)
    if flat is not said:
        said = {name: values for name, values in flat.items() if name not in hidden}
    properties = check_fragment(place, said)
    if not _is_storable(properties):
        properties = {
            _storable(row, "name", name): [_value(row, name, value) for value in values]
            for name, values in properties.items()
        }
    if not properties:
        raise EmptyFragment(
            f"row {row}: no property says anything; leave it out, or skip empty rows (--skip-empty)"
        )
    for name, usual in ((id_field, ID), (source_field, SOURCE)):
        if name is not None and isinstance(given.get(name), Mapping):
            raise ValueError(
                f"row {row}: the field {name!r} has fields of its own, so it is no {usual}; name one of them, "
                f"such as {name}.{next(iter(given[name]), 'name')} (--{usual})"
            )
    given = flattened(place, given, kept="properties")
    found_source = _field(row, given, source_field, SOURCE) if from_source is None else from_source
    source = _source(row, found_source)
    named = id_of(row, _field(row, given, id_field, ID))
    return Fragment(named or digest_of(properties, source), source, properties)


def _field(row: int, given: Mapping[Any, Any], name: str | None, usual: str) -> Any:
    if name is None:
        return None
    if name not in given and name != usual:
        advice = nearest(name, given)
        raise ValueError(f"row {row}: there is no field {name!r} for the {usual}; {advice}")
    return given.get(name)


def nearest(name: str, known: Iterable[Any]) -> str:
    """What was meant by a name that is none of the known ones, if one is like it, and which there are.

    >>> nearest("clustr_id", ["name", "cluster_id"])
    "did you mean 'cluster_id'? There are 'name', 'cluster_id'"
    """
    names = [str(one) for one in known]
    close = difflib.get_close_matches(name.casefold(), {one.casefold() for one in names}, 1)
    meant = next((one for one in names if close and one.casefold() == close[0]), None)
    listed = ", ".join(map(repr, names))
    return f"there are {listed}" if meant is None else f"did you mean {meant!r}? There are {listed}"


def id_of(row: int, raw: Any) -> str | None:
    """An id as text; None if it says nothing."""
    if is_missing(raw):
        return None
    value = as_plain(raw)
    if isinstance(value, float) and value.is_integer():  # pandas makes 7.0 of 7 where another id is missing
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"row {row}: an id is text or a whole number, not {value!r}")
    return _storable(row, ID, str(value))


def _source(row: int, raw: Any) -> str | None:
    """The source, or several in one text."""
    if raw is None:
        return None
    values = check_fragment(f"row {row}", {SOURCE: raw}).get(SOURCE, [])
    return "; ".join(str(_value(row, SOURCE, value)) for value in values) or None


def _is_storable(properties: Mapping[str, list[Any]]) -> bool:
    """Whether all of it is text that every database can hold, as it nearly always is."""
    for values in properties.values():
        for value in values:
            if type(value) is not str:
                return False
    said = "".join(chain(properties, *properties.values()))
    return (said.isascii() and "\0" not in said) or not UNSTORABLE.search(said)


def _storable(row: int, kind: str, text: str) -> str:
    """An id or a name, which cannot be mended: two might become one."""
    if UNSTORABLE.search(text):
        raise ValueError(
            f"row {row}: the {kind} {text!r} has a NUL or a lone surrogate, which is no character"
        )
    return text


def _value(row: int, name: str, value: Any) -> Scalar:
    """A value that every database can hold: what it cannot, is marked as the character it might have been."""
    if isinstance(value, str):
        return UNSTORABLE.sub("\ufffd", value)
    if not isinstance(value, int | float):  # truth values are integers to Python
        kind = type(value).__name__
        raise ValueError(f"row {row}, attribute {name!r}: must be text, a number or a date, not {kind}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"row {row}, attribute {name!r}: {value!r} is not a number to compare with others")
    return value


# ---------------------------------------------------------------------- streams


class FragmentReader:
    """Makes fragments of rows, and tells those apart that are and are not the same.

    Rows without an id that say the same are as many fragments: the first has the digest for its id, the next
    the digest and "-2", and so on, so that reading them all again gives the same ids. A row that repeats an
    id and what was said with it is passed over; one that says something else is refused, for then the ids are
    none.

    Parameters
    ----------
    id_field, source_field : str or None
    ignore : collection of str
        As in :func:`as_fragment`.
    skip_empty : bool
        Whether rows without a property are passed over, and counted; otherwise they are refused.
    from_source : str, optional
        Where all rows are from, whatever their fields say.

    Attributes
    ----------
    skipped : int
        Rows without a property so far.
    repeated : int
        Rows so far that repeated an earlier one, its id included.
    unseen : set of str
        The columns to ignore that no row has had so far.
    columns : dict
        The columns that rows have had while some to ignore were unseen.

    Examples
    --------
    >>> reader = FragmentReader()
    >>> [fragment.id for fragment in reader.read([(1, {"name": "Ada"}), (2, {"name": "Ada"})])]
    ['ed92fc82fc7a9521b3fa', 'ed92fc82fc7a9521b3fa-2']
    """

    def __init__(
        self,
        id_field: str | None = ID,
        source_field: str | None = SOURCE,
        ignore: Collection[str] = (),
        skip_empty: bool = False,
        from_source: str | None = None,
    ) -> None:
        self.id_field = id_field
        self.source_field = source_field
        self.ignore = ignore
        self.skip_empty = skip_empty
        self.from_source = from_source
        self.skipped = 0
        self.repeated = 0
        self.unseen = set(ignore)
        self.columns: dict[str, None] = {}
        self._anonymous: Counter[str] = Counter()
        self._named: dict[str, tuple[int, str]] = {}

    def read(self, rows: Iterable[tuple[int, Mapping[Any, Any]]]) -> Iterator[Fragment]:
        """The fragments of numbered rows; further calls go on with the same stream."""
        for row, given in rows:
            if self.unseen:
                self.look_for_ignored(row, given)
            try:
                fragment = as_fragment(
                    given, row, self.id_field, self.source_field, self.ignore, self.from_source
                )
            except EmptyFragment:
                if not self.skip_empty:
                    raise
                self.skipped += 1
                continue
            if is_missing(flattened(f"row {row}", given, kept="properties").get(self.id_field)):
                yield self._numbered(fragment)
            elif self._is_new(fragment, row):
                yield fragment
            else:
                self.repeated += 1

    def look_for_ignored(self, row: int, given: Any) -> None:
        """Take what a row has for seen."""
        if not isinstance(given, Mapping):
            return
        nested = given.get("properties")
        for fields in (given, nested) if isinstance(nested, Mapping) else (given,):
            self.columns |= dict.fromkeys((*fields, *flattened(f"row {row}", fields, kept="properties")))
        self.unseen.difference_update(self.columns)

    def check_ignored(self) -> None:
        """Raise ValueError if a column to ignore was in no row."""
        for name in sorted(self.unseen):
            raise ValueError(f"there is no column {name!r} to ignore; {nearest(name, self.columns)}")

    def _numbered(self, fragment: Fragment) -> Fragment:
        digest = fragment.digest
        self._anonymous[digest] += 1
        number = self._anonymous[digest]
        return replace(fragment, id=f"{digest}-{number}") if number > 1 else fragment

    def _is_new(self, fragment: Fragment, row: int) -> bool:
        if fragment.id not in self._named:
            self._named[fragment.id] = row, fragment.digest
            return True
        first, digest = self._named[fragment.id]
        if digest != fragment.digest:
            raise ValueError(
                f"row {row} and row {first} have the same id, {fragment.id!r}, and say different things; if "
                f"{self.id_field!r} is not unique, name another field (--id COLUMN) or do without (--no-id)"
            )
        return False


def as_fragments(
    given: Any,
    id_field: str | None = ID,
    source_field: str | None = SOURCE,
    ignore: Collection[str] = (),
    skip_empty: bool = False,
    from_source: str | None = None,
) -> Iterator[Fragment]:
    """The fragments of a DataFrame or of any iterable of mappings, one by one.

    Parameters are those of :class:`FragmentReader`, which says what their ids are. Rows count from 0.
    """
    reader = FragmentReader(id_field, source_field, ignore, skip_empty, from_source)
    return reader.read(enumerate(rows_of(given)))
