"""Pictures: clusterings and their subproblems, accuracy as data arrive, evidence, honest probabilities.

Every function draws on the Axes it is given, or on a new Figure of its own, and returns the Axes. Matplotlib
is imported on first use and pyplot never, so that nothing opens a window or needs a display::

    ax = plots.clustering(X, sampler.posterior_)
    ax.figure.savefig("clustering.png")          # in a notebook, end the cell with `ax.figure`
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from partita.metrics import Calibration
    from partita.posterior import Posterior

# Okabe and Ito's palette, safe for colour-blind readers, less yellow and black (which hollow markers and
# small dots make hard to see or too loud), plus Tol's indigo.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#332288")
# Marker shapes, with the factor that makes their areas look alike.
MARKERS = (("o", 1.0), ("s", 0.85), ("^", 1.1), ("D", 0.7), ("v", 1.1), ("P", 1.15))
INK, GREY, FAINT = "#444444", "#808080", "#e6e6e6"
# Dashes so short that their round ends make dots.
DOTTED: dict[str, Any] = {"linewidth": 1.2, "linestyle": (0, (0.1, 2.0))}
COIN_TOSS = math.log(2.0)  # nats; an observation that is equally likely in two clusters


def clustering(
    X: ArrayLike,
    posterior: Posterior,
    *,
    labels: ArrayLike | None = None,
    ax: Axes | None = None,
    outline: bool = True,
    uncertainty: bool = True,
    title: str | None = None,
) -> Axes:
    """Draw points in the plane with their clusters, subproblems and uncertainty.

    Each cluster has a colour and a marker, chosen so that clusters near each other look different.
    Observations whose cluster is certain are small and solid; the less certain, the larger and hollower.

    Parameters
    ----------
    X : array-like of shape (n, 2)
        The observations.
    posterior : Posterior
        Their posterior.
    labels : array-like of shape (n,), optional
        The clustering to show; `posterior.labels()` unless given.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.
    outline : bool
        Surround each subproblem of more than one observation with a dotted line.
    uncertainty : bool
        Show `posterior.entropy()` by the markers' size and fill.
    title : str, optional
        Title of the picture.

    Returns
    -------
    matplotlib Axes
    """
    points, codes = _points_and_labels(X, posterior.labels() if labels is None else labels)
    unsure = _unsureness(posterior, len(points)) if uncertainty else np.zeros(len(points))
    middle, reach = _frame(points)
    if ax is None:
        width, height = 7.0 * reach / reach.max()
        ax = _new_axes((max(width, 4.5), height + 0.6))
    outlined = _draw_outlines(ax, points, posterior) if outline else 0
    _draw_points(ax, points, codes, unsure)
    (left, bottom), (right, top) = middle - reach, middle + reach
    ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    _tidy(ax)
    _clustering_legend(ax, outlined=outlined > 0, uncertain=uncertainty)
    if title is not None:
        ax.set_title(title, loc="left", color=INK)
    return ax


def metric_curve(
    x: ArrayLike,
    values: ArrayLike,
    *,
    band: ArrayLike | None = None,
    label: str | None = None,
    ax: Axes | None = None,
    colour: str | None = None,
    marker: str | None = None,
) -> Axes:
    """Draw a measure against anything that grows: runtime, particles, observations.

    Parameters
    ----------
    x : array-like of shape (n,)
        Where it was measured.
    values : array-like of shape (n,) or (n_runs, n)
        The measure. Of several runs the mean is drawn, with its 95 % confidence interval (Student's t).
    band : array-like of shape (2, n), optional
        Lower and upper end of the band, in place of that interval.
    label : str, optional
        Name of the curve, for the legend.
    ax : matplotlib Axes, optional
        Where to draw, so that several calls share one picture; a new figure unless given.
    colour : str, optional
        The next of the palette unless given.
    marker : str, optional
        Matplotlib's sign for the places where it was measured; none unless given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = metric_curve([10, 100, 1000], [[0.7, 0.8, 0.85], [0.6, 0.8, 0.9]], label="split SMC", marker="o")
    >>> len(ax.lines)
    1
    """
    places, runs = np.asarray(x, dtype=float), np.atleast_2d(np.asarray(values, dtype=float))
    if places.ndim != 1 or runs.ndim != 2 or runs.shape[1] != places.size:
        raise ValueError(
            f"values has shape {runs.shape}: it needs one column for each place on the axis, {places.shape}"
        )
    mean = runs.mean(axis=0)
    low, high = _confidence_interval(runs) if band is None else _given_band(band, places.size)
    ax = _new_axes((6.0, 4.0)) if ax is None else ax
    colour = colour or PALETTE[len(ax.lines) % len(PALETTE)]
    ax.plot(
        places,
        mean,
        color=colour,
        linewidth=2.0,
        label=label,
        solid_capstyle="round",
        marker=marker,
        markersize=5,
        markeredgecolor="white",
    )
    if np.any(high > low):
        ax.fill_between(places, low, high, color=colour, alpha=0.18, linewidth=0)
    _tidy(ax)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False, labelcolor=INK)
    return ax


def online_curve(
    seen: ArrayLike,
    values: ArrayLike,
    *,
    band: ArrayLike | None = None,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a measure of accuracy against the number of observations seen.

    Parameters as for :func:`metric_curve`. Axis labels are set where they are empty, to "observations seen"
    and "F1".

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = online_curve([100, 200, 300], [0.70, 0.80, 0.85], label="split SMC")
    >>> ax = online_curve([100, 200, 300], [[0.6, 0.5, 0.5], [0.7, 0.6, 0.5]], label="greedy", ax=ax)
    >>> len(ax.lines), ax.get_xlabel()
    (2, 'observations seen')
    """
    ax = metric_curve(seen, values, band=band, label=label, ax=ax)
    ax.set_xlabel(ax.get_xlabel() or "observations seen")
    ax.set_ylabel(ax.get_ylabel() or "F1")
    return ax


def reliability(calibration: Calibration, ax: Axes | None = None) -> Axes:
    """Draw a reliability diagram: on the diagonal, probabilities mean what they say.

    Below the diagonal the posterior is too ready to put pairs together, above it too reluctant. The bars
    at the foot count the pairs in each bin.

    Parameters
    ----------
    calibration : Calibration
        As `partita.metrics.calibration` returns it.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from partita.metrics import calibration
    >>> ax = reliability(calibration([0.1, 0.2, 0.9], [False, False, True]))
    >>> ax.get_xlabel()
    'predicted probability of sharing a cluster'
    """
    ax = _new_axes((5.0, 6.0)) if ax is None else ax
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1.0, linestyle=(0, (4, 3)))
    filled = calibration.bin_count > 0
    ax.plot(
        calibration.bin_probability[filled],
        calibration.bin_frequency[filled],
        color=PALETTE[0],
        linewidth=2.0,
        marker="o",
        markersize=6,
        markeredgecolor="white",
        clip_on=False,
    )
    _draw_counts(ax, calibration.bin_count)
    ax.text(
        0.02,
        0.98,
        f"expected calibration error {calibration.expected_calibration_error:.3f}\n"
        f"Brier score {calibration.brier:.3f}",
        va="top",
        color=INK,
    )
    ax.set_xlabel("predicted probability of sharing a cluster")
    ax.set_ylabel("observed frequency")
    ax.set_aspect("equal")
    ax.set(xlim=(0, 1), yticks=np.linspace(0, 1, 6), xticks=np.linspace(0, 1, 6))
    _tidy(ax)
    return ax


def waterfall(
    names: Sequence[str], nats: ArrayLike, *, ax: Axes | None = None, title: str | None = None
) -> Axes:
    """Draw evidence step by step: each bar begins where the one before ends, the last is their sum.

    Parameters
    ----------
    names : sequence of str
        What each step is.
    nats : array-like of shape (n,)
        How much it says: above 0 for being together, below for being apart.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.
    title : str, optional
    """
    steps = np.asarray(nats, dtype=np.float64)
    if steps.ndim != 1 or len(steps) != len(names):
        raise ValueError(f"nats must have shape ({len(names)},), got {steps.shape}")
    ax = ax or _new_axes((6.0, 0.35 * len(steps) + 1.2))
    ends = np.cumsum(steps)
    rows = np.arange(len(steps) + 1)
    starts, widths = np.append(ends - steps, 0.0), np.append(steps, steps.sum())
    colours = [PALETTE[2] if width > 0 else PALETTE[4] for width in widths[:-1]] + [INK]
    ax.barh(rows, widths, left=starts, color=colours, height=0.7)
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    edges = np.concatenate([starts, starts + widths, [0.0]])
    reach = max(float(np.ptp(edges)), 1e-9)
    for row, (start, width) in enumerate(zip(starts.tolist(), widths.tolist(), strict=True)):
        side = 1.0 if width >= 0 else -1.0
        text = f"{round(width, 1) or 0.0:+.1f}".replace("-", "\N{MINUS SIGN}")
        where = (max if side > 0 else min)(start, start + width) + 0.02 * side * reach
        ax.text(
            where, row, text, va="center", ha="left" if side > 0 else "right", fontsize="small", color=INK
        )
    ax.set_yticks(rows, [*names, "log-odds"])
    ax.invert_yaxis()
    ax.set_xlim(edges.min() - 0.15 * reach, edges.max() + 0.15 * reach)
    ax.set_xlabel("apart  \N{LEFTWARDS ARROW}  nats  \N{RIGHTWARDS ARROW}  together")
    if title:
        ax.set_title(title)
    _tidy(ax)
    return ax


def together_map(
    probability: ArrayLike,
    labels: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw how probable it is that observations are together, two by two, with the clusters outlined.

    Parameters
    ----------
    probability : array-like of shape (n, n)
        As ``posterior.together`` gives it.
    labels : array-like of shape (n,)
        The clusters to outline; those of one must stand side by side.
    names : sequence of str, optional
        What each cluster is called; written beside it.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.
    title : str, optional
    """
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    matrix, codes = np.asarray(probability, dtype=np.float64), np.asarray(labels)
    if matrix.ndim != 2 or matrix.shape != (len(codes), len(codes)):
        raise ValueError(f"probability must have shape ({len(codes)}, {len(codes)}), got {matrix.shape}")
    ax = ax or _new_axes((6.0, 6.0))
    shades = LinearSegmentedColormap.from_list("together", ["white", PALETTE[0]])
    ax.imshow(matrix, cmap=shades, vmin=0.0, vmax=1.0)
    borders = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1], True])
    for start, end in pairwise(borders.tolist()):
        corner = (start - 0.5, start - 0.5)
        ax.add_patch(Rectangle(corner, end - start, end - start, fill=False, edgecolor=INK, linewidth=1.0))
    middles = (borders[:-1] + borders[1:] - 1) / 2.0
    ax.set_yticks(middles, list(names) if names is not None else [""] * len(middles))
    ax.set_xticks([])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if title:
        ax.set_title(title)
    return ax


def _new_axes(size: tuple[float, float]) -> Axes:
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained").add_subplot()


def _tidy(ax: Axes) -> None:
    """A faint grid behind the data, and no frame."""
    ax.set_axisbelow(True)
    ax.grid(color=FAINT, linewidth=0.8)
    ax.spines[:].set_visible(False)
    ax.tick_params(which="both", length=0, labelcolor=GREY, labelsize="small")
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)


def _points_and_labels(X: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """X as floats and labels as 0..K-1, or an error that says what to pass instead."""
    points = np.asarray(X, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) == 0:
        raise ValueError(f"X has shape {points.shape}; pass rows of two columns, as X[:, :2] or a projection")
    if not np.isfinite(points).all():
        raise ValueError(f"row {np.flatnonzero(~np.isfinite(points).all(axis=1))[0]} of X is not finite")
    if np.shape(labels) != (len(points),):
        raise ValueError(f"X has {len(points)} rows, the labels have shape {np.shape(labels)}")
    return points, np.unique(np.asarray(labels), return_inverse=True)[1]


def _frame(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Middle of the picture, and how far it reaches to each side; never a sliver, or empty."""
    low, high = points.min(axis=0), points.max(axis=0)
    reach = (high - low) / 2.0
    longest = float(reach.max()) or 1.0
    return (low + high) / 2.0, np.maximum(reach, 0.3 * longest) + 0.07 * longest


def _unsureness(posterior: Posterior, n: int) -> NDArray[np.float64]:
    """0 where the cluster is certain, 1 where it is a coin toss or worse."""
    entropy = np.asarray(posterior.entropy(), dtype=float)
    if entropy.shape != (n,):
        raise ValueError(f"X has {n} rows, the posterior {entropy.size} observations")
    return np.clip(entropy / COIN_TOSS, 0.0, 1.0)


def _draw_outlines(ax: Axes, points: NDArray[np.float64], posterior: Posterior) -> int:
    """Surround each subproblem of two or more observations; return how many there are."""
    from matplotlib.collections import PolyCollection

    padding = 0.022 * float(_frame(points)[1].max())
    members = [np.asarray(subproblem.observations) for subproblem in posterior.subproblems]
    hulls = [_rounded_hull(points[rows], padding) for rows in members if rows.size > 1]
    ax.add_collection(
        PolyCollection(hulls, facecolor="#f6f6f6", edgecolor=GREY, capstyle="round", zorder=1.5, **DOTTED)
    )
    return len(hulls)


def _rounded_hull(points: NDArray[np.float64], padding: float) -> NDArray[np.float64]:
    """Outline at a distance around the points' convex hull: the hull of a circle around each point.

    Circles always span the plane, so points on a line, or all equal, need no special case.
    """
    from scipy.spatial import ConvexHull

    angles = np.linspace(0.0, 2.0 * math.pi, 32, endpoint=False)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    # In units of the padding and near the origin, so that rounding cannot flatten the circles.
    candidates = ((points - points[0])[:, None, :] / padding + circle).reshape(-1, 2)
    hull: NDArray[np.float64] = points[0] + padding * candidates[ConvexHull(candidates).vertices]
    return hull


def _draw_points(
    ax: Axes, points: NDArray[np.float64], codes: NDArray[np.intp], unsure: NDArray[np.float64]
) -> None:
    from matplotlib.colors import to_rgb

    colour_of, marker_of = _styles(points, codes)
    colours = np.array([to_rgb(colour) for colour in PALETTE])[colour_of[codes]]
    area = float(np.clip(7000 / len(points), 6.0, 22.0))
    for index in np.unique(marker_of):
        marker, factor = MARKERS[index]
        rows = np.flatnonzero(marker_of[codes] == index)
        rows = rows[np.argsort(unsure[rows], kind="stable")]  # the unsure on top
        hollow = unsure[rows, None]
        ax.scatter(
            points[rows, 0],
            points[rows, 1],
            s=area * factor * (1.0 + 2.0 * unsure[rows]),
            c=(1.0 - hollow) * colours[rows] + hollow,
            edgecolors=colours[rows],
            linewidths=(0.3 + 0.9 * unsure[rows]).tolist(),
            marker=marker,
            zorder=2.5,
        )


def _styles(
    points: NDArray[np.float64], codes: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """A colour and a marker for each cluster: the ones whose nearest use so far is farthest away."""
    sizes = np.bincount(codes)
    centres = np.column_stack([np.bincount(codes, weights=column) / sizes for column in points.T])
    chosen = np.empty((2, sizes.size), dtype=np.intp)
    nearest_use = np.full((len(PALETTE), len(MARKERS), sizes.size), np.inf)
    for cluster, centre in enumerate(centres):
        uses = nearest_use[:, :, cluster]
        colour = np.argmax(uses.min(axis=1))
        # Above all, not the marker of a near cluster of this colour; then, not that of any near cluster.
        marker = np.lexsort((-uses.min(axis=0), -uses[colour]))[0]
        chosen[:, cluster] = colour, marker
        use = nearest_use[colour, marker]
        np.minimum(use, np.hypot(*(centres - centre).T), out=use)
    return chosen[0], chosen[1]


def _clustering_legend(ax: Axes, outlined: bool, uncertain: bool) -> None:
    """Explain the markers and the dotted lines, where there are any to explain."""
    from matplotlib.lines import Line2D

    handles = []
    if uncertain:
        names = "certain", f"{COIN_TOSS / 2:.2f} nats", f"{COIN_TOSS:.2f}, a coin toss"
        for hollow, name in zip((0.0, 0.5, 1.0), names, strict=True):
            dot = Line2D([], [], linestyle="", marker="o", color=str(0.4 + 0.6 * hollow), label=name)
            dot.set_markersize(4.0 * math.sqrt(1.0 + 2.0 * hollow))
            dot.set_markeredgecolor("0.4")
            handles.append(dot)
    if outlined:
        handles.append(Line2D([], [], label="subproblem", color=GREY, dash_capstyle="round", **DOTTED))
    if handles:
        below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.05), "ncols": len(handles)}
        tight = {"handlelength": 1.5, "handletextpad": 0.4, "columnspacing": 1.3}
        ax.legend(handles=handles, **below, **tight, frameon=False, labelcolor=INK, fontsize="small")


def _confidence_interval(runs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """95 % confidence interval of the mean of the runs; of zero width for a single run."""
    from scipy.special import stdtrit

    mean, n_runs = runs.mean(axis=0), len(runs)
    if n_runs == 1:
        return mean, mean
    half = stdtrit(n_runs - 1, 0.975) * runs.std(axis=0, ddof=1) / math.sqrt(n_runs)
    return mean - half, mean + half


def _given_band(band: ArrayLike, n_checks: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    ends = np.asarray(band, dtype=float)
    if ends.shape != (2, n_checks):
        raise ValueError(f"band has shape {ends.shape}: it needs a lower and an upper row, (2, {n_checks})")
    return ends[0], ends[1]


def _draw_counts(ax: Axes, count: NDArray[np.intp]) -> None:
    """Bars in a strip below zero, so that they neither hide the curve nor need an axis of their own."""
    foot, height = -0.24, 0.14
    edges = np.linspace(0.0, 1.0, count.size + 1)
    bars = height * count / count.max()
    ax.bar(edges[:-1], bars, width=0.94 / count.size, bottom=foot, align="edge", color="#d5dbe3", zorder=2)
    if count.size <= 12:  # more numbers would not fit
        for index in np.flatnonzero(count):
            text = f"{count[index]:,}" if count[index] < 10_000 else f"{count[index] / 1000:,.0f}k"
            place = ((index + 0.5) / count.size, foot + bars[index] + 0.01)
            ax.text(*place, text, ha="center", fontsize="x-small", color=GREY)
    ax.set_ylim(foot, 1.0)
