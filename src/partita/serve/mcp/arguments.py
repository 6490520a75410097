"""What tools take: each argument with its type, its limits and what it means, as agents are told."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from partita.serve.bodies import LARGEST, printable

Id = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(printable)]
Text = Annotated[str, Field(max_length=1000), AfterValidator(printable)]
Offset = Annotated[int, Field(ge=0, le=LARGEST)]
Value = str | int | float | bool | None
Properties = dict[str, Value | list[Value]]


class Arguments(BaseModel):
    """Arguments by name, and none that the tool does not have."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)


class Nothing(Arguments):
    """No arguments."""


class Search(Arguments):
    """Words to find entities by."""

    query: Annotated[
        str,
        Field(min_length=1, max_length=500, description="Words, or how they begin."),
        AfterValidator(printable),
    ]
    limit: Annotated[int, Field(ge=1, le=50, description="How many entities at most.")] = 10


class Entities(Arguments):
    """Which entities to list, and in which order."""

    sort: Annotated[
        Literal["size", "sure", "recent", "name"],
        Field(
            description="The largest first; the least sure; those that a fragment came to last; or by name."
        ),
    ] = "size"
    min_size: Annotated[int, Field(ge=1, le=LARGEST, description="Fragments, at least.")] = 1
    where: Annotated[
        dict[Id, Text],
        Field(
            max_length=20, description='Only those of which a fragment says so, such as {"city": "London"}.'
        ),
    ] = {}
    limit: Annotated[int, Field(ge=1, le=100, description="How many at most.")] = 20
    offset: Annotated[Offset, Field(description="How many to pass over: 'next' of the page before.")] = 0


class Show(Arguments):
    """An entity or a fragment."""

    id: Annotated[
        Id,
        Field(
            description="Of an entity, such as E12, or of a fragment. 'entity:E12' is the entity in any case."
        ),
    ]
    as_of: Annotated[
        Text,
        Field(
            description="The entity as it was after an event's number, or at a time such as 2026-01-31T09:30."
        ),
    ] = ""


class Rows(Arguments):
    """An entity, and which of its fragments."""

    id: Annotated[Id, Field(description="Of an entity, or of one of its fragments.")]
    limit: Annotated[int, Field(ge=1, le=100, description="How many fragments at most.")] = 20
    offset: Annotated[Offset, Field(description="How many to pass over: 'next' of the page before.")] = 0


class Match(Arguments):
    """A record that is not in the knowledge base."""

    record: Annotated[
        Properties,
        Field(
            min_length=1,
            max_length=200,
            description='What it says, by attribute: {"name": "Ada Lovelace", "born": "1815-12-10"}; stats lists '
            "the attributes.",
        ),
    ]
    limit: Annotated[int, Field(ge=1, le=20, description="How many places at most.")] = 5


class Pair(Arguments):
    """Two fragments or entities."""

    first: Annotated[Id, Field(description="A fragment's or an entity's id.")]
    second: Annotated[Id, Field(description="Another one.")]


class Questions(Arguments):
    """Which questions."""

    limit: Annotated[int, Field(ge=1, le=20, description="How many at most.")] = 5
    passed: Annotated[
        list[Annotated[list[Id], Field(min_length=2, max_length=2)]],
        Field(max_length=200, description="Pairs of fragments to pass over: [[first, second], …]."),
    ] = []


class Events(Arguments):
    """Which events."""

    since: Annotated[
        Text,
        Field(description="After an event's number, or a time such as 2026-01-31T09:30; else the last ones."),
    ] = ""
    entity: Annotated[Text, Field(description="Only those of one entity, such as E12.")] = ""
    limit: Annotated[int, Field(ge=1, le=200, description="How many at most.")] = 20


# ---------------------------------------------------------------------- what changes something


class Answer(Arguments):
    """A judgement."""

    kind: Annotated[
        Literal["confirm", "separate", "unsure", "split"],
        Field(
            description="confirm: first and second are the same thing; separate: they are not; unsure: nobody can "
            "tell; split: the entity is several things."
        ),
    ]
    first: Annotated[Text, Field(description="Of confirm, separate, unsure: a fragment or an entity.")] = ""
    second: Annotated[Text, Field(description="Of confirm, separate, unsure: the other one.")] = ""
    entity: Annotated[Text, Field(description="Of split: the entity.")] = ""
    fragments: Annotated[
        list[Id],
        Field(
            max_length=1000, description="Of split: the fragments that are of another thing than the rest."
        ),
    ] = []
    by: Annotated[
        Text,
        Field(
            description="Of split, instead of fragments: an attribute; those with different values of it part."
        ),
    ] = ""


class Undo(Arguments):
    """Which judgement."""

    judgement: Annotated[
        int, Field(ge=0, le=LARGEST, description="The number that answer gave; 0: the last one.")
    ] = 0


class Add(Arguments):
    """Records to take in."""

    fragments: Annotated[
        list[dict[str, Any]],
        Field(
            min_length=1,
            max_length=200,
            description='Each {"id": …, "source": …, "properties": {attribute: [values]}}, or flat, as a row of a '
            "table. One whose id is known replaces what was there.",
        ),
    ]
