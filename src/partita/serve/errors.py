"""Errors as JSON: what was wrong with a request, and how to mend it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from partita.kb import StoreError
from partita.kb.judgements import ConflictError
from partita.serve.desk import Closing

KINDS = {  # by status
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "invalid",
    409: "conflict",
    413: "too_large",
    415: "invalid",
    422: "invalid",
    500: "internal",
    503: "unavailable",
}


class Json(JSONResponse):
    """JSON, whatever a value is: lone surrogates escaped, and null for numbers that JSON has not."""

    def render(self, content: Any) -> bytes:
        """The document as bytes."""
        try:
            text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        except ValueError:
            text = json.dumps(finite(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


def finite(value: Any) -> Any:
    """The same with None for what is infinite, or not a number."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return value


def refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> Json:
    """An error as all calls answer it."""
    error = {"kind": KINDS.get(status, "invalid"), "message": message}
    return Json({"error": error}, status_code=status, headers=dict(headers or {}))


def install(app: FastAPI) -> None:
    """Have an application answer errors so."""
    for kind, status in (
        (ConflictError, 409),
        (KeyError, 404),
        (ValueError, 422),
        (Closing, 503),
        (StoreError, 503),
    ):
        app.add_exception_handler(kind, answering(status))
    app.add_exception_handler(RequestValidationError, unfit)
    app.add_exception_handler(HTTPException, of_http)


def answering(status: int) -> Any:
    """What answers exceptions of one kind."""

    async def answer(request: Request, error: Exception) -> Response:
        return refusal(status, str(error.args[0]) if error.args else type(error).__name__)

    return answer


async def unfit(request: Request, error: Exception) -> Response:
    """A request that is not of the form that the call takes: the first thing that is wrong with it."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("query", "path", "body"))
    if first["type"] == "json_invalid":
        return refusal(422, f"the body is not JSON: {first['ctx']['error']}, at character {first['loc'][-1]}")
    message = str(first["msg"]).removeprefix("Value error, ")
    return refusal(422, f"{where}: {message}" if where else message)


async def of_http(request: Request, error: Exception) -> Response:
    """What the framework itself refuses."""
    assert isinstance(error, HTTPException)
    if error.status_code in (404, 405) and error.detail in ("Not Found", "Method Not Allowed"):
        methods = methods_of(request)
        if methods:
            message = f"{request.method} is not for this call: it takes {' or '.join(methods)}"
            return refusal(405, message, {"Allow": ", ".join(methods)})
        return refusal(404, "there is nothing here: /openapi.json lists all calls")
    return refusal(422 if error.status_code == 400 else error.status_code, str(error.detail), error.headers)


def methods_of(request: Request) -> list[str]:
    """How a call may be made that was made in another way; nothing where there is no call."""
    path, found = request.scope["path"], set()
    for call, methods in request.app.openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\\\{[^/]+\\\}", ".+", re.escape(call)), path):
            found |= {method.upper() for method in methods}
    return sorted(found - {request.method})
