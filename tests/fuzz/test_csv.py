"""Files of separated values that nobody should write: they are read, or refused in a sentence."""

from __future__ import annotations

import io
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfseen as hs
from tests.fuzz.inputs import csv_files, examples, limits_files
from tests.fuzz.targets import (
    ACCEPTED,
    LIMITS_OPTIONS,
    LONG_OPTIONS,
    TABLE_OPTIONS,
    outcome,
    read_limits,
    read_long,
    read_table,
)

# A cell takes its text (50 bytes and more as a Python object), a place in a list and in a tuple, and up
# to six arrays of doubles and masks; the shortest cell is two bytes of the file.
BYTES_PER_BYTE = 200
# Buffers, compiled patterns and messages that do not grow with the file.
CONSTANT = 2**20


@examples(500)
@given(csv_files(), st.sampled_from(TABLE_OPTIONS))
def test_tables(content, options):
    outcome(read_table, content, options)


@examples(150)
@given(limits_files(), st.sampled_from(LIMITS_OPTIONS))
def test_limits(content, options):
    outcome(read_limits, content, options)


@examples(150)
@given(csv_files(), st.sampled_from(LONG_OPTIONS))
def test_long_tables(content, options):
    outcome(read_long, content, options)


@examples(200)
@given(st.binary(max_size=200), st.sampled_from(TABLE_OPTIONS))
def test_bytes(content, options):
    outcome(read_table, content, options)


WIDE = 5_000
LARGE = {
    "many columns": (
        ",".join(f"c{k}" for k in range(WIDE)) + "\n" + ",".join(["<0.5"] * WIDE) + "\n"
    ).encode(),
    "many flags": (
        ",".join(f"c{k},c{k}_flag" for k in range(1000)) + "\n" + ",".join(["1,U"] * 1000) + "\n"
    ).encode(),
    "many rows": b"a\n" + b"<0.5\n" * 20_000,
    "many empty lines": b"a\n1\n" + b"\n" * 20_000,
    "many unreadable cells": b"a,b\n" + b"x,y\n" * 2_000,
    "a long cell": b"a\n" + b"1" * 130_000 + b"\n",
    "a longer cell": b"a\n" + b"1" * 200_000 + b"\n",
    "a long name": b"a" * 130_000 + b"_flag,b\n1,2\n",
    "many quotes": b'a\n"' + b'""' * 60_000 + b'"\n',
    "an open quote": b'a\n"' + b"1\n" * WIDE,
    "many separators": b"a" + b"," * WIDE + b"\n1\n",
    "the same name": b",".join([b"a"] * WIDE) + b"\n" + b",".join([b"1"] * WIDE) + b"\n",
    "many groups": b"a\n" + b"1,111" + b".111" * 30_000 + b"\n",
    "NULs": b"a\n" + b"\x00" * WIDE,
}


@pytest.mark.parametrize("name", LARGE)
def test_large_files_take_memory_in_proportion(name):
    content = LARGE[name]
    tracemalloc.start()
    try:
        outcome(read_table, content, {})
        outcome(read_limits, content, {})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < BYTES_PER_BYTE * len(content) + CONSTANT


def test_an_input_of_each_kind_is_read():
    """The fuzzers go deep only if some of what they make is read."""
    assert outcome(read_table, b"lead,lead_flag\n0.3,\n0.1,U\n", {}) == ACCEPTED
    assert outcome(read_limits, b"column,lower\nlead,0.1\n", {}) == ACCEPTED
    assert outcome(read_table, b"lead\nx\n", {}) == "UnreadableError"


def test_another_error_is_a_finding():
    with pytest.raises(UnicodeDecodeError):
        outcome(b"\xff".decode, "utf-8")
    with pytest.raises(AssertionError, match="no sentence"):
        outcome(_refuse)
    assert outcome(hs.read_csv, io.BytesIO(b"")) == "InputError"


def _refuse() -> None:
    raise hs.InputError("no")
