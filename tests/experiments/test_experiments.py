"""The experiments: what is read, that they go on where they stopped, and what the report says."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from typer.testing import CliRunner

import partita as pt
from partita.cli import app
from partita.experiments import plan, report, runner
from partita.experiments.experiment import Experiment, Setting

X, TRUTH = pt.datasets.gaussian_mixture(n_points=40, n_clusters=6, random_state=0)
MODEL = pt.Gaussian(shape=2.0, rate=0.5, precision=2e-4)
SETTINGS = (
    Setting("greedy"),
    Setting("SMC", 5),
    Setting("SMC", 100),
    Setting("split SMC", 5),
    Setting("split SMC", 100),
    Setting("split SMC, refined", 5, sweeps=1),
    Setting("Gibbs", sweeps=3),
    Setting("agglomerative"),
    Setting("agglomerative", 10),
)


def experiment(n_orders=2, settings=SETTINGS, truth=TRUTH, data=X):
    return Experiment("points", data, truth, plan.random_orders(n_orders, len(data)), MODEL, 2.0, settings)


def finished(folder, **parameters):
    results = runner.Results(folder, experiment(**parameters))
    for _ in results.complete():
        pass
    return results


def without_times(runs):
    return [{key: run[key] for key in run if key not in ("seconds", "history")} for run in runs]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("done"))


def test_every_setting_is_run_on_every_order(done):
    assert len(done.runs) == len(SETTINGS) * 2
    assert not done.missing()
    for setting in SETTINGS:
        assert [run["replication"] for run in done.of(setting)] == [0, 1]


def test_a_run_is_what_the_estimator_says(done):
    order = done.experiment.orders[1]
    sampler = pt.SplitSMC(MODEL, 2.0, 5).fit(X[order])
    run = done.of(Setting("split SMC", 5))[1]
    assert run["log_density"] == sampler.posterior_.log_density()
    assert run["f1"] == pt.bcubed(TRUTH[order], sampler.labels_).f1 == run["online_f1"][-1]
    assert run["clusters"] == sampler.labels_.max() + 1
    assert run["subproblems"] == sampler.posterior_.n_subproblems
    refined = done.of(Setting("split SMC, refined", 5, sweeps=1))[1]
    assert refined["log_density"] >= run["log_density"]
    assert all(run["seconds"] > 0.0 for run in done.runs)


def test_it_goes_on_where_it_stopped(done, tmp_path):
    first = runner.Results(tmp_path, experiment())
    for k, _ in enumerate(first.complete()):
        if k == 7:
            break  # between two runs, as an interruption would
    assert len(first.runs) == 7
    second = finished(tmp_path)
    assert without_times(second.runs) == without_times(done.runs)
    assert second.runs[:7] == first.runs
    assert json.loads(second.path.read_text())["runs"] == second.runs


def test_more_orders_and_settings_keep_what_is_there(tmp_path):
    few = finished(tmp_path, n_orders=1, settings=SETTINGS[:2])
    more = runner.Results(tmp_path, experiment(n_orders=2, settings=SETTINGS[:3]))
    assert more.runs == few.runs
    assert more.missing() == [(SETTINGS[2], 0), *((setting, 1) for setting in SETTINGS[:3])]
    other = experiment(n_orders=1, settings=SETTINGS[:2])
    other = other._replace(orders=other.orders[:, ::-1])
    assert len(runner.Results(tmp_path, other).missing()) == 2


def test_fewer_observations_than_checks(tmp_path):
    results = finished(tmp_path, n_orders=1, data=X[:3], truth=TRUTH[:3])
    assert results.of(SETTINGS[0])[0]["seen"] == [1, 2, 3]
    report.write_report(results)


def test_results_of_other_data_are_not_mixed(done, tmp_path):
    finished(tmp_path, settings=SETTINGS[:1])
    for other in (experiment(data=X + 1.0), experiment(truth=None)):
        with pytest.raises(ValueError, match=r"results\.json holds results for other data.*delete"):
            runner.Results(tmp_path, other)
    for broken in ("[]", "{", '{"runs": []}'):
        (tmp_path / "results.json").write_text(broken)
        with pytest.raises(ValueError, match=r"results\.json holds no results: delete it"):
            runner.Results(tmp_path, experiment())


# ---------------------------------------------------------------------- the report


def test_the_table_has_means_and_deviations(done):
    header, rows = report.table(done)
    table = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert list(table) == [
        "greedy",
        "SMC, m=100",
        "split SMC, m=100",
        "split SMC, refined, m=5",
        "Gibbs",
        "agglomerative",
    ]
    f1 = np.array([run["f1"] for run in done.of(Setting("SMC", 100))])
    assert table["SMC, m=100"]["F1"] == f"{f1.mean():.3f} ({f1.std():.3f})"
    assert table["split SMC, m=100"]["time / split SMC"] == "1"


class Links(HTMLParser):
    """Collects what a page refers to, and the text of its cells."""

    def __init__(self):
        super().__init__()
        self.links, self.pictures = [], 0

    def handle_starttag(self, tag, attributes):
        self.pictures += tag == "img"
        self.links += [value for name, value in attributes if name in ("src", "href")]


def test_the_report_needs_nothing_beside_it(done):
    path = report.write_report(done)
    page = Links()
    page.feed(path.read_text(encoding="utf-8"))
    assert page.pictures == 5
    assert all(link.startswith("data:image/png;base64,") for link in page.links)
    names = {"table.md", "results.json", "report.html", "runtime.png", "particles.png", "splitting.png"}
    assert {file.name for file in path.parent.iterdir()} == names | {"online.png", "clustering.png"}
    lines = (path.parent / "table.md").read_text(encoding="utf-8").splitlines()
    assert {line.count("|") for line in lines} == {lines[0].count("|")}


def test_without_the_truth_there_is_no_f1(tmp_path):
    results = finished(tmp_path, n_orders=1, truth=None, data=np.column_stack([X, X[:, :1]]))
    report.write_report(results)
    assert "F1" not in report.table(results)[0]
    assert not (tmp_path / "online.png").exists()
    assert not (tmp_path / "clustering.png").exists()


def test_names_are_escaped(tmp_path):
    results = finished(tmp_path, n_orders=1, settings=SETTINGS[:5])
    results.experiment = results.experiment._replace(name="<script>alert(1)</script>")
    assert "<script" not in report.page(results, [report.table(results)], {})


# ---------------------------------------------------------------------- what is read


def test_a_file_of_points(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("x, Label ,y\n1,b,2\n-3,a,4e0\n5,b,6\n")
    points, truth = plan.read_points(path)
    np.testing.assert_array_equal(points, [[1, 2], [-3, 4], [5, 6]])
    np.testing.assert_array_equal(truth, [1, 0, 1])
    path.write_text("x,y\n\n1,2\n\n")
    assert plan.read_points(path)[1] is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no observations"),
        ("x,y\n", "no observations"),
        ("label\na\n", "no observations"),
        ("x,y\n1,2\n3\n", "line 3: 1 fields, but the header has 2"),
        ("x,y\n1,2\n3,red\n", "line 3, column y: 'red' is not a number"),
        ("x,y\n1,\n", "line 2, column y: '' is not a number"),
        ("x,y\n1,nan\n", "line 2, column y: 'nan' is not finite"),
        ("1,2\n3,4\n", "line 1: a header is missing"),
        ("x,label,Label\n1,a,b\n", "more than one column label"),
    ],
)
def test_a_file_that_is_none(tmp_path, text, words):
    path = tmp_path / "points.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(words)):
        plan.read_points(path)
    result = CliRunner().invoke(app, ["reproduce", "points", "--data", str(path), "-o", str(tmp_path / "r")])
    assert result.exit_code == 1
    assert words in result.output.replace("\n", "")
    assert not (tmp_path / "r").exists()


def test_orders_must_be_permutations(tmp_path):
    np.save(tmp_path / "orders.npy", np.array([[0, 1, 2], [0, 0, 2]]))
    with pytest.raises(ValueError, match="permutation of the 3"):
        plan.read_orders(tmp_path / "orders.npy", 2, 3)
    for wrong, words in (
        (np.array([[0, 1]]), "2 or more permutations of the 3"),
        (np.zeros((1, 3)), "2 or more"),
    ):
        np.save(tmp_path / "orders.npy", wrong)
        with pytest.raises(ValueError, match=words):
            plan.read_orders(tmp_path / "orders.npy", 2, 3)
    (tmp_path / "orders.npy").write_text("0,1,2\n")
    with pytest.raises(ValueError, match="not a NumPy file"):
        plan.read_orders(tmp_path / "orders.npy", 2, 3)
    np.save(tmp_path / "orders.npy", np.array([[0, 1, 2], [2, 0, 1]]))
    np.testing.assert_array_equal(plan.read_orders(tmp_path / "orders.npy", 1, 3), [[0, 1, 2]])


@pytest.mark.parametrize("name", ["gaussian", "circles", "points"])
def test_a_plan(name, tmp_path):
    path = tmp_path / "points.csv"
    np.savetxt(path, np.column_stack([X, TRUTH]), delimiter=",", header="x,y,label", comments="")
    model = "gaussian" if name == "circles" else None
    made = plan.plan(name, path, quick=True, model=model)
    np.testing.assert_allclose(made.X, X)
    assert made.orders.shape == (3, len(X))
    assert made.fingerprint() == plan.plan(name, path, quick=True, model=model).fingerprint()
    assert made.alpha > 0.0


def test_an_unknown_experiment():
    result = CliRunner().invoke(app, ["reproduce", "squares"])
    assert result.exit_code != 0
    assert "squares" in result.output
