"""The benchmark of hyperpriors: its counts against naive ones, its means, its figures on a few records."""

import json
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pytest

import partita as pt
from benchmarks import hyperpriors as benchmark
from benchmarks.common import RESULTS
from partita.models.records.comparisons.family import LEVELS
from tests.helpers.naive_comparisons import Compared
from tests.helpers.texts import write_json

NAMES = ["Ada Lovelace", "Adah Lovelace", "A. Lovelace", "Ada King", "Augusta Ada Byron", "Lovelace"]


def generated(n=60):
    """Records with a column, another that most have, and facts that few have, one of them with two values."""
    generator = np.random.default_rng(1)
    truth, records = np.arange(n) // 4, []
    for k in range(n):
        record = {"name": f"{generator.choice(NAMES)} {generator.integers(3)}"}
        if k % 3:
            record["alias"] = f"{generator.choice(NAMES)} {truth[k]}"
        if k % 4 < 2 and k < n // 2:
            record["nickname"] = generator.choice(NAMES, size=2, replace=False).tolist()
        if k == 0:
            record["spouse"] = "William King"  # said once: nothing to compare
        records.append(record)
    return records, truth


def naive_shares(records, truth, name):
    """How alike values of different records of one entity are; n values of one have n − 1 pairs, in all."""
    schema = pt.Record.infer(records).attributes[name]
    said = [
        sorted({schema.parse(value) for value in np.atleast_1d(record[name]).tolist()})
        if name in record
        else []
        for record in records
    ]
    compared = Compared(schema.with_corpus(Counter(value for own in said for value in own)))
    clusters, counts = defaultdict(list), np.zeros(LEVELS)
    for row, own in enumerate(said):
        clusters[truth[row]] += [(row, value) for value in own]
    for items in clusters.values():
        for (i, v), (j, w) in combinations(items, 2):
            counts[compared.level(v, w)] += 2 / len(items) if i != j else 0.0
    return counts.sum(), counts / counts.sum()


def test_counts_are_those_within_true_clusters():
    records, truth = generated()
    found = benchmark.alike(*benchmark.sampled(records, truth))
    assert found["columns"].names == ["name", "alias"]
    assert found["facts"].names == ["nickname"]
    for attributes in found.values():
        for name, pairs, shares in zip(*attributes, strict=True):
            n, expected = naive_shares(records, truth, name)
            assert np.count_nonzero(expected) > 2
            assert pairs == pytest.approx(n)
            np.testing.assert_allclose(shares, expected, rtol=1e-12)


def test_of_many_records_whole_clusters_are_drawn(monkeypatch):
    monkeypatch.setattr(benchmark, "SAMPLE", 30)
    _, learner, labels = benchmark.sampled(*generated())
    assert learner.n == 28
    assert np.bincount(labels).tolist() == [4] * 7


def test_one_thing_alone_is_a_column():
    records = [{"name" if k % 5 else "alias": NAMES[k % 6]} for k in range(60)]
    found = benchmark.alike(*benchmark.sampled(records, np.arange(60) // 10))
    assert found["columns"].names == ["alias", "name"]
    assert not found["facts"].names


def test_every_column_counts_once_and_facts_as_their_pairs():
    few, many, other = np.eye(LEVELS)[[0]], np.eye(LEVELS)[[1, 1, 7]], np.eye(LEVELS)[[7]]
    result = benchmark.hyperprior([few, many, other], (0.25, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5))
    assert result["found"] == pytest.approx([0.2, 0.4, 0, 0, 0, 0, 0, 0.4])
    assert result["difference"] == pytest.approx(0.15)
    assert result["least"] == pytest.approx([0, 0, 0, 0, 0, 0, 0, 0.25])
    assert result["most"] == pytest.approx([0.5, 0.5, 0, 0, 0, 0, 0, 0.5])
    found = benchmark.Alike(["born", "died"], np.array([3.0, 1.0]), many[1:])
    assert benchmark.rows_of("columns", found) is found.shares
    assert benchmark.rows_of("facts", found).tolist() == [[0, 0.75, 0, 0, 0, 0, 0, 0.25]]
    assert [each.tolist() for each in benchmark.without_one([few])] == [few[0].tolist()] * 2


def test_figures_of_a_set(tmp_path, monkeypatch, capsys):
    (tmp_path / "toy").mkdir()
    records, truth = generated()
    rows = [
        {"entity_id": str(entity), "properties": record}
        for record, entity in zip(records, truth, strict=True)
    ]
    write_json(tmp_path / "toy" / "fragments.jsonl", rows)
    kept, halves = {}, []
    monkeypatch.setattr(benchmark, "keep", lambda name, results: kept.update(results))
    monkeypatch.setattr(benchmark, "TO_TRAIN", ())
    monkeypatch.setattr(benchmark, "sets_of", lambda half: halves.append(half) or ["toy"])
    benchmark.main(["--data", str(tmp_path)])
    assert halves == ["tuning"]
    assert set(kept["by_set"]["toy"]["columns"]) == {"name", "alias"}
    assert kept["columns"]["shipped"] == list(pt.Text().agreement)
    assert kept["facts"]["found"] == pytest.approx(naive_shares(records, truth, "nickname")[1].tolist())
    assert "shipped is off by" in capsys.readouterr().out


def test_what_is_shipped_is_what_was_found():
    """By the run whose results are kept, to three digits."""
    kept = json.loads((RESULTS / "hyperpriors.json").read_text())
    for kind, shipped in benchmark.SHIPPED.items():
        assert sum(shipped) == pytest.approx(1.0)
        np.testing.assert_allclose(kept[kind]["found"], shipped, atol=0.001)
