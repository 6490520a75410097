"""How a fragment comes into a knowledge base, changes, and goes; and how all of them are looked at again.

In: :func:`add` divides what it is given into batches, a transaction each. A new fragment is validated by the
model, observed by the sampler, and written: what it is, what it says, what that has changed. A fragment whose
id is known and that says something else replaces the version before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from functools import partial
from itertools import chain, count, islice
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection

from partita._core.checks import whole, workers
from partita.kb import judgements, labels
from partita.kb.clustering import Clustering, Codes, Outcome
from partita.kb.fragments import Fragment, as_fragments
from partita.kb.language import model_named
from partita.kb.names import Given
from partita.kb.naming import name_wanted
from partita.kb.session import EMPTY, Binding, Session
from partita.kb.store import erasing, fragments, values
from partita.kb.store.database import get, put
from partita.kb.store.journal import Journal
from partita.kb.store.judgements import forget, forget_of
from partita.models.records.arrow import is_table
from partita.models.records.fragments import check_fragments
from partita.models.records.record import Record
from partita.models.records.schema import unlearnt

ENOUGH = 50_000  # fragments, at most, that the first model is learnt from
GROWTH = 3  # how many times more fragments there must be for the model to be learnt anew
STRIDE = 5  # fragments after which what they have touched is looked at again
LOOKED_AT = 60  # fragments, at most, that are observed again then
REPLAYED = 100  # fragments, at most, of a subproblem that is looked at again when the model is learnt anew
UNREFINED = "unrefined"  # what is to be refined yet, as the store has it

Numbered = list[tuple[int, Fragment]]  # fragments with their numbers


class Added(NamedTuple):
    """What :meth:`KnowledgeBase.add` has done."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0


# ---------------------------------------------------------------------- adding


def add(
    session: Session, given: Any, batch: int, progress: Callable[[int], object], sweeps: int = 0
) -> Added:
    """See :meth:`KnowledgeBase.add`."""
    whole("batch", batch, 1)
    whole("sweeps", sweeps, 0)
    n, rows = length_of(given), fragments_of(given)
    first: list[Fragment] = [] if session.is_learnt() else list(islice(rows, ENOUGH))
    rows, total = chain(first, rows), Added()
    while some := list(islice(rows, batch)):
        with session.changing() as journal:
            if session.clustering is None:
                session.learn([fragment.properties for fragment in first or some])
            before = fragments.last_number(session.connection) if sweeps else 0
            done = add_batch(session, journal, some, sum(total), n)
            if sweeps and done.added + done.updated:
                leave_unrefined(session.connection, before, sweeps)
        total = Added(*map(sum, zip(total, done, strict=True)))
        progress(sum(total))
    return total


def checked(session: Session, given: Any) -> list[Fragment]:
    """See :meth:`KnowledgeBase.check`."""
    found = list(fragments_of(given))
    if session.is_learnt():
        with session.asking() as (_, clustering):
            validated(clustering.model, found)
    return found


def length_of(given: Any) -> int | None:
    """How many fragments there are, if that is known before they are read."""
    return len(given) if isinstance(given, Sized) and not is_table(given) else None


def fragments_of(given: Any, source: str | None = None) -> Iterator[Fragment]:
    """Fragments as they are, anything else as :func:`as_fragments` reads it; all of one source, if it is given."""
    if is_table(given):
        return as_fragments(given, from_source=source)
    if isinstance(given, Iterable) and not isinstance(given, Mapping | str | bytes):
        if hasattr(given, "columns"):
            return as_fragments(given, from_source=source)
        rows = iter(given)
        first = next(rows, None)
        if first is None:
            return iter(())
        rest = chain([first], rows)
        if not isinstance(first, Fragment):
            return as_fragments(rest, from_source=source)
        return rest if source is None else (replace(fragment, source=source) for fragment in rest)
    raise TypeError(f"fragments must be an iterable of mappings, got {type(given).__name__}")


def add_batch(
    session: Session, journal: Journal, given: list[Fragment], before: int = 0, total: int | None = None
) -> Added:
    """Add a batch within a transaction: new fragments wait until they can be observed many at a time.

    Whoever watches is told that there were so many ``before`` it, and of how many in ``total``.
    """
    session.report("adding", before, total)
    known = fragments.known(session.connection, {fragment.id for fragment in given})
    number = fragments.last_number(session.connection)
    waiting: Numbered = []
    added = updated = 0
    new: set[str] = set()
    for place, fragment in enumerate(given):
        old = known.get(fragment.id)
        if old is not None and old.digest == fragment.digest:
            continue
        number += 1
        new.add(fragment.id)
        known[fragment.id] = fragments.Known(number, fragment.digest, fragment.source)
        if old is None:
            added += 1
            waiting.append((number, fragment))
        else:
            updated += 1
            observe(session, journal, waiting)
            waiting = []
            update(session, journal, old.number, number, fragment)
        if session.n_present + len(waiting) >= GROWTH * session.n_before_growth:
            observe(session, journal, waiting)
            waiting = []
            learn_anew(session, journal)
        if number % STRIDE == 0:
            observe(session, journal, waiting)
            waiting = []
            look_again(session, journal, number - STRIDE)
            session.report("adding", before + place + 1, total)
    observe(session, journal, waiting)
    session.report("adding", before + len(given), total)
    judgements.constrain_again(session, journal, new)
    return Added(added, updated, len(given) - added - updated)


def observe(session: Session, journal: Journal, given: Numbered, before: int | None = None) -> None:
    """Let fragments come in one after the other; or one whose earlier version was an entity by itself."""
    if not given:
        return
    clustering, fragment_of, rows = session.live, dict(given), fragments.NewRows()
    checked = validated(clustering.model, list(fragment_of.values()))
    for number, fragment in given:
        session.names.remember(number, fragment.properties)
    session.n_present += len(given)
    for outcome, codes in observed(clustering, list(fragment_of), checked):
        if before is not None:
            outcome = clustering.succeed(outcome, before)
        fragment = fragment_of[outcome.fragment]
        rows.add(outcome.fragment, fragment, codes, journal.next_event)
        journal.record(outcome, fragment.id)
    rows.insert(session.connection)


def look_again(session: Session, journal: Journal, after: int) -> None:
    """Refine what the fragments with numbers ``after`` one have touched.

    It happens at fixed numbers, so that any batching gives the same. Each subproblem that was touched is replayed
    alone and with its neighbour, in order, until LOOKED_AT fragments have been observed again: so that no fragment,
    even one that comes by itself, waits long. A language model would have to be asked for all of them, so there it is
    left to ``refine``.
    """
    if session.live.network is None:
        journal.record(session.live.look_again(after, LOOKED_AT), refined=True)


def observed(
    clustering: Clustering, numbers: list[int], checked: list[Any]
) -> Iterator[tuple[Outcome, Codes]]:
    """Let the sampler observe fragments; of each what it has changed, and its codes as the store has them."""
    for k, outcome in enumerate(clustering.add(numbers, checked)):
        yield outcome, clustering.added_codes[k]


def validated(model: Record, given: list[Fragment]) -> list[Any]:
    """Fragments as the model takes them; ValueError names the fragment."""
    try:
        return model.read(check_fragments([fragment.properties for fragment in given]))
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
    changes = [c._replace(kind="updated") if c.kind == "left" else c for c in kept]
    journal.record(outcome._replace(changes=changes), fragment.id)
    observe(session, journal, [(new, fragment)], alone)


# ---------------------------------------------------------------------- removing


def remove(session: Session, ids: Iterable[str]) -> None:
    """See :meth:`KnowledgeBase.remove`."""
    with session.changing() as journal:
        take_out(session, journal, list(dict.fromkeys(ids)))


def take_out(session: Session, journal: Journal, ids: list[str]) -> None:
    """Forget fragments within a transaction, and erase what all their versions have said."""
    binding = session.binding()
    for k, id in enumerate(ids, 1):
        number = fragments.number_of(session.connection, id)
        journal.record(withdraw(session, journal, id, number, binding), id)
        binding.number.pop(id, None)
        session.report("removing", k, len(ids))
    labels.forget(session.connection, ids)
    kept, said = (
        journal.names_in_use(erasing.owners(session.connection, ids)),
        values.said_by(session.connection, ids),
    )
    journal.hide(erasing.erase(session.connection, ids, kept), kept)
    values.erase(session.connection, session.live.unsaid(said))
    forget_of(session.connection, ids)


def withdraw(
    session: Session, journal: Journal, id: str, number: int, binding: Binding | None = None
) -> Outcome:
    """Take a fragment out of the clustering; its row stays, with the event that it went with.

    ``binding`` are the judgements that bind, where they are known already.
    """
    companions = judgements.companions(session, id)
    session.names.of_fragments([number])  # for the journal will ask, when what it said may be erased
    outcome = session.live.remove(number)
    if companions:  # who may be together, or apart, only because of what was judged of this one
        outcome = outcome.followed_by(session.constrain([companions], without=id, binding=binding))
    fragments.end(session.connection, number, journal.next_event)
    session.n_present -= 1
    return outcome


# ---------------------------------------------------------------------- looking again


def refine(
    session: Session, sweeps: int, progress: Callable[[int], object], n_jobs: int | None = None
) -> None:
    """See :meth:`KnowledgeBase.refine`."""
    n_workers = workers(n_jobs)
    for sweep in range(whole("sweeps", sweeps, 0)):
        watched = partial(
            session.report, "refining" if sweeps == 1 else f"refining, sweep {sweep + 1} of {sweeps}"
        )
        with session.changing() as journal:
            if session.clustering is not None:
                journal.record(session.live.refine(progress=watched, workers=n_workers), refined=True)
        progress(sweep + 1)


def leave_unrefined(connection: Connection, after: int, sweeps: int) -> None:
    """Note that fragments with numbers above one are to be refined; those of an interrupted call still are."""
    known = get(connection, UNREFINED)
    if known is None or known["sweeps"] != sweeps:
        put(connection, UNREFINED, {"after": after if known is None else known["after"], "sweeps": sweeps})


def finish(session: Session, progress: Callable[[int], object], n_jobs: int | None = None) -> int:
    """See :meth:`KnowledgeBase.finish`."""
    n_workers = workers(n_jobs)
    for sweep in count():
        with session.changing() as journal:
            left = get(session.connection, UNREFINED)
            if left is None or session.clustering is None:
                return sweep
            watched = partial(session.report, f"refining, {left['sweeps']} to go")
            outcome = session.live.refine(left["after"] or None, progress=watched, workers=n_workers)
            journal.record(outcome, refined=True)
            more = left["sweeps"] - 1
            put(session.connection, UNREFINED, {**left, "sweeps": more} if more else None)
        progress(sweep + 1)
    raise AssertionError


def relearn(
    session: Session,
    schema: str | None,
    model: str | None,
    name: str | Sequence[str] | None = None,
    known: Mapping[str, Any] | None = None,
) -> labels.Taught:
    """See :meth:`KnowledgeBase.relearn`."""
    if schema is not None:
        Record.from_toml(schema)  # which is refused, if it is none, before anything is done
    wanted = {"schema": schema, "model": None if model is None else model_named(model)}
    with session.changing() as journal:
        if not session.n_present:
            raise ValueError(EMPTY)
        if schema is not None:
            wanted["schema"] = without_learnt(session, schema)
        session.settings = session.settings | {k: value for k, value in wanted.items() if value is not None}
        if name is not None or schema is not None:  # which says what entities are named by, or does not
            session.settings = session.settings | {"name": name_wanted(name)}
        if known is not None:
            labels.keep(session.connection, known)
        learn_anew(session, journal, insist=name is not None)
        return labels.taught(session.connection)


def without_learnt(session: Session, schema: str) -> str:
    """A schema to learn anew by: strengths that it has as they were learnt are no wish of anybody's."""
    before = session.settings["schema"]
    known = None if before is None else Record.from_toml(before)
    text: str = unlearnt(Record.from_toml(schema), session.live.model, known).to_toml()
    return text


def learn_anew(session: Session, journal: Journal, insist: bool = False) -> None:
    """Learn the model from all that is known, and cluster all fragments again; entities keep their numbers.

    ``insist`` as in :meth:`Session.learn`.
    """
    old, ways, reading = session.live, session.names.ways, session.names.reading
    forget(session.connection)
    numbers, given = fragments.all_present(session.connection)
    judged = judgements.answers(session, numbers)
    known = labels.labels_of(session.connection, [fragment.id for fragment in given])
    new = session.learn([fragment.properties for fragment in given], judged, known, insist)
    before = dict(zip(old.numbers.tolist(), old.entity.tolist(), strict=True))
    checked = validated(new.model, given)
    codes = []
    for _, own in observed(new, numbers.tolist(), checked):  # the way there does not matter
        codes.append(own)
        session.report("clustering", len(codes), len(numbers))
    session.constrain()
    if new.network is None:
        new.refine(most=REPLAYED, progress=partial(session.report, "refining"))
    entities = np.array([before[number] for number in new.numbers.tolist()], np.int64)
    if session.names.reading != reading:
        names: dict[int, list[Given]] = defaultdict(list)
        for entity, fragment in zip(entities.tolist(), given, strict=True):
            names[entity] += session.names.given_by(fragment.properties)
        if session.names.ways != ways:
            journal.note_naming(session.names.ways)
        journal.name_anew(names)
    journal.record(new.rename_from(entities, old.next_entity), relearnt=True)
    fragments.replace_codes(session.connection, numbers, codes)
