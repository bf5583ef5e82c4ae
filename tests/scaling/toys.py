"""Work that engines are tried with: it can be sent to other processes."""

import operator
import os
import signal
import time
from pathlib import Path

import numpy as np

BLOCKS, ROWS, COLUMNS = 11, 400, 6


def make_rows(piece, number, scale):
    rng = np.random.default_rng(number)
    return {
        "x": scale * rng.normal(size=(piece, COLUMNS)),
        "number": np.array(number),
        # Fortran order, a view, and no elements: whatever a solver may think of.
        "F": np.asfortranarray(rng.normal(size=(5, 4))),
        "part": np.arange(20, dtype=np.int8)[::2],
        "none": np.empty((0, 3), dtype=bool),
    }


def make_weights(piece, number):
    return {"weight": np.linspace(0.1, 1.0, piece) * (number + 1)}


def as_told(piece, number):
    """Keep a piece that is a dictionary of arrays already."""
    return piece


def keep(engine, values):
    values = list(values)
    return engine.make(as_told, values, range(len(values)))


def ask(rows, weights, moment, P):
    """Random sums keyed by block and moment."""
    rng = np.random.default_rng((int(rows["number"]), moment))
    x = rows["x"] + np.sin(weights["weight"])[:, None] * np.tanh(rows["x"] @ P)
    x += rng.normal(size=x.shape)
    return x.T @ x + (rows["F"] @ rows["F"].T).sum()


def rows_of(rows, first):
    return rows["x"][first:]


def product(rows, weights):
    return weights["weight"] @ rows["x"]


def read_sum(piece, number, scale):
    return make_rows(piece, number, scale)["x"].sum(axis=0)


def power(item, exponent):
    return item**exponent


def run(engine, steps=6, before_step=lambda moment: None):
    """Return everything that a chain of questions gives."""
    out = []
    rows = engine.make(make_rows, [ROWS] * BLOCKS, range(BLOCKS), 2.0)
    weights = engine.make(make_weights, [ROWS] * BLOCKS, range(BLOCKS))
    P = np.random.default_rng(1).normal(size=(COLUMNS, COLUMNS))
    for moment in range(steps):
        before_step(moment)
        moments = engine.total(ask, rows, weights, common=(moment, P), combine=operator.add)
        out.append(moments)
        # The parameters of the next question come from the answer to this one, as in a solver.
        P = np.linalg.inv(moments / np.trace(moments) + np.eye(COLUMNS))
    out.append(engine.total(product, rows, weights, combine=operator.add))
    out.extend(engine.each(rows_of, rows, common=(ROWS - 3,)))
    out.extend(engine.map(power, range(7), 2))
    pieces = [ROWS] * BLOCKS
    out.append(engine.stream(read_sum, pieces, range(BLOCKS), 2.0, combine=operator.add))
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


def sleep_and_note(rows, folder, seconds):
    """Leave a file for each time that this was run."""
    Path(folder, f"{int(rows['number'])}-{time.time_ns()}").touch()
    time.sleep(seconds)
    return rows["x"].sum()
