"""Pictures are rendered in memory and asked what they show."""

import io
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.image import imread

from partita import plots
from partita.datasets import circles, gaussian_mixture
from partita.metrics import calibration
from tests.helpers.effort import examples


class FakePosterior:
    """Given labels and entropies, and subproblems of whole clusters."""

    def __init__(self, labels, entropy=None, subproblem_of=None):
        self._labels = np.asarray(labels)
        self._entropy = np.zeros(self._labels.size) if entropy is None else np.asarray(entropy)
        groups = self._labels if subproblem_of is None else np.asarray(subproblem_of)
        rows = (np.flatnonzero(groups == group) for group in np.unique(groups))
        self.subproblems = [SimpleNamespace(observations=observations) for observations in rows]

    def labels(self):
        return self._labels

    def entropy(self):
        return self._entropy


def render(ax):
    """Draw the picture; return its pixels, brightness 0 to 1."""
    picture = io.BytesIO()
    ax.figure.savefig(picture, format="png", dpi=60)
    assert picture.getvalue().startswith(b"\x89PNG")
    picture.seek(0)
    return imread(picture, format="png")[..., :3].mean(axis=-1)


def outlines(ax):
    return [
        path for shape in ax.collections if isinstance(shape, PolyCollection) for path in shape.get_paths()
    ]


def scatters(ax):
    return [shape for shape in ax.collections if not isinstance(shape, PolyCollection)]


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()] if ax.get_legend() else []


@pytest.fixture
def mixture():
    return gaussian_mixture(random_state=0)


def test_every_subproblem_of_several_observations_is_outlined(mixture):
    X, labels = mixture
    posterior = FakePosterior(labels)
    ax = plots.clustering(X, posterior, title="Gaussian mixture")
    several = [s.observations for s in posterior.subproblems if s.observations.size > 1]
    assert 0 < len(several) < len(posterior.subproblems)
    assert len(outlines(ax)) == len(several)
    for path, observations in zip(outlines(ax), several, strict=True):
        assert path.contains_points(X[observations]).all()
    assert sum(len(scatter.get_offsets()) for scatter in scatters(ax)) == len(X)
    assert ax.get_title(loc="left") == "Gaussian mixture"
    assert ax.get_aspect() == 1.0
    assert render(ax).std() > 0.02  # not an empty page


def test_the_whole_picture_is_in_view():
    X, labels = circles(random_state=0)
    ax = plots.clustering(X, FakePosterior(labels))
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    drawn = np.concatenate([X, *(path.vertices for path in outlines(ax))])
    assert left < drawn[:, 0].min() < drawn[:, 0].max() < right
    assert bottom < drawn[:, 1].min() < drawn[:, 1].max() < top


def test_unsure_observations_are_larger_and_hollow():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    (scatter,) = scatters(
        plots.clustering(X, FakePosterior([0, 0, 0, 0], entropy=[1.5, 0.0, 0.35, np.log(2)]))
    )
    row = np.argsort(scatter.get_offsets()[:, 0])
    sizes, fills = scatter.get_sizes()[row], scatter.get_facecolors()[row, :3]
    assert sizes[1] < sizes[2] < sizes[3] == sizes[0]
    np.testing.assert_allclose(fills[[0, 3]], 1.0)
    np.testing.assert_allclose(fills[1], scatter.get_edgecolors()[row][1, :3])
    assert np.all(fills[1] <= fills[2])
    # The unsure are drawn last, hence on top.
    assert np.all(np.diff(scatter.get_sizes()) >= 0)


@pytest.mark.parametrize("outline", [True, False])
@pytest.mark.parametrize("uncertainty", [True, False])
def test_the_legend_explains_what_is_drawn(mixture, outline, uncertainty):
    X, labels = mixture
    posterior = FakePosterior(labels, entropy=np.linspace(0, 1, labels.size))
    ax = plots.clustering(X, posterior, outline=outline, uncertainty=uncertainty)
    expected = ["certain", "0.35 nats", "0.69, a coin toss"] * uncertainty + ["subproblem"] * outline
    assert legend_texts(ax) == expected
    assert bool(outlines(ax)) == outline
    sizes = np.concatenate([scatter.get_sizes() for scatter in scatters(ax)])
    assert (np.unique(sizes).size > len(plots.MARKERS)) == uncertainty


def test_clusters_close_to_each_other_look_different(mixture):
    X, labels = mixture
    colour, marker = plots._styles(X, labels)
    centres = np.array([X[labels == cluster].mean(axis=0) for cluster in range(labels.max() + 1)])
    distance = np.linalg.norm(centres[:, None] - centres, axis=-1)
    for cluster, nearest in enumerate(np.argsort(distance, axis=1)[:, 1:4]):
        assert all((colour[cluster], marker[cluster]) != (colour[other], marker[other]) for other in nearest)
    # Every colour is of use, and no two clusters look alike until all colours are taken.
    np.testing.assert_array_equal(np.unique(colour), np.arange(len(plots.PALETTE)))
    np.testing.assert_array_equal(colour[: len(plots.PALETTE)], np.arange(len(plots.PALETTE)))


def test_other_labels_can_be_shown():
    X = np.arange(8.0).reshape(4, 2)
    ax = plots.clustering(X, FakePosterior([0, 0, 0, 0]), labels=["a", "b", "c", "d"])
    assert len(scatters(ax)) == 4  # four clusters, each with a marker of its own
    assert len(outlines(ax)) == 1


def test_it_draws_on_the_axes_given():
    X, labels = circles(random_state=0)
    ax = Figure().subplots(1, 2)[1]
    assert plots.clustering(X, FakePosterior(labels), ax=ax) is ax


@pytest.mark.parametrize(
    "X",
    [
        [[0.0, 0.0]],
        [[1e6, 1e6]] * 3,
        [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]],
        [[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]],
        [[1e9, 1e9], [1e9 + 1, 1e9 + 1], [1e9 + 2, 1e9 + 2]],
    ],
)
def test_degenerate_data_can_be_drawn(X):
    ax = plots.clustering(X, FakePosterior(np.zeros(len(X))))
    assert len(outlines(ax)) == (len(X) > 1)
    render(ax)


finite = st.floats(-1e3, 1e3, width=32)


@examples(50)
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 12), st.just(2)), elements=finite), st.floats(0.01, 10.0)
)
def test_hulls_keep_their_distance(points, padding):
    hull = plots._rounded_hull(points, padding)
    tolerance = 1e-6 * (padding + np.abs(points).max())
    # In every direction the hull reaches as far as the points and the padding further.
    for angle in np.linspace(0, 2 * np.pi, 17):
        direction = np.array([np.cos(angle), np.sin(angle)])
        reach = (hull @ direction).max() - (points @ direction).max()
        assert 0.99 * padding - tolerance <= reach <= padding + tolerance


@pytest.mark.parametrize(
    ("X", "labels", "message"),
    [
        (np.zeros((3, 3)), [0, 0, 0], "two columns"),
        (np.zeros(3), [0, 0, 0], "two columns"),
        (np.zeros((0, 2)), [], "shape"),
        ([[0, 0], [np.nan, 0]], [0, 0], "row 1 of X"),
        (np.zeros((3, 2)), [0, 0], "X has 3 rows, the labels have shape"),
    ],
)
def test_bad_data_are_refused_with_a_reason(X, labels, message):
    with pytest.raises(ValueError, match=message):
        plots.clustering(X, FakePosterior(labels))


def test_entropies_must_fit_the_data():
    with pytest.raises(ValueError, match="X has 2 rows, the posterior 3 observations"):
        plots.clustering(np.zeros((2, 2)), FakePosterior([0, 0, 0]), labels=[0, 0])


def test_a_curve_of_several_runs_has_a_confidence_band():
    runs = np.array([[0.5, 0.6], [0.7, 0.6], [0.6, 0.9]])
    ax = plots.online_curve([10, 20], runs, label="split SMC")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.6, 0.7])
    (band,) = ax.collections
    # 95 % of Student's t with two degrees of freedom lies within 4.303.
    half = 4.303 * runs.std(axis=0, ddof=1) / np.sqrt(3)
    vertices = band.get_paths()[0].vertices
    assert vertices[:, 1].min() == pytest.approx((runs.mean(axis=0) - half).min(), rel=1e-3)
    assert vertices[:, 1].max() == pytest.approx((runs.mean(axis=0) + half).max(), rel=1e-3)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("observations seen", "F1")
    render(ax)


def test_curves_share_one_picture():
    ax = plots.online_curve([1, 2, 3], [0.1, 0.2, 0.3], label="greedy")
    ax.set_ylabel("precision")
    assert plots.online_curve([1, 2, 3], [0.4, 0.5, 0.6], label="split SMC", ax=ax) is ax
    assert legend_texts(ax) == ["greedy", "split SMC"]
    assert ax.get_ylabel() == "precision"
    assert len({line.get_color() for line in ax.lines}) == 2
    assert not ax.collections  # one run has no band
    render(ax)


def test_a_band_can_be_given():
    ax = plots.online_curve([1, 2], [0.5, 0.5], band=([0.4, 0.3], [0.6, 0.9]))
    vertices = ax.collections[0].get_paths()[0].vertices
    assert (vertices[:, 1].min(), vertices[:, 1].max()) == (0.3, 0.9)
    assert ax.get_legend() is None
    with pytest.raises(ValueError, match="one column for each place"):
        plots.online_curve([1, 2], [0.5, 0.5, 0.5])
    with pytest.raises(ValueError, match="band"):
        plots.online_curve([1, 2], [0.5, 0.5], band=[0.4, 0.6])


def test_reliability_shows_curve_diagonal_and_counts():
    rng = np.random.default_rng(0)
    together = 0.35 * rng.random(20_000)
    report = calibration(together, rng.random(together.size) < together)
    ax = plots.reliability(report)
    diagonal, curve = ax.lines
    np.testing.assert_array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])
    np.testing.assert_allclose(curve.get_xdata(), report.bin_probability[:4])
    np.testing.assert_allclose(curve.get_ydata(), report.bin_frequency[:4])
    heights = np.array([bar.get_height() for bar in ax.patches])
    np.testing.assert_allclose(heights / heights.max(), report.bin_count / report.bin_count.max())
    texts = [text.get_text() for text in ax.texts]
    assert any(f"calibration error {report.expected_calibration_error:.3f}" in text for text in texts)
    assert f"{report.bin_count[3]:,}" in texts
    assert "0" not in texts  # empty bins carry no number
    render(ax)


def test_reliability_takes_many_bins_and_given_axes():
    ax = Figure().add_subplot()
    assert plots.reliability(calibration([0.2, 0.8], [False, True], n_bins=50), ax) is ax
    assert len(ax.texts) == 1  # fifty numbers would not fit
    render(ax)


def test_pyplot_is_never_imported_nor_matplotlib_before_it_is_needed():
    script = """
import sys, io
from types import SimpleNamespace
import numpy as np
from partita import metrics, plots
assert "matplotlib" not in sys.modules
posterior = SimpleNamespace(
    labels=lambda: np.array([0, 0, 1]),
    entropy=lambda: np.array([0.0, 0.3, 0.6]),
    subproblems=[SimpleNamespace(observations=np.arange(3))],
)
pictures = (
    plots.clustering(np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]]), posterior),
    plots.online_curve([1, 2], [[0.5, 0.6], [0.7, 0.8]], label="x"),
    plots.reliability(metrics.calibration([0.1, 0.9], [False, True])),
)
for ax in pictures:
    ax.figure.savefig(io.BytesIO(), format="png")
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True, timeout=60)


def test_a_waterfall_ends_at_its_sum():
    ax = plots.waterfall(["prior", "name", "born"], [-2.0, 5.0, 1.5], title="why")
    bars = [(bar.get_x(), bar.get_width()) for bar in ax.patches]
    assert bars == [(0.0, -2.0), (-2.0, 5.0), (3.0, 1.5), (0.0, 4.5)]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["prior", "name", "born", "log-odds"]
    with pytest.raises(ValueError, match="shape"):
        plots.waterfall(["prior"], [1.0, 2.0])


def test_a_map_outlines_clusters():
    probability = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.0], [0.1, 0.0, 1.0]])
    ax = plots.together_map(probability, [4, 4, 2], names=["a", "b"])
    boxes = [(patch.get_x(), patch.get_width()) for patch in ax.patches]
    assert boxes == [(-0.5, 2), (1.5, 1)]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    with pytest.raises(ValueError, match="shape"):
        plots.together_map(probability, [1, 2])
