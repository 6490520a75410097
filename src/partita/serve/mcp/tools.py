"""Which tools there are: what each is for, in words for agents, and what they may rely on."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import mcp_types as types

from partita.serve.desk import Desk
from partita.serve.mcp import arguments as args
from partita.serve.mcp import reading, writing

Call = Callable[[Desk, Any], Coroutine[Any, Any, dict[str, Any]]]

READS = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
ANSWERS = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
TAKES_BACK = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
)
REPLACES = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)


class Tool(NamedTuple):
    """A tool.

    Attributes
    ----------
    name, title, description : str
    arguments : type
        What it takes, as a model that checks it.
    keys : tuple of str
        What its answers have in any case.
    call : callable
        From a desk and arguments to the answer.
    hints : ToolAnnotations
        What clients may rely on.
    """

    name: str
    title: str
    description: str
    arguments: type[args.Arguments]
    keys: tuple[str, ...]
    call: Call
    hints: types.ToolAnnotations = READS

    def listed(self) -> types.Tool:
        """As the protocol lists it."""
        schema = self.arguments.model_json_schema()
        output = {"type": "object", "properties": {key: {} for key in self.keys}, "required": list(self.keys)}
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=bare(schema),
            output_schema=output,
            annotations=self.hints,
        )


def bare(schema: Any) -> Any:
    """A schema without the titles and docstrings that models put into it, which tell an agent nothing."""
    if isinstance(schema, list):
        return [bare(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        name: bare(one) for name, one in schema.items() if not (name == "title" and isinstance(one, str))
    }
    if "properties" in found and isinstance(schema["properties"], dict):
        found["properties"] = {name: bare(one) for name, one in schema["properties"].items()}
        found.pop("description", None)
    return found


def readers() -> list[Tool]:
    """The tools that change nothing."""
    return [
        Tool(
            "search",
            "Search entities",
            "Find entities by words of what their fragments say; a misspelt word finds the nearest.",
            args.Search,
            ("entities",),
            reading.search,
        ),
        Tool(
            "entities",
            "List entities",
            "List entities in an order, such as the least sure first, a page at a time.",
            args.Entities,
            ("total", "entities", "next"),
            reading.entities,
        ),
        Tool(
            "show",
            "Show an entity or a fragment",
            "An entity: its values, each with its probability and sources, and the ids of its fragments; or a fragment "
            "and the entity that it is of. What does not fit is counted under left_out; rows has all of an entity.",
            args.Show,
            ("id", "properties"),
            reading.show,
        ),
        Tool(
            "rows",
            "Compare an entity's fragments",
            "An entity's fragments beside one another, a page at a time: what each says, how probably it belongs, and "
            "where it differs from most of them.",
            args.Rows,
            ("total", "rows", "next"),
            reading.rows,
        ),
        Tool(
            "match",
            "Match a record",
            "Which entities a record may be of, how probable each is, and why, attribute by attribute in nats; 'new' "
            "stands for none of them. Nothing is added.",
            args.Match,
            ("matches",),
            reading.match,
        ),
        Tool(
            "explain",
            "Explain a pair",
            "Why two fragments, or entities, are together or apart: steps of evidence in nats, above 0 for the same, "
            "that sum to log_odds; the probability that they are the same; and the judgements that bind them, if any.",
            args.Pair,
            ("first", "second", "probability", "log_odds", "steps"),
            reading.explain,
        ),
        Tool(
            "questions",
            "Questions worth asking",
            "The pairs of fragments whose answers would remove most errors, the most useful first, and how many pairs "
            "are expected to be wrong in all. Look at both sides before answering.",
            args.Questions,
            ("questions", "expected_wrong_pairs"),
            reading.questions,
        ),
        Tool(
            "stats",
            "Statistics",
            "How much there is of everything, which attributes there are, and which name the entities.",
            args.Nothing,
            ("fragments", "entities", "events", "attributes", "named_by"),
            reading.stats,
        ),
        Tool(
            "events",
            "What has happened",
            "Entities created, merged, split, renamed, and what was judged: the last events, or those since a moment.",
            args.Events,
            ("events", "next"),
            reading.events,
        ),
    ]


def writers(user: str) -> list[Tool]:
    """The tools that change something."""
    calls = writing.tools(user)
    return [
        Tool(
            "answer",
            "Record a judgement",
            "Say that two fragments or entities are the same, are not, or cannot be told apart, or that an entity is "
            "several things. It binds: everything is worked out again so that it holds. undo takes it back.",
            args.Answer,
            ("judgement", "kind", "events", "n_events", "expected_wrong_pairs"),
            calls["answer"],
            ANSWERS,
        ),
        Tool(
            "undo",
            "Take a judgement back",
            "Take a judgement back: the last one, whoever gave it, or one by its number.",
            args.Undo,
            ("undone", "events", "n_events", "expected_wrong_pairs"),
            calls["undo"],
            TAKES_BACK,
        ),
        Tool(
            "add",
            "Add fragments",
            "Take records in; each goes to the entity that it fits best, or makes a new one. One whose id is known "
            "replaces what was there.",
            args.Add,
            ("added", "updated", "unchanged", "events", "n_events"),
            calls["add"],
            REPLACES,
        ),
    ]
