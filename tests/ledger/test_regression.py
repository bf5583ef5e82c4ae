"""Rows on regression: what they draw, and that they fail where the solver is broken."""

import numpy as np
import pytest

from halfseen.ledger import regression
from tests.ledger.broken import run_row

ROW = "regression/truncated-rows"


@pytest.mark.parametrize(
    ("where", "share"), [("above a limit", 0.36), ("outside an interval", 0.65)]
)
def test_revealed_rows_lie_in_their_set(where, share):
    y, W, truth = regression.revealed(5, 20_000, where, 0)
    assert (W.shape, y.shape) == ((20_000, 5), (20_000,))
    assert np.linalg.norm(truth) == pytest.approx(1.0)
    lower, upper = regression.SETS[where]
    assert ((lower <= y[:, None]) & (y[:, None] <= upper)).any(axis=1).all()
    # Before truncation outcomes have variance 2.
    latent = np.sqrt(2.0) * np.random.default_rng(0).normal(size=200_000)
    inside = ((lower <= latent[:, None]) & (latent[:, None] <= upper)).any(axis=1)
    # Binomial standard error 0.0011, and what rounding to two digits leaves.
    assert inside.mean() == pytest.approx(share, abs=0.005 + 4 * 0.0011)


def test_errors_are_of_the_size_that_is_told():
    off, expected = regression.errors(3, 1_000, "above a limit", 40)
    # Mean squares of 40 · 3 normals, whose relative error is √(2/120).
    assert (off**2).mean() / (expected**2).mean() == pytest.approx(1.0, abs=4 * np.sqrt(2 / 120))


def test_leaving_truncation_out_fails(monkeypatch):
    right = regression.truncated_regression
    monkeypatch.setattr(regression, "truncated_regression", lambda y, W, *_: right(y, W))
    assert not run_row(ROW).holds


def test_using_some_of_the_rows_alone_fails(monkeypatch):
    right = regression.truncated_regression

    def lazy(y, W, lower, upper):
        return right(y[:500], W[:500], lower, upper)

    monkeypatch.setattr(regression, "truncated_regression", lazy)
    assert not run_row(ROW).holds


def test_errors_that_grow_like_the_number_of_covariates_fail(monkeypatch):
    right = regression.errors

    def wrong(k, n, where, tables):
        off, expected = right(k, n, where, tables)
        factor = np.sqrt(k / 8)
        return off * factor, expected * factor

    monkeypatch.setattr(regression, "errors", wrong)
    assert not run_row(ROW).holds


def test_a_set_that_is_read_as_its_hull_fails(monkeypatch):
    right = regression.truncated_regression

    def hull(y, W, lower, upper):
        return right(y, W, lower.min(), upper.max())

    monkeypatch.setattr(regression, "truncated_regression", hull)
    assert not run_row(ROW).holds
