"""Which pages may ask: those of this machine, where OpenRefine runs, and of origins that were allowed.

This is CORS, for ``/reconcile`` alone, answers to errors included. JSONP, which the specification leaves to services,
is not offered: whatever page a user opens could read the knowledge base with it, for a script may be of any origin.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from partita.serve.errors import refusal

PATH = "/reconcile"
LOOPBACK = re.compile(r"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?")
ORIGIN = re.compile(r"https?://[a-z0-9.-]+(?::[0-9]{1,5})?|https?://\[[0-9a-f:]+\](?::[0-9]{1,5})?")
FRAMING = ("http://localhost:*", "http://127.0.0.1:*", "https://localhost:*", "https://127.0.0.1:*")
REMEMBERED = "600"  # seconds that a browser need not ask again


def checked(origins: Sequence[str]) -> tuple[str, ...]:
    """Origins as browsers send them; ValueError for what is none."""
    found = tuple(origin.strip().lower().rstrip("/") for origin in origins)
    for given, origin in zip(origins, found, strict=True):
        if not ORIGIN.fullmatch(origin):
            raise ValueError(
                f"{given!r} is no origin; give one such as https://refine.example, without a path"
            )
    return found


def ancestors(origins: Sequence[str]) -> tuple[str, ...]:
    """Who may show a preview in a frame, as a Content-Security-Policy has it."""
    return ("'self'", *FRAMING, *checked(origins))


def is_of(path: str) -> bool:
    """Whether a path is of the reconciliation service."""
    return path == PATH or path.startswith(f"{PATH}/")


class Sharing:
    """ASGI middleware: answers browsers that ask whether a page may ask, and refuses pages that may not.

    Parameters
    ----------
    app : ASGI application
    origins : sequence of str
        Those allowed beside the ones of this machine, such as "https://refine.example".
    """

    def __init__(self, app: ASGIApp, origins: Sequence[str] = ()) -> None:
        self._app, self._origins = app, frozenset(checked(origins))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or not is_of(scope["path"]):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is None:
            await self._app(scope, receive, varying(send, None))
        elif not self._may_ask(origin, headers.get("host", "")):
            message = (
                f"pages of {origin!r} may not ask here; allow them with partita serve --allow-origin ORIGIN"
            )
            await refusal(403, message, {"Vary": "Origin"})(scope, receive, send)
        elif scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await Response(status_code=204, headers=agreement(origin))(scope, receive, send)
        else:
            await self._app(scope, receive, varying(send, origin))

    def _may_ask(self, origin: str, host: str) -> bool:
        """Whether a page of an origin may ask; the service's own may."""
        known = origin.lower()
        own = host and known.partition("://")[2] == host.lower()
        return bool(own) or known in self._origins or LOOPBACK.fullmatch(known) is not None


def agreement(origin: str) -> dict[str, str]:
    """The headers that tell a browser what pages of an origin may send."""
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": "Authorization, Content-Type",
        "Access-Control-Max-Age": REMEMBERED,
        "Vary": "Origin",
        "X-Content-Type-Options": "nosniff",
    }


def varying(send: Send, origin: str | None) -> Send:
    """The same with the headers that let pages of an origin read the answer."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.add_vary_header("Origin")
            if origin is not None:
                headers["Access-Control-Allow-Origin"] = origin
        await send(message)

    return sending
