"""OpenRefine's way to ask: the Reconciliation Service API 0.2 of the W3C's community group, on ``/reconcile``.

``queries`` reads what is asked, ``naming`` says what the text of a query is of, ``candidates`` answers; ``suggesting``
completes what a user types, ``extending`` gives columns, ``preview`` draws an entity, ``manifest`` says where all of
it is, ``sharing`` which pages may ask, and ``routes`` puts it together. Nothing here changes the knowledge base.
"""

from collections.abc import Sequence

from fastapi import FastAPI

from partita.serve.desk import Desk
from partita.serve.reconcile.routes import router
from partita.serve.reconcile.sharing import Sharing

__all__ = ["Sharing", "install", "router"]


def install(app: FastAPI, desk: Desk, origins: Sequence[str] = ()) -> None:
    """Have an application offer the service, to pages of this machine and of some other origins.

    To be called after its other middleware was added: what asks whether it may ask has no token yet.
    """
    app.include_router(router(desk, origins))
    app.add_middleware(Sharing, origins=origins)
