"""The application: the calls, the page and what guards them, put together."""

from __future__ import annotations

import mimetypes
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from os import PathLike
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.staticfiles import StaticFiles

import partita.kb
from partita import __version__
from partita.kb import KnowledgeBase
from partita.serve import answers, errors, exporting, live, reading, reconcile, writing
from partita.serve.desk import Desk
from partita.serve.security import Guard, Rules, Token

TITLE = "Partita"
DESCRIPTION = """A knowledge base over HTTP: entities and how sure they are, why, the questions worth a human's time,
and corrections. Whatever the command line prints with `--json` has the same form here."""


def create_app(
    target: str | PathLike[str] | KnowledgeBase,
    *,
    tokens: Sequence[Token] = (),
    origins: Sequence[str] = (),
) -> FastAPI:
    """The service of a knowledge base as an ASGI application.

    Parameters
    ----------
    target : path, URL, or KnowledgeBase
        A knowledge base that is there; the application closes it when it ends.
    tokens : sequence of Token
        Who may ask; without any whoever is on this machine.
    origins : sequence of str
        Pages, beside those of this machine, that may ask ``/reconcile``: those of an OpenRefine elsewhere.

    Returns
    -------
    FastAPI
        With the :class:`~partita.serve.desk.Desk` as ``app.state.desk``.
    """
    kb = target if isinstance(target, KnowledgeBase) else partita.kb.open(target, create=False)
    desk = Desk(kb)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        desk.close()

    app = FastAPI(
        title=TITLE,
        description=DESCRIPTION,
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
    )
    app.state.desk = desk
    errors.install(app)
    app.add_middleware(Guard, rules=Rules(tokens))

    @app.head("/health", include_in_schema=False)  # as many a monitor asks
    @app.get("/health", response_model=answers.Health, tags=["service"])
    async def health() -> dict[str, str]:
        """Whether the service is there: this waits for nothing."""
        return {"status": "ok", "version": __version__}

    bearer = Depends(HTTPBearer(auto_error=False, description="Where the service was started with tokens."))
    for module in (reading, writing, live, exporting):
        app.include_router(
            module.router(desk), prefix="/api/v1", responses=answers.REFUSALS, dependencies=[bearer]
        )
    reconcile.install(app, desk, origins)
    app.mount("/", page(), name="page")
    return app


def page() -> Any:
    """The files of the page, each of a type that browsers take it for."""
    for kind, suffix in (("text/javascript", ".js"), ("text/javascript", ".mjs"), ("image/svg+xml", ".svg")):
        mimetypes.add_type(kind, suffix)  # whatever this machine's own table says
    return StaticFiles(directory=str(files("partita.serve").joinpath("page")), html=True)
