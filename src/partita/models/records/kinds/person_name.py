"""Names of people."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from partita.models.records.folding import folded, words_of
from partita.models.records.fragments import as_text
from partita.models.records.kinds.column import Column
from partita.models.records.kinds.text import Text
from partita.models.registry import register

MOST_WORDS = 4
AFTER = {
    "jr",
    "sr",
    "ii",
    "iii",
    "iv",
    "phd",
    "md",
    "esq",
    "junior",
    "senior",
    "mba",
    "dds",
    "cpa",
}  # what follows a name and a comma
DOCTOR = re.compile(r"(?i)\bph\.\s?d\b\.?")
OF_PEOPLE = {"first", "last", "middle", "given", "family", "full", "maiden", "person", "christian"}
SURNAMES = {
    "surname",
    "forename",
    "firstname",
    "lastname",
    "fullname",
    "givenname",
    "familyname",
    "middlename",
}
GIVEN = {  # first names and
    *("vorname", "prenom", "voornaam", "fornavn", "fornamn", "etunimi", "imie", "keresztnev"),
}
FAMILY = {  # last names, as columns are called elsewhere
    *(
        "nachname",
        "familienname",
        "apellido",
        "apellidos",
        "cognome",
        "sobrenome",
        "achternaam",
        "familienaam",
    ),
    *(
        "efternavn",
        "etternavn",
        "efternamn",
        "sukunimi",
        "nazwisko",
        "prijmeni",
        "vezeteknev",
        "soyad",
        "soyadi",
    ),
}
INITIAL = re.compile(r"(?:^|[\s.])[^\W\d_]\.(?=[\s.,]|[^\W\d_]|$)")
WITH_INITIALS = 0.1  # of the values, for what is called just "name" to be names of people


def is_name(text: str) -> bool:
    """Whether a text consists of few words, all of letters."""
    words = words_of(text)
    return len(words) <= MOST_WORDS and all(word.isalpha() for word in words)


@register
@dataclass(frozen=True)
class PersonName(Text):
    """Names of people, with the surname first and a comma, or last: "Smith, John" reads "john smith".

    Titles stay, for a Jr. and a Sr. are two people; initials are words of one letter.

    Parameters
    ----------
    agreement, weight, corpus, references
        See :class:`Attribute`.
    """

    kind: ClassVar[str] = "person_name"

    @classmethod
    def why(cls, column: Column) -> str:
        called = set(column.called)
        of_people = SURNAMES | GIVEN | FAMILY
        certain = called & of_people or ("name" in called and called & OF_PEOPLE)
        if certain and called <= of_people | OF_PEOPLE | {"name", "and", "of", "the"}:
            return column.mostly("words such as names of people, as its name says", is_name)
        # Towns, firms and films have names, too, but hardly initials.
        if column.called == ["name"] and sum(
            bool(INITIAL.search(text)) for text in column.texts
        ) >= WITH_INITIALS * len(column.texts):
            return column.mostly("words such as names of people, and many have initials", is_name)
        return ""

    def parse(self, raw: Any) -> str:
        text = as_text(raw)
        if "." in text:
            text = DOCTOR.sub("PhD", text)
        if "," not in text:
            return folded(text)
        parts = [folded(part) for part in text.split(",") if any(letter.isalpha() for letter in part)]
        names = [part for part in parts if not set(part.split(" ")) <= AFTER]
        if len(names) != 2:
            return folded(text)
        given = names[1].split(" ")
        after = [given.pop()] if len(given) > 1 and given[-1] in AFTER else []  # "Smith, John Jr."
        return " ".join([*given, names[0], *after, *(part for part in parts if part not in names)])
