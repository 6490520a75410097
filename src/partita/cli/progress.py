"""Progress: what is going on, how much of it is done and how long it will take, on standard error.

On a terminal it is a bar. Elsewhere, in the log of a nightly job, say, it is a line every half a minute and one at the
end of each phase, and none at all of what takes a second or is done in the first few.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from partita.cli.output import console, is_quiet, note

EVERY = 30.0  # seconds between two lines about one phase
SILENT = 5.0  # seconds from the start in which nothing is logged
BRIEF = 1.0  # seconds of a phase that is not worth a line
FRAME = 0.1  # seconds between two pictures of a bar
Expected = Mapping[
    str, Callable[[], int | None]
]  # how much there is of phases where that is found out on request


@contextmanager
def watching(expected: Expected | None = None) -> Iterator[Callable[[str, int, int | None], None]]:
    """Something to call with a phase, how much of it is done and of how much; see :meth:`KnowledgeBase.watch`.

    ``expected`` says how much there is where whoever is at work does not know.
    """
    if is_quiet():
        yield lambda phase, done, total: None
        return
    watch: Bar | Log = Bar(expected or {}) if sys.stderr.isatty() else Log(expected or {})
    try:
        yield watch
    finally:
        watch.close()


class Watch:
    """What bars and logs share: which phase it is, since when, and how much there is of it."""

    def __init__(self, expected: Expected, clock: Callable[[], float] = time.monotonic) -> None:
        self.expected, self.clock = expected, clock
        self.start = clock()
        self.phase: str | None = None
        self.began = self.shown = self.start  # the phase; and when something was last said of it
        self.total: int | None = None

    def known_total(self, total: int | None) -> int | None:
        """How much there is of the phase, found out once if nobody has said."""
        if total is None and self.total is None and self.phase is not None and self.phase in self.expected:
            self.total = self.expected[self.phase]()
        return self.total if total is None else total


class Log(Watch):
    """Lines on standard error."""

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        """So much of a phase is done."""
        now = self.clock()
        if phase != self.phase:
            self.close()
            self.phase, self.began, self.shown, self.total = phase, now, now, None
        if now - self.shown >= EVERY:
            self.shown = now
            self._say(how_far(done, self.known_total(total), now - self.began))

    def close(self) -> None:
        """The phase is over."""
        now = self.clock()
        if self.phase is not None and now - self.start >= SILENT and now - self.began >= BRIEF:
            self._say(f"done in {duration(now - self.began)}")
        self.phase = None

    def _say(self, what: str) -> None:
        note(f"{datetime.now():%H:%M:%S} {self.phase}: {what}")


class Bar(Watch):
    """A bar with rate and remaining time, on a terminal."""

    _bar: Any = None
    _task: Any = None

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        """So much of a phase is done."""
        now = self.clock()
        if phase == self.phase and now - self.shown < FRAME and done != total:
            return
        if phase != self.phase:
            self.close()
            self.phase, self.total = phase, None
            self._bar = begun()
            self._task = self._bar.add_task(phase, total=self.known_total(total), rate="")
        self.shown = now
        self._bar.update(self._task, completed=done, total=self.known_total(total))
        task = self._bar.tasks[0]
        speed = task.finished_speed or task.speed
        self._bar.update(self._task, rate="" if speed is None else f"{speed:,.0f}/s")

    def close(self) -> None:
        """The phase is over."""
        if self._bar is not None:
            self._bar.stop()
        self._bar, self.phase = None, None


def begun() -> Any:
    """Rich's bar, on standard error."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeRemainingColumn(compact=True),
    )
    bar = Progress(*columns, console=console(error=True), transient=True)
    bar.start()
    return bar


# ---------------------------------------------------------------------- words


def how_far(done: int, total: int | None, seconds: float) -> str:
    """How much is done, of how much, and how long the rest will take."""
    if not total:
        return f"{done:,}" if done else f"for {duration(seconds)}"
    said = f"{done:,} of {total:,} ({done / total:.0%})"
    return f"{said}, about {duration(seconds * (total - done) / done)} left" if 0 < done < total else said


def duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
