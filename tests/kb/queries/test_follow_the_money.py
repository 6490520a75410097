"""What is written for FollowTheMoney is what its model allows: schemas, names of properties, types of values."""

import re

import pytest

from partita.kb.columns import Readers
from partita.kb.queries.answers import Entity, Value
from partita.kb.queries.follow_the_money import PROPERTIES, follow_the_money

# The properties of the published model, by schema, with the types that restrict values.
THING = """name summary description country alias previousName weakAlias sourceUrl publisher publisherUrl alephUrl
    wikipediaUrl wikidataId keywords topics address addressEntity program notes proof indexText modifiedAt
    retrievedAt"""
LEGAL_ENTITY = """
    email phone website legalForm incorporationDate dissolutionDate taxStatus status sector
    classification registrationNumber idNumber taxNumber vatCode jurisdiction mainCountry opencorporatesUrl bvdId
    icijId okpoCode innCode dunsCode swiftBic parent subsidiaries passport"""
PERSON = """
    title firstName secondName middleName fatherName motherName lastName nameSuffix birthDate birthPlace
    birthCountry deathDate position nationality citizenship passportNumber socialSecurityNumber gender ethnicity
    height weight eyeColor hairColor appearance religion political education spokenLanguage"""
MODEL = {
    "Thing": {*re.findall(r"\w+", THING)},
    "LegalEntity": {*re.findall(r"\w+", THING + LEGAL_ENTITY)},
    "Person": {*re.findall(r"\w+", THING + LEGAL_ENTITY + PERSON)},
}
TYPES = {
    r"[a-z]{2}": ("country", "jurisdiction", "nationality", "citizenship"),
    r"\d{4}(-\d\d(-\d\d)?)?": ("birthDate", "deathDate", "incorporationDate", "dissolutionDate"),
    r"https?://\S+": ("website", "sourceUrl", "wikipediaUrl"),
    r"\+\d{7,15}": ("phone",),
    r"[^@\s]+@[^@\s]+\.[^@\s]+": ("email",),
    r"male|female|other": ("gender",),
    r"Q\d+": ("wikidataId",),
}


def entity(name="Ada", **said):
    properties = {
        attribute: [
            Value(value, 1.0, ["crm"]) for value in (values if isinstance(values, list) else [values])
        ]
        for attribute, values in said.items()
    }
    return Entity("E1", name, properties, ["a", "b"], 1.0)


def check(found):
    """That it is of the model; nothing else has names or values that it knows not."""
    assert set(found) == {"id", "caption", "schema", "properties", "datasets", "referents"}
    for name, values in found["properties"].items():
        assert name in MODEL[found["schema"]]
        assert values
        assert len(set(values)) == len(values)
        for pattern, names in TYPES.items():
            for value in values if name in names else ():
                assert re.fullmatch(pattern, value), f"{value!r} is no {name}"


def test_what_attributes_go_to_is_there():
    for schema, properties in PROPERTIES.items():
        assert properties.keys() <= MODEL[schema]


@pytest.mark.parametrize(
    ("said", "schema", "properties"),
    [
        ({"name": "Ada", "field": "engines"}, "Thing", {"name": ["Ada"], "notes": ["field: engines"]}),
        ({"E-Mail": ["Ada@X.org", "none"]}, "LegalEntity", {"email": ["ada@x.org"], "notes": ["E-Mail: none"]}),
        ({"phone": ["+44 20 7946 0958", "555-0114"]}, "LegalEntity",
         {"phone": ["+442079460958"], "notes": ["phone: 555-0114"]}),
        ({"first_name": "Ada", "born": "1815-12-10"}, "Person",
         {"firstName": ["Ada"], "birthDate": ["1815-12-10"]}),
        ({"born": "10 December 1815"}, "Thing", {"notes": ["born: 10 December 1815"]}),
        ({"country": ["GB", "England"]}, "Thing", {"country": ["gb"], "notes": ["country: England"]}),
        ({"url": ["www.ada.org/x", "ada"]}, "LegalEntity",
         {"website": ["http://www.ada.org/x"], "notes": ["url: ada"]}),
        ({"gender": ["F", "?"], "born": 1815}, "Person",
         {"gender": ["female"], "birthDate": ["1815"], "notes": ["gender: ?"]}),
        ({"notes": "kind", "age": 36}, "Thing", {"notes": ["kind", "age: 36"]}),
    ],
)  # fmt: skip
def test_an_entity(said, schema, properties):
    found = follow_the_money(entity(**said), Readers())
    check(found)
    assert found["schema"] == schema
    assert found["properties"] == {"name": ["Ada"]} | properties
    assert (found["referents"], found["datasets"]) == (["a", "b"], ["crm"])


def test_nothing_is_lost_and_no_name_is_invented():
    found = follow_the_money(entity(None, shade=["red", "blue"], alias="Countess"), Readers())
    check(found)
    assert found["properties"] == {"notes": ["shade: red", "shade: blue"], "alias": ["Countess"]}


def test_ids_of_fragments_are_no_datasets():
    one = Entity(**vars(entity()) | {"properties": {"name": [Value("Ada", 1.0, ["a", "crm"])]}})
    assert follow_the_money(one, Readers())["datasets"] == ["crm"]
