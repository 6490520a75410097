"""Schemas of records: inferred from data, written as TOML and read again; fitted models as JSON."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from partita.models.base import plain
from partita.models.records.corpus import Corpus
from partita.models.records.fragments import as_text
from partita.models.records.kinds import Attribute, Category, Column, Noted, Text
from partita.models.registry import KINDS, found

LOOKED_AT = 5000  # fragments that a schema is inferred from
LEARNT = ("corpus", "references", "kin", "by_chance", "noted")  # what only data give an attribute


# ---------------------------------------------------------------------- inference


def inferred(fragments: list[dict[str, list[Any]]]) -> dict[str, Attribute | None]:
    """Attributes and their kinds."""
    check_readable(fragments)
    if len(fragments) > LOOKED_AT:
        rows = np.random.default_rng(0).permutation(len(fragments))[:LOOKED_AT]
        looked_at = [fragments[row] for row in rows]
    else:
        looked_at = fragments
    names = dict.fromkeys(name for fragment in fragments for name in fragment)
    values: dict[str, list[Any]] = {name: [] for name in names}
    mentions = dict.fromkeys(names, 0)
    for fragment in looked_at:
        for name, said in fragment.items():
            values[name] += said
            mentions[name] += 1
    if not names:
        raise ValueError("there is nothing to infer a schema from: no fragment says anything")
    found: dict[str, Attribute | None] = {}
    for name, said in values.items():
        kind, reason = chosen(Column(name, said)) if len(names) > 1 else (Text, "it is the only attribute")
        distinct = len({kind().parse(value) for value in said})
        found[name] = kind(noted=Noted(reason, len(looked_at), mentions[name], len(said), distinct))
    return found if len(names) == 1 else found | {"*": Category()}


def check_readable(fragments: list[dict[str, list[Any]]]) -> None:
    """Raise ValueError for the first value that is none."""
    for row, fragment in enumerate(fragments):
        for name, values in fragment.items():
            try:
                for value in values:
                    as_text(value)
            except ValueError as error:
                raise ValueError(f"row {row}, attribute {name!r}: {error}") from None


def kind_of(values: list[Any], name: str = "") -> Attribute:
    """The kind that suits an attribute with such values."""
    kind, _ = chosen(Column(name, values))
    return kind()


def chosen(column: Column) -> tuple[type[Attribute], str]:
    """The kind that suits an attribute, and why."""
    for kind in KINDS.values():
        if reason := kind.why(column):
            return kind, reason
    return Text, "the values are of no other kind"


# ---------------------------------------------------------------------- TOML


def to_toml(model: Any) -> str:
    """See :meth:`Record.to_toml`."""
    lines = [f"rate = {float(model.rate)!r}", ""]
    if model.name is not None:
        lines.insert(1, f"name = {in_toml(list(model.name))}")
    for name, attribute in (model.attributes or {}).items():
        lines.append(f"[attributes.{in_toml(name)}]")
        if attribute is None:
            lines += ['kind = "ignore"', ""]
            continue
        lines.append(f'kind = "{attribute.kind}"')
        for parameter in parameters_of(attribute):
            value = getattr(attribute, parameter)
            lines.append(f"{parameter} = {json.dumps(plain(value))}")
        lines.append("")
    return "\n".join(lines)


def in_toml(value: Any) -> str:
    """A text, or a list of texts, as TOML writes it."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # which TOML has escaped


def from_toml(kind: Any, text: Any) -> Any:
    """See :meth:`Record.from_toml`."""
    if isinstance(text, Path):
        text = text.read_text(encoding="utf-8")
    if not isinstance(text, str):
        what = type(text).__name__
        raise TypeError(f"a schema must be TOML as a str, or the pathlib.Path of a file with it, got {what}")
    try:
        contents = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"the schema is not TOML: {error}") from None
    unknown = set(contents) - {"rate", "name", "attributes"}
    if unknown:
        raise ValueError(f"the schema has unknown entries: {', '.join(sorted(unknown))}")
    described = contents.get("attributes")
    if not isinstance(described, dict) or not described:
        raise ValueError("the schema needs a table [attributes.NAME] for each attribute")
    attributes = {name: attribute_from(name, table) for name, table in described.items()}
    model = kind(attributes, contents.get("rate", 2.0), name=contents.get("name"))
    model.check(1)
    return model


def attribute_from(name: str, table: Any) -> Attribute | None:
    """The attribute that a table describes."""
    kinds = ", ".join(map(repr, [*KINDS, "ignore"]))
    if not isinstance(table, dict) or not isinstance(table.get("kind"), str):
        raise ValueError(f"attribute {name!r} needs kind = one of {kinds}")
    given = dict(table)
    kind = given.pop("kind")
    if kind == "ignore":
        return None
    known = found(KINDS, kind)
    if known is None:
        raise ValueError(
            f"attribute {name!r} has kind {kind!r}; it must be one of {kinds}, or one of your own: import the module "
            "that registers it, or name that in PARTITA_IMPORT"
        )
    allowed = parameters_of(known)
    for parameter, value in given.items():
        if parameter not in allowed:
            listed = ", ".join(allowed)
            raise ValueError(f"attribute {name!r}: {kind} has no {parameter!r}; it has {listed}")
        several = isinstance(getattr(known, parameter, None), tuple)
        numbers = value if several and isinstance(value, list) else [value]
        if several != isinstance(value, list) or not all(
            isinstance(n, int | float) and not isinstance(n, bool) and math.isfinite(n) for n in numbers
        ):
            what = "finite numbers in a list" if several else "a finite number"
            raise ValueError(f"attribute {name!r}: {parameter} must be {what}, got {value!r}")
        given[parameter] = tuple(value) if several else value
    attribute: Attribute = known(**given)
    return attribute


def parameters_of(attribute: Any) -> list[str]:
    """The names of an attribute's hyperparameters."""
    return [entry.name for entry in fields(attribute) if entry.name not in LEARNT]


# ---------------------------------------------------------------------- JSON


def to_json(model: Any) -> dict[str, Any]:
    """See :meth:`Record.to_json`."""
    attributes = {
        name: None
        if attribute is None
        else {
            "kind": attribute.kind,
            "corpus": attribute.corpus.counts,
            "references": list(attribute.references),
            "kin": attribute.kin,
            "by_chance": list(attribute.by_chance),
            "noted": None if attribute.noted is None else attribute.noted._asdict(),
        }
        | {parameter: getattr(attribute, parameter) for parameter in parameters_of(attribute)}
        for name, attribute in (model.attributes or {}).items()
    }
    presence = None if model.presence is None else dict(model.presence)
    types = None if model.types is None else [[weight, dict(shares)] for weight, shares in model.types]
    kept: dict[str, Any] = plain(
        {
            "attributes": attributes,
            "rate": model.rate,
            "presence": presence,
            "types": types,
            "size": model.size,
            "name": None if model.name is None else list(model.name),
        }
    )
    return kept


def from_json(kind: Any, contents: dict[str, Any]) -> Any:
    """See :meth:`Record.from_json`."""
    attributes: dict[str, Attribute | None] = {}
    for name, table in contents["attributes"].items():
        if table is None:
            attributes[name] = None
            continue
        given = dict(table)
        if "references" not in given:
            raise ValueError(
                f"attribute {name!r} was learnt by a version of Partita that weighed evidence in another way; learn it "
                "again from the data (fit_prior, or partita build)"
            )
        counts, references, kin = given.pop("corpus"), given.pop("references"), given.pop("kin")
        # which models of before do not have:
        noted, by_chance = noted_from(name, given.pop("noted", None)), tuple(given.pop("by_chance", ()))
        if not all(isinstance(n, int | float) and 0 < n < math.inf for n in counts.values()):
            raise ValueError(f"attribute {name!r}: the corpus makes no sense")
        attribute = attribute_from(name, given)
        if attribute is None:
            raise ValueError(f"attribute {name!r}: one that is ignored has nothing to it")
        if not all(isinstance(value, str) for value in references):
            raise ValueError(f"attribute {name!r}: the references make no sense")
        if not (isinstance(kin, int | float) and 0.0 <= kin < math.inf):
            raise ValueError(f"attribute {name!r}: kin must be a number of at least 0, got {kin!r}")
        attributes[name] = replace(
            attribute,
            corpus=Corpus(counts),
            references=tuple(references),
            kin=kin,
            by_chance=by_chance,
            noted=noted,
        )
    types = None if contents["types"] is None else [(weight, shares) for weight, shares in contents["types"]]
    model = kind(
        attributes, contents["rate"], contents["presence"], types, contents["size"], contents.get("name")
    )
    model.check(1)
    return model


def noted_from(name: str, table: Any) -> Noted | None:
    """What was seen of an attribute, as JSON holds it."""
    if table is None:
        return None
    try:
        noted = Noted(**table)
    except TypeError:
        raise ValueError(f"attribute {name!r}: what was noted of it makes no sense") from None
    if not (isinstance(noted.why, str) and all(isinstance(n, int) for n in noted[1:])):
        raise ValueError(f"attribute {name!r}: what was noted of it makes no sense")
    return noted
