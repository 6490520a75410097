"""Which observations share a key: the pairs that there is time to score.

A key that f observations have makes f(f − 1)/2 pairs, so the rarest keys come first: all keys are used up to the
largest frequency with which there are at most ``PAIRS`` pairs an observation. Of commoner keys two are taken
together, as if they were one (of the same name and the same year there are fewer), up to a frequency that is found in
the same way. Both limits are relative to the data: what is common among ten thousand observations is rare among a
million.

It is done in SQL, so that it works out of core, and in a session of Spark as well.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita._core.typing import Integers

PAIRS = 100  # of an observation, at most, on average, from keys; and as many from two keys taken together
TOGETHER = 8  # keys of an observation, at most, that are taken together, two at a time: the rarest

WORTH = 1000.0  # of a nat

OFTEN = "SELECT key, count(*) AS n FROM {keys} GROUP BY key HAVING count(*) > 1"
HISTOGRAM = "SELECT n, count(*) AS times FROM {often} GROUP BY n ORDER BY n"
RARE = "SELECT k.number, k.key FROM {keys} k JOIN {often} o ON k.key = o.key WHERE o.n <= {limit}"
COMMON = """
    SELECT number, key FROM (
        SELECT k.number, k.key, row_number() OVER (PARTITION BY k.number ORDER BY o.n, k.key) AS place
        FROM {keys} k JOIN {often} o ON k.key = o.key WHERE o.n > {limit}
    ) AS ranked WHERE place <= {together}
"""
BOTH = """
    SELECT a.number, {xor} AS key FROM {common} a JOIN {common} b ON a.number = b.number AND a.key < b.key
"""


class Near(NamedTuple):
    """Observations by the keys that they are compared by, and the keys of each: two lists of lists."""

    starts: Any  # where the observations of each key begin in ``holders``, and where the last one's end
    holders: Any  # in ascending order for each key
    own_starts: Any  # where the keys of each observation begin in ``own``, and where the last one's end
    own: Any
    worth: (
        Any  # of each key: how much it says that two share it, −log of the share of observations that have it
    )


def limit_of(frequencies: Integers, times: Integers, pairs: float) -> int:
    """The largest frequency up to which keys make so many pairs at most; ``frequencies`` ascend."""
    made = np.cumsum(times * (frequencies * (frequencies - 1) // 2))
    count = int(np.searchsorted(made, pairs, side="right"))
    return int(frequencies[count - 1]) if count else 1


def near(connection: Any, keys: str, n: int) -> Near:
    """What ``keys`` says, a table of DuckDB with a row (number, key) for each key of each of n observations."""
    rare = selected(connection, keys, n)
    found = connection.execute(f"SELECT number, key FROM {rare} ORDER BY key, number").fetchnumpy()
    return listed(np.asarray(found["number"]), np.asarray(found["key"]), n)


def selected(connection: Any, keys: str, n: int) -> str:
    """Make a table of the keys, and pairs of keys, that observations are compared by; returns its name."""

    def make(name: str, query: str, **names: Any) -> str:
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS {query.format(**names)}")
        return name

    def limit(often: str) -> int:
        found = connection.execute(HISTOGRAM.format(often=often)).fetchnumpy()
        return limit_of(np.asarray(found["n"]), np.asarray(found["times"]), PAIRS * n)

    often = make("often", OFTEN, keys=keys)
    rarest = limit(often)
    make("common", COMMON, keys=keys, often=often, limit=rarest, together=TOGETHER)
    both = make("in_twos", BOTH, common="common", xor="xor(a.key, b.key)")
    often_both = make("often_in_twos", OFTEN, keys=both)
    one = RARE.format(keys=keys, often=often, limit=rarest)
    two = RARE.format(keys=both, often=often_both, limit=limit(often_both))
    return make("compared_by", f"{one} UNION ALL {two}")


def listed(holders: Integers, keys: Integers, n: int) -> Near:
    """Both lists, from entries in order of their keys and, for each key, of their observations."""
    first = np.ones(len(keys), bool)
    first[1:] = keys[1:] != keys[:-1]
    starts = np.append(np.flatnonzero(first), len(keys))
    number = np.cumsum(first) - 1
    order = np.argsort(holders, kind="stable")
    own_starts = np.append(0, np.cumsum(np.bincount(holders, minlength=n)))
    worth = np.log((n + 1.0) / np.diff(starts)) * WORTH  # in whole numbers, of which sums are exact
    return Near(
        starts,
        holders.astype(np.int32),
        own_starts,
        number[order].astype(np.int32),
        worth.astype(np.int32) + 1,
    )
