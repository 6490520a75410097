"""Records that do not fit into memory: encoded and compared portion by portion, and clustered from files.

A portion is encoded with a vocabulary of its own, and what its values are compared by is kept in files of the
directory. As that hangs on the model alone, portions can be put side by side: equal values of an attribute are told by
their ranks. Memory holds two portions at most, and of all records numbers only.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

import duckdb
import numpy as np

from partita._core.progress import Report
from partita._core.typing import Array, Floats, Integers
from partita.bulk.memory import InMemory, encoded, options
from partita.bulk.records import Records
from partita.bulk.shards import Shard
from partita.bulk.work import PORTIONS, partial, remove_all
from partita.models.records.comparisons.vocabulary import Values
from partita.models.records.record import Record
from partita.smc.blocks.edges import LEAST, Edges, odds_of, pairs_among
from partita.smc.blocks.near import Near, near
from partita.smc.blocks.run import Packed
from partita.smc.engine import Engine
from partita.smc.files.packing import offsets, ragged
from partita.smc.state.state import Settings, dismantle

PORTION = 500_000  # records that are encoded, and compared, at a time: up to so many, all is done in memory
FORMS = {"owner": "<i4", "rank": "<i8", "number": "<f8", "log_u": "<f8", "lengths": "<i4", "grams": "<i8"}


class Said(NamedTuple):
    """What records say, and the keys of each, one record after the other."""

    counts: Integers  # how many values each says
    values: Integers  # these, as places among the values that are kept beside
    key_counts: Integers
    keys: Integers


SMALL = {"counts": "<i4", "values": "<i4", "key_counts": "<i4", "keys": "<i8"}


class Portions:
    """Records in portions.

    Parameters
    ----------
    engine : Engine
        That has observed none; its vocabulary stays empty but for what is at work.
    records : Records
    path : Path
        The directory of the run.
    workers : int
        How many threads.
    report : callable
    """

    def __init__(self, engine: Engine, records: Records, path: Path, workers: int, report: Report) -> None:
        self.engine, self.records, self.workers, self.report = engine, records, workers, report
        self.model: Record = engine.model
        self.nothing = self.model.length()
        self.run, self.path, self.n = path, path / PORTIONS, records.n
        self.ranges = [(start, min(start + PORTION, self.n)) for start in range(0, self.n, PORTION)]
        self.path.mkdir(exist_ok=True)

    def folder(self, p: int) -> Path:
        """Where a portion is kept."""
        start, stop = self.ranges[p]
        return self.path / f"{start}-{stop}"

    # ------------------------------------------------------------------ encoding

    def encode(self) -> None:
        """Encode the portions that have not been."""
        for p, (start, stop) in enumerate(self.ranges):
            if not self.folder(p).exists():
                self._encode(p, start, stop)

    def _encode(self, p: int, start: int, stop: int) -> None:
        engine = fresh(self.model, self.engine)
        data, (starts, keys) = encoded(engine, self.records, start, stop, self.report)
        counts, features = engine.model.features(data)
        used, values = np.unique(features, return_inverse=True)
        known: Values = engine.model.values_of(used)
        order = np.lexsort((known.rank, known.owner))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        said = Said(counts, place[values], np.diff(starts), keys)
        keep(self.folder(p), taken(known, order), said)
        del engine
        gc.collect()  # it refers to itself

    # ------------------------------------------------------------------ edges

    def edges(self, log_alpha: float) -> Edges:
        """Pairs of records that may be of one entity."""
        target = self.path / "edges"
        if not target.exists():
            self._find_pairs()
            parts = []
            for p in range(len(self.ranges)):
                self.report("comparing", self.ranges[p][0], self.n)
                parts.append(self._edges_of(p, log_alpha))
            save(target, one_after_the_other(parts)._asdict())
        return Edges(**{name: load(target, name) for name in Edges._fields})

    def _find_pairs(self) -> None:
        """Keep the pairs of each portion that are to be scored."""
        found = self._near()
        for p, (start, stop) in enumerate(self.ranges):
            first, second = pairs_among(found, start, stop, self.workers)
            save(self._pairs(p), {"first": first.astype("<i4"), "second": second.astype("<i4")})

    def _pairs(self, p: int) -> Path:
        return self.path / f"pairs-{self.ranges[p][0]}"

    def _near(self) -> Near:
        """What DuckDB makes of the keys, in a file of its own."""
        file = self.path / "keys.duckdb"
        remove_all(self.path, "keys.duckdb*")
        with duckdb.connect(str(file), config=options(self.run, self.workers)) as connection:
            connection.execute("CREATE TABLE keys (number INTEGER, key BIGINT)")
            for p, (start, stop) in enumerate(self.ranges):
                counts, codes = load(self.folder(p), "key_counts"), load(self.folder(p), "keys")
                numbers = np.repeat(np.arange(start, stop, dtype=np.int32), counts)
                connection.register("portion", {"number": numbers, "key": codes})
                connection.execute("INSERT INTO keys SELECT number, key FROM portion")
                connection.unregister("portion")
            found = near(connection, "keys", self.n)
        remove_all(self.path, "keys.duckdb*")
        return found

    def _edges_of(self, p: int, log_alpha: float) -> Edges:
        """The edges whose second record is of a portion; those whose first is of one are scored together."""
        first, second = (load(self._pairs(p), name).astype(np.int64) for name in ("first", "second"))
        start, odds = self.ranges[p][0], np.empty(len(first))
        self.model.cut_to(self.nothing)
        own = self._held(p)
        length = self.model.length()
        other_of = first // PORTION
        for other in np.unique(other_of).tolist():
            at = np.flatnonzero(other_of == other)
            data, begin = own.data, start
            if other != p:
                data, begin = np.concatenate([own.data, self._held_beside(own, other)]), self.ranges[other][0]
                begin -= len(own.data)
            self.engine.scorer.refresh()
            pairs = first[at] - begin, second[at] - start
            odds[at] = odds_of(self.engine, data, *pairs, log_alpha, self.workers)
            self.model.cut_to(length)
        rmtree(self._pairs(p))
        kept = odds >= LEAST
        return Edges(first[kept].astype(np.int32), second[kept].astype(np.int32), odds[kept])

    def _held(self, p: int) -> Held:
        """A portion, in a vocabulary that is empty."""
        folder = self.folder(p)
        values = values_in(folder)
        features = self.model.hold_values(values)
        data = self.model.recalled(load(folder, "counts"), features[load(folder, "values")])
        return Held(data, features, values.owner, values.rank)

    def _held_beside(self, own: Held, p: int) -> Floats:
        """The records of another portion, which may say the same values."""
        folder = self.folder(p)
        place = places(own.owner, own.rank, load(folder, "owner"), load(folder, "rank"))
        new, features = place < 0, np.empty(len(place), np.int64)
        features[~new] = own.features[place[~new]]
        features[new] = self.model.hold_values(values_in(folder, new))
        return self.model.recalled(load(folder, "counts"), features[load(folder, "values")])

    # ------------------------------------------------------------------ shards

    def map_shards(
        self, shards: list[Shard], alphas: tuple[Integers, Floats], seed: int, sweeps: int
    ) -> Iterator[tuple[Shard, Packed]]:
        """What comes of shards, one after the other; as many as have the records of a portion are held at a time."""
        if not shards:
            return
        groups = in_groups(shards)
        members = [np.sort(np.concatenate([shard.members for shard in group])) for group in groups]
        self._divide(members)
        for k, group in enumerate(groups):
            held = self._gathered(k)
            gc.collect()  # the samplers of the last group, which refer to themselves
            for shard in group:
                rows = np.searchsorted(members[k], shard.members)
                yield shard, held.clustered(shard, rows, alphas, seed, sweeps)
            rmtree(self.path / f"group-{k}")

    def _divide(self, members: list[Integers]) -> None:
        """Keep what the members of each group say, in a folder of its own with a part of each portion."""
        remove_all(self.path, "group-*")
        for p, (start, stop) in enumerate(self.ranges):
            folder = self.folder(p)
            values, said = values_in(folder), said_in(folder)
            for k, own in enumerate(members):
                low, high = np.searchsorted(own, [start, stop])
                if low < high:
                    keep(self.path / f"group-{k}" / str(p), *part_of(values, said, own[low:high] - start))

    def _gathered(self, k: int) -> InMemory:
        """The records of a group, in a vocabulary that has no others."""
        self.model.cut_to(self.nothing)
        folder = self.path / f"group-{k}"
        parts = [folder / str(p) for p in range(len(self.ranges)) if (folder / str(p)).exists()]
        columns = ([load(part, name) for part in parts] for name in ("owner", "rank"))
        first, place = distinct(*map(np.concatenate, columns))
        held, said, at = [np.zeros(0, np.int64)], [], 0
        for part in parts:
            values, own = first[at : at + len(load(part, "owner"))], said_in(part)
            held.append(self.model.hold_values(values_in(part, values)))
            said.append(own._replace(values=place[at + own.values]))
            at += len(values)
        counts, values, key_counts, keys = (np.concatenate(column) for column in zip(*said, strict=True))
        data = self.model.recalled(counts, np.concatenate(held)[values])
        self.engine.scorer.refresh()
        return InMemory(
            self.engine, data, (np.append(0, np.cumsum(key_counts)), keys), self.workers, self.run
        )


class Held(NamedTuple):
    """A portion in a vocabulary."""

    data: Floats  # the records, encoded
    features: Integers  # of its values, by owner and rank
    owner: Integers
    rank: Integers


def fresh(model: Record, engine: Engine) -> Engine:
    """An engine like this one, with a vocabulary of its own."""
    own = Record.from_json(model.to_json())
    own.check(1)
    return Engine(own, Settings(*dismantle(engine.state)[2].tolist()), 1, 2, 0.0, 0, "auto")


def in_groups(shards: list[Shard]) -> list[list[Shard]]:
    """Shards, as many together as have about the records of a portion."""
    groups: list[list[Shard]] = []
    room = 0
    for shard in shards:
        if not groups or len(shard.members) > room:
            groups.append([])
            room = PORTION
        groups[-1].append(shard)
        room -= len(shard.members)
    return groups


# ---------------------------------------------------------------------- values, by owner and rank


def places(owner: Integers, rank: Integers, other_owner: Integers, other_rank: Integers) -> Integers:
    """Where values stand among others, all of them by owner and rank; −1 if they do not."""
    found = np.full(len(other_rank), -1)
    for a in np.unique(other_owner).tolist():
        low, high = np.searchsorted(owner, [a, a + 1])
        start, stop = np.searchsorted(other_owner, [a, a + 1])
        if low < high:
            known, wanted = rank[low:high], other_rank[start:stop]
            at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            found[start:stop] = np.where(known[at] == wanted, low + at, -1)
    return found


def distinct(owner: Integers, rank: Integers) -> tuple[Array, Integers]:
    """Which values are the first of their kind, and of each value which one of these it is."""
    order = np.lexsort((rank, owner))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(owner[order]) != 0) | (np.diff(rank[order]) != 0)
    first, kind, place = np.zeros(len(order), bool), np.cumsum(new) - 1, np.empty(len(order), np.int64)
    first[order[new]] = True
    place[order] = (np.cumsum(first) - 1)[order[new]][kind]
    return first, place


def taken(values: Values, at: Integers) -> Values:
    """Some values, in this order."""
    lengths = values.lengths[at]
    parts = ragged(offsets(values.lengths)[at], lengths)
    return Values(
        values.owner[at],
        values.rank[at],
        values.number[at],
        values.log_u[at],
        lengths,
        values.grams[parts],
        values.weights[parts],
    )


def part_of(values: Values, said: Said, rows: Integers) -> tuple[Values, Said]:
    """What some records say, and the values that these have."""
    counts, key_counts = said.counts[rows], said.key_counts[rows]
    own = said.values[ragged(offsets(said.counts)[rows], counts)]
    keys = said.keys[ragged(offsets(said.key_counts)[rows], key_counts)]
    used, own = np.unique(own, return_inverse=True)
    return taken(values, used), Said(counts, own, key_counts, keys)


def one_after_the_other(parts: list[Edges]) -> Edges:
    """Edges of several parts, of which none is left."""
    n = sum(len(part.first) for part in parts)
    found, at = Edges(np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n)), 0
    while parts:
        part = parts.pop(0)
        for column, own in zip(found, part, strict=True):
            column[at : at + len(own)] = own
        at += len(part.first)
    return found


# ---------------------------------------------------------------------- files


def keep(folder: Path, values: Values, said: Said) -> None:
    """Keep what records say."""
    arrays = {name: np.asarray(getattr(values, name), form) for name, form in FORMS.items()}
    arrays |= {name: np.asarray(getattr(said, name), form) for name, form in SMALL.items()}
    halves = values.weights.astype("<f4")
    exact = bool((halves == values.weights).all())  # as whole steps up to 1 are
    save(folder, arrays | {"weights": halves if exact else values.weights})


def save(folder: Path, arrays: dict[str, Array]) -> None:
    """Keep arrays in a folder, which appears when it is whole."""
    made = partial(folder)
    if made.exists():
        rmtree(made)
    made.mkdir(parents=True)
    for name, array in arrays.items():
        np.save(made / f"{name}.npy", array, allow_pickle=False)
    made.rename(folder)


def load(folder: Path, name: str) -> Array:
    """An array of a folder."""
    found: Array = np.load(folder / f"{name}.npy", allow_pickle=False)
    return found


def values_in(folder: Path, wanted: Array | None = None) -> Values:
    """The values of a folder, or those that are wanted."""
    lengths = load(folder, "lengths")
    parts = None if wanted is None else np.repeat(wanted, lengths)

    def column(name: str) -> Array:
        mask = parts if name in ("grams", "weights") else wanted
        return load(folder, name) if mask is None else load(folder, name)[mask]

    return Values(**{name: column(name) for name in Values._fields})


def said_in(folder: Path) -> Said:
    """What the records of a folder say."""
    return Said(*(load(folder, name) for name in Said._fields))
