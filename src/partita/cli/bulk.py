"""The command that clusters many records at once, without a knowledge base."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partita.cli import arguments as args
from partita.cli.input import Input
from partita.cli.opening import read_schema
from partita.cli.output import answer, note, print_json, refuse, refusing
from partita.cli.progress import watching

if TYPE_CHECKING:
    from partita.kb.fragments import Fragment


@refusing
def bulk(
    data: args.Data,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The answer: Parquet, CSV, JSON lines, Excel or Feather."
        ),
    ],
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
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep there what has been done, so that a run that was killed goes on; beside the output unless "
            "given, until it is written.",
            show_default=False,
        ),
    ] = None,
    id: args.Id = None,
    no_id: args.NoId = False,
    ignore: args.Ignore = [],  # noqa: B006
    format: args.InputFormat = None,
    encoding: args.Encoding = None,
    sheet: args.Sheet = None,
    skip_empty: args.SkipEmpty = False,
    json: args.Json = False,
    quiet: args.Quiet = False,
) -> None:
    """Cluster many records at once, with all cores, and write which are of one entity.

    One row a record: unique_id (its id, or its row, counted from 0), cluster_id and match_probability, that it belongs
    there. The answer is the same for any number of shards and cores. A run that was killed goes on when run again.
    """
    from partita.bulk import cluster
    from partita.bulk.work import Work
    from partita.kb.io import write

    if engine not in ("local", "spark"):
        refuse(f'--engine must be local or spark, not "{engine}"')
    if spark is not None and engine != "spark":
        refuse("--spark goes with --engine spark")
    check_output(output, data)
    if report is not None:
        report.mkdir(parents=True, exist_ok=True)
    given = Input(data, id, no_id, None, ignore, format, skip_empty, encoding, sheet)
    kept = Path(f"{output}.work") if work is None and output != "-" else work
    more: dict[str, Any] = {} if spark is None else {"session": spark}
    with watching({}) as watch:
        found = cluster(
            records_of(given),
            id=ID,
            schema=None if schema is None else read_schema(schema),
            engine=engine,
            shards=shards,
            seed=seed,
            n_particles=particles,
            refine=refine,
            n_jobs=jobs,
            work=kept,
            progress=watch,
            **more,
        )
        write(found.rows(), output, columns=COLUMNS)
    for text in found.report.warnings:
        note(f"Warning: {text}.")
    if report is not None:
        found.report.write(report)
    if kept is not None and work is None:
        with closing(Work(kept)) as own:
            own.remove()
    if json:
        print_json({"output": output, **summary(found.report)})
    else:
        done = found.report
        answer(f"{output}: {done.records:,} records of {done.entities:,} entities.")
        if done.resumed:
            answer(f"{done.resumed:,} of {done.shards:,} shards had been done before.")


ID = "the id"  # the field that the id is in; no column is called so, for the id is taken out of the columns
COLUMNS = ("unique_id", "cluster_id", "match_probability")


def check_output(path: str, data: list[str]) -> None:
    """Raise now what would be raised when all is done: for a name without a format, or a folder that is not there.

    The answer must not take the place of the data either.
    """
    from partita.kb.io.formats import STANDARD, format_of

    if path == STANDARD:
        return
    format_of(path, None)
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"there is no folder {Path(path).parent}")
    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder: name a file")
    if any(Path(one).exists() and Path(path).exists() and Path(one).samefile(path) for one in data):
        raise ValueError(f"{path} is one of the files to read: the answer would take its place")


def records_of(given: Input) -> Iterator[dict[str, Any]]:
    """What the files say, each row with its id, if it has one."""
    reader = given.reader()
    for fragment in given.fragments(reader):
        yield as_record(fragment, reader.id_field is not None)


def as_record(fragment: Fragment, has_id: bool) -> dict[str, Any]:
    """A fragment as a mapping; without its id where that was made of what it says."""
    own = {ID: fragment.id} if has_id and not fragment.id.startswith(fragment.digest) else {}
    return own | fragment.properties


def summary(report: Any) -> dict[str, Any]:
    """What of a report is printed as JSON."""
    names = (
        "records",
        "entities",
        "blocks",
        "shards",
        "resumed",
        "cut",
        "cut_probability",
        "seconds",
        "warnings",
    )
    return {name: getattr(report, name) for name in names}
