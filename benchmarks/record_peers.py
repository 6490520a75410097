"""Other ways to resolve entities: linkage of texts at its best, equal values, equal names, all alone.

Each takes records and their true entities, and returns what it says and what it took. The truth only chooses
thresholds and settings, which no user could do, and nothing of that choice is counted as time.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.feature_extraction.text import TfidfVectorizer

import partita as pt
from benchmarks.common import Cost, measured

Records = list[dict[str, Any]]
NAMES = {  # attributes that name the entity, where it is not "name"
    "cora": ("title",),
    "amazon_google": ("title",),
    "dblp_acm": ("title",),
    "imdb_dbpedia": ("title",),
    "notebooks_x2": ("title",),
    "inventors_stream": ("first_name", "last_name"),
    "rldata500": ("fname_c1", "lname_c1"),
    "rldata10000": ("fname_c1", "lname_c1"),
    "febrl3": ("given_name", "surname"),
    "fake1000": ("first_name", "surname"),
    "historical50k": ("full_name",),
}


class Answer(NamedTuple):
    """What a method says of a set of records, and what it took.

    ``first``, ``second`` and ``together`` are pairs of records and the probability that they belong to one
    entity: all that the method considered. Of a method without probabilities, the pairs that it joins.
    """

    labels: np.ndarray
    first: np.ndarray
    second: np.ndarray
    together: np.ndarray
    cost: Cost
    settings: dict[str, Any]


class Scores(NamedTuple):
    """B-cubed measures of a clustering."""

    precision: float
    recall: float
    f1: float  # per item, averaged
    harmonic: float  # mean of precision and recall


def scores(truth: np.ndarray, labels: np.ndarray) -> Scores:
    """B-cubed measures, and the harmonic mean of two of them, which some call F1."""
    precision, recall, f1 = pt.bcubed(truth, labels)
    return Scores(precision, recall, f1, 2 * precision * recall / (precision + recall))


def pairs_of(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs that a clustering joins, the smaller number first."""
    order = np.argsort(labels, kind="stable")
    sizes = np.unique(labels, return_counts=True)[1]
    place = np.arange(len(order))
    later = np.repeat(np.cumsum(sizes), sizes) - place - 1  # of the same cluster, further on
    starts = np.cumsum(later) - later
    within = np.arange(later.sum()) - np.repeat(starts, later)
    return np.repeat(order, later), order[np.repeat(place, later) + 1 + within]


def without_doubt(labels: np.ndarray, cost: Cost, settings: dict[str, Any]) -> Answer:
    """The answer of a method that has no probabilities."""
    first, second = pairs_of(labels)
    return Answer(labels, first, second, np.ones(len(first)), cost, settings)


# ---------------------------------------------------------------------- without any choice


def merged(keys: list[Hashable]) -> np.ndarray:
    """Join records with the same key; those with None stay alone."""
    own = [("", row) if key is None else (key, -1) for row, key in enumerate(keys)]
    codes = {key: code for code, key in enumerate(dict.fromkeys(own))}
    return np.array([codes[key] for key in own])


def everything_alone(_name: str, records: Records, _truth: np.ndarray, _seed: int = 0) -> Answer:
    """Every record is an entity of its own."""
    cost, labels = measured(lambda: np.arange(len(records)))
    return without_doubt(labels, cost, {})


def equal_values(_name: str, records: Records, _truth: np.ndarray, _seed: int = 0) -> Answer:
    """Merge what says the same in all attributes but for case, accents and spaces."""
    cost, labels = measured(lambda: merged([said_by(record) for record in records]))
    return without_doubt(labels, cost, {})


def equal_names(name: str, records: Records, _truth: np.ndarray, _seed: int = 0) -> Answer:
    """Merge what has the same name but for case, as GraphRAG does; records without a name stay alone."""
    fields = NAMES.get(name, ("name",))
    cost, labels = measured(lambda: merged([name_of(record, fields) or None for record in records]))
    return without_doubt(labels, cost, {})


def said_by(record: dict[str, Any]) -> Hashable:
    """All that a record says, in whatever order; None if that is nothing."""
    said = {
        (field, text)
        for field, value in record.items()
        for each in (value if isinstance(value, list) else [value])
        if each is not None and (text := folded(str(each)))
    }
    return frozenset(said) or None


def folded(text: str) -> str:
    """A text without case, accents and surplus spaces."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    return " ".join("".join(c for c in letters if not unicodedata.combining(c)).split())


def name_of(record: dict[str, Any], fields: tuple[str, ...]) -> str:
    """The words of a record's name, the first of several; empty if it has none."""
    values = [record.get(field) or "" for field in fields]
    return " ".join(str(v[0] if isinstance(v, list) else v).casefold() for v in values).strip()


# ---------------------------------------------------------------------- linkage of texts


def values_of(record: dict[str, Any], fields: Iterable[str]) -> str:
    """All that a record has in some fields, as one text."""
    given = (record[field] for field in fields if field in record)
    values = (value if isinstance(value, list) else [value] for value in given)
    return " ".join(str(each).casefold() for value in values for each in value)


def texts(name: str, records: Records, what: str) -> list[tuple[float, list[str]]]:
    """Each record as a text or two, with the weights of these: its names, its other values, or both apart."""
    fields = NAMES.get(name, ("name",))
    names = [values_of(record, fields) for record in records]
    if what == "names":
        return [(1.0, names)]
    if what == "values":
        return [(1.0, [values_of(record, record) for record in records])]
    others = [values_of(record, [field for field in record if field not in fields]) for record in records]
    return [(0.7, names), (0.3, others)]


def distances(parts: list[tuple[float, list[str]]], analyzer: str, n_grams: tuple[int, int]) -> np.ndarray:
    """Cosine distances of the texts' n-grams, of all pairs in SciPy's order."""
    n, step = len(parts[0][1]), 500
    result = np.ones(n * (n - 1) // 2)
    for weight, documents in parts:
        grams = TfidfVectorizer(analyzer=analyzer, ngram_range=n_grams, sublinear_tf=True, dtype=np.float32)
        weights, start = grams.fit_transform([document or " . " for document in documents]), 0
        for top in range(0, n, step):
            block = (weights[top : top + step] @ weights.T).toarray()
            for row, similar in enumerate(block, start=top):
                result[start : start + n - row - 1] -= weight * similar[row + 1 :]
                start += n - row - 1
    return np.maximum(result, 0.0, out=result)


def linked_texts(name: str, records: Records, truth: np.ndarray, _seed: int = 0) -> Answer:
    """Hierarchical clustering of character n-grams: texts, n-grams, linkage and threshold by the truth."""
    few = len(records) <= 3_000
    grid = product(
        ("names", "values", "both"),
        ("char", "char_wb") if few else ("char_wb",),
        ((2, 3), (2, 4), (3, 4)) if few else ((2, 4),),
    )
    answers = (best_cut(name, records, truth, *setting) for setting in grid)
    return max(answers, key=lambda answer: pt.bcubed(truth, answer.labels).f1)


def best_cut(
    name: str, records: Records, truth: np.ndarray, what: str, analyzer: str, n_grams: tuple[int, int]
) -> Answer:
    """The best linkage and threshold for some texts and n-grams."""
    parts = texts(name, records, what)
    before, apart = measured(lambda: distances(parts, analyzer, n_grams))
    found = []
    for kind in ("average", "complete"):
        then, tree = measured(lambda kind=kind: linkage(apart, kind))
        cost = Cost(
            before.cpu_seconds + then.cpu_seconds,
            before.wall_seconds + then.wall_seconds,
            max(before.mebibytes, then.mebibytes),
        )
        for threshold in np.arange(0.02, 1.0, 0.02):
            labels = fcluster(tree, threshold, "distance")
            found.append((pt.bcubed(truth, labels).f1, kind, round(float(threshold), 2), labels, cost))
    _, kind, threshold, labels, cost = max(found, key=lambda each: each[0])
    settings = {"texts": what, "analyzer": analyzer, "n_grams": n_grams, "linkage": kind}
    return without_doubt(labels, cost, settings | {"threshold": threshold})
