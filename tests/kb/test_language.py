"""A knowledge base that clusters with a language model, by one that says what records say."""

import json
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

import partita.kb
import partita.neural
from partita.cli import app
from partita.kb import ingest
from partita.kb.language import Network
from partita.kb.queries.evidence import NETWORK
from partita.neural.jsonlm import Pool
from tests.helpers.language import RecordLM, install, learnt
from tests.helpers.networks import forget
from tests.helpers.people import fragments
from tests.helpers.stores import assert_same


def distinct(n):
    """Fragments that say different things: of those that say the same clusterings tie, and rounding chooses."""
    rows, truth = fragments(2 * n)
    said = {json.dumps(row["properties"], sort_keys=True): row for row in reversed(rows)}
    chosen = [row for row in rows if said[json.dumps(row["properties"], sort_keys=True)] is row][:n]
    return [{**row, "id": f"f{k}"} for k, row in enumerate(chosen)], {
        f"f{k}": truth[row["id"]] for k, row in enumerate(chosen)
    }


ROWS, TRUTH = distinct(60)
FIRST, REST = ROWS[:40], ROWS[40:]
CHANGED = [{**row, "properties": row["properties"] | {"occupation": ["poet"]}} for row in FIRST[:8:4]]


@pytest.fixture(autouse=True)
def never_again(monkeypatch):
    """Records are looked at again as they come, a language model's fragments are not: that would take too long."""
    monkeypatch.setattr(ingest, "STRIDE", 1000)


@pytest.fixture(scope="module")
def record():
    """What knowledge bases learn from the first fragments."""
    return learnt(FIRST)


@pytest.fixture(params=[None, Pool(temperature=2.0, surrogate_weight=0.5)], ids=["alone", "pooled"])
def lm(monkeypatch, record, request):
    """The language model, which is that; half of it and half of the records are the same again."""
    made = RecordLM(record)
    made.pool = request.param
    yield install(monkeypatch, made)
    forget()


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Folders with the first fragments in both, which are copied and stay as they are; made when first asked for."""
    made = {}

    def of(pool, **settings):
        key = (pool, *settings.items())
        if key not in made:
            made[key] = tmp_path_factory.mktemp("filled")
            for name in ("record", "jsonlm"):
                with partita.kb.open(made[key] / f"{name}.db", model=name, **settings) as kb:
                    kb.add(FIRST)
        return made[key]

    return of


@pytest.fixture
def both(lm, filled, tmp_path):
    """The same fragments, clustered by records and by the language model."""
    yield from opened(tmp_path, filled(lm.pool))


@pytest.fixture
def both_with_all(lm, filled, tmp_path, monkeypatch):
    """The same, with so many particles, whatever the odds, that none is left out of which another is as likely."""
    monkeypatch.setattr("partita.kb.clustering.ODDS", 0)
    yield from opened(tmp_path, filled(lm.pool, n_particles=2000))


def opened(folder, filled):
    shutil.copytree(filled, folder, dirs_exist_ok=True)
    with partita.kb.open(folder / "record.db") as one, partita.kb.open(folder / "jsonlm.db") as two:
        yield one, two


def together(kb):
    ids = list(kb.labels())
    return kb.together(ids, ids)


def agree(one, two, atol=1e-3):
    """The same entities, events and probabilities; of two particles that are as likely rounding may drop either."""
    mine, theirs = ({e.id: (e.name, e.fragments) for e in kb.entities()} for kb in (one, two))
    assert mine == theirs
    events = [[(e.kind, e.entity, e.other, e.fragment) for e in kb.events()] for kb in (one, two)]
    assert events[0] == events[1]
    np.testing.assert_allclose(together(one), together(two), atol=atol)


# ---------------------------------------------------------------------- as records do


def test_it_clusters_as_records_do(both_with_all, lm):
    both, asked = both_with_all, lm.asked
    agree(*both)
    for kb in both:
        kb.add(REST, batch=3)
    assert lm.asked > asked + len(REST)
    agree(*both)
    assert both[0].evaluate(TRUTH) == pytest.approx(both[1].evaluate(TRUTH))
    assert both[1].stats()["model"] == "jsonlm"
    assert both[0].stats()["model"] == "record"


def test_a_life_is_as_that_of_records(both_with_all):
    """Judgements, removals, new versions and refinement, each with the same consequences.

    Replays of records run in kernels, in other random orders than those of the language model.
    """
    for change in (
        lambda kb: kb.separate("f1", "f2", user="me"),
        lambda kb: kb.confirm("f3", "f4", user="me"),
        lambda kb: kb.add(CHANGED),
        lambda kb: kb.remove("f5", "f9"),
        lambda kb: kb.undo(1, user="me"),
        lambda kb: kb.refine(1),
        lambda kb: kb.add(REST[:7]),
    ):
        for kb in both_with_all:
            change(kb)
        agree(*both_with_all, atol=1e-2)


def test_any_batches_give_the_same(both, lm, tmp_path):
    with partita.kb.open(tmp_path / "others.db", model="jsonlm") as other:
        other.add(FIRST, batch=4)
        for k, row in enumerate(REST):
            other.add([row])
            if k % 6 == 5:
                other.close()
                other = partita.kb.open(tmp_path / "others.db")
        both[1].add(REST)
        same = assert_same if lm.pool is None else agree  # a pool is rounded as records come in
        same(both[1], other)
        other.close()


def test_what_is_reopened_goes_on_as_if_it_had_never_been_closed(both, lm, tmp_path):
    _, kb = both
    kb.separate("f1", "f2", user="me")
    copy = tmp_path / "copy.db"
    kb.store.close()
    copy.write_bytes((tmp_path / "jsonlm.db").read_bytes())
    with partita.kb.open(tmp_path / "jsonlm.db") as kb, partita.kb.open(copy) as other:
        kb.add(REST[:5])
        kb.refine(1)
        kb.remove("f0")
        kb.add(REST[5:])
        other.add(REST[:5])
        for change in (
            lambda kb: kb.refine(1),
            lambda kb: kb.remove("f0"),
            lambda kb: kb.add(REST[5:]),
        ):
            other.close()
            other = partita.kb.open(copy)
            change(other)
        agree(kb, other)
        other.close()


def test_to_read_takes_no_network(both, lm, tmp_path, monkeypatch):
    """What is in the store is there without it: entities, probabilities, questions, exports."""
    _, kb = both
    expected = together(kb)
    kb.close()
    monkeypatch.delitem(vars(partita.neural), "JsonLM")
    forget()
    asked = lm.asked
    with partita.kb.open(tmp_path / "jsonlm.db") as kb:
        np.testing.assert_allclose(together(kb), expected, atol=1e-9)
        assert len(kb.sample(3)["f0"]) == 3
        assert kb.uncertain(3)
        assert kb.export(tmp_path / "entities.jsonl") == len(list(kb.entities()))
        assert kb.search("Lovelace")
    assert lm.asked == asked


def test_questions_and_judgements_of_a_reopened_one(both_with_all, tmp_path):
    one, two = both_with_all
    two.close()
    with partita.kb.open(tmp_path / "jsonlm.db") as two:
        mine, theirs = one.uncertain(5), two.uncertain(5)
        assert [(q.first, q.second) for q in mine] == [(q.first, q.second) for q in theirs]
        assert [q.value for q in mine] == pytest.approx([q.value for q in theirs])
        question = theirs[0]
        for kb in (one, two):
            kb.confirm(question.first, question.second, user="me")
        agree(one, two)


# ---------------------------------------------------------------------- where it says something else


def test_explanations_sum_to_the_language_models_log_odds(monkeypatch, record, tmp_path):
    """A language model that likes clusters of people born in one place, more than records do."""

    def extra(cluster):
        return 1.5 * (len(cluster) - 1)

    install(monkeypatch, RecordLM(record, "likes company", extra))
    with partita.kb.open(tmp_path / "kb.db", model="jsonlm") as kb:
        kb.add(FIRST)
        ids = list(kb.labels())
        for a, b in [(ids[0], ids[1]), (ids[3], ids[17]), (ids[2], ids[30])]:
            found = kb.explain(a, b)
            steps = {step.attribute: step.nats for step in found.steps}
            assert sum(steps.values()) == pytest.approx(found.log_odds)
            merged = sum(len(c) - 1 for c in found.clusters) - sum(len(c) - 1 for c in found.alternative)
            sign = 1.0 if found.together else -1.0
            assert steps[NETWORK] == pytest.approx(1.5 * sign * merged, abs=1e-6)
    result = CliRunner().invoke(app, ["explain", str(tmp_path / "kb.db"), ids[0], ids[1]])
    assert result.exit_code == 0, result.output
    assert "language model" in result.output
    assert "The log-odds are the language model's, with the say" in result.output.replace("\n", " ")


def test_where_it_says_what_records_say_its_step_is_nothing(both):
    one, two = both
    for a, b in (("f0", "f1"), ("f2", "f7"), ("f10", "f20")):
        mine, theirs = one.explain(a, b), two.explain(a, b)
        steps = {step.attribute: step.nats for step in theirs.steps}
        assert steps[NETWORK] == pytest.approx(0.0, abs=1e-6)
        assert mine.log_odds == pytest.approx(theirs.log_odds, abs=1e-6)
        assert NETWORK not in {step.attribute for step in mine.steps}


def test_a_relearnt_one_has_its_ids_and_may_have_another_model(both, lm, monkeypatch, tmp_path):
    _, kb = both
    before = {entity.id for entity in kb.entities()}
    kb.relearn()
    assert before & {entity.id for entity in kb.entities()}
    mine = install(monkeypatch, lm, {"mine.safetensors": RecordLM(lm.record, "mine")})
    kb.relearn(model=str(tmp_path / "mine.safetensors"))
    assert kb.stats()["model"] == str(tmp_path / "mine.safetensors")
    assert kb.settings["network"]["name"] == "mine"
    assert mine is lm
    kb.add(REST[:3])
    kb.relearn(model="record")
    assert kb.stats()["model"] == "record"
    kb.add(REST[3:])
    kb.close()
    with partita.kb.open(tmp_path / "jsonlm.db", model="record") as kb:
        assert len(kb.labels()) == len(ROWS)


# ---------------------------------------------------------------------- what is refused


def test_other_weights_are_refused_until_it_is_relearnt(both, record, monkeypatch, tmp_path):
    _, kb = both
    kb.close()
    install(monkeypatch, RecordLM(record, "records 2"))
    with partita.kb.open(tmp_path / "jsonlm.db") as kb:
        before = kb.stats()
        with pytest.raises(
            ValueError, match=r"other weights \(records 2\).*\(records 1\): relearn"
        ) as caught:
            kb.add(REST)
        assert "score failed" not in str(caught.value)
        assert kb.stats() == before
        kb.relearn()
        kb.add(REST)
        assert kb.settings["network"]["name"] == "records 2"


def test_another_model_is_refused(both, tmp_path):
    for name, other in (("record", "jsonlm"), ("jsonlm", "record")):
        path = tmp_path / f"{name}.db"
        with pytest.raises(ValueError, match=f"clusters with the model {name}, not with {other}"):
            partita.kb.open(path, model=other)
        partita.kb.open(path, model=name).close()
        data = tmp_path / "rows.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in REST[:2]))
        result = CliRunner().invoke(app, ["build", str(data), "-o", str(path), "--model", other])
        assert result.exit_code == 1
        assert f"clusters with the model {name}" in result.output
        assert f"partita relearn {path} --model {other}" in result.output.replace("\n", "")


def test_an_unknown_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no model 'gpt': choose 'record', 'jsonlm', or a file of weights"):
        partita.kb.open(tmp_path / "kb.db", model="gpt")
    assert not list(tmp_path.iterdir())


def test_without_the_extra_nothing_is_begun(tmp_path, monkeypatch):
    def missing():
        raise ImportError('neural likelihoods need jax: pip install "partita[neural]"', name="jax")

    forget()
    monkeypatch.setattr(partita.neural, "require", missing)
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in REST))
    target = tmp_path / "kb.db"
    result = CliRunner().invoke(app, ["build", str(data), "-o", str(target), "--model", "jsonlm"])
    assert result.exit_code == 1
    assert 'Error: neural likelihoods need jax: pip install "partita[neural]"' in result.output
    assert not target.exists()
    with pytest.raises(ImportError, match="pip install"):
        partita.kb.open(target, model="jsonlm")
    assert not target.exists()


def test_a_network_that_fails_leaves_all_as_it_was(both_with_all, lm):
    both = both_with_all
    _, kb = both
    before = {entity.id: entity.fragments for entity in kb.entities()}

    def failing(cluster):
        raise RuntimeError("out of memory")

    lm.extra = failing
    with pytest.raises(RuntimeError, match="out of memory"):
        kb.add(REST)
    assert {entity.id: entity.fragments for entity in kb.entities()} == before
    lm.extra = lambda cluster: 0.0
    kb.add(REST)
    both[0].add(REST)
    agree(*both)


# ---------------------------------------------------------------------- from the command line


def test_build_and_add_from_the_command_line(lm, tmp_path):
    first, rest = tmp_path / "first.jsonl", tmp_path / "rest.jsonl"
    for path, rows in ((first, FIRST), (rest, REST)):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    target = str(tmp_path / "kb.db")
    for command in (
        ["build", str(first), "-o", target, "--model", "jsonlm", "--refine", "1"],
        ["add", target, str(rest)],
        ["relearn", target],
    ):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
    result = CliRunner().invoke(app, ["stats", target, "--json"])
    assert json.loads(result.output)["model"] == "jsonlm"


def test_a_network_as_the_store_keeps_it(lm):
    network = Network.of("jsonlm")
    pool = {} if lm.pool is None else {"temperature": 2.0, "surrogate_weight": 0.5, "offset": 0.0}
    assert network == Network("jsonlm", "records 1", 4, pool)
    fragment = {"name": ["Ada Lovelace"]}
    assert network([[fragment]]) == pytest.approx(lm([[fragment]]))
