"""Draw the pictures of the README and the pages: ``python docs/make_images.py``.

Those of pages are what a block of Python with ``<!-- picture: images/NAME.png -->`` above it leaves in ``ax``.
"""

from __future__ import annotations

import io
import math
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console

import partita as pt
from partita.demo import entities, points
from partita.plots import FAINT, GREY, INK, PALETTE

IMAGES = Path(__file__).parent / "images"
PAGES = ("start/sampler.md", "start/probabilities.md")
BLOCK = re.compile(r"^(?:<!-- picture: images/([\w-]+)\.png -->\n)?```python\n(.*?)^```$", re.M | re.S)


def particles() -> Figure:
    """The four heaviest particles of a small subproblem."""
    X = np.array(
        [[0.0, 0.1], [0.2, 0.9], [0.7, 0.3], [2.6, 0.8], [3.1, 0.1], [2.9, 1.2], [1.5, 0.5], [1.8, 0.9]]
    )
    model = pt.Gaussian(shape=4.0, rate=1.0, mean=1.5, precision=0.05)
    posterior = pt.SplitSMC(model, alpha=0.5).fit(X).posterior_
    (subproblem,) = posterior.subproblems
    figure = Figure(figsize=(11.0, 1.7), layout="constrained")
    for rank, ax in enumerate(figure.subplots(1, 4)):
        title = f"{100 * subproblem.probabilities[rank]:.0f} %"
        labels = subproblem.partitions[rank]
        pt.plots.clustering(X, posterior, labels=labels, outline=False, uncertainty=False, ax=ax, title=title)
        for collection in ax.collections:
            collection.set_sizes(3 * collection.get_sizes())
        ax.tick_params(labelbottom=False, labelleft=False)
    return figure


def six_places() -> NDArray[np.float64]:
    """Six places far apart, each with two groups of five points and one point halfway between them."""
    places = np.array([[x, y] for y in (0.0, 4.0) for x in (0.0, 7.0, 14.0)])
    centres = places[:, None] + np.repeat([[-1.6, 0.0], [1.6, 0.0], [0.0, 0.0]], (5, 5, 1), axis=0)
    rng = np.random.default_rng(0)
    spread = np.repeat([0.5, 0.1], (10, 1))[:, None]
    return rng.permutation((centres + spread * rng.normal(size=centres.shape)).reshape(-1, 2))


def subproblems() -> Figure:
    """The same data and number of particles, without splitting and with it."""
    X = six_places()
    model = pt.Gaussian(shape=8.0, rate=2.0, mean=(7.0, 2.0), precision=0.02)
    figure = Figure(figsize=(11.0, 3.0), layout="constrained")
    samplers = {"SMC": pt.SMC, "split SMC": pt.SplitSMC}
    for ax, (name, sampler) in zip(figure.subplots(1, 2), samplers.items(), strict=True):
        posterior = sampler(model, alpha=2.0, n_particles=20).fit(X).posterior_
        held = math.exp(posterior.log_effective_particles())
        title = f"{name}: {round(held):,} clusterings, best score {posterior.log_density():.1f}"
        pt.plots.clustering(X, posterior, ax=ax, title=title)
    return figure


def uncertainty() -> Figure:
    """Points between two clusters, and the probabilities that pairs are together."""
    rng = np.random.default_rng(1)
    centres = np.repeat([[0.0, 0.0], [3.6, 0.0], [8.0, 1.0]], 14, axis=0)
    X = rng.permutation(centres + rng.normal(0.0, 1.0, centres.shape))
    model = pt.Gaussian(shape=5.0, rate=5.0, mean=4.0, precision=0.05)
    posterior = pt.SplitSMC(model, alpha=1.0).fit(X).posterior_
    figure = Figure(figsize=(11.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2.0, 1.0))
    pt.plots.clustering(X, posterior, ax=left)
    order = np.lexsort((X[:, 0], posterior.labels()))
    image = right.imshow(posterior.together(order[:, None], order), cmap="Blues", vmin=0.0, vmax=1.0)
    right.set(xticks=[], yticks=[])
    right.set_title("probability that two points are together", loc="left", color=INK, fontsize="medium")
    right.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=right)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelcolor=GREY, labelsize="small")
    return figure


STREAM = [1.3, 1.7, 1.1, 2.0, 0.9, 2.2, 1.0, 2.1, 1.1, 1.9, 0.9, 2.0]


def history(sampler: pt.SplitSMC) -> Iterator[float]:
    """The probability that the first two points share a cluster, after each point but the first."""
    for n, x in enumerate(STREAM):
        sampler.partial_fit([[x]])
        if n > 0:
            yield float(sampler.posterior_.together(0, 1))


def change_of_mind() -> Figure:
    """Twelve points on a line as they come in, and what is thought of the first two."""
    model = pt.Gaussian(shape=4.0, rate=0.2, mean=1.5, precision=0.01)
    split, greedy = pt.SplitSMC(model, alpha=0.5), pt.Greedy(model, alpha=0.5)
    seen = np.arange(1, len(STREAM) + 1)
    figure = Figure(figsize=(11.0, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    together = list(history(split))
    pt.plots.online_curve(seen[1:], together, label="split SMC", ax=right)
    pt.plots.online_curve(seen[1:], list(history(greedy)), label="greedy", ax=right)
    right.set(ylim=(0.0, 1.05), xticks=seen, ylabel="probability")
    right.set_title("Do the first two share a cluster?", loc="left", color=INK)
    right.legend(loc="center right", frameon=False, labelcolor=INK)
    for n, shift in ((2, -14.0), (len(STREAM), 8.0)):
        text, at = f"{100 * together[n - 2]:.0f} %", (n, together[n - 2])
        right.annotate(
            text, at, xytext=(0.0, shift), textcoords="offset points", ha="center", color=PALETTE[0]
        )

    left.scatter(seen, STREAM, c=np.array(PALETTE)[split.labels_], s=55)
    left.scatter(seen[:2], STREAM[:2], s=190, facecolors="none", edgecolors=INK)
    left.set(xlabel="arrival", ylabel="value", xticks=seen)
    left.set_title("Twelve points, the first two circled", loc="left", color=INK)
    tidy(left)
    return figure


def tidy(ax: Axes) -> None:
    """As the library's own pictures look."""
    ax.set_axisbelow(True)
    ax.grid(color=FAINT, linewidth=0.8)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, labelcolor=GREY, labelsize="small")
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)


def of_page(page: str) -> Iterator[tuple[str, Figure]]:
    """The pictures that a page draws."""
    namespace: dict[str, object] = {}
    for name, block in BLOCK.findall((IMAGES.parent / page).read_text(encoding="utf-8")):
        exec(compile(block, page, "exec"), namespace)
        if name:
            ax = namespace["ax"]
            assert isinstance(ax, Axes), f"{page}: nothing was drawn for {name}"
            figure = ax.figure
            assert isinstance(figure, Figure)
            yield name, figure


def main() -> None:
    """Draw them all."""
    with tempfile.TemporaryDirectory() as folder:
        first = entities.run(Path(folder) / "demo.db", Console(file=io.StringIO()))
    figures = {
        "demo": first,
        "points": points.run(seed=0, console=Console(file=io.StringIO())),
        "particles": particles(),
        "subproblems": subproblems(),
        "uncertainty": uncertainty(),
        "change-of-mind": change_of_mind(),
    }
    for page in PAGES:
        figures |= dict(of_page(page))
    IMAGES.mkdir(exist_ok=True)
    for name, figure in figures.items():
        figure.savefig(IMAGES / f"{name}.png", dpi=90)


if __name__ == "__main__":
    main()
