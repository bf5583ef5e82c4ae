"""Tables that ``halfseen fit`` reads in pieces: Parquet in large or many files, or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from halfseen.cli.options import Blank, Covariance, Wanted
from halfseen.cli.reading import PARQUET, read_rule, read_scales, split_names
from halfseen.cli.running import say
from halfseen.data.interval_data import IntervalData
from halfseen.data.parquet_blocks import bytes_in_memory, is_parquet, scan_parquet
from halfseen.data.row_blocks import RowBlocks
from halfseen.errors import InputError
from halfseen.scaling.cluster import connected
from halfseen.solvers import Fit
from halfseen.solvers import fit as learn

# Bytes of numbers beyond which one file is read in pieces without being asked to.
LARGE = 2**28


def in_pieces(wanted: Wanted, memory: str | None, scheduler: str | None) -> bool:
    """Whether the table is to be read in pieces."""
    asked = [f"--{k}" for k, v in (("memory", memory), ("scheduler", scheduler)) if v is not None]
    name = wanted.data
    if name == "-" or not (is_parquet(name) or any(sign in name for sign in "*?[")):
        if asked:
            raise InputError(
                f"{asked[0]} is for Parquet files, which are read in pieces; {name} is not one. "
                "Convert it to Parquet first."
            )
        return False
    if asked or not os.path.isfile(name):
        return True
    return name.lower().endswith(PARQUET) and bytes_in_memory(name) > LARGE


def fit_in_pieces(
    wanted: Wanted,
    method: str,
    covariance: Covariance | None,
    seed: int,
    quiet: bool,
    scheduler: str | None,
    **options: Any,
) -> Fit:
    """Fit Parquet files piece by piece."""
    _refuse(wanted)
    columns = None if wanted.columns is None else split_names(wanted.columns)
    blocks = scan_parquet(wanted.data, columns)
    if not quiet:
        n, d = blocks.shape
        pieces = f"{len(blocks)} piece{'' if len(blocks) == 1 else 's'}"
        say(f"{wanted.data}: {n:,} rows, {d} columns, read in {pieces}")
    rule = read_rule(wanted, _names_only(blocks))
    if wanted.blank is Blank.RANDOM:
        # Every hidden cell of numbers is blank, so that the rule has nothing left to say.
        rule = None
    elif wanted.blank is Blank.HIDDEN and rule is None:
        raise InputError("--blank hidden says that a rule hid the blank cells; state it by --seen.")
    with _client(scheduler) as client:
        return learn(
            blocks,
            rule,
            method,
            covariance=None if covariance is None else str(covariance),
            random_state=seed,
            progress=True,
            transforms=read_scales(wanted.log, wanted.transform, blocks.names),
            client=client,
            **options,
        )


@contextmanager
def _client(address: str | None) -> Iterator[Any]:
    if address is None:
        yield None
        return
    with connected(address) as client:
        yield client


def _refuse(wanted: Wanted) -> None:
    """Refuse what needs the whole table, or cells of text."""
    for option, given, why in (
        ("--saturated", wanted.saturated, "set such values to null in the files"),
        ("--index", wanted.index is not None, "name the columns of numbers with --columns"),
        ("--missing", bool(wanted.missing), "set such values to null in the files"),
    ):
        if given:
            raise InputError(f"{option} is not for tables that are read in pieces; {why}.")


def _names_only(blocks: RowBlocks) -> IntervalData:
    """Return a table with the same columns, for rules that ask for no more."""
    empty = np.full((1, blocks.shape[1]), np.nan)
    return IntervalData(np.full_like(empty, -np.inf), np.full_like(empty, np.inf), blocks.names)
