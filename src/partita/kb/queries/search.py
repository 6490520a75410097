"""Search: entities by the words of what their fragments say, in any case, with or without accents.

A word finds those that begin with it. A word that finds nothing is taken for a misspelling of the nearest
words there are. Entities rank by the rarity of the words they match, whole words before beginnings, and a beginning is
as rare as all that begins so: of those who have it nobody comes first for a misspelling. The id of an entity, or of a
fragment, finds that entity, and first.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections import defaultdict
from contextlib import suppress
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from partita.kb.queries.answers import Found, entity_id, entity_now
from partita.kb.store import tables
from partita.kb.store.database import select_all
from partita.kb.store.fragments import LONGEST, numbers_of
from partita.models.records.folding import NOTHING, words_of
from partita.models.records.fragments import as_text

MATCHES = 5000  # fragments that one word may find
LAST = "\U0010ffff"  # the last character there is
BEGINNING = 0.6  # what a word is worth that begins as one that is wanted, or is near it
NEAR = 0.75  # how alike a misspelt word must be
ENTITY = re.compile(r"[Ee][0-9]+")  # an entity's id, as people type it


class Ranking(NamedTuple):
    """The entities that a search finds, the best first."""

    rows: list[Any]  # of each its number, name and size, and its fragment that matches best
    score: dict[int, float]  # of fragments
    words: set[str]  # that were searched for


def search(connection: Connection, text: str, limit: int) -> list[Found]:
    """See :meth:`KnowledgeBase.search`."""
    found = ranking(connection, text)
    best = found.rows[:limit]
    said = values_with(connection, [row.fragment for row in best], found.words)
    return [
        Found(
            id=str(entity_id(row.number)),
            name=row.name,
            size=row.size,
            score=round(found.score[row.fragment], 3),
            matches=said[row.fragment],
        )
        for row in best
    ]


def ranking(connection: Connection, text: str) -> Ranking:
    """All entities that a search finds; ValueError if it has no word."""
    wanted = [word[:LONGEST] for word in dict.fromkeys(words_of(text)) if word != NOTHING]
    called = called_so(connection, text.strip())
    if not wanted and not called:
        raise ValueError(f"there is nothing to search for in {text!r}")
    # How many there are: to count them would read them all.
    n = connection.scalar(select(func.max(tables.fragments.c.number))) or 1
    score: dict[int, float] = defaultdict(float)  # of fragments
    for word in wanted:
        found = matches(connection, word, misspelt=not called)
        whole = found.get(word, set())
        begun = set().union(*found.values())
        for fragment in begun:  # however many of its words begin so, and however rare each of these is
            score[fragment] += worth(n, whole) if fragment in whole else BEGINNING * worth(n, begun)
    best = max(score.values(), default=0.0)
    for fragment in called:
        score[fragment] = best + math.log1p(n)
    return Ranking(ranked(connection, score), score, set(wanted))


def worth(n: int, fragments: set[int]) -> float:
    """How much it says, of n fragments, to be one of these."""
    return math.log1p(n / len(fragments))


def called_so(connection: Connection, id: str) -> list[int]:
    """The fragment of an id, and the first one of the entity of it: that of neither, one or both."""
    found = list(numbers_of(connection, [id]).values())
    if ENTITY.fullmatch(id):
        members = tables.members
        with suppress(KeyError):
            entity = entity_now(connection, id.upper()).number
            first = select(func.min(members.c.fragment)).where(members.c.entity == entity)
            found.append(int(connection.execute(first.where(members.c.until.is_(None))).scalar_one()))
    return found


def matches(connection: Connection, word: str, misspelt: bool) -> dict[str, set[int]]:
    """The words that ``word`` may stand for, if need be as a misspelling, and the fragments that have them."""
    table = tables.words
    query = select(table.c.word, table.c.fragment).limit(MATCHES)
    # A range in place of LIKE, which SQLite's index would not serve.
    rows = list(connection.execute(query.where(table.c.word >= word, table.c.word < word + LAST)))
    if not rows and misspelt:
        alike = (
            select(table.c.word)
            .distinct()
            .where(func.length(table.c.word).between(len(word) - 2, len(word) + 2))
        )
        near = difflib.get_close_matches(word, connection.scalars(alike), n=3, cutoff=NEAR)
        rows = list(connection.execute(query.where(table.c.word.in_(near)))) if near else []
    found: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        found[row.word].add(row.fragment)
    return found


def ranked(connection: Connection, score: dict[int, float]) -> list[Any]:
    """The entities of fragments that match, the best first, each by its best fragment."""
    members, entities = tables.members, tables.entities
    query = (
        select(members.c.fragment, entities.c.number, entities.c.name, entities.c.size)
        .join(entities, entities.c.number == members.c.entity)
        .where(members.c.until.is_(None))
    )
    rows = select_all(connection, query, members.c.fragment, score)
    best: dict[int, Any] = {}
    for row in rows:
        if row.number not in best or score[row.fragment] > score[best[row.number].fragment]:
            best[row.number] = row
    return sorted(best.values(), key=lambda row: (-score[row.fragment], -row.size, row.number))


def values_with(connection: Connection, fragments: list[int], wanted: set[str]) -> dict[int, list[str]]:
    """Of each fragment the values that have one of the words, or begin like one."""
    table = tables.fragments
    query = select(table.c.number, table.c.properties)
    found: dict[int, list[str]] = {}
    for row in select_all(connection, query, table.c.number, fragments):
        texts = [as_text(value) for values in json.loads(row.properties).values() for value in values]
        found[row.number] = [
            text for text in texts if any(word.startswith(tuple(wanted)) for word in words_of(text))
        ]
    return found
