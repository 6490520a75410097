"""How the cost of an observation grows with the stream: with keys, from 5,000 to 500,000 observations.

python -m benchmarks.scale [--streams points records] [--most 500000] [--quick]

A stream is a model, α and a function that draws the next rows; the number of clusters grows with n. What
leads up to each size is one batch, with all growing of arrays in it; then single calls of ``partial_fit`` are
timed, each with the processor's clock, so that other processes do not count. Least squares say how many
microseconds each doubling of n adds, and which power of n fits best: logarithmic growth is a power near 0.
Memory is all that the process holds, rows of the stream not yet given to the sampler included.
"""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import partita as pt
from benchmarks.common import RESULTS, cpu_seconds, keep, resident, show

SIZES = (5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000)
EACH = 5  # observations a cluster, on average
SINGLES = 2_000  # calls of a single row that are timed at each size
LEARNT_FROM = 2_000  # records that the prior of a stream of records is fitted to
MENTIONS = 4  # records an entity, on average
TYPO, MISSING = 0.04, 0.05  # of the fields of a record


class Stream(NamedTuple):
    """Data of one kind."""

    model: pt.Model
    alpha: float | str
    rows: Callable[[int], Any]  # the next so many


def points(n: int) -> Stream:
    """Points around centres well apart: every fifth opens a new cluster, the others go back to any."""
    generator, seen = np.random.default_rng(0), 0
    side = int(np.ceil(np.sqrt(n / EACH))) + 100
    lattice = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    centres = generator.permutation(20.0 * (lattice - side / 2))

    def rows(count: int) -> np.ndarray:
        nonlocal seen
        time_of = seen + np.arange(count)
        newest = time_of // EACH
        own = np.where(time_of % EACH == 0, newest, (generator.random(count) * (newest + 1)).astype(int))
        seen += count
        return centres[own] + generator.normal(size=(count, 2))

    model = pt.Gaussian(shape=5.0, rate=5.0, mean=0.0, precision=1.0 / float(np.var(centres)))
    return Stream(model, n / EACH, rows)


def records(n: int) -> Stream:
    """People with names and towns as unequally frequent as in life; every fourth record is of someone new."""
    drawn = people(np.random.default_rng(0))
    first = [next(drawn) for _ in range(LEARNT_FROM)]
    model = pt.Record.infer(first).fit_prior(first)
    again = iter(first)

    def rows(count: int) -> list[dict[str, str]]:
        return [next(again, None) or next(drawn) for _ in range(count)]

    return Stream(model, "auto", rows)


def people(generator: np.random.Generator) -> Iterator[dict[str, str]]:
    """Records without end: of new people, and of those before them with missing fields and typos."""
    given, family, towns = (words(generator, n) for n in (1_000, 20_000, 2_000))
    known: list[dict[str, str]] = []
    for number in range(10**9):
        if number % MENTIONS == 0:
            days = int(generator.integers(0, 30_000))
            known.append(
                {
                    "first_name": zipf(generator, given),
                    "surname": zipf(generator, family),
                    "dob": str(np.datetime64("1925-01-01") + days),
                    "town": zipf(generator, towns),
                }
            )
        person = known[-1] if number % MENTIONS == 0 else known[int(generator.integers(len(known)))]
        chances = generator.random(2 * len(person))
        yield {
            name: mistyped(generator, value) if typo < TYPO else value
            for (name, value), typo, missing in zip(person.items(), chances[::2], chances[1::2], strict=True)
            if name == "surname" or missing > MISSING
        }


def words(generator: np.random.Generator, n: int) -> list[str]:
    """So many different words of two or three syllables, the most frequent first."""
    found: dict[str, None] = {}
    while len(found) < n:
        letters = [
            "bcdfghjklmnprstvw"[generator.integers(17)] + "aeiou"[generator.integers(5)]
            for _ in range(generator.integers(2, 4))
        ]
        found["".join(letters) + "lmnrst "[generator.integers(7)].strip()] = None
    return list(found)


def zipf(generator: np.random.Generator, of: list[str]) -> str:
    """One of some words, the k-th with probability about 1 / k."""
    return of[int((len(of) + 1) ** generator.random()) - 1]


def mistyped(generator: np.random.Generator, text: str) -> str:
    """A text with one character replaced, left out or twice; a digit replaced by another."""
    at, how = int(generator.integers(len(text))), int(generator.integers(3))
    if any(map(str.isdigit, text)):
        digits = [k for k, character in enumerate(text) if character.isdigit()]
        at = digits[int(generator.integers(len(digits)))]
        return text[:at] + str(generator.integers(10)) + text[at + 1 :]
    new = (text[at] * 2, "", chr(97 + int(generator.integers(26))))[how]
    return text[:at] + new + text[at + 1 :]


STREAMS: dict[str, Callable[[int], Stream]] = {"points": points, "records": records}


def cost(stream: Stream, sizes: tuple[int, ...], m: int) -> Iterator[dict[str, float]]:
    """Microseconds an observation at each size, as the stream runs up to the last."""
    warm = pt.SplitSMC(stream.model, stream.alpha, m, keys="auto")
    warm.partial_fit(stream.rows(50)).partial_fit(stream.rows(1))
    sampler = pt.SplitSMC(stream.model, stream.alpha, m, keys="auto")
    seen = 0
    for size in sizes:
        batch, singles = stream.rows(size - seen - SINGLES), stream.rows(SINGLES)
        spent, _ = cpu_seconds(lambda rows=batch: sampler.partial_fit(rows))
        micros = []
        for x in range(SINGLES):
            taken, _ = cpu_seconds(lambda rows=singles[x : x + 1]: sampler.partial_fit(rows))
            micros.append(1e6 * taken)
        seen = size
        n_batch = len(batch)
        del batch, singles
        gc.collect()
        mebibytes = resident("VmRSS")
        report = sampler.candidate_report(stream.rows(20), n=20)
        yield {
            "n": size,
            "clusters": int(sampler.labels_.max()) + 1,
            "batch_us": 1e6 * spent / n_batch,
            "median_us": float(np.median(micros)),
            "p99_us": float(np.quantile(micros, 0.99)),
            "worst_us": max(micros),
            "mebibytes": mebibytes,
            "scored": float(report.scored.mean()),
            "reached": float(report.reached.mean()),
        }


def growth(results: list[dict[str, float]], measure: str) -> dict[str, float]:
    """What a doubling of n adds, in microseconds, and the power of n that fits best."""
    if len(results) < 2:
        return {}
    log_n = np.log2([r["n"] for r in results])
    values = np.array([r[measure] for r in results])
    return {
        "us_per_doubling": float(np.polyfit(log_n, values, 1)[0]),
        "power": float(np.polyfit(log_n, np.log2(values), 1)[0]),
    }


def draw(results: dict[str, Any]) -> None:
    """Cost against the length of the stream."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * len(results), 4.0), layout="constrained")
    panels = figure.subplots(1, len(results), squeeze=False)[0]
    for axes, (name, stream) in zip(panels, results.items(), strict=True):
        n = [r["n"] for r in stream["sizes"]]
        for measure, label in (
            ("p99_us", "one call each, 99 %"),
            ("median_us", "one call each, median"),
            ("batch_us", "in a batch, mean"),
        ):
            axes.plot(n, [r[measure] for r in stream["sizes"]], "o-", label=label)
        axes.set(xscale="log", xlabel=f"{name} so far", ylabel="µs an observation", ylim=(0, None))
        axes.legend()
    path = RESULTS / "scale.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)


def run(name: str, sizes: tuple[int, ...], results: dict[str, Any], m: int = 20) -> None:
    """One stream; what is known is kept after each size, as the last ones take minutes."""
    found: list[dict[str, float]] = []
    for at_size in cost(STREAMS[name](sizes[-1]), sizes, m):
        found.append(at_size)
        grows = {measure: growth(found, measure) for measure in ("batch_us", "median_us", "p99_us")}
        results[name] = {"particles": m, "sizes": found, "growth": grows}
        draw(results)
        keep("scale", results)
    tell(name, results[name])


def tell(name: str, of_stream: dict[str, Any]) -> None:
    """Print the tables of a stream."""
    m, found, grows = (of_stream[key] for key in ("particles", "sizes", "growth"))
    show(
        f"{name}, m = {m}: microseconds an observation with keys, as the stream goes on",
        ["n", "clusters", "batch", "single: median", "99 %", "worst", "scored", "reached", "MiB"],
        [
            [
                f"{r['n']:,}",
                f"{r['clusters']:,}",
                *(f"{r[k]:.1f}" for k in ("batch_us", "median_us", "p99_us")),
                f"{r['worst_us']:,.0f}",
                f"{r['scored']:.1f}",
                f"{r['reached']:.2%}",
                f"{r['mebibytes']:.0f}",
            ]
            for r in found
        ],
    )
    show(
        f"{name}: how it grows",
        ["", "µs a doubling", "power of n"],
        [[k, f"{v['us_per_doubling']:+.2f}", f"{v['power']:+.3f}"] for k, v in grows.items() if v],
    )


def main(given: list[str] | None = None) -> None:
    """Run the streams asked for; others keep their last results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--streams", nargs="+", choices=list(STREAMS), default=list(STREAMS))
    parser.add_argument("--most", type=int, default=SIZES[-1], help="the longest stream")
    parser.add_argument("--quick", action="store_true", help="three sizes only")
    chosen = parser.parse_args(given)
    sizes = SIZES[:3] if chosen.quick else tuple(size for size in SIZES if size <= chosen.most)
    path = RESULTS / "scale.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    results = {name: kept[name] for name in STREAMS if name in kept}
    for name in chosen.streams:
        run(name, sizes, results)


if __name__ == "__main__":
    main()
