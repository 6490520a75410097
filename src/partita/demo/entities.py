"""What ``partita demo`` does: 315 fragments about 65 things that share names become a knowledge base.

The fragments, in ``fragments.jsonl``, were written for this from common knowledge. "entity" says which thing
the author had in mind; it is only looked at to tell how many are right.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

import partita as pt
import partita.kb
from partita.demo.warmup import warm_up
from partita.kb.queries.answers import Entity, Event
from partita.kb.queries.explain import Explanation
from partita.kb.queries.questions import Question
from partita.models.records.folding import words_of
from partita.terminal import drawing, waterfall
from partita.terminal.text import listed, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCH = 21  # fragments after each of which the accuracy is looked at
SWEEPS = 2  # of refinement, in the end
SHOWN = 10  # entities
LONGEST = 24  # letters of a name in a title
WORD = "Gutenberg"  # whose namesakes the picture shows


class Undone(NamedTuple):
    """Fragments that were one entity until another fragment came."""

    event: Event
    parts: tuple[list[str], list[str]]


class Result(NamedTuple):
    """What the demonstration has found out."""

    seen: list[int]
    f1: list[float]
    seconds: float
    question: Question
    explanation: Explanation
    undone: Undone | None


def fragments() -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The fragments, and what each is about."""
    text = files("partita.demo").joinpath("fragments.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    truth = {row["id"]: row.pop("entity") for row in rows}
    return rows, truth


def make_way(path: Path) -> None:
    """Remove what an earlier demonstration has left there; ValueError if it is anything else."""
    if not path.exists():
        return
    if not is_there(path) or is_judged(path):
        raise ValueError(
            f"{path} exists and is not what a demonstration leaves: name another file, --kb FILE"
        )
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def is_there(path: Path) -> bool:
    """Whether a knowledge base has the fragments of the demonstration, whatever was judged of them."""
    if not path.exists():
        return False
    ids = {row["id"] for row in fragments()[0]}
    try:
        with partita.kb.open(path, create=False) as kb:
            return {id for entity in kb.entities() for id in entity.fragments} == ids
    except (partita.kb.StoreError, ValueError):
        return False


def is_judged(path: Path) -> bool:
    """Whether somebody has judged something in a knowledge base."""
    with partita.kb.open(path, create=False) as kb:
        return bool(kb.judgements())


def run(path: Path, console: Console) -> Figure:
    """Build the knowledge base in a new file, and print what it says.

    Returns
    -------
    matplotlib Figure
        Namesakes two by two, a waterfall, and how the accuracy changed as the fragments came in.
    """
    with console.status("Loading the sampler (the first run compiles it)"):
        warm_up(pt.Record({"name": pt.Text()}), 1)
    rows, truth = fragments()
    with partita.kb.open(path) as kb:
        with progress_bar(console) as bar:
            task = bar.add_task("fragments", total=len(rows))
            seen, f1, seconds = ingest(kb, rows, truth, lambda done: bar.update(task, completed=done))
        question = kb.uncertain(1)[0]
        explanation = kb.explain(question.first, question.second)
        result = Result(seen, f1, seconds, question, explanation, undone(kb))
        tell(kb, result, truth, console)
        return picture(kb, result)


def ingest(
    kb: Any, rows: list[dict[str, Any]], truth: dict[str, str], advance: Callable[[int], object]
) -> tuple[list[int], list[float], float]:
    """Stream the fragments in, refine; how many had been seen, the F1 then, and the seconds it took."""
    seen: list[int] = []
    f1: list[float] = []
    began, apart = perf_counter(), 0.0

    def look(done: int) -> None:
        nonlocal apart
        paused = perf_counter()
        seen.append(done)
        f1.append(kb.evaluate(truth)["f1"])
        apart += perf_counter() - paused
        advance(done)

    kb.add(rows, batch=BATCH, progress=look)
    kb.refine(SWEEPS)
    look(len(rows))
    return seen, f1, perf_counter() - began - apart


def undone(kb: Any) -> Undone | None:
    """Of the lasting splits of namesakes that a fragment has caused, that of the largest smaller part."""
    best: tuple[tuple[bool, int], Undone] | None = None
    now = kb.labels()
    for event in kb.events():
        if event.kind != "split" or event.fragment is None:
            continue
        before = members(kb, event.entity, event.number - 1)
        parts = [members(kb, id, event.number) for id in (event.entity, event.other)]
        parts = [[id for id in part if id in before] for part in parts]
        if not all(parts) or {now[id] for id in parts[0]} & {now[id] for id in parts[1]}:
            continue
        shared = set.intersection(*({word for id in part for word in name_of(kb, id)} for part in parts))
        rank = bool(shared), min(map(len, parts))
        if best is None or rank > best[0]:
            best = rank, Undone(event, (parts[0], parts[1]))
    return best and best[1]


def name_of(kb: Any, id: str) -> set[str]:
    """The words of a fragment's names."""
    return {word for name in kb.fragment(id).properties.get("name", []) for word in words_of(name)}


def members(kb: Any, id: str, event: int) -> list[str]:
    """The fragments of an entity after an event."""
    try:
        found: Entity = kb.entity(id, as_of=event)
    except KeyError:
        return []
    return found.fragments


# ---------------------------------------------------------------------- words


def progress_bar(console: Console) -> Progress:
    """A bar that counts the fragments."""
    return Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=console)


def tell(kb: Any, result: Result, truth: dict[str, str], console: Console) -> None:
    """Print the entities, the most uncertain question, why, and a merge that was undone."""
    found = list(kb.entities())
    console.print(
        f"\n{len(truth)} fragments about {len(set(truth.values()))} things, of which "
        f"{len(found)} entities were made in {result.seconds:.1f} s: B-cubed F1 {result.f1[-1]:.2f}\n",
        highlight=False,
    )
    drawing.entities(console, found[:SHOWN], kb.comparing)
    console.print("\n[bold]The question most worth asking[/bold]\n")
    drawing.question(console, 1, result.question)
    console.print("[bold]Why: the evidence in nats[/bold]\n")
    waterfall.explanation(console, replace(result.explanation, events=[]))
    if result.undone is not None:
        console.print("\n[bold]A merge that later evidence has undone[/bold]\n")
        for line in story(kb, result.undone):
            console.print(drawing.cell(line))


def story(kb: Any, undone: Undone) -> list[str]:
    """How fragments came to be apart, in words."""
    event, (kept, gone) = undone
    said = [in_words(kb.fragment(id).properties) for id in (kept[0], gone[0], event.fragment)]
    return [
        f"{listed(sorted(kept + gone))} were one entity, {event.entity}: {kept[0]} says {said[0]}, "
        f"{gone[0]} says {said[1]}.",
        f"Then came {event.fragment}: {said[2]}.",
        f"Since then {listed(gone)} {'are' if len(gone) > 1 else 'is'} {event.other}, and "
        f"{listed(kept)} {'are' if len(kept) > 1 else 'is'} {event.entity}.",
    ]


def in_words(properties: dict[str, list[Any]]) -> str:
    """What a fragment says."""
    return ", ".join(f"{name} {' / '.join(map(str, values))}" for name, values in properties.items())


# -------------------------------------------------------------------- pictures


def picture(kb: Any, result: Result) -> Figure:
    """Namesakes two by two; why two fragments are together or apart; F1 as the fragments came in."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(13.0, 6.4), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12))
    grid = figure.add_gridspec(2, 2, width_ratios=(1.0, 1.1), height_ratios=(2.0, 1.0))
    namesakes(kb, figure.add_subplot(grid[:, 0]))
    explanation = result.explanation
    steps = [step for step in explanation.steps if abs(step.nats) >= 0.05]
    pt.plots.waterfall(
        [step.attribute for step in steps],
        [step.nats for step in steps],
        ax=figure.add_subplot(grid[0, 1]),
    ).set_title(
        f"{called(kb, explanation.first)}, {called(kb, explanation.second)}: the same?  "
        f"{percent(explanation.probability)}",
        fontsize="medium",
        loc="right",
    )
    below = figure.add_subplot(grid[1, 1])
    pt.plots.online_curve(result.seen[:-1], result.f1[:-1], label="as they come", ax=below)
    below.plot(result.seen[-1:], result.f1[-1:], "o", color=pt.plots.PALETTE[1], label="refined")
    below.legend(frameon=False, loc="lower right")
    below.set(xlabel="fragments", ylabel="B-cubed F1")
    return figure


def called(kb: Any, id: str) -> str:
    """A fragment, by its name and its id."""
    names = kb.fragment(id).properties.get("name", [])
    name = names[0] if names else ""
    return f"“{name if len(name) <= LONGEST else name[: LONGEST - 1] + '…'}” ({id})" if name else id


def namesakes(kb: Any, ax: Any) -> None:
    """How probably the fragments of all entities that share a name are together."""
    found = [kb.entity(entity.id) for entity in kb.search(WORD, limit=9)]
    labels = np.repeat(np.arange(len(found)), [len(entity.fragments) for entity in found])
    ids = [id for entity in found for id in entity.fragments]
    matrix = kb.together(ids, ids)
    names = [f"{entity.name} ({entity.id})" for entity in found]
    title = f"{len(ids)} fragments of {len(found)} entities called {WORD}: together?"
    pt.plots.together_map(matrix, labels, names=names, ax=ax, title=title)
