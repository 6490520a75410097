"""A first use waits for the compiler: let two processes share the work.

One compiles the loop over a stream, the other everything around it; both leave what they have made in the
cache on disk. Where the cache has it all, the second process is not even started.
"""

from __future__ import annotations

import subprocess
import sys
from threading import Timer
from time import perf_counter

import numpy as np
from numba import typeof, types

from partita.models.base import CompiledModel
from partita.models.numeric.gaussian import Gaussian
from partita.models.records.attributes import Text
from partita.models.records.record import Record
from partita.smc.engine import Engine
from partita.smc.files.packing import unpack
from partita.smc.loops.python import count_observation
from partita.smc.moves.concentration import learn_alpha
from partita.smc.moves.install import fill
from partita.smc.state.constraints import no_constraints
from partita.smc.state.state import STATE, Settings, grown
from partita.smc.steps.step import stream

PATIENCE = 0.6  # seconds; to read the loop from the cache takes a fraction of that
COMPILING = 4.0  # seconds that compiling it takes at least


def warm_up(model: CompiledModel, n_features: int) -> None:
    """Compile what a sampler needs to cluster with this model and to answer questions."""
    helpers: list[subprocess.Popen[bytes]] = []
    rest = "compile_for_records" if isinstance(model, Record) else "compile_for_points"

    def call_for_help() -> None:
        command = [sys.executable, "-c", f"from partita.demo.warmup import {rest} as c; c()"]
        helpers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    began = perf_counter()
    timer = Timer(PATIENCE, call_for_help)
    timer.start()
    try:
        model.check(n_features)
        names, number = types.int64[::1], types.int64
        family = typeof(model.family(n_features))
        stream.compile((STATE, family, number))
        if isinstance(model, Record):  # it scores, too, and what scores takes longest to compile
            fill.compile((STATE, family, names, names, names))
    finally:
        timer.cancel()
        timer.join()
    for helper in helpers:
        if perf_counter() - began < COMPILING:
            helper.kill()  # the loop was there, so the rest will be, too
        helper.wait()  # should it fail, this process compiles on demand


def compile_for_points() -> None:
    """Run everything but the loop over a stream once, on a state of two observations."""
    model, settings = Gaussian(), Settings(particles=2)
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
    """The same for a knowledge base of two fragments, and what refines it."""
    from partita.kb.clustering import Clustering
    from partita.smc.moves.install import commit, room_for, take_clusters
    from partita.smc.moves.refine import best_other
    from partita.smc.moves.rows import canonical
    from partita.smc.reading.particles import partitions

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
    best_other(engine.state, 0)
    clustering.numbers = np.arange(2)
    clustering.rename_from(np.array([1, 1]), 2)
    clustering.unsaved()
    learn_alpha(engine.state)
    ask(engine)


def ask(engine: Engine) -> None:
    """Questions to a posterior of two observations."""
    engine.posterior.labels()
    engine.posterior.entropy()
    engine.posterior.together(0, [1])
