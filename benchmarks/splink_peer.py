"""Splink as another way to resolve entities, with its own demonstrations of three sets.

Where there is no demonstration there is no run: what blocks and compares well is for its authors to say.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from benchmarks.common import measured
from benchmarks.record_peers import Answer, Records, scores

SINGLE_RECORDS = 50  # scored one at a time, for the latency


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
