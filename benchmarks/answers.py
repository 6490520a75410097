"""How much answers teach: what 100 truthful answers do for what was not asked about.

python -m benchmarks.answers [--half tuning | --sets …] [--most 300] [--answers 100] [--folds 2] [--jobs 1]
    [--data DIR]

Whole clusters of each set, at most 300 records, make a knowledge base. Half of the true entities are never asked about:
questions about a record of one are passed over. The 100 best of the others (``kb.uncertain``, one after the other) are
answered with the truth, and the model is learnt again. All figures are of the half that was never asked about: B-cubed
F1 of its records among themselves, the mean over records, and the calibration error of pairs of them. Then the halves
are exchanged.

before    without any answer
again     learnt again without any answer: chance, mostly
held      100 answers hold, and nothing is learnt from them
taught    the same, learnt again
random    100 answers about random pairs in doubt instead, learnt again

One order alone says little: the same records clustered again move F1 by a hundredth, up or down.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import partita as pt
from benchmarks.common import console, keep, show
from benchmarks.entity_sets import DATA, HALVES, load, sets_of, some_clusters
from benchmarks.record_peers import Records
from partita.metrics import bcubed, calibration, pairs_for_calibration

SETS = (
    "kb50",
    "fodors_zagat",
    "amazon_google",
    "cora",
    "rldata500",
    "ecb_mentions_a",
    "fake1000",
    "webnlg_conf2",
)
ARMS = ("before", "again", "held", "taught", "random")
AHEAD = 300  # questions among which one is sought that may be asked
DOUBT = 0.01  # of a pair that is asked about at random
PAIRS = 100_000  # to check probabilities with


class Trial:
    """A knowledge base of records, half of whose true entities are never asked about."""

    def __init__(self, kb: Any, truth: np.ndarray, never: np.ndarray) -> None:
        self.kb, self.truth, self.never = kb, truth, never

    def answer(self, one: int, other: int) -> None:
        """Give the true answer about two records."""
        judge = self.kb.confirm if self.truth[one] == self.truth[other] else self.kb.separate
        judge(str(one), str(other))

    def may_be_asked(self, one: int, other: int) -> bool:
        """Whether neither record is of an entity that is never asked about."""
        return not (self.never[one] or self.never[other])

    def answer_best(self, n: int) -> int:
        """Answer the best questions, one after the other, up to n; how many there were."""
        done, passed = 0, set[tuple[str, str]]()
        while done < n:
            asked = [(q.first, q.second) for q in self.kb.uncertain(AHEAD, passed=passed)]
            if not asked:
                break
            allowed = [(one, other) for one, other in asked if self.may_be_asked(int(one), int(other))]
            if allowed:
                self.answer(*map(int, allowed[0]))
                done += 1
            else:
                passed |= set(asked)
        return done

    def answer_random(self, n: int, seed: int) -> int:
        """Answer about random pairs that are in doubt, up to n; how many there were."""
        probability, i, j = self.pairs()
        unsure = (probability > DOUBT) & (probability < 1.0 - DOUBT) & ~self.never[i] & ~self.never[j]
        chosen = np.random.default_rng(seed).permutation(np.flatnonzero(unsure))[:n]
        for k in chosen.tolist():
            self.answer(int(i[k]), int(j[k]))
        return len(chosen)

    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs of records that were ever in doubt: their probabilities, and the records."""
        ids = np.array([int(id) for id in self.kb.labels()])
        with self.kb._session.asking() as (_, clustering):
            posterior = clustering.posterior
            i, j = pairs_for_calibration(posterior, PAIRS, 0)
            return np.asarray(posterior.together(i, j)), ids[i], ids[j]

    def measured(self) -> dict[str, float]:
        """F1 of the records never asked about, and the calibration error of pairs of them."""
        found = self.kb.labels()
        rows = np.flatnonzero(self.never)
        f1 = bcubed(self.truth[rows], [found[str(row)] for row in rows.tolist()]).f1
        probability, i, j = self.pairs()
        mine = self.never[i] & self.never[j]
        error = np.nan
        if mine.any():
            same = self.truth[i[mine]] == self.truth[j[mine]]
            error = calibration(probability[mine], same).expected_calibration_error
        return {"f1": float(f1), "error": float(error)}


def fold(path: Path, truth: np.ndarray, never: np.ndarray, n: int, seed: int) -> dict[str, Any]:
    """All figures, with half of the entities never asked about."""

    def arm(name: str, of: Path, *steps: Any) -> Path:
        """Measure a copy of a knowledge base, after some steps."""
        copy = path.with_name(f"{name}.db")
        shutil.copy(of, copy)
        with pt.kb.open(copy) as kb:
            trial = Trial(kb, truth, never)
            for step in steps:
                step(trial)
            found[name] = trial.measured()
        return copy

    def best(trial: Trial) -> None:
        found["answers"] = trial.answer_best(n)

    def random(trial: Trial) -> None:
        found["random answers"] = trial.answer_random(n, seed)

    def relearn(trial: Trial) -> None:
        trial.kb.relearn()

    found: dict[str, Any] = {}
    arm("before", path)
    arm("again", path, relearn)
    arm("taught", arm("held", path, best), relearn)
    arm("random", path, random, relearn)
    return found


def of_set(records: Records, truth: np.ndarray, n: int, folds: int) -> dict[str, Any]:
    """The mean figures of one set, and those of each fold."""
    codes = np.unique(truth, return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(codes.max() + 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kb.db"
        with pt.kb.open(path) as kb:
            kb.add([{"id": str(k), "properties": record} for k, record in enumerate(records)])
        each = [fold(path, codes, np.isin(codes, order[k::2]), n, k) for k in range(folds)]
    return mean(each) | {"records": len(records), "folds": each}


def mean(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean of figures of several folds, or sets."""
    arms = {
        arm: {name: float(np.nanmean([one[arm][name] for one in found])) for name in ("f1", "error")}
        for arm in ARMS
    }
    return arms | {
        name: float(np.mean([one[name] for one in found])) for name in ("answers", "random answers")
    }


# ---------------------------------------------------------------------- the command


def options(given: list[str] | None = None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets")
    parser.add_argument("--half", choices=HALVES, help="all sets of it, instead of some of the tuning half")
    parser.add_argument("--sets", nargs="+", help="these alone, of whichever half")
    parser.add_argument("--most", type=int, default=300, help="records of a set")
    parser.add_argument("--jobs", type=int, default=1, help="sets at the same time")
    parser.add_argument("--answers", type=int, default=100, help="how many")
    parser.add_argument(
        "--folds", type=int, choices=(1, 2), default=2, help="whether the halves are exchanged"
    )
    chosen = parser.parse_args(given)
    chosen.sets = chosen.sets or (sets_of(chosen.half) if chosen.half else SETS)
    return chosen


def of_name(chosen: argparse.Namespace, name: str) -> dict[str, Any]:
    """The figures of a set."""
    records, truth = some_clusters(*load(chosen.data, name), chosen.most, 0)
    return of_set(records, truth, chosen.answers, chosen.folds)


def main(given: list[str] | None = None) -> None:
    """Run what the command line asks for."""
    chosen = options(given)
    results: dict[str, Any] = {}
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for name, found in zip(chosen.sets, pool.map(partial(of_name, chosen), chosen.sets), strict=True):
            results[name] = found
            console.print(f"{name}  " + "  ".join(f"{arm} {found[arm]['f1']:.3f}" for arm in ARMS))
    of_all = results | {"mean": mean(list(results.values()))}
    for figure, title in (("f1", "B-cubed F1"), ("error", "calibration error")):
        rows = [
            [name, f"{of['answers']:.0f}", *(f"{of[arm][figure]:.3f}" for arm in ARMS)]
            for name, of in of_all.items()
        ]
        show(f"{title} of what was not asked about", ["set", "answers", *ARMS], rows)
    keep("answers", {"most": chosen.most, "answers": chosen.answers, "sets": results, "mean": of_all["mean"]})


if __name__ == "__main__":
    main()
