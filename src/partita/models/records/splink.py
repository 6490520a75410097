"""Settings of Splink, as it saves them in JSON, as a schema of records. Splink itself is not needed.

A comparison of Splink is a list of levels, each a condition in SQL on two rows, ``name_l = name_r`` for instance. Which
columns it is about and how it compares them is read off these conditions, as names of comparisons differ from version
to version and may be changed. How alike values of an entity are (m) and how often strangers are (u) is learnt anew, by
degrees that are always the same, so thresholds have no counterpart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from partita.models.records.folding import words_of
from partita.models.records.kinds import (
    Attribute,
    Category,
    Date,
    Email,
    Number,
    PersonName,
    Phone,
    PostalCode,
    Text,
)
from partita.models.records.kinds.number import NOTHING
from partita.models.records.kinds.person_name import OF_PEOPLE, SURNAMES
from partita.models.records.kinds.phone import NAMES as OF_PHONES
from partita.models.records.nothing import USUAL
from partita.models.records.record import Record

QUOTED = re.compile(r"""["`\[]([^"`\[\]]+)_([lr])["`\]]""")
BARE = re.compile(r"(?<![\w.\"`'])([A-Za-z_][A-Za-z0-9_]*)_([lr])(?![\w\"`'(])")
OF_RULE = re.compile(r"\b[lr]\.[\"`]?(\w+(?: \w+)*?)[\"`]?(?=\W|$)")
LITERAL = re.compile(r"(?:=\s*|\bin\s*\(\s*(?:'[^']*'\s*,\s*)*)'([^']*)'", re.I)
DATES = re.compile(
    r"strptime|\bepoch\b|datediff|date_diff|to_date|to_timestamp|\bage\(|julianday|unix_timestamp", re.I
)
PLACES = re.compile(r"\b(?:acos|radians|haversine\w*)\s*\(|st_distance", re.I)
VECTORS = re.compile(r"cosine|zip_with\s*\(.*\bsqrt\s*\(", re.I | re.S)  # Spark's has no name
PAIRWISE = re.compile(r"\b(?:list|array)_m(?:ax|in)\s*\(\s*(?:list_)?transform", re.I)
LISTS = re.compile(
    r"list_intersect|array_intersect|list_has_|array_(?:overlap|contains)|cardinality|list_transform", re.I
)
FUZZY = re.compile(r"jaro|levenshtein|jaccard|metaphone|soundex|_dist\w*\(|similarity\s*\(", re.I)
DIFFERENCE = re.compile(r"\babs\s*\(", re.I)
PATTERN = re.compile(r"regexp|~|similar to|\blike\b", re.I)
POSTAL = re.compile(r"\[A-Za-z\]\{1,2\}\[0-9\]")
AT = re.compile(r"@")
PLAIN = re.compile(r"[\s()]*(?:and|or|not|is|null|=|'[^']*'|,|in|\d+(?:\.\d+)?|true|false|\s|[()])*", re.I)
SIMPLE = re.compile(r"[\"`\[]?[\w ]+_l[\"`\]]?\s*=\s*[\"`\[]?[\w ]+_r[\"`\]]?")
SWAPPED = "the level for swapped columns"
MADE = "made of the columns beside it: it would count twice"


class Compared(NamedTuple):
    """What has become of a comparison."""

    comparison: str  # as Splink describes it
    column: str
    kind: str  # of the attribute in the schema
    lost: str  # what has no counterpart; empty if nothing


class Imported(NamedTuple):
    """What settings become."""

    model: Record
    compared: list[Compared]
    rules: list[str]  # for blocking
    options: list[str]  # of partita build
    warnings: list[str]


def imported(settings: Any) -> Imported:
    """The schema that settings of Splink ask for, and what has become of each of their parts.

    >>> level = {"sql_condition": '"town_l" = "town_r"'}
    >>> imported({"comparisons": [{"output_column_name": "town", "comparison_levels": [level]}]}).compared[0].kind
    'category'
    """
    comparisons = settings.get("comparisons") if isinstance(settings, Mapping) else None
    if not isinstance(comparisons, list) or not comparisons:
        raise ValueError(
            "these are no settings of Splink: a JSON object with a list of comparisons is needed, such as "
            "linker.misc.save_model_to_json writes"
        )
    attributes: dict[str, Attribute | None] = {}
    compared, warnings = [], []
    for place, comparison in enumerate(comparisons):
        levels = levels_of(comparison, place)
        said = described(comparison)
        columns = columns_of(levels)
        if not columns:
            warnings.append(f"comparison {said}: no column was found in its SQL; it is left out")
            continue
        for column in columns:
            if column in attributes:
                compared.append(
                    Compared(said, column, "–", "compared above already: an attribute counts once")
                )
                continue
            attribute, lost = attribute_of(column, columns, levels, said)
            attributes[column] = attribute
            kind = "ignore" if attribute is None else str(attribute.kind)
            compared.append(Compared(said, column, kind, lost))
    rules = [rule_of(rule) for rule in settings.get("blocking_rules_to_generate_predictions") or ()]
    warnings += warnings_of(settings, attributes, rules)
    attributes |= {
        name: None for name in settings.get("additional_columns_to_retain") or () if name not in attributes
    }
    model = Record({**attributes, "*": None})
    return Imported(model, compared, rules, options_of(settings), warnings)


# ---------------------------------------------------------------------- what settings say


def levels_of(comparison: Any, place: int) -> list[dict[str, Any]]:
    """The levels of a comparison."""
    levels = comparison.get("comparison_levels") if isinstance(comparison, Mapping) else None
    if not isinstance(levels, list) or not all(
        isinstance(one, Mapping) and "sql_condition" in one for one in levels
    ):
        raise ValueError(
            f"comparison {place}: it has no list of comparison_levels, each with a sql_condition"
        )
    return [dict(one) for one in levels]


def described(comparison: Mapping[str, Any]) -> str:
    """What a comparison is called."""
    name = str(comparison.get("output_column_name") or "")
    said = str(comparison.get("comparison_description") or "comparison")
    return f"{said} of {name}" if name and not re.search(rf"\b{re.escape(name)}\b", said) else said


def columns_of(levels: list[dict[str, Any]]) -> list[str]:
    """The columns that conditions are about, in order: those that occur of the left and of the right row."""
    found: dict[str, set[str]] = {}
    for level in levels:
        text = str(level["sql_condition"])
        for name, side in [*QUOTED.findall(text), *BARE.findall(QUOTED.sub(" ", text))]:
            found.setdefault(name.strip(), set()).add(side)
    return [name for name, sides in found.items() if len(sides) == 2]


def rule_of(rule: Any) -> str:
    """A rule for blocking, in SQL."""
    text = rule.get("blocking_rule", "") if isinstance(rule, Mapping) else rule
    return " ".join(str(text).split())


def options_of(settings: Mapping[str, Any]) -> list[str]:
    """What partita build is to be told."""
    options = []
    if (own := settings.get("unique_id_column_name", "unique_id")) != "id":
        options.append(f"--id {own}")
    if settings.get("link_type", "dedupe_only") != "dedupe_only":
        options.append(f"--source {settings.get('source_dataset_column_name') or 'source_dataset'}")
    return options


# ---------------------------------------------------------------------- kinds


def attribute_of(
    column: str, columns: list[str], levels: list[dict[str, Any]], said: str
) -> tuple[Attribute | None, str]:
    """How a column is to be compared, and what has no counterpart."""
    conditions = [str(level["sql_condition"]) for level in levels if not is_null(level)]
    own = about(column, conditions)
    if is_made(column, columns, conditions):
        return None, MADE
    kept = [one for one in columns if not is_made(one, columns, conditions)]
    nulls = " ".join(str(level["sql_condition"]) for level in levels if is_null(level))
    sql = " ".join(own)
    kind, lost = kind_of(column, sql, said)
    if kind is None:
        return None, lost[0]
    if PATTERN.search(nulls):
        lost.append("values that do not fit a pattern are no longer missing")
    if any(is_swap(text, columns) for text in conditions):
        lost.append(SWAPPED)
    elif len(kept) > 1 and not PLACES.search(sql):
        lost.append("its columns are compared each by itself")
    missing = tuple(dict.fromkeys(text for text in LITERAL.findall(nulls) if text and text not in USUAL))
    given: dict[str, Any] = {"missing": (*USUAL, *missing)}
    if kind is Number:
        given["unreadable"] = NOTHING
    attribute: Attribute = kind(**given)
    return attribute, "; ".join(lost)


def is_null(level: Mapping[str, Any]) -> bool:
    """Whether a level is of pairs of which a value is missing."""
    return bool(level.get("is_null_level"))


def is_swap(text: str, columns: list[str]) -> bool:
    """Whether a condition compares one column with another."""
    return any(
        re.search(rf"[\"`]?{re.escape(a)}_l[\"`]?\s*=\s*[\"`]?{re.escape(b)}_r\b", text)
        for a in columns
        for b in columns
        if a != b
    )


def about(column: str, conditions: list[str]) -> list[str]:
    """The conditions that a column occurs in."""
    return [text for text in conditions if column in columns_of([{"sql_condition": text}])]


def is_made(column: str, columns: list[str], conditions: list[str]) -> bool:
    """Whether a column only repeats others of its comparison: two names in one, or codes of how one sounds.

    Splink has such columns to save time, where one condition on them stands for several.
    """
    own, others = about(column, conditions), [one for one in columns if one != column]
    if not others or not own or PLACES.search(" ".join(own)):
        return False
    if all(LISTS.search(text) for text in own):  # dmetaphone, beside the text that it was made of
        return any(FUZZY.search(text) for text in conditions if text not in own)
    swapped = any(is_swap(text, others) for text in conditions)
    return swapped and all(
        only_equal(text) and columns_of([{"sql_condition": text}]) == [column] for text in own
    )


def kind_of(column: str, sql: str, said: str) -> tuple[type[Attribute] | None, list[str]]:
    """The kind that compares nearly as some SQL does, and what it does not do."""
    by_name = named(column)
    if VECTORS.search(sql):
        return None, ["vectors are not compared: keep the text that they were made of"]
    if PLACES.search(sql):
        return Number, ["distance in km: coordinates are numbers, compared each by itself"]
    if PAIRWISE.search(sql):
        return by_name or Text, ["the nearest of all pairs of values: several values are compared one by one"]
    if LISTS.search(sql):
        return by_name or Text, ["sizes of intersections: lists are several values, compared one by one"]
    if DATES.search(sql) or by_name is Date:
        return Date, ["differences in days: dates are alike by year, month and day"] if DATES.search(
            sql
        ) else []
    if AT.search(sql) or by_name is Email:
        return Email, []
    if POSTAL.search(sql) or by_name is PostalCode:
        return PostalCode, []
    if FUZZY.search(sql):
        people = "NameComparison" in said or "ForenameSurname" in said
        return by_name or (PersonName if people else Text), []
    if DIFFERENCE.search(sql):
        return Number, ["thresholds of differences"]
    if PATTERN.search(sql) or "case" in sql.lower() or not only_equal(sql):
        return by_name or Text, ["SQL of your own: see whether the kind suits it"]
    return by_name or Category, []


def only_equal(sql: str) -> bool:
    """Whether SQL asks for nothing but that columns are equal."""
    return not PLAIN.sub("", SIMPLE.sub(" ", sql).replace("ELSE", "")).strip()


def named(column: str) -> type[Attribute] | None:
    """The kind that a column's name stands for."""
    called = set(words_of(column.replace("_", " ")))
    if called & {"email", "mail", "emails"}:
        return Email
    if called & set(OF_PHONES):
        return Phone
    if called & {"postcode", "zip", "zipcode", "postal"}:
        return PostalCode
    if called & {"dob", "date", "birthdate", "birthday"} or {"birth"} == called - {"of"}:
        return Date
    if called & SURNAMES or ("name" in called and called & OF_PEOPLE):
        return PersonName
    return None


# ---------------------------------------------------------------------- what is lost


def warnings_of(
    settings: Mapping[str, Any], attributes: Mapping[str, Attribute | None], rules: list[str]
) -> Iterator[str]:
    """What has no counterpart, in sentences."""
    levels = [level for one in settings["comparisons"] for level in one["comparison_levels"]]
    if any("m_probability" in level or "u_probability" in level for level in levels):
        yield "m and u are not taken over: Partita learns its own, for eight degrees of likeness, without labels"
    if any(level.get("fix_m_probability") or level.get("fix_u_probability") for level in levels):
        yield "probabilities that are fixed have no counterpart"
    if settings.get("link_type") == "link_only":
        yield (
            "link_type 'link_only': Partita clusters the rows of all sources together; that a source has no duplicates "
            "of its own cannot be said"
        )
    if only := sorted({name for rule in rules for name in OF_RULE.findall(rule)} - set(attributes)):
        yield f"used by blocking rules and compared by nothing, so ignored: {', '.join(only)}"


__all__ = ["Compared", "Imported", "imported"]
