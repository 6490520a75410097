"""What docs/files.md says in Python is so."""

import re
from pathlib import Path

import partita as pt

PAGE = Path(__file__).parents[1] / "docs" / "files.md"


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = {}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S):
        exec(block, found)
    assert found["model"].validate(found["table"])[0] == {"name": ["Ada Lovelace"], "tags": ["a", "b"]}
    assert found["rows"] == [{"name": "Zoë", "city": "Zürich"}]


def test_the_nested_fragment_says_what_the_page_says(tmp_path):
    nested, flat = re.findall(r"^```json\n(.*?)\n```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    (tmp_path / "a.jsonl").write_text(nested)
    (tmp_path / "b.jsonl").write_text(flat)
    from partita.kb.fragments import as_fragment
    from partita.kb.io import read

    (one,), (other,) = (
        [as_fragment(f, 0) for _, f in read(tmp_path / name)] for name in ("a.jsonl", "b.jsonl")
    )
    assert one == other
    assert pt.Record.infer([one.properties]).attributes.keys() >= {
        "address.city",
        "address.geo.zip",
        "books.year",
    }
