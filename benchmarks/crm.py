"""The story of a customer database: from an export to golden records, with a human who answers the questions.

python -m benchmarks.crm [--seeds 3] [--questions 150]
python -m benchmarks.crm --write crm.csv truth.csv          the first export and whose its rows are, to try it oneself

Some 400 rows of four systems about people who are easily taken for one another: families at one address, fathers and
sons of one name, colleagues behind one switchboard, namesakes; and about people who are easily taken for several:
nicknames, changed e-mail addresses and telephones, married names, initials, typos, empty cells. A knowledge base is
built of them, somebody who knows the truth answers what ``uncertain`` asks, and golden records are exported. A *silly
merge* is an entity that holds rows of several people.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import partita.kb
from benchmarks import people as draw
from benchmarks.common import keep, show
from partita.metrics import bcubed

SYSTEMS = ("crm", "newsletter", "shop", "support")
COLUMNS = (
    "id",
    "first_name",
    "last_name",
    "email",
    "phone",
    "street",
    "city",
    "postcode",
    "born",
    "company",
    "source",
)
FAMILIES, PAIRS, COMPANIES, ALONE = 22, 6, 8, 60  # PAIRS: of a father and a son who share a name
NICKNAMES = {
    "James": "Jim",
    "Robert": "Bob",
    "William": "Bill",
    "Richard": "Dick",
    "Thomas": "Tom",
    "Michael": "Mike",
    "Elizabeth": "Liz",
    "Margaret": "Peggy",
    "Patricia": "Pat",
    "Jennifer": "Jenny",
    "Edward": "Ted",
    "Katherine": "Kate",
    "Deborah": "Debbie",
    "Andrew": "Andy",
    "Anthony": "Tony",
    "Daniel": "Dan",
    "Matthew": "Matt",
    "Nicholas": "Nick",
    "Rebecca": "Becky",
    "Steven": "Steve",
    "Susan": "Sue",
    "Timothy": "Tim",
}
IDENTIFYING = ("last_name", "email", "born")
MATTERS = 0.005  # wrong pairs that an answer must be expected to remove, as the command line has it
Row = dict[str, str]


class Customers(NamedTuple):
    """Rows of an export, and whose each is, by its id."""

    rows: list[Row]
    truth: dict[str, int]


# ---------------------------------------------------------------------- the people


def household(rng: Random) -> dict[str, str]:
    """Where somebody lives, and the telephone there."""
    street = f"{rng.randint(1, 200)} {draw.zipf(rng, draw.STREETS)} Street"
    first, last, end = rng.choices("ABCDEFGH", k=3)
    code = f"{first}{rng.randint(1, 99)} {rng.randint(1, 9)}{last}{end}"
    return {
        "street": street,
        "city": draw.zipf(rng, draw.CITIES),
        "postcode": code,
        "home phone": draw.phone(rng),
    }


def somebody(rng: Random, last: str, home: dict[str, str], first: str = "", born: str = "") -> dict[str, str]:
    """A person, with a mobile telephone and an e-mail address of their own."""
    first = first or draw.zipf(rng, draw.FIRSTS)
    own = {"first_name": first, "last_name": last, "born": born or draw.birth(rng), "company": ""}
    own |= {"phone": draw.phone(rng), "email": draw.email(rng, draw.Name(first, last))}
    return own | home


def family(rng: Random) -> list[dict[str, str]]:
    """Parents and children at one address, with different first names."""
    last, home = draw.zipf(rng, draw.LASTS), household(rng)
    firsts = rng.sample(draw.FIRSTS, rng.randint(2, 4))
    years = [(1950, 1975), (1950, 1975), (1985, 2005), (1985, 2005)]
    return [
        somebody(rng, last, home, first, draw.birth(rng, *when))
        for first, when in zip(firsts, years, strict=False)
    ]


def senior_and_junior(rng: Random) -> list[dict[str, str]]:
    """A father and a son of one name, at one address."""
    last, home, first = draw.zipf(rng, draw.LASTS), household(rng), draw.zipf(rng, draw.FIRSTS)
    father = somebody(rng, f"{last} Sr", home, first, draw.birth(rng, 1935, 1960))
    son = somebody(rng, f"{last} Jr", home, first, draw.birth(rng, 1965, 1990))
    return [father, son]


def colleagues(rng: Random) -> list[dict[str, str]]:
    """People of one company, who share its address and switchboard, and the end of their e-mail addresses."""
    name = draw.company(rng).whole
    domain = f"{name.split()[0].lower()}.example"
    office = household(rng)
    found = []
    for _ in range(rng.randint(2, 4)):
        one = somebody(rng, draw.zipf(rng, draw.LASTS), office) | {
            "company": name,
            "phone": office["home phone"],
        }
        found.append(one | {"email": draw.email(rng, draw.Name(one["first_name"], one["last_name"]), domain)})
    return found


def everybody(rng: Random, size: int) -> list[dict[str, str]]:
    """All customers, so many times as many as usual."""
    groups = [family(rng) for _ in range(size * FAMILIES)]
    groups += [senior_and_junior(rng) for _ in range(size * PAIRS)]
    groups += [colleagues(rng) for _ in range(size * COMPANIES)]
    groups += [[somebody(rng, draw.zipf(rng, draw.LASTS), household(rng))] for _ in range(size * ALONE)]
    return [one for group in groups for one in group]


# ---------------------------------------------------------------------- the rows


def rows_of(rng: Random, person: dict[str, str]) -> list[Row]:
    """What some of the systems have about one person."""
    changed = dict(person)  # what came later
    if rng.random() < 0.3:
        changed["email"] = draw.email(rng, draw.Name(person["first_name"], person["last_name"].split()[0]))
    if rng.random() < 0.15:
        changed["phone"] = draw.phone(rng)
    systems = rng.sample(SYSTEMS, rng.choice((1, 2, 2, 3, 4)))
    return [
        row_of(rng, changed if k and rng.random() < 0.5 else person, each) for k, each in enumerate(systems)
    ]


def row_of(rng: Random, person: dict[str, str], system: str) -> Row:
    """What one system has: with nicknames, the telephone at home, typos and empty cells."""
    row = {column: person.get(column, "") for column in COLUMNS} | {"source": system}
    if rng.random() < 0.3 and row["first_name"] in NICKNAMES:
        row["first_name"] = NICKNAMES[row["first_name"]]
    elif rng.random() < 0.07:
        row["first_name"] = f"{row['first_name'][0]}."
    if rng.random() < 0.3:
        row["phone"] = person["home phone"]
    if rng.random() < 0.5:  # a suffix is often left out
        row["last_name"] = row["last_name"].removesuffix(" Jr").removesuffix(" Sr")
    for column in ("email", "phone", "street", "born", "company"):
        if rng.random() < 0.25:
            row[column] = ""
    if not row["email"] and not row["phone"] and not row["born"]:  # by which nobody could tell
        row["email"] = person["email"]
    if not row["street"]:
        row["postcode"] = row["city"] = ""
    for column in ("first_name", "last_name", "email", "street"):
        if row[column] and rng.random() < 0.05:
            row[column] = draw.typo(rng, row[column])
    return row


def customers(seed: int, size: int = 1) -> Customers:
    """An export of some 400 rows, or a multiple of that, in random order."""
    rng = Random(f"crm {seed}")
    found = [(row, one) for one, person in enumerate(everybody(rng, size)) for row in rows_of(rng, person)]
    rng.shuffle(found)
    rows = [row | {"id": f"c{k}"} for k, (row, _) in enumerate(found, 1)]
    return Customers(rows, {row["id"]: one for row, (_, one) in zip(rows, found, strict=True)})


def write(rows: list[Row], path: Path) -> None:
    """The export, as a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


# ---------------------------------------------------------------------- the story


class Quality(NamedTuple):
    """How good the entities are."""

    entities: int
    f1: float
    silly_merges: int  # entities that hold rows of several people
    divided: int  # people whose rows are of several entities


def quality(kb: Any, truth: dict[str, int]) -> Quality:
    """The entities beside the truth."""
    entities = [entity.fragments for entity in kb.entities()]
    labels = {id: k for k, members in enumerate(entities) for id in members}
    score = bcubed([truth[id] for id in labels], list(labels.values()))
    homes = defaultdict(set)
    for id, label in labels.items():
        homes[truth[id]].add(label)
    silly = sum(len({truth[id] for id in members}) > 1 for members in entities)
    return Quality(len(entities), score.f1, silly, sum(len(home) > 1 for home in homes.values()))


class Answered(NamedTuple):
    """What was answered."""

    confirmed: int
    separated: int
    until_clean: int | None  # answers after which no silly merge was left; None if there always was one


def answer(kb: Any, truth: dict[str, int], most: int) -> Answered:
    """Answer questions truthfully, the most useful first, until none is worth it."""
    said: Counter[str] = Counter()
    clean = None
    while said.total() < most:
        questions = kb.uncertain(1)
        if not questions or questions[0].value < MATTERS:
            break
        one = questions[0]
        kind = "confirm" if truth[one.first] == truth[one.second] else "separate"
        getattr(kb, kind)(one.first, one.second, user="the one who knows")
        said[kind] += 1
        silly = quality(kb, truth).silly_merges
        clean = None if silly else said.total() if clean is None else clean
    return Answered(said["confirm"], said["separate"], clean)


def right_records(kb: Any, found: Customers) -> float:
    """The share of people with one golden record, in which name, date of birth and e-mail address are their own."""
    homes = defaultdict(set)
    for entity in kb.entities():
        for id in entity.fragments:
            homes[found.truth[id]].add(entity.id)
    golden = {record.id: record.values for record in kb.golden()}
    own: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in found.rows:
        for column in IDENTIFYING:
            own[found.truth[row["id"]]][column].add(row[column])
    right = 0
    for one, entities in homes.items():
        values = golden[next(iter(entities))]
        same = all(values[c].value in own[one][c] for c in IDENTIFYING if c in values)
        right += len(entities) == 1 and same
    return right / len(homes)


def tell(seed: int, questions: int, folder: str, size: int = 1) -> dict[str, Any]:
    """The whole story of one export."""
    found = customers(seed, size)
    path = Path(folder, f"crm {seed}.csv")
    write(found.rows, path)
    with partita.kb.open(Path(folder, f"crm {seed}.db")) as kb, path.open(encoding="utf-8") as file:
        kb.add(csv.DictReader(file), sweeps=2)
        kb.finish()
        before, right_before = quality(kb, found.truth), right_records(kb, found)
        said = answer(kb, found.truth, questions)
        after, right_after = quality(kb, found.truth), right_records(kb, found)
        kb.export(Path(folder, f"golden {seed}.csv"), "golden")
    return {
        "seed": seed,
        "rows": len(found.rows),
        "people": len(set(found.truth.values())),
        "before": before._asdict() | {"right_records": right_before},
        **said._asdict(),
        "after": after._asdict() | {"right_records": right_after},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--questions", type=int, default=150)
    parser.add_argument("--size", type=int, default=1, help="so many times as many people; kept only if 1")
    parser.add_argument("--write", nargs=2, type=Path, metavar=("EXPORT", "TRUTH"))
    options = parser.parse_args()
    if options.write:
        export, truth = options.write
        found = customers(0)
        write(found.rows, export)
        truth.write_text("id,person\n" + "".join(f"{id},{one}\n" for id, one in found.truth.items()))
        return
    with tempfile.TemporaryDirectory() as folder:
        stories = [tell(seed, options.questions, folder, options.size) for seed in range(options.seeds)]
    columns = ("entities", "f1", "silly_merges", "divided", "right_records")
    rows = [
        [
            *(one["seed"], one["rows"], one["people"], when),
            *(f"{one[when][column]:.4g}" for column in columns),
            f"{one['confirmed'] + one['separated']} ({one['until_clean']})" if when == "after" else "",
        ]
        for one in stories
        for when in ("before", "after")
    ]
    show(
        "A customer database",
        ["seed", "rows", "people", "questions", *columns, "answers (clean after)"],
        rows,
    )
    if options.size == 1:
        keep("crm", {"stories": stories})


if __name__ == "__main__":
    main()
