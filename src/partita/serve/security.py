"""Who may ask, and from where: tokens and scopes, hosts and origins, limits, and the headers of every answer.

There are no cookies, so nothing is sent in a user's name that the user's program did not send on purpose. Without
tokens the service is for programs of this machine: it checks ``Host``, so that no foreign name which leads here is
taken for it, and refuses changes that a page of another origin asks for. With tokens, these are what counts.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from partita.serve.desk import SEEN, Seen
from partita.serve.errors import refusal

LARGEST = 5_000_000  # bytes of a request's body
SLOWEST = 30  # seconds that its next piece may take
LOCAL = ("127.0.0.1", "localhost", "[::1]")  # names of this machine
SHORTEST = 16  # characters of a token
SCOPES = {"read": frozenset({"read"}), "judge": frozenset({"read", "judge"})}
OPEN = ("/health", "/openapi.json")  # what needs no token, beside the page
GUARDED = ("/api/", "/reconcile")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
UNPRINTABLE = re.compile("[\0\ud800-\udfff]")  # which no database holds


@dataclass(frozen=True)
class Token:
    """A token, what its bearer may do, and what the bearer is called."""

    secret: bytes
    scopes: frozenset[str]
    name: str | None = None


@dataclass(frozen=True)
class Caller:
    """Who sent a request."""

    scopes: frozenset[str]
    name: str | None = None


NOBODY = Caller(frozenset())
ANYBODY = Caller(SCOPES["judge"])  # of this machine, where there are no tokens


@dataclass(frozen=True)
class Rules:
    """Whom to let in.

    Parameters
    ----------
    tokens : sequence of Token
        Empty: whoever is on this machine.
    hosts : sequence of str
        Names that the service answers to, without a port, where there are no tokens.
    """

    tokens: Sequence[Token] = ()
    hosts: Sequence[str] = LOCAL


def tokens_of(path: Path) -> list[Token]:
    """The tokens in a file: a line each, ``scope token name``, ``token`` alone; ValueError says what is wrong.

    The scope is read or judge; a bare token may judge. The name, which may be left out, is whose judgements they are.
    """
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split(maxsplit=2)
        if not words or words[0].startswith("#"):
            continue
        scope, secret, *name = words if len(words) > 1 else ("judge", words[0])
        if scope not in SCOPES:
            raise ValueError(
                f"{path}, line {number}: a line is 'read TOKEN' or 'judge TOKEN', and a name may follow; "
                f"{scope!r} is no scope"
            )
        if len(secret) < SHORTEST or not secret.isascii():
            raise ValueError(
                f"{path}, line {number}: a token is {SHORTEST} plain characters or more, such as "
                "python -c 'import secrets; print(secrets.token_urlsafe())' prints"
            )
        found.append(Token(secret.encode(), SCOPES[scope], name[0] if name else None))
    if not found:
        raise ValueError(f"{path} has no token: write a line such as 'judge TOKEN' into it")
    return found


# ---------------------------------------------------------------------- what a call needs


def caller_of(request: Request) -> Caller:
    """Who sent a request, as :class:`Guard` has found out."""
    found: Caller = request.scope.get("caller", NOBODY)
    return found


def needs(scope: str) -> Callable[[Request], Caller]:
    """A dependency that refuses those who may not do so; it returns who it is."""

    def allowed(request: Request) -> Caller:
        caller = caller_of(request)
        if scope not in caller.scopes:
            raise HTTPException(403, f"this token may not do that: the call needs one with the scope {scope}")
        return caller

    return allowed


Reader = Annotated[Caller, Depends(needs("read"))]
Judge = Annotated[Caller, Depends(needs("judge"))]


def only_known(request: Request) -> None:
    """A dependency that refuses parameters which a call does not have."""
    known = {parameter.alias for parameter in request.scope["route"].dependant.query_params}
    for name in request.query_params:
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            raise HTTPException(422, f"there is no parameter {name!r}; there are: {there}")


# ---------------------------------------------------------------------- what every request goes through


class Guard:
    """ASGI middleware: refuses what must not come in, and puts the headers on what goes out."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen = Seen()
        SEEN.set(seen)
        out = finishing(send, scope["path"], seen)
        try:
            self._check(scope)
        except HTTPException as error:
            await refusal(error.status_code, str(error.detail), error.headers)(scope, receive, out)
            return
        await self._app(scope, limited(receive), out)

    def _check(self, scope: Scope) -> None:
        """Raise HTTPException for a request that must not come in; note who sends it."""
        headers, path = Headers(scope=scope), scope["path"]
        if not self._rules.tokens:
            self._check_place(scope["method"], headers, path)
        if UNPRINTABLE.search(path) or b"%00" in scope["query_string"]:
            raise HTTPException(422, "there is a NUL in the address, which is no character")
        if int_of(headers.get("content-length")) > LARGEST:
            raise HTTPException(413, f"a request has {LARGEST:,} bytes at most: send less at a time")
        scope["caller"] = self._caller(headers, path)
        reconciles = path.startswith("/reconcile")  # which takes forms, and changes nothing
        if scope["method"] in ("POST", "PUT", "PATCH", "DELETE") and not reconciles:
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise HTTPException(415, "send JSON, with the header Content-Type: application/json")

    def _check_place(self, method: str, headers: Headers, path: str) -> None:
        """Where there are no tokens: that it is this machine which is meant, and no foreign page that asks."""
        hosts, host = self._rules.hosts, headers.get("host", "").lower()
        if host not in hosts and re.sub(r":\d+$", "", host) not in hosts:
            raise HTTPException(
                403,
                f"the service does not answer to the host {host!r}: ask for {hosts[0]}, or start it with tokens",
            )
        origin = headers.get("origin")
        reads = method in ("GET", "HEAD", "OPTIONS") or path.startswith("/reconcile")
        if origin is not None and not reads and origin.lower().partition("://")[2] != host:
            raise HTTPException(403, f"a page of {origin!r} may change nothing here")

    def _caller(self, headers: Headers, path: str) -> Caller:
        """Who it is; every token is compared, in a time that says nothing about them."""
        if not self._rules.tokens:
            return ANYBODY
        kind, _, given = headers.get("authorization", "").partition(" ")
        secret = given.strip().encode("utf-8", "replace") if kind.lower() == "bearer" else b""
        same = [hmac.compare_digest(secret, token.secret) for token in self._rules.tokens]
        if True in same:
            token = self._rules.tokens[same.index(True)]
            return Caller(token.scopes, token.name)
        if path.startswith(GUARDED):
            raise HTTPException(
                401,
                "this service needs a token: send the header Authorization: Bearer TOKEN",
                {"WWW-Authenticate": "Bearer"},
            )
        return NOBODY


def int_of(text: str | None) -> int:
    """A header's number; 0 if it has none."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else 0


def limited(receive: Receive) -> Receive:
    """The same, until a body is too large, whatever its header has said, or its next piece too long in coming."""
    n, whole = 0, False

    async def receiving() -> Message:
        nonlocal n, whole
        try:
            async with asyncio.timeout(None if whole else SLOWEST):
                message = await receive()
        except TimeoutError:  # or who stalls would keep the service from stopping
            raise HTTPException(
                408, f"the rest of the request did not come within {SLOWEST} seconds"
            ) from None
        n += len(message.get("body", b""))
        whole = not message.get("more_body", False)
        if n > LARGEST:
            raise HTTPException(413, f"a request has {LARGEST:,} bytes at most: send less at a time")
        return message

    return receiving


def finishing(send: Send, path: str, seen: Seen) -> Callable[[Any], Awaitable[None]]:
    """The same with the headers that every answer has, unless it has its own."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            # The page's files are asked for again each time, lest modules of two versions meet; mostly that is a 304.
            headers.setdefault("Cache-Control", "no-store" if path.startswith(GUARDED) else "no-cache")
            if seen.event is not None:
                headers["Partita-Event"] = str(seen.event)
        await send(message)

    return sending
