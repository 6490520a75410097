"""What is run in Spark's workers, on groups of records: numbers, and what they say as JSON.

A worker keeps an engine from one task to the next. What comes of a record does not depend on which others its
vocabulary holds, so one that has grown large is simply made anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from partita._core.typing import Floats, Integers
from partita.bulk.records import Mark, as_json, having, id_of, refused
from partita.bulk.work import packed
from partita.models.records.arrow import pyarrow, rows_of_batches
from partita.models.records.record import Record
from partita.smc.blocks.edges import scored, with_own_tables
from partita.smc.blocks.run import run, task_of
from partita.smc.engine import Engine
from partita.smc.state.state import Settings

MOST = 200_000  # records that one engine has encoded, after which another is made


class Job(NamedTuple):
    """What an engine is made of."""

    model: str  # as JSON
    settings: tuple[int, ...]


class Known:
    """The engine of this process, and how many records it has encoded."""

    job: Job | None = None
    engine: Engine
    encoded = 0


def engine_of(job: Job, n: int) -> Engine:
    """An engine that has observed nothing, which will encode n records."""
    if Known.job != job or Known.encoded > MOST:
        model = Record.from_json(json.loads(job.model))
        model.check(1)
        Known.engine = Engine(model, Settings(*job.settings), 1, 2, 0.0, 0, "auto")
        Known.job, Known.encoded = job, 0
    Known.encoded += n
    return Known.engine


# ---------------------------------------------------------------------- records


def read(id: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Rows of a DataFrame: what they are ordered by, id, what they say or what is wrong with it, and a digest."""
    pa = pyarrow()
    for batch in batches:
        columns: list[list[Any]] = [[], [], [], [], []]
        for given in rows_of_batches([batch]):
            for column, value in zip(columns, read_one(id, given), strict=True):
                column.append(value)
        kinds = [pa.string()] * 3 + [pa.int64()] * 2
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        names = ["rank", "id", "said", "error", "low", "high"]
        yield pa.RecordBatch.from_arrays([batch.column(batch.schema.names.index(id)), *arrays], names)


def read_one(id: str, given: dict[str, Any]) -> tuple[str, str | None, str | None, int, int]:
    """One row."""
    name = id_of(given[id])
    said = error = None
    try:
        if not name:
            raise ValueError(f"a record has no {id!r}: each needs one, for rows of Spark have no order")
        said = as_json(f"the record with {id!r} {name!r}", given, id)
    except (TypeError, ValueError) as wrong:
        error = str(wrong)
    digest = hashlib.blake2b(repr((name, said)).encode("utf-8", "surrogatepass"), digest_size=16).digest()
    low, high = np.frombuffer(digest, np.int64).tolist()
    return name, said, error, low, high


def holders(wanted: dict[Mark, int], batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Which marks records have."""
    for some in batches:
        said = zip(some["number"], map(json.loads, some["said"]), strict=True)
        yield pd.DataFrame(having(wanted, said), columns=["mark", "number"], dtype=np.int64)


def keys(job: Job, batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The keys of records, or what is wrong with one of them."""
    for some in batches:
        said = [json.loads(text) for text in some["said"]]
        numbers = some["number"].to_numpy()
        engine = engine_of(job, 0)
        try:
            validated = engine.model.validate(said)
        except ValueError:
            row, reason = refused(engine.model, said)
            yield pd.DataFrame({"number": numbers[row : row + 1], "key": 0, "error": reason})
            continue
        starts, codes = engine.keys(validated)
        yield pd.DataFrame({"number": np.repeat(numbers, np.diff(starts)), "key": codes, "error": None})


# ---------------------------------------------------------------------- groups


def edges(job: Job, log_alpha: float, pairs: pd.DataFrame, records: pd.DataFrame) -> pd.DataFrame:
    """The edges among a group's pairs; its records are those of all of these."""
    engine, numbers, observations = encoded(job, records)
    data = engine.encode(observations)
    pairs = pairs.sort_values(["second", "place"])
    first, second = (np.searchsorted(numbers, pairs[name].to_numpy()) for name in ("first", "second"))
    found = scored(with_own_tables(engine), engine, data, first, second, log_alpha)
    arrays = found._replace(first=numbers[found.first], second=numbers[found.second])._asdict()
    return pd.DataFrame({"bucket": pairs["bucket"].iloc[:1].to_numpy(), "contents": [packed(arrays)]})


def shard(
    job: Job, alphas: tuple[Integers, Floats], seed: int, sweeps: int, records: pd.DataFrame
) -> pd.DataFrame:
    """What comes of a shard."""
    engine, numbers, observations = encoded(job, records)
    block = records.sort_values("number")["block"].to_numpy()
    task = task_of(engine.encode(observations), engine.keys(observations), block, numbers, alphas)
    found = run(engine, task, seed, 1, sweeps)
    arrays = found._replace(members=numbers[found.members])._asdict()
    return pd.DataFrame({"contents": [packed(arrays)]})


def encoded(job: Job, records: pd.DataFrame) -> tuple[Engine, Integers, Any]:
    """An engine, and records in the order of their numbers, which it may encode."""
    records = records.sort_values("number")
    engine = engine_of(job, len(records))
    observations = engine.model.validate([json.loads(text) for text in records["said"]])
    return engine, records["number"].to_numpy(), observations
