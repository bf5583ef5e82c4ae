"""Work that engines are tried with: it can be sent to other processes."""

import operator
import os
import signal
import time
from pathlib import Path

import numpy as np

BLOCKS, ROWS, COLUMNS = 11, 400, 6


def make_state(piece, number, scale):
    rng = np.random.default_rng(number)
    return {
        "x": scale * rng.normal(size=(piece, COLUMNS)),
        "number": np.array(number),
        # Fortran order, a view, and no elements: whatever a solver may think of.
        "F": np.asfortranarray(rng.normal(size=(5, 4))),
        "part": np.arange(20, dtype=np.int8)[::2],
        "none": np.empty((0, 3), dtype=bool),
    }


def make_fixed(piece, number):
    return {"weight": np.linspace(0.1, 1.0, piece) * (number + 1)}


def sweep_toy(state, fixed, time, P):
    """Random updates keyed by block and time, in place."""
    rng = np.random.default_rng((int(state["number"]), time))
    state["x"] += np.sin(fixed["weight"])[:, None] * np.tanh(state["x"] @ P)
    state["x"] += rng.normal(size=state["x"].shape)
    state["F"] += (state["F"] @ state["F"].T)[:, :4] * 1e-3
    return state, state["x"].T @ state["x"] + state["F"].sum()


def rows_of(state, first):
    return state["x"][first:]


def product(state, fixed):
    return fixed["weight"] @ state["x"]


def power(item, exponent):
    return item**exponent


def run(engine, steps=6, before_step=lambda time: None):
    """Return everything that a chain of steps gives."""
    out = []
    state = engine.make(make_state, [ROWS] * BLOCKS, range(BLOCKS), 2.0)
    fixed = engine.make(make_fixed, [ROWS] * BLOCKS, range(BLOCKS))
    P = np.random.default_rng(1).normal(size=(COLUMNS, COLUMNS))
    for moment in range(steps):
        before_step(moment)
        state, moments = engine.step(
            sweep_toy, state, fixed, common=(moment, P), combine=operator.add
        )
        out.append(moments)
        # The parameters of the next step come from the result of this one, as in a solver.
        P = np.linalg.inv(moments / np.trace(moments) + np.eye(COLUMNS))
    out.append(engine.total(product, state, fixed, combine=operator.add))
    rows = list(engine.each(rows_of, state, common=(ROWS - 3,)))
    out.extend([*rows, *engine.map(power, range(7), 2)])
    again = engine.put({"x": block} for block in rows)
    out.append(engine.total(rows_of, again, common=(1,), combine=operator.add))
    engine.release(again)
    engine.release(fixed)
    return out


def assert_same_bits(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def die_once(item, marker):
    """Kill the process that this runs in, the first time."""
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item + 1


def die(item):
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(item):
    raise ValueError(f"item {item}")


def sleep_and_note(state, folder, seconds):
    """Leave a file for each time that this was run."""
    Path(folder, f"{int(state['number'])}-{time.time_ns()}").touch()
    time.sleep(seconds)
    state["x"] += 1.0
    return state, state["x"].sum()
