import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfseen as hs

POINTS = np.linspace(-6, 6, 241)
ends = st.integers(-20, 20).map(lambda k: k / 4)


@st.composite
def interval_unions(draw):
    cuts = sorted(draw(st.sets(ends, min_size=2, max_size=6)))
    pieces = [hs.between(a, b) for a, b in zip(cuts[0::2], cuts[1::2], strict=False)]
    result = pieces[0]
    for piece in pieces[1:]:
        result = result | piece
    return result


@given(interval_unions(), interval_unions())
@pytest.mark.filterwarnings("ignore::halfseen.AssumptionWarning")
def test_operators_do_to_sets_what_they_do_to_membership(a, b):
    x = POINTS
    np.testing.assert_array_equal((~a).contains(x), ~a.contains(x))
    np.testing.assert_array_equal((a | b).contains(x), a.contains(x) | b.contains(x))
    assert ~~a == a
    try:
        both = a & b
    except hs.InputError:
        # No interval in common; single points do not count.
        assert (a.contains(x) & b.contains(x)).sum() <= 6
        return
    inside = a.contains(x) & b.contains(x)
    # Intersections drop isolated common points, which have no mass.
    assert not (both.contains(x) & ~inside).any()
    lost = np.flatnonzero(inside & ~both.contains(x))
    assert all(not inside[k - 1 : k + 2].all() for k in lost)


@given(interval_unions())
def test_pieces_are_apart_and_in_order(a):
    for left, right in zip(a.pieces, a.pieces[1:], strict=False):
        assert left.upper < right.lower or (
            left.upper == right.lower and not (left.closed_upper or right.closed_lower)
        )


@given(interval_unions())
def test_predicate_agrees_with_the_intervals_it_was_made_of(a):
    p = hs.Predicate(a.contains)
    np.testing.assert_array_equal(p.contains(POINTS), a.contains(POINTS))
    np.testing.assert_array_equal((~p).contains(POINTS), ~a.contains(POINTS))
    np.testing.assert_array_equal(
        (p | hs.at_least(5)).contains(POINTS), a.contains(POINTS) | (POINTS >= 5)
    )


def test_ends_belong_as_named():
    assert hs.at_least(1.0).contains(1.0)
    assert not (~hs.at_least(1.0)).contains(1.0)
    assert hs.at_most(1.0).contains(1.0)
    assert hs.between(0, 1).contains([0, 1]).all()


def test_repr_reads_like_the_call():
    assert repr(hs.between(0, 1) | hs.at_least(3)) == "between(0, 1) | at_least(3)"
    assert repr(~hs.between(0, 1)) == "below(0) | above(1)"
    assert repr(hs.everything) == "everything"


def test_touching_pieces_join_silently():
    assert hs.between(0, 1) | hs.between(1, 2) == hs.between(0, 2)
    assert hs.at_least(0) | ~hs.at_least(0) == hs.everything


def test_overlap_is_joined_with_a_warning():
    with pytest.warns(hs.AssumptionWarning, match=r"overlap between 1 and 2.*one interval"):
        assert hs.between(0, 2) | hs.between(1, 3) == hs.between(0, 3)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: hs.between(3, 1), r"from 3 to 1 is empty.*did you mean between\(1, 3\)"),
        (lambda: hs.between(2, 2), "is empty"),
        (lambda: hs.at_least(math.nan), "NaN"),
        (lambda: hs.at_least("a"), "must be numbers"),
        (lambda: ~hs.everything, "complement of everything is empty"),
        (lambda: hs.at_least(1) & hs.at_most(0), "no interval in common"),
        (lambda: hs.Union([]), "at least one interval"),
        (lambda: hs.Predicate(3), "takes a function"),
        (lambda: hs.Predicate(lambda x: 0 < x < 1).contains([1.0, 2.0]), "failed on an array"),
        (lambda: hs.Probability(None), "takes a function"),
        (lambda: hs.Predicate(lambda x: x.sum() > 0).contains([1.0, 2.0]), "one entry for each"),
        (lambda: hs.Predicate(lambda x: x).contains([0.5]), "True or False"),
        (lambda: hs.Probability(lambda x: x).probability([2.0]), "between 0 and 1; at 2 it gave 2"),
        (lambda: hs.Probability(lambda x: x * np.nan).probability([2.0]), "between 0 and 1"),
    ],
)
def test_bad_sets_get_a_sentence(make, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        make()


def test_everything_absorbs():
    odd = hs.Predicate(lambda x: x > 0)
    assert hs.everything | odd == hs.everything
    assert (odd & hs.everything) is odd


@given(st.floats(-5, 5))
def test_union_of_probabilities_is_that_of_independent_chances(x):
    half = hs.Probability(lambda t: np.full_like(t, 0.5))
    joined = half | hs.at_least(0)
    assert joined.probability(x) == (1.0 if x >= 0 else 0.5)
    assert (half & hs.at_least(0)).probability(x) == (0.5 if x >= 0 else 0.0)
