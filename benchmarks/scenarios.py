"""Data on which everybody knows what is right, and what must hold there.

A scenario is a function of a seed; the seed draws everything and also says how people are named, in turn
(:func:`names_of`). ``CASES`` has all of them, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from itertools import combinations
from random import Random
from typing import Any, NamedTuple

import numpy as np

from benchmarks import people as draw
from benchmarks.people import COLUMNS

MOST_ROWS = 4_000
PEOPLE = (20, 100, 500, 2000)
COPIES = (2, 3, 5, 20)
TYPOS = 0.1  # of the values, where there are typos
Record = dict[str, Any]


class Rule(NamedTuple):
    """What must hold.

    whole: the least share of people whose rows are all in one cluster. pure: the least share of people who
    are with nobody else, unless their rows say the same, so that nobody could tell them apart.
    """

    whole: float
    pure: float


class Scenario(NamedTuple):
    """Records, whose they are, who cannot be told apart, and what must hold."""

    records: list[Record]
    truth: np.ndarray
    alike: np.ndarray  # the same for people whose rows say the same
    rule: Rule


class Verdict(NamedTuple):
    """What came of a scenario."""

    whole: float
    pure: float
    people: int
    clusters: int
    holds: bool


COPIED = Rule(whole=0.99, pure=1.0)
STRANGE = Rule(whole=1.0, pure=0.99)
CLEAR = Rule(whole=0.99, pure=0.99)
SPOILT = Rule(whole=0.95, pure=0.95)  # where there are typos


def judge(scenario: Scenario, labels: Iterable[int]) -> Verdict:
    """Compare a clustering with what must hold."""
    found, truth, alike = np.asarray(labels), scenario.truth, scenario.alike
    persons = np.unique(truth)
    whole = np.mean([len(np.unique(found[truth == one])) == 1 for one in persons])
    mixed = [one for one in np.unique(found) if len(np.unique(alike[found == one])) > 1]
    pure = 1.0 - len(np.unique(truth[np.isin(found, mixed)])) / len(persons)
    holds = bool(whole >= scenario.rule.whole and pure >= scenario.rule.pure)
    return Verdict(float(whole), float(pure), len(persons), len(np.unique(found)), holds)


def names_of(seed: int, human: bool = False) -> str:
    """How people are named: in turn, seed by seed. Where they have families, they are no companies."""
    ways = draw.HUMAN if human else tuple(draw.NAMES)
    return ways[seed % len(ways)]


def shuffled(rng: Random, rows: list[tuple[Record, int]], rule: Rule) -> Scenario:
    """The scenario of rows and their people, in a random order."""
    rng.shuffle(rows)
    said: dict[int, set[Hashable]] = {}
    for record, one in rows:
        said.setdefault(one, set()).add(tuple(sorted(record.items(), key=str)))
    codes: dict[Hashable, int] = {}
    alike = [codes.setdefault(frozenset(said[one]), len(codes)) for _, one in rows]
    return Scenario([record for record, _ in rows], np.array([one for _, one in rows]), np.array(alike), rule)


# ---------------------------------------------------------------------- copies and strangers


def copies(seed: int, columns: tuple[str, ...] = COLUMNS, n_people: int = 100, n_copies: int = 2) -> Scenario:
    """People with some verbatim rows each, of some of the columns: each is one."""
    rng = Random(f"copies {seed}")
    everybody = [draw.person(rng, names_of(seed)) for _ in range(n_people)]
    rows = [
        ({column: someone[column] for column in columns}, one)
        for one, someone in enumerate(everybody)
        for _ in range(n_copies)
    ]
    return shuffled(rng, rows, COPIED)


def strangers(seed: int, columns: tuple[str, ...] = COLUMNS, n_people: int = 100) -> Scenario:
    """Every row is somebody else, and no two say the same: all stay alone."""
    rng = Random(f"strangers {seed}")
    rows: dict[tuple[str, ...], Record] = {}
    while len(rows) < n_people:
        someone = draw.person(rng, names_of(seed))
        row = {column: someone[column] for column in columns}
        rows.setdefault(tuple(row.values()), row)
    return shuffled(rng, [(row, one) for one, row in enumerate(rows.values())], STRANGE)


def with_column(make: Callable[..., Scenario], column: str, value: Callable[[int], Any]) -> Any:
    """A scenario with one more column, which says nothing."""

    def made(seed: int, **options: Any) -> Scenario:
        plain = make(seed, **options)
        records = [record | {column: value(row)} for row, record in enumerate(plain.records)]
        return plain._replace(records=records)

    return made


def empty_but(seed: int, column: str, n_people: int = 100) -> Scenario:
    """Two rows each, with all columns, of which one is filled in."""
    plain = copies(seed, (column,), n_people, 2)
    nothing = dict.fromkeys(COLUMNS, "" if seed % 2 else None)
    return plain._replace(records=[nothing | record for record in plain.records])


def few(seed: int) -> Scenario:
    """Ten rows: three people twice, and four others."""
    plain = copies(seed, COLUMNS, 3, 2)
    others = strangers(seed, COLUMNS, 4)
    rows = [
        *zip(plain.records, plain.truth.tolist(), strict=True),
        *zip(others.records, (3 + others.truth).tolist(), strict=True),
    ]
    return shuffled(Random(f"few {seed}"), rows, COPIED)


def single(seed: int) -> Scenario:
    """One row."""
    return strangers(seed, COLUMNS, 1)


# ---------------------------------------------------------------------- people who have much in common


def several_rows(rng: Random, someone: Record, one: int, typos: float) -> list[tuple[Record, int]]:
    """One to three rows of a person."""
    return [(draw.with_typos(rng, someone, typos), one) for _ in range(rng.randint(1, 3))]


def households(seed: int, n_people: int = 99) -> Scenario:
    """Three people with one surname, address and phone; own first names and birth dates. They stay three."""
    rng, rows = Random(f"households {seed}"), []
    for home in range(n_people // 3):
        shared = {
            "last_name": new_name(rng, seed).last,
            "address": draw.address(rng),
            "phone": draw.phone(rng),
        }
        firsts: list[str] = []
        while len(firsts) < 3:
            first = new_name(rng, seed).first
            firsts += [first] if first not in firsts else []
        for k, first in enumerate(firsts):
            someone = {"first_name": first, **shared, "born": draw.birth(rng)}
            rows += several_rows(rng, someone, 3 * home + k, TYPOS)
    return shuffled(rng, rows, SPOILT)


def fathers_and_sons(seed: int, n_people: int = 100, own_column: bool = False) -> Scenario:
    """Jr and Sr: one name and address; other birth dates and suffixes, in the name or in a column."""
    rng, rows = Random(f"fathers {seed}"), []
    for family in range(n_people // 2):
        name, home, year = new_name(rng, seed).whole, draw.address(rng), rng.randint(1930, 1965)
        for k, suffix in enumerate(("Sr", "Jr")):
            called = {"name": name, "suffix": suffix} if own_column else {"name": f"{name} {suffix}"}
            born = draw.birth(rng, year + 30 * k, year + 30 * k)
            rows += several_rows(rng, {**called, "address": home, "born": born}, 2 * family + k, 0.0)
    return shuffled(rng, rows, CLEAR)


def colleagues(seed: int, n_people: int = 100) -> Scenario:
    """Ten people at a time with one company, e-mail domain and city. They stay ten."""
    rng, rows, names = Random(f"colleagues {seed}"), [], set[str]()
    for one in range(n_people):
        if one % 10 == 0:
            firm, city, names = draw.company(rng), draw.zipf(rng, draw.CITIES), set()
        while (name := new_name(rng, seed)).whole in names:
            continue
        names.add(name.whole)
        work = {"company": firm.whole, "email": draw.email(rng, name, domain_of(firm)), "city": city}
        rows += several_rows(rng, {"name": name.whole, **work}, one, TYPOS)
    return shuffled(rng, rows, SPOILT)


def two_employers(seed: int, n_people: int = 100) -> Scenario:
    """One name, phone and birth date; two companies and e-mail addresses. Each is one."""
    rng, rows = Random(f"employers {seed}"), []
    firms = [draw.company(rng) for _ in range(max(n_people // 5, 2))]
    for one in range(n_people):
        name = new_name(rng, seed)
        someone = {"name": name.whole, "phone": draw.phone(rng), "born": draw.birth(rng)}
        for firm in rng.sample(firms, 2):
            work = {"company": firm.whole, "email": draw.email(rng, name, domain_of(firm))}
            rows += [(someone | work, one)] * rng.randint(1, 2)
    return shuffled(rng, rows, CLEAR)


def new_name(rng: Random, seed: int) -> draw.Name:
    """The name of somebody, in the way of this seed."""
    return draw.NAMES[names_of(seed, human=True)](rng)


def domain_of(firm: draw.Name) -> str:
    """Where a company has its e-mail."""
    return f"{firm.whole.lower().replace(' ', '')}.example"


# ---------------------------------------------------------------------- all of them


def sizes() -> list[tuple[int, int]]:
    """Numbers of people and of copies, with fewer people where there would be too many rows."""
    return sorted({(min(n, MOST_ROWS // k), k) for n in PEOPLE for k in COPIES})


def choices() -> list[tuple[str, ...]]:
    """Every choice of one to five columns."""
    return [chosen for k in range(1, len(COLUMNS) + 1) for chosen in combinations(COLUMNS, k)]


def copies_of(columns: tuple[str, ...], n_people: int, n_copies: int) -> tuple[str, Callable[..., Scenario]]:
    """One case of verbatim rows."""
    title = f"copies of {'+'.join(columns)}, {n_people} x {n_copies}"
    return title, partial(copies, columns=columns, n_people=n_people, n_copies=n_copies)


def row_number(row: int) -> str:
    """A value that no other row has."""
    return f"R-{row:06}"


def constant(_row: int) -> str:
    """A value that every row has."""
    return "active"


CASES: dict[str, Callable[..., Scenario]] = {
    "strangers": strangers,
    "strangers, name": partial(strangers, columns=("name",)),
    "strangers, name+born": partial(strangers, columns=("name", "born")),
    "strangers, name+email+phone": partial(strangers, columns=("name", "email", "phone")),
    "households": households,
    "Jr and Sr": fathers_and_sons,
    "Jr and Sr, own column": partial(fathers_and_sons, own_column=True),
    "colleagues": colleagues,
    "two employers": two_employers,
    "ten rows": few,
    "one row": single,
    **{f"empty but {column}": partial(empty_but, column=column) for column in COLUMNS},
    "copies, constant column": with_column(copies, "status", constant),
    "strangers, constant column": with_column(strangers, "status", constant),
    "households, constant column": with_column(households, "status", constant),
    "copies, unique column": with_column(copies, "row", row_number),
    "strangers, unique column": with_column(strangers, "row", row_number),
    "households, unique column": with_column(households, "row", row_number),
}
COPY_CASES = dict(copies_of(columns, *size) for size in sizes() for columns in choices())
USUAL_SIZES = ((20, 3), (20, 20), (100, 2))
SOME_COPIES = dict(copies_of(columns, *size) for size in USUAL_SIZES for columns in choices())
LARGE: dict[str, Callable[..., Scenario]] = {  # the largest runs, of a few choices
    **dict(
        copies_of(columns, *size)
        for size in ((500, 5), (2000, 2), (200, 20))
        for columns in (("name",), ("name", "city"), ("email", "phone"), COLUMNS)
    ),
    "strangers, 2000": partial(strangers, n_people=2000),
    "households, 600": partial(households, n_people=600),
}
ALL: dict[str, Callable[..., Scenario]] = {**CASES, **COPY_CASES, **LARGE}
