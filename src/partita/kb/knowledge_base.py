"""The knowledge base: fragments in, entities out, nothing merged for good (DESIGN, section 4).

Every change is one transaction of the store: the fragments, the state of the sampler, the events and the
memberships they bring about come together or not at all. The sampler itself is only loaded when something is
added, changed, or asked of the posterior; what is asked of entities is read from the tables.
"""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from partita._core.checks import whole
from partita.kb import judgements
from partita.kb.clustering import Clustering, Told
from partita.kb.fragments import Fragment, as_fragments
from partita.kb.language import RECORD, Network, model_named
from partita.kb.queries import answers
from partita.kb.queries.answers import numbers_of
from partita.kb.queries.search import words_in
from partita.kb.store import erasing, tables
from partita.kb.store import sampler as keeping
from partita.kb.store.database import Store, StoreError, get, insert_all, put, select_all
from partita.kb.store.journal import DIGITS, Entry, Journal, Register
from partita.models.records.attributes import Text
from partita.models.records.fragments import as_text
from partita.models.records.record import Record

BATCH = 500  # fragments of one transaction
ENOUGH = 50_000  # fragments, at most, that the first model is learnt from
GROWTH = 3  # how many times more fragments there must be for the model to be learnt anew
NAMES = ("name", "label", "title")  # attributes that name an entity, in order of preference


class Added(NamedTuple):
    """What :meth:`KnowledgeBase.add` has done."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0


class KnowledgeBase:
    """Fragments, and the entities they describe, in a store. Made by :func:`partita.kb.open`."""

    def __init__(
        self,
        target: str | PathLike[str],
        *,
        schema: str | Record | None = None,
        n_particles: int = 20,
        exact: bool = False,
        create: bool = True,
        model: str | None = None,
    ) -> None:
        whole("n_particles", n_particles, 1)
        given = Record.from_toml(schema) if isinstance(schema, str) else schema
        model = None if model is None else model_named(model)
        if model not in (None, RECORD) and create and not is_there(target):
            Network.of(model)  # or nothing is begun
        self.store = Store(target, create)
        self._clustering: Clustering | None = None
        self._register = Register()
        self._names: dict[
            int, list[str]
        ] = {}  # that fragments give their entities, where they were asked for
        self._n_present = 0  # fragments
        self._sure: dict[int, float] = {}  # how sure each fragment's membership is, as the store has it
        self._revision = -1
        self._connection: Connection | None = None  # of the transaction that is going on
        settings = {"n_particles": n_particles, "exact": exact, "learnt_from": 0, "model": model}
        try:
            self.settings = self._begin(settings | {"schema": None if given is None else given.to_toml()})
        except BaseException:
            self.close()
            raise

    def _begin(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings of the knowledge base; these, if it is new."""
        with self.store.reading() as connection:
            known: dict[str, Any] | None = get(connection, "settings")
        if known is None:
            with self.store.writing() as connection:
                known = get(connection, "settings")  # another process may have been faster
                if known is None:
                    settings |= {"model": settings["model"] or RECORD}
                    put(connection, "settings", settings)
                    return settings
        if settings["schema"] is not None:
            raise ValueError(f"{self.store.name} has a schema already: give the new one to relearn(schema=…)")
        if settings["model"] not in (None, own := known.get("model", RECORD)):
            raise ValueError(
                f"{self.store.name} clusters with the model {own}, not with {settings['model']}: leave it "
                "out, or change it with relearn(model=…)"
            )
        return known

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the store back. Whatever was done is kept already."""
        self._clustering = None
        self.store.close()

    # ------------------------------------------------------------------ changing

    def add(
        self,
        fragments: Any,
        *,
        batch: int = BATCH,
        progress: Callable[[int], object] = lambda done: None,
    ) -> Added:
        """Take fragments in; each is durable, and its consequences drawn, when its batch is done.

        A fragment whose id is known already is passed over if it says the same, else it replaces the one
        before. If something is refused, the batches before it are in. The first call also learns the model,
        from all it is given; give it enough to learn from. After that any batching gives the same result.

        Parameters
        ----------
        fragments : iterable of mappings or Fragments, or a DataFrame
            ``{"properties": {attribute: [values]}, "id": …, "source": …}``, or flat mappings.
        batch : int
            How many go into one transaction.
        progress : callable
            Called after each batch with the number of fragments done.
        """
        whole("batch", batch, 1)
        rows = _as_fragments(fragments)
        first: list[Fragment] = [] if self._is_learnt() else list(islice(rows, ENOUGH))
        rows, total = chain(first, rows), Added()
        while some := list(islice(rows, batch)):
            with self._changing() as (connection, journal):
                if self._clustering is None:
                    self._learn(connection, [fragment.properties for fragment in first or some])
                done = self._add(connection, journal, some)
            total = Added(*map(sum, zip(total, done, strict=True)))
            progress(sum(total))
        return total

    def _is_learnt(self) -> bool:
        """Whether there is a model."""
        with self.store.reading() as connection:
            return bool(get(connection, "settings")["learnt_from"])

    def _add(self, connection: Connection, journal: Journal, given: list[Fragment]) -> Added:
        """Add a batch within a transaction."""
        table = tables.fragments
        query = select(table.c.id, table.c.number, table.c.digest).where(table.c.gone.is_(None))
        rows = select_all(connection, query, table.c.id, {fragment.id for fragment in given})
        known = {row.id: (row.number, row.digest) for row in rows}
        number = connection.scalar(select(func.max(table.c.number))) or 0
        waiting: list[tuple[int, Fragment]] = []
        added = updated = 0
        for fragment in given:
            old, digest = known.get(fragment.id, (None, None))
            if digest == fragment.digest:
                continue
            number += 1
            known[fragment.id] = number, fragment.digest
            if old is None:
                added += 1
                waiting.append((number, fragment))
            else:
                updated += 1
                self._observe(connection, journal, waiting)
                waiting = []
                self._update(connection, journal, old, number, fragment)
            if self._n_present + len(waiting) >= GROWTH * self.settings["learnt_from"]:
                self._observe(connection, journal, waiting)
                waiting = []
                self._relearn(connection, journal, None)
        self._observe(connection, journal, waiting)
        self._judge_anew(connection, journal, {fragment.id for fragment in given})
        return Added(added, updated, len(given) - added - updated)

    def _update(
        self, connection: Connection, journal: Journal, old: int, new: int, fragment: Fragment
    ) -> None:
        """Let a new version of a fragment take the place of the old one.

        An entity of this fragment alone goes on with the new version; where that joins another, leads to it.
        """
        told = self._withdraw(connection, journal, fragment.id, old, erase=False)
        alone = next((change.entity for change in told.changes if change.kind == "emptied"), None)
        own = ("left", alone), ("emptied", alone)  # it is not gone, it has changed
        kept = [change for change in told.changes if (change.kind, change.entity) not in own]
        journal.tell(told._replace(changes=kept), fragment.id)
        self._observe(connection, journal, [(new, fragment)], alone)

    def _observe(
        self,
        connection: Connection,
        journal: Journal,
        fragments: list[tuple[int, Fragment]],
        before: int | None = None,
    ) -> None:
        """Let fragments come in one after the other; or one whose earlier version was an entity by itself."""
        if not fragments:
            return
        clustering = self._live()
        validated = self._validated([fragment for _, fragment in fragments])
        of_number = dict(fragments)
        for number, fragment in fragments:
            self._names[number] = self._names_in(fragment.properties)
        self._n_present += len(fragments)
        keys = dict(zip(of_number, clustering.keys(validated), strict=True))
        rows, said, words = [], [], []
        for told in clustering.add([number for number, _ in fragments], validated):
            if before is not None:
                told = clustering.succeed(told, before)
            fragment = of_number[told.fragment]
            row = {"number": told.fragment, "id": fragment.id, "source": fragment.source, "gone": None}
            text = json.dumps(fragment.properties, ensure_ascii=False)
            row |= {"properties": text, "digest": fragment.digest, "key_codes": keys[told.fragment]}
            rows.append(row | {"added": journal.next_event})
            for attribute, values in fragment.properties.items():
                said += [
                    {"fragment": told.fragment, "attribute": attribute, "value": as_text(value)}
                    for value in values
                ]
            words += [{"word": word, "fragment": told.fragment} for word in words_in(fragment.properties)]
            journal.tell(told, fragment.id)
        insert_all(connection, tables.fragments, rows)
        insert_all(connection, tables.said, said)
        insert_all(connection, tables.words, words)

    def _validated(self, fragments: list[Fragment]) -> list[Any]:
        """Fragments as the model takes them; ValueError names the fragment."""
        model = self._live().model
        try:
            return model.validate([fragment.properties for fragment in fragments])
        except ValueError:
            for fragment in fragments:
                try:
                    model.validate([fragment.properties])
                except ValueError as error:
                    reason = str(error).removeprefix("row 0, ").removeprefix("row 0: ")
                    raise ValueError(f"fragment {fragment.id!r}: {reason}") from None
            raise

    def remove(self, *ids: str) -> None:
        """Forget fragments, as if they had never come; their contents are erased.

        Their entities lose them at once; that they were there is in the events, by their ids.
        """
        with self._changing() as (connection, journal):
            for id in dict.fromkeys(ids):
                number = self._number(connection, id)
                journal.tell(self._withdraw(connection, journal, id, number, erase=True), id)

    def _withdraw(self, connection: Connection, journal: Journal, id: str, number: int, erase: bool) -> Told:
        """Take a fragment out of the clustering; its row stays, without what it said if that is erased."""
        companions = self._drop_bonds(connection, id)
        moment = journal.next_event
        self._names_of(number)  # which the journal will ask for
        told = self._live().remove(number)
        if companions:  # who may be together, or apart, only because of what was judged of this one
            pairs = list(zip(companions, [*companions[1:], companions[0]], strict=True))
            more = self._live().condition(*judgements.bonds(connection, without=id), pairs)
            told = told._replace(changes=told.changes + more.changes, moves=told.moves + more.moves)
        table = tables.fragments
        connection.execute(update(table).where(table.c.number == number).values(gone=moment))
        connection.execute(delete(tables.words).where(tables.words.c.fragment == number))
        if erase:
            journal.hidden |= erasing.erase(connection, id, self._names_in)
        self._n_present -= 1
        return told

    def refine(self, sweeps: int = 1, *, progress: Callable[[int], object] = lambda done: None) -> None:
        """Look again at all that is known, in hindsight; never makes the posterior a worse approximation."""
        for sweep in range(whole("sweeps", sweeps, 0)):
            with self._changing() as (_, journal):
                if self._clustering is not None:
                    journal.tell(self._live().refine(), refined=True)
            progress(sweep + 1)

    def relearn(self, schema: str | None = None, *, model: str | None = None) -> None:
        """Learn the model anew from all fragments, and cluster them again; entities keep their ids.

        It also happens by itself, whenever there are three times as many fragments as it was learnt from.

        Parameters
        ----------
        schema : str, optional
            TOML, in place of what is inferred from the fragments.
        model : str, optional
            Another model to cluster with from now on, as in :func:`partita.kb.open`.
        """
        if schema is not None:
            Record.from_toml(schema)
        model = None if model is None else model_named(model)
        with self._changing() as (connection, journal):
            if not self._n_present:
                raise ValueError("the knowledge base is empty: add fragments first")
            if model is not None:
                self.settings = self.settings | {"model": model}
            self._relearn(connection, journal, schema)

    def _relearn(self, connection: Connection, journal: Journal, schema: str | None) -> None:
        old = self._live()
        if schema is not None:
            self.settings = self.settings | {"schema": schema}
        numbers, given = self._present(connection)
        self._learn(connection, [properties for _, properties in given])
        new = self._live()
        before = dict(zip(old.numbers.tolist(), old.entity.tolist(), strict=True))
        validated = self._validated([Fragment(id, None, properties) for id, properties in given])
        for _ in new.add(numbers.tolist(), validated):
            pass  # what matters is the outcome, not the way there
        bonds = judgements.bonds(connection)
        new.condition(*bonds, [*bonds[0], *bonds[1]])
        entities = np.array([before[number] for number in new.numbers.tolist()], np.int64)
        journal.tell(new.rename_from(entities, old.next_entity), relearnt=True)
        table = tables.fragments
        keys = [{"which": n, "new": k} for n, k in zip(numbers.tolist(), new.keys(validated), strict=True)]
        found = update(table).where(table.c.number == bindparam("which"))
        connection.execute(found.values(key_codes=bindparam("new")), keys)

    # ------------------------------------------------------------------ judgements

    def confirm(self, a: str, b: str, *, user: str | None = None) -> int:
        """Say that two fragments, or entities, are of the same thing; the posterior conditions on it.

        Returns
        -------
        int
            The judgement's number, for :meth:`undo`.
        """
        return self._judge("confirm", a, b, user)

    def separate(self, a: str, b: str, *, user: str | None = None) -> int:
        """Say that two fragments, or entities, are not of the same thing; as :meth:`confirm`."""
        return self._judge("separate", a, b, user)

    def unsure(self, a: str, b: str, *, user: str | None = None) -> int:
        """Say that one cannot tell, so that :meth:`uncertain` does not ask again; changes nothing else."""
        return self._judge("unsure", a, b, user)

    def undo(self, judgement: int, *, user: str | None = None) -> None:
        """Take a judgement back; the posterior is what it would have been without."""
        table = tables.judgements
        with self._changing() as (connection, journal):
            row = connection.execute(select(table).where(table.c.number == judgement)).first()
            if row is None:
                raise KeyError(f"there is no judgement {judgement}")
            if row.undone_at is not None:
                raise ValueError(f"judgement {judgement} was undone already, by {row.undone_by}")
            values = {"undone_by": user or _user(), "undone_at": journal.at}
            connection.execute(update(table).where(table.c.number == judgement).values(values))
            journal.note("undone", judgement=judgement)
            numbers = [self._find(connection, id) for id in (row.first, row.second)]
            if row.kind != "unsure" and None not in numbers:
                told = self._live().condition(*judgements.bonds(connection), [(numbers[0], numbers[1])])  # type: ignore[list-item]
                journal.tell(told, undone=judgement)

    def _judge(self, kind: str, a: str, b: str, user: str | None) -> int:
        table = tables.judgements
        with self._changing() as (connection, journal):
            first, second = (self._fragment_of(connection, which) for which in (a, b))
            if first == second:
                raise ValueError(f"{a!r} and {b!r} are the same fragment, {first!r}")
            number = (connection.scalar(select(func.max(table.c.number))) or 0) + 1
            row = {"number": number, "kind": kind, "first": first, "second": second}
            connection.execute(insert(table), row | {"user": user or _user(), "at": journal.at})
            journal.note(judgements.JUDGED[kind], judgement=number, first=first, second=second)
            if kind != "unsure":
                pair = self._number(connection, first), self._number(connection, second)
                if not judgements.are_possible(connection):
                    raise ValueError(judgements.contradiction(connection, number, kind, first, second))
                told = self._live().condition(*judgements.bonds(connection), [pair])
                journal.tell(told, judgement=number)
        return number

    def _drop_bonds(self, connection: Connection, id: str) -> list[int]:
        """Before a fragment goes, forget what was judged of it; the judgements themselves stay.

        Returns the numbers of the fragments present that it was judged together with.
        """
        if others := judgements.companions(connection, id):
            self._live().condition(*judgements.bonds(connection, without=id), [])
        return sorted(numbers_of(connection, others).values())

    def _judge_anew(self, connection: Connection, journal: Journal, ids: set[str]) -> None:
        """Where fragments have come back that were judged before, condition on it again."""
        if any(row.first in ids or row.second in ids for row in judgements.standing(connection)):
            bonds = judgements.bonds(connection)
            journal.tell(self._live().condition(*bonds, [*bonds[0], *bonds[1]]), judged_before=True)

    # ------------------------------------------------------------------ asking the tables

    def entities(self, *, minimum: int = 1, limit: int | None = None) -> Iterator[answers.Entity]:
        """All entities, the largest first.

        Parameters
        ----------
        minimum : int
            Leave out those with fewer fragments.
        limit : int, optional
            How many at most.
        """
        with self.store.reading() as connection:
            yield from answers.entities(connection, minimum, limit)

    def entity(self, id: str, *, as_of: int | datetime | None = None) -> answers.Entity:
        """An entity, now or as of a moment: of an event, or a time. An id that was merged leads on."""
        with self.store.reading() as connection:
            return answers.entity(connection, id, as_of)

    def entity_of(self, fragment: str) -> answers.Entity:
        """The entity that a fragment is of."""
        with self.store.reading() as connection:
            return answers.entity_of(connection, fragment)

    def fragment(self, id: str) -> Fragment:
        """A fragment, as it came."""
        with self.store.reading() as connection:
            return answers.fragment(connection, id)

    def search(self, text: str, *, limit: int = 10) -> list[answers.Found]:
        """The entities whose fragments have these words, or words like them, the best match first."""
        from partita.kb.queries.search import search

        with self.store.reading() as connection:
            return search(connection, text, limit)

    def events(
        self, *, since: int | datetime | None = None, entity: str | None = None, limit: int | None = None
    ) -> list[answers.Event]:
        """What has happened, in order, after a moment, or to one entity."""
        with self.store.reading() as connection:
            return answers.events(connection, since, entity, limit)

    def judgements(self) -> list[answers.Judgement]:
        """All judgements, those that were undone as well."""
        with self.store.reading() as connection:
            return answers.judgements(connection)

    def stats(self) -> dict[str, Any]:
        """How much there is of everything, and how large the store is."""
        with self.store.reading() as connection:
            return answers.stats(connection, self.store, self.settings)

    @property
    def schema(self) -> str:
        """The schema, as TOML; its strengths are those that have been learnt."""
        with self.store.reading() as connection:
            model = get(connection, "model")
        if model is None:
            return str(self.settings["schema"] or "")
        return Record.from_json(model).to_toml()

    # ------------------------------------------------------------------ asking the posterior

    def explain(self, a: str, b: str) -> Any:
        """Why two fragments, or entities, are together or apart: each attribute's evidence in nats."""
        from partita.kb.queries.explain import explain

        with self._asking() as (connection, clustering):
            first, second = (self._fragment_of(connection, which) for which in (a, b))
            if first == second:
                raise ValueError(f"{a!r} and {b!r} are the same fragment, {first!r}")
            return explain(connection, clustering, first, second)

    def uncertain(self, limit: int = 10) -> list[Any]:
        """The questions worth a human's time: those whose answers are expected to remove most errors."""
        from partita.kb.queries.questions import questions

        with self._asking() as (connection, clustering):
            judged = {frozenset((row.first, row.second)) for row in judgements.standing(connection)}
            return questions(connection, clustering, judged, whole("limit", limit, 1))

    def together(self, a: str | Sequence[str], b: str | Sequence[str]) -> Any:
        """The probability that two fragments are of one entity; of two lists, a matrix."""
        with self._asking() as (connection, clustering):
            number = numbers_of(connection, {id for given in (a, b) for id in _listed(given)})
            for id in (*_listed(a), *_listed(b)):
                if id not in number:
                    raise KeyError(answers.no_fragment(connection, id))
            i, j = (
                np.searchsorted(clustering.present, [number[id] for id in _listed(given)]) for given in (a, b)
            )
            found = np.asarray(clustering.posterior.together(i[:, None], j[None, :]))
            return float(found[0, 0]) if isinstance(a, str) and isinstance(b, str) else found

    def labels(self, loss: str = "map", **costs: Any) -> dict[str, int]:
        """A clustering of the fragments, by id, that is the best for a loss; see ``Posterior.labels``."""
        with self._asking() as (connection, clustering):
            found = clustering.posterior.labels(loss=loss, **costs)
            return dict(zip(self._ids(connection, clustering), found.tolist(), strict=True))

    def sample(self, n: int, random_state: Any = 0) -> dict[str, list[int]]:
        """Draws of whole clusterings from the posterior: of each fragment its labels in all of them."""
        with self._asking() as (connection, clustering):
            drawn = clustering.posterior.sample(n, random_state=random_state)
            return dict(zip(self._ids(connection, clustering), drawn.T.tolist(), strict=True))

    def evaluate(self, truth: Mapping[str, Any], loss: str = "map") -> dict[str, float]:
        """How good the clustering is, against the true entities of some fragments, by id."""
        from partita.kb.queries.evaluation import evaluate

        with self._asking() as (connection, clustering):
            return evaluate(self._ids(connection, clustering), clustering.posterior, truth, loss)

    def export(
        self,
        path: str | PathLike[str],
        what: str = "entities",
        *,
        format: str | None = None,
        samples: int = 100,
    ) -> int:
        """Write what is known to a file; returns how many rows it has.

        Parameters
        ----------
        path : path
            "-" is standard output.
        what : {"entities", "fragments", "ftm", "samples"}
            Entities with their properties; fragments with their entities; entities in the manner of
            FollowTheMoney; clusterings drawn from the posterior.
        format : {"jsonl", "csv", "parquet"}, optional
            By the suffix of the path, unless given.
        samples : int
            How many clusterings to draw.
        """
        from partita.kb.queries.export import export

        return export(self, path, what, format, samples)

    # ------------------------------------------------------------------ the live sampler

    @contextmanager
    def _changing(self) -> Iterator[tuple[Connection, Journal]]:
        """A transaction in which the live sampler may change; if it fails, both are as before."""
        try:
            with self.store.writing() as connection:
                self._connection = connection
                self._catch_up(connection)
                next_event = (connection.scalar(select(func.max(tables.events.c.number))) or 0) + 1
                at = datetime.now(UTC).isoformat(timespec="milliseconds")
                journal = Journal(self._register, next_event, at, self._names_of)
                yield connection, journal
                self._save(connection, journal)
                revision = self._revision + 1
                put(connection, "revision", revision)
            self._revision = revision
            if self._clustering is not None:
                self._clustering.saved()
        except BaseException:
            self._revision, self._clustering = -1, None  # to be loaded again
            raise
        finally:
            self._connection = None

    @contextmanager
    def _asking(self) -> Iterator[tuple[Connection, Clustering]]:
        """The live sampler, as the store has it."""
        try:
            with self.store.reading() as connection:
                self._connection = connection
                self._catch_up(connection)
                yield connection, self._live()
        finally:
            self._connection = None

    def _live(self) -> Clustering:
        if self._clustering is None:
            raise ValueError("the knowledge base is empty: add fragments first")
        return self._clustering

    def _catch_up(self, connection: Connection) -> None:
        """Load the sampler, unless it is that of the store already."""
        revision = get(connection, "revision")
        if revision == self._revision:
            return
        self.settings = get(connection, "settings")
        self._clustering, self._register, self._names = None, Register(self._names_of_entity), {}
        self._n_present = 0
        model = get(connection, "model")
        if model is not None:
            self._load(connection, Record.from_json(model))
        self._revision = revision

    def _load(self, connection: Connection, model: Record) -> None:
        """Load what is kept; what fragments say is fetched when it is needed."""
        clustering = self._begun(model)
        self._name_attributes = name_attributes(model)
        try:
            self._sure = keeping.load(connection, clustering, self._fetch)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise StoreError(f"{self.store.name} is damaged: {error}") from error
        self._n_present, known = len(self._sure), tables.entities
        for row in connection.execute(select(known).where(known.c.ended.is_(None))):
            self._register[row.number] = Entry(row.created, row.name, row.size, names=None)
        self._clustering = clustering
        clustering.condition(*judgements.bonds(connection), [])

    def _fetch(self, numbers: Any) -> list[Any]:
        """What fragments say, by number, as the model takes it; StoreError if it cannot be."""
        table = tables.fragments
        query = select(table.c.number, table.c.properties)
        found = {
            row.number: row for row in select_all(self._reading(), query, table.c.number, numbers.tolist())
        }
        try:
            said = [json.loads(found[number].properties) for number in numbers.tolist()]
            return self._live().model.validate(said)
        except (LookupError, TypeError, ValueError) as error:
            raise StoreError(f"{self.store.name} is damaged: {error}") from error

    def _names_of(self, number: int) -> list[str]:
        """The names that a fragment gives its entity."""
        if number not in self._names:
            table = tables.fragments
            text = self._reading().scalar(select(table.c.properties).where(table.c.number == number))
            self._names[number] = self._names_in(json.loads(text or "{}"))
        return self._names[number]

    def _names_of_entity(self, entity: int) -> Iterator[str]:
        """The names that an entity's fragments give it, as the store has them."""
        fragments, members = tables.fragments, tables.members
        query = (
            select(fragments.c.number, fragments.c.properties)
            .join(members, members.c.fragment == fragments.c.number)
            .where(members.c.entity == entity, members.c.until.is_(None))
        )
        for row in self._reading().execute(query):
            self._names[row.number] = self._names_in(json.loads(row.properties or "{}"))
            yield from self._names[row.number]

    def _reading(self) -> Connection:
        """The connection of the transaction that is going on."""
        if self._connection is None:
            raise StoreError(f"{self.store.name}: nothing can be fetched outside a transaction")
        return self._connection

    def _begun(self, model: Record) -> Clustering:
        kept = self.settings.get("network")
        network = None if kept is None else Network(**kept)
        return Clustering(model, self.settings["n_particles"], self.settings["exact"], network)

    def _learn(self, connection: Connection, given: list[dict[str, Any]]) -> None:
        """Learn a model from fragments, and begin a clustering with it."""
        schema = self.settings["schema"]
        kind = self.settings.get("model", RECORD)
        network = None if kind == RECORD else asdict(Network.of(kind))  # before the time it takes to learn
        model = (Record.from_toml(schema) if schema else Record.infer(given)).fit_prior(given)
        self.settings = self.settings | {"learnt_from": len(given), "network": network}
        put(connection, "settings", self.settings)
        put(connection, "model", model.to_json())
        connection.execute(delete(tables.subproblems))
        self._name_attributes = name_attributes(model)
        self._clustering, self._sure = self._begun(model), {}

    def _save(self, connection: Connection, journal: Journal) -> None:
        """Write what has changed of the sampler, and what happened."""
        clustering = self._clustering
        if clustering is None:
            return
        keeping.save(connection, clustering)
        numbers, sure = clustering.unsaved_members()
        probabilities = {
            number: probability
            for number, probability in zip(numbers.tolist(), sure.round(DIGITS).tolist(), strict=True)
            if self._sure.get(number) != probability or number in journal.moved
        }
        self._sure |= probabilities
        journal.write(connection, probabilities)

    # ------------------------------------------------------------------ fragments

    def _present(self, connection: Connection) -> tuple[Any, list[tuple[str, dict[str, Any]]]]:
        """The numbers of the fragments present, in order, with their ids and properties."""
        table = tables.fragments
        query = select(table.c.number, table.c.id, table.c.properties).where(table.c.gone.is_(None))
        rows = list(connection.execute(query.order_by(table.c.number)))
        numbers = np.array([row.number for row in rows], np.int64)
        return numbers, [(row.id, json.loads(row.properties)) for row in rows]

    def _names_in(self, properties: Mapping[str, list[Any]]) -> list[str]:
        for attribute in self._name_attributes:
            if attribute in properties:
                return [as_text(value) for value in properties[attribute]]
        return []

    def _ids(self, connection: Connection, clustering: Clustering) -> list[str]:
        """The ids of the fragments present, in order."""
        table = tables.fragments
        query = select(table.c.id).where(table.c.gone.is_(None)).order_by(table.c.number)
        return list(connection.scalars(query))

    def _find(self, connection: Connection, id: str) -> int | None:
        table = tables.fragments
        return connection.scalar(select(table.c.number).where(table.c.id == id, table.c.gone.is_(None)))

    def _number(self, connection: Connection, id: str) -> int:
        number = self._find(connection, id)
        if number is None:
            raise KeyError(answers.no_fragment(connection, id))
        return number

    def _fragment_of(self, connection: Connection, id: str) -> str:
        """The id itself if it is a fragment's; that of the surest fragment of an entity."""
        if self._find(connection, id) is not None:
            return id
        return answers.surest_fragment(connection, id)


def open(
    target: str | PathLike[str],
    *,
    schema: str | Record | None = None,
    n_particles: int = 20,
    exact: bool = False,
    create: bool = True,
    model: str | None = None,
) -> KnowledgeBase:
    """Open a knowledge base, or begin one.

    Parameters
    ----------
    target : path or str
        A SQLite file, or the URL of a PostgreSQL database.
    schema : str or Record, optional
        Of a new one: which attributes there are and how they are compared, as TOML. Without, it is inferred
        from the fragments.
    n_particles : int
        Of a new one: how many clusterings to keep of each subproblem.
    exact : bool
        Of a new one: compare a fragment with all entities, not with those that share a word or value.
    create : bool
        Whether to begin one where there is none.
    model : str, optional
        Of a new one: "record", which learns how attributes vary and is the default; "jsonlm", the language
        model that comes with Partita (extra ``neural``), with records to propose what it is asked; or a file
        of weights (``*.safetensors``) of a language model of your own. Later it need not be given.

    Examples
    --------
    >>> import partita.kb, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> kb = partita.kb.open(folder.name + "/people.db")
    >>> kb.add([{"id": "a", "name": "Ada Lovelace", "born": "1815-12-10", "field": "mathematics"},
    ...         {"id": "b", "name": "Charles Babbage", "field": "engines"},
    ...         {"id": "c", "name": "Ada Lovelace", "born": "1815-12-10", "field": "mathematics"}])
    Added(added=3, updated=0, unchanged=0)
    >>> kb.entity_of("a").fragments
    ['a', 'c']
    >>> kb.close(); folder.cleanup()
    """
    return KnowledgeBase(
        target, schema=schema, n_particles=n_particles, exact=exact, create=create, model=model
    )


def is_there(target: str | PathLike[str]) -> bool:
    """Whether a file of that name exists; not told of databases on servers."""
    return "://" not in str(target) and Path(target).exists()


def _as_fragments(given: Any) -> Iterator[Fragment]:
    """Fragments as they are, anything else as :func:`as_fragments` reads it."""
    if isinstance(given, Iterable) and not isinstance(given, Mapping | str | bytes):
        if hasattr(given, "columns"):
            return as_fragments(given)
        rows = iter(given)
        first = next(rows, None)
        if first is None:
            return iter(())
        rest = chain([first], rows)
        return rest if isinstance(first, Fragment) else as_fragments(rest)
    raise TypeError(f"fragments must be an iterable of mappings, got {type(given).__name__}")


def _listed(given: str | Sequence[str]) -> Sequence[str]:
    return [given] if isinstance(given, str) else given


def _user() -> str:
    """Who is at the keyboard."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return "unknown"


def name_attributes(model: Record) -> list[str]:
    """The attributes that name an entity, the best first."""
    attributes = model.attributes or {}
    texts = [name for name, kind in attributes.items() if isinstance(kind, Text) and name not in NAMES]
    presence = model.presence or {}
    texts.sort(key=lambda name: -presence.get(name, 0.0))
    return [name for name in attributes if name.lower() in NAMES] + texts
