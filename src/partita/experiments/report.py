"""The report of an experiment: a table as the paper's, and one HTML page that needs nothing beside it."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

import partita as pt
from partita.experiments.experiment import AGGLOMERATIVE, METHODS, REFINED, SMC, SPLIT, Setting
from partita.experiments.figures import REPORTED, draw_all, median_seconds, reported_size, time_unit, values
from partita.experiments.runner import Results, Run

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
body { color: #333 }
h1, h2 { line-height: 1.2; color: #111 } h2 { margin-top: 2.5rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
caption { text-align: left; color: #666 }
th, td { padding: .3rem .9rem .3rem 0; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child { text-align: left }
dt { font-weight: 600; margin-top: .5rem } dd { margin: 0; color: #666 }
img { max-width: 100%; height: auto } figure { margin: 1rem 0 } figcaption { color: #666 }
"""
TERMS = {
    "log-posterior": "How probable the clustering found is, on a logarithmic scale and up to a constant.",
    "precision, recall, F1": "B-cubed, means over the observations: of those found together with one, how "
    "many belong there; of those that belong there, how many were found; and their harmonic mean.",
    "m": "Particles: how many clusterings a sampler keeps, split SMC for each subproblem.",
    "greedy": "A single particle: every observation goes where it fits best, for good.",
    "SMC": "Sequential Monte Carlo over clusterings of all the data.",
    "split SMC": "The same, with the data divided into subproblems that are clustered independently.",
    "split SMC, refined": "Run again over what was seen, in other orders.",
    "time / split SMC": "Time as a multiple of split SMC's in this table.",
}
OF_BLACK_BOXES = {
    "m′": "How many assignments of each observation the surrogate proposes for the network to score; as "
    "many as there are particles unless it says otherwise.",
    "calls, evaluations": "How often the network was called, and for how many clusters in all.",
    "lookahead": "For how many observations the network is asked ahead, in one call.",
    "calibration error": "Of pairs that may belong together: how far the probability that they do is from "
    "how often they do, on average.",
}
CAPTIONS = {
    "clustering": (
        "The data, and what split SMC makes of them",
        "Colours are clusters. A dotted line surrounds a subproblem: points whose clusters depend on each "
        "other. Large hollow points are uncertain. Splitting means that each of these groups keeps its own "
        "alternatives, instead of all points sharing one short list.",
    ),
    "splitting": (
        "What splitting buys",
        "With m particles, plain SMC holds m clusterings of all points. Split SMC holds up to m for each "
        "subproblem, and every combination of them is a clustering: the number on the right is the "
        "logarithm of how many.",
    ),
    "online": (
        "As the observations come in",
        "F1 of the best clustering so far, the mean over the orders with its 95 % interval. Where a sampler "
        "falls behind as more is seen, it has dropped alternatives that it would need later.",
    ),
    "runtime": (
        "Accuracy against time",
        "Samplers at each number of particles; offline methods as they go on (dashed: agglomerative with "
        "batches of so many pairs). Stars are the rows of the table. Bands are 95 % intervals of the mean.",
    ),
    "particles": (
        "Accuracy against the number of particles",
        "Both samplers begin as the greedy one, with a single particle.",
    ),
    "ablation": (
        "How much to ask the network",
        "Accuracy against m′, how many assignments the surrogate proposes for the network to score, with the "
        "number of particles fixed (paper, appendix A.3). Dashed: the surrogate alone, its clusterings "
        "scored by the network.",
    ),
}


def write_report(results: Results) -> Path:
    """Write ``table.md``, the figures and ``report.html`` beside the results; returns the last one's path."""
    folder = results.path.parent
    figures = draw_all(results, folder)
    tables = [table(results)]
    if any(results.of(setting) for setting in results.experiment.ablation):
        tables.append(ablation_table(results))
    text = "\n".join(markdown(*each) for each in tables)
    text += "".join(f"\n{line}\n" for line in remarks(results))
    (folder / "table.md").write_text(text, encoding="utf-8")
    path = folder / "report.html"
    path.write_text(page(results, tables, figures), encoding="utf-8")
    return path


def reported(results: Results) -> list[Setting]:
    """The settings of the table: each method at its usual size, and those that differ in more than size."""
    chosen, size = list[Setting](), reported_size(results)
    for method in METHODS:
        own = [s for s in results.experiment.settings if s.method == method and results.of(s)]
        if method == AGGLOMERATIVE and results.experiment.neural:
            chosen += own  # batches are what the time allows
            continue
        alike = [s for s in own if s.usual]
        chosen += ([s for s in alike if s.size in (size, None)] or alike)[:1]
        chosen += [s for s in own if not s.usual]
    return chosen


def mean_sd(column: np.ndarray, digits: int) -> str:
    """Mean, and the standard deviation in brackets, as in the paper."""
    return f"{column.mean():.{digits}f} ({column.std():.{digits}f})".replace("-", "−")


Table = tuple[list[str], list[list[str]]]


def table(results: Results) -> Table:
    """The header and rows of the table: ours, and the paper's figures where there are any."""
    published, settings = results.experiment.published, reported(results)
    extra = [name for name in EXTRA if any(name in run for s in settings for run in results.of(s))]
    header = [*measured_header(results), "clusters", *(EXTRA[name] for name in extra)]
    header += [time_unit(results), "time / split SMC"]
    header += ["paper: log-posterior", "F1", "minutes"] if published else []
    unit = median_seconds(results.of(Setting(SPLIT, reported_size(results))))
    rows = []
    for setting in settings:
        runs = results.of(setting)
        row = [*measured(results, setting), mean_sd(values(runs, "clusters"), 1)]
        row += [shown(runs, name, setting) for name in extra]
        row += [f"{median_seconds(runs):.3g}", f"{median_seconds(runs) / unit:.2g}".replace("nan", "–")]
        rows.append(row + ([] if not published else of_the_paper(results, setting)))
    return header, rows


EXTRA = {"calibration_error": "calibration error", "calls": "calls", "evaluations": "evaluations"}


def shown(runs: list[Run], name: str, setting: Setting) -> str:
    """One more measure, where it means something."""
    if name == "calibration_error":
        # Of the pairs within a subproblem; without splitting that is nearly all of them, most of them easy.
        possible = setting.method in (SPLIT, REFINED) and all(name in run for run in runs)
        return f"{values(runs, name).mean():.3f}" if possible else "–"
    return f"{np.median(values(runs, name)):,.0f}" if all(name in run for run in runs) else "–"


def measured_header(results: Results) -> list[str]:
    """The first columns of a table."""
    truth = results.experiment.truth
    return ["method", "log-posterior", *(["F1", "precision", "recall"] if truth is not None else [])]


def measured(results: Results, setting: Setting) -> list[str]:
    """And what stands in them."""
    runs = results.of(setting)
    row = [setting.name, mean_sd(values(runs, "log_density"), 1)]
    if results.experiment.truth is not None:
        row += [mean_sd(values(runs, measure), 3) for measure in ("f1", "precision", "recall")]
    return row


def of_the_paper(results: Results, setting: Setting) -> list[str]:
    """The paper's figures for a method; none for what it did not run in this way."""
    p = results.experiment.published.get(setting.method)
    if (
        p is None
        or setting.size not in (None, REPORTED)
        or setting.lookahead
        or setting.surrogate == "record"
    ):
        return ["–"] * 3
    same = results.experiment.name != "kb"  # or the likelihoods are of other data
    density = f"{p.log_density:.0f} ({p.log_density_sd:.0f})".replace("-", "−") if same else "–"
    return [density, f"{p.f1:.2f} ({p.f1_sd:.2f})", f"{p.minutes:g}"]


def ablation_table(results: Results) -> Table:
    """The header and rows of the ablation of m′."""
    header = [*measured_header(results), "calls", "evaluations", time_unit(results)]
    rows = []
    for setting in results.experiment.ablation:
        if runs := results.of(setting):
            number = None if setting.alone else setting.proposals or setting.size or 1
            counts = [shown(runs, name, setting) for name in ("calls", "evaluations")]
            row = [setting._replace(proposals=number).name, *measured(results, setting)[1:]]
            rows.append([*row, *counts, f"{median_seconds(runs):.3g}"])
    return header, rows


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """The table in Markdown."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def remarks(results: Results) -> list[str]:
    """Which methods were not run, and why, how far others came, and other notes; a line each."""
    experiment, lines = results.experiment, list[str]()
    reasons = {s.method: "Left out" for s in experiment.settings if not results.of(s)}
    reasons |= experiment.skipped
    for method, reason in reasons.items():
        if not any(results.of(s) for s in experiment.settings if s.method == method):
            lines.append(f"Not run: {method}. {reason}.")
    for setting in experiment.settings:
        runs = results.of(setting)
        if cut := sum(bool(run.get("cut_short")) for run in runs):
            limit = runs[-1]["max_minutes"]
            lines.append(f"Cut short after {limit:.3g} minutes: {setting.name}, {cut} of {len(runs)} runs.")
    return lines + list(experiment.notes)


def parameter(value: Any) -> str:
    """A parameter of a model in a few words."""
    try:
        numbers = np.asarray(value, float)
    except (TypeError, ValueError):
        return shorten(str(value), 80, placeholder=" …")
    if numbers.size > 10:
        return f"{numbers.size} numbers"
    return np.array2string(numbers, precision=4)


def described(model: Any) -> str:
    """A model and its parameters."""
    parameters = model.get_params(deep=False).items()
    return f"{type(model).__name__} with " + ", ".join(f"{k} = {parameter(v)}" for k, v in parameters)


def setting_out(results: Results) -> str:
    """What was done."""
    experiment = results.experiment
    X, n_orders = experiment.X, len(experiment.orders)
    model = described(experiment.model)
    if isinstance(experiment.model, pt.BlackBox):
        score, proposer = experiment.model.score, described(experiment.surrogates[""][0])
        model = f"{getattr(score, 'name', type(score).__name__)}, with a surrogate {proposer}"
    width = f" of {X.shape[1]} numbers" if isinstance(X, np.ndarray) else ""
    return (
        f"{len(X)} observations{width}, in {n_orders} order{'s' * (n_orders > 1)}. Model: "
        f"{model}; concentration {experiment.alpha:.4g}. Every "
        "method looks for a clustering of high posterior density; the samplers see one observation at a "
        "time, Gibbs and agglomerative clustering see all of them at once."
    )


def conclusion(results: Results) -> str:
    """What splitting changed, in a sentence."""
    m = reported_size(results)
    runs, others = results.of(Setting(SPLIT, m)), results.of(Setting(SMC, m))
    if not runs:
        return "Split SMC has not been run."
    held = values(runs, "log_effective_particles").mean() / np.log(10.0)
    if not others:
        return f"With {m} particles, split SMC holds about 10^{held:.0f} clusterings."
    measure, name = ("f1", "F1") if results.experiment.truth is not None else ("log_density", "log-posterior")
    digits = 3 if measure == "f1" else 1
    ours, theirs = values(runs, measure).mean(), values(others, measure).mean()
    time = median_seconds(runs) / median_seconds(others)
    return (
        f"With {m} particles, splitting takes {name} from {theirs:.{digits}f} to {ours:.{digits}f} in "
        f"{time:.2g} times the time of SMC without it, and holds about 10^{held:.0f} clusterings instead of "
        f"{m}."
    )


def page(results: Results, tables: list[Table], figures: dict[str, Path]) -> str:
    """The HTML page, with its pictures inside."""
    terms = TERMS | (OF_BLACK_BOXES if results.experiment.neural else {})
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width'>",
        f"<title>Partita: {escape(results.experiment.name)}</title><style>{STYLE}</style>",
        f"<h1>Experiment: {escape(results.experiment.name)}</h1>",
        f"<p>{escape(setting_out(results))}</p>",
        f"<p><strong>{escape(conclusion(results))}</strong></p>",
        html_table(*tables[0]),
        *(f"<p>{escape(line)}</p>" for line in remarks(results)),
        "<dl>" + "".join(f"<dt>{escape(t)}</dt><dd>{escape(d)}</dd>" for t, d in terms.items()) + "</dl>",
    ]
    for name, (title, text) in CAPTIONS.items():
        if name in figures:
            data = base64.b64encode(figures[name].read_bytes()).decode()
            parts.append(
                f"<h2>{escape(title)}</h2><figure><img alt='{escape(title)}' "
                f"src='data:image/png;base64,{data}'><figcaption>{escape(text)}</figcaption></figure>"
            )
    parts += [html_table(*each) for each in tables[1:]]  # below the figure of the ablation, which is the last
    return "\n".join(parts) + "\n"


def html_table(header: list[str], rows: list[list[str]]) -> str:
    """The table in HTML."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    caption = "Mean over the orders, standard deviation in brackets; times and counts are medians."
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
