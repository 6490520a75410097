"""The command that gives agents tools to ask a knowledge base with."""

from __future__ import annotations

from typing import Annotated

import typer

from partita.cli import arguments as args
from partita.cli.opening import opened
from partita.cli.output import refusing

TO_INSTALL = 'tools for agents need the package mcp: pip install "partita[mcp]"'


@refusing
def mcp(
    kb: args.Base,
    write: Annotated[
        bool,
        typer.Option("--write", help="Also let agents judge, undo and add; otherwise they can only read."),
    ] = False,
    user: args.User = None,
) -> None:
    """Give an agent tools to ask a knowledge base with (MCP), on standard input and output.

    An agent starts it by itself, once it is registered: claude mcp add people -- partita mcp people.db
    """
    check_installed()
    from partita.serve.mcp import serve

    with opened(kb) as base:
        serve(base, write=write, user=user or "mcp")


def check_installed() -> None:
    """ImportError that says what to install, without the extra."""
    try:
        import fastapi  # noqa: F401
        import mcp.server  # noqa: F401
    except ImportError as error:
        raise ImportError(TO_INSTALL) from error
