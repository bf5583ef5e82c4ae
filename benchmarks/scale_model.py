"""Plans for a billion rows and for 10 000 columns, from rates that are measured and a simulation."""

from __future__ import annotations

import operator
import time
from collections.abc import Iterator
from dataclasses import replace
from math import ceil, log2
from typing import Any

import numpy as np

import halfseen as hs
from benchmarks import scale_rates as rates
from benchmarks.cluster_simulation import Costs, Machines, Outcome, Step, simulate_step
from benchmarks.registry import Row, task
from benchmarks.scale_rates import HIDDEN, kept_piece, processor_seconds
from benchmarks.small_cluster import (
    SmallCluster,
    blocks_on,
    measure_overhead,
    nothing,
    small_cluster,
)
from halfseen.data.table import cache_rows, chunk_rows
from halfseen.parallel import single_blas_thread
from halfseen.scaling.cluster import ClusterEngine, Common, _look
from halfseen.scaling.engine import Arrays, size_of
from halfseen.solvers.full_information.ascent import MEMORY
from halfseen.solvers.full_information.shards import ask_piece

BILLION, D = 10**9, 100
MILLION, WIDE = 10**6, 10_000
CORES = (1, 16, 256)
# A network that is assumed, not measured: 10 Gbit/s, and 0.2 ms there.
LATENCY, BANDWIDTH = 2e-4, 1.25e9
# Rows of a block in the runs that the simulation is compared with: work of some milliseconds, so that
# what comes on top of it counts.
VALIDATION_ROWS = cache_rows(D)
VALIDATION_BLOCKS = (4, 16, 64, 256)
# Blocks of nothing, where the scheduler and the workers' own costs are all there is.
EMPTY_BLOCKS = 512
# Blocks from whose steps the cost of a task is taken for the forecast.
MANY_BLOCKS = 2048
# How much larger than now blocks could be.
LARGER = (1, 8, 64)
WORKERS = (1, 4, 16, 64, 256, 1024, 4096)


def human(seconds: float) -> str:
    """Write a time for people.

    Examples
    --------
    >>> human(0.02), human(95.0), human(8000.0), human(2e6)
    ('0.020 s', '95 s', '2.2 h', '23 days')
    """
    for limit, unit, name in ((1, 1, "s"), (120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            amount = seconds / unit
            return f"{amount:.3f} s" if seconds < 1 else f"{_digits(amount)} {name}"
    return f"{_digits(seconds / 86400)} days"


def _digits(amount: float) -> str:
    return f"{amount:.1f}" if amount < 9.95 else f"{amount:.0f}"


def on_cores(seconds: float) -> str:
    """Write the time of work that is spread evenly over 1, 16 and 256 cores."""
    return ", ".join(human(seconds / cores) for cores in CORES)


@task
def scale_rates(quick: bool) -> Iterator[Row]:
    """Measure what one core does in a second."""
    speed, rows = rates.reading_rate()
    yield Row("reading Parquet, one core, d = 100, 30 % null", f"{speed / 1e6:.0f} MB/s", "")
    yield Row("the same in rows", f"{rows / 1e3:.0f} thousand rows/s", "")
    for d in (20, 100) if quick else (20, 100, 500, 1000):
        found = rates.moments_rate(d)
        yield Row(
            f"moments of pairs, one core, d = {d}: rows a second; Gflop/s, and of one bare product",
            f"{_digits(found.rows_per_second / 1e3)} thousand; {found.moments / 1e9:.0f}, "
            f"{found.bare / 1e9:.0f}",
            "",
        )
    for d in (100,) if quick else (100, 500):
        pair = rates.pair_rate(d)
        yield Row(f"pairwise: microseconds of one pair, d = {d}", f"{1e6 * pair:.0f}", "")
    for d in (20, 100) if quick else (20, 100, 500, 1000, 2000):
        cell = rates.step_rate(d)
        yield Row(f"full: a hidden cell in one step, d = {d}", f"{1e6 * cell:.2f} µs", "")
    for d in (100, 500) if quick else (100, 500, 1000, 2000):
        step, eigen = rates.m_step_seconds(d)
        yield Row(
            f"client: M step of full, eigenvalues of pairwise, one thread, d = {d}",
            f"{step:.3g} s, {eigen:.3g} s",
            "",
        )


@task
def scale_plan(quick: bool) -> Iterator[Row]:
    """Plan bytes, flops and time of two large tables, where cores are all that is needed."""
    yield from _many_rows(quick)
    yield from _many_columns(200 if quick else WIDE)


def _many_rows(quick: bool) -> Iterator[Row]:
    n, d = BILLION, D
    pieces, _, reading = ceil(n / chunk_rows(d)), *rates.reading_rate()
    found, cell = rates.moments_rate(d), rates.step_rate(d)
    kept = size_of(kept_piece(chunk_rows(d), d)[0]) / chunk_rows(d)
    about = "a billion rows, d = 100, 30 % hidden"
    yield Row(
        f"{about}: GB of numbers, of Parquet, kept by full",
        f"{8e-9 * n * d:.0f}, {8e-9 * n * d * (1 - HIDDEN):.0f}, {1e-9 * n * kept:.0f}",
        "",
    )
    yield Row(f"{about}: pieces, rows in each", f"{pieces}, {chunk_rows(d)}", "")
    yield Row(
        f"{about}: kB of moments of one piece, of sums of one step",
        f"{0.032 * d * d:.0f}, {0.008 * (d + d * d):.0f}",
        "",
    )
    seconds = n / reading + n / found.rows_per_second
    yield Row(
        f"{about}: pairwise, {_flops(8.0 * n * d * d)}, 1, 16, 256 cores", on_cores(seconds), ""
    )
    step = n * d * HIDDEN * cell
    yield Row(f"{about}: full, one step, 1, 16, 256 cores", on_cores(step), "")
    X = rates.table(4000 if quick else 20_000, d)
    fit = hs.fit(X, hs.DetectionLimits(lower=rates.LIMIT), random_state=0)
    steps = fit.history["steps"]
    yield Row(
        f"full, d = 100, n = {len(X)}: steps until the Monte-Carlo error is small", f"{steps}", ""
    )
    yield Row(f"{about}: full, {steps} steps, 1, 16, 256 cores", on_cores(steps * step), "")


def _many_columns(d: int) -> Iterator[Row]:
    n = MILLION
    rows, pieces = chunk_rows(d), ceil(n / chunk_rows(d))
    about = f"a million rows, d = {d}, 30 % hidden"
    matrix = 8e-9 * d * d
    yield Row(
        f"{about}: GB of numbers; pieces, rows in each", f"{8e-9 * n * d:.0f}; {pieces}, {rows}", ""
    )
    yield Row(
        f"{about}: GB of the moments of one piece, whose numbers take {8e-9 * rows * d:.3f}; of all "
        "that one machine adds up at a time; of all pieces",
        f"{4 * matrix:.1f}; {4 * matrix * ceil(log2(pieces)):.0f}; {4 * matrix * pieces:.0f}",
        "",
    )
    found = rates.moments_rate(d)
    yield Row(
        f"{about}: pairwise, moments, {_flops(8.0 * n * d * d)} (Gflop/s: {found.moments / 1e9:.0f}, "
        f"bare product {found.bare / 1e9:.0f}), 1, 16, 256 cores",
        on_cores(n / found.rows_per_second),
        "",
    )
    pairs, each = d * (d - 1) / 2, rates.pair_rate(min(d, 500))
    yield Row(
        f"{about}: {pairs:.3g} pairs at {1e6 * each:.0f} µs, 1, 16, 256 cores",
        on_cores(pairs * each),
        "",
    )
    counting = rates.counting_seconds(d)
    yield Row(
        f"{about}: besides, what the client does for each pair, one thread",
        f"{1e6 * counting:.0f} µs, {human(pairs * counting)} in all",
        "",
    )
    # The factors of a row's hidden cells take the square of their number for each of them.
    small = min(d, 500)
    cell = (d / small) ** 2 * rates.step_rate(small)
    yield Row(
        f"{about}: full, a hidden cell in one step, as the square of d from {small}",
        f"{1e6 * cell:.0f} µs",
        "",
    )
    yield Row(f"{about}: full, one step, 1, 16, 256 cores", on_cores(n * d * HIDDEN * cell), "")
    small = min(d, 1000)
    step, eigen = ((d / small) ** 3 * one for one in rates.m_step_seconds(small))
    yield Row(
        f"{about}: M step of full, eigenvalues of pairwise, one thread, as the cube of d from {small}",
        f"{human(step)}, {human(eigen)}",
        "",
    )
    held = 8e-9 * 2 * MEMORY * (d + d * (d + 1) / 2)
    yield Row(
        f"{about}: GB of steps that full remembers; of sums for standard errors",
        f"{held:.0f}; {25 * matrix:.0f}",
        "",
    )


def _flops(number: float) -> str:
    return f"{number:.1g} flops"


@task
def scale_simulation(quick: bool) -> Iterator[Row]:
    """Compare the simulation with real runs, then run it for clusters that are not here."""
    blocks = 64 if quick else MANY_BLOCKS
    with small_cluster(1) as cluster:
        few = measure_overhead(cluster, blocks // 8, 4)
        costs = measure_overhead(cluster, blocks, 1)
    yield Row(
        f"processor time of one task, steps of {blocks // 8} blocks: client, scheduler, worker",
        f"{1e3 * few.client:.2f} ms, {1e3 * (few.submit + few.finish):.2f} ms, "
        f"{1e3 * few.worker:.2f} ms",
        "",
    )
    yield Row(
        f"processor time of one task, steps of {blocks} blocks: client, scheduler, worker",
        f"{1e3 * costs.client:.2f} ms, {1e3 * (costs.submit + costs.finish):.2f} ms, "
        f"{1e3 * costs.worker:.2f} ms",
        "",
    )
    yield Row("tasks a second of one scheduler", f"{1 / (costs.submit + costs.finish):.0f}", "")
    yield Row("from a process to another on this machine", f"{1e3 * costs.hop:.1f} ms", "")
    yield from _validation(costs, quick)
    yield from _forecast(costs, quick)


def make_piece(piece: Any, number: int) -> Arrays:
    """Return what is kept of a block in the runs that are compared."""
    return kept_piece(VALIDATION_ROWS, D)[0]


def _work_of_block(rows: int) -> Step:
    """Measure here what a worker does with a block."""
    fixed, common = kept_piece(rows, D)
    with single_blas_thread():
        work = processor_seconds(lambda: _look(ask_piece, Common(common), fixed))
        sums = ask_piece(fixed, *common)
        adding = processor_seconds(lambda: sums + sums)
        before = rates.m_step_seconds(D)[0]
    return Step(1, work, adding, before, sums.first.nbytes + sums.second.nbytes)


def _validation(costs: Costs, quick: bool) -> Iterator[Row]:
    one = _work_of_block(VALIDATION_ROWS)
    off = []
    empty = 64 if quick else EMPTY_BLOCKS
    kinds = [(blocks, one, asking_steps) for blocks in VALIDATION_BLOCKS[: 2 if quick else None]]
    kinds.append((empty, Step(1, 0.0, 0.0, 0.0, 8), empty_steps))
    for workers in (1, 2):
        with small_cluster(workers) as cluster:
            for blocks, block, steps in kinds:
                seconds, speed = _measured_step(cluster, steps(cluster, blocks))
                step = replace(block, blocks=blocks, before=0.0)
                found = simulate_step(step, Machines(workers, speed=speed), costs)
                off.append(found.seconds / seconds)
                what = f"{VALIDATION_ROWS} rows, d = 100" if block is one else "no rows"
                yield Row(
                    f"a step of full, {blocks} blocks of {what}, workers: {workers}: measured, "
                    f"simulated (with a core {100 * speed:.0f} % of the time)",
                    f"{seconds:.2f} s, {found.seconds:.2f} s",
                    "",
                )
    yield Row(
        "simulated / measured: least, most, geometric mean",
        f"{min(off):.2f}, {max(off):.2f}, {np.exp(np.mean(np.log(off))):.2f}",
        "",
    )


def _measured_step(
    cluster: SmallCluster, steps: Iterator[None], repeats: int = 3
) -> tuple[float, float]:
    """Seconds of a step (the mean of some), and the share of the time in which there was a core."""
    next(steps)
    before, begun = cluster.spent(), time.perf_counter()
    for _ in range(repeats):
        next(steps)
    seconds = (time.perf_counter() - begun) / repeats
    speed = cluster.spent().since(before).speed
    steps.close()  # type: ignore[attr-defined]
    return seconds, speed


def asking_steps(cluster: SmallCluster, blocks: int) -> Iterator[None]:
    """Ask some blocks, a step each time."""
    common = kept_piece(2, D)[1]
    with ClusterEngine(cluster.client) as engine:
        fixed = engine.make(make_piece, range(blocks), range(blocks))
        while True:
            engine.total(ask_piece, fixed, common=common, combine=operator.add)
            yield


def empty_steps(cluster: SmallCluster, blocks: int) -> Iterator[None]:
    """Do nothing with some blocks, a step each time."""
    with ClusterEngine(cluster.client) as engine:
        kept = blocks_on(engine, blocks)
        while True:
            engine.total(nothing, kept, common=(1,), combine=operator.add)
            yield


def _forecast(costs: Costs, quick: bool) -> Iterator[Row]:
    one = _work_of_block(chunk_rows(D))
    tasks = 2 * ceil(BILLION / chunk_rows(D))
    yield Row(
        f"a billion rows, d = 100: pairwise, {tasks} tasks: time of the scheduler alone",
        human(tasks * (costs.submit + costs.finish)),
        "",
    )
    table: dict[int, list[Outcome]] = {}
    for larger in LARGER[-1:] if quick else LARGER:
        blocks = ceil(BILLION / chunk_rows(D) / larger)
        step = Step(blocks, larger * one.work, one.combine, one.before, one.result)
        for workers in WORKERS:
            machines = Machines(workers, LATENCY, BANDWIDTH)
            table.setdefault(larger, []).append(simulate_step(step, machines, costs))
        yield Row(
            f"a billion rows, d = 100, {blocks} blocks: simulated step of full with "
            f"{', '.join(map(str, WORKERS))} workers",
            ", ".join(human(found.seconds) for found in table[larger]),
            "",
        )
        shares = [f"{100 * found.scheduler:.0f} %" for found in table[larger]]
        yield Row(
            "the same: share of the time in which the scheduler is busy", ", ".join(shares), ""
        )
    if not quick:
        draw(table, one.work * BILLION / chunk_rows(D))


def draw(table: dict[int, list[Outcome]], work: float) -> None:
    """Draw time of a step against workers, for each size of blocks."""
    import matplotlib.pyplot as plt

    from benchmarks.figures import CHAIN, FOLDER, INK, NAIVE, OURS, QUIET, save_on_card

    figure, axes = plt.subplots(figsize=(6.4, 3.9), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.14, h_pad=0.12)
    x = np.array(WORKERS, dtype=float)
    axes.loglog(x, work / x, color=QUIET, linestyle=(0, (4, 2.5)), linewidth=1.2)
    for (larger, found), colour in zip(table.items(), (NAIVE, CHAIN, OURS), strict=True):
        y = [outcome.seconds for outcome in found]
        axes.loglog(x, y, color=colour, marker="o", markersize=4)
        blocks = ceil(BILLION / chunk_rows(D) / larger)
        axes.text(
            x[-1] * 1.25, y[-1], f"{blocks:,} blocks".replace(",", " "), color=colour, va="center"
        )
    axes.text(x[-1] * 1.25, work / x[-1], "work alone", color=QUIET, va="center")
    axes.set(
        facecolor="none", xlim=(0.8, x[-1] * 30), xticks=x, xticklabels=[f"{w:.0f}" for w in x]
    )
    axes.minorticks_off()
    axes.set_yticks([10, 100, 1000, 10_000], ["10", "100", "1000", "10 000"])
    axes.spines["bottom"].set_bounds(0.8, x[-1] * 1.25)
    axes.set_xlabel("workers, one thread each", color=INK)
    axes.set_ylabel("seconds for one step of full", color=INK)
    axes.set_title(
        "A billion rows: the scheduler sets the limit", loc="left", weight="bold", fontsize=11
    )
    axes.spines[["top", "right"]].set_visible(False)
    save_on_card(figure, FOLDER / "scale-simulation.png")
