"""The command line: ``partita …``. Each command imports what it needs when it runs, so that help is quick.

The modules: ``filling`` has the commands that put data into a knowledge base or take it out, ``asking`` those
that read one, ``matching`` the one that asks where records would go, ``judging`` those with which a human corrects
it, ``questions`` the one that asks humans, ``checking`` those that say how good it is, ``exporting`` those that write
files, ``serve`` the one that answers browsers, ``mcp`` the one that answers agents, ``schema`` those about attributes,
``importing`` the one that takes over what another tool was told, ``bulk``, ``experiments`` and ``training`` those that
need no knowledge base.
What they share: ``arguments``, ``input`` (files of data), ``columns`` (what is said of these), ``opening`` (knowledge
bases), ``output`` (what is printed, errors) and ``progress``. What answers look like is in :mod:`partita.terminal`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from partita import __version__
from partita.cli import (
    asking,
    bulk,
    checking,
    experiments,
    exporting,
    filling,
    importing,
    judging,
    matching,
    mcp,
    questions,
    schema,
    serve,
    training,
)

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode="rich")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"partita {__version__}")
        raise typer.Exit


@app.callback()
def partita(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Cluster data as they arrive, and say how sure each answer is.

    A knowledge base begins with [bold]partita build contacts.csv -o contacts.db[/bold].
    """


PANELS = {
    "Fill a knowledge base": (
        filling.build,
        filling.add,
        filling.remove,
        filling.refine,
        filling.relearn,
        importing.import_splink,
    ),
    "Ask it": (
        asking.entities,
        asking.show,
        asking.search,
        matching.match,
        asking.explain,
        asking.events,
        asking.stats,
    ),
    "Correct it": (
        questions.uncertain,
        judging.confirm,
        judging.separate,
        judging.split,
        judging.unsure,
        judging.undo,
        judging.judgements,
    ),
    "Open it to others": (serve.serve, mcp.mcp),
    "Check it": (checking.diagnose, checking.evaluate),
    "Take it elsewhere": (exporting.export, exporting.labels),
    "Without a knowledge base": (bulk.bulk, experiments.demo, experiments.reproduce),
}
for panel, commands in PANELS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.add_typer(schema.app, name="schema", rich_help_panel="Fill a knowledge base")
app.add_typer(training.app, name="train", rich_help_panel="Without a knowledge base")
