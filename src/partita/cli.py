"""The command line: ``partita …``. Each command imports what it needs when it runs, so that help is quick."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from partita import __version__

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode="rich")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"partita {__version__}")
        raise typer.Exit


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn a failure to write into a message and exit code 1."""
    try:
        yield
    except OSError as error:
        typer.echo(f"Cannot write {path}: {error.strerror or error}", err=True)
        raise typer.Exit(1) from None


@app.callback()
def partita(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Cluster data as they arrive, and say how sure each answer is."""


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the picture; the suffix says which format.")
    ] = Path("partita-demo.png"),
    seed: Annotated[int, typer.Option(min=0, help="Which data to generate.")] = 0,
) -> None:
    """Cluster two generated data sets and draw what came out.

    The first run also compiles the sampler, which takes a few seconds; later runs find it on disk.
    """
    from rich.console import Console

    from partita.demo import check_writable, run

    with _writing(output):
        check_writable(output)
    figure = run(seed, Console())
    with _writing(output):
        figure.savefig(output, dpi=110)
    typer.echo(f"Picture written to {output}")
