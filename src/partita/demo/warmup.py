"""A first use waits for the compiler: let two processes share the work.

One compiles the steps of the sampler and then the loop over a stream, the other what scores clusters and then
everything around the loop. Both leave what they have made in the cache on disk, where each finds what the other has
done. Where the cache has the loop, the second process is not even started.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from threading import Thread
from typing import Any

import numpy as np
from numba import typeof, types

from partita._core.kernel import is_cached
from partita.models.base import CompiledModel
from partita.models.numeric.gaussian import Gaussian
from partita.models.records.comparisons.family import COMPARISON_FAMILY
from partita.models.records.comparisons.gains import gains
from partita.models.records.comparisons.rows import shift
from partita.models.records.kinds import Text
from partita.models.records.record import Record
from partita.models.scoring.compiled import write_rows as write_cluster_rows
from partita.smc.engine import Engine
from partita.smc.files.packing import unpack
from partita.smc.loops.python import count_observation
from partita.smc.moves.install import commit, give_back, room_for, scores_of, take_clusters
from partita.smc.moves.replay import Rows, best_of, found_on
from partita.smc.moves.rows import canonical
from partita.smc.reading.particles import first_members, partitions
from partita.smc.state import access
from partita.smc.state.constraints import no_constraints, parts_of
from partita.smc.state.names import follow_with, next_name, stop_following
from partita.smc.state.state import STATE, Settings, grown, new_seed, shared_of
from partita.smc.steps.candidates import find_candidates, kept_keys
from partita.smc.steps.merge import Joint, k_best
from partita.smc.steps.split import split, write_rows
from partita.smc.steps.step import stream, weigh
from partita.smc.steps.update import Particles, update

NUMBER, NUMBERS, TABLE = types.int64, types.int64[::1], types.int64[:, ::1]
REALS, REAL_TABLE = types.float64[::1], types.float64[:, ::1]
PARTICLES = types.NamedTuple([REALS, TABLE], Particles)
ROWS = types.NamedTuple([TABLE, REALS], Rows)
JOINT = types.NamedTuple([NUMBERS, TABLE, NUMBERS, REALS], Joint)


def warm_up(model: CompiledModel, n_features: int) -> None:
    """Compile what a sampler needs to cluster with this model and to answer questions."""
    model.check(n_features)
    family = typeof(model.family(n_features))
    if is_cached(stream, (STATE, family, NUMBER)):
        return
    rest = "compile_for_records" if isinstance(model, Record) else "compile_for_points"
    command = [sys.executable, "-c", f"from partita.demo.warmup import {rest} as c; c()"]
    helper = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    compile_steps(family)
    stream.compile((STATE, family, NUMBER))
    # What the other has not come to yet, or should it fail, this process compiles when it needs it.
    Thread(target=helper.wait, daemon=True).start()


def compile_steps(family: Any) -> None:
    """Compile the large parts of the loop over a stream, while the other process compiles what scores."""
    find_candidates.compile((STATE, NUMBER))
    split.compile((STATE, NUMBERS, NUMBERS, TABLE, REALS))
    write_rows.compile((STATE, NUMBER, JOINT))
    k_best.compile((STATE, PARTICLES))
    update.compile((STATE, family, NUMBER, NUMBER, NUMBER))


def compile_for_points() -> None:
    """Run everything but the loop over a stream once, on a state of two observations."""
    model, settings = Gaussian(), Settings(particles=2)
    gc.disable()  # for all of this process
    engine = Engine(model, settings, 1, 1, 0.0, 0)
    engine.run(engine.store(engine.encode(np.zeros((0, 1)))))
    width = model.width(1)
    together_or_not = {
        "data": np.zeros((2, 1)),
        "members": np.array([0, 1]),
        "sizes": np.array([1, 1]),
        "shapes": np.array([[0, 2, 2, 3]]),
        "free_slots": np.zeros(0, np.int64),
        "cells": np.array([0, 0, 1, 2]),
        "weights": np.log([0.75, 0.25]),
        "scores": np.zeros(3),
        "statistics": np.zeros((3, width)),
        "key_counts": np.zeros(0, np.int64),
        "keys": np.zeros(0, np.int64),
    }
    state = unpack(together_or_not, np.zeros(width), 10, settings, 0.0, 0, no_constraints())
    engine.state = grown(state, 3)
    ask(engine)


def compile_for_records() -> None:
    """The same for a knowledge base of two fragments, and what refines it.

    Not what learns its prior: the first process, done before this one, compiles that meanwhile.
    """
    from partita.kb.clustering import Clustering  # which points do without

    gc.disable()  # for all of this process
    row = NUMBER, NUMBER, NUMBER, REAL_TABLE, NUMBER
    gains.compile((COMPARISON_FAMILY, REAL_TABLE, NUMBERS, NUMBER, NUMBER, REAL_TABLE, NUMBER, REALS))
    shift.compile((COMPARISON_FAMILY, REAL_TABLE, *row, NUMBER))
    write_cluster_rows.compile((COMPARISON_FAMILY, REAL_TABLE, NUMBERS, NUMBERS, NUMBERS, REAL_TABLE))
    weigh.compile((STATE, COMPARISON_FAMILY, NUMBER))
    found_on.compile((STATE, NUMBERS, NUMBER))
    best_of.compile((STATE, ROWS, ROWS, NUMBER))
    model, fragments = Record({"name": Text()}), [{"name": ["a"]}, {"name": ["a"]}]
    clustering = Clustering(model, 2, exact=False)
    engine, said = clustering.engine, model.validate(fragments)
    engine.store(engine.encode(said), engine.keys(said))
    engine.keep(said)
    for _ in fragments:
        count_observation(engine.state)
    canonical(np.array([[0, 0], [0, 1]]))
    room_for(engine.state, 2, 2, 3)
    one, first, second = take_clusters(engine.state, 3)
    rows = np.array([[one, one], [first, second]])
    commit(engine.state, np.empty(0, np.int64), np.arange(2), np.arange(2), rows, np.zeros(2))
    engine.state = grown(engine.state)
    partitions(engine.state, 0)
    clustering.hold(np.arange(2), np.array([1, 1]))
    clustering.rename_from(np.array([1, 1]), 2)
    clustering.unsaved()
    engine.learn_alpha()
    slots = first_members(engine.state)
    access.subproblem_of(engine.state, 0)
    access.are_absent(engine.state, slots)
    scores_of(engine.state, slots)
    give_back(engine.state, slots[:0])
    engine.constraints = engine.constraints
    parts_of(engine.constraints)
    follow_with(shared_of(engine.state)[2], clustering.numbers, clustering.numbers, 1)
    stop_following(shared_of(engine.state)[2])
    next_name(shared_of(engine.state)[2])
    for ask_state in (kept_keys, new_seed, access.n_changes, access.just_written, access.present):
        ask_state(engine.state)
    ask(engine)


def ask(engine: Engine) -> None:
    """Questions to a posterior of two observations."""
    engine.posterior.labels()
    engine.posterior.entropy()
    engine.posterior.together(0, [1])
