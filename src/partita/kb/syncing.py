"""Sync: rows that are the whole truth of their sources.

What a source has and the rows have not is removed, what has changed is updated, what is new is added, in one
transaction. First the rows are compared with what is known; what they change waits in a temporary file, so that
memory is needed for ids alone. New fragments come in before old ones go, so that an entity keeps its id where a
row without an id has changed, which is one that goes and one that comes.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, Any

from sqlalchemy import Connection, select

from partita._core.checks import whole
from partita.kb import ingest
from partita.kb.fragments import Fragment
from partita.kb.queries.answers import Answer, entity_id
from partita.kb.session import Session
from partita.kb.store import fragments, tables
from partita.kb.store.database import StoreError, get, select_all
from partita.models.records.record import Record

BATCH = 500  # rows that are compared, or added, at a time
MOST = 0.5  # of a source's fragments that may go without being confirmed


@dataclass(frozen=True)
class SourceChange(Answer):
    """What a sync means to one source."""

    source: str | None
    before: int  # fragments that it had
    rows: int  # that it has now
    removed: int
    taken: int = 0  # whose ids these rows have, which are of other sources


@dataclass(frozen=True)
class EntityChange(Answer):
    """What a sync means to an entity that there was before."""

    entity: str | None
    fragments: int  # that it had
    removed: int
    updated: int


@dataclass(frozen=True)
class Synced(Answer):
    """What :meth:`KnowledgeBase.sync` has done, or would do."""

    added: list[str]  # ids of fragments, as in the next ones
    updated: list[str]
    removed: list[str]
    unchanged: int
    sources: list[SourceChange]
    entities: list[EntityChange]  # those that lose fragments, or have some that change

    @property
    def counts(self) -> dict[str, int]:
        """How many fragments were, or would be, added, updated, removed and left as they are."""
        changed = {name: len(getattr(self, name)) for name in ("added", "updated", "removed")}
        return changed | {"unchanged": self.unchanged}

    @property
    def changes_anything(self) -> bool:
        """Whether a single fragment comes, changes or goes."""
        return bool(self.added or self.updated or self.removed)

    @property
    def excessive(self) -> list[SourceChange]:
        """The sources that would lose more than half of what they had, or anything to rows of other sources."""
        return [change for change in self.sources if change.taken or change.removed > MOST * change.before]


class TooMuchGone(ValueError):
    """A sync would remove more than half of a source, or replace some of one that it is not about.

    Nobody has confirmed that; ``plan`` is what it would do.
    """

    def __init__(self, plan: Synced) -> None:
        super().__init__(most_of(plan.excessive[0]))
        self.plan = plan


def sync(
    session: Session, given: Any, source: str | None, dry_run: bool, confirmed: bool, sweeps: int = 0
) -> Synced:
    """See :meth:`KnowledgeBase.sync`."""
    whole("sweeps", sweeps, 0)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as waiting:
        plan, revision = planned(session, ingest.fragments_of(given, source), waiting)
        if dry_run or not plan.changes_anything:
            return plan
        if plan.excessive and not confirmed:
            raise TooMuchGone(plan)
        carry_out(session, plan, revision, waiting, sweeps)
    return plan


def most_of(change: SourceChange) -> str:
    """That a sync would remove most of a source, or replace what other sources have under the same ids."""
    whose = "without a source" if change.source is None else f"of {change.source!r}"
    if change.taken:
        return (
            f"{change.taken:,} of the {change.before:,} fragments {whose} would be replaced by rows of another source "
            "with the same ids"
        )
    return f"{change.removed:,} of the {change.before:,} fragments {whose} would be removed, more than half"


# ---------------------------------------------------------------------- comparing


def planned(session: Session, rows: Iterator[Fragment], waiting: IO[str]) -> tuple[Synced, int]:
    """What a sync will do, and the revision of the store that this is about; new and changed rows go to a file."""
    added: list[str] = []
    updated: dict[str, int] = {}  # the number that a fragment has before
    digests: dict[str, str] = {}  # of each row, by id
    counts: Counter[str | None] = Counter()
    taken: Counter[str | None] = Counter()  # what changes its source, by the one that it had
    with session.store.reading() as connection:
        model = get(connection, "model")
        record = None if model is None else Record.from_json(model)
        while some := list(islice(rows, BATCH)):
            known = fragments.known(connection, [fragment.id for fragment in some])
            fresh = []
            for fragment in not_repeated(some, digests):
                counts[fragment.source] += 1
                old = known.get(fragment.id)
                if old is None:
                    added.append(fragment.id)
                elif old.digest != fragment.digest:
                    updated[fragment.id] = old.number
                    taken[old.source] += old.source != fragment.source
                if old is None or old.digest != fragment.digest:
                    fresh.append(fragment)
            if record is not None and fresh:
                ingest.validated(record, fresh)
            waiting.writelines(as_line(fragment) for fragment in fresh)
            session.report("reading", len(digests), None)
        if not digests:
            raise ValueError(
                "there is no row, and a source is not emptied by a sync: remove its fragments by id"
            )
        left_alone = {source for source, n in taken.items() if n and source not in counts}
        present = fragments.of_sources(connection, counts.keys() | left_alone)
        removed = {row.id: row for row in present if row.id not in digests and row.source in counts}
        gone = Counter(row.source for row in removed.values())
        before = Counter(row.source for row in present)
        sources = [SourceChange(each, before[each], counts[each], gone[each]) for each in counts]
        sources += [
            SourceChange(each, before[each], 0, 0, n) for each, n in taken.items() if each in left_alone
        ]
        entities = touched(connection, {row.number for row in removed.values()}, set(updated.values()))
        unchanged = len(digests) - len(added) - len(updated)
        plan = Synced(added, list(updated), list(removed), unchanged, sources, entities)
        return plan, get(connection, "revision")


def not_repeated(some: list[Fragment], digests: dict[str, str]) -> Iterator[Fragment]:
    """Those with an id not met before; ValueError if one says something else than before."""
    for fragment in some:
        if fragment.id not in digests:
            digests[fragment.id] = fragment.digest
            yield fragment
        elif digests[fragment.id] != fragment.digest:
            raise ValueError(f"fragment {fragment.id!r} is there twice and says different things")


def touched(connection: Connection, removed: set[int], updated: set[int]) -> list[EntityChange]:
    """The entities that some fragments are of, by number, which will go or change."""
    entities, members = tables.entities, tables.members
    query = select(members.c.fragment, entities.c.number, entities.c.size).where(members.c.until.is_(None))
    query = query.join(entities, entities.c.number == members.c.entity)
    rows = select_all(connection, query, members.c.fragment, removed | updated)
    lost = Counter(row.number for row in rows if row.fragment in removed)
    changed = Counter(row.number for row in rows if row.fragment in updated)
    sizes = {row.number: row.size for row in rows}
    return [
        EntityChange(entity_id(number), sizes[number], lost[number], changed[number])
        for number in sorted(sizes)
    ]


# ---------------------------------------------------------------------- carrying out


def carry_out(session: Session, plan: Synced, revision: int, waiting: IO[str], sweeps: int) -> None:
    """Let all of it happen in one transaction, in which the sweeps that are due afterwards are noted."""
    waiting.seek(0)
    rows: Iterator[Fragment] = map(from_line, waiting)
    total, done = len(plan.added) + len(plan.updated), 0
    with session.changing() as journal:
        if get(session.connection, "revision") != revision:
            raise StoreError(
                f"{session.store.name} was changed by another process while the rows were read: run it again"
            )
        if session.clustering is None:
            first = list(islice(rows, ingest.ENOUGH))
            session.learn([fragment.properties for fragment in first])
            rows = chain(first, rows)
        before = fragments.last_number(session.connection)
        while some := list(islice(rows, BATCH)):
            ingest.add_batch(session, journal, some, done, total)
            done += len(some)
        ingest.take_out(session, journal, plan.removed)
        if sweeps and total:
            ingest.leave_unrefined(session.connection, before, sweeps)


def as_line(fragment: Fragment) -> str:
    """A fragment as a line of JSON."""
    return json.dumps([fragment.id, fragment.source, fragment.properties]) + "\n"


def from_line(line: str) -> Fragment:
    """The fragment of :func:`as_line`."""
    return Fragment(*json.loads(line))
