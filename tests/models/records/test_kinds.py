"""Kinds that are recognised from the data: how they read, when they are chosen, and what is said of them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import partita as pt
from partita.models.records.folding import folded
from partita.models.records.kinds import Email, LongText, Noted, PersonName, Phone, PostalCode, Url
from partita.models.records.schema import kind_of
from partita.models.registry import KINDS
from tests.helpers.effort import examples

NEW = (Email, LongText, PersonName, Phone, PostalCode, Url)

# ---------------------------------------------------------------------- reading

SAME = {
    Email: [
        ["Ada.Lovelace@Engine.example", "ada.lovelace@engine.example", "Ada <ada.lovelace@engine.example>"],
        ["mailto:a@b.example", " A@B.example "],
    ],
    Phone: [
        [
            "212/265-5959",
            "(212) 265-5959",
            "+1 212 265 5959",
            "1-212-265-5959",
            "Tel. 212.265.5959",
            2122655959,
        ],
        ["020 7946 0001", "+44 20 7946 0001", "+44 (0)20 7946 0001", "0044 20 79460001"],
        ["+49 151 23456789", "0151 23456789"],
        ["212-265-5959 ext. 12", "(212) 265-5959 x12"],
    ],
    Url: [
        ["http://www.Example.com/a/b/", "https://example.com/a/b", "example.com/a/b", "www.example.com/a/b/"]
    ],
    PostalCode: [["N13 4PX", "n134px", "n13  4px"], ["10001-1234", "100011234"]],
    PersonName: [
        ["Smith, John", "John Smith", "JOHN SMITH", "smith,john"],
        ["Smith, J. R.", "J.R. Smith"],
        [
            "King, Martin Luther, Jr.",
            "King, Jr., Martin Luther",
            "Martin Luther King, Jr.",
            "Martin Luther King Jr",
        ],
        ["Zola, Émile", "emile zola"],
    ],
}
DIFFERENT = {
    Email: ["a.b@c.example", "ab@c.example", "a.b+tag@c.example"],
    Phone: ["212-265-5959", "312-265-5959", "212-265-5959 x1", "1-800-FLOWERS", "911"],
    Url: ["example.com/a", "example.com/b", "example.org/a"],
    PersonName: ["John Smith", "John Smith Jr.", "John Smith Sr.", "Dr. John Smith", "J. Smith"],
}


@pytest.mark.parametrize("kind", SAME)
def test_the_same_in_other_writing(kind):
    for values in SAME[kind]:
        assert len({kind().parse(value) for value in values}) == 1, values


@pytest.mark.parametrize("kind", DIFFERENT)
def test_what_differs_stays_different(kind):
    assert len({kind().parse(value) for value in DIFFERENT[kind]}) == len(DIFFERENT[kind])


def test_a_name_reads_as_it_is_said():
    assert PersonName().parse("Smith, John") == "john smith"
    assert PersonName().parse("Dr. J. Smith") == "dr j smith"


WRITING = st.text("aZé0129 @.,;:/-+()<>x#'ßﬁ٣\u1100\u1161\u0301\u00a0") | st.text()


@pytest.mark.parametrize("kind", NEW)
@examples(150)
@given(text=WRITING)
@example(text="+0012345")
@example(text="00000000")
@example(text="+1 1 212 265 5959")
@example(text="http://www.www.com")
@example(text="mailto:mailto:a@b.c")
@example(text="<a@b.c>")
@example(text="a, jr, b, jr")
@example(text="\u1100 \u1161")
def test_reading_is_idempotent_and_never_fails(kind, text):
    once = kind().parse(text)
    assert once
    assume(folded(folded(text)) == folded(text))  # it is not where an accent follows an apostrophe
    assert kind().parse(once) == once


# ---------------------------------------------------------------------- recognising


def made(kind, n=60):
    """A column of a kind, written as people do."""
    rng = np.random.default_rng(0)
    first, last = ["Ada", "Bob", "Cy", "Dee", "Émile"], ["Byron", "Smith", "Zola", "van Gogh", "O'Brien"]
    found = []
    for _ in range(n):
        one, other, digits = (
            str(rng.choice(first)),
            str(rng.choice(last)),
            "".join(map(str, rng.integers(2, 10, 10))),
        )
        found.append(
            {
                Email: f"{one[0]}.{other.split()[-1]}@site{digits[:2]}.example",
                Phone: [
                    f"({digits[:3]}) {digits[3:6]}-{digits[6:]}",
                    f"+1 {digits[:3]} {digits[3:6]} {digits[6:]}",
                ][int(digits[0]) % 2],
                Url: f"https://www.site{digits[:3]}.example/{one}",
                PostalCode: digits[:5],
                PersonName: [f"{one} {other}", f"{other}, {one}", f"{one[0]}. {other}"][int(digits[0]) % 3],
            }[kind]
        )
    return found


NAMED = {Email: "contact", Phone: "contact", Url: "page", PostalCode: "zip_code", PersonName: "name"}


@pytest.mark.parametrize("kind", NAMED)
def test_kinds_are_recognised(kind):
    values = made(kind)
    assert type(kind_of(values, NAMED[kind])) is kind
    assert type(kind_of(values[:57] + ["?!"] * 3, NAMED[kind])) is kind  # 95 %
    assert type(kind_of(values[:56] + ["?!"] * 4, NAMED[kind])) is pt.Text


@pytest.mark.parametrize("name", ["firstName", "last_name", "surname", "Full Name", "first and surname"])
def test_names_of_people_by_what_they_are_called(name):
    assert type(kind_of(["Ada", "Bob"] * 20, name)) is PersonName


ABROAD = ["+32 80 398 143", "0032 80398143", "080398143", "(080) 398143", "0475/12.34.56"]


@pytest.mark.parametrize(
    ("kind", "name", "values"),
    [
        (
            Email,
            "contact",
            ["Ada <ada@b.example>", "MAILTO:ada@b.example", "ada [at] b.example", "zoë@b.example"],
        ),
        (Phone, "contact", ABROAD),
        (Phone, "gsm", ABROAD[2:]),
        (Phone, "Telefoonnummer", ABROAD[2:]),
        (Phone, "N° de téléphone", ABROAD[2:]),
        (PersonName, "voornaam", ["Aino", "Bram"]),
        (PersonName, "Příjmení", ["Novák", "Novotná"]),
    ],
)
def test_they_are_recognised_as_people_abroad_write_them(kind, name, values):
    assert type(kind_of(values * 12, name)) is kind


NEAR_MISSES = {
    "towns": ("name", ["New York", "Paris, Texas", "Rome"] * 20),
    "firms": ("company name", ["J. Crew", "Smith and Sons", "R. Smith Ltd"] * 20),
    "products": ("product name", ["A. Pen", "B. Pencil"] * 20),
    "files": ("file_name", ["a.b", "c.d"] * 20),
    "films": ("title", ["Deep Impact", "Shine"] * 20),
    "long names": ("full name", ["The Society of the Friends of Something"] * 20),
    "names with digits": ("first name", ["r2d2", "c3po"] * 20),
    "codes by another name": ("code", ["10001", "94110"] * 20),
    "no codes": ("zip", ["a long way", "nowhere"] * 20),
    "numbers": ("size", ["2122655959", "3122655959"] * 20),
    "dates": ("phone", ["2001-02-03", "2004-05-06"] * 20),
    "numbers of orders": ("order", ["20012345", "0032123456"] * 20),
    "social security": ("number", ["123-45-6789", "987-65-4321"] * 20),
    "addresses of computers": ("host", ["192.168.100.1000", "10.0.0.1"] * 20),
    "books": ("isbn", ["0-306-40615-2", "978-3-16-148410-0"] * 20),
    "handles": ("user", ["@ada", "@bob"] * 20),
    "files and versions": ("page", ["setup.py", "v1.2.3"] * 20),
    "long texts": (
        "description",
        ["many words of which there are more than one would like to count here"] * 20,
    ),
}


@pytest.mark.parametrize("case", NEAR_MISSES)
def test_what_only_looks_like_it_stays_as_it_was(case):
    name, values = NEAR_MISSES[case]
    assert type(kind_of(values, name)) in (pt.Text, pt.Date)


# ---------------------------------------------------------------------- long texts


def test_of_long_texts_that_have_nothing_in_common_nothing_follows():
    texts = ["the first of all engines was made of brass", "quite another thing with other words"]
    for kind, holds in ((LongText, True), (pt.Text, False)):
        model = pt.Record(
            {"about": kind(corpus=pt.Text().with_corpus(dict.fromkeys(texts, 1)).corpus)}, rate=0.0
        )
        clusters = [[{"about": text}] for text in texts]
        apart, together = (
            sum(model.log_likelihood(clusters)),
            model.log_likelihood([clusters[0] + clusters[1]])[0],
        )
        assert bool(abs(together - apart) < 1e-12) is holds
        again = model.log_likelihood([[clusters[0][0]] * 2])[0] - 2.0 * model.log_likelihood(clusters[:1])[0]
        assert again > 0.5


# ---------------------------------------------------------------------- files

ALL = {kind: cls(weight=0.25) for kind, cls in KINDS.items()}


def test_all_kinds_survive_toml_and_json():
    model = pt.Record(ALL)
    assert pt.Record.from_toml(model.to_toml()).attributes == ALL
    noted = {kind: replace(attribute, noted=Noted("so", 9, 8, 7, 6)) for kind, attribute in ALL.items()}
    again = pt.Record.from_json(json.loads(json.dumps(pt.Record(noted).to_json())))
    assert again.attributes == ALL
    assert all(attribute.noted == Noted("so", 9, 8, 7, 6) for attribute in again.attributes.values())


def test_models_of_before_have_no_notes_and_bad_ones_are_refused():
    contents = pt.Record({"name": pt.Text()}).to_json()
    for wrong in ({"why": "so"}, {"why": 1} | dict.fromkeys(Noted._fields[1:], 1), 3):
        contents["attributes"]["name"]["noted"] = wrong
        with pytest.raises(ValueError, match="what was noted of it makes no sense"):
            pt.Record.from_json(contents)
    del contents["attributes"]["name"]["noted"]
    assert pt.Record.from_json(contents).attributes["name"].noted is None


# ---------------------------------------------------------------------- describing


def people():
    return [
        {"name": name, "email": email, "source": "crm", "key": f"k{k}"}
        for k, (name, email) in enumerate(zip(made(PersonName), made(Email), strict=True))
    ]


def test_a_description_says_why_and_what_is_odd():
    text = str(pt.Record.infer(people()).describe())
    assert "name: person_name\n    because all 60 values are words such as names of people, and many" in text
    assert "email: email\n    because all 60 values are e-mail addresses\n" in text
    assert "source: text\n" in text
    assert "all values are the same: it says nothing" in text
    assert "no value occurred twice among 60: it says something only by being alike" in text
    assert "mentioned by 100 % of the fragments, 60 distinct values" in text
    assert "Nothing has been learnt yet" in text


def test_a_description_says_what_was_learnt_and_survives_json():
    model = pt.Record.infer(people()).fit_prior(people())
    described = model.describe()
    assert repr(described) == str(described)
    assert str(pt.Record.from_json(json.loads(json.dumps(model.to_json()))).describe()) == str(described)
    found = {one.name: one for one in described.attributes}
    assert found["email"].same == model.attributes["email"].agreement[-1]
    assert found["source"].same_by_chance > 0.9
    assert found["email"].weight == model.attributes["email"].weight
    assert "An entity has" in str(described)
    json.dumps(described.to_json(), allow_nan=False)


def test_what_is_not_known_is_left_out():
    text = str(pt.Record({"name": pt.Text(), "note": None}).describe())
    assert (
        text
        == "name: text\nnote: ignore\n    it counts for nothing\nNothing has been learnt yet: fit_prior does."
    )
    assert str(pt.Record().describe()) == "Nothing has been learnt yet: fit_prior does."
