"""Other ways to resolve entities, each at its best: Splink, linkage of texts, and equal names.

Each takes records and their true entities, and returns what it says and what it took. The truth only chooses
thresholds and settings, which no user could do, and nothing of that choice is counted as time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.feature_extraction.text import TfidfVectorizer

import partita as pt
from benchmarks.common import Cost, measured

Records = list[dict[str, Any]]
NAMES = {  # attributes that name the entity, where it is not "name"
    "cora": ("title",),
    "rldata500": ("fname_c1", "lname_c1"),
    "rldata10000": ("fname_c1", "lname_c1"),
    "febrl3": ("given_name", "surname"),
    "fake1000": ("first_name", "surname"),
    "historical50k": ("full_name",),
}
SINGLE_RECORDS = 50  # scored by Splink one at a time, for its latency


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


# ---------------------------------------------------------------------- equal names


def name_of(record: dict[str, Any], fields: tuple[str, ...]) -> str:
    """The words of a record's name, the first of several; empty if it has none."""
    values = [record.get(field) or "" for field in fields]
    return " ".join(str(v[0] if isinstance(v, list) else v).casefold() for v in values).strip()


def equal_names(name: str, records: Records, _truth: np.ndarray, _seed: int = 0) -> Answer:
    """Merge what has the same name but for case, as GraphRAG does; records without a name stay alone."""

    def merge() -> np.ndarray:
        names = [name_of(record, NAMES.get(name, ("name",))) for record in records]
        keys = [(text, -1) if text else ("", row) for row, text in enumerate(names)]
        codes = {key: code for code, key in enumerate(dict.fromkeys(keys))}
        return np.array([codes[key] for key in keys])

    cost, labels = measured(merge)
    return without_doubt(labels, cost, {})


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


# ---------------------------------------------------------------------- Splink


class Demo(NamedTuple):
    """One of Splink's own demonstrations: how it blocks, compares and learns.

    A rule is SQL, or a tuple of expressions that must be equal.
    """

    comparisons: Callable[[Any], list[Any]]  # from Splink's comparison library
    blocking: list[tuple[str, ...]]
    surely: list[Any]  # rules whose pairs are nearly all matches, of which they find the share ``recall``
    recall: float
    max_pairs: float
    training: list[tuple[str, ...]]
    adjust: dict[str, Any] = {}  # noqa: RUF012  of the training; a named tuple's default, never changed


NO_FREQUENCIES = {"estimate_without_term_frequencies": True}
DEMOS = {
    "historical50k": Demo(
        lambda cl: [
            cl.ForenameSurnameComparison(
                "first_name", "surname", forename_surname_concat_col_name="both_names"
            ),
            cl.DateOfBirthComparison("dob", input_is_string=True),
            cl.PostcodeComparison("postcode_fake"),
            *(
                cl.ExactMatch(c).configure(term_frequency_adjustments=True)
                for c in ("birth_place", "occupation")
            ),
        ],
        [
            ("substr(first_name,1,3)", "substr(surname,1,4)"),
            ("surname", "dob"),
            ("first_name", "dob"),
            ("postcode_fake", "first_name"),
            ("postcode_fake", "surname"),
            ("dob", "birth_place"),
            ("substr(postcode_fake,1,3)", "dob"),
            ("substr(postcode_fake,1,3)", "first_name"),
            ("substr(postcode_fake,1,3)", "surname"),
            ("substr(first_name,1,2)", "substr(surname,1,2)", "substr(dob,1,4)"),
        ],
        [
            ("first_name", "surname", "dob"),
            ("substr(first_name,1,2)", "surname", "substr(postcode_fake,1,2)"),
            ("dob", "postcode_fake"),
        ],
        0.6,
        1e7,
        [("first_name", "surname"), ("dob",)],
        NO_FREQUENCIES,
    ),
    "febrl3": Demo(
        lambda cl: [
            cl.NameComparison("given_name"),
            cl.NameComparison("surname"),
            cl.DateOfBirthComparison("date_of_birth", input_is_string=True, datetime_format="%Y%m%d"),
            cl.DamerauLevenshteinAtThresholds("soc_sec_id", [2]),
            *(
                cl.ExactMatch(c).configure(term_frequency_adjustments=True)
                for c in ("street_number", "postcode")
            ),
        ],
        [("soc_sec_id",), ("given_name",), ("surname",), ("date_of_birth",), ("postcode",)],
        [
            ("soc_sec_id",),
            ("given_name", "surname", "date_of_birth"),
            "l.given_name = r.surname and l.surname = r.given_name and l.date_of_birth = r.date_of_birth",
        ],
        0.9,
        1e6,
        [("date_of_birth",), ("postcode",)],
    ),
    "fake1000": Demo(
        lambda cl: [
            cl.ForenameSurnameComparison("first_name", "surname"),
            cl.DateOfBirthComparison("dob", input_is_string=True),
            cl.ExactMatch("city").configure(term_frequency_adjustments=True),
            cl.EmailComparison("email"),
        ],
        [("first_name",), ("surname",), ("dob",), ("email",)],
        [
            "l.first_name = r.first_name and levenshtein(r.dob, l.dob) <= 1",
            "l.surname = r.surname and levenshtein(r.dob, l.dob) <= 1",
            "l.first_name = r.first_name and levenshtein(r.surname, l.surname) <= 2",
            "l.email = r.email",
        ],
        0.7,
        1e6,
        [("dob",), ("email",), ("first_name", "surname")],
        NO_FREQUENCIES,
    ),
}
THRESHOLDS = (*np.arange(0.02, 0.98, 0.02), 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999, 0.99999)


class Trained(NamedTuple):
    """A trained Splink model, the records as it has them, and its predictions as a table."""

    linker: Any
    database: Any
    registered: Any
    table: Any
    predictions: Any


def as_table(name: str, records: Records) -> Any:
    """Records as Splink takes them."""
    import pyarrow

    fields = list(dict.fromkeys(field for record in records for field in record))
    columns: dict[str, Any] = {field: [record.get(field) for record in records] for field in fields}
    columns["unique_id"] = list(range(len(records)))
    if name == "historical50k":
        both = zip(columns["first_name"], columns["surname"], strict=True)
        columns["both_names"] = [f"{one} {other}" if one and other else None for one, other in both]
    return pyarrow.table(columns)


def train(name: str, table: Any, seed: int = 0) -> Trained:
    """Block, learn and score as the demonstration does; the seed draws the pairs that it learns from."""
    logging.disable(logging.WARNING)  # Splink says what it does at that level
    import splink.comparison_library as cl
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on

    def rules(of: list[Any]) -> Iterator[Any]:
        return (rule if isinstance(rule, str) else block_on(*rule) for rule in of)

    demo, database = DEMOS[name], DuckDBAPI()
    settings = SettingsCreator(
        link_type="dedupe_only",
        blocking_rules_to_generate_predictions=list(rules(demo.blocking)),
        comparisons=demo.comparisons(cl),
    )
    registered = database.register(table)
    linker = Linker(registered, settings)
    linker.training.estimate_probability_two_random_records_match(
        list(rules(demo.surely)), recall=demo.recall
    )
    linker.training.estimate_u_using_random_sampling(max_pairs=demo.max_pairs, seed=seed + 1)
    for rule in rules(demo.training):
        linker.training.estimate_parameters_using_expectation_maximisation(rule, **demo.adjust)
    predicted = linker.inference.predict()
    linker.clustering.cluster_pairwise_predictions_at_threshold(predicted, threshold_match_probability=0.95)
    return Trained(linker, database, registered, table, predicted.as_pyarrow_table())


def splink(name: str, records: Records, truth: np.ndarray, seed: int = 0) -> Answer:
    """Splink with its own demonstration of this set; the threshold by the truth."""
    table = as_table(name, records)
    cost, trained = measured(lambda: train(name, table, seed))
    found = trained.predictions
    first, second = found["unique_id_l"].to_numpy(), found["unique_id_r"].to_numpy()
    together = found["match_probability"].to_numpy()
    tried = [(t, components(len(records), first, second, together >= t)) for t in THRESHOLDS]
    threshold, labels = max(tried, key=lambda each: scores(truth, each[1]).harmonic)
    return Answer(labels, first, second, together, cost, {"threshold": round(float(threshold), 5)})


def components(n: int, first: np.ndarray, second: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Clusters as Splink makes them: connected components of the chosen pairs."""
    links = coo_matrix((np.ones(chosen.sum()), (first[chosen], second[chosen])), shape=(n, n))
    labels: np.ndarray = connected_components(links, directed=False)[1]
    return labels


def splink_latency(name: str, records: Records) -> list[float]:
    """Seconds that Splink takes to score one record against all, for some of them."""
    import pyarrow

    trained = train(name, as_table(name, records[:-SINGLE_RECORDS]))
    new = as_table(name, records)[-SINGLE_RECORDS:].cast(trained.table.schema)
    seconds = []
    for row in new.to_pylist():
        began = time.perf_counter()
        one = trained.database.register(pyarrow.Table.from_pylist([row], schema=trained.table.schema))
        trained.linker.inference.predict_between(trained.registered, one).as_record_list()
        seconds.append(time.perf_counter() - began)
    return seconds
