"""How the first fragments come into a knowledge base all at once, in blocks, on all cores.

What is left is what a stream might have left: fragments with their numbers, an event each, and entities, numbered in
order of their first fragments; a stream goes on from there. All of it is one transaction, so that nothing is left of a
load that was interrupted. Fragments are read, encoded, written and let go portion by portion.
"""

from __future__ import annotations

from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np

from partita._core.checks import whole, workers
from partita._core.typing import Floats, Integers
from partita.kb import ingest
from partita.kb.fragments import Fragment
from partita.kb.language import RECORD
from partita.kb.names import Given
from partita.kb.session import Session
from partita.kb.store.fragments import NewRows
from partita.kb.store.journal import DIGITS, Journal

LEARNT_FROM = (
    250_000  # fragments, at most: more than a stream waits for, as those of an entity may be far apart
)
PORTION = 5000  # fragments that are read, encoded and written at a time


def load(session: Session, given: Any, n_jobs: int | None, sweeps: int = 0) -> ingest.Added:
    """See :meth:`KnowledgeBase.add`, with ``bulk``."""
    whole("sweeps", sweeps, 0)
    n_workers = workers(-1 if n_jobs is None else n_jobs)
    rows, total = ingest.fragments_of(given), ingest.length_of(given)
    with session.changing() as journal:
        check_can_load(session)
        first = list(islice(rows, LEARNT_FROM))
        if not first:
            return ingest.Added()
        session.learn([fragment.properties for fragment in first])
        read, rows = Read(session, journal.next_event), chain(first, rows)
        del first
        while some := list(islice(rows, PORTION)):
            read.add(some)
            session.report("adding", read.n, total)
        cluster(session, journal, read, n_workers)
        if sweeps:
            ingest.leave_unrefined(session.connection, 0, sweeps)
    return ingest.Added(len(read.digests), 0, read.n - len(read.digests))


def check_can_load(session: Session) -> None:
    """ValueError, which says what to do instead, unless fragments can come in at once."""
    if session.clustering is not None:
        raise ValueError(
            f"{session.store.name} is not empty, and only what is empty can be loaded in bulk: add to it without bulk, "
            "or build another"
        )
    if session.settings.get("model", RECORD) != RECORD:
        raise ValueError(
            "a language model reads one fragment after the other: add without bulk; or load with the model record, and "
            "relearn with the language model"
        )
    if session.settings["exact"]:
        raise ValueError(
            "bulk divides fragments by the words that they share, which exact does without: leave one of them out"
        )


class Read:
    """What is held of the fragments read so far.

    Attributes
    ----------
    n : int
        How many there were, those that repeat another included.
    digests : dict
        Of each fragment by its id, in order, what stands for what it says.
    names : list
        Of each the names that it gives its entity.
    """

    def __init__(self, session: Session, moment: int) -> None:
        self.n = 0
        self.digests: dict[str, str] = {}
        self.names: list[list[Given]] = []
        self._session, self._moment = session, moment  # the event that the first one comes with
        self._encoded: list[Floats] = []
        self._key_counts: list[Integers] = []
        self._keys: list[Integers] = []

    def add(self, given: list[Fragment]) -> None:
        """Encode and write fragments, but for those that are there already."""
        session, before = self._session, len(self.digests)
        self.n += len(given)
        new = [fragment for fragment in given if self._is_new(fragment)]
        checked = ingest.validated(session.live.model, new)
        encoded, (starts, keys) = session.live.encode(checked, before)
        rows = NewRows()
        for k, codes in enumerate(session.live.codes_of(encoded, (starts, keys))):
            self.names.append(session.names.given_by(new[k].properties))
            rows.add(before + k + 1, new[k], codes, self._moment + before + k)
        rows.insert(session.connection)
        self._encoded.append(encoded)
        self._key_counts.append(np.diff(starts))
        self._keys.append(keys)

    def _is_new(self, fragment: Fragment) -> bool:
        """Whether its id was not met before; ValueError if it was, with something else said."""
        n = len(self.digests)
        if self.digests.setdefault(fragment.id, fragment.digest) != fragment.digest:
            raise ValueError(
                f"fragment {fragment.id!r} is there twice and says different things: add without bulk, so that the "
                "last one counts"
            )
        return len(self.digests) > n

    def encoded(self) -> tuple[Floats, tuple[Integers, Integers]]:
        """All of them as the sampler has them, and their keys."""
        starts = np.append(0, np.cumsum(np.concatenate(self._key_counts)))
        return np.concatenate(self._encoded), (starts, np.concatenate(self._keys))


def cluster(session: Session, journal: Journal, read: Read, n_workers: int) -> None:
    """Cluster what was read, and write what comes out."""
    watched = [partial(session.report, phase) for phase in ("clustering", "writing")]
    entity, sure = session.live.load(*read.encoded(), n_workers, watched[0])
    probabilities = sure.round(DIGITS).tolist()
    journal.begin(list(read.digests), entity.tolist(), probabilities, read.names, watched[1])
    session.begin(probabilities)
