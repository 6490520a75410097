"""What every command does: print answers, turn errors into advice.

Answers go to standard output, as text or as JSON; notes, progress and errors go to standard error. Whatever
comes from data is printed as it is but for control characters, which are escaped: a terminal must not obey
them, and Rich must not take a name in brackets for markup.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast

import typer

from partita.terminal.text import CONTROL, safe

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 10_000  # columns where no terminal sets a limit, so that what is piped on is whole
QUIET = ContextVar("quiet", default=False)  # whether the command that runs has --quiet
P = ParamSpec("P")
R = TypeVar("R")


# ---------------------------------------------------------------------- printing


def console(error: bool = False) -> Console:
    """A console that prints what it is given, as wide as the terminal, or as it needs to be without one."""
    from rich.console import Console

    stream = sys.stderr if error else sys.stdout
    limited = stream.isatty() or "COLUMNS" in os.environ
    return Console(
        file=stream if limited else cast("IO[str]", Trimmed(stream)),
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=False,
        width=None if limited else WIDE,
    )


class Trimmed:
    """A stream whose lines lose the spaces that they end in."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(re.sub(r" +(?=\n)", "", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def is_quiet() -> bool:
    """Whether the command that runs was asked to print errors only."""
    return QUIET.get()


def note(text: str) -> None:
    """Say something beside the answer, unless nobody wants to hear it."""
    if not is_quiet():
        complain(text)


def complain(text: str) -> None:
    """Say something on standard error in any case."""
    typer.echo("\n".join(map(safe, text.split("\n"))), err=True)


def answer(text: str) -> None:
    """Print what a command has done, unless nobody wants to hear it."""
    if not is_quiet():
        typer.echo(text)


def answered(question: str) -> str | None:
    """What the user says to a question on standard error; None at the end of the input."""
    typer.echo(f"{safe(question)} ", nl=False, err=True)
    line = sys.stdin.readline()
    if not line:
        typer.echo(err=True)
        return None
    return line.strip().lower()


def print_json(document: Any) -> None:
    """A JSON document on one line, which no terminal obeys."""
    text = json.dumps(document, ensure_ascii=False, default=str)
    typer.echo(CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def print_json_lines(documents: Iterable[Any]) -> None:
    """One JSON document a line."""
    for document in documents:
        print_json(document)


# ---------------------------------------------------------------------- errors


def refusing(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose errors are messages: exit code 1 if something was refused, 130 if interrupted."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        before = QUIET.set(bool(kwargs.get("quiet")))
        try:
            return command(*args, **kwargs)
        except BrokenPipeError:
            raise  # whoever reads the output has had enough
        except KeyboardInterrupt:
            complain("Interrupted. Everything committed before is kept; run the same command again to go on.")
            raise typer.Exit(130) from None
        except Exception as error:
            if not _is_expected(error):
                raise
            refuse(_message(error))
        finally:
            QUIET.reset(before)

    return guarded


def _is_expected(error: Exception) -> bool:
    """Whether an error is about what was asked for; others are mistakes of ours."""
    if isinstance(error, typer.BadParameter | typer.Exit | typer.Abort):
        return False
    names = {kind.__name__ for kind in type(error).__mro__}  # StoreError, without importing the store
    to_install = isinstance(error, ImportError) and "pip install" in str(error)
    return isinstance(error, OSError | ValueError | KeyError) or "StoreError" in names or to_install


def _message(error: Exception) -> str:
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def refuse(message: str) -> NoReturn:
    """Say why something cannot be done, and end with exit code 1."""
    complain(f"Error: {message}")
    raise typer.Exit(1)
