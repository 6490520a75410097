"""Excel and Feather: what others write is read, what is written is read again, and formulas stay text."""

import datetime
import sys

import openpyxl
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from partita.kb.io import excel, read, write
from tests.helpers.effort import examples

PATIENT = examples(15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
TEXTS = st.text(
    st.sampled_from('=+-@,;"\r\n\t\x01_x004') | st.characters(codec="utf-8"), min_size=1, max_size=8
)
FLOATS = st.floats(-1e9, 1e9).map(lambda x: float(f"{x:.15g}") + 0.0)  # Excel has fifteen digits
NUMBERS = st.integers(-(10**15), 10**15) | FLOATS | st.booleans()
HEADERS = st.lists(st.text("abcé", min_size=1, max_size=4), min_size=1, max_size=4, unique=True)


def fields_of(*arguments, **settings):
    notes = []
    found = [fields for _, fields in read(*arguments, note=notes.append, **settings)]
    return found, notes


@st.composite
def tables(draw, cells):
    header = draw(HEADERS)
    return draw(st.lists(st.fixed_dictionaries(dict.fromkeys(header, cells)), min_size=1, max_size=5))


@PATIENT
@given(tables(TEXTS | NUMBERS))
def test_excel_comes_back(tmp_path, rows):
    path = tmp_path / "a.xlsx"
    assert write(rows, path) == len(rows)
    assert fields_of(path) == (rows, [])
    cells = [cell for row in openpyxl.load_workbook(path).active.iter_rows() for cell in row]
    assert not any(cell.data_type == "f" for cell in cells)


@PATIENT
@given(tables(st.text('ab =é,"\n', min_size=1, max_size=6).filter(lambda text: text[0] != "=") | NUMBERS))
def test_what_openpyxl_writes_is_read(tmp_path, rows):
    book = openpyxl.Workbook()
    book.active.append(list(rows[0]))
    for row in rows:
        book.active.append([row[name] for name in rows[0]])
    book.save(tmp_path / "a.xlsx")
    assert fields_of(tmp_path / "a.xlsx") == (rows, [])


def test_cells_of_every_kind(tmp_path):
    book = openpyxl.Workbook()
    book.active.title = "people"
    book.active["B2"], book.active["C2"], book.active["D2"] = "name", "born", "n"
    day, moment = datetime.date(1915, 12, 10), datetime.datetime(2020, 1, 2, 3, 4, 5)
    book.active["B4"], book.active["C4"], book.active["D4"] = "Ada", day, 1.5
    book.active["B5"], book.active["C5"], book.active["D5"] = "Bob", moment, "=1/0"
    book.active["D6"] = "#N/A"
    book.active["B6"] = "Eve"
    book.create_sheet("more")["A1"] = "name"
    book.save(tmp_path / "a.xlsx")
    rows, notes = list(read(tmp_path / "a.xlsx", note=lambda text: None)), fields_of(tmp_path / "a.xlsx")[1]
    assert rows == [
        (4, {"name": "Ada", "born": "1915-12-10", "n": 1.5}),
        (5, {"name": "Bob", "born": "2020-01-02 03:04:05", "n": None}),
        (6, {"name": "Eve", "born": None, "n": None}),
    ]
    assert notes == [
        f"of {tmp_path / 'a.xlsx'} the sheet 'people' is read, not 'more'; --sheet says otherwise"
    ]
    assert fields_of(tmp_path / "a.xlsx", sheet="more") == ([], [])
    with pytest.raises(ValueError, match="has no sheet 'x'; there are 'people', 'more'"):
        fields_of(tmp_path / "a.xlsx", sheet="x")
    (tmp_path / "a.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match="has no sheets: leave --sheet out"):
        fields_of(tmp_path / "a.csv", sheet="x")


def test_what_a_sheet_cannot_hold_is_refused(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="row 1, column 'a': 32,768 characters"):
        write([{"a": "x" * 32_768}], tmp_path / "a.xlsx")
    monkeypatch.setattr(excel, "ROWS", 3)
    assert write([{"a": 1}] * 2, tmp_path / "a.xlsx") == 2
    with pytest.raises(ValueError, match="3 rows and a header, of 1 columns: a sheet of Excel holds"):
        write([{"a": 1}] * 3, tmp_path / "a.xlsx")
    write([{"a": 2**60, "b": [1, "é"]}], tmp_path / "a.xlsx")
    assert fields_of(tmp_path / "a.xlsx")[0] == [{"a": str(2**60), "b": '[1, "é"]'}]


@PATIENT
@given(tables(TEXTS | st.none()), st.sampled_from(["a.feather", "a.arrow", "a.ipc"]))
def test_feather_comes_back(tmp_path, rows, name):
    assert write(rows, tmp_path / name) == len(rows)
    assert fields_of(tmp_path / name) == (rows, [])
    assert pl.read_ipc(tmp_path / name).to_dicts() == rows


def test_feather_has_types_and_streams_are_read(tmp_path):
    rows = [{"n": 1, "tags": ["a", "b"], "p": {"x": 1.5}}, {"n": 2, "tags": [], "p": {"x": None}}] * 3000
    table = pa.Table.from_pylist(rows)
    pyarrow.feather.write_feather(table, tmp_path / "a.feather")
    with pyarrow.ipc.new_stream(tmp_path / "a.arrow", table.schema) as stream:
        stream.write_table(table)
    assert fields_of(tmp_path / "a.feather")[0] == fields_of(tmp_path / "a.arrow")[0] == rows
    write(rows, tmp_path / "b.feather")
    assert pyarrow.feather.read_table(tmp_path / "b.feather").to_pylist() == rows
    (tmp_path / "c.feather").write_bytes((tmp_path / "a.feather").read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"c\.feather cannot be read as Feather"):
        fields_of(tmp_path / "c.feather")


@pytest.mark.parametrize("name", ["a.xlsx", "a.feather"])
def test_what_is_missing_says_what_to_install(tmp_path, name, monkeypatch):
    write([{"a": "x"}], tmp_path / name)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "partita\[files\]"'):
        fields_of(tmp_path / name)
    with pytest.raises(ImportError, match=r'pip install "partita\[files\]"'):
        write([{"a": "x"}], tmp_path / name)
