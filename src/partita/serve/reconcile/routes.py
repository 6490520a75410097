"""The calls under ``/reconcile``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse

from partita.serve.desk import Desk
from partita.serve.errors import Json
from partita.serve.reconcile import candidates, extending, queries, suggesting
from partita.serve.reconcile.manifest import manifest
from partita.serve.reconcile.preview import page, policy
from partita.serve.reconcile.sharing import PATH, ancestors
from partita.serve.security import needs

PIECE = 10  # queries, or entities, that are answered before others have their turn
FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 20  # of a form
NO_JSONP = (
    "JSONP is not offered: any page could read the knowledge base with it. Ask without 'callback'; pages of this "
    "machine, and of origins that partita serve --allow-origin names, may read the answers (CORS)"
)
NEITHER = "send 'queries', to reconcile, or 'extend', to fetch values"

Id = Annotated[str, Query(max_length=1000, examples=["E1"])]
Prefix = Annotated[str, Query(max_length=1000, description="What a user has typed.")]
Cursor = Annotated[int, Query(ge=0, le=1_000_000, description="How many suggestions to pass over.")]
Limit = Annotated[int, Query(ge=1, le=100, description="How many at most.")]
Asked = Annotated[str | None, Query(examples=['{"q0": {"query": "Ada Lovelace"}}'])]
IN_FORM = {
    "requestBody": {
        "content": {
            FORM: {
                "schema": {
                    "type": "object",
                    "properties": {"queries": {"type": "string"}, "extend": {"type": "string"}},
                },
                "example": {"queries": '{"q0": {"query": "Ada Lovelace"}}'},
            }
        }
    }
}


def router(desk: Desk, origins: Sequence[str] = ()) -> APIRouter:
    """The calls that OpenRefine makes, of a desk; pages of some origins may show previews."""
    routes = APIRouter(prefix=PATH, tags=["reconciliation"], dependencies=[Depends(needs("read"))])
    framing = policy(ancestors(origins))

    @routes.get("")
    async def ask(
        request: Request, queries: Asked = None, extend: Asked = None, callback: Asked = None
    ) -> Json:
        """The manifest; or, to ``queries``, candidates; or, to ``extend``, values."""
        if callback is not None:
            raise HTTPException(422, NO_JSONP)
        if queries is None and extend is None:
            if unknown := sorted(request.query_params):
                raise HTTPException(422, f"there is no parameter {unknown[0]!r} here; {NEITHER}")
            return Json(manifest(desk.kb.store.name, base_of(request)))
        return Json(await answered(desk, queries, extend))

    @routes.post("", openapi_extra=IN_FORM)
    async def post(request: Request) -> Json:
        """Candidates to ``queries``, or values to ``extend``, in a form. Nothing changes."""
        form = await form_of(request)
        return Json(await answered(desk, form.get("queries"), form.get("extend")))

    @routes.get("/properties")
    async def proposed(type: str = queries.TYPE, limit: Annotated[int | None, Query(ge=1)] = None) -> Json:
        """The properties that columns can be made of."""
        found = await desk.read(extending.properties)
        known = found[:limit] if type == queries.TYPE else []
        return Json({"properties": known, "type": type} | ({} if limit is None else {"limit": limit}))

    @routes.get("/preview")
    async def preview(request: Request, id: Id) -> HTMLResponse:
        """A small page about an entity, to be shown in a frame."""
        entity = await desk.read(lambda kb: kb.entity(id))
        url = f"{base_of(request)}/#/entity/{quote(entity.id, safe='')}"
        return HTMLResponse(page(entity, url), headers={"Content-Security-Policy": framing})

    @routes.get("/suggest/entity")
    async def suggest_entity(prefix: Prefix = "", cursor: Cursor = 0, limit: Limit = 10) -> Json:
        """Entities that a user may mean."""
        return Json({"result": await desk.read(suggesting.entities, prefix, cursor, limit)})

    @routes.get("/suggest/property")
    async def suggest_property(prefix: Prefix = "", cursor: Cursor = 0, limit: Limit = 20) -> Json:
        """Properties that a user may mean."""
        return Json({"result": await desk.read(suggesting.attributes, prefix, cursor, limit)})

    @routes.get("/suggest/type")
    async def suggest_type(prefix: Prefix = "", cursor: Cursor = 0) -> Json:
        """The one type that there is."""
        return Json({"result": suggesting.types(prefix)[cursor:]})

    @routes.get("/flyout/entity")
    async def glance_at_entity(id: Id) -> Json:
        """An entity at a glance."""
        return Json({"id": id, "html": await desk.read(suggesting.glance_at_entity, id)})

    @routes.get("/flyout/property")
    async def glance_at_property(id: Id) -> Json:
        """A property at a glance."""
        return Json({"id": id, "html": await desk.read(suggesting.glance_at_property, id)})

    @routes.get("/flyout/type")
    async def glance_at_type(id: Id) -> Json:
        """A type at a glance."""
        return Json({"id": id, "html": suggesting.glance_at_type(id)})

    return routes


# ---------------------------------------------------------------------- what is asked


def base_of(request: Request) -> str:
    """Where whoever asks has reached the service."""
    return str(request.base_url).rstrip("/")


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM:
        raise HTTPException(415, f"send a form, with the header Content-Type: {FORM}")
    try:
        text = (await request.body()).decode("utf-8")
        fields = parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise HTTPException(
            422, f"the form cannot be read: it is not UTF-8, or has more than {MOST_FIELDS} fields"
        ) from None
    return {name: values[-1] for name, values in fields.items()}


async def answered(desk: Desk, asked: str | None, extend: str | None) -> dict[str, Any]:
    """Candidates to queries, or values."""
    if (asked is None) == (extend is None):
        raise HTTPException(422, NEITHER if asked is None else "send either 'queries' or 'extend', not both")
    if asked is not None:
        return await reconciled(desk, await read(queries.batch, asked))
    return await extended(desk, await read(queries.extension, extend or ""))


async def read(reader: Callable[[str], Any], text: str) -> Any:
    """What a text asks for."""
    try:
        return await run_in_threadpool(reader, text)
    except queries.TooMany as error:
        raise HTTPException(413, str(error)) from None


async def reconciled(desk: Desk, asked: list[queries.Query]) -> dict[str, Any]:
    """The candidates of all queries; others are served between the pieces of a batch."""
    found: dict[str, Any] = {}
    for start in range(0, len(asked), PIECE):
        found |= await desk.ask(candidates.answered, asked[start : start + PIECE])
    return {id: {"result": rows} for id, rows in found.items()}


async def extended(desk: Desk, wanted: queries.Wanted) -> dict[str, Any]:
    """The values of all entities."""
    rows: dict[str, Any] = {}
    for start in range(0, len(wanted.ids), PIECE):
        rows |= await desk.read(extending.fetched, wanted, wanted.ids[start : start + PIECE])
    known = {one["id"]: one["name"] for one in await desk.read(extending.properties)}
    meta = [{"id": id, "name": known.get(id, id)} for id in wanted.properties]
    return {"meta": meta, "rows": rows}
