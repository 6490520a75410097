"""Questions against naive oracles: what they are worth, that they go together, and where an entity is weakest."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita.kb
from partita.kb.queries import doubts as module
from partita.kb.queries import links
from partita.kb.queries.doubts import OPEN, PROBABLE, doubts, particles, wrong_pairs
from partita.kb.queries.questions import Asked, mixed


@st.composite
def some_particles(draw):
    """Partitions of a few observations, as the sampler has them, and their scores."""
    n, rows = draw(st.integers(2, 7)), draw(st.integers(2, 6))
    label = st.integers(0, 3)
    ids = draw(
        st.lists(
            st.lists(label, min_size=n, max_size=n), min_size=rows, max_size=rows, unique_by=as_partition
        )
    )
    scores = draw(st.lists(st.integers(-20, 0), min_size=len(ids), max_size=len(ids), unique=True))
    return np.arange(10, 10 + n), np.array(ids), np.array(scores) / 4.0


def as_partition(labels):
    return tuple(labels.index(label) for label in labels)


def naive_wrong(ids, weights, kept):
    """Expected wrong pairs of the best of the rows kept, times their weight, pair by pair."""
    rows = [row for row in np.argsort(-weights, kind="stable") if kept[row]]
    if not rows:
        return 0.0
    best = ids[rows[0]]
    return sum(
        weights[row]
        for row in rows
        for i, j in combinations(range(ids.shape[1]), 2)
        if (best[i] == best[j]) != (ids[row][i] == ids[row][j])
    )


def naive_worth(ids, weights, before, i, j):
    """What an answer about i and j removes, all answers to the questions before being possible."""
    signature = [tuple(row[a] == row[b] for a, b in before) for row in ids]
    total = 0.0
    for cell in set(signature):
        here = np.array([each == cell for each in signature])
        yes = ids[:, i] == ids[:, j]
        total += naive_wrong(ids, weights, here)
        total -= naive_wrong(ids, weights, here & yes) + naive_wrong(ids, weights, here & ~yes)
    return total


@given(some_particles(), st.booleans())
def test_each_question_is_the_best_after_those_before_it(given, many):
    members, ids, scores = given
    with pytest.MonkeyPatch.context() as patch:
        if many:  # the other way to compare partitions
            patch.setattr(module, "FEW", 0)
        of = particles(members, ids, scores)
        asked = list(doubts(of, []))
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    assert wrong_pairs(of) == pytest.approx(naive_wrong(ids, weights, np.ones(len(ids), bool)), abs=1e-9)
    before = []
    for one in asked:
        i, j = (int(np.flatnonzero(of.block == block)[0]) for block in (one.first, one.second))
        assert one.probability == pytest.approx(weights[ids[:, i] == ids[:, j]].sum())
        assert one.worth == pytest.approx(naive_worth(ids, weights, before, i, j), abs=1e-9)
        if not before:
            every = [naive_worth(ids, weights, [], a, b) for a, b in combinations(range(len(members)), 2)]
            assert one.worth == pytest.approx(max(every), abs=1e-9)
        before.append((i, j))
    if asked:
        assert sum(one.worth for one in asked) <= wrong_pairs(of) + 1e-9


@given(some_particles())
def test_no_question_is_moot_after_one_answer(given):
    members, ids, scores = given
    of = particles(members, ids, scores)
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    pairs = [
        tuple(int(members[of.block == b][0]) - 10 for b in (one.first, one.second)) for one in doubts(of, [])
    ]
    best = ids[scores.argmax()]
    entities = [frozenset((best[i], best[j])) for i, j in pairs]
    assert len(set(entities)) == len(entities)
    for (a, b), (c, d) in combinations(pairs, 2):
        for (i, j), (k, m) in (((a, b), (c, d)), ((c, d), (a, b))):
            for answer in (ids[:, i] == ids[:, j], ids[:, i] != ids[:, j]):
                if weights[answer].sum() > PROBABLE + 1e-9:
                    yes = weights[answer & (ids[:, k] == ids[:, m])].sum() / weights[answer].sum()
                    assert OPEN - 1e-9 <= yes <= 1.0 - OPEN + 1e-9


@given(some_particles())
def test_what_was_passed_is_as_if_it_were_answered(given):
    members, ids, scores = given
    of = particles(members, ids, scores)
    asked = list(doubts(of, []))
    if asked:
        again = [(one.first, one.second) for one in doubts(of, [(asked[0].first, asked[0].second)])]
        assert (asked[0].first, asked[0].second) not in again


# ---------------------------------------------------------------------- links


class Pairwise:
    """An engine in which each pair of observations speaks for or against being together."""

    alpha = 1.0

    def __init__(self, evidence):
        self.evidence = evidence

    def need(self, slots):
        pass

    def subproblem_of(self, x):
        return 0

    def scores(self, clusters):
        return np.array([self.evidence[np.ix_(c, c)].sum() / 2.0 for c in clusters])


def test_the_weakest_link_is_a_thin_bridge():
    rng = np.random.default_rng(0)
    for _ in range(20):
        side = rng.permutation([True] * 4 + [False] * 5)
        evidence = np.where(side[:, None] == side[None, :], 3.0, -0.5)
        evidence[np.flatnonzero(side)[0], np.flatnonzero(~side)[0]] += 9.0
        evidence = np.triu(evidence, 1) + np.triu(evidence, 1).T
        found = links.weakest_link(Pairwise(evidence), np.arange(9))
        assert {frozenset(found.one.tolist()), frozenset(found.other.tolist())} == {
            frozenset(np.flatnonzero(side).tolist()),
            frozenset(np.flatnonzero(~side).tolist()),
        }
        assert found.nats == pytest.approx(evidence[np.ix_(side, ~side)].sum())
        every = [
            float(links.wrong(evidence[np.ix_(one, other)].sum()) * len(one) * len(other))
            for one, other in divisions(9)
        ]
        assert found.worth == pytest.approx(max(every))


def divisions(n):
    """All ways to make two of n things."""
    for code in range(1, 2 ** (n - 1)):
        one = [k for k in range(n) if code >> k & 1]
        yield one, [k for k in range(n) if k not in one]


def test_of_a_large_entity_some_fragments_are_looked_at(monkeypatch):
    monkeypatch.setattr(links, "MEMBERS", 10)
    calls = []
    engine = Pairwise(np.ones((100, 100)))
    score = engine.scores
    engine.scores = lambda clusters: calls.extend(map(len, clusters)) or score(clusters)
    found = links.weakest_link(engine, np.arange(100))
    assert max(calls) == 10
    assert len(calls) < 10 + 45 + 2 * 20 * 11
    assert len(found.one) + len(found.other) == 10
    assert sum(found.share) == pytest.approx(1.0)


def test_links_do_not_drown_doubts():
    entity = np.arange(100)  # of each observation
    some = [Asked(float(worth), 0.5, k, k + 1) for k, worth in enumerate(range(9, 0, -1))]
    risks = [
        Asked(100.0 - k, 1.0, 20 + k, 40 + k, links.Link(1.0, 1.0, entity, entity, (0.5, 0.5)))
        for k in range(9)
    ]
    found = list(mixed(iter(some), risks, entity))
    assert sorted(found[:12], key=lambda one: -one.worth)[:4] == [
        one for one in found[:12] if one.link is not None
    ]
    assert all(sum(one.link is not None for one in found[:n]) <= -(-n // 3) for n in range(1, 13))
    assert [one for one in found if one.link is None] == some
    assert len(found) == 18
    same = np.zeros(100, int)
    assert list(mixed(iter(some), risks, same)) == [risks[0]]


# ---------------------------------------------------------------------- in a knowledge base


def bridged():
    """People, and two namesakes of twenty fragments each, whom one fragment holds together."""
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    word = lambda: "".join(rng.choice(letters, 7))  # noqa: E731
    rows = []
    for _ in range(40):
        said = {"name": f"{word()} {word()}", "mail": f"{word()}@x.example", "street": word(), "code": word()}
        rows += [{key: value for key, value in said.items() if rng.random() < 0.9} for _ in range(3)]
    one = {"name": "Anna Schmidt", "mail": "anna@one.example", "street": "Hauptallee"}
    other = {"name": "Anna Schmidt", "code": "4711"}
    rows += [one] * 20 + [other] * 20 + [{"name": "Anna Schmidt", "mail": "anna@one.example", "code": "4711"}]
    return [{"id": f"r{k}", **row} for k, row in enumerate(rows)]


def test_a_large_entity_with_a_thin_bridge_is_asked_about(tmp_path):
    with partita.kb.open(tmp_path / "kb.db") as kb:
        kb.add(bridged())
        large = kb.entity_of("r120")
        assert len(large.fragments) == 41
        assert kb.together("r120", "r140") > 0.99
        (question,) = (one for one in kb.uncertain(5) if one.first_entity == large.id)
        assert (question.kind, question.first_size, question.second_entity) == ("link", 41, large.id)
        assert question.reason.startswith(f"{large.id} (41 fragments) comes apart first between ")
        assert "1 in " in question.reason
        assert {int(question.first[1:]) < 140, int(question.second[1:]) < 140} == {True, False}
        assert 0.99 < question.probability < 1.0
        assert kb.uncertain(5) == kb.uncertain(5)
        passed = kb.uncertain(5, passed=[(question.second, question.first)])
        assert all(one.kind == "doubt" for one in passed)
        kb.confirm(question.first, question.second)
        assert all(one.kind == "doubt" for one in kb.uncertain(5))
        kb.undo()
        kb.separate(question.first, question.second)
        assert len(kb.entity(large.id).fragments) < 41
        assert kb.wrong_pairs() > 1.0
