"""The tables of the pages, made of the JSON that the benchmarks wrote: ``python docs/make_tables.py [NAME …]``.

A page has ``<!-- made: NAME -->`` where a table belongs; ``docs/_ext/made.py`` puts it there when the site is built. So
no figure in a table was typed by hand. Each table ends with the command that its figures came from.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
BENCHMARKS = RESULTS / "benchmarks"
TABLES: dict[str, Callable[[], str]] = {}
USED: set[Path] = set()  # files that were read

ONCE, REFINED = "Partita", "Partita, refined"
TUNING = (  # the sets on which constants were chosen; benchmarks/entity_sets.py, and a test compares
    "kb50",
    "webnlg_conf2",
    "cora",
    "fake1000",
    "rldata500",
    "historical50k",
    "names200_el",
    "fodors_zagat",
    "amazon_google",
    "inventors_stream",
    "ecb_mentions_a",
)
ABOUT = {  # what a record of the set is
    "kb50": "a few facts about a person, place or work, many of whom share a name",
    "kb200": "as in kb50, of two hundred entities",
    "kb1k": "as in kb50, of a thousand entities",
    "kb5k": "as in kb50, of five thousand entities",
    "geo1k": "a few facts about a place",
    "fewrel_conf1": "what a sentence of an encyclopedia says of somebody; most are said of once",
    "webnlg_conf2": "facts about an entity, which people wrote sentences about; many of each entity",
    "names200_el": "one name, as a text mentions an entity",
    "names200_wikidata": "one name or alias of an entity",
    "cora": "a citation of a paper in computer science",
    "rldata500": "a person with typing errors, generated",
    "rldata10000": "as in rldata500, twenty times as many",
    "febrl3": "a person with an address and errors, generated",
    "fake1000": "a person with few columns and errors, generated",
    "historical50k": "a person of the past, with errors put in",
    "fodors_zagat": "a restaurant in one of two guides",
    "dblp_acm": "a paper in one of two bibliographies",
    "amazon_google": "a piece of software in one of two shops; editions differ in a word",
    "notebooks_x2": "an offer of a laptop, in one of many shops",
    "imdb_dbpedia": "a film in one of two sources; half share a title with another film",
    "authors_dblp": "a citation with one of two ambiguous authors",
    "inventors_stream": "an inventor on a patent, in order of time",
    "assignees_air": "an organisation's name on a patent",
    "ecb_mentions_a": "a mention in the news, with its sentence",
}


def table(function: Callable[[], str]) -> Callable[[], str]:
    """Register what makes a table, under its name with hyphens."""
    TABLES[function.__name__.replace("_", "-")] = function
    return function


# ---------------------------------------------------------------------- reading and writing


def read(name: str) -> dict[str, Any]:
    """What a benchmark wrote."""
    path = BENCHMARKS / f"{name}.json"
    USED.add(path)
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def share(figure: float | None, digits: int = 3) -> str:
    """A share without the zero before the point, as F1 and errors of calibration are written here."""
    if figure is None or not math.isfinite(figure):
        return "–"
    return f"{figure:.{digits}f}".replace("0.", ".", 1) if 0.0 <= figure < 1.0 else f"{figure:.{digits}f}"


def number(figure: float | None, digits: int = 0) -> str:
    """A number with commas between thousands; a minus sign that is one."""
    return "–" if figure is None else f"{figure:,.{digits}f}".replace("-", "−")


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """A Markdown table whose first columns are texts and whose others are numbers."""
    line = ["---" if place < texts else "---:" for place in range(len(heads))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, line, *rows))


def mean(figures: Iterable[float | None]) -> float | None:
    """The mean of those that are known."""
    known = [figure for figure in figures if figure is not None]
    return sum(known) / len(known) if known else None


def mean_of_sets(figures: Sequence[float | None]) -> str:
    """Their mean, and of how many it is, if some are not known."""
    known = sum(figure is not None for figure in figures)
    return share(mean(figures)) + (f" ({known})" if 0 < known < len(figures) else "")


def command(*found: dict[str, Any], also: str = "") -> str:
    """Where figures came from."""
    commands = " and ".join(dict.fromkeys(f"`{one['command']}`" for one in found))
    return f"\n\nMade by {commands}{also}."


# ---------------------------------------------------------------------- records


def sets_by_half() -> dict[str, dict[str, Any]]:
    """The sets of the benchmark of records: those that constants were chosen on, and the others."""
    sets = read("entity_resolution")["sets"]
    chosen = {name: sets[name] for name in TUNING if name in sets}
    return {"tuning": chosen, "testing": {name: of for name, of in sets.items() if name not in chosen}}


def best(of_set: dict[str, Any]) -> dict[str, Any]:
    """Our figures after refinement, or after one pass where there is none."""
    methods: dict[str, Any] = of_set["methods"]
    found: dict[str, Any] = methods.get(REFINED) or methods[ONCE]
    return found


def f1(of_set: dict[str, Any], method: str) -> float | None:
    """A method's F1 on a set."""
    found: float | None = of_set["methods"].get(method, {}).get("f1")
    return found


@table
def entity_resolution() -> str:
    """Accuracy on all sets of records, beside peers."""
    methods = (ONCE, REFINED, "linkage", "Splink", "equal values", "alone")
    heads = ("set", "records", "one pass", "refined", "linkage*", "Splink*", "equal values", "all alone")
    parts = []
    for half, sets in sets_by_half().items():
        rows = [
            [name, number(of["records"]), *(share(f1(of, method)) for method in methods)]
            for name, of in sorted(sets.items(), key=lambda item: -best(item[1])["f1"])
        ]
        means = [mean_of_sets([f1(of, method) for of in sets.values()]) for method in methods]
        said = "constants were chosen on these" if half == "tuning" else "nothing was chosen on these"
        parts.append(f"**The {half} half**: {said}.\n\n" + grid(heads, [*rows, ["*mean*", "", *means]]))
    legend = (
        "\n\nB-cubed F1, the mean over records. A star marks methods whose settings were chosen with the truth, as no "
        "user could; Partita sees no label and has nothing set by hand. Splink has the settings of its own "
        "demonstrations. A mean over fewer sets is followed by their number, and is not to be compared."
    )
    return "\n\n".join(parts) + legend + command(read("entity_resolution"))


@table
def data_sets() -> str:
    """What the sets are."""
    rows = [
        [name, half, number(of["records"]), ABOUT[name]]
        for half, sets in sets_by_half().items()
        for name, of in sets.items()
    ]
    lines = [f"| {name} | {half} | {records} | {about} |" for name, half, records, about in rows]
    return "\n".join(["| set | half | records | a record is |", "| --- | --- | ---: | --- |", *lines])


@table
def calibration() -> str:
    """How honest the probabilities are, on all sets, the worst first."""
    sets = read("entity_resolution")["sets"]
    heads = (
        "set",
        "half",
        "calibration error",
        "with missed pairs",
        "pairs above .99",
        "true among these",
        "F1",
    )
    rows = [
        [
            name,
            "tuning" if name in TUNING else "testing",
            share(ours["own"]),
            share(ours["common"]),
            number(ours["sure_pairs"]),
            share(ours["sure"]),
            share(ours["f1"]),
        ]
        for name, ours in sorted(
            ((name, best(of)) for name, of in sets.items()), key=lambda item: -item[1]["own"]
        )
    ]
    every = [best(of) for of in sets.values()]
    means = [share(mean(ours[key] for ours in every)) for key in ("own", "common")]
    last = [
        "*mean*",
        "",
        *means,
        "",
        mean_of_sets([ours["sure"] for ours in every]),
        share(mean(o["f1"] for o in every)),
    ]
    return grid(heads, [*rows, last], texts=2) + command(read("entity_resolution"))


@table
def calibration_in_words() -> str:
    """How many sets are good, and which are bad."""
    sets = {name: best(of) for name, of in read("entity_resolution")["sets"].items()}
    good = [name for name, ours in sets.items() if ours["own"] <= 0.05]
    bad = sorted(
        (name for name, ours in sets.items() if ours["own"] > 0.1), key=lambda name: -sets[name]["own"]
    )
    wrong = sorted(
        (n for n, ours in sets.items() if ours["sure"] is not None and ours["sure"] < 0.9),
        key=lambda n: sets[n]["sure"],
    )
    worst = ", ".join(f"{name} ({share(sets[name]['own'], 2)})" for name in bad) or "none"
    sure = ", ".join(f"{name} ({share(sets[name]['sure'], 2)})" for name in wrong) or "none"
    return (
        f"On {len(good)} of {len(sets)} sets the calibration error is at most .05. It is above .1 on {len(bad)}: "
        f"{worst}.\n\n"
        f"Of the pairs that are held for certain (above .99) fewer than nine in ten are true on {len(wrong)}: {sure}."
    )


@table
def reliability() -> str:
    """What can be told without labels, and what is so."""
    found = read("reliability")
    first = next(iter(found["sets"].values()))["bins"]
    heads = ("set", *(f"{100 * b['from']:.0f}–{100 * b['to']:.0f} %" for b in first))
    rows = [
        [
            name,
            *(
                f"{'?' if b['share'] is None else share(b['share'], 2)} ({share(b['true'], 2)})"
                for b in of["bins"]
            ),
        ]
        for name, of in found["sets"].items()
    ]
    legend = f"\n\nUp to {found['records']} records of each set; the true share in brackets, ? where it cannot tell."
    return grid(heads, rows) + legend + command(found)


@table
def latency() -> str:
    """How long one more record takes."""
    sets = read("entity_resolution")["sets"]
    rows = [
        [name, method, f"{r['median']:.2f}", f"{r['p99']:.2f}"]
        for name, of in sets.items()
        for method, r in of.get("latency", {}).items()
    ]
    heads = ("set", "method", "median, ms", "99 % within, ms")
    return grid(heads, rows, texts=2) + command(read("entity_resolution"))


@table
def splink() -> str:
    """Beside Splink, where it has demonstrations."""
    sets = {name: of for name, of in read("entity_resolution")["sets"].items() if "Splink" in of["methods"]}
    heads = (
        "set",
        "F1: Partita",
        "Splink",
        "calibration error: Partita",
        "Splink",
        "CPU seconds: Partita",
        "Splink",
    )
    rows = []
    for name, of in sets.items():
        ours, theirs = best(of), of["methods"]["Splink"]
        figures = [share(one[key]) for key in ("f1", "own") for one in (ours, theirs)]
        rows.append([name, *figures, *(number(one["cpu_seconds"]) for one in (ours, theirs))])
    return grid(heads, rows) + "\n\nB-cubed F1, the mean over records." + command(read("entity_resolution"))


@table
def answers() -> str:
    """What questions teach."""
    found = read("answers")
    ways = {
        "before": "before",
        "held": "answers held",
        "taught": "and learnt from",
        "random": "pairs at random, learnt from",
    }
    rows = [
        [
            name,
            *(share(of[way]["f1"]) for way in ways),
            share(of["before"]["error"]),
            share(of["taught"]["error"]),
        ]
        for name, of in [*found["sets"].items(), ("*mean*", found["mean"])]
    ]
    heads = ("set", *(f"F1 {said}" for said in ways.values()), "error before", "error after")
    legend = (
        f"\n\n{found['most']} records of each set and up to {found['answers']} answers; figures are of the half of the "
        "entities that was never asked about."
    )
    return grid(heads, rows) + legend + command(found)


@table
def labels() -> str:
    """What known matches teach."""
    found = read("labels")
    heads = ["set", *(f"{n} answers" if n.isdecimal() else n for n in next(iter(found["sets"].values())))]
    rows = [[name, *map(share, of.values())] for name, of in found["sets"].items()]
    return grid(heads, rows) + f"\n\nB-cubed F1 of {found['most']} records." + command(found)


@table
def crm() -> str:
    """A customer database, before and after questions."""
    found = read("crm")
    heads = ("story", "rows", "people", "F1 before", "after", "silly merges before", "after", "answers given")
    rows = [
        [
            str(s["seed"]),
            number(s["rows"]),
            number(s["people"]),
            share(s["before"]["f1"]),
            share(s["after"]["f1"]),
            number(s["before"]["silly_merges"]),
            number(s["after"]["silly_merges"]),
            number(s["confirmed"] + s["separated"]),
        ]
        for s in found["stories"]
    ]
    return grid(heads, rows) + command(found)


@table
def bulk() -> str:
    """Many records at once: how good, and how long."""
    found = read("bulk")
    ways = ("blocks", "stream", "blocks_refined", "stream_refined")
    heads = ("set", "records", "in blocks", "one by one", "in blocks, refined", "one by one, refined")
    rows = [
        [name, number(of["records"]), *(share(of.get(w)) for w in ways)]
        for name, of in found["quality"].items()
    ]
    sizes = sorted(found["scale"].values(), key=lambda of: of["records"])
    costs = ("records", "entities", "seconds", "CPU seconds", "MiB", "F1")
    scale = [
        [
            *(number(of[key]) for key in ("records", "entities", "seconds", "cpu_seconds", "mebibytes")),
            share(of["f1"]),
        ]
        for of in sizes
    ]
    return (
        f"{grid(heads, rows)}\n\nGenerated people, on the way to a million:\n\n{grid(costs, scale, 0)}"
        + command(found)
    )


@table
def knowledge_base() -> str:
    """What a knowledge base costs."""
    found = read("knowledge_base")
    large, taken = found["large"], found["ingest"]
    rows = [
        ["fragments taken in a second, in batches", number(taken["per_second"])],
        ["the same, one command for each", number(taken["one_by_one_per_second"])],
        ["bytes for each fragment", number(taken["bytes_per_fragment"])],
        [f"open one of {number(large['records'])} records", f"{1000 * large['opened']:.0f} ms"],
        ["first answer from its posterior", f"{large['posterior']:.1f} s"],
        ["one more record, median", f"{1000 * large['single_warm_median']:.1f} ms"],
        ["one more record, 99 %", f"{1000 * large['single_warm_p99']:.1f} ms"],
        ["match a record, median", f"{1000 * large['match_warm_median']:.1f} ms"],
        ["match a record, 99 %", f"{1000 * large['match_warm_p99']:.1f} ms"],
    ]
    return grid(("what", "figure"), rows) + command(found)


# ---------------------------------------------------------------------- points and likelihoods of one's own


@table
def speed() -> str:
    """The paper's Gaussian data."""
    found = read("speed")
    names = {
        "split 1000": "`SplitSMC`, m = 1000",
        "split 100": "`SplitSMC`, m = 100",
        "split 10": "`SplitSMC`, m = 10",
        "SMC 100": "`SMC`, m = 100",
        "greedy": "`Greedy`",
    }
    rows = [
        [
            said,
            f"{number(of['log_density'], 1)} ({of['log_density_std']:.1f})",
            share(of["f1"]),
            f"{of['cpu_seconds']:.3f}",
        ]
        for name, said in names.items()
        for of in [found["paper"][name]]
    ]
    rows += [
        [
            f"`SplitSMC`, m = 20, then `refine({of['sweeps']})`",
            f"{number(of['log_density'], 2)} ({of['std']:.2f})",
            "",
            f"{of['cpu_seconds']:.3f}",
        ]
        for of in found["refinement"]
    ]
    return grid(("sampler", "log-density: mean (sd)", "B-cubed F1", "CPU seconds"), rows) + command(found)


@table
def peers() -> str:
    """Sets of points beside other methods."""
    found = read("peers")
    names = list(next(iter(found["sets"].values())))
    rows = [
        [name, *(share(of[n]["f1"]) if n in of else "–" for n in names)] for name, of in found["sets"].items()
    ]
    legend = "\n\nB-cubed F1. “By truth”: the settings with the best F1 were chosen, as no user could."
    return (
        grid(("set", *(name.replace("BayesianGaussianMixture", "BGM") for name in names)), rows)
        + legend
        + command(found)
    )


@table
def scale() -> str:
    """Does an observation cost more when much has come before?"""
    found = read("scale")
    parts = []
    for what in ("points", "records"):
        rows = [
            [
                number(of["n"]),
                number(of["clusters"]),
                number(of["batch_us"]),
                number(of["median_us"]),
                number(of["p99_us"]),
                f"{100 * of['reached']:.2f} %",
            ]
            for of in found[what]["sizes"]
        ]
        heads = (
            "seen so far",
            "clusters",
            "µs in a batch",
            "µs alone, median",
            "99 %",
            "probability reached",
        )
        parts.append(f"**{what.capitalize()}**, m = {found[what]['particles']}:\n\n{grid(heads, rows, 0)}")
    return "\n\n".join(parts) + command(found)


@table
def memory() -> str:
    """How much is kept of a long stream."""
    found = read("memory")
    rows = [
        [number(of["n"]), number(of["bytes_per_observation"]), number(of["live_cells"])]
        for of in found["long_stream"]
    ]
    return grid(("points", "bytes for each", "cells alive"), rows, 0) + command(found)


@table
def black_box() -> str:
    """Calls of a likelihood that is costly."""
    found = read("black_box")
    rows = [
        [number(of["lookahead"]), number(of["calls"]), number(of["evaluations"])]
        for of in found["costs"]["SplitSMC"]
    ]
    legend = f"\n\n{found['fragments']} fragments of {found['set']}, m = {found['particles']}."
    return grid(("`lookahead`", "calls", "clusters evaluated"), rows, 0) + legend + command(found)


def experiment(name: str) -> str:
    """The table that ``partita reproduce`` wrote."""
    path = RESULTS / "experiments" / name / "table.md"
    USED.add(path)
    return path.read_text(encoding="utf-8").strip()


EXPERIMENTS = {
    "gaussian": (
        "Gaussian mixture: the paper's 700 points",
        "partita reproduce gaussian --data gauss700.csv --orders gauss700_orders.npy",
    ),
    "circles": (
        "Circles: the paper's 306 points, a Gaussian as the likelihood",
        "partita reproduce circles --data circles306.csv --model gaussian",
    ),
    "circles_diffusion": (
        "Circles, with the diffusion model",
        "partita reproduce circles --data circles306.csv --methods split,smc,greedy,refined --particles 100",
    ),
    "kb50": ("Fragments of 50 entities, with records", "partita reproduce kb --data kb50/fragments.jsonl"),
    "kb50_jsonlm": (
        "Fragments of 50 entities, with the language model",
        "partita reproduce kb --model jsonlm --data kb50/fragments.jsonl --prior labelled.jsonl",
    ),
    "kb200_jsonlm": (
        "Fragments of 200 entities, with the language model",
        "partita reproduce kb --model jsonlm --data kb200/fragments.jsonl --prior first300.jsonl",
    ),
    "names200_el_ngram": ("Names, with the paper's bigram", "partita reproduce names"),
    "names200_el_record": ("Names, with records", "partita reproduce names --model record"),
}


@table
def experiments() -> str:
    """All experiments, each with its table and command."""
    return "\n\n".join(
        f"### {said}\n\n{experiment(name)}\n\nMade by `{ran}`; [pictures and conditions](in-full.md)."
        for name, (said, ran) in EXPERIMENTS.items()
    )


def main() -> None:
    """Print tables."""
    for name in sys.argv[1:] or TABLES:
        print(f"<!-- {name} -->\n\n{TABLES[name]()}\n")


if __name__ == "__main__":
    main()
