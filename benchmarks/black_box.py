"""How often a black box is called: calls and evaluations by lookahead, on fragments of entities.

python -m benchmarks.black_box [--data DIR] [--set kb50] [--particles 100]

The black box is a record model of whole fragments, the surrogate the paper's, a bigram of their names; both
priors are fitted with the labels. Without ``../shared/data`` the fragments are those of ``partita demo``. All
lookaheads give the same posterior, which is checked. *Used* is the share of what was asked for ahead that was
needed later; CPU time is the sampler's own, without the black box, kernels compiled before the clock starts.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import partita as pt
from benchmarks.common import ROOT, console, cpu_seconds, keep, show
from partita._core.kernel import kernel
from partita.demo.entities import fragments as demo_fragments
from partita.experiments.files import read_fragments
from partita.models.scoring.families import begin, extend, log_marginal

DATA = ROOT.parent / "shared" / "data"
LOOKAHEADS = (1, 2, 4, 8, 16, 32, 64)
PREDICTED = 50  # fragments


@kernel
def log_marginals(family, statistics, data, members, ends):
    """log p(c) of clusters whose members stand one after the other."""
    found, start, one = np.empty(ends.shape[0]), 0, np.int64(1)
    begin(family, statistics, one)
    for k in range(ends.shape[0]):
        parent = np.int64(0)
        for at in range(start, ends[k]):
            extend(family, statistics, one, parent, at - start, data, members[at])
            parent = one
        found[k] = log_marginal(family, statistics, one, ends[k] - start, one)
        start = ends[k]
    return found


class WholeFragments:
    """A record model as if nothing were known of it: log p(c) of clusters, by the rows of their fragments."""

    def __init__(self, fragments: list[dict[str, Any]], labels: Any) -> None:
        model = pt.Record.infer(fragments).fit_prior(fragments, labels)
        model.check(1)
        self.data = model.encode(model.validate(fragments))
        self.family, self.statistics = model.family(1), np.zeros((2, model.width(1)))
        self.seconds, self.known = 0.0, {}

    def __call__(self, clusters: list[list[dict[str, Any]]]) -> Any:
        spent, found = cpu_seconds(lambda: self.score(clusters))
        self.seconds += spent
        return found

    def score(self, clusters: list[list[dict[str, Any]]]) -> Any:
        """Each set is scored once: the last bits depend on the size of tables, and so on what came before."""
        sets = [tuple(fragment["row"][0] for fragment in c) for c in clusters]
        new = list(dict.fromkeys(rows for rows in sets if rows not in self.known))
        if new:
            ends = np.cumsum([len(rows) for rows in new])
            found = log_marginals(self.family, self.statistics, self.data, np.concatenate(new), ends)
            self.known |= dict(zip(new, found.tolist(), strict=True))
        return [self.known[rows] for rows in sets]


def load(folder: Path, name: str) -> tuple[list[dict[str, Any]], list[str], str]:
    """Fragments in a random order that is always the same, their labels, and what they are."""
    path = folder / name / "fragments.jsonl"
    if path.exists():
        found, truth = read_fragments(path)
        labels = list(truth)
    else:
        said, entity = demo_fragments()
        found, labels = [fragment["properties"] for fragment in said], [entity[f["id"]] for f in said]
        name = "partita demo"
    order = np.random.default_rng(0).permutation(len(found)).tolist()
    return [found[k] for k in order], [labels[k] for k in order], name


def run(kind: Any, settings: dict[str, Any], surrogate: Any, score: Any, X: Any, lookahead: int) -> Any:
    """One stream, and rows to predict: what it cost, and what came out."""
    black = pt.BlackBox(score, surrogate, n_proposals=100, lookahead=lookahead)
    sampler = kind(black, alpha=1.0, random_state=0, **settings)
    score.seconds = 0.0
    spent, _ = cpu_seconds(lambda: sampler.fit(X))
    info, own = sampler.model_.cache_info(), spent - score.seconds
    found = sampler.posterior_.log_density(), sampler.predict_proba(X[:PREDICTED]).tolist()
    after = sampler.model_.cache_info()
    cost = {
        "lookahead": lookahead,
        "calls": info.calls,
        "evaluations": info.evaluations,
        "ahead": info.ahead,
        "ahead_used": info.ahead_used,
        "cpu_seconds": own,
        "calls_to_predict": after.calls - info.calls,
    }
    return cost, found


def table(title: str, *setting: Any) -> list[dict[str, Any]]:
    """Costs by lookahead."""
    run(*setting, 4)  # compiles
    costs, expected = [], None
    for lookahead in LOOKAHEADS:
        cost, found = run(*setting, lookahead)
        expected = expected or found
        if found != expected:
            raise SystemExit(f"{title}: lookahead {lookahead} gives another result")
        costs.append(cost)
    show(
        title,
        ["lookahead", "calls", "evaluations", "used", "CPU seconds", f"calls to predict {PREDICTED}"],
        [
            [
                cost["lookahead"],
                cost["calls"],
                f"{cost['evaluations']:,}",
                f"{cost['ahead_used'] / cost['ahead']:.0%}" if cost["ahead"] else "",
                f"{cost['cpu_seconds']:.2f}",
                cost["calls_to_predict"],
            ]
            for cost in costs
        ],
    )
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--set", default="kb50")
    parser.add_argument("--particles", type=int, default=100)
    given = parser.parse_args()
    fragments, labels, name = load(given.data, given.set)
    score = WholeFragments(fragments, labels)
    X = [fragment | {"row": [k]} for k, fragment in enumerate(fragments)]
    surrogate = pt.Ngram(n=2, attribute="name").fit_prior(X, labels)
    console.print(f"{name}: {len(X)} fragments; m = {given.particles}, m′ = 100")
    some = {"n_particles": given.particles}
    samplers = {
        "SplitSMC": (pt.SplitSMC, some, surrogate),
        "SplitSMC, candidates": (pt.SplitSMC, some | {"keys": "auto"}, surrogate),
        "SplitSMC, rejuvenation": (pt.SplitSMC, some | {"rejuvenation": 1}, surrogate),
        "SMC": (pt.SMC, some, surrogate),
        "Greedy": (pt.Greedy, {}, surrogate),
        "Greedy, no surrogate": (pt.Greedy, {}, None),
    }
    results = {title: table(title, *setting, score, X) for title, setting in samplers.items()}
    keep("black_box", {"set": name, "fragments": len(X), "particles": given.particles, "costs": results})


if __name__ == "__main__":
    main()
