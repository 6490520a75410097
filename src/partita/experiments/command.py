"""What ``partita reproduce`` and ``python -m partita.experiments`` do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from partita.experiments.experiment import SHORT, Experiment
from partita.experiments.jobs import complete, share_the_device
from partita.experiments.plan import plan
from partita.experiments.report import write_report
from partita.experiments.runner import Results


class Options(NamedTuple):
    """What to run, as a command line gives it; for the meaning of most see :func:`plan`."""

    name: str
    output: Path | None = None
    data: Path | None = None
    orders: str | None = None  # a file, or how many
    replications: int | None = None
    quick: bool = False
    labels: str | None = None
    model: str | None = None
    prior: Path | None = None
    methods: str | None = None  # some of ``SHORT``, with commas
    particles: str | None = None  # whole numbers, with commas
    max_minutes: float | None = None
    jobs: int = 1

    @property
    def folder(self) -> Path:
        """Where results and report go."""
        return self.output or Path(f"partita-{self.name}")


Tell = Callable[[str, int, int], None]  # what goes on, how many runs are done, and of how many


def prepare(options: Options) -> Experiment:
    """Put the experiment together; ValueError says what is wrong with the options or the data."""
    methods_of(options)
    file = None if options.orders is None or options.orders.isdecimal() else Path(options.orders)
    number = int(options.orders) if options.orders is not None and file is None else None
    if number == 0 or (number and options.replications):
        raise ValueError("--orders takes a number from 1, and then --replications is not needed")
    if options.jobs > 1:
        share_the_device()
    return plan(
        options.name,
        options.data,
        file,
        number or options.replications,
        options.quick,
        labels=options.labels,
        model=options.model,
        prior=options.prior,
        particles=particles_of(options),
        max_minutes=options.max_minutes,
    )


def execute(options: Options, experiment: Experiment, tell: Tell) -> Path:
    """Run what the folder's results lack and write the report; returns its path."""
    results, methods = Results(options.folder, experiment), methods_of(options)
    total = len(results.missing(methods))
    tell("compiling" if total else "nothing left to run", 0, total)
    if options.jobs > 1 and total:
        for done, (setting, replication) in enumerate(complete(results, options.jobs, methods), 1):
            tell(f"order {replication + 1}, {setting.name} is done", done, total)
    else:
        for done, (setting, replication) in enumerate(results.complete(methods)):
            tell(f"order {replication + 1}, {setting.name}", done, total)
    tell("drawing", total, total)
    return write_report(results)


def methods_of(options: Options) -> list[str] | None:
    """The methods that were asked for, all if none were; ValueError for one that is none."""
    if options.methods is None:
        return None
    names = [name.strip().lower() for name in options.methods.split(",") if name.strip()]
    for name in names:
        if name not in SHORT:
            raise ValueError(f"there is no method {name}: choose from {', '.join(SHORT)}")
    return [SHORT[name] for name in names]


def particles_of(options: Options) -> tuple[int, ...] | None:
    """The sizes that were asked for; ValueError for what is none."""
    if options.particles is None:
        return None
    words = [word.strip() for word in options.particles.split(",") if word.strip()]
    if not words or not all(word.isdecimal() and int(word) for word in words):
        raise ValueError(f"--particles takes whole numbers from 1, with commas, got {options.particles!r}")
    return tuple(dict.fromkeys(map(int, words)))
