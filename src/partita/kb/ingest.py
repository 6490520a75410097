"""How a fragment comes into a knowledge base, changes, and goes; and how all of them are looked at again.

In: :func:`add` divides what it is given into batches, a transaction each. A new fragment is validated by the
model, observed by the sampler, and written: what it is, what it says, what that has changed. A fragment whose
id is known and that says something else replaces the version before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from partita._core.checks import whole
from partita.kb import judgements, labels
from partita.kb.clustering import Clustering, Outcome
from partita.kb.fragments import Fragment, as_fragments
from partita.kb.language import model_named
from partita.kb.session import EMPTY, Session
from partita.kb.store import erasing, fragments
from partita.kb.store.journal import Journal
from partita.models.records.record import Record

ENOUGH = 50_000  # fragments, at most, that the first model is learnt from
GROWTH = 3  # how many times more fragments there must be for the model to be learnt anew
STRIDE = 20  # fragments after which what they have touched is looked at again
REPLAYED = 100  # fragments, at most, that are looked at again at a time

Numbered = list[tuple[int, Fragment]]  # fragments with their numbers


class Added(NamedTuple):
    """What :meth:`KnowledgeBase.add` has done."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0


# ---------------------------------------------------------------------- adding


def add(session: Session, given: Any, batch: int, progress: Callable[[int], object]) -> Added:
    """See :meth:`KnowledgeBase.add`."""
    whole("batch", batch, 1)
    rows = fragments_of(given)
    first: list[Fragment] = [] if session.is_learnt() else list(islice(rows, ENOUGH))
    rows, total = chain(first, rows), Added()
    while some := list(islice(rows, batch)):
        with session.changing() as journal:
            if session.clustering is None:
                session.learn([fragment.properties for fragment in first or some])
            done = add_batch(session, journal, some)
        total = Added(*map(sum, zip(total, done, strict=True)))
        progress(sum(total))
    return total


def fragments_of(given: Any) -> Iterator[Fragment]:
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


def add_batch(session: Session, journal: Journal, given: list[Fragment]) -> Added:
    """Add a batch within a transaction: new fragments wait until they can be observed many at a time."""
    known = fragments.known(session.connection, {fragment.id for fragment in given})
    number = fragments.last_number(session.connection)
    waiting: Numbered = []
    added = updated = 0
    for fragment in given:
        old = known.get(fragment.id)
        if old is not None and old.digest == fragment.digest:
            continue
        number += 1
        known[fragment.id] = fragments.Known(number, fragment.digest)
        if old is None:
            added += 1
            waiting.append((number, fragment))
        else:
            updated += 1
            observe(session, journal, waiting)
            waiting = []
            update(session, journal, old.number, number, fragment)
        if session.n_present + len(waiting) >= GROWTH * session.settings["learnt_from"]:
            observe(session, journal, waiting)
            waiting = []
            learn_anew(session, journal)
        if number % STRIDE == 0:
            observe(session, journal, waiting)
            waiting = []
            look_again(session, journal, number - STRIDE)
    observe(session, journal, waiting)
    judgements.constrain_again(session, journal, {fragment.id for fragment in given})
    return Added(added, updated, len(given) - added - updated)


def observe(session: Session, journal: Journal, given: Numbered, before: int | None = None) -> None:
    """Let fragments come in one after the other; or one whose earlier version was an entity by itself."""
    if not given:
        return
    clustering, fragment_of, rows = session.live, dict(given), fragments.NewRows()
    checked = validated(clustering, list(fragment_of.values()))
    for number, fragment in given:
        session.names.remember(number, fragment.properties)
    session.n_present += len(given)
    for outcome, keys in observed(clustering, list(fragment_of), checked):
        if before is not None:
            outcome = clustering.succeed(outcome, before)
        fragment = fragment_of[outcome.fragment]
        rows.add(outcome.fragment, fragment, keys, journal.next_event)
        journal.record(outcome, fragment.id)
    rows.insert(session.connection)


def look_again(session: Session, journal: Journal, after: int) -> None:
    """Refine what the fragments with numbers ``after`` one have touched.

    It happens at fixed numbers, so that any batching gives the same. Each subproblem that was touched is replayed
    twice at most, with REPLAYED fragments at most, so a fragment costs no more than 2·REPLAYED steps beyond its own;
    and when the model is learnt anew, all are replayed once more. A language model would have to be asked for all
    of them, so there it is left to ``refine``.
    """
    if session.live.network is None:
        journal.record(session.live.refine(after, REPLAYED), refined=True)


def observed(
    clustering: Clustering, numbers: list[int], checked: list[Any]
) -> Iterator[tuple[Outcome, bytes]]:
    """Let the sampler observe fragments; of each what it has changed, and its keys as the store has them."""
    for k, outcome in enumerate(clustering.add(numbers, checked)):
        yield outcome, clustering.added_keys[k]


def validated(clustering: Clustering, given: list[Fragment]) -> list[Any]:
    """Fragments as the model takes them; ValueError names the fragment."""
    model = clustering.model
    try:
        return model.validate([fragment.properties for fragment in given])
    except ValueError:
        for fragment in given:
            try:
                model.validate([fragment.properties])
            except ValueError as error:
                reason = str(error).removeprefix("row 0, ").removeprefix("row 0: ")
                raise ValueError(f"fragment {fragment.id!r}: {reason}") from None
        raise


def update(session: Session, journal: Journal, old: int, new: int, fragment: Fragment) -> None:
    """Let a new version of a fragment take the place of the old one.

    An entity of this fragment alone goes on with the new version; where that joins another, leads to it.
    """
    outcome = withdraw(session, journal, fragment.id, old)
    alone = next((change.entity for change in outcome.changes if change.kind == "emptied"), None)
    own = ("left", alone), ("emptied", alone)  # it is not gone, it has changed
    kept = [change for change in outcome.changes if (change.kind, change.entity) not in own]
    journal.record(outcome._replace(changes=kept), fragment.id)
    observe(session, journal, [(new, fragment)], alone)


# ---------------------------------------------------------------------- removing


def remove(session: Session, ids: Iterable[str]) -> None:
    """See :meth:`KnowledgeBase.remove`."""
    with session.changing() as journal:
        for id in dict.fromkeys(ids):
            number = fragments.number_of(session.connection, id)
            outcome = withdraw(session, journal, id, number)
            journal.foresee(outcome)
            journal.hidden |= erasing.erase(session.connection, id, session.names.given_by)
            labels.forget(session.connection, [id])
            journal.record(outcome, id)


def withdraw(session: Session, journal: Journal, id: str, number: int) -> Outcome:
    """Take a fragment out of the clustering; its row stays, with the event that it went with."""
    companions = judgements.release(session, id)
    session.names.of_fragment(number)  # for the journal will ask, when what it said may be erased
    outcome = session.live.remove(number)
    if companions:  # who may be together, or apart, only because of what was judged of this one
        pairs = list(zip(companions, [*companions[1:], companions[0]], strict=True))
        outcome = outcome.followed_by(session.constrain(pairs, without=id))
    fragments.end(session.connection, number, journal.next_event)
    session.n_present -= 1
    return outcome


# ---------------------------------------------------------------------- looking again


def refine(session: Session, sweeps: int, progress: Callable[[int], object]) -> None:
    """See :meth:`KnowledgeBase.refine`."""
    for sweep in range(whole("sweeps", sweeps, 0)):
        with session.changing() as journal:
            if session.clustering is not None:
                journal.record(session.live.refine(), refined=True)
        progress(sweep + 1)


def relearn(
    session: Session, schema: str | None, model: str | None, known: Mapping[str, Any] | None
) -> labels.Taught:
    """See :meth:`KnowledgeBase.relearn`."""
    if schema is not None:
        Record.from_toml(schema)  # which is refused, if it is none, before anything is done
    wanted = {"schema": schema, "model": None if model is None else model_named(model)}
    with session.changing() as journal:
        if not session.n_present:
            raise ValueError(EMPTY)
        session.settings = session.settings | {k: value for k, value in wanted.items() if value is not None}
        if known is not None:
            labels.keep(session.connection, known)
        learn_anew(session, journal)
        return labels.taught(session.connection)


def learn_anew(session: Session, journal: Journal) -> None:
    """Learn the model from all that is known, and cluster all fragments again; entities keep their numbers."""
    old = session.live
    numbers, given = fragments.all_present(session.connection)
    judged = judgements.answers(session, numbers)
    known = labels.labels_of(session.connection, [fragment.id for fragment in given])
    new = session.learn([fragment.properties for fragment in given], judged, known)
    before = dict(zip(old.numbers.tolist(), old.entity.tolist(), strict=True))
    checked = validated(new, given)
    keys = [key for _, key in observed(new, numbers.tolist(), checked)]  # the way there does not matter
    session.constrain()
    if new.network is None:
        new.refine(most=REPLAYED)
    entities = np.array([before[number] for number in new.numbers.tolist()], np.int64)
    journal.record(new.rename_from(entities, old.next_entity), relearnt=True)
    fragments.replace_keys(session.connection, numbers, keys)
