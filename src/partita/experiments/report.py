"""The report of an experiment: a table as the paper's, and one HTML page that needs nothing beside it."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from partita.experiments.figures import REPORTED, draw_all, values
from partita.experiments.plan import METHODS, SMC, SPLIT, Setting
from partita.experiments.runner import Results

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
    "time / split SMC": "CPU time as a multiple of split SMC's with 100 particles.",
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
}


def write_report(results: Results) -> Path:
    """Write ``table.md``, the figures and ``report.html`` beside the results; returns the last one's path."""
    folder = results.path.parent
    figures = draw_all(results, folder)
    header, rows = table(results)
    below = "".join(f"\n{line}\n" for line in not_run(results))
    (folder / "table.md").write_text(markdown(header, rows) + below, encoding="utf-8")
    path = folder / "report.html"
    path.write_text(page(results, header, rows, figures), encoding="utf-8")
    return path


def reported(results: Results) -> list[Setting]:
    """The settings that the table shows: m = 100 where there is a choice, the full batch."""
    chosen = []
    for method in METHODS:
        own = [s for s in results.experiment.settings if s.method == method and results.of(s)]
        usual = [s for s in own if s.size in (REPORTED, None)]
        chosen += (usual or own)[:1]
    return chosen


def mean_sd(column: np.ndarray, digits: int) -> str:
    """Mean, and the standard deviation in brackets, as in the paper."""
    return f"{column.mean():.{digits}f} ({column.std():.{digits}f})".replace("-", "−")


def table(results: Results) -> tuple[list[str], list[list[str]]]:
    """The header and rows of the table: ours, and the paper's figures where there are any."""
    published, truth = results.experiment.published, results.experiment.truth
    header = ["method", "log-posterior", *(["F1", "precision", "recall"] if truth is not None else [])]
    header += ["clusters", "CPU seconds", "time / split SMC"]
    header += ["paper: log-posterior", "F1", "minutes"] if published else []
    settings = reported(results)
    unit = float(np.median(values(results.of(Setting(SPLIT, REPORTED)), "seconds")))
    rows = []
    for setting in settings:
        runs = results.of(setting)
        seconds = float(np.median(values(runs, "seconds")))
        row = [setting.name, mean_sd(values(runs, "log_density"), 1)]
        if truth is not None:
            row += [mean_sd(values(runs, measure), 3) for measure in ("f1", "precision", "recall")]
        row += [mean_sd(values(runs, "clusters"), 1), f"{seconds:.3g}", f"{seconds / unit:.2g}"]
        if published:
            p = published.get(setting.method)
            row += ([f"{p.log_density:.0f} ({p.log_density_sd:.0f})".replace("-", "−")] if p else ["–"]) + (
                [f"{p.f1:.2f} ({p.f1_sd:.2f})", f"{p.minutes:g}"] if p else ["–", "–"]
            )
        rows.append(row)
    return header, rows


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """The table in Markdown."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def not_run(results: Results) -> list[str]:
    """Which methods were not run, and why; a line each."""
    return [f"Not run: {method}. {reason}." for method, reason in results.experiment.skipped.items()]


def parameter(value: Any) -> str:
    """A parameter of a model in a few words."""
    try:
        numbers = np.asarray(value, float)
    except (TypeError, ValueError):
        return shorten(str(value), 80, placeholder=" …")
    if numbers.size > 10:
        return f"{numbers.size} numbers"
    return np.array2string(numbers, precision=4)


def setting_out(results: Results) -> str:
    """What was done."""
    experiment = results.experiment
    X, n_orders = experiment.X, len(experiment.orders)
    parameters = ", ".join(
        f"{name} = {parameter(value)}" for name, value in experiment.model.get_params(deep=False).items()
    )
    width = f" of {X.shape[1]} numbers" if isinstance(X, np.ndarray) else ""
    return (
        f"{len(X)} observations{width}, in {n_orders} order{'s' * (n_orders > 1)}. Model: "
        f"{type(experiment.model).__name__} with {parameters}; concentration {experiment.alpha:.4g}. Every "
        "method looks for a clustering of high posterior density; the samplers see one observation at a "
        "time, Gibbs and agglomerative clustering see all of them at once."
    )


def conclusion(results: Results) -> str:
    """What splitting changed, in a sentence."""
    with_, without = Setting(SPLIT, REPORTED), Setting(SMC, REPORTED)
    runs, others = results.of(with_), results.of(without)
    held = values(runs, "log_effective_particles").mean() / np.log(10.0)
    if not others:
        return f"With {REPORTED} particles, split SMC holds about 10^{held:.0f} clusterings."
    measure, name = ("f1", "F1") if results.experiment.truth is not None else ("log_density", "log-posterior")
    digits = 3 if measure == "f1" else 1
    ours, theirs = values(runs, measure).mean(), values(others, measure).mean()
    time = np.median(values(runs, "seconds")) / np.median(values(others, "seconds"))
    return (
        f"With {REPORTED} particles, splitting takes {name} from {theirs:.{digits}f} to {ours:.{digits}f} in "
        f"{time:.2g} times the time of SMC without it, and holds about 10^{held:.0f} clusterings instead of "
        f"{REPORTED}."
    )


def page(results: Results, header: list[str], rows: list[list[str]], figures: dict[str, Path]) -> str:
    """The HTML page, with its pictures inside."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width'>",
        f"<title>Partita: {escape(results.experiment.name)}</title><style>{STYLE}</style>",
        f"<h1>Experiment: {escape(results.experiment.name)}</h1>",
        f"<p>{escape(setting_out(results))}</p>",
        f"<p><strong>{escape(conclusion(results))}</strong></p>",
        html_table(header, rows),
        *(f"<p>{escape(line)}</p>" for line in not_run(results)),
        "<dl>" + "".join(f"<dt>{escape(t)}</dt><dd>{escape(d)}</dd>" for t, d in TERMS.items()) + "</dl>",
    ]
    for name, (title, text) in CAPTIONS.items():
        if name in figures:
            data = base64.b64encode(figures[name].read_bytes()).decode()
            parts.append(
                f"<h2>{escape(title)}</h2><figure><img alt='{escape(title)}' "
                f"src='data:image/png;base64,{data}'><figcaption>{escape(text)}</figcaption></figure>"
            )
    return "\n".join(parts) + "\n"


def html_table(header: list[str], rows: list[list[str]]) -> str:
    """The table in HTML."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    caption = "Mean over the orders, standard deviation in brackets; CPU time is the median."
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
