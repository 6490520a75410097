"""The call that gives a file of what is known, or of what is shown."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from partita.kb import KnowledgeBase
from partita.kb.io import write
from partita.kb.queries.answers import PLAINLY
from partita.serve.desk import Desk
from partita.serve.security import Reader, only_known

TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
FORMULA = re.compile(r"[=+\-@\t\r]")  # what a spreadsheet takes for a formula begins so,
NUMBER = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)*(?:[eE][+-]?[0-9]+)?")  # unless it is a number
AT_ONCE = 1000  # events that are read at a time
What = Literal["entities", "golden", "clusters", "fragments", "events"]


def router(desk: Desk) -> APIRouter:
    """The call, answered by a desk."""
    routes = APIRouter(tags=["read"], dependencies=[Depends(only_known)])

    @routes.get(
        "/export",
        response_class=Response,
        responses={200: {"content": {kind: {} for kind in TYPES.values()}}},
    )
    async def export(
        _: Reader,
        what: Annotated[
            What, Query(description="As `partita export --what` has them, and events.")
        ] = "entities",
        format: Annotated[Literal["jsonl", "csv"], Query(description="JSON lines, or a table.")] = "jsonl",
        entity: Annotated[
            list[str], Query(max_length=1000, description="Of these only; may be repeated.")
        ] = [],  # noqa: B006
    ) -> Response:
        """A file of what is known: entities, golden records, clusters, fragments or events."""
        path = await desk.export(exported, what, format, entity)
        return FileResponse(
            path,
            media_type=TYPES[format],
            filename=named(what, format, entity),
            background=BackgroundTask(forget, path),
        )

    return routes


def named(what: What, format: str, entities: Sequence[str]) -> str:
    """What the file is called: of one entity, with its id."""
    of = f"{entities[0].removeprefix(PLAINLY)}-" if len(entities) == 1 else ""
    return f"partita-{of}{what}.{format}"


def exported(kb: KnowledgeBase, what: What, format: str, entities: Sequence[str]) -> Path:
    """A temporary file with all rows."""
    rows, columns = (
        (events(kb, entities), None)
        if what == "events"
        else kb.exported(what, format=format, entities=entities)
    )
    if format == "csv":
        rows, columns = map(guarded, rows), columns and list(map(as_text, columns))
    handle, name = tempfile.mkstemp(prefix="partita-", suffix=f".{format}")
    os.close(handle)
    try:
        write(rows, name, format, columns)
    except BaseException:
        forget(Path(name))
        raise
    return Path(name)


def forget(path: Path) -> None:
    """Remove a temporary file."""
    with suppress(FileNotFoundError):
        path.unlink()


def events(kb: KnowledgeBase, entities: Sequence[str]) -> Iterator[dict[str, Any]]:
    """All events in order, or those of some entities; a few at a time, for there are many."""
    if entities:
        found = {event.number: event for id in entities for event in kb.events(entity=id)}
        yield from (found[number].as_dict() for number in sorted(found))
        return
    since = 0
    while some := kb.events(since=since, limit=AT_ONCE):
        yield from (event.as_dict() for event in some)
        since = some[-1].number


def guarded(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a table in which no spreadsheet finds a formula: an apostrophe stands before what looks like one."""
    return {as_text(name): as_text(value) if isinstance(value, str) else value for name, value in row.items()}


def as_text(text: str) -> str:
    """The text, so that it stays one."""
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text
