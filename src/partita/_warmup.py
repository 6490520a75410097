"""A first use waits for the compiler: let two processes share the work.

One compiles the loop over a stream, the other everything around it; both leave what they have made in the
cache on disk. Where the cache has it all, the second process is not even started.
"""

from __future__ import annotations

import subprocess
import sys
from threading import Timer

import numpy as np
from numba import typeof, types

from partita.models.base import CompiledModel
from partita.models.gaussian import Gaussian
from partita.smc.bonds import no_bonds
from partita.smc.engine import Engine
from partita.smc.packing import unpack
from partita.smc.state import STATE, Settings, grown
from partita.smc.step import stream

PATIENCE = 0.4  # seconds; to read the loop from the cache takes a tenth


def warm_up(model: CompiledModel, n_features: int) -> None:
    """Compile what a sampler needs to cluster with this model and to answer questions."""
    helpers: list[subprocess.Popen[bytes]] = []

    def call_for_help() -> None:
        command = [sys.executable, "-c", "from partita._warmup import compile_the_rest as c; c()"]
        helpers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    timer = Timer(PATIENCE, call_for_help)
    timer.start()
    try:
        names, number = types.int64[::1], types.int64
        stream.compile((STATE, typeof(model.family(n_features)), number, names, names, number))
    finally:
        timer.cancel()
        timer.join()
    for helper in helpers:
        helper.wait()  # should it fail, this process compiles on demand


def compile_the_rest() -> None:
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
    engine.state = grown(unpack(together_or_not, np.zeros(width), 10, settings, 0.0, 0, no_bonds()), 3)
    engine.posterior.labels()
    engine.posterior.entropy()
    engine.posterior.together(0, [1])
