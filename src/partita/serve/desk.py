"""The desk: the one knowledge base behind the service, and who may use it when.

What is read from tables runs in many threads at once, each seeing one moment. What needs the sampler, and every
change, goes through one thread, in the order it came: that thread is the lock. So the event loop never waits, and
what takes long delays only what needs the sampler as well. Files of all that there is take longest, and are written
one after the other in a thread of their own.

Another process may write meanwhile. What is kept between calls is kept by the moment it was made of, which is read
together with the answer; so nothing is older than what was committed when the call came.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

from partita.kb import KnowledgeBase
from partita.kb.store.database import Store, get
from partita.kb.store.journal import LAST
from partita.kb.store.statements import fetch_one

READERS = 3  # threads that read tables at once
BESIDE = 2  # and while the sampler is asked, which hardly has a turn if more compute beside it
KEPT = 512  # answers that are kept
P = ParamSpec("P")
T = TypeVar("T")
Moment = tuple[int, int]  # the revision of the sampler's state, and the last event


class Closing(Exception):
    """The service is stopping, and begins nothing any more."""


@dataclass
class Seen:
    """Which moment the answer to a request has seen: the number of the last event then."""

    event: int | None = None


SEEN: ContextVar[Seen | None] = ContextVar("seen", default=None)  # of the request that is being answered


class Desk:
    """One knowledge base for many who ask.

    Parameters
    ----------
    kb : KnowledgeBase
        Which :meth:`close` closes.

    Attributes
    ----------
    kept : Kept
        What need not be worked out twice.
    is_closing : bool
        Whether the service is stopping.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.kept = Kept(kb.store)
        self.is_closing = False
        self._turns = Turns()
        self._readers = ThreadPoolExecutor(READERS, "partita-reader")
        self._sampler = ThreadPoolExecutor(1, "partita-sampler")
        self._exporter = ThreadPoolExecutor(1, "partita-exporter")

    async def read(
        self, function: Callable[Concatenate[KnowledgeBase, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function with the knowledge base that asks its tables only; all of it sees one moment."""
        return await self._in(self._readers, self._turns.reading, function, *args, **kwargs)

    async def export(
        self, function: Callable[Concatenate[KnowledgeBase, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function that reads tables for long, as :meth:`read` does, and lets those who read a little by."""
        return await self._in(self._exporter, nullcontext, function, *args, **kwargs)

    async def ask(
        self, function: Callable[Concatenate[KnowledgeBase, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function that needs the sampler, or changes something, when it is its turn.

        What it reads is of one moment, too, until it changes something.
        """
        with self._turns.asking():
            return await self._in(self._sampler, nullcontext, function, *args, **kwargs)

    async def moment(self) -> int:
        """The number of the last event."""
        return await self.read(last_event)

    async def _in(
        self,
        threads: ThreadPoolExecutor,
        turn: Callable[[], AbstractContextManager[None]],
        function: Callable[Concatenate[KnowledgeBase, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        if self.is_closing:
            raise Closing("the service is stopping; ask again when it has been started again")
        seen = SEEN.get() or Seen()

        def call() -> T:
            with turn(), self.kb.store.one_moment():
                try:
                    return function(self.kb, *args, **kwargs)
                finally:
                    seen.event = last_event(self.kb)

        return await asyncio.get_running_loop().run_in_executor(threads, call)

    def stop(self) -> None:
        """Begin nothing any more; what has begun is finished."""
        self.is_closing = True

    def close(self) -> None:
        """Wait for what has begun, forget what waits, and close the knowledge base."""
        self.stop()
        for threads in (self._sampler, self._readers, self._exporter):
            threads.shutdown(wait=True, cancel_futures=True)
        self.kb.close()


class Turns:
    """How many may read at once: fewer while somebody waits for the sampler."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._reading = self._asking = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read, when it is one's turn."""
        with self._changed:
            self._changed.wait_for(lambda: self._reading < (BESIDE if self._asking else READERS))
            self._reading += 1
        try:
            yield
        finally:
            self._change(reading=-1)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Ask the sampler, from when one begins to wait for it."""
        self._change(asking=1)
        try:
            yield
        finally:
            self._change(asking=-1)

    def _change(self, reading: int = 0, asking: int = 0) -> None:
        with self._changed:
            self._reading += reading
            self._asking += asking
            self._changed.notify_all()


def last_event(kb: KnowledgeBase) -> int:
    """The number of the last event; 0 before the first."""
    with kb.store.reading() as connection:
        return int(fetch_one(connection, LAST) or 0)


# ---------------------------------------------------------------------- what is kept between calls


@dataclass
class Made:
    """Something that is made once, by whoever comes first; the others wait for it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    done: bool = False
    value: Any = None


class Kept:
    """Answers that cost much, by the moment that they are of: those that were asked for last.

    Parameters
    ----------
    store : Store
    size : int
        How many at most.
    """

    def __init__(self, store: Store, size: int = KEPT) -> None:
        self._store, self._size = store, size
        self._lock = threading.Lock()
        self._moment: Moment = (0, 0)
        self._made: OrderedDict[Hashable, Made] = OrderedDict()

    def __call__(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` returns, or returned when it was called for the same key at this moment."""
        made = self._at(self._now(), key)
        with made.lock:
            if not made.done:
                made.value, made.done = make(), True
        value: T = made.value
        return value

    def _now(self) -> Moment:
        """The moment that the thread which asks sees."""
        with self._store.reading() as connection:
            return int(get(connection, "revision", 0)), int(fetch_one(connection, LAST) or 0)

    def _at(self, moment: Moment, key: Hashable) -> Made:
        with self._lock:
            if moment > self._moment:  # nobody will ask for what was before
                self._moment = moment
                self._made.clear()
            elif moment < self._moment:  # by one who began before the last change
                return Made()
            made = self._made.setdefault(key, Made())
            self._made.move_to_end(key)
            while len(self._made) > self._size:
                self._made.popitem(last=False)
            return made
