"""What there is to say of columns: which look like the answer or like provenance, and what stands for nothing.

A model is not told the true entities, nor which rows came together; a table may have both. That is said, with the
option that settles it, and never settled here: the column may be what it does not look like.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from partita.kb.fragments import Fragment
from partita.kb.store.database import checksum_of, get
from partita.models.records.folding import words_of
from partita.models.records.fragments import as_text
from partita.models.records.kinds import Attribute
from partita.models.records.record import OTHER, Record
from partita.models.records.schema import comparing_from, reader_from

ANSWERS = (
    *("cluster id", "entity id", "cluster", "entity", "true id", "truth", "label", "gold", "ground truth"),
    *("true entity", "true cluster", "unique entity id", "canonical id", "match id", "group id", "ent id"),
)
PROVENANCE = (
    *(
        "chunk",
        "chunk id",
        "doc",
        "doc id",
        "document",
        "document id",
        "file",
        "filename",
        "file name",
        "page",
    ),
    *("page number", "row", "row number", "line", "line number", "source file", "sheet", "batch", "origin"),
)
NUMBERED = ("id", "key", "nr", "no", "number", "index", "uuid", "guid", "rowid")
ENOUGH = 20  # values, at least, of a column without repeats for it to be called one
AS_WRITTEN = Attribute()  # reads nothing into a value
SHOWN = 3  # of the texts that stand for nothing are shown


class Remark(NamedTuple):
    """What to know of a column before it is compared."""

    column: str
    text: str
    option: str  # that settles it


def remarks(fragments: Sequence[Mapping[str, Sequence[Any]]]) -> list[Remark]:
    """Columns that look like the answer, like where rows are from, or like a second id.

    >>> [(one.column, one.option) for one in remarks([{"name": ["Ada"], "cluster_id": ["7"]}])]
    [('cluster_id', '--ignore cluster_id')]
    """
    names = dict.fromkeys(name for fragment in fragments for name in fragment)
    found = []
    for name in names:
        called = " ".join(words_of(name.replace("_", " ")))
        ignore, source = f"--ignore {quoted(name)}", f"--source {quoted(name)}"
        if called in ANSWERS:
            text = "looks like the true entities; if it is, rows are to be compared without it"
            found.append(Remark(name, text, ignore))
        elif called in PROVENANCE:
            found.append(Remark(name, "looks like where a row is from, which is no evidence", source))
        elif set(called.split(" ")) & set(NUMBERED) and is_unique(fragments, name):
            found.append(Remark(name, "has another value in every row, as an id has", ignore))
    return found


def missing_of(model: Record) -> dict[str, frozenset[str]]:
    """What stands for nothing in each attribute of a model; nothing does in those that are ignored."""
    attributes = (model.attributes or {}).items()
    return {name: frozenset(() if own is None else own.missing) for name, own in attributes}


class Readers(dict[str, Attribute]):
    """How values are read, by attribute: what says nothing, and what is a list; "*" stands for those not named.

    >>> Readers({"*": Attribute(missing=("n/a",))})["shade"].items("n/a")
    []
    """

    def __missing__(self, name: str) -> Attribute:
        return self.get(OTHER, AS_WRITTEN)


def comparing(model: Record) -> Readers:
    """What a model compares of values; those that it ignores are as they are written."""
    return Readers({name: own or AS_WRITTEN for name, own in (model.attributes or {}).items()})


def comparing_in(connection: Connection) -> Readers:
    """The same for the model of a knowledge base; all is as it is written before anything is learnt."""
    return learnt_in(connection)[0]


def readers_in(connection: Connection) -> Readers:
    """What values say to a reader: "12 kg" says something, though a model that compares numbers passes over it."""
    return learnt_in(connection)[1]


LEARNT: dict[
    Any, tuple[Readers, Readers]
] = {}  # of the models that were asked for last, for it takes long to read one
MODELS = 8  # that are kept there


def learnt_in(connection: Connection) -> tuple[Readers, Readers]:
    """How a knowledge base's model compares values, and how it reads them; not to be changed."""
    model = checksum_of(connection, "model")
    found = LEARNT.get(model)
    if found is None:
        attributes = (get(connection, "model") or {"attributes": {}})["attributes"]
        found = (
            Readers({name: comparing_from(own) for name, own in attributes.items()}),
            Readers({name: reader_from(own) for name, own in attributes.items()}),
        )
        if len(LEARNT) >= MODELS:
            LEARNT.clear()
        LEARNT[model] = found
    return found


def keys_of(reader: Attribute, value: Any) -> frozenset[str]:
    """What a value says, whatever its spelling, and if it is a list, whatever the order; empty if it says nothing.

    Case, accents and punctuation do not matter, nor what else does not to a telephone number, an e-mail address …

    >>> sorted(keys_of(Attribute(separator=";"), "Red; blue"))
    ['blue', 'red']
    >>> from partita.models.records.kinds import Phone
    >>> keys_of(Phone(), "+1 (212) 555-1001") == keys_of(Phone(), "212.555.1001")
    True
    """
    return frozenset(reader.parse(item) for item in reader.items(value))


def lists_of(model: Record) -> dict[str, str]:
    """The attributes whose texts look like lists, and what divides them."""
    noted = {name: own.noted for name, own in (model.attributes or {}).items() if own and not own.separator}
    return {name: seen.divided_by for name, seen in noted.items() if seen is not None and seen.divided_by}


def quoted(name: str) -> str:
    """A name as a shell takes it."""
    return name if name.isidentifier() else repr(name)


def is_unique(fragments: Sequence[Mapping[str, Sequence[Any]]], name: str) -> bool:
    """Whether every fragment has one value of its own."""
    values = [as_text(value) for fragment in fragments for value in fragment.get(name, ())]
    return len(values) == len(set(values)) == len(fragments) >= ENOUGH


class Nothings:
    """Counts what stands for nothing, as fragments pass.

    Parameters
    ----------
    readers : Readers
        How values are read.
    """

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self.counts: dict[str, Counter[str]] = {}

    def passing(self, fragments: Iterable[Fragment]) -> Iterator[Fragment]:
        """The same fragments."""
        for fragment in fragments:
            self.count(fragment.properties)
            yield fragment

    def count(self, properties: Mapping[str, Sequence[Any]]) -> None:
        """Count in one fragment."""
        for name, values in properties.items():
            for value in values:
                if not self._readers[name].items(value):
                    self.counts.setdefault(name, Counter())[as_text(value).strip()] += 1

    def __str__(self) -> str:
        """A sentence; empty if there was none."""
        total = sum(sum(counts.values()) for counts in self.counts.values())
        if not total:
            return ""
        each = [(n, text, name) for name, counts in self.counts.items() for text, n in counts.items()]
        each.sort(key=lambda one: -one[0])
        listed = ", ".join(f"{n:,} {text!r} in {name}" for n, text, name in each[:SHOWN])
        more = ", \u2026" if len(each) > SHOWN else ""
        verb = "value that stands" if total == 1 else "values that stand"
        return f"{total:,} {verb} for nothing left out of the comparison: {listed}{more}"
