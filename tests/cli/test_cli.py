"""The command line, and the examples on the README and the pages of docs/."""

import doctest
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import partita
from partita.cli import app
from partita.demo import points as demo
from tests.helpers.files import ROOT

PNG = b"\x89PNG\r\n\x1a\n"


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "100"})


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory):
    picture = tmp_path_factory.mktemp("demo") / "picture.png"
    return invoke("demo", "points", "--output", picture, "--seed", 1), picture


def test_demo_prints_a_row_for_each_data_set(demonstration):
    result, _ = demonstration
    assert result.exit_code == 0, result.output
    rows = re.findall(
        r"^(circles|Gaussians) +(\d+) +(\d+) +(\d+) +([01]\.\d+) +(\d+) +10\^(\d+) +", result.output, re.M
    )
    assert [row[0] for row in rows] == ["circles", "Gaussians"]
    for _, points, clusters, true, f1, subproblems, exponent in rows:
        assert int(points) >= 150
        assert 0.5 * int(true) <= int(clusters) <= 1.5 * int(true)
        assert 0.6 <= float(f1) <= 1.0
        assert 1 < int(subproblems) <= int(clusters)
        assert int(exponent) > 2  # more than one set of a hundred particles


def test_demo_asks_two_uncertain_questions(demonstration):
    result, _ = demonstration
    pattern = r"are points (\d+) and (\d+) from the same cluster\? (\d+) % \(truth: (?:yes|no)\)"
    questions = re.findall(pattern, result.output)
    assert len(questions) == 2
    for first, second, percent in questions:
        assert first != second
        assert 10 <= int(percent) <= 90


def test_demo_writes_a_picture_and_says_where(demonstration):
    result, picture = demonstration
    assert f"Picture written to {picture}\n" in result.output
    assert picture.read_bytes().startswith(PNG)


def test_seed_determines_the_demo(demonstration, tmp_path):
    def untimed(output):
        return re.sub(r"\d+\.\d+ s\b|Picture.*", "", output)

    again = invoke("demo", "points", "-o", tmp_path / "again.png", "--seed", 1)
    assert untimed(again.output) == untimed(demonstration[0].output)
    assert (tmp_path / "again.png").read_bytes() == demonstration[1].read_bytes()


def test_demo_scores_as_many_points_as_seen():
    stream = demo.streams(seed=0)[0]
    run = demo.observe(stream)
    assert run.seen[-1] == len(stream.X)
    assert len(run.seen) == len(run.f1) == demo.N_CHECKS
    assert run.f1[-1] == partita.bcubed(stream.truth, stream.sampler.labels_).f1
    np.testing.assert_array_equal(stream.sampler.labels_, stream.sampler.fit(stream.X).labels_)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing/picture.png", "there is no directory"),
        ("", "it is a directory"),
        ("picture.xyz", "its suffix must be one of"),
        ("picture", "its suffix must be one of"),
    ],
)
def test_bad_output_is_refused_before_the_work(tmp_path, monkeypatch, name, reason):
    monkeypatch.setattr(demo, "run", lambda *_: pytest.fail("the work has begun"))
    result = invoke("demo", "points", "--output", tmp_path / name)
    assert result.exit_code == 1
    assert result.output.startswith("Cannot write")
    assert reason in result.output


def test_failure_while_writing_is_reported(tmp_path, monkeypatch):
    class FullDisk:
        def savefig(self, *_, **__):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(demo, "run", lambda *_: FullDisk())
    result = invoke("demo", "points", "--output", tmp_path / "picture.png")
    assert result.exit_code == 1
    assert "No space left on device" in result.output


def test_version():
    result = invoke("--version")
    assert result.exit_code == 0
    assert result.output == f"partita {partita.__version__}\n"


def test_help_names_the_commands():
    assert "demo" in invoke("--help").output
    assert invoke("demo", "--help").exit_code == 0
    assert invoke("no-such-command").exit_code == 2


EXAMPLES = {
    "README.md": 3,
    "docs/clustering.md": 7,
    "docs/records.md": 5,
    "docs/events.md": 1,
    "docs/scale.md": 1,
}  # at least so many blocks


@pytest.mark.parametrize("page", EXAMPLES)
def test_examples_of_the_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) >= EXAMPLES[page]
    namespace = {"__name__": "example"}
    for block in blocks:
        exec(compile(block, page, "exec"), namespace)


def test_examples_of_how_it_works_are_true():
    page = ROOT / "docs" / "how-it-works.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert tried >= 5
    assert failed == 0


PAGES = [ROOT / "README.md", ROOT / "results" / "RESULTS.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", text) if "://" not in target]
    assert targets or page.name != "README.md"
    for target in targets:
        name, _, place = target.partition("#")
        there = page.parent / name if name else page
        assert there.is_file(), target
        assert not place or place in places(there.read_text(encoding="utf-8")), target


def places(text):
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
