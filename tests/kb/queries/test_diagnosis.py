"""How far the probabilities of a knowledge base are to be believed."""

import json

import numpy as np
import pytest

import partita as pt


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Fragments of random codes, which make easy entities, and their truth."""
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    word = lambda: "".join(rng.choice(letters, 7))  # noqa: E731
    rows, truth = [], {}
    for entity in range(60):
        true = [word() for _ in range(4)]
        for copy in range(3):
            shown = [value if rng.random() > 0.15 else word() for value in true]
            rows.append({"id": f"{entity}-{copy}", **dict(zip("abcd", shown, strict=True))})
            truth[f"{entity}-{copy}"] = entity
    kb = pt.kb.open(tmp_path_factory.mktemp("built") / "kb.db")
    kb.add(rows)
    yield kb, truth
    kb.close()


def test_a_good_clustering_is_believed(built):
    kb, truth = built
    found = kb.diagnose()
    assert found.slopes is None
    assert found.fragments == 180
    assert found.warnings == []
    assert found.reliability.share[-1] > 0.85
    table = kb.reliability(truth)
    assert table.bin_frequency[-1] > 0.9
    assert table.bin_count.sum() > 100
    scores = kb.evaluate(truth)
    assert scores["pairs held for certain"] > 100
    assert scores["true among these"] > 0.95
    assert 0.0 <= scores["pair f1"] <= 1.0


def test_labels_add_slopes(built):
    kb, truth = built
    some = {id: entity for id, entity in truth.items() if entity < 30}
    document = json.loads(json.dumps(kb.diagnose(some, n_records=60).as_dict()))
    assert document["slopes"]["observations"]["cases"] == 60
    assert document["slopes"]["merges"]["slope"] > 0.0
    assert document["reliability"]["records"] <= 60
    with pytest.raises(ValueError, match="none of the ids"):
        kb.diagnose({"x": 1})
    with pytest.raises(ValueError, match="n_records"):
        kb.diagnose(n_records=1)


def test_fragments_that_are_alone(tmp_path):
    with pt.kb.open(tmp_path / "kb.db") as kb:
        with pytest.raises(ValueError, match="is empty"):
            kb.diagnose()
        kb.add([{"id": "a", "name": "Ada"}])
        found = kb.diagnose({"a": 1})
        assert not found.reliability.can_tell
        assert found.slopes.merges is None
        assert kb.reliability({"a": 1}) is None
        assert "calibration error" not in kb.evaluate({"a": 1})
