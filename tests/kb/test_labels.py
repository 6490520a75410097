"""Known matches teach: they are kept, they do not bind, and judgements count for more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita.kb
from partita.kb import labels
from partita.kb.groups import Groups
from partita.kb.store.database import get
from partita.kb.store.judgements import Standing
from partita.models.records.record import Record
from tests.helpers.oracle import all_partitions
from tests.helpers.people import fragments

ROWS, TRUTH = fragments(36)
SOME = {f"f{k}": TRUTH[f"f{k}"] for k in range(0, 36, 2)}


@pytest.fixture
def kb(url):
    with partita.kb.open(url) as kb:
        kb.add(ROWS)
        yield kb


def learnt_model(kb):
    with kb.store.reading() as connection:
        return get(connection, "model")


def expected_model(labels, pairs=()):
    properties = [row["properties"] for row in ROWS]
    given = [labels.get(row["id"]) for row in ROWS]
    return Record.infer(properties).fit_prior(properties, given, pairs=pairs).to_json()


def test_labels_teach_and_are_kept_until_they_are_forgotten(kb):
    kb.relearn()
    without = learnt_model(kb)
    assert kb.relearn(labels=SOME | {"nobody": "x", "f1": None}) == (18, 1, 0)
    assert learnt_model(kb) == expected_model(SOME) != without
    kb.separate("f0", "f1")
    assert kb.relearn() == (18, 1, 1)
    assert learnt_model(kb) == expected_model(SOME, [(0, 1, False)])
    kb.undo()
    assert kb.relearn(labels={}) == (0, 0, 0)
    assert learnt_model(kb) == without


def test_labels_do_not_bind(kb):
    """By these labels nobody is the same as anybody; the evidence says otherwise."""
    first = next(kb.entities())
    one, other = first.fragments[:2]
    kb.relearn(labels={one: "a", other: "b"})
    assert kb.together(one, other) > 0.0
    kb.separate(one, other)
    assert kb.together(one, other) == 0.0


def test_labels_teach_when_a_model_is_learnt_by_itself(url):
    with partita.kb.open(url) as kb:
        kb.add(ROWS[:12])
        assert kb.relearn(labels=SOME) == (6, 12, 0)
        kb.add(ROWS[12:36])
        assert kb.settings["learnt_from"] == 36
        properties = [row["properties"] for row in ROWS[:36]]
        given = [SOME.get(row["id"]) for row in ROWS[:36]]
        assert learnt_model(kb) == Record.infer(properties).fit_prior(properties, given).to_json()


def test_labels_that_cannot_be_used_are_refused_and_change_nothing(kb):
    kb.relearn(labels={"f0": "A"})
    kb.confirm("f2", "f4")
    kb.confirm("f4", "f6")
    kb.separate("f8", "f10")
    before, last = learnt_model(kb), kb.events()[-1]
    with pytest.raises(
        ValueError, match=r"'f2' is of 'A' and 'f6' of 'B', but judgements 1, 2 say .* the same"
    ):
        kb.relearn(labels={"f2": "A", "f6": "B"})
    with pytest.raises(
        ValueError, match=r"'f8' and 'f10' are the same, but judgement 3 says .* different; correct"
    ):
        kb.relearn(labels={"f8": "A", "f10": "A"})
    with pytest.raises(ValueError, match="none of the ids"):
        kb.relearn(labels={"nobody": "A"})
    with pytest.raises(TypeError, match="must map ids of fragments to true entities, got list"):
        kb.relearn(labels=["A"])
    assert learnt_model(kb) == before
    assert kb.events()[-1] == last
    assert kb.relearn() == (1, 0, 3)


def test_a_later_judgement_counts_for_more(kb):
    assert kb.relearn(labels={"f0": "A", "f1": "A", "f2": "B"}).labels == 3
    kb.separate("f0", "f1")
    assert kb.relearn().labels == 1
    assert learnt_model(kb) == expected_model({"f2": "B"}, [(0, 1, False)])
    kb.undo()
    assert kb.relearn().labels == 3


def test_the_label_of_a_removed_fragment_is_erased(kb):
    kb.relearn(labels={"f0": "Maria", "f1": "Mario"})
    kb.remove("f0")
    with kb.store.reading() as connection:
        assert labels.labels_kept(connection) == {"f1": "Mario"}


def test_judgements_that_say_otherwise_are_not_said_to_say_the_same():
    rows = [judged(1, "confirm", "a", "b"), judged(2, "separate", "a", "c"), judged(3, "confirm", "b", "d")]
    found = labels.contradiction({"a": "X", "d": "Y"}, rows)
    assert found.fragments == ["a", "d"]
    assert found.reason.endswith("but judgements 1, 3 say that they are the same")


def test_many_contradictions_cost_no_more_than_one(monkeypatch):
    """What belongs together is found once, not once for each."""
    asked, of = [], Groups.of
    monkeypatch.setattr(Groups, "of", lambda groups, thing: asked.append(thing) or of(groups, thing))
    given = {f"{side}{k}": f"{side}{k // 2 * 2}" for k in range(200) for side in "ab"}
    rows = [judged(k, "confirm", [f"a{k}"], [f"b{k}"]) for k in range(0, 100, 2)]
    rows += [judged(k, "separate", [f"a{k - 1}"], [f"a{k}"]) for k in range(101, 200, 2)]
    left = labels.agreeing(given, rows)
    assert len(left) == 400 - 2 * 50 - 2 * 50
    assert len(asked) < 20 * len(given)


def judged(number, kind, one, other):
    return Standing(number, kind, "", "", "", [list(one), list(other)])


# ---------------------------------------------------------------------- against all partitions

IDS = "abcde"
judgement = st.tuples(
    st.sampled_from(["confirm", "separate", "unsure"]),
    st.lists(st.sampled_from(IDS), min_size=2, max_size=4, unique=True),
    st.integers(1, 3),
)


@given(
    st.dictionaries(st.sampled_from(IDS), st.sampled_from("XYZ"), max_size=5),
    st.lists(judgement, max_size=3),
)
def test_labels_and_judgements_agree_if_some_clustering_keeps_them(given, said):
    rows = [
        Standing(k, kind, "", "", "", [ids[: min(cut, len(ids) - 1)], ids[min(cut, len(ids) - 1) :]])
        for k, (kind, ids, cut) in enumerate(said)
    ]
    if not possible({}, rows):
        return  # which is refused before
    assert (labels.contradiction(given, rows) is None) == possible(given, rows)
    left = labels.agreeing(given, rows)
    assert left == one_after_the_other(given, rows)
    assert possible(left, rows)


def one_after_the_other(given, rows):
    """The labels that are left when those of the first contradiction go, again and again."""
    left = dict(given)
    while (found := labels.contradiction(left, rows)) is not None:
        left = {id: label for id, label in left.items() if id not in found.fragments}
        assert found.fragments
    return left


def possible(given, rows):
    """Whether a clustering of all fragments keeps labels and judgements."""
    return any(keeps(dict(zip(IDS, clusters, strict=True)), given, rows) for clusters in CLUSTERINGS)


CLUSTERINGS = [
    [next(k for k, cluster in enumerate(partition) if x in cluster) for x in range(len(IDS))]
    for partition in all_partitions(len(IDS))
]


def keeps(cluster, given, rows):
    for one, label in given.items():
        for other, its in given.items():
            if (cluster[one] == cluster[other]) != (label == its):
                return False
    for row in rows:
        first, second = ({cluster[id] for id in side} for side in row.sides)
        if row.kind == "confirm" and len(first | second) > 1:
            return False
        if row.kind == "separate" and first & second:
            return False
    return True
