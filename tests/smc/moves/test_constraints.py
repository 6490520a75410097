"""Conditioning on pairs that are together or apart, and removal: against enumeration, and as properties."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita.smc.moves import constrain as moves
from partita.smc.moves.constrain import constrain, explore
from partita.smc.state.constraints import constraints_from
from tests.helpers import oracle
from tests.helpers.effort import examples
from tests.helpers.streams import MODELS, rows_of

quick = examples(30)
MODEL = pt.Gaussian(shape=2.0, rate=0.5, precision=0.05)


def conforms(partition, together, apart):
    """Whether a partition keeps to pairs that are together, and pairs that are apart."""
    of = {x: cluster for cluster in partition for x in cluster}
    return all(of[i] == of[j] for i, j in together) and all(of[i] != of[j] for i, j in apart)


def conditioned(model, X, alpha, together, apart):
    """The posterior over all partitions that conform, by enumeration."""
    scores = oracle.Scores(model, X, alpha)
    weight = {p: scores(p) for p in oracle.all_partitions(len(X)) if conforms(p, together, apart)}
    top = max(weight.values())
    total = sum(math.exp(value - top) for value in weight.values())
    return {p: math.exp(value - top) / total for p, value in weight.items()}


def assert_is(sampler, exact, n, tolerance=1e-9):
    """The sampler's probabilities of all pairs are those of an exact posterior."""
    post = sampler.posterior_
    for i, j in itertools.combinations(range(n), 2):
        wanted = sum(p for partition, p in exact.items() if any({i, j} <= c for c in partition))
        assert post.together(i, j) == pytest.approx(wanted, abs=tolerance)
    best = max(exact, key=exact.get)
    found = oracle.partition_of(range(n), post.labels()[:n])
    assert exact.get(found, 0.0) == pytest.approx(exact[best], rel=1e-9)


@st.composite
def questions(draw, n):
    """Pairs that are together and pairs that are apart, as some partition has them."""
    truth = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    pairs = st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=4)
    chosen = [(i, j) for i, j in draw(pairs) if i != j]
    return (
        [(i, j) for i, j in chosen if truth[i] == truth[j]],
        [(i, j) for i, j in chosen if truth[i] != truth[j]],
    )


@pytest.mark.parametrize("name", ["gaussian", "categorical", "user"])
@given(data=st.data())
@quick
def test_conditioning_is_exact(name, data):
    n, seed = data.draw(st.integers(2, 6)), data.draw(st.integers(0, 99))
    X, model = rows_of(name, n, seed), MODELS[name]()
    together, apart = data.draw(questions(n))
    sampler = pt.SplitSMC(model, alpha=1.0, n_particles=300).fit(X)
    sampler.constrain(together, apart)
    assert_is(sampler, conditioned(model, X, 1.0, together, apart), n)


@st.composite
def cuts(draw, n):
    """Pairs that are together, and cuts of several sides, as some partition has them."""
    truth = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    found = []
    for some in draw(st.lists(st.sets(st.integers(0, n - 1), min_size=2), max_size=3)):
        sides = [[x for x in sorted(some) if truth[x] == k] for k in range(4)]
        found.append([side for side in sides if side])
    return draw(questions(n))[0] if draw(st.booleans()) else [], [cut for cut in found if len(cut) > 1], truth


@given(data=st.data())
@quick
def test_conditioning_on_cuts_is_exact(data):
    """Of any number of sides, one after the other, with what is together; and taken back."""
    n = data.draw(st.integers(3, 6))
    X, model = rows_of("gaussian", n, data.draw(st.integers(0, 99))), MODELS["gaussian"]()
    pairs, sides, truth = data.draw(cuts(n))
    together = [(i, j) for i, j in pairs if truth[i] == truth[j]]
    apart = [
        pair
        for cut in sides
        for one, other in itertools.combinations(cut, 2)
        for pair in itertools.product(one, other)
    ]
    sampler = pt.SplitSMC(model, alpha=1.0, n_particles=300).fit(X)
    for k in range(len(sides) + 1):
        engine = sampler._fitted()
        with engine.changing(long=True):
            constrain(engine, constraints_from(together, sides[:k]), [range(n)])
    if together or sides:
        assert_is(sampler, conditioned(model, X, 1.0, together, apart), n)


def test_large_cuts_and_groups_keep_to_what_they_say():
    """Entities of hundreds: what the kernels rule out is what the constraints say."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.normal(size=(400, 1)), axis=0) + np.repeat([0.0, 4.0], 200)[:, None]
    sampler = pt.SplitSMC(MODEL, alpha=0.5, n_particles=5).fit(X)
    engine, order = sampler._fitted(), rng.permutation(400)
    sides, group = [order[:150], order[150:250], order[250:290]], order[300:380]
    pairs = list(zip(group[1:].tolist(), group.tolist(), strict=False))
    with engine.changing(long=True):
        constrain(engine, constraints_from(pairs, [[side.tolist() for side in sides]]), [range(400)])
    for _ in range(2):
        labels = sampler.labels_
        assert len(set(labels[group])) == 1
        of = [set(labels[side]) for side in sides]
        assert not any(one & other for one, other in itertools.combinations(of, 2))
        sampler.refine()


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        *itertools.product(["gaussian", "categorical", "user"], range(5)),
    ],
)
def test_what_is_taken_back_is_forgotten(name, seed):
    """Up to what crosses a border with less than 1/m of the weight, which is not put together again."""
    X, model = rows_of(name, 3, seed), MODELS[name]()
    sampler = pt.SplitSMC(model, alpha=1.0, n_particles=300).fit(X)
    sampler.constrain([(0, 1)], [(0, 2)]).constrain()
    assert_is(sampler, conditioned(model, X, 1.0, [], []), 3, tolerance=1.0 / 300)


def test_across_subproblems():
    """Candidates keep the two halves apart until a constraint crosses between them; the last point stays out."""
    X = np.array([[0.0], [1.1], [4.0], [5.2], [40.0]])
    sampler = pt.SplitSMC(
        MODEL, alpha=0.5, n_particles=300, keys=lambda x: [int(x[0] > 3.0) + int(x[0] > 9.0)]
    )
    sampler.fit(X)
    assert sampler.posterior_.n_subproblems == 3
    for together, apart in (
        ([(0, 2)], []),
        ([(0, 2)], [(1, 3)]),
        ([(0, 2), (0, 3)], [(1, 2)]),
    ):
        sampler.constrain(together, apart)
        assert_is(sampler, conditioned(MODEL, X[:4], 0.5, together, apart), 4)
    sampler.constrain()
    assert_is(sampler, conditioned(MODEL, X[:4], 0.5, [], []), 4)


def test_partitions_are_scored_in_one_call(monkeypatch):
    """However many they are, and a cluster that several of them have is scored once."""
    X = np.array([[0.0], [1.1], [4.0], [5.2]])
    engine = pt.SplitSMC(MODEL, alpha=0.5, n_particles=300).fit(X)._engine
    rows = np.array([[0, 0, 1, 1], [0, 0, 1, 2], [0, 1, 2, 2]])
    asked, scores = [], type(engine).scores
    monkeypatch.setattr(type(engine), "scores", lambda *given: asked.append(given[1]) or scores(*given))
    found = moves.scores_of(engine, np.arange(4), rows)
    assert [len(clusters) for clusters in asked] == [6]
    for row, score in zip(rows, found, strict=True):
        clusters = [np.flatnonzero(row == label) for label in np.unique(row)]
        assert score == pytest.approx(sum(scores(engine, clusters)) + len(clusters) * math.log(0.5))


@given(data=st.data())
@quick
def test_later_data_and_refinement_keep_to_it(data):
    X = rows_of("gaussian", 40, data.draw(st.integers(0, 99)))
    together, apart = data.draw(questions(20))
    sampler = pt.SplitSMC(MODELS["gaussian"](), alpha=1.0, n_particles=8).fit(X[:20])
    sampler.constrain(together, apart)
    for change in (
        lambda: sampler,
        lambda: sampler.partial_fit(X[20:]),
        lambda: sampler.refine(2),
        lambda: sampler.remove(39),
    ):
        post = change().posterior_
        assert all(post.together(i, j) == pytest.approx(1.0) for i, j in together)
        assert all(post.together(i, j) == 0.0 for i, j in apart)


@pytest.mark.parametrize("name", MODELS)
def test_all_kinds_of_models_keep_to_it(name):
    sampler = pt.SplitSMC(MODELS[name](), alpha=1.0, n_particles=10).fit(rows_of(name))
    best = sampler.labels_
    i, j = next((i, j) for i, j in itertools.combinations(range(60), 2) if best[i] == best[j])
    k = int(np.flatnonzero(best != best[i])[0])
    sampler.constrain(together=[(i, k)], apart=[(i, j)])
    assert sampler.labels_[i] == sampler.labels_[k] != sampler.labels_[j]


def test_a_black_box_keeps_to_it():
    X = rows_of("gaussian", 30)

    def score(clusters):
        return [oracle.gaussian(np.array(c), 2.0, 2.0, 0.0, 0.06) for c in clusters]

    for surrogate in (None, MODELS["gaussian"]()):
        model = pt.BlackBox(score, surrogate, n_proposals=3)
        sampler = pt.SplitSMC(model, alpha=1.0, n_particles=10).fit(X)
        best = sampler.labels_
        i, j = next((i, j) for i, j in itertools.combinations(range(30), 2) if best[i] == best[j])
        k = int(np.flatnonzero(best != best[i])[0])
        sampler.constrain(together=[(i, k)], apart=[(i, j)])
        assert sampler.labels_[i] == sampler.labels_[k] != sampler.labels_[j]


def test_a_file_keeps_it(tmp_path):
    X = rows_of("gaussian", 40)
    sampler = pt.SplitSMC(MODELS["gaussian"](), alpha=1.0, n_particles=8, random_state=1).fit(X)
    sampler.remove(3)
    sampler.constrain(together=[(0, 1), (1, 5)], apart=[(0, 8)])
    sampler.save(tmp_path / "it")
    loaded = pt.SplitSMC.load(tmp_path / "it")
    for each in (sampler, loaded):
        each.partial_fit(X[:10] + 0.1)
        each.refine(1)
        assert each.posterior_.together(0, 5) == pytest.approx(1.0)
        assert each.posterior_.together(5, 8) == 0.0
    assert (sampler.labels_ == loaded.labels_).all()
    assert sampler.posterior_.log_density() == loaded.posterior_.log_density()


def test_impossible_pairs_change_nothing():
    sampler = pt.SplitSMC(MODEL, alpha=1.0, n_particles=8).fit(rows_of("gaussian", 10))
    before = sampler.posterior_.log_density()
    with pytest.raises(ValueError, match="observations 0 and 2 must be both together and apart"):
        sampler.constrain(together=[(0, 1), (1, 2)], apart=[(0, 2)])
    for pairs in ([(0, 10)], [(-1, 2)], [(3, 3)], [(0, 1, 2)], [("a", "b")]):
        with pytest.raises(ValueError, match="apart"):
            sampler.constrain(apart=pairs)
    assert sampler.posterior_.log_density() == before
    drawn = pt.SplitSMC(MODEL, alpha=1.0, n_particles=8, resampling="optimal").fit(rows_of("gaussian", 10))
    with pytest.raises(ValueError, match="exact weights"):
        drawn.constrain(together=[(0, 1)])


# ---------------------------------------------------------------------- removal


@pytest.mark.parametrize("candidates", [None, "auto"])
@pytest.mark.parametrize("alpha", [1.0, "auto"])
def test_after_removal_all_goes_on_as_from_a_file(candidates, alpha, tmp_path):
    """A file has no gaps, so that the same results with it and without show that gaps make no difference."""
    X, rng = rows_of("gaussian", 120), np.random.default_rng(0)
    sampler = pt.SplitSMC(MODELS["gaussian"](), alpha, n_particles=10, keys=candidates, random_state=0)
    sampler.fit(X[:60])
    for n in range(60, 40, -1):
        sampler.remove(int(rng.integers(n)))
    sampler.save(tmp_path / "it")
    loaded = pt.SplitSMC.load(tmp_path / "it")
    assert len(sampler.labels_) == len(loaded.labels_) == 40
    for each in (sampler, loaded):
        each.partial_fit(X[60:])
    assert (sampler.labels_ == loaded.labels_).all()
    assert sampler.alpha_ == loaded.alpha_
    assert sampler.posterior_.log_density() == pytest.approx(loaded.posterior_.log_density(), abs=1e-9)
    assert sampler.predict_proba(X[:5]) == pytest.approx(loaded.predict_proba(X[:5]))


def test_removal_changes_one_subproblem():
    X = rows_of("gaussian", 60)
    sampler = pt.SplitSMC(MODELS["gaussian"](), alpha=1.0, n_particles=10).fit(X)
    before = oracle.factors(sampler.posterior_)
    sampler.remove(59)
    after = oracle.factors(sampler.posterior_)
    kept = {key: part for key, part in before.items() if 59 not in key}
    assert kept
    for key, part in kept.items():
        assert after[key] == pytest.approx(part)


@pytest.mark.parametrize(
    ("together", "cuts", "gone", "frees"),
    [
        ([(0, 1), (1, 2), (2, 3)], [], 1, False),  # the others are still held by one another
        ([(0, 1)], [], 1, True),
        ([(0, 1), (1, 2)], [[[1], [5]]], 1, True),  # only it kept the rest of its group apart
        ([(0, 1), (1, 2)], [[[0, 1], [5]]], 1, False),
        ([], [[[0, 1], [5, 6]]], 1, False),
        ([], [[[0], [5, 6]]], 0, True),
        ([], [[[0, 1], [5]], [[1], [6]]], 1, True),
        ([(2, 3)], [], 7, False),
    ],
)
def test_only_who_held_others_alone_has_them_looked_at_again(monkeypatch, together, cuts, gone, frees):
    """Where all that remain are held as before, to let one go must not cost a replay of its whole subproblem."""
    sampler = pt.SplitSMC(MODEL, alpha=1.0, n_particles=8).fit(rows_of("gaussian", 10))
    engine, replayed = sampler._fitted(), []

    def without(x):
        left = [[[y for y in side if y != x] for side in sides] for sides in cuts]
        group = [y for y in sorted({*itertools.chain(*together)}) if y != x]
        return constraints_from(list(itertools.pairwise(group)), left)

    with engine.changing(long=True):
        constrain(engine, without(None), [range(10)])
        engine.remove(gone)
        monkeypatch.setattr(moves, "explore", lambda *given: replayed.append(1) or explore(*given))
        constrain(engine, without(gone), [range(10)])
        assert bool(replayed) == frees


def test_removing_what_is_not_there():
    sampler = pt.SplitSMC(MODEL, alpha=1.0).fit([[0.0], [1.0]])
    for i in (2, -1):
        with pytest.raises(IndexError, match="there is no observation"):
            sampler.remove(i)
    sampler.remove(0)
    with pytest.raises(ValueError, match="last"):
        sampler.remove(0)
