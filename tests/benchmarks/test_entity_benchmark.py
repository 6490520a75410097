"""The benchmark of entity resolution: its figures, on a few fragments and without other processes."""

from pathlib import Path

import numpy as np
import pytest

import partita as pt
from benchmarks import entity_resolution as benchmark
from benchmarks import record_peers as peers
from benchmarks import scale
from benchmarks.common import Cost
from tests.helpers.texts import ROWS, Letters, write_json

needs_linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="memory is read from /proc"
)
TRUTH = np.array([0, 1, 2] * 3)
FREE = Cost(0.0, 0.0, 0.0)


def cluster(records, particles=20, expected=0):
    """A stand-in for ours."""
    return pt.SplitSMC(Letters(), alpha=1.0, n_particles=particles, random_state=0).fit(records)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with one set; nothing leaves this process."""
    (tmp_path / "toy").mkdir()
    write_json(tmp_path / "toy" / "fragments.jsonl")
    monkeypatch.setattr(benchmark, "cluster", cluster)
    monkeypatch.setattr(benchmark, "apart", lambda function, *arguments: function(*arguments))
    monkeypatch.setattr(benchmark, "SINGLE_INSERTS", 4)
    return tmp_path


@needs_linux
def test_every_method_is_run(folder):
    found = benchmark.compare(folder, "toy", list(benchmark.METHODS), n_orders=2, particles=5)
    assert found["records"] == 9
    methods = ["Partita", "Partita, refined", "linkage", "equal names"]
    assert list(found["methods"]) == methods  # Splink knows nothing of this set
    assert found["methods"]["Partita, refined"]["cpu_seconds"] > found["methods"]["Partita"]["cpu_seconds"]
    ours = found["methods"]["Partita"]
    records, truth = benchmark.load(folder, "toy")
    f1 = []
    for order in range(2):
        arranged = np.random.default_rng(order).permutation(9)
        labels = cluster([records[k] for k in arranged], 5).labels_
        f1.append(pt.bcubed(truth[arranged], labels).f1)
    assert ours["f1"] == pytest.approx(np.mean(f1))
    assert ours["f1_sd"] == pytest.approx(np.std(f1))
    assert ours["orders"] == 2
    assert ours["mebibytes"] > 0.0
    assert found["methods"]["equal names"]["recall"] == pytest.approx(1 / 3)
    assert found["methods"]["linkage"]["f1"] == 1.0
    assert found["methods"]["linkage"]["own"] == found["methods"]["linkage"]["common"] == 0.0
    benchmark.show_sets({"toy": found})


@needs_linux
def test_peers_alone_leave_our_last_results(folder):
    alone = benchmark.compare(folder, "toy", ["linkage", "equal names"], n_orders=1, particles=5)
    assert list(alone["methods"]) == ["linkage", "equal names"]
    assert alone["methods"]["linkage"]["common"] is None  # there is nothing to compare with
    benchmark.show_sets({"toy": alone})
    ours = {"f1": 0.5}
    kept = {"toy": {"records": 9, "methods": {"Partita": ours, "linkage": {}}, "latency": {"Partita": {}}}}
    both = benchmark.with_last(kept, "toy", alone)
    assert list(both["toy"]["methods"]) == ["Partita", "linkage", "equal names"]
    assert both["toy"]["methods"]["linkage"] == alone["methods"]["linkage"]
    assert both["toy"]["latency"] == {"Partita": {}}
    assert benchmark.with_last({}, "toy", alone)["toy"]["methods"] == alone["methods"]


def test_likely_pairs_are_those_of_the_posterior():
    sampler = cluster([row["properties"] for row in ROWS])
    first, second, together = benchmark.likely_pairs(sampler.posterior_, least=0.0)
    np.testing.assert_allclose(together, sampler.posterior_.together(first, second))
    i, j = np.triu_indices(9, 1)
    assert (sampler.posterior_.together(i, j) > 0.0).sum() == len(first)


def test_a_missed_true_pair_counts_in_full():
    one = peers.without_doubt(np.array([0, 1, 2, 0, 1, 2, 3, 4, 5]), FREE, {})
    result = benchmark.summary(one, TRUTH)
    assert result["own"] == 0.0
    population = benchmark.common_pairs({"Splink": [result]}, TRUTH)
    assert len(population) == 9
    together = benchmark.probability_of(population, *result["pairs"])
    assert benchmark.error(together, np.ones(9, bool)) == pytest.approx(6 / 9)


def test_proposed_pairs_join_the_population():
    proposed = np.array([0.5, 0.02, 0.004])
    answer = peers.Answer(TRUTH, np.array([1, 0, 3]), np.array([0, 3, 4]), proposed, FREE, {})
    result = benchmark.summary(answer, TRUTH)
    population = benchmark.common_pairs({"Partita": [result]}, TRUTH)
    assert len(population) == 10  # nine true pairs, and 0 with 1
    together = benchmark.probability_of(population, *result["pairs"])
    np.testing.assert_allclose(np.sort(together)[-2:], [0.02, 0.5])
    empty = np.zeros(0)
    np.testing.assert_array_equal(
        benchmark.probability_of(population, empty.astype(int), empty), np.zeros(10)
    )


def test_pairs_of_a_clustering():
    first, second = peers.pairs_of(np.array([5, 2, 5, 7, 5]))
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == {(0, 2), (0, 4), (2, 4)}
    assert len(peers.pairs_of(np.arange(3))[0]) == 0


def test_latency_is_of_single_inserts(folder):
    found = benchmark.latency("Partita", folder, "toy", particles=3)
    assert found["records"] == 4
    assert 0.0 < found["median"] <= found["p99"]
    benchmark.show_latency({"toy": {"latency": {"Partita": found}}})


@needs_linux
def test_records_without_a_name_stay_alone():
    records = [{"name": ["Ada", "Lovelace"]}, {"name": "ada"}, {"born": "1815"}, {}, {"name": []}]
    labels = peers.equal_names("toy", records, TRUTH[:5]).labels
    np.testing.assert_array_equal(labels, [0, 0, 1, 2, 3])


def test_texts_of_records():
    records = [{"given_name": "Ada", "surname": "L", "born": ["1815", 1816]}]
    assert peers.texts("febrl3", records, "names") == [(1.0, ["ada l"])]
    assert peers.texts("febrl3", records, "values") == [(1.0, ["ada l 1815 1816"])]
    assert peers.texts("febrl3", records, "both")[1] == (0.3, ["1815 1816"])
    same, other = peers.distances([(1.0, ["ada", "ada", "zoe"])], "char_wb", (2, 3))[:2]
    assert same == pytest.approx(0.0, abs=1e-6)
    assert other == 1.0


def test_clusters_of_links():
    first, second = np.array([0, 1, 3]), np.array([1, 2, 4])
    labels = peers.components(5, first, second, np.array([True, True, False]))
    np.testing.assert_array_equal(labels, [0, 0, 0, 1, 2])


def test_what_is_asked_for():
    assert benchmark.options([]).methods == list(benchmark.METHODS)
    assert benchmark.options(["--no-peers"]).methods == ["Partita"]
    assert "no demonstration" in benchmark.unsuitable("Splink", "kb50", 457)
    assert "too many pairs" in benchmark.unsuitable("linkage", "kb5k", 38_356)
    with pytest.raises(SystemExit, match="neither"):
        benchmark.load(Path("nowhere"), "toy")


def test_a_stream_of_people():
    drawn = scale.people(np.random.default_rng(0))
    found = [next(drawn) for _ in range(2000)]
    assert all("surname" in record for record in found)
    assert 0.9 < np.mean(["dob" in record for record in found]) < 0.99
    births = [record["dob"] for record in found if "dob" in record]
    assert 500 < len(set(births)) < 700  # of 500 people, with typos
    again = scale.people(np.random.default_rng(0))
    assert found[:50] == [next(again) for _ in range(50)]


def test_growth_of_a_logarithm():
    results = [{"n": n, "us": 3.0 + 2.0 * np.log2(n)} for n in (1000, 2000, 8000)]
    assert scale.growth(results, "us")["us_per_doubling"] == pytest.approx(2.0)
    assert scale.growth(results[:1], "us") == {}
