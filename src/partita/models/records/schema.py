"""Schemas of records: inferred from data, written as TOML and read again; fitted models as JSON."""

from __future__ import annotations

import math
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from partita.models.base import plain
from partita.models.records.commented import (
    HEADING,
    IGNORED,
    MEANING,
    OF_ONE,
    PROPOSED,
    as_toml,
    comment,
    common_start,
    meaning_of_kind,
)
from partita.models.records.corpus import Corpus
from partita.models.records.fragments import as_text
from partita.models.records.kinds import (
    Attribute,
    Category,
    Column,
    Email,
    Noted,
    Number,
    PersonName,
    Phone,
    PostalCode,
    Text,
    Url,
)
from partita.models.records.kinds.number import NOTHING
from partita.models.records.lists import separator_of
from partita.models.records.nothing import DOUBTFUL, USUAL, missing_in, nowhere
from partita.models.registry import KINDS, found

LOOKED_AT = 5000  # fragments that a schema is inferred from
OF_READING = ("missing", "separator", "unreadable")  # parameters that are texts: how values are read
NO_NUMBERS = tuple(
    written for text in DOUBTFUL for written in (text, text.upper(), text.capitalize())
)  # are nothing else beside numbers
OTHER = "*"  # the attribute that stands for those not named
SPELT = (Email, PersonName, Phone, PostalCode, Url)  # kinds of texts that say the same in several spellings
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
    if not names:
        raise ValueError("there is nothing to infer a schema from: no fragment says anything")
    zeros = nowhere(looked_at)
    found: dict[str, Attribute | None] = {}
    for name in names:
        values = [fragment[name] for fragment in looked_at if name in fragment]
        own = inferred_from(name, values, zeros.get(name, ()), len(looked_at))
        if own.kind == Number.kind and len(looked_at) < len(fragments):  # what is no number would be refused
            every = [fragment[name] for fragment in fragments if name in fragment]
            own = inferred_from(name, every, zeros.get(name, ()), len(fragments))
        found[name] = own
    return found | {OTHER: Category(missing=USUAL)}


def inferred_from(name: str, values: list[list[Any]], zeros: tuple[str, ...], n: int) -> Attribute:
    """The attribute that has these values in some of n fragments, of which some zeros stand for nothing."""
    missing = missing_in([value for said in values for value in said])
    reader = Attribute(missing=missing + tuple(zero for zero in zeros if zero not in missing))
    left = [item for said in values for value in said for item in reader.items(value)]
    said_by = [[item for value in said for item in reader.items(value)] for said in values]
    items = [item for said in said_by for item in said]
    kind, reason = chosen(Column(name, items))
    distinct = len({kind().parse(item) for item in items})
    noted = Noted(reason, n, sum(map(bool, said_by)), len(items), distinct, separator_of(left))
    if issubclass(kind, Number):  # which nobody declared, so that later texts must not be refused
        return kind(noted=noted, missing=reader.missing, unreadable=NOTHING)
    return kind(noted=noted, missing=reader.missing)


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
    attributes = model.attributes or {}
    everywhere = common_start([own.missing for own in attributes.values() if own is not None])
    lines = [*HEADING, f"rate = {float(model.rate)!r}{comment(MEANING['rate'])}"]
    if model.name is not None:
        lines.append(f"name = {as_toml(list(model.name))}{comment(MEANING['name'])}")
    lines += [f"missing = {as_toml(everywhere)}{comment(MEANING['missing'])}", ""]
    for name, attribute in attributes.items():
        lines.append(f"[attributes.{as_toml(name)}]")
        if attribute is None:
            lines += [f'kind = "ignore"{comment(IGNORED)}', ""]
            continue
        lines.append(f'kind = "{attribute.kind}"{comment(meaning_of_kind(attribute))}')
        for parameter in parameters_of(attribute):
            value = getattr(attribute, parameter)
            if parameter == "missing":
                value = value[len(everywhere) :]
            if value or parameter not in OF_READING:
                lines.append(f"{parameter} = {as_toml(value)}{comment(OF_ONE.get(parameter))}")
        if attribute.noted is not None and attribute.noted.divided_by and not attribute.separator:
            lines.append(f"# separator = {as_toml(attribute.noted.divided_by)}{comment(PROPOSED)}")
        lines.append("")
    return "\n".join(lines)


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
    unknown = set(contents) - {"rate", "name", "missing", "attributes"}
    if unknown:
        raise ValueError(f"the schema has unknown entries: {', '.join(sorted(unknown))}")
    described = contents.get("attributes")
    if not isinstance(described, dict) or not described:
        raise ValueError("the schema needs a table [attributes.NAME] for each attribute")
    missing = contents.get("missing", list(USUAL))
    if not (isinstance(missing, list) and all(isinstance(text, str) for text in missing)):
        raise ValueError(f"missing must be texts in a list, got {missing!r}")
    attributes = {name: attribute_from(name, table) for name, table in described.items()}
    attributes = {
        name: own
        if own is None
        else replace(own, missing=(*missing, *(text for text in own.missing if text not in missing)))
        for name, own in attributes.items()
    }
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
    of_any = {parameter for other in KINDS.values() for parameter in parameters_of(other)}
    for parameter, value in table.items():
        if parameter == "kind":
            continue
        if parameter in allowed:
            given[parameter] = parameter_from(name, parameter, value, getattr(known, parameter, None))
        elif parameter in of_any:  # of the kind that it was before somebody changed it
            del given[parameter]
        else:
            listed = ", ".join(allowed)
            raise ValueError(f"attribute {name!r}: {kind} has no {parameter!r}; it has {listed}")
    attribute: Attribute = known(**given)
    return attribute


def parameter_from(name: str, parameter: str, value: Any, usual: Any) -> Any:
    """A parameter of an attribute, which must be such as the usual one: numbers or texts, one or several."""
    several = isinstance(usual, tuple)
    given = value if several and isinstance(value, list) else [value]
    if parameter in OF_READING:
        fits, one, many = all(isinstance(text, str) for text in given), "a text", "texts in a list"
    else:
        fits, one, many = all(map(is_finite, given)), "a finite number", "finite numbers in a list"
    if several != isinstance(value, list) or not fits:
        raise ValueError(f"attribute {name!r}: {parameter} must be {many if several else one}, got {value!r}")
    return tuple(value) if several else value


def is_finite(value: Any) -> bool:
    """Whether a value is a finite number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def comparing_from(table: dict[str, Any] | None) -> Attribute:
    """An attribute as :func:`to_json` has it, with no more than it needs to read values; all are read if ignored."""
    table = table or {}
    known = found(KINDS, table["kind"]) if "kind" in table else None
    given = {name: table[name] for name in OF_READING if name in table and hasattr(known, name)}
    reader: Attribute = (known or Attribute)(**given | {"missing": tuple(given.get("missing", ()))})
    return reader


def reader_from(table: dict[str, Any] | None) -> Attribute:
    """The same for who reads what is written, whether or not the model can compare it."""
    table = table or {}
    doubtful = NO_NUMBERS if table.get("unreadable") else ()
    known = next((kind for kind in SPELT if kind.kind == table.get("kind")), Attribute)
    return known(missing=(*table.get("missing", ()), *doubtful), separator=table.get("separator", ""))


def parameters_of(attribute: Any) -> list[str]:
    """The names of an attribute's hyperparameters."""
    return [entry.name for entry in fields(attribute) if entry.name not in LEARNT]


def unlearnt(given: Any, shown: Any, before: Any = None) -> Any:
    """The schema ``given`` without what was learnt: what it has as it was ``shown`` is as ``before``, or as usual.

    So that what somebody did not change is learnt as if the schema had been so from the start.
    """
    usual, known = type(given)(None), (before.attributes if before is not None else None) or {}
    attributes = {}
    for name, attribute in given.attributes.items():
        old = shown.attributes.get(name)
        if attribute is not None and old is not None:
            own = known.get(name) if type(known.get(name)) is type(attribute) else type(attribute)()
            attribute = replace(
                attribute,
                **{
                    parameter: getattr(own, parameter)
                    for parameter in parameters_of(attribute)
                    if parameter not in OF_READING
                    and getattr(attribute, parameter) == getattr(old, parameter, None)
                },
            )
        attributes[name] = attribute
    rate = (usual if before is None else before).rate if given.rate == shown.rate else given.rate
    return type(given)(attributes, rate, name=given.name)


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
    texts, numbers = (noted.why, noted.divided_by), noted[1:-1]
    if not all(isinstance(text, str) for text in texts) or not all(isinstance(n, int) for n in numbers):
        raise ValueError(f"attribute {name!r}: what was noted of it makes no sense")
    return noted
