"""People and companies that do not exist, for tests and benchmarks: four ways to name them, and typos.

Everything is drawn from a ``random.Random``, so that a seed makes the same people every time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

COLUMNS = ("name", "email", "phone", "city", "born")
Random = random.Random


class Name(NamedTuple):
    """A first and a last name; each may have several words."""

    first: str
    last: str

    @property
    def whole(self) -> str:
        """As it is written."""
        return f"{self.first} {self.last}"


def words(text: str) -> list[str]:
    """A list, written as a text."""
    return text.split()


ONSETS = words("b br c d dr f g gr h k l m n p r s st t tr v z")
VOWELS = words("a a e e i o o u ai ei")
CODAS = ["", "", "", "n", "r", "l", "s", "nd", "rt"]
# The most frequent first, as they are among people.
FIRSTS = words("""
    James Mary John Patricia Robert Jennifer Michael Linda David Elizabeth William Barbara Richard Susan
    Joseph Jessica Thomas Sarah Charles Karen Daniel Nancy Matthew Lisa Anthony Betty Mark Margaret Paul
    Sandra Steven Ashley Andrew Kimberly Kenneth Emily Joshua Donna George Michelle Kevin Carol Brian
    Amanda Edward Dorothy Ronald Melissa Timothy Deborah Jason Stephanie Jeffrey Rebecca Ryan Sharon Jacob
    Laura Gary Cynthia Nicholas Kathleen Eric Amy Jonathan Angela Stephen Shirley Larry Anna Justin Ruth
    Scott Brenda Brandon Pamela Benjamin Nicole Samuel Katherine
""")
LASTS = words("""
    Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez Hernandez Lopez Gonzalez
    Wilson Anderson Thomas Taylor Moore Jackson Martin Lee Perez Thompson White Harris Sanchez Clark
    Ramirez Lewis Robinson Walker Young Allen King Wright Scott Torres Nguyen Hill Flores Green Adams
    Nelson Baker Hall Rivera Campbell Mitchell Carter Roberts Gomez Phillips Evans Turner Diaz Parker Cruz
    Edwards Collins Reyes Stewart Morris Morales Murphy Cook Rogers Gutierrez Ortiz Morgan Cooper Peterson
    Bailey Reed Kelly Howard Ramos Kim Cox Ward Richardson Watson Brooks Chavez Wood James Bennett Gray
    Mendoza Ruiz Hughes Price Alvarez Castillo Sanders Patel Myers Long
""")
GIVEN = words("""
    María José Juan Antonio Manuel Carmen Ana Francisco Luis Isabel Javier Laura Carlos Lucía Miguel Marta
    Pilar Rafael Elena Pedro Sofía Ángel Teresa Fernando Rosa Jorge Paula Alberto Cristina Álvaro Raquel
    Diego
""")
FAMILY = words("""
    García Fernández González Rodríguez López Martínez Sánchez Pérez Gómez Martín Jiménez Hernández Ruiz
    Díaz Moreno Muñoz Álvarez Romero Gutiérrez Alonso Navarro Torres Domínguez Ramos Vázquez Ramírez Gil
    Serrano Morales Molina Blanco Suárez Castro Ortega Delgado Ortiz Marín Rubio Núñez Medina Sanz
    Castillo Iglesias Cortés Garrido Santos Guerrero Lozano Cano Cruz Méndez Flores Prieto Herrera Peña
    León Márquez Cabrera Gallego Calvo
""")
LEADS = words("""
    Northern Pacific United General Golden Blue Silver Royal First National Premier Global Summit River
    Harbour Valley Mountain Eagle Phoenix Atlas Apex Delta Sterling Crown Liberty Metro Coastal Central
    Modern
""")
TRADES = words("""
    Logistics Foods Electric Motors Textiles Printing Insurance Software Medical Steel Paper Transport
    Energy Chemicals Furniture Glass Plumbing Security Dairy Optics Timber Travel Marine Ceramics Tools
    Bakery
""")
FORMS = ["Ltd", "Inc", "GmbH", "and Sons", "Group", "Partners", "Company", "Holdings"]
CITIES = words("""
    London Birmingham Leeds Glasgow Sheffield Bradford Liverpool Edinburgh Manchester Bristol Wakefield
    Cardiff Coventry Nottingham Leicester Sunderland Belfast Newcastle Brighton Hull Plymouth Stoke
    Wolverhampton Derby Swansea Southampton Salford Aberdeen Westminster Portsmouth York Peterborough
    Dundee Lancaster Oxford Newport Preston Norwich Chester Cambridge Salisbury Exeter Gloucester Lisburn
    Chichester Winchester Londonderry Carlisle Worcester Bath Durham Lincoln Hereford Armagh Inverness
    Stirling Perth Truro Ely Ripon
""")
MAIL = ["mail.example", "post.example", "inbox.example", "letters.example"]
STREETS = words("""
    High Church Park Station Mill Victoria Green Manor Kings Queens School North South Bridge Chapel
""")


def zipf(rng: Random, texts: Sequence[str]) -> str:
    """One of some texts, the k-th with a chance that falls like 1/k."""
    return rng.choices(texts, [1.0 / k for k in range(1, len(texts) + 1)])[0]


def syllables(rng: Random, least: int = 2, most: int = 3) -> str:
    """A word that nobody has heard."""
    parts = (
        rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS) for _ in range(rng.randint(least, most))
    )
    return "".join(parts).capitalize()


def invented(rng: Random) -> Name:
    """Two words of syllables: hardly any two people share one."""
    return Name(syllables(rng), syllables(rng))


def common(rng: Random) -> Name:
    """Frequent first and last names: many people share one, some both."""
    return Name(zipf(rng, FIRSTS), zipf(rng, LASTS))


def double(rng: Random) -> Name:
    """One or two given names and two family names, with accents."""
    given = rng.sample(GIVEN, rng.choice((1, 1, 2)))
    return Name(" ".join(given), f"{zipf(rng, FAMILY)} {zipf(rng, FAMILY)}")


def company(rng: Random) -> Name:
    """The name of a company: several words, all but one of them of a short list."""
    lead = [syllables(rng)] if rng.random() < 0.5 else rng.sample(LEADS, rng.choice((1, 2)))
    return Name(" ".join(lead), f"{zipf(rng, TRADES)} {zipf(rng, FORMS)}")


NAMES: dict[str, Callable[[Random], Name]] = {
    "invented": invented,
    "common": common,
    "double": double,
    "companies": company,
}
HUMAN = ("invented", "common", "double")


def phone(rng: Random) -> str:
    """A number of ten digits."""
    return f"0{rng.randrange(10**9, 10**10)}"


def birth(rng: Random, first: int = 1930, last: int = 2005) -> str:
    """A date, as YYYY-MM-DD."""
    return f"{rng.randint(first, last)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def address(rng: Random) -> str:
    """A house in a street of a city."""
    return f"{rng.randint(1, 200)} {zipf(rng, STREETS)} Street, {zipf(rng, CITIES)}"


def email(rng: Random, name: Name, domain: str | None = None) -> str:
    """An address made from a name; with a provider, a number makes it one's own."""
    parts = words(name.whole.lower())
    if domain is None:
        return f"{parts[0]}.{parts[-1]}{rng.randrange(10_000)}@{rng.choice(MAIL)}"
    return f"{'.'.join(parts)}@{domain}"


def person(rng: Random, names: str) -> dict[str, str]:
    """Somebody, in all of ``COLUMNS``."""
    name = NAMES[names](rng)
    city = zipf(rng, CITIES)
    return dict(zip(COLUMNS, (name.whole, email(rng, name), phone(rng), city, birth(rng)), strict=True))


def typo(rng: Random, text: str) -> str:
    """A text with one letter or digit missing, doubled, replaced, or swapped with the next."""
    k = rng.randrange(len(text))
    other = rng.choice("0123456789") if text[k].isdigit() else rng.choice("abcdefghijklmnopqrstuvwxyz")
    ways = [text[:k] + text[k + 1 :], text[:k] + text[k] + text[k:], text[:k] + other + text[k + 1 :]]
    swapped = text[:k] + text[k : k + 2][::-1] + text[k + 2 :]
    return rng.choice([*ways, swapped]) or text


def with_typos(rng: Random, record: dict[str, str], share: float) -> dict[str, str]:
    """A record with a typo in this share of its values, on average."""
    return {key: typo(rng, value) if rng.random() < share else value for key, value in record.items()}
