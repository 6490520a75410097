"""The sets on which entity resolution is measured: two halves, targets, and how they are read.

Constants are chosen on the tuning half alone; the testing half says whether that was honest.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.common import ROOT
from benchmarks.record_peers import Records
from partita.experiments.files import read_fragments

DATA = ROOT.parent / "shared" / "data"
FILES = ("fragments.jsonl", "fragments.jsonl.gz", "docs.jsonl.gz", "records.csv.gz", "records.csv")
TARGETS = {  # B-cubed F1, per item
    "tuning": {
        "kb50": 0.89,
        "webnlg_conf2": 0.845,
        "cora": 0.93,
        "fake1000": 0.975,
        "rldata500": 0.997,
        "historical50k": 0.917,
        "names200_el": 0.54,
        "fodors_zagat": 0.98,
        "amazon_google": 0.80,
        "inventors_stream": 0.97,
        "ecb_mentions_a": 0.77,
    },
    "testing": {
        "kb200": 0.855,
        "kb1k": 0.81,
        "kb5k": 0.81,
        "geo1k": 0.78,
        "fewrel_conf1": 0.86,
        "febrl3": 1.000,
        "rldata10000": 0.993,
        "names200_wikidata": 0.53,
        "dblp_acm": 0.955,
        "notebooks_x2": 0.56,
        "imdb_dbpedia": 0.76,
        "authors_dblp": 0.55,
        "assignees_air": 0.80,
    },
}
HALVES = {half: tuple(targets) for half, targets in TARGETS.items()}


class Honesty(NamedTuple):
    """What probabilities are held to."""

    error: float = 0.05  # of calibration, on every set
    mean_error: float = 0.03
    sure: float = 0.97  # the share of true pairs among those with a probability above .99


def sets_of(half: str) -> list[str]:
    """The names of the sets of one half, or of both."""
    return [name for each, names in HALVES.items() if half in (each, "both") for name in names]


def load(data: Path, name: str) -> tuple[Records, np.ndarray]:
    """Records and their true entities; ``group``, ``split`` and what else comes with the truth is left out.

    A property may be called ``group`` and say something of the entity: that stays.
    """
    found = [data / name / file for file in FILES if (data / name / file).exists()]
    if not found:
        raise SystemExit(f"{data / name} has neither fragments.jsonl nor records.csv, gzipped or not")
    records, truth = read_fragments(found[0])
    if truth is None:
        raise SystemExit(f"{found[0]} has neither entity_id nor cluster_id")
    return records, truth


def some_clusters(records: Records, truth: np.ndarray, most: int, seed: int) -> tuple[Records, np.ndarray]:
    """Whole clusters in a random order, until there are ``most`` records; the order of the file is kept."""
    names, sizes = np.unique(truth, return_counts=True)
    drawn = np.random.default_rng(seed).permutation(len(names))
    room, chosen = most, []
    for k in drawn:
        if sizes[k] <= room:
            chosen.append(names[k])
            room -= sizes[k]
    rows = np.flatnonzero(np.isin(truth, chosen))
    return [records[row] for row in rows], truth[rows]
