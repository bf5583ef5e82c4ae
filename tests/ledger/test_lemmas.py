import math

import numpy as np
import pytest
from scipy.optimize import linprog

from halfseen.ledger import lemmas
from halfseen.samplers import Region
from tests.ledger.broken import run_row


def test_descent_that_keeps_more_of_its_bias_breaks_the_bound(monkeypatch):
    right = lemmas.descend
    # The printed bound on the bias for both: then the mended form does not hold either.
    monkeypatch.setattr(lemmas, "descend", lambda steps, squared, *rest: right(steps, True, *rest))
    assert not run_row("lemmas/projected-descent").holds


@pytest.mark.parametrize("k", [1, 4])
def test_largest_eigenvalues_of_normals_are_hardly_ever_above_what_is_allowed(k):
    rng = np.random.default_rng(3)
    found = [
        float(np.linalg.eigvalsh(np.atleast_2d(np.cov(rng.standard_normal((k, 4_000)))))[-1])
        for _ in range(300)
    ]
    allowed = lemmas.largest_of_normals(4_000, k)
    assert max(found) < allowed < max(found) + 0.05


def test_draws_that_are_too_wide_break_the_row_on_variances(monkeypatch):
    right = lemmas.exact_draws
    monkeypatch.setattr(lemmas, "exact_draws", lambda *args: (1.1 * right(*args)[0], 1.0))
    assert not run_row("lemmas/convex-variance").holds


def test_an_algorithm_that_does_not_learn_breaks_the_row_on_truncation(monkeypatch):
    right = lemmas.truncated_sgd
    # However many rows there are, it sees the first 500.
    monkeypatch.setattr(lemmas, "truncated_sgd", lambda X, *a, **o: right(X[:500], *a, **o))
    assert not run_row("lemmas/truncated-learning").holds


def test_the_cube_of_the_inner_ball_lies_in_the_ball():
    region = lemmas.within(Region(np.zeros(3), np.eye(3)[:1], np.array([0.1])), 0.2)
    radius = math.sqrt(3) + math.sqrt(2 * math.log(10))
    # The furthest corner of the box, coordinate by coordinate.
    for sign in ([1, 1, 1], [-1, 1, -1]):
        corner = linprog(-np.array(sign, dtype=float), region.A, region.c, bounds=(None, None)).x
        assert np.linalg.norm(corner) <= radius + 1e-9


def test_another_norm_breaks_the_row_on_frobenius(monkeypatch):
    # The sum of singular values is up to √d times as large.
    monkeypatch.setattr(np.linalg, "norm", lambda M: np.linalg.svd(M, compute_uv=False).sum())
    entry = run_row("lemmas/frobenius")
    assert not entry.holds
    assert "Largest ratio" in entry.measured


def test_balls_that_are_slightly_smaller_break_the_row_on_inner_balls(monkeypatch):
    right = lemmas.inner_radius
    monkeypatch.setattr(lemmas, "inner_radius", lambda *args: 0.99 * right(*args))
    entry = run_row("lemmas/inner-ball")
    assert not entry.holds
    assert "for slabs" in entry.measured


def test_a_tenth_of_the_mass_breaks_the_row_on_outer_balls(monkeypatch):
    right = lemmas.log_ndtr
    monkeypatch.setattr(lemmas, "log_ndtr", lambda x: right(x) + math.log(0.1))
    entry = run_row("lemmas/outer-ball")
    assert not entry.holds
    assert "Mass over its bound" in entry.measured
