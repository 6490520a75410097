"""Files: what is read is what was written, and what cannot be read is said."""

import datetime
import gzip
import io
import json
import math
import os
import subprocess
import sys
import threading
from decimal import Decimal

import duckdb
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from partita.kb.fragments import as_fragment, as_fragments
from partita.kb.io import Row, check_can_write, read, write
from tests.helpers.effort import examples

PATIENT = examples(
    25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
TEXTS = st.text(max_size=8)
NAMES = st.text(min_size=1, max_size=6).filter(lambda text: "\0" not in text)
SCALARS = st.one_of(
    TEXTS, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()
)
NESTED = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def rows_of(*arguments, **settings):
    return [fields for _, fields in read(*arguments, **settings)]


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# ---------------------------------------------------------------------- round trips


@PATIENT
@given(
    st.lists(st.dictionaries(TEXTS, NESTED, max_size=4), min_size=1, max_size=5), st.sampled_from(["", ".gz"])
)
def test_json_lines_come_back(tmp_path, rows, zipped):
    path = tmp_path / f"rows.jsonl{zipped}"
    assert write(rows, path) == len(rows)
    assert rows_of(path) == rows
    assert [type(value) for row in rows_of(path) for value in row.values()] == [
        type(value) for row in rows for value in row.values()
    ]


@PATIENT
@given(st.lists(st.dictionaries(NAMES, NESTED, max_size=4), min_size=1, max_size=5))
def test_arrays_come_back(tmp_path, rows):
    path = written(tmp_path / "rows.json", json.dumps(rows, indent=1))
    assert rows_of(path) == rows


WORDS = st.text(st.characters(categories=["Lu", "Ll", "Lo"]), min_size=1, max_size=6)


@PATIENT
@given(st.data(), st.sampled_from(["rows.csv", "rows.tsv", "rows.csv.gz"]))
def test_csv_comes_back(tmp_path, data, name):
    columns = data.draw(st.lists(WORDS, min_size=2, max_size=4, unique=True))
    rows = data.draw(st.lists(st.fixed_dictionaries(dict.fromkeys(columns, TEXTS)), max_size=5))
    assert write(rows, tmp_path / name, columns=columns) == len(rows)
    assert rows_of(tmp_path / name) == rows


@PATIENT
@given(st.data())
def test_parquet_comes_back(tmp_path, data):
    names = data.draw(
        st.lists(NAMES, min_size=1, max_size=4, unique_by=str.casefold).filter(
            lambda names: all(names) and "the row" not in names
        )
    )
    kinds = {
        name: data.draw(
            st.sampled_from([TEXTS, st.integers(-(2**63), 2**63 - 1), st.booleans(), st.floats(-9, 9)])
        )
        for name in names
    }
    fields = {
        name: st.none() | data.draw(st.sampled_from([kind, st.lists(st.none() | kind, max_size=3)]))
        for name, kind in kinds.items()
    }
    rows = data.draw(st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=5))
    path = tmp_path / "rows.parquet"
    assert write(rows, path) == len(rows)
    assert rows_of(path) == rows


PROPERTIES = st.dictionaries(
    NAMES.filter(str.strip),
    st.lists(
        st.text(min_size=1, max_size=5).filter(lambda text: text.strip() and "\0" not in text), min_size=1
    ),
    min_size=1,
    max_size=4,
)


@PATIENT
@given(st.lists(PROPERTIES, min_size=1, max_size=5), st.sampled_from(["f.jsonl", "f.parquet"]))
def test_fragments_come_back(tmp_path, properties, name):
    rows = [{"id": str(k), "source": None, "properties": said} for k, said in enumerate(properties)]
    write(rows, tmp_path / name)
    assert list(as_fragments(rows_of(tmp_path / name))) == list(as_fragments(rows))


@PATIENT
@given(st.lists(st.dictionaries(NAMES, NESTED, min_size=1, max_size=3), min_size=1, max_size=4))
def test_parquet_takes_anything(tmp_path, rows):
    """Whatever the types: it is written, or the columns' names are refused."""
    names = {name for row in rows for name in row}
    if len({name.casefold() for name in names}) < len(names):
        with pytest.raises(ValueError, match="the same but for case"):
            write(rows, tmp_path / "rows.parquet")
    else:
        write(rows, tmp_path / "rows.parquet")
        assert len(rows_of(tmp_path / "rows.parquet")) == len(rows)


# ---------------------------------------------------------------------- reading


def test_types_survive_in_json_lines(tmp_path):
    path = written(tmp_path / "a.jsonl", '\ufeff\n{"a": 1}\r\n\n{"a": [1, "1", true, 1.0]}\n{"b": "\\ud800"}')
    assert list(read(path)) == [(2, {"a": 1}), (4, {"a": [1, "1", True, 1.0]}), (5, {"b": "\ud800"})]


def test_rows_name_their_file_in_messages(tmp_path):
    path = written(tmp_path / "a.csv", "name,town\nAda,London\n,\n")
    (_, _), (row, fields) = read(path)
    assert row == 2
    assert isinstance(row, Row)
    with pytest.raises(ValueError, match=r"^row 2 of .*a\.csv: no property"):
        as_fragment(fields, row)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(tmp_path, delimiter):
    text = '"na,me"_town_x\n"a""b\nc"_#1_\n\n NULL _"2"_3\n'.replace("_", delimiter)
    expected = [{"na,me": 'a"b\nc', "town": "#1", "x": ""}, {"na,me": " NULL ", "town": "2", "x": "3"}]
    assert rows_of(written(tmp_path / "a.csv", text)) == expected
    assert rows_of(written(tmp_path / "a.csv", "\ufeff\n\n" + text)) == expected


def test_one_column_and_other_line_ends(tmp_path):
    assert rows_of(written(tmp_path / "a.csv", "name\nAda\n\nBob")) == [{"name": "Ada"}, {"name": "Bob"}]
    quoted = written(tmp_path / "a.csv", 'name\nAda\n""\n\nBob\n')  # a blank line is no row, but "" is
    assert rows_of(quoted) == [{"name": "Ada"}, {"name": ""}, {"name": "Bob"}]
    assert rows_of(written(tmp_path / "a.csv", 'a,b\r\n1,"x\ny"\r\n')) == [{"a": "1", "b": "x\ny"}]
    assert rows_of(written(tmp_path / "a.csv", "a,b\n")) == []


def test_columns_without_a_name_must_be_empty(tmp_path):
    assert rows_of(written(tmp_path / "a.csv", "name,,\nAda,,\n")) == [{"name": "Ada"}]
    with pytest.raises(ValueError, match=r"a\.csv, row 2: a value in a column without a name"):
        rows_of(written(tmp_path / "a.csv", ",name,\n,Ada,\n0,Bob,\n"))


def test_parquet_of_every_type(tmp_path):
    path = str(tmp_path / "a.parquet")
    duckdb.sql(
        "SELECT now() AS moment, DATE '1815-12-10' AS day, TIME '01:02:03' AS t, 1.5::DECIMAL(4, 2) AS cost,"
        " ['a', NULL] AS list, {'x': [1]} AS struct, MAP {'k': 1} AS map, 'NaN'::DOUBLE AS gap, NULL AS none"
    ).write_parquet(path)
    (fields,) = rows_of(path)
    assert datetime.datetime.fromisoformat(fields.pop("moment"))
    assert math.isnan(fields.pop("gap"))
    assert fields == {
        "day": "1815-12-10",
        "t": "01:02:03",
        "cost": 1.5,
        "list": ["a", None],
        "struct": {"x": [1]},
        "map": {"k": 1},
        "none": None,
    }


def test_several_files_in_order(tmp_path):
    for name in ("b.csv", "a.csv", "c[1].csv", "d*.csv"):
        written(tmp_path / name, f"name\n{name}\n")
    found = [
        row["name"] for row in rows_of([tmp_path / "c[1].csv", str(tmp_path / "*.csv"), tmp_path / "d*.csv"])
    ]
    assert found == ["c[1].csv", "a.csv", "b.csv", "d*.csv"]


def test_a_large_file_is_read_in_order_and_can_be_left(tmp_path):
    path = written(tmp_path / "a.csv", "n,text\n" + "".join(f"{k},row {k}\n" for k in range(30_000)))
    assert [int(fields["n"]) for fields in rows_of(path)] == list(range(30_000))
    rows = read(path)
    next(rows)
    rows.close()


def test_a_long_text_is_read(tmp_path):
    text = "x" * 5_000_000
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        write([{"a": text, "b": "y"}], tmp_path / name)
        assert rows_of(tmp_path / name) == [{"a": text, "b": "y"}]


# ---------------------------------------------------------------------- standard input


@pytest.mark.parametrize(
    "content", [b'\n{"name": "Ada"}\n', b'[{"name": "Ada"}]', b"\r\nname\nAda\n", b"name;x\nAda;\n"]
)
def test_standard_input_is_guessed(monkeypatch, content):
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))
    monkeypatch.setattr(sys, "stdin", stdin)
    ((row, fields),) = read("-")
    assert fields["name"] == "Ada"
    assert str(row).endswith("of standard input")


def test_parquet_from_standard_input(monkeypatch, tmp_path):
    write([{"name": "Ada"}], tmp_path / "a.parquet")
    with (tmp_path / "a.parquet").open("rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        assert rows_of("-", format="parquet") == [{"name": "Ada"}]


def test_json_lines_arrive_while_they_are_written():
    code = "from partita.kb.io import read\nfor row, fields in read('-'): print(fields, flush=True)"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        for number in range(3):
            process.stdin.write(b'{"n": %d}\n' % number)
            process.stdin.flush()
            assert process.stdout.readline() == b"{'n': %d}\n" % number
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def test_a_pipe_is_a_stream(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    thread = threading.Thread(target=written, args=(tmp_path / "pipe", "name,town\nAda,London\n"))
    thread.start()
    assert rows_of(tmp_path / "pipe") == [{"name": "Ada", "town": "London"}]
    thread.join()


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "is empty"),
        ("a.jsonl", "\n \n", "is empty"),
        ("a.csv", "a,b\n1,2\n3,4,5\n", "line 3: 3 fields, but the header has 2"),
        ("a.csv", "a,b\n1,2\n3\n", "line 3: 1 fields, but the header has 2"),
        ("a.csv", 'a,b\n1,"2\n3,4\n', "line 2: a quote is not closed"),
        ("a.csv", b"a,b\n1,\xc3\xa9\n3,\xff\n", "line 3 is not in UTF-8, though there is UTF-8 elsewhere"),
        ("a.csv", b"\xef\xbb\xbfa,b\n1,2\n3,\xff\n", "line 3 is not in UTF-8: mend it"),
        ("a.csv", b'a,b\n1,2\r\n"3,4\n', "line 3: a quote is not closed"),
        ("a.csv", b"a,b\r1,2\r\n3,4\n5\n", "line 4: 1 fields, but the header has 2"),
        ("a.csv", "a,a\n1,2\n", "several columns called 'a'"),
        ("a.csv", "1,2\n3,4\n", "a header is missing"),
        ("a.csv", "a,b\n1," + "x" * (1 << 25), "line 2: longer than"),
        ("a.csv", bytes(range(256)) * 9, "is not text"),
        ("a.csv", b"\x89PNG\r\n\x1a\n" + bytes(99), "is not text"),
        ("a.csv", '{"a": 1}\n', "is not CSV: it begins with"),
        ("a.csv", b"PAR1" + bytes(9), "is not CSV: it begins with"),
        ("a.csv", gzip.compress(b"a,b\n", mtime=0), "is gzipped"),
        ("a.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], "is not a whole gzip file"),
        ("a.csv.gz", b"a,b\n1,2\n", "is not a whole gzip file"),
        ("a.jsonl.gz", gzip.compress(b'{"a": 1}\n', mtime=0)[:-9], "is not a whole gzip file"),
        ("a.jsonl", "a,b\n1,2\n", "is not JSON: it begins with 'a,b"),
        ("a.jsonl", '{"a": 1}\n{"a": \n', "line 2 cannot be read as JSON"),
        ("a.jsonl", '{\n"a": 1\n}', "line 1 cannot be read as JSON.*an object a line"),
        ("a.jsonl", '{"a": 1}\n[1]\n', "line 2 must be an object"),
        ("a.jsonl", '{"a": 1}\n{"a": 1, "a": 2}\n', "line 2 .*'a' is there twice"),
        ("a.jsonl", b'{"a": "\xc3\xa9"}\n{"a": "\xff"}\n', "line 2 is not in UTF-8"),
        ("a.jsonl", '{"a": ' + "[" * 200_000 + "}\n", "line 1 cannot be read as JSON"),
        ("a.json", '[{"a": 1},\n{"a": }]', "is not an array of JSON objects"),
        ("a.json", '[{"a": 1},\n{"a": 2}', "is not an array of JSON objects"),
        ("a.json", b'[{"a": "\xc3\xa9\xff"}]', "line 1 is not in UTF-8"),
        ("a.json", '[{"a": 1}, 3]', "object 2 must be an object"),
        ("a.parquet", "PAR1 and so on", "cannot be read"),
        ("a.parquet", "a,b\n", "is not Parquet"),
        ("a.parquet.gz", "", "cannot be gzipped"),
        ("a.ods", "", "save the sheet as .xlsx or CSV"),
        ("a.xlsx", b"\xd0\xcf\x11\xe0" + bytes(99), "old format .xls, or protected by a password"),
        ("a.xlsx", b"PK\x03\x04 and so on", "cannot be read as an Excel workbook"),
        ("a.xlsx", "a,b\n", "is not an Excel workbook"),
        ("a.feather", b"ARROW1 and so on", "cannot be read as Feather"),
        ("a.feather", b"FEA1 and so on", "version 1"),
        ("a.xlsx.gz", "", "cannot be gzipped"),
        ("a", "a,b\n", "does not end in one of json, .*--format"),
    ],
)
def test_what_cannot_be_read(tmp_path, name, content, message):
    path = written(tmp_path / name, content)
    with pytest.raises(ValueError, match=rf"(?s){name}.*{message}") as caught:
        rows_of(path)
    assert "\n" not in str(caught.value)


def test_files_are_looked_for_before_any_is_read(tmp_path):
    good = written(tmp_path / "a.csv", "a\n1\n")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*b\.csv"):
        read([good, tmp_path / "b.csv"])
    with pytest.raises(FileNotFoundError, match=r"no file matches .*\*\.parquet"):
        read(str(tmp_path / "*.parquet"))
    with pytest.raises(ValueError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(ValueError, match="unknown format 'xml': choose from json"):
        read(good, format="xml")


def test_a_folder_of_parquet_is_a_table(tmp_path):
    (table := tmp_path / "people[1].parquet").mkdir()
    for part in (1, 0):
        write([{"n": part}], table / f"part-{part}.parquet")
    written(table / "_SUCCESS", "")
    assert rows_of(table) == [{"n": 0}, {"n": 1}]


def test_what_cannot_be_written_is_told_before(tmp_path):
    check_can_write(tmp_path / "a.csv")
    check_can_write("-")
    assert list(tmp_path.iterdir()) == []
    path = written(tmp_path / "old.csv", "mine")
    check_can_write(path)
    assert path.read_text() == "mine"
    for name, message in [("a.xml", "does not end in"), (".", "is a folder"), ("b/a.csv", "no folder")]:
        with pytest.raises((ValueError, OSError), match=message):
            check_can_write(tmp_path / name, "csv" if name == "." else None)
    with pytest.raises(OSError, match=r"name too long.*x\.csv'$"):
        check_can_write(tmp_path / ("x" * 245 + ".csv"))


def test_names_of_columns_and_files_are_no_sql(tmp_path):
    name = "'); DROP TABLE x; --\""
    path = tmp_path / f"{name}.csv"
    write([{name: "1", "b": "2"}], path)
    assert rows_of(path) == [{name: "1", "b": "2"}]
    path = tmp_path / f"{name}.parquet"
    write([{name: {name: "1"}}], path)
    assert rows_of(path) == [{name: {name: "1"}}]


# ---------------------------------------------------------------------- writing


def test_cells_of_csv(tmp_path):
    rows = [{"a": [1, "é"], "b": None}, {"c": {"x": True}, "a": 1.5, "b": datetime.date(1815, 12, 10)}]
    write(rows, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == 'a,b,c\n"[1, ""é""]",,\n1.5,1815-12-10,"{""x"": true}"\n'


def test_columns_choose_and_order(tmp_path):
    rows = [{"a": 1, "b": 2, "c": 3}, {"c": 4}]
    write(rows, tmp_path / "a.csv", columns=["c", "a"])
    assert (tmp_path / "a.csv").read_text() == "c,a\n3,1\n4,\n"
    write(rows, tmp_path / "a.jsonl", columns=["c", "a"])
    assert rows_of(tmp_path / "a.jsonl") == [{"c": 3, "a": 1}, {"c": 4}]
    write([], tmp_path / "a.parquet", columns=["c", "a"])
    assert rows_of(tmp_path / "a.parquet") == []


def test_types_of_parquet(tmp_path):
    rows = [
        {"n": 1, "mixed": 1, "born": [1815, "1815-12-10"], "p": {"Name": ["x"], "name": ["y"]}, "e": {}},
        {"n": 0.5, "mixed": [2], "born": [], "p": {"": ["z"]}, "e": {}, "d": Decimal("1.50")},
    ]
    write(rows, tmp_path / "a.parquet")
    assert rows_of(tmp_path / "a.parquet") == [
        {"n": 1.0, "mixed": "1", "born": ["1815", "1815-12-10"], "p": rows[0]["p"], "e": {}, "d": None},
        {"n": 0.5, "mixed": "[2]", "born": [], "p": {"": ["z"]}, "e": {}, "d": "1.50"},
    ]


@pytest.mark.parametrize("format", [None, "csv", "parquet"])
def test_standard_output(capfdbinary, format, tmp_path):
    write([{"name": "Ada"}], "-", format)
    path = written(tmp_path / f"a.{format or 'jsonl'}", capfdbinary.readouterr().out)
    assert rows_of(path) == [{"name": "Ada"}]


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_a_failure_leaves_the_old_file(tmp_path, name):
    path = written(tmp_path / name, "old")

    def rows():
        yield {"a": 1}
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        write(rows(), path)
    with pytest.raises(ValueError, match="row 2 cannot be written: "):
        write([{"a": 1}, {"a": object()}], path)
    with pytest.raises(ValueError, match="row 1 cannot be written: "):
        write([{"a": float("nan")}], path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [name]


def test_links_and_devices_stay(tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write([{"a": 1}], tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "a\n1\n"
    write([{"a": 1}], "/dev/null", format="csv")
    assert not os.path.isfile("/dev/null")


def test_where_nothing_can_be_written(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        write([], tmp_path / "folder.csv")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write([], tmp_path / "none" / "a.csv")
    with pytest.raises(ValueError, match="nothing to write"):
        write([], tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="name the format"):
        write([], tmp_path / "a.xml")


def test_tabs_divide_what_is_called_so(tmp_path):
    text = "last, first\tcity, land, x\nSmith, John\tParis\n"
    wanted = [{"last, first": "Smith, John", "city, land, x": "Paris"}]
    assert rows_of(written(tmp_path / "rows.tsv", text)) == wanted
    assert rows_of(written(tmp_path / "rows.csv", text.replace("\r", "")), format="tsv") == wanted
    assert rows_of(written(tmp_path / "other.tsv", "a,b\n1,2\n")) == [{"a": "1", "b": "2"}]
