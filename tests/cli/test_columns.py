"""What build, add and schema say of columns, and what they refuse."""

import json

import pytest

from partita.models.records.record import Record
from tests.cli.test_kb_commands import document, invoke, refused, run

ROWS = """\
id,first_name,last_name,phone,tags,chunk,cluster_id
1,Ada,Byron,212-555-1001,maths; engines,1,a
2,Ada,Byron,+1 (212) 555-1001,engines; maths,1,a
3,Augusta Ada,Byron,n/a,maths,1,a
4,Joe,Null,212-555-1002,botany,2,b
5,Joe,Null,-,botany; birds,2,b
6,Mary,Smith,n/a,birds,2,c
7,Mary,Smith,(212) 555-1003,birds; maths,3,c
8,Emil,Zola,212-555-1004,botany,3,d
9,Emil,Zola,212.555.1004,botany; engines,3,d
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns")
    (folder / "people.csv").write_text(ROWS)
    built = invoke("build", folder / "people.csv", "-o", folder / "kb.db", "--ignore", "cluster_id")
    (folder / "said.txt").write_text(built.stderr)
    return folder


def test_what_is_understood_is_said_once_with_counts(made):
    said = (made / "said.txt").read_text()
    assert said.count("stand for nothing") == 1
    assert (
        "3 values that stand for nothing left out of the comparison: 2 'n/a' in phone, 1 '-' in phone" in said
    )
    assert """values of 'tags' look like lists: in the schema, separator = "; " has""" in said
    assert "Warning: the column 'chunk' looks like where a row is from" in said
    assert "--source chunk" in said
    assert "cluster_id" not in said
    assert document("show", made / "kb.db", "3")["properties"]["phone"] == ["n/a"]  # as it was written


def test_columns_that_look_like_the_answer_are_named(made, tmp_path):
    found = document("build", made / "people.csv", "-o", tmp_path / "kb.db", "--refine", 0)
    assert [(one["column"], one["option"]) for one in found["remarks"]] == [
        ("chunk", "--source chunk"),
        ("cluster_id", "--ignore cluster_id"),
    ]
    assert found["missing"] == {"phone": {"n/a": 2, "-": 1}}
    more = document(
        "add", tmp_path / "kb.db", "-", input='{"id": "x", "first_name": "?", "last_name": "Gogh"}'
    )
    assert more["missing"] == {"first_name": {"?": 1}}


def test_what_is_to_be_ignored_must_be_there(made, tmp_path):
    data, kb = made / "people.csv", tmp_path / "kb.db"
    for command in (("build", data, "-o", kb), ("schema", "infer", data), ("add", made / "kb.db", data)):
        message = refused(*command, "--ignore", "clusterid")
        assert "no column 'clusterid' to ignore; did you mean 'cluster_id'?" in message
    assert not kb.exists()
    assert "did you mean 'chunk'?" in refused("build", data, "-o", kb, "--source", "chunks")
    assert "did you mean 'id'?" in refused("build", data, "-o", kb, "--id", "ids")
    sparse = tmp_path / "sparse.jsonl"
    late = [{"id": str(k), "name": f"n{k}"} | ({"truth": "t"} if k == 9 else {}) for k in range(10)]
    sparse.write_text("\n".join(map(json.dumps, late)))
    run("build", sparse, "-o", kb, "--ignore", "truth", "--refine", 0)  # which the last row has
    one = invoke("add", kb, "-", "--ignore", "truth", input='{"id": "y", "name": "n"}')
    assert one.exit_code == 0
    assert "no row has a column 'truth' to ignore" in one.stderr


def test_ignoring_by_the_schema_afterwards_is_ignoring_from_the_start(made, tmp_path):
    models = []
    for name, options in (("from the start", ["--ignore", "chunk", "--ignore", "cluster_id"]), ("after", [])):
        kb, schema = tmp_path / f"{name}.db", tmp_path / f"{name}.toml"
        run("build", made / "people.csv", "-o", kb, "--refine", 0, *options)
        text = run("schema", "show", kb, "--toml")
        for column in ("chunk", "cluster_id"):
            text = text.replace(f'"{column}"]\nkind = "text"', f'"{column}"]\nkind = "ignore"')
        schema.write_text(text)
        run("relearn", kb, "--schema", schema)
        model = Record.from_toml(run("schema", "show", kb, "--toml"))
        kept = {key: own for key, own in model.attributes.items() if own is not None}
        fragments = tmp_path / f"{name}.jsonl"
        run("export", kb, fragments, "--what", "fragments")
        rows = [json.loads(line) for line in fragments.read_text().splitlines()]
        groups = {}
        for row in rows:
            groups.setdefault(row["entity"], set()).add(row["fragment"])
        models.append(
            (kept, model.rate, sorted(map(sorted, groups.values())), [r["probability"] for r in rows])
        )
    assert models[0] == models[1]


def test_editing_comments_alone_changes_nothing(made):
    before = document("stats", made / "kb.db")["events"]
    said = invoke("schema", "edit", made / "kb.db", EDITOR="sed -i 's/  # .*//;/^#/d'", VISUAL="")
    assert "The schema is as it was: nothing to do" in said.stderr
    assert document("stats", made / "kb.db")["events"] == before


def test_one_object_that_holds_the_rows_is_noted(tmp_path):
    people = [
        {"name": f"Person {k}", "phone": [{"of": "home", "number": k}, {"of": "work", "number": -k}]}
        for k in range(9)
    ]
    wrapped, single, array = (tmp_path / name for name in ("wrapped.json", "single.jsonl", "array.json"))
    wrapped.write_text(json.dumps({"data": people, "meta": {"rows": 9}}))
    single.write_text(json.dumps({"name": "Ada", "tags": ["a", "b"], "address": {"city": "Paris"}}) + "\n")
    array.write_text(json.dumps(people))
    said = invoke("build", wrapped, single, "-o", tmp_path / "kb.db", "--no-id").stderr
    assert f"{wrapped} is one object, so it is one row; if its rows are the 9 objects in 'data'" in said
    assert said.count("is one object") == 1
    assert "is one object" not in invoke("build", array, "-o", tmp_path / "two.db", "--no-id").stderr
