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

FREEBASE = "FB15k-237 with Wikidata's aliases (Freebase CC BY, Wikidata CC0)"
GEONAMES = "GeoNames (CC BY 4.0)"
RECORD_LINKAGE = "the R package RecordLinkage (GPL)"
ORIGINS = {  # where each set is from, and its licence; none may be shipped with Partita
    "kb50": FREEBASE,
    "kb200": FREEBASE,
    "kb1k": FREEBASE,
    "kb5k": FREEBASE,
    "geo1k": GEONAMES,
    "fewrel_conf1": "FewRel 1.0 (MIT; text CC BY-SA)",
    "webnlg_conf2": "WebNLG 1.6 (CC BY-NC-SA 4.0)",
    "names200_el": "AIDA, WNED, ShadowLink and other corpora of entity linking (research licences)",
    "names200_wikidata": "Wikidata (CC0)",
    "cora": "Cora, McCallum (public research data)",
    "rldata500": RECORD_LINKAGE,
    "rldata10000": RECORD_LINKAGE,
    "febrl3": "Febrl, data set 3 (ANU Open Source)",
    "fake1000": "Splink's fake_1000 (MIT)",
    "historical50k": "Splink's historical_50k: people of Wikidata (MIT, CC0)",
    "fodors_zagat": "Fodor's and Zagat's, Tejada (public research data)",
    "dblp_acm": "DBLP and ACM, Leipzig benchmark (CC BY 4.0)",
    "amazon_google": "Amazon and Google products, Leipzig benchmark (CC BY 4.0)",
    "notebooks_x2": "SIGMOD 2021 programming contest, Alaska benchmark (research data)",
    "imdb_dbpedia": "IMDb and DBpedia, JedAI's benchmark (IMDb's terms, CC BY-SA 3.0)",
    "authors_dblp": "DBLP, ambiguous authors of Han et al. (public research data)",
    "inventors_stream": "PatentsView, labels of Binette et al. 2022 (CC BY 4.0)",
    "assignees_air": "PatentsView, AIR-UMass (CC BY 4.0)",
    "ecb_mentions_a": "ECB+, Cybulska and Vossen 2014 (CC BY 3.0)",
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
def records_in_words() -> str:
    """Accuracy on all sets of records in a few sentences."""
    sets = {name: best(of)["f1"] for name, of in read("entity_resolution")["sets"].items()}
    linked = {name: f1(of, "linkage") for name, of in read("entity_resolution")["sets"].items()}
    ahead = [name for name, peer in linked.items() if peer is not None and sets[name] > peer]
    tried = sum(peer is not None for peer in linked.values())

    def named(chosen: Callable[[float], bool]) -> str:
        found = sorted((name for name in sets if chosen(sets[name])), key=lambda name: -sets[name])
        return ", ".join(f"{name} {share(sets[name])}" for name in found)

    return (
        f"Without labels and with nothing set by hand the mean B-cubed F1 over {len(sets)} sets is "
        f"{share(mean(sets.values()))}. It is above .9 on {named(lambda f1: f1 > 0.9)}, and below .7 on "
        f"{named(lambda f1: f1 < 0.7)}. Linkage of texts, whose threshold the truth chose, is behind on "
        f"{len(ahead)} of the {tried} sets that it was tried on." + command(read("entity_resolution"))
    )


@table
def at_a_glance() -> str:
    """What somebody wants to know who has five minutes; the README has it as well."""
    found, kept, bulk = read("entity_resolution"), read("knowledge_base"), read("bulk")
    ours = [best(of) for of in found["sets"].values()]
    peers = [
        (best(of), of["methods"]["Splink"]) for of in found["sets"].values() if "Splink" in of["methods"]
    ]
    slower = sorted(own["cpu_seconds"] / peer["cpu_seconds"] for own, peer in peers)
    loaded = found["sets"]["historical50k"]["records"]
    large = max(bulk["scale"].values(), key=lambda of: of["records"])
    told = [one["sure"] for one in ours if one["sure"] is not None]

    def count(chosen: Callable[[dict[str, Any]], bool]) -> int:
        return sum(map(chosen, ours))

    rows = [
        [
            f"Accuracy on {len(ours)} data sets, nothing set by hand",
            f"mean B-cubed F1 {share(mean(one['f1'] for one in ours))}; above .9 on "
            f"{count(lambda one: one['f1'] > 0.9)}, below .7 on {count(lambda one: one['f1'] < 0.7)}",
        ],
        [
            "Calibration error of the probabilities",
            f"at most .05 on {count(lambda one: one['own'] <= 0.05)} of these sets, above .1 on "
            f"{count(lambda one: one['own'] > 0.1)}",
        ],
        [
            "Pairs said to be the same with more than 99 %",
            f"at least nine in ten are, on {sum(one >= 0.9 for one in told)} of the {len(told)} sets with such pairs",
        ],
        [
            "F1 beside Splink, on the sets of its own demonstrations",
            ", ".join(f"{share(own['f1'])} to {share(peer['f1'])}" for own, peer in peers)
            + f" (its threshold chosen by the truth), for {slower[0]:.0f} to {slower[-1]:.0f} times the CPU time",
        ],
        [
            f"Load {number(loaded)} records into a knowledge base",
            f"{number(kept['bulk']['in_bulk']['cpu_seconds'])} CPU seconds at once, "
            f"{number(kept['bulk']['one_by_one']['cpu_seconds'])} one by one",
        ],
        ["Add one more", f"{1000 * kept['large']['single_warm_median']:.1f} ms (median)"],
        [
            f"{number(large['records'])} generated people in families, from file to file",
            f"{number(large['seconds'])} seconds, {number(large['mebibytes'])} MiB; F1 {share(large['f1'])}",
        ],
    ]
    return grid(("what", "measured"), rows, texts=2) + command(found, kept, bulk)


@table
def data_sets() -> str:
    """What the sets are."""
    lines = [
        f"| {name} | {half} | {number(of['records'])} | {ABOUT[name]} | {ORIGINS[name]} |"
        for half, sets in sets_by_half().items()
        for name, of in sets.items()
    ]
    heads = "| set | half | records | a record is | from |\n| --- | --- | ---: | --- | --- |"
    return "\n".join([heads, *lines])


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
    heads = ["set"]
    heads += [
        f"{what}, {who}"
        for what in ("F1", "calibration error", "CPU seconds")
        for who in ("Partita", "Splink")
    ]
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
        "again": "learnt again",
        "held": "held",
        "taught": "taught",
        "random": "random, taught",
    }
    rows = [
        [
            name,
            number(of["answers"]),
            *(share(of[way]["f1"]) for way in ways),
            share(of["before"]["error"]),
            share(of["taught"]["error"]),
        ]
        for name, of in [*found["sets"].items(), ("*mean*", found["mean"])]
    ]
    heads = ("set", "answers", *(f"F1 {said}" for said in ways.values()), "error before", "error taught")
    legend = (
        f"\n\nAt most {found['most']} records of each set and {found['answers']} answers; figures are of the half of "
        "the entities that was never asked about. *Learnt again*: without any answer, what chance does. *Held*: "
        "answers are judgements, and nothing is learnt from them. *Taught*: learnt again with them. *Random*: as "
        "many answers about random pairs in doubt."
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
    heads = (
        "rows, people",
        "",
        "entities",
        "F1",
        "silly merges",
        "people divided",
        "right golden records",
    )
    rows = []
    for story in found["stories"]:
        given = story["confirmed"] + story["separated"]
        first = f"{story['rows']}, {story['people']}"
        for said, begins in (("before", first), ("after", "")):
            of = story[said]
            merges = number(of["silly_merges"])
            if said == "after" and not of["silly_merges"]:
                merges += f", since answer {story['until_clean']}"
            rows.append(
                [
                    begins,
                    "built" if said == "before" else f"after {given} answers",
                    number(of["entities"]),
                    share(of["f1"]),
                    merges,
                    number(of["divided"]),
                    f"{100 * of['right_records']:.0f} %",
                ]
            )
    return grid(heads, rows, texts=2) + command(found)


@table
def bulk_quality() -> str:
    """Many records at once: how good."""
    found = read("bulk")
    ways = ("blocks", "stream", "blocks_refined", "stream_refined")
    heads = ("set", "half", "records", "in blocks", "one by one", "in blocks, refined", "one by one, refined")
    rows = [
        [name, of["half"], number(of["records"]), *(share(of.get(w)) for w in ways)]
        for name, of in found["quality"].items()
    ]
    legend = "\n\nB-cubed F1, the mean of three orders, with the same model."
    return grid(heads, rows, texts=2) + legend + command(found)


@table
def bulk_scale() -> str:
    """Many records at once: how long, on the way to a million."""
    found = read("bulk")
    sizes = sorted(found["scale"].values(), key=lambda of: of["records"])
    heads = ("records", "entities", "people", "seconds", "CPU seconds", "ms a record", "MiB", "F1")
    rows = [
        [
            *(number(of[key]) for key in ("records", "entities", "people", "seconds", "cpu_seconds")),
            share(1000 * of["cpu_seconds"] / of["records"], 2),
            number(of["mebibytes"]),
            share(of["f1"]),
        ]
        for of in sizes
    ]
    legend = "\n\nMilliseconds are of a CPU, MiB at the peak."
    return grid(heads, rows, 0) + legend + command(found)


@table
def bulk_scale_in_words() -> str:
    """Many records at once: what becomes of accuracy on the way to a million."""
    found = read("bulk")
    sizes = sorted(found["scale"].values(), key=lambda of: of["records"])
    of = sizes[-1]
    reached = ", ".join(f"{share(size['f1'])} for {number(size['records'])}" for size in sizes)
    return (
        f"F1 is {reached} records. Of the largest table {number(of['entities'])} entities are made, where there are "
        f"{number(of['people'])} people." + command(found)
    )


@table
def bulk_identity() -> str:
    """Is the answer the same for any number of shards?"""
    found = read("bulk_identity")
    rows = [
        [name, of["engine"], number(of["shards"]), f"`{of['digest']}`"]
        for name, runs in found["sets"].items()
        for of in runs
    ]
    heads = "| set | engine | shards | digest of the answer |\n| --- | --- | ---: | --- |"
    lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{heads}\n{lines}\n\n*Permuted*: shards in another order." + command(found)


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
        ["find an entity", f"{1000 * large['found']:.0f} ms"],
    ]
    for said, key in (("one more record", "single"), ("match a record", "match")):
        for when, warm in (("just opened", ""), ("after some hundred", "_warm")):
            for part, name in (("median", "median"), ("99 %", "p99")):
                rows.append([f"{said}, {when}: {part}", f"{1000 * large[f'{key}{warm}_{name}']:.1f} ms"])
    return grid(("what", "figure"), rows) + command(found)


@table
def bulk_build() -> str:
    """A knowledge base of many records, at once and one by one."""
    found = read("knowledge_base")
    rows = [
        [
            said,
            number(of["cpu_seconds"]),
            number(of["entities"]),
            *(share(of[key]) for key in ("precision", "recall", "f1")),
        ]
        for said, of in (
            ("`--bulk`", found["bulk"]["in_bulk"]),
            ("one by one", found["bulk"]["one_by_one"]),
        )
    ]
    heads = ("historical50k", "CPU seconds", "entities", "precision", "recall", "F1")
    return grid(heads, rows) + command(found, also=", two rounds of `refine` included")


@table
def service() -> str:
    """How soon the service answers."""
    found = read("service")
    heads = (
        "request",
        "median, ms",
        "95 % within, ms",
        "median, ms, among 20 people",
        "95 % within, ms",
        "CPU ms",
    )
    rows = [
        [
            {"list": "a page of entities", "entity": "an entity", "waterfall": "the evidence on a pair"}.get(
                name, name
            ),
            *(
                f"{found[load][name][key]:.0f}"
                for load in ("alone", "people")
                for key in ("median_ms", "p95_ms")
            ),
            f"{found['cpu_ms'][name]:.0f}",
        ]
        for name in found["cpu_ms"]
    ]
    legend = (
        f"\n\nOver a knowledge base of {number(found['records'])} records on {found['cores']} cores, with a load of "
        f"{found['load_before']:.1f} before it began. The first page takes {found['first_page_seconds']:.1f} s; the "
        f"sampler, which questions need, is read within {found['sampler_loaded_seconds']:.1f} s. The server holds "
        f"{number(found['memory_mib'])} MiB. People look at an answer for a second on average; twenty clients that do "
        f"not pause get {number(found['flat_out']['requests_per_second'])} answers a second."
    )
    return grid(heads, rows) + legend + command(found)


@table
def hyperpriors() -> str:
    """Where learning starts from: how often two values of an entity are alike, before any data."""
    found = read("hyperpriors")
    heads = ("how alike", "columns", "least", "most", "facts", "least", "most")
    degrees = len(found["columns"]["found"])
    rows = [
        [
            "nothing in common" if k == 0 else "the very same" if k == degrees - 1 else str(k),
            *(
                share(found[what][key][k])
                for what in ("columns", "facts")
                for key in ("shipped", "least", "most")
            ),
        ]
        for k in range(degrees)
    ]
    legend = (
        "\n\nShares of the pairs of values of one entity, with which learning begins. *Columns* are those that at "
        f"least half of the records mention ({found['columns']['sets']} sets), *facts* those that few do "
        f"({found['facts']['sets']} sets). Least and most: with one set left out. No set of the testing half was used."
    )
    return grid(heads, rows) + legend + command(found)


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
def costs() -> str:
    """What an observation costs."""
    speed, memory = read("speed"), read("memory")
    stream = speed["long_stream"]
    alone = speed["one_at_a_time"]

    def span(key: str) -> str:
        figures = [of[key] for of in stream]
        return f"{min(figures):.0f} to {max(figures):.0f} µs"

    rows = [
        ["`import partita`", f"{1000 * speed['import_seconds']:.0f} ms"],
        ["one point by itself, `partial_fit`, m = 100, median", f"{alone['median_us']:.0f} µs"],
        ["the same, 99 %", f"{alone['p99_us']:.0f} µs"],
        [f"a point of a stream of {number(stream[-1]['n'])} in 20 clusters, m = 100", span("us")],
        ["of it, to score it against the clusters", span("scoring_us")],
        [
            "memory for each point of such a stream, data included",
            f"{memory['long_stream'][-1]['bytes_per_observation']:.0f} bytes",
        ],
    ]
    return grid(("what", "figure"), rows) + command(speed, memory)


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


@table
def neural_diffusion() -> str:
    """How near the diffusion model is to the truth, and what it costs."""
    found = read("neural_diffusion")
    fast = {of["size"]: of["ms_a_set"] for of in found["speed"]}
    rows = [
        [
            number(of["size"]),
            number(of["nats_a_point"], 3),
            number(of["deviation"], 2),
            f"{fast[of['size']]:.1f}",
        ]
        for of in found["accuracy"]
    ]
    heads = (
        "points of a circle",
        "true log-density less the model's, nats a point",
        "standard deviation over sets, nats",
        "ms a set",
    )
    return grid(heads, rows, 0) + f"\n\nOn a {found['backend'].upper()}." + command(found)


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
