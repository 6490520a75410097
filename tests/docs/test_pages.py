"""Every block of code on every page runs, or is marked as not to be run; every link of every page leads somewhere.

A block is run where it stands unless ``<!-- not run: the reason -->`` stands above it. Python is run here, page by
page, or in the test that ``ELSEWHERE`` names. What commands print is compared by its first words. Lines of shell are
checked against what there is: commands and their options, extras, modules, files.
"""

import importlib.util
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
import typer

from partita.cli import app
from tests.cli.test_cli import EXAMPLES, places
from tests.cli.test_kb_commands import invoke
from tests.helpers.files import ROOT
from tests.helpers.pages import PAGES, blocks, name

sys.path.insert(0, str(ROOT / "docs"))
import run_commands

ELSEWHERE = dict.fromkeys(EXAMPLES, "tests/cli/test_cli.py") | {
    "docs/how-it-works.md": "tests/cli/test_cli.py",
    "docs/extending.md": "tests/test_extending.py",
    "docs/files.md": "tests/test_files_page.py",
}
OWN = {"docs/recipes": "recipes", "docs/gallery": "gallery"}  # folders that a test beside this one may run
NOT_RUN = {  # beside what pages say themselves: page and language, and the reason
    (
        "docs/knowledge-base.md",
        "sql",
    ): "is of a file that the reader has; the views are tested in tests/kb/store",
    ("docs/diagnose.md", "python"): "is about records of the reader's; tests/kb/queries/test_diagnosis.py",
    ("docs/neural.md", "python"): "needs a GPU, or minutes",
    ("docs/scale.md", "py"): "needs Spark; tests/bulk/test_spark.py",
    ("results/RESULTS.md", "python"): "needs data that may not be shipped",
}
ANY = ("", "text", "csv", "{toctree}", "{eval-rst}")  # no code
NO_PARTITA = re.compile(
    r"^(?:cat|echo|printf|head|mypy|ruff|pytest|sphinx-build|time|export|cd|EOF|pre-commit|\.ci/)\b|^\.ci/"
)
MADE = re.compile(r"<<'END'\n.*?^END$", re.M | re.S)


def elsewhere(page):
    """Whether another test runs the Python of a page."""
    if name(page) in ELSEWHERE:
        return (ROOT / ELSEWHERE[name(page)]).is_file()
    beside = [
        path
        for path in Path(__file__).parent.glob("test_*.py")
        if path.stem not in ("test_pages", "test_site")
    ]
    said = [path.read_text(encoding="utf-8") for path in beside]
    return any(
        name(page).startswith(f"{folder}/") and any(word in text for text in said)
        for folder, word in OWN.items()
    )


# ---------------------------------------------------------------------- Python

PRINTED = re.compile(r"^print\(.*\)  # (\[.*\])$", re.M)  # a comment with a list is what the line prints
WITH_PYTHON = [
    page
    for page in PAGES
    if not elsewhere(page)
    and any(
        block.language == "python" and not block.reason and (name(page), "python") not in NOT_RUN
        for block in blocks(page)
    )
]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name)
def test_python_of_the_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "example"}
    for block in blocks(page):
        if block.language == "python" and not block.reason:
            exec(compile("\n" * block.line + block.code, name(page), "exec"), namespace)
            printed = capsys.readouterr().out
            for said in PRINTED.findall(block.code):
                assert said in printed.splitlines(), f"{name(page)} says that {said} is printed"


# ---------------------------------------------------------------------- data


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_other_blocks_are_what_they_say(page):
    for block in blocks(page):
        where = f"{name(page)}, line {block.line}"
        if block.reason is not None:
            assert len(block.reason) > 5, f"{where}: why is it not run?"
        elif block.language == "toml":
            tomllib.loads(block.code)
        elif block.language in ("json", "jsonl"):
            try:
                json.loads(block.code)
            except ValueError:
                [json.loads(line) for line in block.code.splitlines()]
        elif block.language in ("sh", "console"):
            check_shell(block.code, where)
        elif block.language != "python" and block.language not in ANY:
            assert (name(page), block.language) in NOT_RUN, f"{where}: it neither runs nor says why not"


# ---------------------------------------------------------------------- shell


def check_shell(code, where):
    """Each command is one, with options that it has; data within are left out."""
    prompt = code.startswith("$ ")
    for line in MADE.sub("", code).replace("\\\n", " ").splitlines():
        if prompt:
            if not line.startswith("$ "):
                continue
            line = line[2:]
        for part in re.split(r"\s(?:\||&&|;)\s", line.partition("   #")[0].strip()):
            if part and not part.startswith("#"):
                check_command(re.sub(r"\s#\s.*$", "", part), where)


def check_command(command, where):
    """One command."""
    words = shlex.split(re.sub(r"\$\([^)]*\)", "X", re.sub(r"\s\d?>+\s*\S+", "", command)))
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):  # of the environment
        words.pop(0)
    if not words or words[0] in ("time", "$"):
        words = words[1:]
    if not words:
        return
    if words[0] == "partita":
        group = typer.main.get_command(app)
        try:
            parse(group, words[1:])
        except click.UsageError as error:
            raise AssertionError(f"{where}: {command}: {error.format_message()}") from None
        except Exception as error:  # Typer has a Click of its own in some versions
            if "UsageError" not in {kind.__name__ for kind in type(error).__mro__}:
                raise
            raise AssertionError(f"{where}: {command}: {error}") from None
    elif words[:2] == ["pip", "install"]:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
            "optional-dependencies"
        ]
        for word in words[2:]:
            for listed in re.findall(r"\[([\w,]+)\]", word):
                assert set(listed.split(",")) <= set(extras), f"{where}: {command}"
    elif words[:2] == ["python", "-m"]:
        assert importlib.util.find_spec(words[2]), f"{where}: {command}"
    elif words[0] == "python":
        assert words[1] in ("-", "-c") or (ROOT / words[1]).is_file(), f"{where}: {command}"
    else:
        assert NO_PARTITA.match(words[0]), f"{where}: what is {command!r}?"


def parse(group, words):
    """Parse a command line without running it, "…" standing for anything."""
    command = group
    while hasattr(command, "commands"):
        if not words or words[0].startswith("-"):
            return
        assert words[0] in command.commands, f"there is no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
    if "…" in words or "--help" in words:
        known = {
            option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        assert {word for word in words if word.startswith("--") and word != "--help"} <= known
        return
    command.make_context(command.name, list(words))


# ---------------------------------------------------------------------- what commands print

BEFORE = {"matching.md": "knowledge-base.md"}  # pages that go on where another one ends
CONSOLE = [*run_commands.PAGES, "matching.md", "columns.md"]
RUN_THERE = {"docs/knowledge-base.md": "tests/cli/test_kb_commands.py"}


def test_all_pages_that_show_output_are_run():
    showing = {
        name(page) for page in PAGES if any(b.language == "console" and not b.reason for b in blocks(page))
    }
    assert {one for one in showing if not one.startswith(("docs/recipes", "docs/gallery"))} == {
        f"docs/{one}" for one in CONSOLE
    }


@pytest.mark.parametrize("page", [page for page in CONSOLE if f"docs/{page}" not in RUN_THERE])
def test_commands_print_what_the_page_shows(page, tmp_path, monkeypatch):
    """Each begins with the words that the page shows; numbers may differ."""
    monkeypatch.chdir(tmp_path)
    if page in BEFORE:
        make_data(ROOT / "docs" / BEFORE[page])
        invoke("build", "contacts.csv", "-o", "contacts.db", COLUMNS="100")
    make_data(ROOT / "docs" / page)
    for block in blocks(ROOT / "docs" / page):
        if block.language != "console" or block.reason:
            continue
        for command, shown in re.findall(r"^\$ (.*)\n(.*)", block.code, re.M):
            *first, command = re.split(r" \| (?=partita )", command)
            input = in_shell(first[0]) if first else None
            command, _, into = command.replace(" 2>&1", "").partition(" | ")
            words = shlex.split(command)
            if words[0] != "partita":
                printed = [in_shell(command)]
            else:
                done = invoke(*words[1:], input=input, COLUMNS="100", PARTITA_USER="grace")
                assert done.exit_code == 0, (command, done.output)
                printed = [done.stdout, done.stderr]
            wanted = beginning(shown)
            assert into or wanted in [beginning(text)[: len(wanted)] for text in printed], command


def beginning(text):
    """The first words, whatever the numbers."""
    return re.sub(r"\d+", "0", text).split()[:4]


def in_shell(command):
    """What a command that is not ours prints."""
    return subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True).stdout


def make_data(page):
    """Make the files that a page works on."""
    for made in run_commands.DATA.findall(page.read_text(encoding="utf-8")):
        if made.startswith("cat"):
            file, text = re.match(r"cat > (\S+) <<'END'\n(.*?)^END$", made, re.M | re.S).groups()
            Path(file).write_text(text, encoding="utf-8")
        else:
            script = made.removeprefix("python - <<'END'\n").removesuffix("END")
            subprocess.run([sys.executable, "-c", script], check=True)


# ---------------------------------------------------------------------- links


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent != ROOT / "docs"], ids=name)
def test_links_lead_somewhere(page):
    """Those of the pages in docs itself are tests/cli/test_cli.py's."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        file, _, place = target.partition("#")
        there = page.parent / file if file else page
        assert there.is_file(), target
        assert not place or place in places(there.read_text(encoding="utf-8")), target
