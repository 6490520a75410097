"""Commands that train networks on one's own data: ``partita train diffusion``, ``partita train jsonlm``."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from partita.cli.output import console, note, refusing

app = typer.Typer(
    no_args_is_help=True,
    help="Train a likelihood that is a neural network, on data whose clusters are known.",
)
SETTINGS = "training.json"  # what a folder's training was begun with

Output = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="FOLDER", help="For checkpoints and weights; goes on where it stopped."
    ),
]
Every = Annotated[
    int, typer.Option(min=1, help="Steps between checkpoints; one is also kept when you interrupt it.")
]
QUIET = 30.0  # seconds between lines where there is no terminal


@app.command()
@refusing
def diffusion(
    data: Annotated[
        Path,
        typer.Argument(
            help="CSV with a header: numbers, and clusters in a column 'label'.", show_default=False
        ),
    ],
    output: Output,
    steps: Annotated[int, typer.Option(min=1, help="How long to train.")] = 20_000,
    batch: Annotated[
        int, typer.Option(min=1, help="Sets of up to four points in a step, and fewer larger ones.")
    ] = 1024,
    every: Every = 500,
) -> None:
    """Train a diffusion model of sets of points, for partita reproduce and partita.neural.SetDiffusion."""
    from partita.experiments.files import read_points

    points, labels = read_points(data)
    if labels is None:
        raise ValueError(f"{data} has no column label, with the cluster of each point")
    sets = [points[labels == label] for label in range(int(labels.max()) + 1)]
    if len(sets) == len(points):
        raise ValueError(f"{data}: no cluster has two points, so there is nothing to learn")
    begin(output, "diffusion", steps, [points.tolist(), labels.tolist()])
    network = network_of("SetDiffusion")
    with bar(steps) as progress:
        options = {"steps": steps, "batch": batch, "every": every, "progress": progress}
        model = network.train(sets, folder=output, **options)
    path = output / "diffusion.safetensors"
    model.save(path)
    typer.echo(f"Trained on {len(points):,} points of {len(sets):,} clusters; weights written to {path}")
    typer.echo(f'In Python: pt.BlackBox(partita.neural.SetDiffusion.load("{path}"))')


@app.command()
@refusing
def jsonlm(
    data: Annotated[
        Path, typer.Argument(help="Labelled fragments as JSON lines or CSV.", show_default=False)
    ],
    output: Output,
    labels: Annotated[
        str | None,
        typer.Option(
            help="Field of the true entity; entity_id or cluster_id unless given.", show_default=False
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="How long to train.")] = 5_000,
    batch: Annotated[int, typer.Option(min=1, help="Tokens in a step.")] = 32_768,
    every: Every = 500,
) -> None:
    """Train a language model of fragments, for partita build --model."""
    from partita.experiments.files import read_fragments
    from partita.models.records.fragments import check_fragments

    rows, entities = read_fragments(data, labels)
    if entities is None:
        raise ValueError(
            f"{data} does not say which entity each fragment is of: name the field with --labels"
        )
    fragments = check_fragments(rows)
    if not any(fragments):
        raise ValueError(f"{data}: no fragment says anything, so there is nothing to learn")
    begin(output, "jsonlm", steps, [fragments, entities.tolist()])
    network = network_of("JsonLM")
    with bar(steps) as progress:
        options = {"steps": steps, "batch_tokens": batch, "every": every, "progress": progress}
        model = network.train(fragments, entities, folder=output, **options)
    path = output / "jsonlm.safetensors"
    model.save(path)
    n_entities = int(entities.max()) + 1
    typer.echo(f"Trained on {len(rows):,} fragments of {n_entities:,} entities; weights written to {path}")
    typer.echo(f"To use it: partita build DATA -o KB --model {path}")


def network_of(kind: str) -> Any:
    """A class of ``partita.neural``; ImportError says what to install."""
    import partita.neural

    return getattr(partita.neural, kind)


def begin(folder: Path, kind: str, steps: int, data: list[Any]) -> None:
    """Note what a training is begun with; ValueError if the folder has one that was begun otherwise."""
    network_of({"diffusion": "SetDiffusion", "jsonlm": "JsonLM"}[kind])  # or nothing is begun
    text = json.dumps(data, sort_keys=True, default=str)
    settings = {"network": kind, "steps": steps, "data": hashlib.sha256(text.encode()).hexdigest()}
    path = folder / SETTINGS
    if path.exists():
        try:
            found = dict(json.loads(path.read_text(encoding="utf-8")))
        except (TypeError, ValueError):
            found = {}
        other = [name for name in settings if found.get(name) != settings[name]]
        if other:
            what = " and ".join(other)
            raise ValueError(
                f"{folder} has a training with other {what}: choose another folder, or delete it"
            )
        note(f"Note: going on with the training in {folder}.")
        return
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty: choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings, indent=1), encoding="utf-8")


@contextmanager
def bar(steps: int) -> Iterator[Callable[[int, dict[str, float]], None]]:
    """A progress bar on terminals, elsewhere a line now and then, and for new figures; both with the loss."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    out = console(error=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    told, last = 0.0, time.monotonic()
    if not out.is_terminal:
        note("Compiling; the first step takes a while.")
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as progress:
        task = progress.add_task("compiling", total=steps)

        def report(step: int, figures: dict[str, float]) -> None:
            nonlocal told, last
            text = ", ".join(f"{k} {v:.4g}" for k, v in figures.items() if k not in ("step", "seconds"))
            progress.update(task, completed=step, description=text)
            due = figures.get("step", 0.0) > told or time.monotonic() - last > QUIET
            if not out.is_terminal and due:
                told, last = figures.get("step", 0.0), time.monotonic()
                note(f"step {step:,} of {steps:,}: {text or 'no figures yet'}")

        yield report
