"""The tools that read: what each answers, with the keys that the command line prints with ``--json``."""

from __future__ import annotations

from typing import Any

from partita.kb import KnowledgeBase
from partita.kb.queries.golden import attributes_of
from partita.serve.desk import Desk
from partita.serve.listing import Wanted, page_of
from partita.serve.mcp import arguments as args
from partita.serve.mcp.sizes import cut, paged
from partita.serve.reading import asked, conditions, explained, moment, one_fragment
from partita.serve.reconcile.naming import naming


async def search(desk: Desk, given: args.Search) -> dict[str, Any]:
    """Entities by words."""
    found = [one.as_dict() for one in await desk.read(lambda kb: kb.search(given.query, limit=given.limit))]
    return {"entities": paged(found, 0)[0]}


async def entities(desk: Desk, given: args.Entities) -> dict[str, Any]:
    """A page of the list of entities."""
    where = conditions([f"{name}={value}" for name, value in given.where.items()])
    wanted = Wanted(None, given.sort, given.min_size, where)
    page = await desk.read(page_of, desk.kept, wanted, given.limit, given.offset)
    shown, following = paged(page["entities"], given.offset, page["total"])
    return {"total": page["total"], "entities": shown, "next": following if shown else None}


async def show(desk: Desk, given: args.Show) -> dict[str, Any]:
    """An entity or a fragment."""
    return await desk.read(shown, given.id, given.as_of)


def shown(kb: KnowledgeBase, id: str, as_of: str) -> dict[str, Any]:
    """A fragment with its entity, if one has the id; else an entity."""
    if not as_of and is_fragment(kb, id):
        return cut(one_fragment(kb, id))
    try:
        found = kb.entity(id, as_of=moment(as_of or None))
    except KeyError:
        if not is_fragment(kb, id):
            raise
        found = kb.entity(kb.entity_of(id).id, as_of=moment(as_of))
    return cut(found.as_dict() | {"size": len(found.fragments)})


def is_fragment(kb: KnowledgeBase, id: str) -> bool:
    """Whether a fragment has this id."""
    try:
        kb.fragment(id)
    except KeyError:
        return False
    return True


async def rows(desk: Desk, given: args.Rows) -> dict[str, Any]:
    """A page of an entity's fragments."""
    return await desk.read(rows_of, given)


def rows_of(kb: KnowledgeBase, given: args.Rows) -> dict[str, Any]:
    """The same, of one moment."""
    id = kb.entity_of(given.id).id if is_fragment(kb, given.id) else given.id
    all_of_it = kb.rows(id)
    page = [row.as_dict() for row in all_of_it[given.offset : given.offset + given.limit]]
    shown, following = paged(page, given.offset, len(all_of_it))
    return {"total": len(all_of_it), "rows": shown, "next": following if shown else None}


async def match(desk: Desk, given: args.Match) -> dict[str, Any]:
    """Where a record would go."""
    found = await desk.ask(lambda kb: kb.match({"properties": given.record}, given.limit))
    return {"matches": paged([place.as_dict() for place in found], 0)[0]}


async def explain(desk: Desk, given: args.Pair) -> dict[str, Any]:
    """Why two are together or apart."""
    return cut(await desk.ask(explained, desk, given.first, given.second))


async def questions(desk: Desk, given: args.Questions) -> dict[str, Any]:
    """What is worth asking."""
    passed = [(first, second) for first, second in given.passed]
    found = await desk.ask(asked, desk, given.limit, False, passed)
    return found | {"questions": paged(found["questions"], 0)[0]}


async def stats(desk: Desk, given: args.Nothing) -> dict[str, Any]:
    """How much there is, and which attributes."""
    return await desk.read(stats_of)


def stats_of(kb: KnowledgeBase) -> dict[str, Any]:
    """The same, of one moment."""
    with kb.store.reading() as connection:
        attributes = attributes_of(connection)
    most = 200
    more = {"attributes_left_out": len(attributes) - most} if len(attributes) > most else {}
    return kb.stats() | {"attributes": attributes[:most], "named_by": naming(kb)} | more


async def events(desk: Desk, given: args.Events) -> dict[str, Any]:
    """What has happened: after a moment, or last."""
    return await desk.read(events_of, given)


def events_of(kb: KnowledgeBase, given: args.Events) -> dict[str, Any]:
    """The same, of one moment."""
    entity = given.entity or None
    if given.since:
        found = kb.events(since=moment(given.since), entity=entity, limit=given.limit + 1)
        shown, end = paged([event.as_dict() for event in found[: given.limit]], 0, len(found))
        return {"events": shown, "next": None if end is None else shown[-1]["number"]}
    last = kb.events(entity=entity)[-given.limit :] if entity else last_events(kb, given.limit)
    return {"events": paged([event.as_dict() for event in last], 0)[0], "next": None}


def last_events(kb: KnowledgeBase, limit: int) -> list[Any]:
    """The last events; their numbers have no gaps."""
    return kb.events(since=max(int(kb.stats()["events"]) - limit, 0))
