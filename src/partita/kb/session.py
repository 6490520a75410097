"""A session: the live sampler of a knowledge base beside the store that keeps it.

The sampler is loaded when something is changed or asked of the posterior, and loaded again when another
process has changed the store meanwhile. A change is one transaction: at its end, what has changed of the
sampler is saved and the journal written. If it fails, the store is as before and the sampler is loaded again
next time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, delete

from partita._core.checks import whole
from partita._core.progress import Report, unreported
from partita._core.typing import Integers
from partita.kb.clustering import Clustering, Outcome, Touched
from partita.kb.columns import missing_of
from partita.kb.language import RECORD, Network, model_named
from partita.kb.names import Names
from partita.kb.naming import name_wanted, naming_attributes, ways_of
from partita.kb.store import fragments, judgements, sampler, tables, values
from partita.kb.store.database import Store, StoreError, get, put
from partita.kb.store.journal import DIGITS, Journal, Register
from partita.models.records.record import Record

Answers = Sequence[tuple[int, int, bool]]

EMPTY = "the knowledge base is empty: add fragments first"


class Binding(NamedTuple):
    """The judgements that bind, and the numbers of the fragments present that they are about."""

    rows: list[judgements.Standing]
    number: dict[str, int]


class Session:
    """The live sampler beside the store.

    Parameters
    ----------
    store : Store
    settings : dict
        As the store has them.

    Attributes
    ----------
    clustering : Clustering or None
        The sampler; None before a model is learnt, and until it is loaded.
    names : Names
        Those that fragments give their entities.
    n_present : int
        How many fragments there are.
    report : callable
        Told how far what takes long has come; see :meth:`KnowledgeBase.watch`.
    """

    def __init__(self, store: Store, settings: dict[str, Any]) -> None:
        self.store, self.settings = store, settings
        self.report: Report = unreported
        self._connection: Connection | None = None  # of the transaction that is going on
        self._revision = -1  # of the store, that the sampler was loaded from or saved as
        self._forget()

    def _forget(self) -> None:
        """Be without a sampler."""
        self.clustering: Clustering | None = None
        self.names = Names(lambda: self.connection)
        self.n_present = 0
        self._register = Register(self.names.of_entity)
        self._sure: dict[int, float] = {}  # how sure each fragment's membership is, as the store has it

    def close(self) -> None:
        """Give the store back."""
        self.clustering = None
        self.store.close()

    @property
    def connection(self) -> Connection:
        """The connection of the transaction that is going on."""
        if self._connection is None:
            raise StoreError(f"{self.store.name}: nothing can be fetched outside a transaction")
        return self._connection

    @property
    def live(self) -> Clustering:
        """The sampler; ValueError if there is none."""
        if self.clustering is None:
            raise ValueError(EMPTY)
        return self.clustering

    # ------------------------------------------------------------------ transactions

    @contextmanager
    def changing(self) -> Iterator[Journal]:
        """A transaction in which the live sampler may change; if it fails, both are as before."""
        settings = self.settings
        try:
            with self.store.writing() as connection:
                self._connection = connection
                self._catch_up()
                settings = self.settings
                journal = Journal(connection, self._register, self.names.of_fragments)
                yield journal
                revision = self._revision + self._has_changed(journal)
                if revision > self._revision:
                    self._save(journal)
                    put(connection, "revision", revision)
            self._revision = revision
            if self.clustering is not None:
                self.clustering.saved()
        except BaseException:
            self._revision, self.clustering = -1, None  # to be loaded again
            self.settings = settings
            raise
        finally:
            self._connection = None

    @contextmanager
    def asking(self) -> Iterator[tuple[Connection, Clustering]]:
        """The live sampler, as the store has it."""
        try:
            with self.store.reading() as connection:
                self._connection = connection
                self._catch_up()
                yield connection, self.live
        finally:
            self._connection = None

    def is_learnt(self) -> bool:
        """Whether the store has a model, learnt by this process or another."""
        if self.clustering is not None:  # a model is never lost again
            return True
        with self.store.reading() as connection:
            return bool(get(connection, "settings")["learnt_from"])

    # ------------------------------------------------------------------ loading and saving

    def _catch_up(self) -> None:
        """Load the sampler, unless it is that of the store already."""
        revision = get(self.connection, "revision")
        if revision == self._revision:
            return
        self.settings = get(self.connection, "settings")
        self._forget()
        model = get(self.connection, "model")
        if model is not None:
            self._load(Record.from_json(model))
        self._revision = revision

    def _load(self, model: Record) -> None:
        """Load the sampler; what fragments say is fetched when it is needed."""
        clustering = self._new_clustering(model)
        try:
            self._sure = sampler.load(self.connection, clustering, self._fetch, self._tell)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise self._damaged(error) from error
        self.n_present = len(self._sure)
        self._register.load(self.connection)
        self.clustering = clustering
        self.constrain([])

    def _fetch(self, numbers: Integers) -> list[Any]:
        """What fragments say, by number, as the model takes it; StoreError if it cannot be."""
        return self._read(numbers, self.live.model.read)

    def _tell(self, numbers: Integers) -> list[Any]:
        """The same of fragments that the sampler knows already, for people to read."""
        return self._read(numbers, self.live.model.told)

    def _read(
        self, numbers: Integers, reading: Callable[[list[dict[str, list[Any]]]], list[Any]]
    ) -> list[Any]:
        try:
            return reading(fragments.properties_of(self.connection, numbers.tolist()))
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> StoreError:
        return StoreError(f"{self.store.name} is damaged: {error}")

    def _has_changed(self, journal: Journal) -> bool:
        """Whether there is anything to write."""
        return journal.has_events or (self.clustering is not None and not self.clustering.is_saved)

    def _save(self, journal: Journal) -> None:
        """Write what has changed of the sampler, and what happened."""
        clustering = self.clustering
        if clustering is None:
            return
        sampler.save(self.connection, clustering)
        numbers, sure = clustering.unsaved_members()
        known, moved = self._sure, journal.moved
        probabilities = {
            number: probability
            for number, probability in zip(numbers.tolist(), sure.round(DIGITS).tolist(), strict=True)
            if known.get(number) != probability or number in moved
        }
        self._sure |= probabilities
        journal.write(probabilities)

    # ------------------------------------------------------------------ changing the sampler as a whole

    def learn(
        self,
        given: list[dict[str, Any]],
        pairs: Answers = (),
        labels: Sequence[str | None] | None = None,
        insist: bool = True,
    ) -> Clustering:
        """Learn a model from what fragments say, and go on with an empty sampler that has it.

        ``pairs`` and ``labels`` are what is known of some of them, as in :meth:`Record.fit_prior`. That an attribute
        which entities are to be named by is not there is an error, or, without ``insist``, makes do with the others.
        """
        schema, kind = self.settings["schema"], self.settings.get("model", RECORD)
        network = None if kind == RECORD else asdict(Network.of(kind))  # before the time it takes to learn
        model = Record.from_toml(schema) if schema else Record.infer(given)
        if self.settings.get("name"):
            model.name = naming_attributes(model, self.settings["name"], insist)
            model.check(1)
        self.report("learning", 0, None)
        codes, watched = (
            None if labels is None else np.array(labels, object),
            partial(self.report, "learning"),
        )
        model = model.fit_prior(given, codes, pairs=pairs, progress=watched)
        learnt = {
            "learnt_from": len(given),
            "loaded": 0,
            "network": network,
            "named_by": [list(way) for way in ways_of(model)],
        }
        self.settings = self.settings | learnt
        put(self.connection, "settings", self.settings)
        put(self.connection, "model", model.to_json())
        self.connection.execute(delete(tables.subproblems))
        values.forget(self.connection)
        self.clustering, self._sure = self._new_clustering(model), {}
        return self.clustering

    def begin(self, probabilities: Sequence[float]) -> None:
        """So many fragments are there from now on, numbered from 1, and so surely of their entities; all is written."""
        self.n_present = len(probabilities)
        self._sure = dict(enumerate(probabilities, 1))
        self.settings = self.settings | {"loaded": self.n_present}
        put(self.connection, "settings", self.settings)

    @property
    def n_before_growth(self) -> int:
        """Of how many fragments the model was made, by which it is told whether there are many more."""
        return int(max(self.settings["learnt_from"], self.settings.get("loaded", 0)))

    def _new_clustering(self, model: Record) -> Clustering:
        """An empty sampler with a model, as the settings have it."""
        self.names.follow(self.settings.get("named_by") or ways_of(model), missing_of(model))
        kept = self.settings.get("network")
        network = None if kept is None else Network(**kept)
        return Clustering(model, self.settings["n_particles"], self.settings["exact"], network)

    def binding(self) -> Binding:
        """What was judged of fragments, as the posterior must obey it."""
        rows = judgements.binding(self.connection)
        return Binding(
            rows, fragments.numbers_of(self.connection, {id for row in rows for id in row.fragments})
        )

    def constrain(
        self, touched: Touched | None = None, without: str | None = None, binding: Binding | None = None
    ) -> Outcome:
        """Let the posterior obey the judgements that count, but for what they say of the fragment ``without``.

        ``touched`` are the fragments, by number, for which that is new: all that are judged unless given.
        ``binding`` is what :meth:`binding` has returned, for whoever calls this often.
        """
        rows, number = self.binding() if binding is None else binding
        if touched is None:
            touched = [[number[id] for id in row.fragments if id in number] for row in rows]
        return self.live.constrain(*judgements.as_constraints(rows, number, without), touched)


# ---------------------------------------------------------------------- opening


def open_session(
    target: str | PathLike[str],
    schema: str | Record | None,
    n_particles: int,
    exact: bool,
    create: bool,
    model: str | None,
    name: str | Sequence[str] | None,
) -> Session:
    """See :func:`partita.kb.open`."""
    whole("n_particles", n_particles, 1)
    given = Record.from_toml(schema) if isinstance(schema, str) else schema
    model = None if model is None else model_named(model)
    if model not in (None, RECORD) and create and not is_there(target):
        Network.of(model)  # which is refused, where it cannot be had, before a file is made
    store = Store(target, create)
    wanted: dict[str, Any] = {"n_particles": n_particles, "exact": exact, "learnt_from": 0}
    wanted |= {"model": model, "name": name_wanted(name)}
    try:
        return Session(store, settle(store, wanted | {"schema": None if given is None else given.to_toml()}))
    except BaseException:
        store.close()
        raise


def settle(store: Store, wanted: dict[str, Any]) -> dict[str, Any]:
    """The settings of the knowledge base; those that are wanted, if it is new."""
    with store.reading() as connection:
        known: dict[str, Any] | None = get(connection, "settings")
    if known is None:
        with store.writing() as connection:
            known = get(connection, "settings")  # another process may have been faster
            if known is None:
                wanted |= {"model": wanted["model"] or RECORD}
                put(connection, "settings", wanted)
                return wanted
    if wanted["schema"] is not None:
        raise ValueError(f"{store.name} has a schema already: give the new one to relearn(schema=…)")
    if wanted["name"] not in (None, known.get("name")):
        raise ValueError(f"{store.name} is there already: say how entities are named with relearn(name=…)")
    if wanted["model"] not in (None, own := known.get("model", RECORD)):
        raise ValueError(
            f"{store.name} clusters with the model {own}, not with {wanted['model']}: leave it "
            "out, or change it with relearn(model=…)"
        )
    return known


def is_there(target: str | PathLike[str]) -> bool:
    """Whether a file of that name exists; of a database on a server that is not known."""
    return "://" not in str(target) and Path(target).exists()
