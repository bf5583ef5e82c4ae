"""Structures of the covariance: against direct optimisation and differences, and at their bounds."""

import warnings

import numpy as np
import pytest

import halfseen as hs
from halfseen.errors import InputError
from halfseen.solvers.structures import InUnits, read_structure
from halfseen.theta import entries
from tests import naive_structures as naive

FAMILY = {family.name: family for family in naive.FAMILIES}
# Columns of unequal spread, so that structures with equal variances do not fit.
TRUTH = np.array(
    [[1.0, 0.6, 0.5, 0.3], [0.6, 1.6, 0.9, 0.6], [0.5, 0.9, 1.3, 0.8], [0.3, 0.6, 0.8, 1.9]]
)


def ends(n=80, seed=0, mean=(0.2, 0.0, 0.4, 0.1)):
    """Ends of cells: values, censored ones in the first two columns, blanks in the last."""
    rng = np.random.default_rng(seed)
    Y = rng.multivariate_normal(mean, TRUTH, n)
    low, high = Y.copy(), Y.copy()
    hidden = (Y < -0.3) & (np.arange(4) < 2)
    low[hidden], high[hidden] = -np.inf, -0.3
    blank = rng.random(n) < 0.25
    low[blank, 3], high[blank, 3] = -np.inf, np.inf
    return low, high


def fitted(low, high, covariance, **more):
    return hs.fit(hs.IntervalData(low, high), covariance=covariance, random_state=0, **more)


@pytest.mark.parametrize("name", FAMILY)
def test_a_fit_is_the_top_of_the_exact_likelihood(name):
    low, high = ends()
    fit = fitted(low, high, name)
    value, step, errors = naive.newton_step(low, high, FAMILY[name], fit.mean, fit.covariance)
    free = errors > 1e-9
    assert fit.status is hs.Status.CONVERGED
    np.testing.assert_allclose(step[free] / errors[free], 0.0, atol=1e-4)
    np.testing.assert_allclose(fit.covariance.ravel()[~free[4:]], 0.0, atol=1e-12)
    assert fit.log_likelihood.value == pytest.approx(value, abs=1e-6)
    assert fit.parameters == 4 + FAMILY[name].start.size
    # The curvature of a structure times a score that is not zero across it is left out: its share is
    # about one over the root of the rows.
    np.testing.assert_allclose(fit.standard_errors.mean, errors[:4], rtol=1e-3)
    ratio = fit.standard_errors.covariance.ravel()[free[4:]] / errors[4:][free[4:]]
    np.testing.assert_allclose(ratio, 1.0, rtol=1e-3)


@pytest.mark.parametrize("name", ["compound_symmetry", "factor(1)"])
def test_a_fit_is_where_an_optimiser_ends_that_starts_elsewhere(name):
    low, high = ends()
    fit = fitted(low, high, name)
    mean, Sigma, value = naive.maximise(low, high, FAMILY[name])
    np.testing.assert_allclose((fit.mean - mean) / fit.standard_errors.mean, 0.0, atol=1e-4)
    error = fit.standard_errors.covariance
    np.testing.assert_allclose((fit.covariance - Sigma) / error, 0.0, atol=1e-4)
    assert fit.log_likelihood.value == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("name", FAMILY)
def test_a_basis_spans_the_derivatives(name):
    """Those of the textbook's numbers, by differences; and it has no column too many."""
    family, structure = FAMILY[name], read_structure(name)
    theta = family.start + 0.2 * np.random.default_rng(1).normal(size=family.start.size)
    Sigma = family.sigma(theta)
    basis = structure.basis(Sigma)
    wanted = entries(naive.slopes(family.sigma, theta)).T
    assert basis.shape[1] == structure.count(4) == wanted.shape[1]
    assert np.linalg.matrix_rank(basis) == basis.shape[1]
    left = wanted - basis @ np.linalg.lstsq(basis, wanted)[0]
    np.testing.assert_allclose(left, 0.0, atol=1e-7)
    # What has the structure is its own best fit, in other units too.
    np.testing.assert_allclose(structure.solve(Sigma, 1), Sigma, rtol=1e-9, atol=1e-9)
    units = np.array([0.3, 2.0, 1.0, 5.0])
    D = np.outer(units, units)
    seen = InUnits.of(structure, units)
    np.testing.assert_allclose(seen.solve(Sigma / D, 1) * D, Sigma, rtol=1e-8, atol=1e-9)
    scaled = seen.basis(Sigma / D) * entries(D)[:, None]
    left = scaled - basis @ np.linalg.lstsq(basis, scaled)[0]
    np.testing.assert_allclose(left, 0.0, atol=1e-7)


@pytest.mark.parametrize("name", [*FAMILY, "factor(2)"])
def test_the_best_fit_has_no_slope(name):
    """Of −log|Σ| − tr Σ⁻¹S along the structure, and no neighbour is better."""
    structure = read_structure(name)
    rng = np.random.default_rng(2)
    d = 6 if name == "factor(2)" else 4
    A = rng.normal(size=(d, 3 * d))
    S = A @ A.T / (3 * d)
    Sigma = structure.solve(S, 1)
    P = np.linalg.inv(Sigma)
    G = P @ (S - Sigma) @ P
    i, j = np.tril_indices(d)
    slope = structure.basis(Sigma).T @ (entries(G) * np.where(i == j, 1.0, 2.0))
    np.testing.assert_allclose(slope, 0.0, atol=1e-6)

    def height(C):
        return -np.linalg.slogdet(C)[1] - np.trace(np.linalg.solve(C, S))

    for one in structure.basis(Sigma).T:
        for side in (-0.05, 0.05):
            C = Sigma.copy()
            C[i, j] += side * one
            C[j, i] = C[i, j]
            if np.linalg.eigvalsh(C)[0] > 0.0:
                near = structure.solve(C, 1)
                assert height(near) <= height(Sigma) + 1e-12


@pytest.mark.parametrize("name", ["compound_symmetry", "ar1h", "kronecker(2, 2)", naive.LINES])
def test_another_unit_gives_the_same_answer_in_it(name):
    low, high = ends()
    fit, moved = fitted(low, high, name), fitted(7.0 * low - 3.0, 7.0 * high - 3.0, name)
    np.testing.assert_allclose(moved.mean, 7.0 * fit.mean - 3.0, rtol=1e-6)
    np.testing.assert_allclose(moved.covariance, 49.0 * fit.covariance, rtol=1e-6)
    errors = moved.standard_errors.covariance / fit.standard_errors.covariance
    np.testing.assert_allclose(errors, 49.0, rtol=1e-4)


def test_equal_variances_are_equal_in_the_units_of_the_table():
    """Though the engine has each column in units of its own."""
    low, high = ends()
    low[:, 3], high[:, 3] = 9.0 * low[:, 3], 9.0 * high[:, 3]
    covariance = fitted(low, high, hs.CompoundSymmetry()).covariance
    off = covariance[np.tril_indices(4, -1)]
    np.testing.assert_allclose(np.diag(covariance), covariance[0, 0], rtol=1e-12)
    np.testing.assert_allclose(off, off[0], rtol=1e-12)


def test_what_was_learned_has_names_and_standard_errors():
    low, high = ends()
    fit = fitted(low, high, "compound_symmetry")
    variance, correlation = fit.structure["variance"], fit.structure["correlation"]
    assert variance.value == pytest.approx(fit.covariance[0, 0])
    assert correlation.value == pytest.approx(fit.covariance[1, 0] / fit.covariance[0, 0])
    assert variance.standard_error == pytest.approx(fit.standard_errors.covariance[0, 0], rel=1e-6)
    assert correlation.standard_error == pytest.approx(
        fit.standard_errors.correlation[1, 0], rel=1e-6
    )
    assert "correlation" in fit.summary()
    assert fit.to_dict()["structure"]["name"] == "compound_symmetry"
    assert fit.structure.words in repr(fit.structure)
    assert hs.fit(np.array(low[np.isfinite(low).all(axis=1)])).structure is None


def test_a_file_keeps_the_structure(tmp_path):
    fit = fitted(*ends(), hs.RandomEffects(naive.Z, names=["intercept", "slope"]))
    fit.save(tmp_path / "fit.hsfit")
    back = hs.load(tmp_path / "fit.hsfit")
    assert back.structure.numbers() == fit.structure.numbers()
    assert back.source.call["covariance"] == fit.structure.name


def test_a_page_has_the_structure(tmp_path):
    fit = fitted(*ends(), hs.Kronecker(2, 2, of_times="ar1"))
    page = fit.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "2 outcomes (free) ⊗ 2 times" in page
    assert "correlation of times" in page
    assert "covariance=&quot;kronecker(2, 2, of_times=ar1)&quot;" in page


def test_refits_keep_the_structure():
    fit = fitted(*ends(), hs.AR1())
    for covariance in fit.bootstrap(3, random_state=0).covariance:
        np.testing.assert_allclose(np.diag(covariance), covariance[0, 0], rtol=1e-12)
        np.testing.assert_allclose(
            covariance[2, 0] * covariance[0, 0], covariance[1, 0] ** 2, rtol=1e-9
        )
    test = hs.likelihood_ratio_test(fit, fitted(*ends(), "toeplitz"))
    assert test.degrees_of_freedom == 2


def test_a_profile_is_refused_and_auto_does_without():
    fit = fitted(*ends(), "ar1")
    with pytest.raises(InputError, match="structure"):
        fit.profile("mean", 0)
    assert (fit.confidence_interval().methods["mean"] == "wald").all()


def test_structures_are_compared():
    found = fitted(*ends(300), "ar1").compare_structures(["free", "cs", hs.Toeplitz(True)])
    for row in found.rows:
        again = fitted(*ends(300), row.name)
        assert row.parameters == again.parameters
        assert row.bic == pytest.approx(again.bic, abs=1e-6)
        assert row.aic == pytest.approx(again.aic, abs=1e-6)
    bics = [row.bic for row in found.rows]
    assert bics == sorted(bics)
    assert found.best() == found.rows[0].name
    assert "parameters" in repr(found)


def test_a_variance_of_zero_is_said():
    """Slopes that do not vary: half of such tables have an estimate of zero."""
    rng = np.random.default_rng(3)
    structure, zero = hs.RandomEffects(naive.Z, names=["intercept", "slope"]), 0
    for _ in range(6):
        Y = rng.normal(size=(60, 1)) + rng.normal(size=(60, 4))
        low, high = np.where(Y < -1.0, -np.inf, Y), np.where(Y < -1.0, -1.0, Y)
        fit = fitted(low, high, structure)
        effects = np.linalg.eigvalsh(fit.structure["effects"].value)
        held = effects[0] < 1e-8
        assert (fit.status is hs.Status.AT_BOUND) == held
        if held:
            zero += 1
            assert "random effects" in fit.notes[0].text
            assert np.isfinite(fit.standard_errors.mean).all()
            # The top: no other covariance of the structure is likelier.
            one = fitted(low, high, "compound_symmetry")
            assert fit.log_likelihood.value >= one.log_likelihood.value - 1e-3
    assert zero


def test_no_noise_is_said():
    """A Heywood case: the noise of a column goes to its bound, and the fit says whose."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(100, 1)) + 0.8 * rng.normal(size=(100, 4))
    Y[:, 0] = Y[:, 1:].mean(axis=1)
    low, high = np.where(Y < -1.0, -np.inf, Y), np.where(Y < -1.0, -1.0, Y)
    data = hs.IntervalData(low, high, ["a", "b", "c", "d"])
    with warnings.catch_warnings():
        # Little else is known either.
        warnings.simplefilter("ignore", hs.ConvergenceWarning)
        fit = hs.fit(data, covariance="factor(1)", random_state=0)
    (text,) = (note.text for note in fit.notes if note.status is hs.Status.AT_BOUND)
    assert "noise of a " in text


def test_the_number_of_factors_is_chosen():
    rng = np.random.default_rng(4)
    loadings = rng.normal(size=(10, 2))
    Y = rng.normal(size=(300, 2)) @ loadings.T + rng.normal(size=(300, 10))
    fit = hs.fit(
        np.where(Y < -0.5, np.nan, Y), hs.DetectionLimits(lower=-0.5), covariance=hs.Factor()
    )
    assert fit.structure.name == "factor(2)"
    assert fit.structure["loadings"].value.shape == (10, 2)
    criteria = fit.history["criteria_of_factors"]
    assert int(np.argmin(criteria)) == 2
    # Refits have the number that was chosen.
    assert fit.source.options["covariance"] == hs.Factor(2)


@pytest.mark.parametrize("name", FAMILY)
def test_texts_are_read_as_they_are_written(name):
    structure = read_structure(name)
    assert read_structure(structure.name) == structure
    assert eval(repr(structure).replace("of_times=", "of_times='").replace("ar1)", "ar1')").replace(
        "compound_symmetry)", "compound_symmetry')"), vars(hs)) == structure  # fmt: skip


@pytest.mark.parametrize(
    ("covariance", "said"),
    [
        ("kronecker(2, 2, of_times=factor)", "one of|number of factors"),
        ("factors", "one of"),
        ("factor(", "one of"),
        ("__import__('os')", "one of"),
        ("factor(k=open('x'))", "one of"),
        ("ar1.word", "one of"),
        ("factor(1, 2)", "one of"),
        ("ar1(" * 5000, "one of"),
        ("factor(9)", "at most 1 common factor"),
        ("factor(-1)", "k must be"),
        ("factor('two')", "k must be"),
        ("kronecker(2, 3)", "6 columns; got 4"),
        ("kronecker(2, 'x')", "times must be"),
        ("kronecker(2, 2, of_times=3)", "of_times must be"),
        ("block_diagonal([2, 3])", "each of the 4 columns once"),
        ("block_diagonal([[0, 1], [1, 2, 3]])", "repetitions"),
        ("block_diagonal([['a'], [1, 2, 3]])", "no column 'a'"),
        ("block_diagonal([0, 4])", "at least 1"),
        ("block_diagonal(4)", "groups must be"),
        ("block_diagonal([])", "groups must be"),
        ("random_effects([1, 2, 3, 4])", "Z must be"),
        ("random_effects([[1], [1], [1]])", "a row for each of the 4 columns"),
        ("random_effects([[1, 1], [1, 1], [1, 1], [1, 1]])", "combination"),
        ("random_effects([[1], [1], [1], [1]], names=['a', 'b'])", "names must be 1"),
        ("ar1(heteroscedastic=2)", "True or False"),
        (hs.Kronecker, "covariance"),
        (3, "covariance"),
    ],
)
def test_what_cannot_be_is_said(covariance, said):
    with pytest.raises(InputError, match=said):
        fitted(*ends(), covariance)


def test_lists_of_structures_that_cannot_be_are_said():
    fit = fitted(*ends(), "ar1")
    for wrong in ("ar1", [], 3, ["nothing"], None):
        with pytest.raises(InputError):
            fit.compare_structures(wrong)
    with pytest.raises(InputError, match="by must be"):
        fit.compare_structures(["ar1"]).best("dic")


def test_one_column_and_one_row():
    Y = np.random.default_rng(0).normal(size=(30, 1))
    for name in ("compound_symmetry", "ar1", "toeplitz", "block_diagonal([1])"):
        assert hs.fit(Y, covariance=name).parameters == 2
    with pytest.raises(InputError):
        hs.fit(Y[:1], covariance="ar1")
