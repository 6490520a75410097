"""What is understood of columns: what stands for nothing, lists, schemas as people edit them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita.models.records.kinds import Email, PersonName, Phone, PostalCode, Url
from partita.models.records.lists import separator_of
from partita.models.records.nothing import USUAL, missing_in, nowhere
from partita.models.records.schema import unlearnt
from tests.helpers.effort import examples

SURNAMES = ["Adams", "Baker", "Clark", "Davis", "Evans"] * 4


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([*SURNAMES, "NULL"], ["NULL"]),  # is written unlike the others
        ([*SURNAMES, "Null"], []),  # a surname
        ([*SURNAMES, *["Null"] * 12], ["Null"]),  # which nobody has so often
        ([*SURNAMES, "N/a"], ["N/a"]),
        (["DE", "FR", "NA", "US"] * 3, []),  # Namibia
        (["DE", "FR", "US", *["NA"] * 30], []),
        (["ANNA", "BERTA", *["NA"] * 30], ["NA"]),
        (["1815-12-10", "1791-12-26", "unknown"] * 2, ["unknown"]),
        (["null"] * 3, ["null"]),
        (["Ann", "Bob", "Carl", "Nan", "Nan"], []),  # a given name
        ([*SURNAMES, "NAN"], ["NAN"]),
        (["baker", "unknown", "smith"] * 5, []),
    ],
)
def test_what_stands_for_nothing(values, found):
    assert missing_in(values) == (*USUAL, *found)


def test_zeros_count_unless_both_coordinates_are():
    there = [{"lat": ["52.1"], "lon": ["4.3"]}]
    assert nowhere([{"lat": ["0.0"], "lon": [0.0]}] * 2 + there) == {"lat": ("0.0",), "lon": ("0",)}
    assert nowhere([{"lat": ["0"], "lon": ["0"]}, *there]) == {}  # once may be true
    assert (
        nowhere([{"lat": ["0"], "lon": ["0"]}] * 2 + [{"lat": ["0"], "lon": ["32.5"]}]) == {}
    )  # the equator
    assert nowhere([{"a": ["0"], "b": ["0"]}] * 9) == {}


@pytest.mark.parametrize(
    ("values", "separator"),
    [
        (["red; blue", "green", "blue; green; red", "red"], ""),  # too few
        (["red; blue", "green", "blue; green; red", "red; green"], "; "),
        (["a;b", "b;c;a", "c", "a;c"], ";"),
        (["one ** two", "three", "two ** four ** one", "five ** six"], " ** "),
        (["x|y", "z", "p|q|r", "s|t"], "|"),
        (["Smith; John", "Byron; Ada", "Zola; Emile"], ""),  # of two parts, all of them
        (["Smith, John", "Adams, Ada, Dr.", "Zola, Emile"] * 2, ""),
        (["He came; he saw it", "nothing", "a; b", "c; d; e"], ""),  # no item is met again
        (["AT&amp;T", "B&amp;O; AT", "x; y", "x; z; y"], ""),
        ([1.5, "a|b", "c|d", "e|f|g"], ""),
        ([], ""),
    ],
)
def test_lists(values, separator):
    assert separator_of(values) == separator


def rows():
    return [
        {
            "name": f"person {k // 2}",
            "phone": ["n/a", f"212-555-{1000 + k // 2}"][k % 2],
            "tags": f"t{k % 3}; t{k % 5}",
        }
        | ({"extra": f"e{k // 2}"} if k % 4 else {})
        for k in range(40)
    ] + [{"name": "person x", "tags": "t1"}]


def test_values_are_compared_as_if_nothing_were_left_out_and_lists_were_lists():
    given_rows = rows()
    plain = [{name: value.split("; ") for name, value in row.items() if value != "n/a"} for row in given_rows]
    schema = pt.Record.infer(given_rows)
    assert schema.attributes["tags"].noted.divided_by == "; "
    assert "separator = '; '" in str(schema.describe())
    proposed = schema.to_toml().replace('# separator = "; "', 'separator = "; "')
    schema = pt.Record.from_toml(proposed)
    assert schema.attributes["tags"].separator == "; "
    assert schema.attributes["phone"].kind == "phone"
    read, expected = schema.validate(given_rows), schema.validate(plain)
    assert read == expected == plain
    assert [row.pairs for row in read] == [row.pairs for row in expected]
    assert schema.fit_prior(given_rows).to_json() == schema.fit_prior(plain).to_json()


@pytest.mark.parametrize("names", [("name", "phone"), ("name",)])
def test_ignored_in_the_schema_is_left_out_to_the_last_bit(names):
    with_it = [{name: row[name] for name in (*names, "extra") if name in row} for row in rows()]
    without = [{name: row[name] for name in names if name in row} for row in rows()]
    left_out = pt.Record.infer(without).fit_prior(without)
    schema = re.sub(
        r'(\[attributes."extra"\]\nkind = )"\w+"', r'\1"ignore"', pt.Record.infer(with_it).to_toml()
    )
    learnt = pt.Record.infer(with_it).fit_prior(with_it)
    edited = unlearnt(
        pt.Record.from_toml(re.sub(r'("extra"\]\nkind = )"\w+"', r'\1"ignore"', learnt.to_toml())), learnt
    )
    for ignored in (pt.Record.from_toml(schema), edited):
        assert ignored.attributes["extra"] is None
        model = ignored.fit_prior(with_it)
        kept = {name: own for name, own in model.attributes.items() if own is not None}
        assert kept == left_out.attributes
        assert (model.rate, model.types, model.size) == (left_out.rate, left_out.types, left_out.size)
        scores = [m.log_likelihood([X[:2], X[2:7]]) for m, X in ((model, with_it), (left_out, without))]
        assert scores[0].tolist() == scores[1].tolist()


def test_a_kind_is_changed_in_place():
    schema = pt.Record({"size": pt.Number(spread=0.25), "name": pt.Text()}).to_toml()
    for kind in ("text", "value", "category", "date", "ignore"):
        changed = pt.Record.from_toml(schema.replace('kind = "number"', f'kind = "{kind}"'))
        assert (changed.attributes["size"].kind if kind != "ignore" else "ignore") == kind
    with pytest.raises(ValueError, match="text has no 'colour'"):
        pt.Record.from_toml(schema.replace("spread", "colour").replace('"number"', '"text"'))


def test_strengths_that_were_changed_by_hand_stay():
    learnt = pt.Record({"name": pt.Text(weight=0.3), "town": pt.Text(weight=0.4)}, rate=7.0)
    given = pt.Record({"name": pt.Text(weight=0.3), "town": pt.Text(weight=0.9)}, rate=7.0)
    assert unlearnt(given, learnt).attributes == {"name": pt.Text(), "town": pt.Text(weight=0.9)}
    assert unlearnt(given, learnt).rate == 2.0
    before = pt.Record({"name": pt.Text(weight=0.6)}, rate=0.0)
    assert unlearnt(given, learnt, before).attributes["name"].weight == 0.6
    assert unlearnt(given, learnt, before).rate == 0.0


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@examples(60)
@given(st.dictionaries(TEXTS, st.tuples(st.lists(TEXTS, max_size=3), TEXTS), min_size=1), st.lists(TEXTS))
def test_a_schema_says_what_its_lines_do_and_reads_the_same(described, everywhere):
    model = pt.Record(
        {
            name: pt.Text(missing=tuple(dict.fromkeys([*everywhere, *missing])), separator=separator)
            for name, (missing, separator) in described.items()
        }
        | {"last": None}
    )
    if not model.attributes.keys() - {"last"}:
        return
    text = model.to_toml()
    again = pt.Record.from_toml(text)
    assert again.attributes == model.attributes
    assert again.to_toml() == text
    for line in text.split("\n"):
        if re.match(r"[a-z]+ = ", line):
            assert "  # " in line


SPELLINGS = {
    Email: ["ada@b.com", "Ada@B.com;", "mailto:ada@b.com?subject=hi", "E-mail: ada@b.com", "ada [at] b.com"],
    Phone: ["+49 30 901820", "030 901820", "0049-30-901820", "T: +49 (0)30 / 901820"],
    Url: ["https://www.b.com:443/", "b.com", "HTTP://b.com"],
    PostalCode: ["10115", "D-10115", "10115.0"],
    PersonName: ["John Smith PhD", "Smith, John, Ph.D.", "Smith, John PhD"],
}


@pytest.mark.parametrize("kind", SPELLINGS)
def test_spellings_of_one_thing(kind):
    assert len({kind().parse(value) for value in SPELLINGS[kind]}) == 1
    assert (
        Phone().parse("212-555-0187 #12")
        == Phone().parse("2125550187 ext. 12")
        != Phone().parse("2125550187")
    )
    assert Phone().parse("2125550187.0") == "212 555 0187"
    assert PersonName().parse("M. D. Smith") == "m d smith"


def test_decimals_are_no_dates():
    said = [
        {"lon": f"{k % 9}.{1234 + 317 * k % 8000}", "seen": f"{1 + k % 12:02d}.19{10 + k}"} for k in range(40)
    ]
    found = pt.Record.infer(said).attributes
    assert (found["lon"].kind, found["seen"].kind) == ("number", "date")


def test_what_was_inferred_to_have_numbers_refuses_no_text():
    records = [{"height": f"{k}.5"} for k in range(20)]
    model = pt.Record.infer(records)
    assert model.attributes["height"].kind == "number"
    again = pt.Record.from_toml(model.to_toml())
    declared = pt.Record.from_toml(model.to_toml().replace("unreadable", "# unreadable"))
    for text in ("NULL", "none", "unknown", "about 40", "12 kg", "1e999"):
        for lenient in (model, again):
            assert lenient.validate([{"height": [text, "17.50"]}])[0] == {"height": ["17.50"]}
        with pytest.raises(ValueError, match="row 0, attribute 'height'"):
            declared.validate([{"height": [text]}])
    with pytest.raises(ValueError, match="unreadable of 'height' must be 'nothing'"):
        pt.Record.from_toml(model.to_toml().replace('"nothing"', '"all"'))
