"""A few fragments about people who are easily confused, in several spellings."""

import random

PEOPLE = [
    ("Ada Lovelace", "1815-12-10", "London", "mathematician"),
    ("Charles Babbage", "1791-12-26", "London", "mathematician"),
    ("Alexandre Dumas", "1802-07-24", "Villers-Cotterêts", "novelist"),
    ("Alexandre Dumas", "1824-07-27", "Paris", "playwright"),
    ("Johann Strauss", "1804-03-14", "Vienna", "composer"),
    ("Johann Strauss", "1825-10-25", "Vienna", "composer"),
    ("Marie Curie", "1867-11-07", "Warsaw", "physicist"),
    ("Pierre Curie", "1859-05-15", "Paris", "physicist"),
    ("George Eliot", "1819-11-22", "Nuneaton", "novelist"),
    ("George Sand", "1804-07-01", "Paris", "novelist"),
]


def spelt(name, rng):
    """A name in one of the ways that it is written."""
    first, last = name.split(" ")
    ways = [name, name, f"{first[0]}. {last}", last, f"{last}, {first}", name.replace("a", "e", 1)]
    return rng.choice(ways)


def fragments(n, seed=0):
    """n fragments, and the number of the person that each is about."""
    rng = random.Random(seed)
    rows, truth = [], {}
    for k in range(n):
        person = rng.randrange(len(PEOPLE))
        name, born, place, work = PEOPLE[person]
        said = {"born": [born], "place": [place], "occupation": [work]}
        kept = {key: said[key] for key in rng.sample(sorted(said), rng.randint(0, 3))}
        row = {"id": f"f{k}", "source": f"book {k % 4}", "properties": {"name": [spelt(name, rng)], **kept}}
        rows.append(row)
        truth[row["id"]] = person
    return rows, truth
