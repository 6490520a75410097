"""What the calls answer, for the OpenAPI document: its schemas, and an example of each.

Answers are made of what the knowledge base returns and not checked against these when they are sent; the tests do.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from partita.kb.queries.alternatives import Alternatives as Alternatives
from partita.kb.queries.alternatives import Matrix as Matrix
from partita.kb.queries.answers import Value
from partita.kb.queries.explain import Explanation as Explanation
from partita.kb.queries.match import Match
from partita.kb.queries.risk import AtRisk
from partita.kb.queries.rows import Row

ADA = {"name": [{"value": "Ada Lovelace", "probability": 0.98, "sources": ["crm", "web"]}]}
HAPPENED = {
    "number": 12,
    "at": "2026-01-31T09:30:00.000+00:00",
    "kind": "merged",
    "entity": "E3",
    "other": "E9",
    "fragment": None,
    "fragments": ["a8"],
    "from": "E9",
    "to": "E3",
    "detail": {"judgement": 1},
}


class Answer(BaseModel):
    """An answer: nothing in it but what it says."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


def example(value: dict[str, Any]) -> ConfigDict:
    """The settings of an answer with an example."""
    return ConfigDict(extra="forbid", populate_by_name=True, json_schema_extra={"examples": [value]})


class Problem(Answer):
    """What was wrong with a request, and how to mend it."""

    kind: Literal[
        "not_found",
        "invalid",
        "conflict",
        "forbidden",
        "unauthorized",
        "too_large",
        "unavailable",
        "internal",
    ]
    message: str


class Refusal(Answer):
    """An error."""

    error: Problem
    model_config = example(
        {"error": {"kind": "not_found", "message": "there is no entity 'E999': ids are such as E1"}}
    )


class Health(Answer):
    """That the service is there."""

    status: Literal["ok"]
    version: str
    model_config = example({"status": "ok", "version": "0.2.0"})


class Happened(Answer):
    """An event: what it took from where to where."""

    number: int
    at: str
    kind: str
    entity: str | None
    other: str | None
    fragment: str | None
    fragments: list[str]
    from_: str | None = Field(alias="from")
    to: str | None
    detail: dict[str, Any]


class Line(Answer):
    """An entity in a list; with a score, where it was searched for."""

    id: str
    name: str | None
    size: int
    probability: float
    summary: list[str]
    matches: list[str]
    score: float | None = None


class Page(Answer):
    """Some entities, how many there are, and the offset of the next ones."""

    total: int
    entities: list[Line]
    next: int | None
    model_config = example(
        {
            "total": 1,
            "entities": [
                {
                    "id": "E3",
                    "name": "Ada Lovelace",
                    "size": 2,
                    "probability": 0.97,
                    "summary": ["mathematics", "1815-12-10"],
                    "matches": ["Ada Lovelace"],
                    "score": 3.2,
                }
            ],
            "next": None,
        }
    )


class Shown(Answer):
    """An entity, with what has happened to it."""

    id: str
    name: str | None
    properties: dict[str, list[Value]]
    fragments: list[str]
    probability: float
    merged_from: str | None
    size: int
    events: list[Happened]
    as_of: int | None
    model_config = example(
        {
            "id": "E3",
            "name": "Ada Lovelace",
            "properties": ADA,
            "fragments": ["a7", "a8"],
            "probability": 0.97,
            "merged_from": None,
            "size": 2,
            "events": [HAPPENED],
            "as_of": None,
        }
    )


class Rows(Answer):
    """An entity's fragments beside one another."""

    total: int
    attributes: list[str]
    rows: list[Row]


class Home(Answer):
    """The entity that a fragment is of."""

    id: str
    name: str | None
    size: int


class Piece(Answer):
    """A fragment, as it came."""

    id: str
    source: str | None
    properties: dict[str, list[Any]]
    entity: Home
    model_config = example(
        {
            "id": "a7",
            "source": "crm",
            "properties": {"name": ["Ada Lovelace"], "born": ["1815-12-10"]},
            "entity": {"id": "E3", "name": "Ada Lovelace", "size": 2},
        }
    )


class Asked(Answer):
    """A question; blind ones are without what might sway the one who answers."""

    first: str
    second: str
    first_entity: str
    second_entity: str
    first_properties: dict[str, list[Any]]
    second_properties: dict[str, list[Any]]
    first_size: int
    second_size: int
    probability: float | None = None
    value: float | None = None
    kind: str | None = None
    reason: str | None = None


class Questions(Answer):
    """Questions, the most useful first, and how many pairs are expected to be wrong."""

    questions: list[Asked]
    expected_wrong_pairs: float


class Said(Answer):
    """What a human has judged, of which fragments, and whether it was taken back."""

    number: int
    kind: str
    first: str
    second: str
    sides: list[list[str]]
    user: str
    at: str
    undone_by: str | None
    undone_at: str | None


class Judgements(Answer):
    """What humans have judged."""

    total: int
    judgements: list[Said]


class Judged(Answer):
    """A judgement, and what came of it."""

    judgement: int
    kind: str
    first: str
    second: str
    sides: list[list[str]]
    user: str
    events: list[Happened]
    expected_wrong_pairs: float
    model_config = example(
        {
            "judgement": 1,
            "kind": "confirm",
            "first": "a7",
            "second": "a8",
            "sides": [["a7"], ["a8"]],
            "user": "ann",
            "events": [HAPPENED],
            "expected_wrong_pairs": 3.5,
        }
    )


class Undone(Answer):
    """A judgement that was taken back, and what came of it."""

    undone: int
    events: list[Happened]
    expected_wrong_pairs: float


class Added(Answer):
    """What has become of fragments that were sent."""

    added: int
    updated: int
    unchanged: int
    events: list[Happened]


class Matches(Answer):
    """Where a record would go, the most probable first."""

    matches: list[Match]


class Results(Answer):
    """Where each of several records would go, in the order of these."""

    results: list[Matches]


class Events(Answer):
    """What has happened, and after which event the next ones come."""

    events: list[Happened]
    next: int | None
    model_config = example({"events": [HAPPENED], "next": None})


class Described(Answer):
    """An attribute, and how it is compared."""

    name: str
    kind: str


class Schema(Answer):
    """The attributes, and by which of them entities are named."""

    toml: str
    attributes: list[Described]
    named_by: list[list[str]]


class Sureness(Answer):
    """How many entities, of how many fragments, are so sure."""

    from_: float = Field(alias="from")
    to: float
    entities: int
    fragments: int


class Bin(Answer):
    """Pairs of a range of probabilities: their mean, and how many of them are the same."""

    from_: float = Field(alias="from")
    to: float
    pairs: int
    mean: float | None
    true: float | None


class Curve(Answer):
    """Probabilities against what is known, by labels or by what was judged since."""

    source: Literal["labels", "judgements"]
    bins: list[Bin]
    n: int
    expected_calibration_error: float
    brier: float


class Honesty(Answer):
    """How sure the entities are, which are most at risk, and how probabilities have fared."""

    sureness: list[Sureness]
    risk: list[AtRisk]
    calibration: Curve | None


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal, "description": description}
    for status, description in {
        401: "a token is needed",
        403: "the token, or the page that asks, may not do that",
        404: "there is nothing of that id",
        409: "it contradicts what was judged before",
        413: "the request is too large",
        415: "the request is not JSON",
        422: "the request is not as it should be",
        503: "the service is stopping, or its store cannot be reached",
    }.items()
}
