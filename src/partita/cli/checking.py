"""Commands that say how good a knowledge base is, with the truth or without it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from partita.cli import arguments as args
from partita.cli.input import Input
from partita.cli.opening import opened
from partita.cli.output import console, print_json, refusing

LABELS = ("entity_id", "cluster_id", "entity", "cluster", "label", "truth")  # usual names of the true entity

Truth = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="A file with ids of fragments and their true entities; may be the data themselves.",
        show_default=False,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help=f"The column of the true entity; the first of {', '.join(LABELS)} unless given.",
        show_default=False,
    ),
]


@refusing
def diagnose(
    kb: args.Base,
    labels: Truth = None,
    id: args.Id = None,
    label: Label = None,
    format: args.InputFormat = None,
    encoding: args.Encoding = None,
    sheet: args.Sheet = None,
    records: Annotated[int, typer.Option(min=2, help="How many fragments to look at.")] = 1000,
    json: args.Json = False,
) -> None:
    """Say how honest the probabilities are, without labels, and warn if learning has collapsed.

    Each attribute is left out in turn, and asked about the pairs that the others hold together. That takes some
    seconds an attribute. With --labels also how much truth there is in a nat of evidence.
    """
    with opened(kb) as base:
        known = None if labels is None else read_truth(labels, id, label, format, encoding, sheet)
        found = base.diagnose(known, n_records=records)
    if json:
        print_json(found.as_dict())
        return
    from partita.terminal import checks

    checks.diagnosis(console(), found)


@refusing
def evaluate(
    kb: args.Base,
    truth: Annotated[
        str | None, typer.Argument(metavar="[TRUTH]", help="The same as --labels.", show_default=False)
    ] = None,
    labels: Truth = None,
    id: args.Id = None,
    label: Label = None,
    loss: Annotated[args.Loss, typer.Option(help="Which clustering to evaluate.")] = args.Loss.map,
    bins: Annotated[int, typer.Option(min=1, help="Of the table of probabilities.")] = 10,
    worst: Annotated[int, typer.Option(min=0, help="How many of the most wrong entities to show.")] = 10,
    format: args.InputFormat = None,
    encoding: args.Encoding = None,
    sheet: args.Sheet = None,
    json: args.Json = False,
) -> None:
    """Say how good the clustering is, where the true entities of some fragments are known.

    With the entities that are most wrong, and what is wrong in them.
    """
    if (truth is None) == (labels is None):
        raise typer.BadParameter("name one file with the true entities of fragments: --labels FILE")
    with opened(kb) as base:
        known = read_truth(truth or labels or "", id, label, format, encoding, sheet)
        scores, table = base.evaluate(known, loss=loss.value), base.reliability(known, n_bins=bins)
        mistakes = base.worst(known, worst)
    from partita.terminal import checks

    if json:
        listed = [one.as_dict() for one in mistakes]
        print_json({**scores, "reliability": [] if table is None else checks.bins(table), "worst": listed})
        return
    checks.evaluation(console(), scores, table)
    if worst:
        checks.worst(console(), mistakes)


# ---------------------------------------------------------------------- helpers


def read_truth(
    path: str,
    id: str | None,
    label: str | None,
    format: args.Format | None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> dict[str, str]:
    """The true entity of each fragment that a file names, by id."""
    from partita.kb.fragments import id_of
    from partita.models.records.fragments import is_missing

    found: dict[str, str] = {}
    for row, fields in Input([path], format=format, encoding=encoding, sheet=sheet).rows():
        key = id_of(row, field_of(row, fields, (id,) if id else ("id", "fragment"), "--id"))
        true = field_of(row, fields, (label,) if label else LABELS, "--label")
        if key is None or is_missing(true):
            continue
        if found.setdefault(key, str(true)) != str(true):
            raise ValueError(f"row {row}: {key!r} is of two true entities, {found[key]!r} and {true!r}")
    if not found:
        raise ValueError(f"{path} names no true entity of any fragment")
    return found


def field_of(row: object, fields: dict[str, Any], names: tuple[str, ...], option: str) -> Any:
    """The first of some fields that there is."""
    for name in names:
        if name in fields:
            return fields[name]
    wanted, there = " or ".join(map(repr, names)), ", ".join(map(repr, fields))
    raise ValueError(f"row {row}: there is no field {wanted}; name one of {there} with {option}")
