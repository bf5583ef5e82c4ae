"""Saved files that were damaged, or never saved: they are loaded whole, or refused in a sentence."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfseen as hs
from tests.fuzz.inputs import examples, rewritten, saved_files
from tests.fuzz.targets import (
    ACCEPTED,
    contents_of,
    load_rewritten,
    load_saved,
    outcome,
    saved_originals,
)

# JSON takes up to some 30 times its length in memory ("{}," is three bytes, and 72 as an object).
BYTES_PER_BYTE = 50
CONSTANT = 2**20


@examples(300)
@given(st.deferred(lambda: saved_files(saved_originals()["fit"])))
def test_fits(content):
    outcome(load_saved, content, hs.load)


@examples(300)
@given(st.deferred(lambda: rewritten([*map(contents_of, saved_originals()["fit"])])))
def test_fits_of_other_content(changed):
    outcome(load_rewritten, *changed)


@examples(300)
@given(st.deferred(lambda: saved_files(saved_originals()["regression"])))
def test_regressions(content):
    outcome(load_saved, content, hs.load)


def _regressions():
    return [contents_of(one, "regression") for one in saved_originals()["regression"]]


@examples(400)
@given(st.deferred(lambda: rewritten(_regressions())))
def test_regressions_of_other_content(changed):
    outcome(load_rewritten, *changed, "regression")


@examples(150)
@given(st.deferred(lambda: saved_files(saved_originals()["gaussian"])))
def test_gaussians(content):
    outcome(load_saved, content, hs.Gaussian.load)


@pytest.mark.parametrize("kind", ["fit", "regression", "gaussian"])
def test_what_was_saved_is_loaded(kind):
    load = hs.Gaussian.load if kind == "gaussian" else hs.load
    for content in saved_originals()[kind]:
        assert outcome(load_saved, content, load) == ACCEPTED


def test_what_a_saved_gaussian_lacks_is_told_in_a_sentence():
    content = b'{"format": "halfseen.gaussian", "version": 1, "mean": [0]}'
    assert outcome(load_saved, content, hs.Gaussian.load) == "InputError"


@pytest.mark.parametrize("load", [hs.load, hs.Gaussian.load], ids=["fit", "gaussian"])
@pytest.mark.parametrize("path", ["no such file", ".", "/dev/zero", "\x00", "x" * 5000])
def test_what_is_no_file_is_refused(path, load):
    assert outcome(load, path) != ACCEPTED


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"format":' * 20_000,
        b'{"format": "halfseen.gaussian", "version": 1, "mean": [' + b"9" * 100_000 + b"]}",
        b'{"format": "halfseen.gaussian", "version": 1, "mean": ' + b"[" * 500 + b"1" + b"]" * 500,
        b"[" + b"{}," * 50_000 + b"{}]",
        b"PK\x05\x06" + b"\xff" * 18,
        b"\x00" * 100_000,
    ],
    ids=[
        "open lists",
        "open objects",
        "digits",
        "deep lists",
        "empty objects",
        "empty ZIP",
        "NULs",
    ],
)
@pytest.mark.parametrize("load", [hs.load, hs.Gaussian.load], ids=["fit", "gaussian"])
def test_large_files_take_memory_in_proportion(content, load):
    tracemalloc.start()
    try:
        assert outcome(load_saved, content, load) != ACCEPTED
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < BYTES_PER_BYTE * len(content) + CONSTANT
