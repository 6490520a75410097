"""What is asked: batches of queries, and of values to fetch, as JSON within a form; checked before anything is done."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isfinite
from typing import Any, NoReturn

from partita.kb.fragments import UNSTORABLE, Scalar

TYPE = "entity"  # the one type that there is
MOST_QUERIES = 1000  # in one batch
MOST_CANDIDATES = 100  # of one query, whatever it asks for
CANDIDATES = 5  # unless it says how many
MOST_IDS = 1000  # whose values are fetched at once
MOST_PROPERTIES = 200
STRICTNESSES = ("any", "should", "all")
FIELDS = {"query", "type", "limit", "properties", "type_strict"}
LONGEST_INTEGER = 10**300  # beyond which nothing compares integers


class TooMany(ValueError):
    """A batch that is to be sent in pieces."""


@dataclass(frozen=True)
class Query:
    """One query of a batch.

    Attributes
    ----------
    id : str
        What the batch calls it.
    text : str
        What is in the cell that is reconciled; it may be empty.
    properties : dict
        From attribute to the values that other cells of the row have.
    limit : int
        How many candidates at most.
    possible : bool
        Whether anything can be of the types that it insists on.
    """

    id: str
    text: str
    properties: dict[str, list[Scalar]]
    limit: int
    possible: bool


@dataclass(frozen=True)
class Wanted:
    """Values to fetch: of these entities, for each property with its settings."""

    ids: list[str]
    properties: dict[str, dict[str, Any]]


def parsed(text: str, what: str) -> Any:
    """A JSON document; ValueError if it is none, or holds what no text or number is."""
    try:
        document = json.loads(text, parse_constant=not_json)
        json.dumps(document, ensure_ascii=False).encode()  # which lone surrogates cannot be
    except RecursionError:
        raise ValueError(f"{what}: the JSON is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError(f"{what}: the JSON has a lone surrogate, which is no character") from None
    except ValueError as error:
        raise ValueError(f"{what} cannot be read as JSON: {error}") from None
    return document


def not_json(name: str) -> NoReturn:
    """Refuse what Python takes for a number and JSON does not."""
    raise ValueError(f"{name} is no number")


# ---------------------------------------------------------------------- reconciliation


def batch(text: str) -> list[Query]:
    """The queries of a batch; ValueError names the one that is wrong."""
    document = parsed(text, "queries")
    if not isinstance(document, dict):
        raise ValueError('queries must be a JSON object such as {"q0": {"query": "Ada Lovelace"}}')
    if len(document) > MOST_QUERIES:
        raise TooMany(f"{len(document):,} queries in one batch; send at most {MOST_QUERIES:,}")
    return [query(id, given) for id, given in document.items()]


def query(id: str, given: Any) -> Query:
    """One query, checked."""
    place = f"query {id!r}"
    if not isinstance(given, dict):
        raise ValueError(f"{place} must be a JSON object with 'query' or 'properties'")
    if unknown := sorted(given.keys() - FIELDS):
        raise ValueError(f"{place} has {unknown[0]!r}, which is none of {', '.join(sorted(FIELDS))}")
    text = given.get("query", "")
    if not isinstance(text, str):
        raise ValueError(f"{place}: 'query' must be text")
    if "query" not in given and not given.get("properties"):
        raise ValueError(f"{place} needs 'query', or 'properties' with one at least")
    return Query(
        id=id,
        text=UNSTORABLE.sub("\ufffd", text).strip(),
        properties=properties_of(place, given.get("properties", [])),
        limit=limit_of(place, given.get("limit", CANDIDATES)),
        possible=is_possible(place, given.get("type", []), given.get("type_strict", "should")),
    )


def limit_of(place: str, given: Any) -> int:
    """How many candidates to return."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not given >= 1 or given != given // 1:
        raise ValueError(f"{place}: 'limit' must be a whole number of at least 1")
    return int(min(given, MOST_CANDIDATES))


def is_possible(place: str, types: Any, strict: Any) -> bool:
    """Whether an entity can be of the types that are asked for: all are of the one type, and of no other."""
    wanted = [types] if isinstance(types, str) else types
    if not isinstance(wanted, list) or not all(isinstance(one, str) for one in wanted):
        raise ValueError(f"{place}: 'type' must be the id of a type, or a list of them")
    if strict not in STRICTNESSES:
        raise ValueError(f"{place}: 'type_strict' must be one of {', '.join(STRICTNESSES)}")
    if not wanted or strict == "should":
        return True
    return TYPE in wanted if strict == "any" else set(wanted) == {TYPE}


def properties_of(place: str, given: Any) -> dict[str, list[Scalar]]:
    """What the query says beside its text: the values that say something, by attribute."""
    if not isinstance(given, list):
        raise ValueError(f"{place}: 'properties' must be a list")
    if len(given) > MOST_PROPERTIES:
        raise TooMany(f"{place} has {len(given):,} properties; send at most {MOST_PROPERTIES}")
    found: dict[str, list[Scalar]] = {}
    for one in given:
        if not isinstance(one, dict) or not isinstance(one.get("pid"), str) or "v" not in one:
            raise ValueError(f"{place}: each of 'properties' must have 'pid', a text, and 'v', what it says")
        values = one["v"] if isinstance(one["v"], list) else [one["v"]]
        said = [value_of(place, value) for value in values]
        if kept := [value for value in said if value != ""]:
            found.setdefault(one["pid"], []).extend(kept)
    return found


def value_of(place: str, given: Any) -> Scalar:
    """A value; of another entity its name, or its id; empty if it says nothing."""
    if isinstance(given, dict):
        if not isinstance(given.get("id"), str) or not isinstance(given.get("name", ""), str):
            raise ValueError(f"{place}: an entity among the values must have 'id', and may have 'name'")
        given = given.get("name") or given["id"]
    if isinstance(given, str):
        return UNSTORABLE.sub("\ufffd", given).strip()
    if isinstance(given, float) and not isfinite(given):
        raise ValueError(f"{place}: a number among the values is too large")
    if isinstance(given, int) and abs(given) > LONGEST_INTEGER:
        raise ValueError(f"{place}: a number among the values is too long; give it as text")
    if isinstance(given, int | float):
        return given
    if given is None:
        return ""
    raise ValueError(f"{place}: values are text, numbers, truth values, or entities with 'id'")


# ---------------------------------------------------------------------- data extension


def extension(text: str) -> Wanted:
    """What to fetch, checked."""
    document = parsed(text, "extend")
    if not isinstance(document, dict):
        raise ValueError(
            'extend must be a JSON object such as {"ids": ["E1"], "properties": [{"id": "name"}]}'
        )
    ids, properties = document.get("ids"), document.get("properties")
    if not isinstance(ids, list) or not all(isinstance(id, str) for id in ids):
        raise ValueError("extend: 'ids' must be a list of the ids of entities")
    if not isinstance(properties, list):
        raise ValueError("extend: 'properties' must be a list")
    if len(ids) > MOST_IDS or len(properties) > MOST_PROPERTIES:
        raise TooMany(f"extend: ask for at most {MOST_IDS:,} ids and {MOST_PROPERTIES} properties at once")
    wanted: dict[str, dict[str, Any]] = {}
    for one in properties:
        if not isinstance(one, dict) or not isinstance(one.get("id"), str):
            raise ValueError("extend: each of 'properties' must have an 'id', a text")
        settings = one.get("settings") or {}
        if not isinstance(settings, dict):
            raise ValueError(f"extend: the settings of {one['id']!r} must be a JSON object")
        wanted[one["id"]] = settings
    return Wanted(list(dict.fromkeys(ids)), wanted)
