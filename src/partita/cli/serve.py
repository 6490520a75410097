"""The command that opens a knowledge base to browsers and other programs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from partita.cli import arguments as args
from partita.cli.opening import check_is_store
from partita.cli.output import note, refusing

HOST, PORT = "127.0.0.1", 8765
TO_INSTALL = 'the service needs FastAPI and uvicorn: pip install "partita[serve]"'

Port = Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0 for any that is free.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Do not open the page.")]


@refusing
def serve(
    kb: args.Base,
    port: Port = PORT,
    host: Annotated[
        str,
        typer.Option(help="The address to listen on; another than this machine's own needs --token-file."),
    ] = HOST,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="Who may ask: a line 'read TOKEN' or 'judge TOKEN' each, and a name may follow.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    allow_origin: Annotated[
        list[str],
        typer.Option(
            metavar="ORIGIN",
            help="Of an OpenRefine elsewhere, such as http://refine.example:3333; may be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    no_browser: NoBrowser = False,
    quiet: args.Quiet = False,
) -> None:
    """Open a knowledge base to browsers and other programs: a page, and an HTTP service under /api/v1."""
    check_is_store(kb)
    run(kb, host, port, token_file, allow_origin, browser=not no_browser)


def run(
    kb: str,
    host: str = HOST,
    port: int = PORT,
    token_file: Path | None = None,
    allow_origin: list[str] | None = None,
    browser: bool = True,
) -> None:
    """Serve a knowledge base until a signal says to stop."""
    check_installed()
    from partita.serve import create_app
    from partita.serve import serve as answer
    from partita.serve.running import is_loopback, listen
    from partita.serve.security import tokens_of

    if token_file is None and not is_loopback(host):
        raise ValueError(
            f"{host} can be reached by others, who need tokens: write a line such as 'judge TOKEN' into a file and "
            "give it with --token-file; or leave --host out"
        )
    tokens = [] if token_file is None else tokens_of(token_file)
    with listen(host, port) as listening:
        app = create_app(kb, tokens=tokens, origins=allow_origin or ())
        name = f"[{host}]" if ":" in host else host
        url = f"http://{name}:{listening.getsockname()[1]}/"
        answer(app, listening, started=lambda: welcome(kb, url, browser))


def check_installed() -> None:
    """ImportError that says what to install, without the extra."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ImportError(TO_INSTALL) from error


def welcome(kb: str, url: str, browser: bool) -> None:
    """Say where the page is, and open it."""
    note(f"{kb} is at {url} until you press Ctrl+C.")
    if browser:
        import webbrowser

        with suppress(webbrowser.Error):
            webbrowser.open(url)
