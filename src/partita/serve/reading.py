"""The calls that read: entities, fragments, questions, and what the posterior says of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from partita.kb import KnowledgeBase
from partita.kb.queries.answers import moment_of
from partita.kb.queries.statistics import stats
from partita.kb.store.database import get
from partita.serve import answers
from partita.serve.bodies import LARGEST
from partita.serve.desk import Desk, Kept
from partita.serve.errors import Json
from partita.serve.honesty import honesty
from partita.serve.listing import Wanted, page_of
from partita.serve.security import Reader, only_known

Offset = Annotated[int, Query(ge=0, le=LARGEST, description="How many to pass over.")]
Id = Annotated[str, Path(max_length=1000, description="An id, such as E3.")]


def router(desk: Desk) -> APIRouter:
    """The calls, answered by a desk."""
    routes = APIRouter(tags=["read"], dependencies=[Depends(only_known)], default_response_class=Json)

    @routes.get("/entities", response_model=answers.Page)
    async def entities(
        _: Reader,
        query: Annotated[str | None, Query(max_length=500, description="Words to search for.")] = None,
        sort: Annotated[
            Literal["size", "sure", "recent", "name"],
            Query(description="In which order; what a search finds comes with the best match first."),
        ] = "size",
        min_size: Annotated[int, Query(ge=1, le=LARGEST, description="Fragments, at least.")] = 1,
        where: Annotated[
            list[str], Query(description="attribute=value: of which a fragment says so; may be repeated.")
        ] = [],  # noqa: B006
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        offset: Offset = 0,
    ) -> Response:
        """Entities: all of them, those that a search finds, or those with some values."""
        wanted = Wanted(query or None, sort, min_size, conditions(where))
        return Json(await desk.read(page_of, desk.kept, wanted, limit, offset))

    @routes.get("/entities/{id}", response_model=answers.Shown)
    async def entity(
        _: Reader,
        id: Id,
        as_of: Annotated[
            str | None, Query(max_length=100, description="The number of an event, or a time.")
        ] = None,
    ) -> Response:
        """An entity: its values with their probabilities and sources, its fragments, and what has happened to it."""
        return Json(await desk.read(entity_in_full, id, moment(as_of)))

    @routes.get("/entities/{id}/rows", response_model=answers.Rows)
    async def rows(
        _: Reader, id: Id, limit: Annotated[int, Query(ge=1, le=1000)] = 100, offset: Offset = 0
    ) -> Response:
        """An entity's fragments beside one another, and where each differs from most of them."""
        found = await desk.read(all_rows, desk.kept, id)
        return Json(found | {"rows": [row.as_dict() for row in found["rows"][offset : offset + limit]]})

    @routes.get("/entities/{id}/alternatives", response_model=answers.Alternatives)
    async def alternatives(_: Reader, id: Id, limit: Annotated[int, Query(ge=1, le=100)] = 10) -> Response:
        """What else an entity may be: the clusterings of its fragments, and of those they might be with."""
        return Json(await desk.ask(kept_answer, desk.kept, "alternatives", id, limit))

    @routes.get("/entities/{id}/together", response_model=answers.Matrix)
    async def together(_: Reader, id: Id, limit: Annotated[int, Query(ge=1, le=400)] = 400) -> Response:
        """How probably an entity's fragments, and those they might be with, are together, two by two."""
        return Json(await desk.ask(kept_answer, desk.kept, "matrix", id, limit))

    @routes.get("/fragments/{id:path}", response_model=answers.Piece)
    async def fragment(_: Reader, id: Id) -> Response:
        """A fragment, as it came, and the entity that it is of."""
        return Json(await desk.read(one_fragment, id))

    @routes.get("/explain", response_model=answers.Explanation)
    async def explain(
        _: Reader,
        first: Annotated[str, Query(min_length=1, max_length=1000, description="A fragment, or an entity.")],
        second: Annotated[str, Query(min_length=1, max_length=1000, description="Another one.")],
    ) -> Response:
        """Why two fragments, or entities, are together or apart: the evidence of each attribute in nats."""
        return Json(await desk.ask(explained, desk, first, second))

    @routes.get("/questions", response_model=answers.Questions)
    async def questions(
        _: Reader,
        limit: Annotated[int, Query(ge=1, le=200)] = 10,
        blind: Annotated[bool, Query(description="Without what might sway the one who answers.")] = False,
        passed: Annotated[
            list[str], Query(description="first,second: a pair to pass over; may be repeated.")
        ] = [],  # noqa: B006
    ) -> Response:
        """The questions that are worth a human's time, the most useful first."""
        return Json(await desk.ask(asked, desk, limit, blind, pairs(passed)))

    @routes.get("/judgements", response_model=answers.Judgements)
    async def judgements(
        _: Reader, limit: Annotated[int, Query(ge=1, le=1000)] = 100, offset: Offset = 0
    ) -> Response:
        """What humans have judged, the last first; those that were undone as well."""
        found = await desk.read(lambda kb: kb.judgements()[::-1])
        page = [row.as_dict() for row in found[offset : offset + limit]]
        return Json({"total": len(found), "judgements": page})

    @routes.get("/stats", response_model=dict[str, Any])
    async def statistics(_: Reader) -> Response:
        """How much there is of everything."""
        return Json(await desk.read(counted, desk.kept))

    @routes.get("/schema", response_model=answers.Schema)
    async def schema(_: Reader) -> Response:
        """The attributes, how each is compared, and by which of them entities are named."""
        return Json(await desk.read(described, desk.kept))

    @routes.get("/honesty", response_model=answers.Honesty)
    async def honest(_: Reader) -> Response:
        """How sure the entities are, which are most at risk, and how probabilities compare with what is known."""
        return Json(await desk.ask(honesty, desk.kept))

    return routes


# ---------------------------------------------------------------------- what is asked


def conditions(where: list[str]) -> tuple[tuple[str, str], ...]:
    """Attributes and values, of texts such as city=London."""
    found = []
    for text in where:
        attribute, divider, value = text.partition("=")
        if not divider or not attribute.strip() or not value.strip():
            raise ValueError(f"where: {text!r} is no condition: write ATTRIBUTE=VALUE, such as city=London")
        found.append((attribute.strip(), value.strip()))
    return tuple(found)


def moment(text: str | None) -> int | datetime | None:
    """The number of an event, or a time."""
    if text is None:
        return None
    if text.isascii() and text.isdecimal():
        return int(text)
    try:
        found = datetime.fromisoformat(text)
        found.astimezone()
    except (ValueError, OverflowError):
        wanted = "the number of an event nor a time such as 2026-01-31T09:30"
        raise ValueError(f"{text!r} is neither {wanted}") from None
    return found


def pairs(passed: list[str]) -> list[tuple[str, str]]:
    """Pairs of ids, of texts such as a,b; an id with a comma in it is no trouble where it is clear what is meant."""
    found = []
    for text in passed:
        parts = text.split(",")
        if len(parts) < 2:
            raise ValueError(f"passed: {text!r} is no pair: write FIRST,SECOND")
        found += [(",".join(parts[:k]), ",".join(parts[k:])) for k in range(1, len(parts))]
    return found


# ---------------------------------------------------------------------- what the knowledge base answers


def entity_in_full(kb: KnowledgeBase, id: str, as_of: int | datetime | None) -> dict[str, Any]:
    """An entity with its events; as of a moment, those up to it."""
    found = kb.entity(id, as_of=as_of)
    number = None
    if as_of is not None:
        with kb.store.reading() as connection:
            number = moment_of(connection, as_of)
    events = [
        event.as_dict() for event in kb.events(entity=found.id) if number is None or event.number <= number
    ]
    return found.as_dict() | {"size": len(found.fragments), "events": events, "as_of": number}


def all_rows(kb: KnowledgeBase, kept: Kept, id: str) -> dict[str, Any]:
    """All rows of an entity, and the attributes in order."""

    def make() -> dict[str, Any]:
        rows = kb.rows(id)
        attributes = dict.fromkeys(name for row in rows for name in row.properties)
        return {"total": len(rows), "attributes": list(attributes), "rows": rows}

    found: dict[str, Any] = kept(("rows", id), make)
    return found


def one_fragment(kb: KnowledgeBase, id: str) -> dict[str, Any]:
    """A fragment and its entity."""
    fragment, entity = kb.fragment(id), kb.entity_of(id)
    found = {"id": fragment.id, "source": fragment.source, "properties": fragment.properties}
    return found | {"entity": {"id": entity.id, "name": entity.name, "size": len(entity.fragments)}}


def kept_answer(kb: KnowledgeBase, kept: Kept, method: str, *arguments: Any) -> dict[str, Any]:
    """What a method of the knowledge base answers, as JSON can hold it; worked out once a moment."""
    found: dict[str, Any] = kept((method, *arguments), lambda: getattr(kb, method)(*arguments).as_dict())
    return found


def explained(kb: KnowledgeBase, desk: Desk, first: str, second: str) -> dict[str, Any]:
    """An explanation."""
    return kept_answer(kb, desk.kept, "explain", first, second)


HIDDEN = ("probability", "value", "reason", "kind")  # from those who are to answer blindly


def asked(
    kb: KnowledgeBase, desk: Desk, limit: int, blind: bool, passed: list[tuple[str, str]]
) -> dict[str, Any]:
    """Questions, and how many pairs are expected to be wrong; none where there is nothing to ask about."""
    if is_empty(kb):
        return {"questions": [], "expected_wrong_pairs": 0.0}
    key = ("questions", limit, tuple(passed))
    found = desk.kept(key, lambda: [one.as_dict() for one in kb.uncertain(limit, passed=passed)])
    if blind:
        found = [{name: value for name, value in one.items() if name not in HIDDEN} for one in found]
    return {"questions": found, "expected_wrong_pairs": wrong_pairs(kb, desk)}


def wrong_pairs(kb: KnowledgeBase, desk: Desk) -> float:
    """How many pairs are expected to be wrong."""
    return desk.kept("wrong pairs", kb.wrong_pairs)


def counted(kb: KnowledgeBase, kept: Kept) -> dict[str, Any]:
    """How much there is of everything; another process may have changed the settings."""
    with kb.store.reading() as connection:
        settings = get(connection, "settings")
        return kept("stats", lambda: stats(connection, kb.store, settings))


def described(kb: KnowledgeBase, kept: Kept) -> dict[str, Any]:
    """The schema, and its attributes; none of these before anything is learnt."""

    def make() -> dict[str, Any]:
        with kb.store.reading() as connection:
            model, settings = get(connection, "model"), get(connection, "settings")
        toml = kb.schema
        attributes = {} if model is None else model["attributes"]
        return {
            "toml": toml,
            "attributes": [
                {"name": name, "kind": "ignored" if own is None else str(own["kind"])}
                for name, own in attributes.items()
            ],
            "named_by": settings.get("named_by") or [],
        }

    found: dict[str, Any] = kept("schema", make)
    return found


def is_empty(kb: KnowledgeBase) -> bool:
    """Whether nothing has been learnt yet."""
    with kb.store.reading() as connection:
        return not get(connection, "settings")["learnt_from"]
