"""What ``partita demo points`` does: two generated streams, a table, two questions and a picture.

The hyperparameters are fixed, so that only the sampler itself is compiled. Those of the mixture are the ones
it is drawn with. Those of the circles are found as in the paper (appendix "Experiments"), by the evidence of
1000 simulated circles: their coordinates have variance radius²/2 = 0.18 whatever the circle, so the evidence
grows with the shape, and the B-cubed F1 is flat beyond a shape of 100.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

import partita as pt
from partita._core.typing import Floats, Integers
from partita.demo.warmup import warm_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_PARTICLES = 100
N_CHECKS = 20


class Stream(NamedTuple):
    """A data set to be observed in order, and the sampler that observes it."""

    name: str
    X: Floats
    truth: Integers
    sampler: pt.SplitSMC


class Run(NamedTuple):
    """A stream that has been observed: F1 after the numbers of points in ``seen``, and the time it took."""

    stream: Stream
    seen: Integers
    f1: Floats
    seconds: float

    @property
    def posterior(self) -> pt.Posterior:
        """The posterior at the end."""
        return self.stream.sampler.posterior_


class Question(NamedTuple):
    """Do two observations share a cluster? The posterior's probability, and the truth."""

    first: int
    second: int
    probability: float
    answer: bool


def run(seed: int, console: Console) -> Figure:
    """Cluster both data sets and print the results.

    Parameters
    ----------
    seed : int
        Seed of the data.
    console : Console
        Where the results go.

    Returns
    -------
    matplotlib Figure
        The clusterings, and how their accuracy changed as the points came in.
    """
    with console.status("Loading the sampler (the first run compiles it)"):
        warm_up(pt.Gaussian(), 2)
        closest_call(observe(streams(seed)[0]))
    with progress_bar(console) as bar:
        runs = []
        for stream in streams(seed):
            task = bar.add_task(stream.name, total=len(stream.X))
            runs.append(observe(stream, partial(bar.advance, task)))
    questions = [closest_call(each) for each in runs]
    console.print(summary(runs))
    console.print("\nThe closest call of each:")
    for each, question in zip(runs, questions, strict=True):
        console.print(sentence(each, question), highlight=False)
    return picture(runs, questions)


def streams(seed: int) -> list[Stream]:
    """The two data sets of the paper's section 4, drawn anew."""
    X, truth = pt.datasets.circles(radius=0.6, random_state=seed)
    model = pt.Gaussian(shape=100.0, rate=18.0, precision=0.02)
    circles = Stream("circles", X, truth, pt.SplitSMC(model, alpha=1.0, n_particles=N_PARTICLES))

    X, truth = pt.datasets.gaussian_mixture(rate=2.0, random_state=seed)
    model = pt.Gaussian(shape=2.0, rate=2.0, precision=2e-4)
    gaussians = Stream("Gaussians", X, truth, pt.SplitSMC(model, alpha=20.0, n_particles=N_PARTICLES))
    return [circles, gaussians]


def observe(stream: Stream, advance: Callable[[int], object] = lambda n: None) -> Run:
    """Feed the stream to its sampler in batches, and score the clusters after each."""
    seen = np.linspace(0, len(stream.X), N_CHECKS + 1).astype(np.int64)
    f1, seconds = np.empty(N_CHECKS), 0.0
    for k, (start, stop) in enumerate(pairwise(seen)):
        began = perf_counter()
        stream.sampler.partial_fit(stream.X[start:stop])
        seconds += perf_counter() - began
        f1[k] = pt.bcubed(stream.truth[:stop], stream.sampler.labels_).f1
        advance(int(stop - start))
    return Run(stream, seen[1:], f1, seconds)


def closest_call(run: Run) -> Question:
    """Of the observation whose cluster is the least certain, the companion that is nearest to a coin toss."""
    posterior, truth = run.posterior, run.stream.truth
    first = int(posterior.entropy().argmax())
    probability = np.asarray(posterior.together(first, np.arange(len(truth))))
    second = int(np.abs(probability - 0.5).argmin())
    return Question(first, second, float(probability[second]), bool(truth[first] == truth[second]))


# ---------------------------------------------------------------------- words


def progress_bar(console: Console) -> Progress:
    """A bar for each stream, which counts its points."""
    return Progress(TextColumn("{task.description:9}"), BarColumn(), MofNCompleteColumn(), console=console)


def summary(runs: list[Run]) -> Table:
    """One row a data set."""
    table = Table(
        title=f"\nWith {N_PARTICLES} particles for each subproblem",
        caption="clusterings: the combinations of the subproblems' particles",
        title_justify="left",
        caption_justify="left",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    table.add_column("data")
    for column in ("points", "clusters", "true", "B-cubed F1", "subproblems", "clusterings", "time"):
        table.add_column(column, justify="right")
    for stream, _, f1, seconds in runs:
        posterior = stream.sampler.posterior_
        table.add_row(
            stream.name,
            str(len(stream.X)),
            str(posterior.labels().max() + 1),
            str(stream.truth.max() + 1),
            f"{f1[-1]:.3f}",
            str(posterior.n_subproblems),
            f"10^{posterior.log_effective_particles() / math.log(10.0):.0f}",
            f"{seconds:.2f} s",
        )
    return table


def sentence(run: Run, question: Question) -> str:
    """The question, the posterior's answer, and the truth."""
    first, second, probability, answer = question
    return (
        f"{run.stream.name}: are points {first} and {second} from the same cluster? "
        f"{100 * probability:.0f} % (truth: {'yes' if answer else 'no'})"
    )


# -------------------------------------------------------------------- pictures


def picture(runs: list[Run], questions: list[Question]) -> Figure:
    """The clusterings side by side, with the pairs asked about, and F1 as the points came in below."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(13.0, 6.4), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12))
    grid = figure.add_gridspec(2, 2, width_ratios=(1.0, 1.2), height_ratios=(2.2, 1.0))
    for run, question, place in zip(runs, questions, (grid[:, 0], grid[0, 1]), strict=True):
        ax = figure.add_subplot(place)
        pt.plots.clustering(run.stream.X, run.posterior, ax=ax, title=caption(run))
        mark(ax, run.stream.X, question)
    if (legend := ax.get_legend()) is not None:
        legend.remove()  # the first one serves both
    below = figure.add_subplot(grid[1, 1])
    for run in runs:
        pt.plots.online_curve(run.seen, run.f1, label=run.stream.name, ax=below)
    below.set(ylim=(min(0.5, *(run.f1.min() for run in runs)), 1.0), ylabel="B-cubed F1")
    return figure


def caption(run: Run) -> str:
    """What the picture shows, and how good it is."""
    n_clusters, n_true = run.posterior.labels().max() + 1, run.stream.truth.max() + 1
    return f"{run.stream.name}: {n_clusters} clusters found, {n_true} true, F1 {run.f1[-1]:.2f}"


def mark(ax: Axes, X: Floats, question: Question) -> None:
    """Join the pair asked about by a line, with the probability beside it."""
    from matplotlib.patheffects import withStroke

    pair = X[[question.first, question.second]]
    middle = pair.mean(axis=0)
    ax.plot(*pair.T, color="black", linewidth=1.5, zorder=3)
    ax.annotate(
        f"together? {100 * question.probability:.0f} %",
        middle,
        xytext=free_place(ax, X, middle),
        ha="center",
        va="center",
        zorder=4,
        arrowprops={"arrowstyle": "-", "linewidth": 0.8, "shrinkB": 0.0, "color": pt.plots.GREY},
        path_effects=[withStroke(linewidth=3.0, foreground="white")],
    )


def free_place(ax: Axes, X: Floats, near: Floats) -> tuple[float, float]:
    """Where a word keeps farthest away from the points and from the edge of the picture."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    step = 0.05 * (right - left)
    angles = np.linspace(0.0, 2.0 * math.pi, 24, endpoint=False)
    places = near + step * np.column_stack([4.0 * np.cos(angles), 2.5 * np.sin(angles)])
    word = places[:, None] + step * np.column_stack([np.linspace(-2.0, 2.0, 5), np.zeros(5)])
    to_points = np.linalg.norm(word[:, :, None] - X, axis=-1).min(axis=(1, 2))
    to_edges = np.minimum(word - (left, bottom), (right, top) - word).min(axis=(1, 2))
    x, y = places[np.minimum(to_points, to_edges).argmax()]
    return float(x), float(y)
