"""Commands that need no knowledge base: the demonstration, and the paper's experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn a failure to write into a message and exit code 1."""
    try:
        yield
    except OSError as error:
        typer.echo(f"Cannot write {path}: {error.strerror or error}", err=True)
        raise typer.Exit(1) from None


@contextmanager
def _failing() -> Iterator[None]:
    """Turn bad input into a message and exit code 1."""
    try:
        yield
    except (OSError, ValueError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None


@contextmanager
def _bar(total: int) -> Iterator[Callable[[str, int], None]]:
    """A progress bar; call what it gives with the step that begins, and how many are done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns) as progress:
        task = progress.add_task("", total=total)
        yield lambda step, done: progress.update(task, description=step, completed=done)
        progress.update(task, description="done", completed=total)


class Demo(StrEnum):
    """What there is to show."""

    entities = "entities"
    points = "points"


def demo(
    what: Annotated[
        Demo, typer.Argument(help="Fragments that become entities, or points in the plane.")
    ] = Demo.entities,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the picture; the suffix says which format.")
    ] = Path("partita-demo.png"),
    kb: Annotated[Path, typer.Option("--kb", help="Entities: where to keep the knowledge base.")] = Path(
        "partita-demo.db"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Points: which data to generate.")] = 0,
) -> None:
    """Turn fragments about things that share names into a knowledge base, or cluster points.

    The first run also compiles the sampler, which takes some seconds; later runs find it on disk.
    """
    from rich.console import Console

    from partita.demo import check_writable

    with _writing(output):
        check_writable(output)
    if what is Demo.points:
        from partita.demo import points

        figure = points.run(seed, Console())
    else:
        from partita.demo import entities

        with _failing():
            entities.make_way(kb)
            figure = entities.run(kb, Console())
    with _writing(output):
        figure.savefig(output, dpi=110)
    typer.echo(f"Picture written to {output}")
    if what is Demo.entities:
        typer.echo(f"Knowledge base written to {kb}; try: partita search {kb} gutenberg")


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="gaussian or circles, as in the paper; points, names or kb for any points, names or "
            "fragments of entities, with --data."
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the report; goes on where it stopped.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Points: CSV file with a header, numbers, and true clusters in a column 'label'. Names and "
            "kb: fragments as JSON lines or CSV."
        ),
    ] = None,
    orders: Annotated[
        str | None,
        typer.Option(help="How many random orders; or a NumPy file of permutations, one row a replication."),
    ] = None,
    replications: Annotated[int | None, typer.Option(min=1, help="How many orders of the data.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version, in less than a minute.")] = False,
    labels: Annotated[
        str | None,
        typer.Option(help="Field of the true entity in fragments; entity_id or cluster_id unless given."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Of names: ngram, the paper's bigrams (the default), or record.")
    ] = None,
    prior: Annotated[
        Path | None, typer.Option(help="Labelled fragments to fit the prior to; the data unless given.")
    ] = None,
) -> None:
    """Run one of the paper's experiments with every method, and write a report.

    The folder receives report.html, table.md, results.json and the figures. Run it again to go on where it
    stopped.
    """
    from partita.experiments.plan import plan
    from partita.experiments.report import write_report
    from partita.experiments.runner import Results

    folder = output or Path(f"partita-{name}")
    file = Path(orders) if orders is not None and not orders.isdecimal() else None
    number = int(orders) if orders is not None and file is None else None
    with _failing():
        if number == 0 or (number and replications):
            raise ValueError("--orders takes a number from 1, and then --replications is not needed")
        experiment = plan(
            name, data, file, number or replications, quick, labels=labels, model=model, prior=prior
        )
    with _failing(), _writing(folder):
        results = Results(folder, experiment)
        missing = len(results.missing())
        with _bar(missing + 1) as bar:
            bar("compiling" if missing else "nothing left to run", 0)
            for done, (setting, replication) in enumerate(results.complete()):
                bar(f"order {replication + 1}, {setting.name}", done)
            bar("drawing", missing)
            report = write_report(results)
    typer.echo((folder / "table.md").read_text(encoding="utf-8"), nl=False)
    typer.echo(f"Report written to {report}")
