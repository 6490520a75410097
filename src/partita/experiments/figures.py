"""The figures of an experiment, drawn from its results."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

import partita as pt
from partita._core.typing import Floats, Integers
from partita.experiments.experiment import (
    AGGLOMERATIVE,
    GIBBS,
    GREEDY,
    METHODS,
    METROPOLIS,
    ONLINE,
    REFINED,
    SMC,
    SPLIT,
    Setting,
)
from partita.experiments.runner import Results, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURES = {
    "log_density": "log-posterior density",
    "f1": "B-cubed F1",
    "precision": "precision",
    "recall": "recall",
}
COLOURS = dict(
    zip((SPLIT, SMC, GREEDY, REFINED, GIBBS, AGGLOMERATIVE, METROPOLIS), pt.plots.PALETTE, strict=True)
)
REPORTED = 100  # particles of the samplers in the table, where they have been run


def draw_all(results: Results, folder: Path) -> dict[str, Path]:
    """Draw every figure that the results allow; returns their files by name.

    None where there is no Matplotlib: the report can be written anew where there is one.
    """
    if find_spec("matplotlib") is None or not results.runs:
        return {}
    figures: dict[str, Figure] = {}
    if comparable(results):  # which an ablation alone has none of
        figures["runtime"] = against_runtime(results)
        figures["particles"] = against_particles(results)
        figures["splitting"] = what_splitting_buys(results)
        if results.experiment.truth is not None:
            figures["online"] = online(results)
    if any(results.of(setting) for setting in results.experiment.ablation):
        figures["ablation"] = against_proposals(results)
    if np.shape(results.experiment.X)[1:] == (2,) and (drawn := clustering(results)) is not None:
        figures["clustering"] = drawn
    paths = {}
    for name, figure in figures.items():
        paths[name] = folder / f"{name}.png"
        figure.savefig(paths[name], dpi=110)
    return paths


def measures_of(results: Results) -> list[str]:
    """The measures there are: all but the density need the truth."""
    return list(MEASURES) if results.experiment.truth is not None else ["log_density"]


def grid_of_axes(names: list[str]) -> tuple[Figure, list[Axes]]:
    """A figure with one set of axes a measure."""
    from matplotlib.figure import Figure

    rows = (len(names) + 1) // 2
    columns = min(len(names), 2)
    figure = Figure(figsize=(5.6 * columns, 3.7 * rows), layout="constrained")
    axes = [figure.add_subplot(rows, columns, k + 1) for k in range(len(names))]
    for ax, name in zip(axes, names, strict=True):
        ax.set_ylabel(MEASURES.get(name, name))
    return figure, axes


def one_legend(axes: list[Axes]) -> None:
    """Of several axes with the same curves, the first one's legend is enough."""
    for ax in axes[1:]:
        if (legend := ax.get_legend()) is not None:
            legend.remove()


def sizes_of(results: Results, method: str) -> list[Setting]:
    """The settings of a method that have been run and differ in nothing else, by size."""
    own = [s for s in results.experiment.settings if s.method == method and results.of(s)]
    return sorted((s for s in own if s.usual or method == GREEDY), key=lambda s: s.size or 0)


def comparable(results: Results) -> list[Setting]:
    """All of these, of every method."""
    return [setting for method in METHODS for setting in sizes_of(results, method)]


def reported_size(results: Results) -> int:
    """The number of particles for the table: the usual one, or the largest that there is."""
    sizes = [s.size or 1 for method in (SPLIT, SMC) for s in sizes_of(results, method)]
    return REPORTED if REPORTED in sizes else max(sizes, default=REPORTED)


def time_unit(results: Results) -> str:
    """What runtimes are measured in."""
    return "seconds" if results.experiment.neural else "CPU seconds"


def values(runs: list[Run], measure: str) -> Floats:
    """One measure of all runs."""
    return np.array([run[measure] for run in runs], float)


def median_seconds(runs: list[Run]) -> float:
    """The median runtime; not a number where there is none."""
    return float(np.median(values(runs, "seconds"))) if runs else float("nan")


def against_runtime(results: Results) -> Figure:
    """Each measure against time: samplers for each number of particles, offline methods as they go on."""
    names, fastest = measures_of(results), min(median_seconds(results.of(s)) for s in comparable(results))
    figure, axes = grid_of_axes(names)
    for ax, measure in zip(axes, names, strict=True):
        ax.set(xscale="log", xlabel=time_unit(results))
        for method in (GREEDY, SMC, SPLIT, REFINED):
            draw_sizes(ax, results, method, measure)
        for method in (GIBBS, METROPOLIS, AGGLOMERATIVE):
            for setting in sizes_of(results, method):
                draw_history(ax, results.of(setting), setting, measure)
        # Nothing has happened yet a tenth of the way to the fastest result.
        ax.set_xlim(left=0.1 * fastest)
        focus(ax, results, measure)
    one_legend(axes)
    return figure


def table_of(results: Results, settings: list[Setting], measure: str) -> Floats:
    """One row a replication that all of the settings have, one column a setting."""
    columns = [values(results.of(setting), measure) for setting in settings]
    n = min((len(column) for column in columns), default=0)
    return np.array([column[:n] for column in columns]).T


def draw_sizes(ax: Axes, results: Results, method: str, measure: str) -> None:
    """A sampler's measure at the median runtime of each size, with a star where the table reports it."""
    settings, colour = sizes_of(results, method), COLOURS[method]
    if not settings:
        return
    seconds = np.median(table_of(results, settings, "seconds"), axis=0)
    table = table_of(results, settings, measure)
    pt.plots.metric_curve(seconds, table, label=method, ax=ax, colour=colour, marker="o")
    for setting, at, column in zip(settings, seconds, table.T, strict=True):
        if setting.size in (reported_size(results), None) or method == REFINED:
            star(ax, at, column.mean(), colour)


def draw_history(ax: Axes, runs: list[Run], setting: Setting, measure: str) -> None:
    """An offline method's measure as time goes on, the mean over its runs; a star or the batch at its end."""
    colour, end = COLOURS[setting.method], median_seconds(runs)
    share = np.geomspace(1e-3, 1.0, 80)  # of each run's time
    curves = [
        np.interp(share, np.array(run["history"]["seconds"]) / run["seconds"], run["history"][measure])
        for run in runs
    ]
    mean = np.mean(curves, axis=0)
    if setting.size is None:
        pt.plots.metric_curve(end * share, mean, label=setting.method, ax=ax, colour=colour)
        star(ax, end, mean[-1], colour)
    else:
        ax.plot(end * share, mean, color=colour, linewidth=1.2, linestyle=(0, (3, 2)))
        ax.annotate(
            str(setting.size), (end, mean[-1]), xytext=(4, -4), textcoords="offset points", color=colour
        )


def star(ax: Axes, x: float, y: float, colour: str) -> None:
    """The configuration that the table reports."""
    ax.plot([x], [y], marker="*", markersize=14, color=colour, markeredgecolor="white", zorder=5)


def focus(ax: Axes, results: Results, measure: str) -> None:
    """Leave out the long climb of methods that start from singletons, and what no measure can be."""
    if measure == "log_density":
        shown = [s for s in comparable(results) if s.method != AGGLOMERATIVE or s.size is None]
        ends = np.concatenate([values(results.of(setting), measure) for setting in shown])
        margin = 0.1 * (ends.max() - ends.min()) + 1.0
        ax.set_ylim(ends.min() - margin, ends.max() + margin)
    elif measure in MEASURES:
        low, high = ax.get_ylim()
        ax.set_ylim(max(low, 0.0), min(high, 1.01))


def against_particles(results: Results) -> Figure:
    """Each measure against the number of particles, greedy being a single one."""
    names = measures_of(results)
    figure, axes = grid_of_axes(names)
    for ax, measure in zip(axes, names, strict=True):
        draw_by_size(ax, results, measure, first=[Setting(GREEDY)])
        focus(ax, results, measure)
    one_legend(axes)
    return figure


def what_splitting_buys(results: Results) -> Figure:
    """Subproblems, and the number of clusterings held, against the number of particles."""
    figure, axes = grid_of_axes(["number of subproblems", "log₁₀ of the clusterings held"])
    draw_by_size(axes[0], results, "subproblems")
    draw_by_size(axes[1], results, "log_effective_particles", unit=np.log(10.0))
    one_legend(axes)
    return figure


def draw_by_size(
    ax: Axes, results: Results, measure: str, unit: float = 1.0, first: list[Setting] | None = None
) -> None:
    """A measure of both samplers against m; where they begin with the same setting, that is ``first``."""
    ax.set(xscale="log", xlabel="particles m")
    for method in (SMC, SPLIT):
        own = sizes_of(results, method)
        if own:  # not so with a plan of other methods
            settings = [*(s for s in first or [] if results.of(s)), *own]
            table = table_of(results, settings, measure) / unit
            sizes = [setting.size or 1 for setting in settings]
            pt.plots.metric_curve(sizes, table, label=method, ax=ax, colour=COLOURS[method], marker="o")


def online(results: Results) -> Figure:
    """F1 as the observations come in."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    ax = figure.add_subplot()
    for method in ONLINE:
        reported = [s for s in sizes_of(results, method) if s.size in (reported_size(results), None)]
        for setting in reported:
            runs = results.of(setting)
            curves = np.array([run["online_f1"] for run in runs])
            pt.plots.metric_curve(runs[0]["seen"], curves, label=setting.name, ax=ax, colour=COLOURS[method])
    ax.set(xlabel="observations seen", ylabel="B-cubed F1")
    focus(ax, results, "f1")
    return figure


def against_proposals(results: Results) -> Figure:
    """Each measure against m′; dashed where the surrogate clusters alone."""
    names = measures_of(results)
    figure, axes = grid_of_axes(names)
    for ax, measure in zip(axes, names, strict=True):
        ax.set(xscale="log", xlabel="assignments proposed by the surrogate, m′")
        for method in ONLINE:
            own = [s for s in results.experiment.ablation if s.method == method and results.of(s)]
            varied = [s for s in own if not s.alone]
            numbers = [s.proposals or s.size or 1 for s in varied]
            if varied:
                table = table_of(results, varied, measure)
                pt.plots.metric_curve(numbers, table, label=method, ax=ax, colour=COLOURS[method], marker="o")
            for setting in own:
                if setting.alone and not setting.surrogate:
                    level = float(values(results.of(setting), measure).mean())
                    ax.axhline(level, color=COLOURS[method], linestyle="--", linewidth=1.2)
        if measure != "log_density":
            focus(ax, results, measure)
    one_legend(axes)
    return figure


class Drawn:
    """Of a posterior, what a picture of its clustering needs; as a run has kept it."""

    def __init__(self, kept: Run) -> None:
        self._kept = kept
        self.subproblems = [SimpleNamespace(observations=np.array(own)) for own in kept["subproblems"]]

    def labels(self) -> Integers:
        """The best clustering."""
        return np.array(self._kept["labels"])

    def entropy(self) -> Floats:
        """How unsure each observation's cluster is."""
        return np.array(self._kept["entropy"])


def clustering(results: Results) -> Figure | None:
    """The data with the clusters and subproblems that split SMC finds in the first order."""
    from matplotlib.figure import Figure

    experiment, size = results.experiment, reported_size(results)
    order = experiment.orders[0]
    posterior: Any
    if experiment.neural:  # not to be run once more
        kept = [run["picture"] for run in results.of(Setting(SPLIT, size)) if "picture" in run]
        if not kept:
            return None
        posterior = Drawn(kept[0])
    else:
        sampler = pt.SplitSMC(experiment.model, experiment.alpha, size).fit(experiment.X[order])
        posterior = sampler.posterior_
    figure = Figure(figsize=(9.0, 6.0), layout="constrained")
    pt.plots.clustering(experiment.X[order], posterior, ax=figure.add_subplot())
    return figure
