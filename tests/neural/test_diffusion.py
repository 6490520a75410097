"""The set diffusion: densities against closed forms, invariances to the bit, files and training.

Densities are checked with networks whose flow has a closed form, and by the fact that whatever a network
says, the density along its flow integrates to one.
"""

from __future__ import annotations

import itertools
import math
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import partita as pt
from benchmarks.circle_density import draw, log_densities
from partita.neural import SetDiffusion, diffusion, set_training
from partita.neural.diffusion import Config, chunk_of, room_for
from partita.neural.flow import (
    Frame,
    Sets,
    denoising_loss,
    estimated_trace,
    exact_trace,
    full_trace,
    gregory,
    velocity,
)
from partita.neural.set_network import SetNetwork, Shape
from partita.neural.set_sources import Circles, Moments, Subsets, moments_of
from tests.helpers.effort import effort, examples

QUICKLY = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
SMALL = {"width": 8, "blocks": 2, "heads": 2, "shared": 3, "layers": 1}
ONE = SMALL | {"blocks": 1}
FEW = examples(8)


def config_of(dimension: int = 2, within: float = 0.2, resolution: float = 0.1, steps: int = 12) -> Config:
    shape = Shape(dimension, **SMALL)
    moments = Moments((0.5,) * dimension, (2.0,) * dimension, (within,) * dimension)
    return Config(shape, moments, resolution, steps, 0, {"source": "test"})


def random_model(dimension: int = 2, seed: int = 0, size: float = 0.3) -> SetDiffusion:
    """A model that has learnt nothing, but does not say nothing."""
    config = config_of(dimension)

    def noisy(network: SetNetwork, key: jax.Array) -> SetNetwork:
        keys = jax.random.split(key, 3)
        weights = [
            layer.weight + size * jax.random.normal(key, layer.weight.shape)
            for layer, key in zip(outer(network), keys, strict=True)
        ]
        return eqx.tree_at(lambda n: [layer.weight for layer in outer(n)], network, weights)

    return SetDiffusion(initial(config.shape, seed, noisy), config)


def initial(shape: Shape, seed: int, changed=lambda network, key: network) -> SetNetwork:
    """A network before any training, in one program: one for each layer takes three times as long."""

    def made(key: jax.Array) -> SetNetwork:
        network = changed(SetNetwork(shape, key), jax.random.fold_in(key, 1))
        return jax.tree.map(diffusion.rounded, network)

    form = eqx.filter_eval_shape(made, jax.random.key(seed))
    arrays, rest = eqx.partition(form, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    found = QUICKLY(lambda key: jax.tree.leaves(eqx.filter(made(key), eqx.is_array)))(jax.random.key(seed))
    return eqx.combine(jax.tree.unflatten(jax.tree.structure(arrays), found), rest)


def outer(network: SetNetwork) -> list[eqx.nn.Linear]:
    return [network.fine, network.coarse, network.telling]


@cache
def untrained() -> SetDiffusion:
    """One that nobody changes."""
    return random_model()


def frame() -> Frame:
    return jax.tree.map(lambda number: jnp.asarray(number, jnp.float32), untrained().frame)


points = st.lists(
    st.tuples(*[st.floats(-4.0, 4.0, allow_subnormal=False, width=32)] * 2), min_size=1, max_size=4
)


def padded(rows: np.ndarray, room: int) -> Sets:
    z = jnp.zeros((room, rows.shape[1])).at[: len(rows)].set(rows)
    return Sets(z, jnp.arange(room) < len(rows), jnp.float32(len(rows)))


# ---------------------------------------------------------------- invariances


@FEW
@given(points, st.randoms(use_true_random=False))
def test_the_order_of_points_does_not_matter_to_the_bit(cluster, random):
    shuffled = random.sample(cluster, len(cluster))
    scores = untrained()([cluster, shuffled])
    assert scores[0] == scores[1]


@FEW
@given(st.lists(points, min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_other_sets_in_the_same_call_do_not_matter_to_the_bit(clusters, random):
    order = random.sample(range(len(clusters)), len(clusters))
    scores = untrained()(clusters)
    assert np.array_equal(untrained()([clusters[k] for k in order]), scores[order])
    assert untrained()([clusters[order[0]]])[0] == scores[order[0]]


def test_the_place_in_a_chunk_does_not_matter_to_the_bit():
    rng = np.random.default_rng(0)
    for size in (1, 3, 6):
        sets = [rng.normal(size=(size, 2)) for _ in range(chunk_of(room_for(size)))]
        scores = untrained()(sets)
        assert len(set(scores.tolist())) == len(sets)
        for shift in range(1, len(sets), 3):
            assert np.array_equal(untrained()(sets[shift:] + sets[:shift]), np.roll(scores, -shift))


def test_probes_belong_to_the_set():
    rng = np.random.default_rng(1)
    sets = [rng.normal(size=(3, 2)) for _ in range(5)]
    scores = untrained().log_density(sets, probes=1)
    turned = untrained().log_density([rows[::-1] for rows in sets[::-1]], probes=1)
    assert np.array_equal(turned[::-1], scores)
    errors = scores - untrained()(sets)
    assert len(set(errors.tolist())) == 5  # not the same signs for all
    assert np.abs(errors).min() > 0.0


def test_padding_has_no_influence(monkeypatch):
    rng = np.random.default_rng(2)
    sets = [rng.normal(size=(size, 2)) for size in (1, 2, 3)]
    expected = untrained()(sets)
    monkeypatch.setattr(diffusion, "room_for", lambda size: 8)
    np.testing.assert_allclose(untrained()(sets), expected, atol=2e-5)


def test_what_stands_in_the_padding_has_no_influence():
    sets = padded(np.random.default_rng(3).normal(size=(3, 2)), 5)
    summary = eqx.filter_jit(lambda x: untrained().network.summary(x, jnp.ones(2), sets.mask, sets.size, 0.4))
    assert np.array_equal(summary(sets.points), summary(sets.points.at[3:].set(1e3)))
    assert not np.array_equal(summary(sets.points), summary(sets.points.at[2].add(0.1)))


@pytest.mark.usefixtures("unoptimised")
def test_dropout_is_for_training_only():
    sets = padded(np.random.default_rng(12).normal(size=(3, 2)), 3)
    network = initial(Shape(2, dropout=0.5, **SMALL), 0)
    model = SetDiffusion(network, config_of())

    @eqx.filter_jit
    def told(network, key):
        return network.summary(sets.points, jnp.ones(2), sets.mask, sets.size, 0.4, key)

    keys = jax.random.split(jax.random.key(1))
    assert not np.array_equal(told(network, keys[0]), told(network, keys[1]))
    assert np.array_equal(told(model.network, keys[0]), told(model.network, None))


# ---------------------------------------------------------------------- traces


@pytest.mark.parametrize(("size", "room"), [(1, 1), (3, 5)])
def test_the_exact_trace_is_the_sum_of_all_derivatives(size, room):
    sets = padded(np.random.default_rng(size).normal(size=(size, 2)), room)
    units = jnp.eye(2 * room).reshape(-1, room, 2)[: 2 * size]
    network = untrained().network  # made here, for a program may not be made within another

    @QUICKLY
    def traces(u):
        arguments = network, frame(), sets
        ends = [
            jax.vmap(lambda unit, h=h: jnp.sum(unit * velocity(*arguments, sets.points + h * unit, u)))(units)
            for h in (3e-3, -3e-3)
        ]  # no derivatives at all
        every = exact_trace(*arguments, sets.points, u), full_trace(*arguments, sets.points, u)
        return *every, jnp.sum(ends[0] - ends[1]) / 6e-3

    for u in (-3.0, -1.0, 1.5):
        exact, full, differences = traces(u)
        np.testing.assert_allclose(exact, full, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(exact, differences, rtol=5e-3, atol=2e-3)


def test_estimates_of_the_trace_have_it_as_their_mean():
    sets = padded(np.random.default_rng(5).normal(size=(3, 2)), 4)
    signs = np.zeros((64, 4, 2), np.float32)
    signs[:, :3] = np.array(list(itertools.product([-1.0, 1.0], repeat=6))).reshape(64, 3, 2)  # all there are
    network = untrained().network

    @QUICKLY
    def traces(u):
        arguments = network, frame(), sets, sets.points, u
        return jax.vmap(lambda probe: estimated_trace(*arguments, probe[None]))(signs), full_trace(*arguments)

    for u in (-3.0, 0.0):
        estimates, full = traces(u)
        assert np.std(estimates) > 1e-3
        np.testing.assert_allclose(np.mean(estimates), full, rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------- densities


def test_any_density_integrates_to_one():
    model = random_model(dimension=1, seed=3)
    grid = np.linspace(-14.0, 15.0, 1000)
    total = np.exp(model([[x] for x in grid])).sum() * (grid[1] - grid[0])
    assert total == pytest.approx(1.0, abs=2e-3)
    coarse = np.linspace(-11.0, 12.0, effort(48, 70))
    pairs = np.stack(np.meshgrid(coarse, coarse), axis=-1).reshape(-1, 2, 1)
    total = np.exp(model(list(pairs))).sum() * (coarse[1] - coarse[0]) ** 2
    assert total == pytest.approx(1.0, abs=5e-3)


class NormalSets(eqx.Module):
    """In place of the network: what there is to say of normal sets, in the frame of other normal sets."""

    within: jax.Array
    between: jax.Array
    frame: Frame

    def summary(self, within, mean, mask, size, time, key=None):
        return mean

    def noise(self, within, mean, shared, gain, size, time, key=None):
        s = jnp.exp(self.frame.first + time * (self.frame.last - self.frame.first))
        inner, outer = self.frame.spreads(size)
        true_outer = self.within + size * self.between
        slope = s * (inner**2 - self.within) / (inner * (self.within + s**2))
        mean_slope = s * (outer**2 - true_outer) / (outer * (true_outer + s**2))
        return slope * within + mean_slope * shared / jnp.sqrt(size)


def normal_model(within: float, between: float, steps: int = 12) -> SetDiffusion:
    config = config_of(2, within=0.2, resolution=0.02, steps=steps)
    frame = SetDiffusion(None, config).frame
    return SetDiffusion(NormalSets(jnp.float32(within), jnp.float32(between), frame), config)


def normal_density(model: SetDiffusion, rows: np.ndarray) -> float:
    """log p of points of scale 2 about 0.5 with the model's variances, at its resolution."""
    network, n = model.network, len(rows)
    noise = math.exp(2.0 * model.frame.first)
    covariance = (float(network.within) + noise) * np.eye(n) + float(network.between)
    return float(sum(multivariate_normal(np.zeros(n), 4.0 * covariance).logpdf(rows.T - 0.5)))


@pytest.mark.parametrize(("within", "between"), [(0.2, 0.8), (0.05, 1.5), (0.6, 0.1)])
def test_normal_sets_have_their_closed_form(within, between, monkeypatch):
    rng = np.random.default_rng(6)
    sizes = np.array([1, 3])
    sets = [0.5 + 2.0 * (rng.normal(size=2) + 0.4 * rng.normal(size=(n, 2))) for n in sizes]
    model = normal_model(within, between)
    expected = [normal_density(model, rows) for rows in sets]
    for probes in (0, 4096):
        scores = model.log_density(sets, probes=probes)
        assert np.abs((scores - expected) / sizes).max() < 0.05
    monkeypatch.setattr(diffusion, "LAST", 1000.0)  # where it is no matter that the frame is of others
    fine = normal_model(within, between).log_density(sets, steps=150)
    np.testing.assert_allclose(fine, expected, atol=1e-3)


class Mixture(eqx.Module):
    """In place of the network: single numbers from two normals about −0.9 and 0.9 with variance 0.19."""

    frame: Frame

    def summary(self, within, mean, mask, size, time, key=None):
        return mean

    def noise(self, within, mean, shared, gain, size, time, key=None):
        s = jnp.exp(self.frame.first + time * (self.frame.last - self.frame.first))
        y = shared * jnp.sqrt(1.0 + s**2)
        side = jnp.tanh(0.9 * y / (0.19 + s**2))
        x = (0.19 * y + s**2 * 0.9 * side) / (0.19 + s**2)  # E[x | y]
        return jnp.broadcast_to(((y - x) / s - s * x) / jnp.sqrt(1.0 + s**2), within.shape)


def test_two_modes_have_their_closed_form():
    config = config_of(1, within=0.2, resolution=0.02)
    frame = SetDiffusion(None, config).frame
    model = SetDiffusion(Mixture(frame), config)
    x = np.linspace(-4.0, 5.0, 41)
    spread = 2.0 * math.sqrt(0.19 + math.exp(2.0 * frame.first))
    sides = [norm(0.5 + side * 1.8, spread).logpdf(x) for side in (-1.0, 1.0)]
    expected = logsumexp(sides, axis=0) - math.log(2.0)
    np.testing.assert_allclose(model([[value] for value in x]), expected, atol=0.02)
    np.testing.assert_allclose(model.log_density([[value] for value in x], steps=100), expected, atol=5e-4)


def test_few_steps_agree_with_a_fine_integration():
    rng = np.random.default_rng(7)
    sets = [2.0 * rng.normal(size=(n, 2)) for n in (1, 2, 4) for _ in range(6)]
    fine = untrained().log_density(sets, steps=200)
    assert np.abs(untrained().log_density(sets, steps=24) - fine).max() < 2e-3
    assert np.abs(untrained()(sets) - fine).max() < 0.05


@pytest.mark.parametrize("steps", [2, 3, 4, 7, 20])
def test_the_quadrature_is_exact_for_cubics(steps):
    grid = gregory(-5.0, 2.0, steps)
    nodes, weights = (np.asarray(row, np.float64)[: grid.number] for row in grid[:2])
    np.testing.assert_allclose(nodes, np.linspace(-5.0, 2.0, steps + 1), atol=1e-6)
    for degree in range(4):
        expected = (2.0 ** (degree + 1) - (-5.0) ** (degree + 1)) / (degree + 1)
        assert np.dot(weights, nodes**degree) == pytest.approx(expected, rel=1e-5)


def test_samples_have_the_moments_of_their_model():
    drawn = (normal_model(0.05, 1.5).sample(3, 4000, random_state=0) - 0.5) / 2.0
    assert drawn.shape == (4000, 3, 2)
    assert drawn.mean() == pytest.approx(0.0, abs=0.06)
    assert drawn.var(axis=1, ddof=1).mean() == pytest.approx(0.05, rel=0.05)
    assert drawn.mean(axis=1).var() == pytest.approx(1.5 + 0.05 / 3, rel=0.05)


# ------------------------------------------------------------------------ files


def test_files_hold_all_there_is(tmp_path):
    untrained().save(tmp_path / "model.safetensors")
    found = SetDiffusion.load(tmp_path / "model.safetensors")
    sets = [np.random.default_rng(8).normal(size=(3, 2))]
    assert found.config == untrained().config
    assert repr(found) == repr(untrained())
    assert np.array_equal(found(sets), untrained()(sets))
    assert repr(random_model(seed=5)) != repr(untrained())
    arrays = sum(array.size for array in jax.tree.leaves(eqx.filter(untrained().network, eqx.is_array)))
    assert (tmp_path / "model.safetensors").stat().st_size < 2 * arrays + 6000


def test_a_file_of_something_else_is_refused(tmp_path):
    from safetensors.numpy import save_file

    save_file({"x": np.zeros(3)}, tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="holds no weights"):
        SetDiffusion.load(tmp_path / "other.safetensors")
    save_file({"x": np.zeros(3)}, tmp_path / "other.safetensors", metadata={"about": '{"kind": "else"}'})
    with pytest.raises(ValueError, match="holds no 'partita SetDiffusion 1', but 'else'"):
        SetDiffusion.load(tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="no pretrained model 'squares'; there is circles"):
        SetDiffusion.pretrained("squares")


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ([], "set 1 is empty"),
        ([[]], "set 1 is empty"),
        ([[0.0, 1.0, 2.0]], "set 1 has points of 3 coordinates, the model is of 2"),
        ([0.0, 1.0], r"set 1 has shape \(2,\); it must have a row for each point"),
        ([[0.0, 1.0], [math.nan, 0.0]], r"set 1, point 1: \[nan, 0.0\] is not finite"),
        ([[0.0, math.inf]], "set 1, point 0"),
        ([[0.0, 1.0], [2.0]], "set 1 holds no points of numbers"),
        ([["a", "b"]], "set 1 holds no points of numbers"),
    ],
)
def test_bad_sets_are_named(cluster, message):
    with pytest.raises(ValueError, match=message):
        untrained()([[[0.0, 0.0]], cluster])


def test_odd_calls_have_answers():
    assert untrained()([]).shape == (0,)
    assert untrained()([[[1e30, 0.0], [0.0, 0.0]]])[0] == -np.inf
    with pytest.raises(ValueError, match="steps must be a whole number"):
        untrained().log_density([[[0.0, 0.0]]], steps=0)
    with pytest.raises(ValueError, match="n_points must be"):
        untrained().sample(0)


# --------------------------------------------------------------------- training


def test_circles_are_drawn_as_in_the_datasets():
    source = Circles()
    drawn = np.asarray(
        jax.vmap(lambda key: source.draw(key, 5, 8))(jax.random.split(jax.random.key(0), 4000))
    )
    assert drawn.shape == (4000, 8, 2)
    for rows in drawn[:20]:  # all at distance 0.6 from a centre that three of them determine
        sides = 2.0 * (rows[1:3] - rows[0]), (rows[1:3] ** 2).sum(axis=1) - (rows[0] ** 2).sum()
        centre = np.linalg.lstsq(sides[0].astype(np.float64), sides[1], rcond=None)[0]
        assert np.linalg.norm(rows - centre, axis=1) == pytest.approx(np.full(8, 0.6), abs=0.05)
        assert np.abs(centre).max() < 5.05
    standard = drawn / source.moments.scale
    assert standard.var() == pytest.approx(1.0, rel=0.05)
    assert standard.var(axis=1, ddof=1).mean() == pytest.approx(source.moments.within[0], rel=0.05)


def test_subsets_are_subsets_of_one_set_that_is_large_enough():
    sets = [100.0 * k + np.arange(float(n))[:, None] for k, n in enumerate((3, 7, 1, 5))]
    source = Subsets(sets, largest=6)
    assert source.largest == 6
    draw_one = jax.jit(lambda key, size: source.draw(key, size, 6))
    for size in range(1, 7):
        seen = set()
        for key in jax.random.split(jax.random.key(size), 60):
            rows = np.asarray(draw_one(key, size))[:size, 0]
            assert len(set(rows.tolist())) == size
            chosen = set((rows // 100).tolist())
            assert len(chosen) == 1
            seen |= chosen
        assert seen == {float(k) for k, rows in enumerate(sets) if len(rows) >= size}


def test_moments_are_found():
    rng = np.random.default_rng(9)
    sets = [
        [3.0, -1.0] + rng.normal(size=2) * [2.0, 1.0] + 0.5 * rng.normal(size=(8, 2)) for _ in range(2000)
    ]
    moments = moments_of(sets)
    assert moments.location == pytest.approx((3.0, -1.0), abs=0.2)
    assert moments.scale == pytest.approx((math.sqrt(4.25), math.sqrt(1.25)), rel=0.05)
    assert moments.within == pytest.approx((0.25 / 4.25, 0.25 / 1.25), rel=0.1)


class Interrupted(Exception):
    pass


@pytest.mark.usefixtures("unoptimised")
def test_a_training_that_was_interrupted_goes_on_exactly(tmp_path):
    seen = []

    def stop(step, figures):
        seen.append(step)
        if step == 4:
            raise Interrupted

    learn = partial(SetDiffusion.train, "circles", steps=6, batch=8, largest=4, every=2, dropout=0.1, **ONE)
    with pytest.raises(Interrupted):
        learn(folder=tmp_path, progress=stop)
    model = learn(folder=tmp_path, progress=lambda step, figures: seen.append(step))
    assert seen == [2, 4, 6]
    assert repr(model) == repr(learn())
    with pytest.raises(ValueError, match="training with another"):
        learn(folder=tmp_path, resolution=0.05)


@pytest.mark.usefixtures("unoptimised")
def test_learning_lowers_the_distance_to_the_truth():
    rng = np.random.default_rng(10)
    centres = rng.choice([-1.0, 1.0], size=3000)
    sets = [centre + 0.2 * rng.normal(size=(3, 1)) for centre in centres]
    steps = effort(200, 400)
    model = SetDiffusion.train(sets, steps=steps, batch=256, rate=1e-2, dropout=0.0, every=steps, **SMALL)
    for size in (1, 2):
        held = [rng.choice([-1.0, 1.0]) + 0.2 * rng.normal(size=(size, 1)) for _ in range(300)]
        true = [
            logsumexp([norm(side, 0.2).logpdf(x).sum() for side in (-1.0, 1.0)]) - math.log(2) for x in held
        ]
        assert np.mean(true - model(held)) / size < 0.15


def test_training_data_are_checked():
    for sets, labels, message in [
        ("squares", None, "no simulator 'squares'; there is circles"),
        ([], None, "no sets"),
        ([np.zeros((2, 2)), np.zeros((2, 3))], None, "set 1 has points of 3 coordinates, set 0 of 2"),
        ([np.zeros((2, 2)), np.zeros((0, 2))], None, "set 1 has shape"),
        ([np.full((2, 2), np.nan)], None, "set 0 has coordinates that are not finite"),
        (np.zeros((3, 2)), [0, 1], "a label for each row"),
    ]:
        with pytest.raises(ValueError, match=message):
            SetDiffusion.train(sets, labels, steps=1)
    source = set_training.source_of(np.arange(8.0).reshape(4, 2), ["a", "b", "a", "a"], 10)
    assert source.largest == 3


def test_the_loss_of_a_perfect_network_is_the_conditional_variance():
    model = normal_model(0.2, 0.8)  # the frame's own: nothing to say, and v has variance one
    keys = jax.random.split(jax.random.key(0), 4000)
    u = -1.0

    def one(key):
        x_key, mean_key, key = jax.random.split(key, 3)
        x = math.sqrt(0.2) * jax.random.normal(x_key, (4, 2)) + math.sqrt(0.8) * jax.random.normal(
            mean_key, (2,)
        )
        return denoising_loss(model.network, model.frame, x, jnp.ones(4, bool), u, key)

    noise = math.exp(2.0 * u)
    expected = 0.75 * 0.2 / (0.2 + noise) + 0.25 * 3.4 / (3.4 + noise)
    assert np.mean(QUICKLY(jax.vmap(one))(keys)) == pytest.approx(expected, rel=0.02)


# ------------------------------------------------------------------- clustering


def test_a_black_box_takes_it():
    X = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0], [0.0, 0.1]])
    sampler = pt.SplitSMC(pt.BlackBox(untrained()), alpha=1.0, n_particles=5)
    labels = sampler.fit_predict(X)
    assert labels.shape == (4,)
    assert repr(untrained()) in repr(sampler.get_params()["model"].get_params())


def test_the_model_of_circles_is_near_the_true_density():
    model = SetDiffusion.pretrained("circles")
    rng = np.random.default_rng(11)
    sets = [draw(rng, size, model.resolution) for size in (9, 12, 16) for _ in range(8)]
    gap = (log_densities(sets, model.resolution) - model(sets)) / [len(rows) for rows in sets]
    assert abs(gap.mean()) < 0.1
    assert gap.std() < 0.2


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
        ({"largest": 0}, "largest must be a whole number of at least 1"),
        ({"width": 9, "heads": 2}, "width must be a multiple of heads, 2, got 9"),
        ({"resolution": 0.0}, "resolution must be"),
        ({"rate": -1.0}, "rate must be"),
    ],
)
def test_training_says_what_is_wrong_with_its_parameters(options, why):
    with pytest.raises(ValueError, match=why):
        SetDiffusion.train("circles", **options)


def test_one_point_a_set_is_nothing_to_learn_from():
    with pytest.raises(ValueError, match="no set has two points"):
        SetDiffusion.train([[[0.0, 1.0]], [[2.0, 3.0]]])


def test_numbers_of_probes_points_and_sets_are_whole():
    model = SetDiffusion.pretrained("circles")
    with pytest.raises(ValueError, match="probes must be a whole number of at least 0"):
        model.log_density([[[0.0, 0.0]]], probes=-1)
    with pytest.raises(ValueError, match=r"n_points must be a whole number of at least 1, got 1\.5"):
        model.sample(1.5)


@pytest.mark.filterwarnings("error")
def test_points_far_away_have_no_probability():
    assert SetDiffusion.pretrained("circles")([[[1e300, 0.0]]])[0] == -math.inf
