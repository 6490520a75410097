"""Where the hyperpriors of records come from: how alike the values of one entity are in labelled tables.

python -m benchmarks.hyperpriors [--data DIR]

``AGREEMENT`` is of columns, which at least half of the records mention, ``OF_FACTS`` of facts, which few do.
Both are learnt here from the true clusters of the tuning half and of the sets to train with, never of the
testing half. Of each set whole clusters are drawn as ``fit_prior`` draws them if all labels are known, and
attribute by attribute it is counted how alike the values of one cluster are, with no prior. Every column counts
once. Of facts there are many with few pairs each, so the pairs of a set are taken together, and every set counts
once. If records say one thing alone, such as a name, that is a column. Beside what is found stands what is
shipped, and the least and the most that would be found if one of the sets were left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import partita as pt
from benchmarks.common import console, keep, show
from benchmarks.entity_sets import DATA, load, sets_of
from benchmarks.record_peers import Records
from partita.learning.known import known_of, whole_clusters
from partita.learning.learner import OF_FACTS, Learner
from partita.learning.records import SAMPLE, counted, learner_of
from partita.models.records.comparisons.family import LEVELS
from partita.models.records.kinds.attribute import AGREEMENT
from partita.models.records.record import COLUMN

TO_TRAIN = ("kb_train", "geo_train")  # with which nothing is ever evaluated
SHIPPED = {"columns": AGREEMENT, "facts": OF_FACTS}
DEGREES = [str(level) for level in range(LEVELS)]


class Alike(NamedTuple):
    """How alike the values of one entity are in some attributes of a set."""

    names: list[str]
    pairs: np.ndarray  # that each attribute has, each cluster's as many as its members less one
    shares: np.ndarray  # of these, by attribute and degree of likeness


def sampled(records: Records, truth: np.ndarray) -> tuple[list[str], Learner, np.ndarray]:
    """Names of the attributes, a sample of whole clusters, and these: as in ``fit_prior`` with all labels."""
    schema = pt.Record.infer(records)
    names, attributes = schema._modelled()
    group = known_of(len(records), truth).group
    rows = whole_clusters(group, SAMPLE, np.random.default_rng(0))
    fragments = schema.validate([records[row] for row in rows])
    said = [sorted(set(fragment.pairs)) for fragment in fragments]
    learner = learner_of(names, attributes, said, counted(said, len(names)))
    return names, learner, np.unique(group[rows], return_inverse=True)[1]


def alike(names: list[str], learner: Learner, labels: np.ndarray) -> dict[str, Alike]:
    """How alike values of one cluster are, of columns and of facts; what none says twice is left out."""
    counts = learner.within(labels)
    pairs = counts.sum(axis=1)
    columns = (learner.present.mean(axis=0) >= COLUMN) | learner.says_one_thing
    found = {}
    for kind, chosen in (("columns", columns), ("facts", ~columns)):
        rows = np.flatnonzero(chosen & (pairs > 0.0))
        found[kind] = Alike([names[a] for a in rows], pairs[rows], counts[rows] / pairs[rows, None])
    return found


def rows_of(kind: str, found: Alike) -> np.ndarray:
    """The shares of a set that count once each: those of each column, or of all facts together."""
    return found.shares if kind == "columns" else found.pairs[None, :] @ found.shares / found.pairs.sum()


def without_one(of_sets: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The least and the most that the mean is if any one set is left out; of a single set, what it says."""
    left = [of_sets[:k] + of_sets[k + 1 :] or of_sets for k in range(len(of_sets))]
    means = [np.concatenate(sets).mean(axis=0) for sets in left]
    return np.min(means, axis=0), np.max(means, axis=0)


def hyperprior(of_sets: list[np.ndarray], shipped: tuple[float, ...]) -> dict[str, Any]:
    """What all sets say, how stable that is, and how far off what the package has is."""
    found, (least, most) = np.concatenate(of_sets).mean(axis=0), without_one(of_sets)
    return {
        "found": found.tolist(),
        "shipped": list(shipped),
        "difference": float(np.abs(found - shipped).max()),
        "least": least.tolist(),
        "most": most.tolist(),
        "sets": len(of_sets),
    }


# ---------------------------------------------------------------------- the command


def main(given: list[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets")
    data = parser.parse_args(given).data
    of_sets: dict[str, dict[str, Alike]] = {}
    for name in (*sets_of("tuning"), *TO_TRAIN):
        names, learner, labels = sampled(*load(data, name))
        of_sets[name] = alike(names, learner, labels)
        console.print(f"{name}: {learner.n} records of {labels.max() + 1} entities", markup=False)
    results = {}
    for kind, shipped in SHIPPED.items():
        mine = {name: found[kind] for name, found in of_sets.items() if found[kind].names}
        if mine:
            results[kind] = hyperprior([rows_of(kind, found) for found in mine.values()], shipped)
            show_all(kind, mine, results[kind])
    keep("hyperpriors", results | {"by_set": {name: kept(found) for name, found in of_sets.items()}})


def show_all(kind: str, of_sets: dict[str, Alike], result: dict[str, Any]) -> None:
    """Print what each set says of columns, or of facts, and what all do."""
    rows = [
        [name, len(found.names), f"{found.pairs.sum():.0f}", *written(rows_of(kind, found).mean(axis=0))]
        for name, found in of_sets.items()
    ]
    titles = {"found": "found", "shipped": "shipped", "least": "one left out: least", "most": "most"}
    rows += [[title, "", "", *written(result[what])] for what, title in titles.items()]
    show(f"how alike the values of one entity are, of {kind}", ["set", kind, "pairs", *DEGREES], rows)
    console.print(f"{kind}: what is shipped is off by {result['difference']:.3f} at most")


def written(shares: Any) -> list[str]:
    """Shares as text."""
    return [f"{share:.3f}" for share in shares]


def kept(found: dict[str, Alike]) -> dict[str, Any]:
    """What a set says, attribute by attribute, as JSON can hold it."""
    return {
        kind: {
            name: {"pairs": float(pairs), "shares": shares.tolist()}
            for name, pairs, shares in zip(*attributes, strict=True)
        }
        for kind, attributes in found.items()
    }


if __name__ == "__main__":
    main()
