"""The names that fragments give their entities, and which of them an entity has.

A fragment gives the name of the best way of naming (:mod:`~partita.kb.naming`) of which it says something. An entity
has the name that most of its fragments give it, of the best way that any of them knows. What differs in case, accents
or the order of words is the same name to a reader, and an abbreviated name is one with the full one; so a name only
changes where a reader would see another. A word that a single fragment gives may be a slip of the pen: a name with one
does not stay where there is another without.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, select

from partita.kb.naming import Way
from partita.kb.store.database import StoreError
from partita.kb.store.fragments import SAID
from partita.kb.store.statements import fetch
from partita.kb.store.tables import fragments, members
from partita.models.records.folding import words_of
from partita.models.records.fragments import as_text

COMBINED = 4  # names, at most, of a fragment that says several values of their parts
STAYING = 0.8  # of the fragments that give the name most given, for an entity to keep another
FULLER = 0.5  # of the fragments that give a name, for a longer one that it abbreviates to be taken


OF_ENTITY = (
    select(fragments.c.number, fragments.c.properties)
    .join(members, members.c.fragment == fragments.c.number)
    .where(members.c.entity == bindparam("which"), members.c.until.is_(None))
)


class Given(NamedTuple):
    """A name that a fragment gives its entity."""

    rank: int  # of the way it is found; the lowest is the best
    name: str


class Names:
    """The names that fragments give their entities; what is not known here is fetched from the store.

    Parameters
    ----------
    connection : callable
        Gives the connection of the transaction that is going on.

    Attributes
    ----------
    ways : list of tuples of str
        The attributes that names are taken from, the best first.
    """

    def __init__(self, connection: Callable[[], Connection]) -> None:
        self._connection = connection
        self.ways: list[Way] = []
        self._missing: Mapping[str, Collection[str]] = {}
        self._of: dict[int, list[Given]] = {}  # fragments, by number, where they were asked for

    def follow(
        self, ways: Iterable[Sequence[str]], missing: Mapping[str, Collection[str]] | None = None
    ) -> None:
        """From now on names are taken from these attributes, but for texts that stand for nothing."""
        self.ways, self._missing, self._of = [tuple(way) for way in ways], missing or {}, {}

    @property
    def reading(self) -> tuple[list[Way], Mapping[str, Collection[str]]]:
        """All that it depends on which names a fragment gives: the attributes, and what stands for nothing."""
        return self.ways, self._missing

    def given_by(self, properties: Mapping[str, list[Any]]) -> list[Given]:
        """The names in what a fragment says."""
        for k, way in enumerate(self.ways):
            told = (self._told(attribute, properties.get(attribute, ())) for attribute in way)
            said = [values for values in told if values]
            if said:
                rank = 2 * k + (len(said) < len(way))
                joined = (" ".join(map(as_text, values)) for values in product(*said))
                return [Given(rank, name) for name in (islice(joined, COMBINED) if len(said) > 1 else joined)]
        return []

    def _told(self, attribute: str, values: Iterable[Any]) -> list[Any]:
        """The values that stand for something."""
        missing = self._missing.get(attribute, ())
        return [value for value in values if as_text(value).strip() not in missing]

    def remember(self, number: int, properties: Mapping[str, list[Any]]) -> None:
        """A fragment that the store does not have yet."""
        self._of[number] = self.given_by(properties)

    def of_fragments(self, numbers: Iterable[int]) -> dict[int, list[Given]]:
        """The names that fragments give their entities, by number; those not known are fetched at once."""
        wanted = list(numbers)
        unknown = [number for number in wanted if number not in self._of]
        if unknown:
            self._read(SAID(self._connection(), unknown))
        return {number: self._of[number] for number in wanted}

    def of_entity(self, entity: int) -> Iterator[Given]:
        """The names that an entity's fragments give it, as the store has them."""
        rows = fetch(self._connection(), OF_ENTITY, which=entity)
        self._read(rows)
        for number, _ in rows:
            yield from self._of[number]

    def _read(self, rows: Iterable[Sequence[Any]]) -> None:
        """Remember fragments, given by number and what they say, as the store has them."""
        for number, properties in rows:
            try:
                said = json.loads(properties or "{}")
            except ValueError as error:
                raise StoreError(f"the knowledge base is damaged: fragment {number}: {error}") from error
            self.remember(number, said)


# ---------------------------------------------------------------------- the name of an entity


def best_name(given: Counter[Given], present: str | None) -> str | None:
    """The name of an entity, from those that its fragments give it and the one that it has."""
    if not given:
        return None
    rank = min(one.rank for one in given)
    counts = Counter({one.name: n for one, n in given.items() if one.rank == rank})
    if len(counts) == 1:
        return next(iter(counts))
    support: Counter[str] = Counter()
    for name, n in counts.items():
        support[key_of(name)] += n
    best = best_key(support)
    if present is not None and present in counts:
        own = key_of(present)
        if own == best or stands_for(best, own):
            return present
        if support[own] >= STAYING * max(support.values()) and not stands_for(own, best):
            sound = without_slips(support)
            if own in sound or not sound:
                return present
            best = best_key(sound)
    return best_spelling({name: n for name, n in counts.items() if key_of(name) == best})


def best_key(support: Counter[str]) -> str:
    """The name most given, of equal ones that of the commonest words, or the longest; or its full form."""
    most = max(support.values())
    tied = [key for key in support if support[key] == most]
    if len(tied) > 1:
        words = Counter(word for key in support for word in set(key.split(" ")))
        worth = {key: sum(words[word] for word in set(key.split(" "))) for key in tied}
        tied.sort(key=lambda key: (-worth[key], -len(key), key))
    best = tied[0]
    full = [key for key in support if support[key] >= FULLER * most and stands_for(best, key)]
    return min(full, key=lambda key: (-support[key], -len(key), key), default=best)


def without_slips(support: Counter[str]) -> Counter[str]:
    """The names of which several fragments give every word; a word that one alone gives may be a slip of the pen."""
    words: Counter[str] = Counter()
    for key, n in support.items():
        words.update(dict.fromkeys(key.split(" "), n))
    return Counter({key: n for key, n in support.items() if all(words[word] > 1 for word in key.split(" "))})


def best_spelling(counts: Mapping[str, int]) -> str:
    """The commonest of the ways to write a name; of equal ones none in capitals, nor with the surname first."""
    return min(counts, key=lambda name: (-counts[name], name.isupper(), name.islower(), "," in name, name))


def key_of(name: str) -> str:
    """What ways to write a name have in common: its words in order of the alphabet."""
    return " ".join(sorted(words_of(name)))


def stands_for(short: str, long: str) -> bool:
    """Whether the key of a name abbreviates another: words became initials, or initials were left out.

    >>> stands_for("j smith", "john smith"), stands_for("john smith", "a john smith"), stands_for("smith", "john smith")
    (True, True, False)
    """
    if short == long:
        return False
    rest, same = long.split(" "), 0
    for word in sorted(short.split(" "), key=len, reverse=True):
        if word in rest:
            rest.remove(word)
            same += 1
        else:
            full = next((other for other in rest if len(word) == 1 and other[0] == word), None)
            if full is None:
                return False
            rest.remove(full)
    return same > 0 and all(len(word) == 1 for word in rest)
