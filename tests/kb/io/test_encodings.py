"""Files as they come: what naive writers write, in any encoding and with any ends of lines, is read as it was."""

import csv
import gzip
import io
import json
import sys

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from partita.kb.io import encodings, read
from partita.kb.io.csv_files import with_line_feeds
from tests.helpers.effort import examples

PATIENT = examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
LATIN = st.characters(min_codepoint=0xC0, max_codepoint=0xFF)  # letters, the same in Windows-1252
ALPHABETS = {
    "utf-8": st.characters(codec="utf-8", exclude_characters="\0"),
    "utf-8-sig": st.characters(codec="utf-8", exclude_characters="\0"),
    "utf-16": st.characters(codec="utf-8", exclude_characters="\0"),
    "utf-16-le": st.characters(max_codepoint=0x2FF, exclude_characters="\0"),
    "utf-16-be": st.characters(max_codepoint=0x2FF, exclude_characters="\0"),
    "cp1252": LATIN,
    "latin-1": LATIN | st.just("\x81"),
}


def fields_of(*arguments, **settings):
    notes = []
    found = [fields for _, fields in read(*arguments, note=notes.append, **settings)]
    return found, notes


@st.composite
def tables(draw):
    """Rows of text, and how to write them."""
    encoding = draw(st.sampled_from(sorted(ALPHABETS)))
    text = st.text(st.sampled_from('ab,;"\r\n\t |=_') | ALPHABETS[encoding], max_size=6)
    names = st.text("abc" if encoding == "latin-1" else "abcé", min_size=1, max_size=4)
    header = draw(st.lists(names, min_size=2, max_size=4, unique=True))
    rows = draw(st.lists(st.lists(text, min_size=len(header), max_size=len(header)), max_size=5))
    rows.append(
        ["x" * 30, *(["ü"] * (len(header) - 1))] if encoding not in ("latin-1",) else ["\x81"] * len(header)
    )
    ends = draw(st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=1, max_size=3))
    return encoding, header, rows, ends


def written(header, rows, ends, quoting):
    """As Python's csv module writes them, each line with the next of the ends."""
    parts = []
    for number, row in enumerate([header, *rows]):
        line = io.StringIO()
        csv.writer(line, lineterminator=ends[number % len(ends)], quoting=quoting).writerow(row)
        parts.append(line.getvalue())
    return "".join(parts)


@PATIENT
@given(
    tables(), st.sampled_from(["", ".gz"]), st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]), st.booleans()
)
def test_csv_is_read_as_it_was_written(tmp_path, table, zipped, quoting, named):
    encoding, header, rows, ends = table
    if (
        quoting == csv.QUOTE_MINIMAL
    ):  # without what it does not quote: ends of lines other than its own, spaces
        rows = [["".join(cell.split(" ")).translate({10: "", 13: ""}) for cell in row] for row in rows]
    content = written(header, rows, ends, quoting).encode(encoding)
    path = tmp_path / f"a.csv{zipped}"
    path.write_bytes(gzip.compress(content) if zipped else content)
    found, notes = fields_of(path, encoding=encoding if named else None)
    assert found == [dict(zip(header, row, strict=True)) for row in rows]
    assert len(notes) == (not named and not encoding.startswith("utf-8"))


@PATIENT
@given(tables(), st.sampled_from(["a.jsonl", "a.jsonl.gz", "a.json", "-"]))
def test_json_is_read_as_it_was_written(tmp_path, monkeypatch, table, name):
    encoding, header, rows, ends = table
    rows = [dict(zip(header, row, strict=True)) for row in rows]
    lines = [json.dumps(row, ensure_ascii=False) + ends[k % len(ends)] for k, row in enumerate(rows)]
    text = json.dumps(rows, ensure_ascii=False) if name == "a.json" else "".join(lines)
    content = text.encode(encoding)
    if name == "-":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
        known = encoding if encoding == "latin-1" else None  # which a stream does not tell at once
        assert fields_of("-", encoding=known)[0] == rows
        return
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert fields_of(tmp_path / name)[0] == rows


@given(st.text('a,"\r\n é', max_size=40), st.integers(1, 8))
def test_ends_of_lines_do_not_depend_on_chunks(text, size):
    def parts(size):
        stream = io.BytesIO(b"")
        chunks = iter([text.encode()[k : k + size] for k in range(0, len(text.encode()), size)])
        stream.read = lambda n: next(chunks, b"")
        return b"".join(with_line_feeds("a.csv", stream, ","))

    assert parts(size) == parts(1000)
    if '"' not in text:
        assert parts(size).decode() == text.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n")


@given(st.binary(max_size=60), st.integers(1, 7))
def test_contents_do_not_depend_on_chunks(content, size):
    chunks = iter([content[k : k + size] for k in range(0, len(content), size)])
    stream = io.BytesIO()
    stream.read = lambda n: next(chunks, b"")
    found = encodings.contents_of(stream)
    assert found == encodings.contents_of(io.BytesIO(content))
    valid = content.decode(errors="ignore")
    if valid.encode() == content:
        assert (found.broken, found.sequences) == (0, sum(ord(character) > 127 for character in valid))
    else:
        before = next(content[:k].decode() for k in range(len(content), -1, -1) if is_utf8(content[:k]))
        assert found.broken
        assert found.first == len(io.StringIO(before + "x", newline=None).readlines())


def is_utf8(content):
    return content.decode(errors="ignore").encode() == content


def test_a_broken_byte_at_the_end_of_a_long_file_does_not_garble_it(tmp_path):
    path = tmp_path / "a.csv"
    rows = "Ada,Zürich\n" * 200_000
    path.write_bytes(b"name,town\n" + rows.encode() + b"Bob,Caf\xe9\n")
    with pytest.raises(
        ValueError, match=r"a\.csv, line 200002 is not in UTF-8, though .* --encoding|elsewhere"
    ):
        fields_of(path)
    found, notes = fields_of(path, encoding="windows-1252")
    assert found[-1] == {"name": "Bob", "town": "Café"}
    assert found[0]["town"] == "ZÃ¼rich"
    assert notes == []


def test_some_sequences_by_chance_are_no_utf8(tmp_path):
    (tmp_path / "a.csv").write_bytes(
        b"name,x\n" + "Groß,ä\n".encode("cp1252") * 50 + "„Spaß“,ü\n".encode("cp1252")
    )
    found, notes = fields_of(tmp_path / "a.csv")
    assert found[-1] == {"name": "„Spaß“", "x": "ü"}
    assert notes == [f"{tmp_path / 'a.csv'} is read as Windows-1252; --encoding says otherwise"]


def test_a_stream_that_changes_its_encoding_is_refused(monkeypatch):
    def stdin(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))

    stdin(b'{"a": "\xe9"}\n{"a": "\xc3\xa9"}\n')
    with pytest.raises(
        ValueError, match="standard input, line 2 is not in UTF-8, though there is UTF-8 elsewhere"
    ):
        fields_of("-")
    stdin(b'{"a": "\xe9"}\n{"a": "\x81"}\n')
    with pytest.raises(ValueError, match=r"line 2 is not in Windows-1252.*--encoding latin-1"):
        fields_of("-")
    stdin(b'{"a": "\xe9"}\n{"a": "\x81"}\n')
    assert fields_of("-", encoding="latin-1") == ([{"a": "é"}, {"a": "\x81"}], [])


def test_named_encodings(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("名前,町\nアダ,東京\n".encode("shift-jis"))
    assert fields_of(path, encoding="Shift-JIS") == ([{"名前": "アダ", "町": "東京"}], [])
    for name in ("nosuch", "hex"):
        with pytest.raises(ValueError, match=f"unknown encoding '{name}'"):
            fields_of(path, encoding=name)
    with pytest.raises(
        ValueError, match=r"a\.csv, line 1 is not in UTF-8: mend it, or name another encoding"
    ):
        fields_of(path, encoding="utf-8")
    path.write_bytes(b"a,b\r\n1,2\r\n3,\x81\r\n")
    with pytest.raises(ValueError, match=r"a\.csv, line 3 is not in CP1252|line 3 is not in Windows-1252"):
        fields_of(path, encoding="cp1252")
    path.write_bytes(b"PAR1")
    with pytest.raises(ValueError, match="no encoding to choose"):
        fields_of(path, format="parquet", encoding="utf-8")
