"""Which observations share a key: the pairs that there is time to score.

A key that f observations have makes f(f − 1)/2 pairs, so the rarest keys come first: all keys are used up to the
largest frequency with which there are at most ``PAIRS`` pairs an observation. Of commoner keys two are taken
together, as if they were one (of the same name and the same year there are fewer), up to a frequency that is found in
the same way. Both limits are relative to the data: what is common among ten thousand observations is rare among a
million. And whoever has a key that is commoner than that is compared with a few who come just before and after among
those who have it, so that copies meet, however many there are.

It is done in SQL, so that it works out of core, and in a session of Spark as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from partita._core.kernel import kernel
from partita._core.typing import Array, Integers

PAIRS = 100  # of an observation, at most, on average, from keys; and as many from two keys taken together
TOGETHER = 8  # keys of an observation, at most, that are taken together, two at a time: the rarest

WINDOW = 10  # observations, next to one another among those that have a common key, that are compared for it
WORTH = 1000.0  # of a nat
ROWS = 4_000_000  # that are fetched at a time

OFTEN = "SELECT key, count(*) AS n FROM {keys} GROUP BY key HAVING count(*) > 1"
HISTOGRAM = "SELECT n, count(*) AS times FROM {often} GROUP BY n ORDER BY n"
RARE = "SELECT k.number, k.key, o.n FROM {keys} k JOIN {often} o ON k.key = o.key WHERE o.n <= {limit}"
COMMON = """
    SELECT number, key, n FROM (
        SELECT k.number, k.key, o.n, row_number() OVER (PARTITION BY k.number ORDER BY o.n, k.key) AS place
        FROM {keys} k JOIN {often} o ON k.key = o.key WHERE o.n > {limit}
    ) AS ranked WHERE place <= {together}
"""
BOTH = """
    SELECT a.number, {xor} AS key FROM {common} a JOIN {common} b ON a.number = b.number AND a.key < b.key
"""
# Windows of those that have a key, each half over the next; what they are numbered by makes keys of them.
WINDOWS = """
    SELECT number, {first} AS key, n FROM (
        SELECT number, key, n, row_number() OVER (PARTITION BY key ORDER BY number) - 1 AS place FROM {common}
    ) AS placed UNION ALL SELECT number, {second} AS key, n FROM (
        SELECT number, key, n, row_number() OVER (PARTITION BY key ORDER BY number) - 1 AS place FROM {common}
    ) AS placed
"""
SHARED = """
    SELECT second, first, place FROM (
        SELECT b.number AS second, a.number AS first,
            row_number() OVER (PARTITION BY b.number ORDER BY sum(w.worth) DESC, a.number) AS place
        FROM {keys} a JOIN {keys} b ON a.key = b.key AND a.number < b.number
        JOIN {worth} w ON a.n = w.n
        GROUP BY a.number, b.number
    ) AS ranked WHERE place <= {most}
"""


class Near(NamedTuple):
    """Observations by the keys that they are compared by: a list of lists."""

    starts: Any  # where the observations of each key begin in ``holders``, and where the last one's end
    holders: Any  # in ascending order for each key
    worth: (
        Any  # of each key: how much it says that two share it, −log of the share of observations that have it
    )


class Own(NamedTuple):
    """The keys of each of some observations that follow one another."""

    first: int  # of these observations
    starts: Any  # where the keys of each begin in ``keys``, and where the last one's end
    keys: Any


def limit_of(frequencies: Integers, times: Integers, pairs: float) -> int:
    """The largest frequency up to which keys make so many pairs at most; ``frequencies`` ascend."""
    made = np.cumsum(times * (frequencies * (frequencies - 1) // 2))
    count = int(np.searchsorted(made, pairs, side="right"))
    return int(frequencies[count - 1]) if count else 1


class Tables(Protocol):
    """Where SQL is run."""

    xor: str  # of two whole numbers

    def whole(self, number: str, by: int) -> str:
        """How often a number goes into another, in SQL."""

    def make(self, name: str, query: str) -> str:
        """Make a table; returns what it is called in queries."""

    def put(self, name: str, columns: dict[str, Array]) -> str:
        """Make a table of arrays; returns what it is called in queries."""

    def fetch(self, query: str) -> dict[str, Array]:
        """The columns of an answer."""


class InDuckDB:
    """SQL in a connection of DuckDB."""

    xor = "xor({one}, {other})"

    def whole(self, number: str, by: int) -> str:
        return f"(({number}) // {by})"

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def make(self, name: str, query: str) -> str:
        self.connection.execute(f"CREATE OR REPLACE TABLE {name} AS {query}")
        return name

    def put(self, name: str, columns: dict[str, Array]) -> str:
        self.connection.register(name, columns)
        return name

    def fetch(self, query: str) -> dict[str, Array]:
        found = self.connection.execute(query).fetchnumpy()
        return {name: np.asarray(column) for name, column in found.items()}


def near(connection: Any, keys: str, n: int) -> Near:
    """What ``keys`` says, a table of DuckDB with a row (number, key) for each key of each of n observations.

    It is fetched some rows at a time, so that a number of four bytes a row, and twelve bytes a key, is all the memory
    that it takes.
    """
    tables = InDuckDB(connection)
    compared_by = selected(tables, keys, n)
    rows = tables.make("in_order", f"SELECT number, key, n FROM {compared_by} ORDER BY key, number")
    for table in ("often", "common", "in_twos", "often_in_twos", compared_by):
        connection.execute(f"DROP TABLE {table}")
    total = int(tables.fetch(f"SELECT count(*) AS n FROM {rows}")["n"][0])
    return listed(portions(tables, rows, total), total, n)


def portions(tables: Tables, rows: str, total: int) -> Iterator[dict[str, Array]]:
    """The rows of a table in their order, some at a time."""
    for first in range(0, total, ROWS):
        yield tables.fetch(
            f"SELECT number, key, n FROM {rows} WHERE rowid >= {first} AND rowid < {first + ROWS} ORDER BY rowid"
        )


def selected(tables: Tables, keys: str, n: int) -> str:
    """Make a table of the keys, and pairs of keys, that observations are compared by; returns its name."""

    def limit(often: str) -> int:
        found = tables.fetch(HISTOGRAM.format(often=often))
        return limit_of(found["n"], found["times"], PAIRS * n)

    often = tables.make("often", OFTEN.format(keys=keys))
    rarest = limit(often)
    common = tables.make("common", COMMON.format(keys=keys, often=often, limit=rarest, together=TOGETHER))
    both = tables.make(
        "in_twos", BOTH.format(common=common, xor=tables.xor.format(one="a.key", other="b.key"))
    )
    often_both = tables.make("often_in_twos", OFTEN.format(keys=both))
    one = RARE.format(keys=keys, often=often, limit=rarest)
    two = RARE.format(keys=both, often=often_both, limit=limit(often_both))
    places = (
        f"2 * {tables.whole('place', WINDOW)}",
        f"2 * {tables.whole(f'place + {WINDOW // 2}', WINDOW)} + 1",
    )
    first, second = (tables.xor.format(one="key", other=place) for place in places)
    windows = WINDOWS.format(common=common, first=first, second=second)
    return tables.make("compared_by", f"{one} UNION ALL {two} UNION ALL {windows}")


def closest(tables: Tables, keys: str, n: int, most: int) -> str:
    """Make a table of pairs, of each observation with those earlier ones that share most with it; returns its name.

    They are the pairs that a kernel of :mod:`.edges` finds, in its order: by ``second``, then by ``place``.

    Parameters
    ----------
    keys : str
        What :func:`selected` has made.
    n : int
        How many observations there are.
    most : int
        Of the pairs of an observation.
    """
    times = tables.fetch(f"SELECT DISTINCT n FROM {keys} ORDER BY n")["n"]
    worth = tables.put("worth", {"n": times, "worth": worth_of(times, n).astype(np.int64)})
    return tables.make("closest", SHARED.format(keys=keys, worth=worth, most=most))


def worth_of(times: Integers, n: int) -> Any:
    """What it is worth to share a key that so many of n observations have: whole numbers, of which sums are exact."""
    return (np.log((n + 1.0) / times) * WORTH).astype(np.int32) + 1


def listed(rows: Iterable[dict[str, Array]], total: int, n: int) -> Near:
    """The lists, from rows in order of their keys and, for each key, of their observations.

    Parameters
    ----------
    rows : iterable of dict
        Some at a time: ``number`` of the observation, ``key``, and ``n``, how many observations have what it stands
        for.
    total : int
        How many rows there are.
    n : int
        How many observations there are.
    """
    holders, at, n_keys, last = np.empty(total, np.int32), 0, 0, None
    starts, worth = np.empty(total + 1, np.int64), np.empty(total, np.int32)  # what is not used is no memory
    for some in rows:
        first = np.ones(len(some["key"]), bool)
        first[1:] = some["key"][1:] != some["key"][:-1]
        first[0] = some["key"][0] != last
        begins = np.flatnonzero(first)
        holders[at : at + len(first)] = some["number"]
        starts[n_keys : n_keys + len(begins)] = at + begins
        worth[n_keys : n_keys + len(begins)] = worth_of(some["n"][begins], n)
        at, n_keys, last = at + len(first), n_keys + len(begins), some["key"][-1]
    starts[n_keys] = at
    return Near(starts[: n_keys + 1], holders, worth[:n_keys])


def own_of(near: Near, first: int, stop: int) -> Own:
    """The keys of the observations from ``first`` to ``stop``."""
    starts = np.zeros(stop - first + 1, np.int64)
    count_own(near.holders, first, starts)
    np.cumsum(starts, out=starts)
    keys = np.empty(int(starts[-1]), np.int32)
    write_own(near.starts, near.holders, first, starts[:-1].copy(), keys)
    return Own(first, starts, keys)


@kernel
def count_own(holders, first, counts):
    """Count how often those from ``first`` on are among the holders of keys, each in the place after its own."""
    for k in range(holders.shape[0]):
        x = holders[k] - first
        if 0 <= x < counts.shape[0] - 1:
            counts[x + 1] += 1


@kernel
def write_own(starts, holders, first, place, keys):
    """Write the numbers of keys to the lists of those from ``first`` on who have them."""
    for key in range(starts.shape[0] - 1):
        for k in range(starts[key], starts[key + 1]):
            x = holders[k] - first
            if 0 <= x < place.shape[0]:
                keys[place[x]] = key
                place[x] += 1
