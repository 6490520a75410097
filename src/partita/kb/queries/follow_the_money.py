"""Entities as FollowTheMoney has them: a schema of its model, and properties that this schema has.

FollowTheMoney (https://followthemoney.tech) has properties with types: a country is a code of two letters, a date is
in ISO 8601, a phone number begins with "+". A value that is none, and an attribute that the model has no property for,
goes to ``notes``, with the attribute's name, so that nothing is lost and nothing is claimed.

A person is whoever has a property that only persons have, such as a date of birth; a legal entity, which is a person
or an organisation, whatever has an e-mail address and the like; everything else is a thing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from partita.kb.columns import Readers
from partita.kb.queries.answers import Entity
from partita.models.records.fragments import as_text

THING, LEGAL_ENTITY, PERSON = "Thing", "LegalEntity", "Person"  # each has what those before it have
EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?")
GENDERS = {"m": "male", "male": "male", "f": "female", "female": "female", "other": "other"}


def text(value: str) -> str | None:
    """Any text."""
    return value


def email(value: str) -> str | None:
    """An e-mail address, without what mail clients put before it."""
    found = value.strip().removeprefix("mailto:")
    return found.lower() if EMAIL.fullmatch(found) else None


def phone(value: str) -> str | None:
    """A number with its country code, in digits (E.164)."""
    found = re.sub(r"[\s()./-]", "", value)
    found = re.sub(r"^00", "+", found)
    return found if re.fullmatch(r"\+[1-9]\d{6,14}", found) else None


def url(value: str) -> str | None:
    """An address of the web."""
    found = value.strip()
    found = f"http://{found}" if found.lower().startswith("www.") else found
    return found if re.fullmatch(r"https?://[^\s/]+\.[^\s]+", found, re.IGNORECASE) else None


def date(value: str) -> str | None:
    """A year, a month or a day, in ISO 8601."""
    found = value.strip()
    return found if DATE.fullmatch(found) else None


def country(value: str) -> str | None:
    """A code of two letters (ISO 3166)."""
    found = value.strip().lower()
    return found if re.fullmatch("[a-z]{2}", found) else None


def gender(value: str) -> str | None:
    """One of those that the model knows."""
    return GENDERS.get(value.strip().lower())


def wikidata(value: str) -> str | None:
    """An identifier of Wikidata."""
    found = value.strip().upper()
    return found if re.fullmatch(r"Q\d+", found) else None


# Of each schema its properties that attributes can go to: what their values must be, and other names of attributes.
PROPERTIES: dict[str, dict[str, tuple[Callable[[str], str | None], str]]] = {
    THING: {
        "name": (text, "fullname label"),
        "alias": (text, "aliases aka othername othernames alsoknownas"),
        "address": (text, "fulladdress postaladdress"),
        "country": (country, "countrycode"),
        "summary": (text, ""),
        "description": (text, ""),
        "keywords": (text, "keyword tags tag"),
        "notes": (text, "note remarks comment comments"),
        "sourceUrl": (url, "sourcelink"),
        "wikipediaUrl": (url, "wikipedia"),
        "wikidataId": (wikidata, "wikidata qid"),
    },
    LEGAL_ENTITY: {
        "email": (email, "mail emailaddress emails"),
        "phone": (phone, "telephone tel phonenumber mobile cell mobilephone"),
        "website": (url, "url homepage web site"),
        "legalForm": (text, ""),
        "incorporationDate": (date, "incorporated founded foundingdate"),
        "dissolutionDate": (date, "dissolved"),
        "registrationNumber": (text, "companynumber registrationno"),
        "taxNumber": (text, "taxid tin"),
        "vatCode": (text, "vat vatnumber vatid"),
        "jurisdiction": (country, ""),
        "sector": (text, "industry"),
    },
    PERSON: {
        "firstName": (text, "givenname forename"),
        "middleName": (text, ""),
        "lastName": (text, "surname familyname"),
        "birthDate": (date, "born birthday dateofbirth dob"),
        "birthPlace": (text, "placeofbirth"),
        "deathDate": (date, "died dateofdeath"),
        "nationality": (country, ""),
        "citizenship": (country, ""),
        "gender": (gender, "sex"),
        "position": (text, "jobtitle occupation profession"),
    },
}
PLACES = {
    known: (schema, name, read)
    for schema, properties in PROPERTIES.items()
    for name, (read, others) in properties.items()
    for known in (name.lower(), *others.split())
}


def follow_the_money(entity: Entity, readers: Readers) -> dict[str, Any]:
    """An entity as FollowTheMoney has it."""
    properties: dict[str, list[str]] = {"name": [entity.name]} if entity.name else {}
    schemas, notes, sources = {THING}, [], set[str]()
    fragments = set(entity.fragments)  # what stands for a source that is not known
    for attribute, values in entity.properties.items():
        schema, name, read = PLACES.get(re.sub(r"[\W_]+", "", attribute).lower(), (THING, "", text))
        for value in values:
            sources.update(source for source in value.sources if source not in fragments)
            said = as_text(value.value) if readers[attribute].items(value.value) else ""
            fitting = read(said) if name else None
            if fitting:
                schemas.add(schema)
                kept = properties.setdefault(name, [])
                kept += [fitting] if fitting not in kept else []
            elif said:
                notes.append(f"{attribute}: {said}")
    if notes:
        properties["notes"] = properties.get("notes", []) + notes
    return {
        "id": entity.id,
        "caption": entity.name,
        "schema": next(schema for schema in (PERSON, LEGAL_ENTITY, THING) if schema in schemas),
        "properties": properties,
        "datasets": sorted(sources),
        "referents": entity.fragments,
    }
