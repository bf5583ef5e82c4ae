"""Rules that nobody should write: they are read and used, or refused in a sentence."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given

import halfseen as hs
from tests.fuzz.inputs import examples, told_columns, told_rules
from tests.fuzz.targets import ACCEPTED, outcome, use_rule

# A character is a token at worst: an object of some 200 bytes with its text and its place in a list.
BYTES_PER_CHARACTER = 300
CONSTANT = 2**18


@examples(700)
@given(told_rules(), told_columns())
def test_rules(told, columns):
    outcome(use_rule, told, columns)


LARGE = {
    "a long text": "a" * 10**6,
    "many signs": "lead: " + "-" * 9_000 + "1 >= lead",
    "many terms": "lead: " + "+".join(["zinc"] * 1_900) + " >= 0",
    "many factors": "lead: lead" + "*1e3" * 2_400 + " >= 0",
    "many halves": "lead: lead" + "/3" * 600 + " >= 0",
    "many pieces": "lead: " + " | ".join(f"{k}..{k}.5" for k in range(900)),
    "many pieces that overlap": "lead: " + " | ".join([">= 0"] * 1_400),
    "many names": ", ".join(f"a{k}" for k in range(1_400)) + ": largest",
    "many quotes": '"' * 9_999,
    "many colons": ":" * 9_999,
    "many comparisons": "lead: " + "<1" * 4_900,
}


@pytest.mark.parametrize("name", LARGE)
def test_large_rules_take_memory_in_proportion(name):
    text = LARGE[name]
    tracemalloc.start()
    try:
        outcome(use_rule, text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < BYTES_PER_CHARACTER * min(len(text), 10_000) + CONSTANT + 4 * len(text)


def test_lists_and_dicts_that_hold_themselves_are_refused():
    loop: list[object] = []
    loop.append(loop)
    assert outcome(hs.rules, loop) == "InputError"
    assert outcome(hs.rules, {"lead": loop}) == "InputError"


@pytest.mark.parametrize(
    "rule",
    ['"PM-10": lead/0.5 > 3e2', "hours: 0.5 + 1e308 - zinc <= 0.5", "zinc: lead - hours > 1"],
)
def test_values_at_the_edge_of_a_double_are_compared_without_a_warning(rule):
    """Twice a value of 1e308, and 1e308 beside one, are more than a double can hold."""
    assert outcome(use_rule, rule) in (ACCEPTED, "ContradictionError")
