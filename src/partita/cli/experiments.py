"""Commands that need no knowledge base: the demonstration, and the paper's experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from partita.cli import serve as serving


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
    except (OSError, ValueError, ImportError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None


@contextmanager
def _bar(total: int) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar; call what it gives with the step that begins, how many are done, and of how many."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns) as progress:
        task = progress.add_task("", total=total)
        yield lambda step, done, total: progress.update(task, description=step, completed=done, total=total)
        progress.update(task, description="done", completed=progress.tasks[0].total)


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
    serve: Annotated[
        bool,
        typer.Option(
            "--serve", help="Entities: open the knowledge base in a browser, as partita serve does."
        ),
    ] = False,
    port: serving.Port = serving.PORT,
    no_browser: serving.NoBrowser = False,
) -> None:
    """Turn fragments about things that share names into a knowledge base, or cluster points.

    The first run also compiles the sampler, which takes some seconds; later runs find it on disk.
    """
    from rich.console import Console

    from partita.demo import check_writable

    if serve:
        if what is Demo.points:
            raise typer.BadParameter("--serve goes with entities, which become a knowledge base")
        with _failing():
            serving.check_installed()
            if entities_are_in(kb):  # and may have been corrected there
                typer.echo(f"{kb} is there already.")
                serving.run(str(kb), port=port, browser=not no_browser)
                return
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
    if serve:
        with _failing():
            serving.run(str(kb), port=port, browser=not no_browser)


def entities_are_in(kb: Path) -> bool:
    """Whether the demonstration was here before."""
    from partita.demo import entities

    return entities.is_there(kb)


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
        str | None,
        typer.Option(
            help="Circles: diffusion, the paper's network (the default), or gaussian, its surrogate alone. "
            "Names: ngram, the paper's bigrams (the default), or record. Names and kb: jsonlm, the paper's "
            "language model. Or a file of weights from partita train."
        ),
    ] = None,
    prior: Annotated[
        Path | None, typer.Option(help="Labelled fragments to fit the prior to; the data unless given.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="What to run now, with commas: greedy, smc, split, refined, gibbs, metropolis, "
            "agglomerative, ablation. All unless given."
        ),
    ] = None,
    particles: Annotated[
        str | None, typer.Option(help="Numbers of particles, with commas, instead of the usual ones.")
    ] = None,
    max_minutes: Annotated[
        float | None,
        typer.Option(help="The most that Gibbs or agglomerative clustering may take; 167 with a network."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="How many runs side by side.")] = 1,
) -> None:
    """Run one of the paper's experiments with every method, and write a report.

    The folder receives report.html, table.md, results.json and the figures. Run it again to go on where it
    stopped.
    """
    from partita.experiments.command import Options, execute, prepare

    options = Options(
        name,
        output,
        data,
        orders,
        replications,
        quick,
        labels,
        model,
        prior,
        methods,
        particles,
        max_minutes,
        jobs,
    )
    with _failing():
        experiment = prepare(options)
    with _failing(), _writing(options.folder), _bar(1) as bar:
        report = execute(options, experiment, lambda what, done, total: bar(what, done, total + 1))
    typer.echo((options.folder / "table.md").read_text(encoding="utf-8"), nl=False)
    typer.echo(f"Report written to {report}")
