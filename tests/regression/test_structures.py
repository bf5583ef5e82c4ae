"""Structures of the covariance of residuals: against direct optimisation, and what cannot be."""

import numpy as np
import pytest

import halfseen as hs
from halfseen.errors import InputError
from halfseen.solvers.regression.entries import Entries
from tests import naive_structures as naive

FAMILY = {family.name: family for family in naive.FAMILIES}
NAMES = ("a", "b", "c", "d")


def table(n=80, seed=0):
    """Ends of outcomes (two censored columns, one with blanks), and a regressor of two values."""
    rng = np.random.default_rng(seed)
    x = (rng.random(n) < 0.5).astype(float)
    Y = np.outer(x, [0.5, 0.2, -0.3, 0.0]) + rng.normal(size=(n, 4)) @ np.linalg.cholesky(
        0.5 + 0.5 * np.eye(4)
    ).T * [1.0, 1.2, 1.4, 1.1]  # fmt: skip
    low, high = Y.copy(), Y.copy()
    hidden = (Y < -0.3) & (np.arange(4) < 2)
    low[hidden], high[hidden] = -np.inf, -0.3
    blank = rng.random(n) < 0.25
    low[blank, 3], high[blank, 3] = -np.inf, np.inf
    return low, high, x


def regressed(covariance, **more):
    low, high, x = table()
    return hs.regress(
        hs.IntervalData(low, high, NAMES), x[:, None], covariance=covariance, random_state=0, **more
    )


@pytest.mark.parametrize("name", ["compound_symmetry", "ar1h", "kronecker(2, 2)", "factor(1)"])
def test_a_regression_is_the_top_of_the_exact_likelihood(name):
    low, high, x = table()
    fit = regressed(name)
    W = np.column_stack([np.ones(len(x)), x])
    value, step, errors = naive.newton_step(low, high, FAMILY[name], fit.weights, fit.residual, W)
    free = errors > 1e-9
    assert fit.status is hs.Status.CONVERGED
    np.testing.assert_allclose(step[free] / errors[free], 0.0, atol=1e-4)
    assert fit.log_likelihood == pytest.approx(value, abs=1e-6)
    assert fit.parameters == 8 + FAMILY[name].start.size
    np.testing.assert_allclose(fit.standard_errors.weights.ravel(), errors[:8], rtol=1e-3)
    covariance = np.asarray(fit.standard_errors.residual_covariance).ravel()
    np.testing.assert_allclose(covariance[free[8:]], errors[8:][free[8:]], rtol=1e-3)


def test_a_variance_of_zero_is_said():
    """Slopes do not vary here: the best fit has none, and is no worse than without them."""
    fit, plain = regressed(naive.LINES), regressed("compound_symmetry")
    assert fit.status is hs.Status.AT_BOUND
    assert "random effects" in fit.notes[0].text
    assert fit.log_likelihood >= plain.log_likelihood - 1e-3
    assert np.isfinite(fit.standard_errors.weights).all()


def test_coefficients_may_be_restricted_too():
    """Generalised least squares and the structure in turn; equal coefficients are equal."""
    tied = [[(name, "x0") for name in NAMES]]
    fit, loose = regressed("compound_symmetry", equal=tied), regressed("compound_symmetry")
    assert fit.parameters == loose.parameters - 3
    np.testing.assert_allclose(fit.weights[:, 1], fit.weights[0, 1], rtol=1e-9)
    assert hs.compare(loose, fit).test.degrees_of_freedom == 3
    assert fit.structure["correlation"].standard_error > 0.0


def test_blocks_go_with_latent_outcomes_and_other_structures_do_not():
    low, _, x = table()
    data = {"a": low[:, 2], "b": low[:, 2] > 0.0, "x": x}
    fit = hs.regress("a + b ~ x", data, covariance=hs.BlockDiagonal([1, 1]), random_state=0)
    assert fit.residual[0, 1] == 0.0
    assert fit.residual[1, 1] == 1.0
    with pytest.raises(InputError, match="variance 1"):
        hs.regress("a + b ~ x", data, covariance="compound_symmetry")


def test_a_file_and_a_summary_have_the_structure(tmp_path):
    fit = regressed(hs.CompoundSymmetry())
    assert "correlation" in fit.summary()
    fit.save(tmp_path / "fit.hsreg")
    back = hs.load(tmp_path / "fit.hsreg")
    assert back.structure.numbers() == fit.structure.numbers()
    assert fit.to_dict()["structure"]["name"] == "compound_symmetry"
    page = fit.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "compound_symmetry" in page


def test_robust_errors_are_those_of_the_structure():
    fit = regressed("compound_symmetry").robust()
    errors = np.asarray(fit.standard_errors.residual_covariance)
    # Variances are equal, and so are their errors.
    np.testing.assert_allclose(np.diag(errors), errors[0, 0], rtol=1e-6)


@pytest.mark.parametrize(
    ("covariance", "said"),
    [
        ("nothing", "one of"),
        ("shrinkage", "not pulled"),
        ("factor", "number of factors must be said"),
        ("kronecker(2, 3)", "6 columns; got 4"),
        (hs.BlockDiagonal([["a", "b"], ["c", "e"]]), "no column 'e'"),
    ],
)
def test_what_cannot_be_is_said(covariance, said):
    with pytest.raises(InputError, match=said):
        regressed(covariance)


@pytest.mark.parametrize("held", [[1], [0, 2], [], [0, 1, 2]])
def test_nothing_is_likelier_beside_columns_whose_covariance_is_given(held):
    """The gradient of −log|Σ| − tr Σ⁻¹S is 0 in each free entry, and a step of scoring stays."""
    rng = np.random.default_rng(3)
    A = rng.normal(size=(3, 8))
    S = A @ A.T / 8.0
    rows = np.isin(np.arange(3), held)
    free = ~np.outer(rows, rows)
    found = Entries(free, 0.3 + 0.7 * np.eye(3)).solve(S, 8)
    P = np.linalg.inv(found)
    assert np.abs((P @ (S - found) @ P)[free]).max(initial=0.0) < 1e-12
    np.testing.assert_array_equal(found[~free], (0.3 + 0.7 * np.eye(3))[~free])
