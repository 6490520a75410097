"""Fragments of three entities, and a cheap model that reads texts and fragments."""

import gzip
import json
from collections import Counter
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

import partita as pt
from partita.models.records.folding import folded
from partita.models.records.ngram import grams

ENTITIES = {
    "ada": ["Ada Lovelace", "A. Lovelace", "Ada Lovelac"],
    "bob": ["Bob Hoskins", "B. Hoskins", "Bob Hoskin"],
    "zoe": ["Zoë Quux", "Z. Quux", "Zoe Quux"],
}
ROWS = [
    {
        "id": f"{entity}{k}",
        "entity_id": entity,
        "properties": {"name": [name], "born": [str(1900 + len(entity) + k)]},
    }
    for k in range(3)
    for entity, names in ENTITIES.items()
    for name in [names[k]]
]


class Letters(pt.Model):
    """A cheap model of texts: letters drawn from a distribution of the cluster's own."""

    reads_rows: ClassVar[bool] = False

    def __init__(self, strength=0.1):
        self.strength = strength

    def validate(self, X):
        return [x if isinstance(x, str) else json.dumps(x, sort_keys=True) for x in X]

    def statistics(self, X):
        return np.array([np.bincount([ord(letter) % 32 for letter in x], minlength=32) for x in X], float)

    def log_marginal(self, totals, sizes):
        strength = self.strength
        return (gammaln(totals + strength) - gammaln(strength)).sum(axis=1) - (
            gammaln(totals.sum(axis=1) + 32 * strength) - gammaln(32 * strength)
        )


def counted(n, concentration, texts):
    """An ``Ngram`` with the counts of some texts, and a concentration that is not learnt."""
    return pt.Ngram(
        n, concentration, dict(Counter(gram for text in texts for gram in grams(folded(text), n)))
    )


def write_json(path, rows=ROWS):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return path
