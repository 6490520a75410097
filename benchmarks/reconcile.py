"""How often a match that OpenRefine would take unseen is right, and how soon a batch is answered.

``python -m benchmarks.reconcile``: generated people, each known from one to three records with typos; rows of these
people, and of others who are not known, are reconciled by name alone, with one more column, and with all columns.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from random import Random
from statistics import median

import partita.kb
from benchmarks.people import person, with_typos
from partita.kb import KnowledgeBase
from partita.serve.reconcile.candidates import CERTAIN, answered
from partita.serve.reconcile.queries import Query

KNOWN, UNKNOWN, ROWS, BATCH = 1000, 500, 600, 50
TYPOS = 0.3  # of all values
SAID = 0.7  # of what there is to say beside the name


def main() -> None:
    """Print a line for each number of columns."""
    rng = Random(1)
    people = [person(rng, "common") for _ in range(KNOWN + UNKNOWN)]
    asked = rng.sample(range(len(people)), ROWS)
    with tempfile.TemporaryDirectory() as folder, partita.kb.open(Path(folder, "people.db")) as kb:
        kb.add(fragments(people[:KNOWN], rng))
        print(f"{kb.stats()['fragments']:,} fragments, {kb.stats()['entities']:,} entities; {ROWS} rows")
        for columns in (0, 1, 4):
            print(report(kb, people, asked, columns, rng))


def fragments(people: list[dict[str, str]], rng: Random) -> list[dict[str, str]]:
    """Records of people, in any order; ids begin with the person's number."""
    found = []
    for number, one in enumerate(people):
        for k in range(rng.choice([1, 1, 2, 3])):
            said = with_typos(rng, one, TYPOS)
            kept = {name: value for name, value in said.items() if name == "name" or rng.random() < SAID}
            found.append({"id": f"{number}-{k}", **kept})
    rng.shuffle(found)
    return found


def report(
    kb: KnowledgeBase, people: list[dict[str, str]], asked: list[int], columns: int, rng: Random
) -> str:
    """What came of reconciling rows by their names and so many other columns."""
    taken, right, sure, seconds = 0, 0, 0, []
    for start in range(0, len(asked), BATCH):
        queries = [row(k, people[k], columns, rng) for k in asked[start : start + BATCH]]
        begun = time.perf_counter()
        found = answered(kb, queries)
        seconds.append(time.perf_counter() - begun)
        for id, candidates in found.items():
            for best in candidates[:1]:
                sure += best["score"] > 100.0 * CERTAIN
                taken += best["match"]
                right += best["match"] and is_of(kb, best["id"], id)
    return (
        f"name and {columns} columns: {taken} matches, {right} of them right; {sure} above {CERTAIN}; "
        f"a batch of {BATCH} in {median(seconds):.2f} s"
    )


def row(number: int, one: dict[str, str], columns: int, rng: Random) -> Query:
    """A row about somebody, as a query."""
    said = with_typos(rng, one, TYPOS)
    chosen = rng.sample([name for name in said if name != "name"], columns)
    return Query(str(number), said["name"], {name: [said[name]] for name in chosen}, 5, True)


def is_of(kb: KnowledgeBase, entity: str, person: str) -> bool:
    """Whether most of an entity's fragments are of a person."""
    ids = kb.entity(entity).fragments
    return sum(id.startswith(f"{person}-") for id in ids) * 2 > len(ids)


if __name__ == "__main__":
    main()
