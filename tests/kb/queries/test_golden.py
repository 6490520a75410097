"""Golden records against a plain account of them; clusters as Splink has them."""

import csv
import json
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita.kb
from partita.kb.columns import Readers
from partita.kb.queries.golden import Rule, columns_of, golden_of, rules_of
from partita.models.records.kinds import Attribute, Email, PersonName, Phone, Url
from partita.models.records.schema import reader_from
from tests.helpers.effort import examples
from tests.helpers.people import fragments

ROWS, _ = fragments(40, seed=3)


class Row:
    """A fragment of an entity, as the store gives it."""

    def __init__(self, number, source, probability, properties):
        self.number, self.id, self.source, self.probability = number, f"f{number}", source, probability
        self.properties = json.dumps(properties)


NAMES = ["Ann Lee", "ann  lee", "ÁNN LEE", "Ann-Lee", "Anna Lee", "B", "12", "12.0", "-12"]
SAME = {
    "Ann Lee": "a",
    "ann  lee": "a",
    "ÁNN LEE": "a",
    "Ann-Lee": "a",
    "12": "n",
    "12.0": "n",
}  # others are alone
properties = st.fixed_dictionaries(
    {},
    optional={
        "name": st.lists(st.sampled_from(NAMES), min_size=1, max_size=2),
        "date": st.lists(
            st.sampled_from(["2026-01-02", "2026-01-01T09:30", "2025-12-31T23:59+02:00"]), max_size=1
        ),
    },
)
held = st.lists(
    st.tuples(st.sampled_from(["crm", "letters", None]), st.sampled_from([0.25, 0.5, 1.0]), properties),
    min_size=1,
    max_size=6,
)
WHEN = {"2026-01-02": 3, "2026-01-01T09:30": 2, "2025-12-31T23:59+02:00": 1}


def naive_best(rows, rule):
    """The best name, found by trying each; (value, probability, agree)."""
    said = [(row, name) for row in rows for name in json.loads(row.properties).get("name", [])]
    if not said:
        return None
    group = {name: SAME.get(name, name) for name in NAMES}

    def agreeing(name):
        return {row.number: row.probability for row, other in said if group[other] == group[name]}

    def moment(row):
        dates = json.loads(row.properties).get("date", []) if rule.by else []
        return (max((WHEN[d] for d in dates), default=0), row.number)

    allowed = said
    if rule.kind == "longest":
        allowed = [(r, n) for r, n in said if all(len(n) >= len(other) for _, other in said)]
    if rule.kind == "recent":
        allowed = [(r, n) for r, n in said if all(moment(r) >= moment(other) for other, _ in said)]
    if rule.kind == "source":
        for wanted in (*rule.by, ...):
            some = [(r, n) for r, n in said if wanted is ... or r.source == wanted]
            if some:
                allowed = some
                break

    def merit(place):
        name = allowed[place][1]
        written = sum(row.probability for row, other in said if other == name)
        return sum(agreeing(name).values()), -min(agreeing(name)), written, -place

    best = allowed[max(range(len(allowed)), key=merit)][1]
    mentions = len({row.number for row, _ in said})
    return best, round(sum(agreeing(best).values()) / mentions, 4), len(agreeing(best))


NOTHINGS = Readers({"*": Attribute(missing=("n/a",))})
RULES = [
    Rule(),
    Rule("longest"),
    Rule("recent"),
    Rule("recent", ("date",)),
    Rule("source", ("letters", "crm")),
    Rule("source", ("elsewhere",)),
]


@given(held=held, rule=st.sampled_from(RULES))
@examples(200)
def test_the_best_value_is_what_a_plain_search_finds(held, rule):
    rows = [Row(number, *each) for number, each in zip(count(1), held, strict=False)]
    found = golden_of(7, rows, {"name": rule})
    assert (found.id, found.fragments) == ("E7", len(rows))
    wanted = naive_best(rows, rule)
    if wanted is None:
        assert "name" not in found.values
    else:
        best = found.values["name"]
        assert (best.value, best.probability, best.agree) == wanted


def test_spelling_variants_count_together_and_are_shown_as_most_often_written():
    spelt = ["Zoe Bo", "Zoé Bo", "Zoé Bo", "Zara", "Zara"]
    rows = [Row(k, None, 1.0, {"name": [name]}) for k, name in enumerate(spelt)]
    best = golden_of(1, rows, {}).values["name"]
    assert (best.value, best.probability, best.agree) == ("Zoé Bo", 0.6, 3)


def test_what_says_nothing_never_wins():
    rows = [Row(k, None, 1.0, {"name": ["n/a"], "city": ["n/a"]}) for k in range(3)]
    rows.append(Row(3, None, 1.0, {"name": ["Ada"]}))
    values = golden_of(1, rows, {"name": Rule("recent")}, NOTHINGS).values
    assert values.keys() == {"name"}
    assert (values["name"].value, values["name"].probability) == ("Ada", 1.0)


@pytest.mark.parametrize(
    ("values", "best", "agree"),
    [
        (["NAN", "NAN", "Bob"], "NAN", 2),
        (["inf", "Bob", "Bob"], "Bob", 2),
        (["inf", "Infinity", "1e999", "Bob", "Bob"], "Bob", 2),
        (["12e3", "12000", "Bob", "Bob"], "Bob", 2),
        (["1_2", "12", "Bob", "Bob"], "Bob", 2),
        (["007", "7", "Bob", "Bob"], "Bob", 2),
        (["7.50", "7.5", "Bob"], "7.50", 2),
        (["red; blue", "green", "blue; Red"], "red; blue", 2),
    ],
)
def test_values_count_as_one_if_they_say_the_same(values, best, agree):
    rows = [Row(k, None, 1.0, {"x": [value]}) for k, value in enumerate(values)]
    found = golden_of(1, rows, {}, Readers(x=Attribute(separator="; "))).values["x"]
    assert (found.value, found.agree) == (best, agree)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Phone, ["2125551001", "(212) 555-1001", "+1 212 555 1001", "2125551009", "2125551009"]),
        (
            Email,
            ["ada@b.example", "mailto:Ada@b.example", "Ada <ada@b.example>", "a@b.example", "a@b.example"],
        ),
        (Url, ["b.example", "https://www.b.example/", "http://b.example", "c.example", "c.example"]),
        (PersonName, ["Ada Byron", "Byron, Ada", "ADA BYRON", "Ada King", "Ada King"]),
    ],
)
def test_what_a_kind_reads_as_the_same_agrees(kind, values):
    rows = [Row(k, None, 1.0, {"x": [value]}) for k, value in enumerate(values)]
    reader = reader_from({"kind": kind.kind})
    found = golden_of(1, rows, {}, Readers(x=reader)).values["x"]
    assert (found.value, found.agree) == (values[0], 3)


@pytest.mark.parametrize(
    ("dates", "latest"),
    [
        (["20260131", "2020-01-01"], 0),
        (["20200101", "20260131", "20250101"], 1),
        (["2", "10", "n/a"], 1),
        (["2026-01-02", "n/a", "2026-01-01"], 0),
    ],
)
def test_the_most_recent_date(dates, latest):
    rows = [Row(k, None, 1.0, {"x": [str(k)], "at": [date]}) for k, date in enumerate(dates)]
    found = golden_of(1, rows, {"x": Rule("recent", ("at",))}, NOTHINGS)
    assert found.values["x"].value == str(latest)


def test_dates_and_numbers_are_not_compared():
    rows = [Row(k, None, 1.0, {"x": ["y"], "at": [date]}) for k, date in enumerate(["2026-01-02", "17.5"])]
    with pytest.raises(ValueError, match=r"fragment 'f1', 'at': '17\.5' is a number, and other fragments"):
        golden_of(1, rows, {"x": Rule("recent", ("at",))})


def test_rules_that_cannot_be():
    there = ["name", "phone", "updated_at"], ["crm", "letters"]
    given = {"phone": "recent:updated_at", "name": "source:crm, letters"}
    assert rules_of(given, *there) == {
        "phone": Rule("recent", ("updated_at",)),
        "name": Rule("source", ("crm", "letters")),
    }
    for rule in ("newest", "longest:name", "source", "source:", "recent:a,b", "", "probable:x"):
        with pytest.raises(ValueError, match="is no rule for 'name'"):
            rules_of({"name": rule}, *there)
    with pytest.raises(ValueError, match="did you mean 'phone'"):
        rules_of({"phones": "recent"}, *there)
    with pytest.raises(ValueError, match="did you mean 'updated_at'"):
        rules_of({"phone": "recent:update_at"}, *there)
    with pytest.raises(
        ValueError, match=r"no fragment is from the source 'leters' .*; did you mean 'letters'"
    ):
        rules_of({"name": "source:crm,leters"}, *there)
    with pytest.raises(ValueError, match="there are none"):
        rules_of({"name": "source:crm"}, there[0], [])
    with pytest.raises(ValueError, match="fragment 'f0', 'date': 'last week' is neither"):
        golden_of(1, [Row(0, None, 1.0, {"name": ["A"], "date": ["last week"]})], {"name": RULES[3]})


def test_columns_do_not_collide():
    columns = columns_of(["id", "name", "name_agree"])
    named = [column for own in columns.values() for column in own]
    assert len(set(named)) == len(named)
    assert columns["name"] == ("name", "name_probability", "property name_agree")
    assert columns["id"][0] == "property id"


# ---------------------------------------------------------------------- of a knowledge base


@pytest.fixture
def kb(url):
    with partita.kb.open(url, n_particles=5) as kb:
        kb.add(ROWS)
        yield kb


def table(kb, path, what, **options):
    kb.export(path, what, **options)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_one_row_an_entity_as_the_fragments_have_it(kb, tmp_path):
    rows = table(kb, tmp_path / "golden.csv", "golden", rules={"name": "recent"})
    entities = {entity.id: entity for entity in kb.entities()}
    assert [row["id"] for row in rows] == list(entities)
    last = {}
    for row in ROWS:
        last[kb.entity_of(row["id"]).id] = row["properties"]["name"][0]
    for row, record in zip(rows, kb.golden({"name": "recent"}), strict=True):
        entity = entities[row["id"]]
        assert row["name"] == record.values["name"].value == last[entity.id]
        assert int(row["fragments"]) == record.fragments == len(entity.fragments)
        for attribute, best in record.values.items():
            assert best.value in [value.value for value in entity.properties[attribute]]
            assert (row[f"{attribute}_probability"], row[f"{attribute}_agree"]) == (
                str(best.probability),
                str(best.agree),
            )
    plain = table(kb, tmp_path / "plain.csv", "golden", plain=True)
    assert set(plain[0]) == {"id", "fragments", "probability", "name", "born", "place", "occupation"}


def test_clusters_have_the_columns_of_splink(kb, tmp_path):
    rows = table(kb, tmp_path / "clusters.csv", "clusters")
    assert list(rows[0]) == ["unique_id", "cluster_id", "match_probability"]
    found = {}
    for row in rows:
        found.setdefault(row["cluster_id"], []).append(row["unique_id"])
        assert 0.0 <= float(row["match_probability"]) <= 1.0
    assert found == {entity.id: entity.fragments for entity in kb.entities()}
    rows = table(kb, tmp_path / "clusters.csv", "clusters", with_fields=True)
    for row, given_row in zip(rows, ROWS, strict=True):
        assert (row["unique_id"], row["source"]) == (given_row["id"], given_row["source"])
        assert row["name"] == given_row["properties"]["name"][0]


@pytest.mark.parametrize(
    ("what", "options", "first"),
    [
        ("golden", {"plain": True}, ["id", "fragments", "probability"]),
        ("clusters", {"with_fields": True}, ["unique_id", "cluster_id", "match_probability", "source"]),
        ("entities", {}, ["id", "name", "probability", "fragments"]),
    ],
)
def test_columns_are_in_the_order_of_the_schema_whichever_row_comes_first(
    url, tmp_path, what, options, first
):
    with partita.kb.open(url, n_particles=5) as kb:
        kb.add(
            [
                {"id": "1", "first": "Ann", "city": "Oslo", "phone": "1"},
                {"id": "2", "phone": "2", "first": "Bo"},
            ]
        )
        kb.export(tmp_path / "table.csv", what, entities=[kb.entity_of("2").id], **options)
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        assert next(csv.reader(file)) == [*first, "first", "city", "phone"]


def test_options_go_with_their_export(kb, tmp_path):
    for options in ({"rules": {"name": "recent"}}, {"plain": True}, {"with_fields": True}):
        with pytest.raises(ValueError, match="goes with an export of"):
            kb.export(tmp_path / "x.csv", "entities", **options)
    assert not (tmp_path / "x.csv").exists()


def test_a_number_stays_one_and_a_doubtful_fragment_says_so():
    record = golden_of(1, [Row(1, None, 0.5, {"n": [3]})], {})
    assert (record.values["n"].value, record.values["n"].probability) == (3, 0.5)
