"""The benchmark of entity resolution: its figures, on a few fragments and without other processes."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import partita as pt
from benchmarks import entity_resolution as benchmark
from benchmarks import entity_sets, entity_tables, scale, splink_peer
from benchmarks import record_peers as peers
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
    methods = ["Partita", "Partita, refined", "linkage", "equal values", "equal names", "alone"]
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
    for method in ("equal values", "equal names", "alone"):
        assert found["methods"][method]["recall"] == pytest.approx(1 / 3)
    assert found["methods"]["alone"]["sure"] is None
    assert found["methods"]["linkage"]["sure"] == 1.0
    assert found["methods"]["linkage"]["sure_pairs"] == 9
    assert 0.0 <= ours["sure"] <= 1.0
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


@needs_linux
def test_equal_values_are_folded_and_in_any_order():
    records = [
        {"name": ["Ada", "José"], "born": "1815"},
        {"born": 1815, "name": ["jose ", "ADA"], "died": ""},
        {"name": ["Ada", "José"]},
        {"first": "Ada", "name": "José", "born": "1815"},
        {"name": None},
        {},
    ]
    labels = peers.equal_values("toy", records, TRUTH[:6]).labels
    np.testing.assert_array_equal(labels, [0, 0, 1, 2, 3, 4])
    np.testing.assert_array_equal(peers.everything_alone("toy", records, TRUTH[:6]).labels, np.arange(6))


def test_sure_pairs_are_those_above_the_threshold():
    together, same = np.array([1.0, 0.995, 0.99, 0.2]), np.array([True, False, False, True])
    assert benchmark.certainty(together, same) == {"sure": 0.5, "sure_pairs": 2}
    assert benchmark.certainty(together[2:], same[2:]) == {"sure": None, "sure_pairs": 0}


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
    labels = splink_peer.components(5, first, second, np.array([True, True, False]))
    np.testing.assert_array_equal(labels, [0, 0, 0, 1, 2])


def test_what_is_asked_for():
    assert benchmark.options([]).methods == list(benchmark.METHODS)
    assert benchmark.options(["--no-peers"]).methods == ["Partita"]
    assert "no demonstration" in benchmark.unsuitable("Splink", "kb50", 457)
    assert "too many pairs" in benchmark.unsuitable("linkage", "kb5k", 38_356)
    assert benchmark.options(["--half", "tuning"]).sets == list(entity_sets.HALVES["tuning"])
    assert len(benchmark.options([]).sets) == 24
    assert benchmark.options(["--sets", "cora"]).sets == ["cora"]
    with pytest.raises(SystemExit, match="neither"):
        benchmark.load(Path("nowhere"), "toy")


def test_a_set_that_fails_does_not_stop_the_others(folder, monkeypatch):
    kept = {}
    monkeypatch.setattr(benchmark, "last_results", lambda: kept)
    monkeypatch.setattr(benchmark, "keep", lambda _name, results: kept.update(results["sets"]))
    asked = ["--data", str(folder), "--sets", "missing", "toy", "--methods", "alone", "--jobs", "2"]
    found = benchmark.run_all(benchmark.options(asked))
    assert list(found) == list(kept) == ["toy"]


# ---------------------------------------------------------------------- sets and targets


def test_labels_are_no_attributes(tmp_path):
    (tmp_path / "toy").mkdir()
    nested = '{"entity_id": "a", "group": 3, "split": "dev", "properties": {"name": ["Ada"], "group": "x"}}'
    flat = '{"entity_id": "a", "group": 3, "split": "dev", "source": "b", "name": "Ada"}'
    (tmp_path / "toy" / "fragments.jsonl").write_text(f"{nested}\n{flat}\n")
    records = entity_sets.load(tmp_path, "toy")[0]
    assert records == [{"name": ["Ada"], "group": "x"}, {"name": "Ada"}]


@pytest.mark.skipif(not entity_sets.DATA.exists(), reason="the sets are not here")
@pytest.mark.parametrize("name", ["kb50", "fodors_zagat", "stream_news_T"])
def test_sets_are_read_as_their_own_reader_does(name):
    records, truth = entity_sets.load(entity_sets.DATA, name)
    reader = runpy.run_path(str(entity_sets.DATA / "load.py"))
    expected, labels = reader["load"](name)
    assert records == expected
    np.testing.assert_array_equal(np.unique([str(y) for y in labels], return_inverse=True)[1], truth)


def test_halves_do_not_overlap():
    tuning, testing = (set(entity_sets.HALVES[half]) for half in ("tuning", "testing"))
    assert not tuning & testing
    assert set(entity_sets.sets_of("both")) == tuning | testing


def test_whole_clusters_are_drawn():
    truth = np.repeat(np.arange(20), np.arange(1, 21))
    records = [{"row": row} for row in range(len(truth))]
    drawn, labels = entity_sets.some_clusters(records, truth, 50, seed=0)
    assert 40 <= len(drawn) <= 50
    assert all((labels == each).sum() == each + 1 for each in set(labels))
    rows = [record["row"] for record in drawn]
    assert rows == sorted(rows)
    np.testing.assert_array_equal(truth[rows], labels)
    assert entity_sets.some_clusters(records, truth, 1000, seed=0)[0] == records


def test_targets_that_are_missed():
    good = {"f1": 0.9, "own": 0.02, "common": 0.1, "sure": 0.99}
    bad = {"f1": 0.92949, "own": 0.06, "common": 0.1, "sure": 0.9}
    results = {
        "kb50": {"methods": {"Partita": bad, "Partita, refined": good, "linkage": {"f1": 0.7}}},
        "cora": {"methods": {"Partita": bad}},
    }
    rows = entity_tables.by_half(results)
    assert rows["testing"] == {}
    mean = entity_tables.means(rows["tuning"])
    assert mean["linkage"] == (0.7, 1)
    assert mean["Splink"] == (None, 0)
    assert mean["own"][0] == pytest.approx(0.04)
    missed = entity_tables.shortfalls("tuning", rows["tuning"])
    assert [line.split(" ")[0] for line in missed] == ["cora:", "cora:", "cora:", "tuning:"]
    entity_tables.show_halves(results)


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
