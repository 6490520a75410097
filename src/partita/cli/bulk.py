"""The command that clusters many records at once, without a knowledge base."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from partita.cli import arguments as args
from partita.cli.exporting import check_output
from partita.cli.input import Input
from partita.cli.matching import read
from partita.cli.opening import read_schema
from partita.cli.output import answer, note, print_json, refuse, refusing
from partita.cli.progress import watching


@refusing
def bulk(
    data: args.Data,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The answer: Parquet, CSV, JSON lines, Excel or Feather.",
            show_default=False,
        ),
    ] = None,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Only plan: say how the records would be divided, and about what the rest would cost. With --work, "
            "the run goes on from there.",
        ),
    ] = False,
    engine: Annotated[
        str, typer.Option(help="local: all cores of this machine; spark: a session of Spark.")
    ] = "local",
    spark: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A Spark Connect server, sc://host:port.", show_default=False),
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many shards to divide the records into; of 25,000 each unless given.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random numbers.")] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="How many cores to use; all of them unless given.", show_default=False),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(help="Which attributes there are, as TOML; inferred unless given.", show_default=False),
    ] = None,
    particles: Annotated[int, typer.Option(min=1, help="Clusterings kept of each subproblem.")] = 20,
    refine: Annotated[
        int,
        typer.Option(min=0, help="How often to look again at each block when all of it has been observed."),
    ] = 1,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write a report there: what was cut, and what each phase took.",
            show_default=False,
        ),
    ] = None,
    work: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Keep there what has been done, so that a run that was killed goes on; beside the output unless "
            "given, until it is written. With --spark a path that all its machines can read and write.",
            show_default=False,
        ),
    ] = None,
    id: args.Id = None,
    no_id: Annotated[
        bool, typer.Option("--no-id", help="No column has ids: call each row by its place, counted from 0.")
    ] = False,
    ignore: args.Ignore = [],  # noqa: B006
    format: args.InputFormat = None,
    encoding: args.Encoding = None,
    sheet: args.Sheet = None,
    skip_empty: args.SkipEmpty = False,
    json: args.Json = False,
    quiet: args.Quiet = False,
) -> None:
    """Cluster many records at once, with all cores, and write which are of one entity.

    One row a record: unique_id (its id, or its place, counted from 0), cluster_id, match_probability (that it belongs).

    The answer is the same for any number of shards and cores. A run that was killed goes on when run again.
    """
    from partita import bulk
    from partita.bulk.report import Clock, divided_into
    from partita.kb.io import check_can_write, write

    if engine not in ("local", "spark"):
        refuse(f'--engine must be local or spark, not "{engine}"')
    if spark is not None and engine != "spark":
        refuse("--spark goes with --engine spark")
    if spark is not None and work is None:
        refuse(
            "--spark needs --work: a path that all machines of that Spark can read and write, such as s3://…"
        )
    if plan and output is not None:
        refuse("--plan writes no answer: leave out --output; with --work, the run goes on from the plan")
    if output is None and not plan:
        refuse("name a file for the answer with --output, or only --plan")
    if output is not None:
        check_is_other(output, data)
        check_output(output)
        check_can_write(output)
    if report is not None:
        report.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=report).close()  # one that cannot be written to is refused now
    given = Input(data, id, no_id, None, ignore, format, skip_empty, encoding, sheet, without_id=BY_PLACE)
    more = {} if spark is None else {"session": spark}
    options: dict[str, Any] = dict(
        id=ID,
        schema=None if schema is None else read_schema(schema),
        engine=engine,
        shards=shards,
        seed=seed,
        n_particles=particles,
        refine=refine,
        n_jobs=jobs,
        **more,
    )
    with directory(output, work) as kept, watching({}) as watch:
        records = records_of(given, None if output is None else most_rows(output))
        if output is None:
            done = bulk.plan(records, work=kept, progress=watch, **options)
        else:
            found = bulk.cluster(records, work=kept, progress=watch, **options)
            done, clock = found.report, Clock(found.report)
            write(found.rows(), output, columns=COLUMNS)
            clock.done("writing")
        if report is not None:
            done.write(report)
    for text in done.warnings:
        note(f"Warning: {text}.")
    if json:
        print_json(({} if output is None else {"output": output}) | summary(done))
    elif output is None:
        answer(f"{done.headline}.")
        answer(f"{divided_into(done)}; {done.cut:,} links would be cut.")
    else:
        answer(f"{output}: {done.records:,} records of {done.entities:,} entities.")
        if done.resumed:
            answer(f"{done.resumed:,} of {done.shards:,} shards had been done before.")


ID = "the id"  # the field that the id is in; no column is called so, for the id is taken out of the columns
BY_PLACE = "each row is called by its place, counted from 0"
COLUMNS = ("unique_id", "cluster_id", "match_probability")


@contextmanager
def directory(output: str | None, work: str | None) -> Iterator[Path | str | None]:
    """The directory of the run; the one beside the output goes when that is written, or if the run ends before there is
    anything in it from which another could go on."""
    from partita.bulk.work import PORTIONS, SHARDS

    if work is not None or output is None or output == "-":
        yield work
        return
    beside = Path(f"{output}.work")
    try:
        yield beside
    except BaseException as error:
        refused = isinstance(error, ValueError | TypeError)
        kept = [SHARDS] if refused else [SHARDS, "model.json", PORTIONS]
        if beside.is_dir() and not any(any(beside.glob(pattern)) for pattern in kept):
            remove(beside)
        raise
    remove(beside)


def remove(path: Path) -> None:
    """Throw away what runs have left in a directory."""
    from partita.bulk.work import Work

    with closing(Work(path)) as kept:
        kept.remove()


def check_is_other(path: str, data: list[str]) -> None:
    """ValueError if the answer would take the place of the data."""
    if any(Path(one).exists() and Path(path).exists() and Path(one).samefile(path) for one in data):
        raise ValueError(f"{path} is one of the files to read: the answer would take its place")


def most_rows(path: str) -> int | None:
    """How many rows a file of this name holds, if there is a limit."""
    from partita.kb.io.excel import ROWS
    from partita.kb.io.formats import STANDARD, format_of

    return ROWS - 1 if path != STANDARD and format_of(path, None) == "xlsx" else None


def records_of(given: Input, most: int | None) -> Iterator[dict[str, Any]]:
    """What the files say, each row with its id, or with its place among all rows; ValueError for more than ``most``."""
    place = -1

    def counted() -> Iterator[Any]:
        nonlocal place
        for place, row in enumerate(given.looked_at()):  # noqa: B007
            yield row

    for count, (_, fragment, named) in enumerate(read(counted(), given)):
        if count == most:
            raise ValueError(
                f"there are more than {most:,} records, which Excel cannot hold: name another format"
            )
        yield {ID: fragment.id if named else place} | fragment.properties


def summary(report: Any) -> dict[str, Any]:
    """What of a report is printed as JSON."""
    names = (
        "records",
        *(["components"] if report.rest else ["entities"]),
        "blocks",
        "shards",
        "resumed",
        "cut",
        "cut_probability",
        "seconds",
        "warnings",
    )
    rest = {} if report.rest is None else {"rest": asdict(report.rest)}
    return {name: getattr(report, name) for name in names} | rest
