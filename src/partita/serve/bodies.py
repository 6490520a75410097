"""What requests and answers look like: the forms that are checked, and the examples of the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from partita.serve.security import UNPRINTABLE

MOST_FRAGMENTS = 1000  # of a request
MOST_RECORDS = 200
LARGEST = (1 << 63) - 1  # number that a table holds


def printable(text: str) -> str:
    """The text, unless no database holds it."""
    if UNPRINTABLE.search(text):
        raise ValueError("there is a NUL or a lone surrogate in it, which is no character")
    return text


Text = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(printable)]
User = Annotated[str | None, Field(max_length=200), AfterValidator(lambda name: name and printable(name))]
Record = Annotated[dict[str, Any], Field(min_length=1)]


class Body(BaseModel):
    """A request's body: nothing in it but what it says."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Fragments(Body):
    """Fragments to add: flat, or with their properties apart, as ``partita add`` takes them."""

    fragments: Annotated[list[Record], Field(min_length=1, max_length=MOST_FRAGMENTS)]

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "examples": [
                {
                    "fragments": [
                        {"id": "a7", "source": "crm", "name": "Ada Lovelace", "born": "1815-12-10"},
                        {"id": "a8", "source": "web", "properties": {"name": ["A. Lovelace", "Ada King"]}},
                    ]
                }
            ]
        },
    )


class Records(Body):
    """A record, or several, of which it is asked where they would go."""

    record: Record | None = None
    records: Annotated[list[Record], Field(min_length=1, max_length=MOST_RECORDS)] | None = None
    limit: Annotated[int, Field(ge=1, le=50)] = 5

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "examples": [{"record": {"name": "Ada Lovelace", "born": "1815-12-10"}, "limit": 3}]
        },
    )

    @model_validator(mode="after")
    def one_of_them(self) -> Records:
        """Exactly one of the two."""
        if (self.record is None) == (self.records is None):
            raise ValueError("give either a record, or records")
        return self


class Judgement(Body):
    """What a human says of two fragments or entities, or of the parts of one entity."""

    kind: Literal["confirm", "separate", "unsure", "split"]
    first: Text | None = None
    second: Text | None = None
    entity: Text | None = None
    fragments: Annotated[list[Text], Field(min_length=1, max_length=10_000)] | None = None
    by: Text | None = None
    user: User = None

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "examples": [
                {"kind": "confirm", "first": "a7", "second": "a8"},
                {"kind": "separate", "first": "E3", "second": "E9", "user": "ann"},
                {"kind": "split", "entity": "E3", "fragments": ["a8"]},
                {"kind": "split", "entity": "E3", "by": "born"},
            ]
        },
    )

    @model_validator(mode="after")
    def complete(self) -> Judgement:
        """What the kind needs, and nothing else."""
        given = {
            name
            for name in ("first", "second", "entity", "fragments", "by")
            if getattr(self, name) is not None
        }
        ways = [{"entity", "fragments"}, {"entity", "by"}] if self.kind == "split" else [{"first", "second"}]
        if given not in ways:
            wanted = " or ".join(" and ".join(sorted(way)) for way in ways)
            raise ValueError(f"{self.kind} takes {wanted}")
        return self


class Undo(Body):
    """Which judgement to take back: the last one, unless it is named."""

    judgement: Annotated[int, Field(ge=1, le=LARGEST)] | None = None
    user: User = None

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"judgement": 3, "user": "ann"}, {}]}
    )
