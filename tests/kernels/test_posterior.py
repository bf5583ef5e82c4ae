"""The posterior of one column, against textbooks and against adaptive quadrature."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from halfseen.kernels.posterior import lay_grid, mass_below, next_below

Z95 = stats.norm.ppf(0.95)
NONE = np.empty(0)
# Of fourth order in steps of a quarter of a deviation: 2e-6 of a probability, by the docstring.
CLOSE = 5e-6


class Laid:
    """A grid, and what is asked of it."""

    def __init__(self, values, lower=NONE, upper=NONE, count=NONE, start=(0.0, 1.0)):
        x = np.asarray(values, dtype=float)
        self.x, self.cells = x, (lower, upper, count)
        self.sums = np.array(
            [x.size, x.mean() if x.size else 0.0, x.size * x.var() if x.size else 0]
        )
        deviation, log_weight, *self.grid = lay_grid(self.sums, lower, upper, count, *start)
        self.deviation, self.weight = deviation, np.exp(log_weight - log_weight.max())
        self.weight /= self.weight.sum()

    def below(self, at, tilt=0.0, bend=0.0):
        mean = at - tilt * self.deviation - 0.5 * bend * self.deviation**2
        return mass_below(mean, self.weight, *self.grid)

    def next_below(self, at, values, side=1.0):
        first, step, _, density = self.grid
        return next_below(at, values, side, self.deviation, self.weight, first, step, density)


def standardised(n, seed=0):
    x = np.random.default_rng(seed).normal(size=n)
    return (x - x.mean()) / x.std(ddof=1)


@pytest.mark.parametrize("n", [3, 4, 8, 20, 200, 5000])
@pytest.mark.parametrize("level", [0.01, 0.05, 0.5, 0.95, 0.999])
def test_complete_columns_have_the_limits_of_textbooks(n, level):
    laid = Laid(standardised(n), start=(0.0, 1.0))
    student = stats.t.ppf(level, n - 1)
    assert laid.below(student / math.sqrt(n)) == pytest.approx(level, abs=CLOSE)
    tilted = stats.nct.ppf(level, n - 1, Z95 * math.sqrt(n)) / math.sqrt(n)
    assert laid.below(tilted, tilt=Z95) == pytest.approx(level, abs=CLOSE)
    ahead = student * math.sqrt(1.0 + 1.0 / n)
    assert laid.next_below(ahead, 1) == pytest.approx(level, abs=CLOSE)
    assert laid.next_below(ahead, 1, -1.0) == pytest.approx(1.0 - level, abs=CLOSE)


@pytest.mark.parametrize("values", [2, 5])
def test_next_values_of_a_complete_column(values):
    """P(all below x) = ∫∫ Φ((x − μ)/σ)^k over σ² = (n − 1)/χ² and μ ~ N(0, σ²/n)."""
    n, x = 8, 2.3
    laid = Laid(standardised(n))

    def inner(root):
        sigma = math.sqrt(n - 1.0) / root
        weight = stats.chi.pdf(root, n - 1)
        return weight * integrate.quad(
            lambda u: stats.norm.pdf(u)
            * stats.norm.cdf(x / sigma - u / math.sqrt(n)) ** values, -9, 9
        )[0]  # fmt: skip

    expected = integrate.quad(inner, 1e-6, 12)[0]
    assert laid.next_below(x, values) == pytest.approx(expected, abs=CLOSE)


CELLS = {
    "below": ([-np.inf, -np.inf], [-0.5, 0.1], [3.0, 2.0]),
    "both sides": ([-np.inf, 1.5], [0.0, np.inf], [4.0, 2.0]),
    "between": ([-np.inf, 0.4], [-0.2, 0.9], [2.0, 3.0]),
}


@pytest.mark.parametrize("kind", CELLS)
def test_hidden_cells_against_quadrature(kind):
    values = np.array([0.2, 0.6, 0.75, 1.1, 1.4])
    lower, upper, count = map(np.array, CELLS[kind])
    laid = Laid(values, lower, upper, count)

    def density(mu, eta):
        sigma = math.exp(eta)
        mass = stats.norm.cdf((upper - mu) / sigma) - stats.norm.cdf((lower - mu) / sigma)
        return float(np.exp(stats.norm.logpdf(values, mu, sigma).sum()) * np.prod(mass**count))

    def probability(at, tilt, bend):
        def part(eta):
            sigma = math.exp(eta)
            end = at - tilt * sigma - 0.5 * bend * sigma**2
            spread = 12.0 * sigma
            if end < 0.8 - spread:
                return 0.0
            end = min(end, 0.8 + spread)
            places = [p for p in (0.8 - sigma, 0.8, 0.8 + sigma) if p < end]
            return integrate.quad(
                density, 0.8 - spread, end, (eta,), points=places, limit=200, epsabs=1e-14
            )[0]

        return integrate.quad(part, -3.0, 5.0, limit=400, epsabs=1e-13, epsrel=1e-8)[0]

    whole = probability(np.inf, 0.0, 0.0)
    for at, tilt, bend in ((0.7, 0.0, 0.0), (2.0, Z95, 0.0), (1.5, 0.0, 1.0)):
        expected = probability(at, tilt, bend) / whole
        assert laid.below(at, tilt, bend) == pytest.approx(expected, abs=2e-5)


def test_cells_in_intervals_alone_are_enough():
    """Values that were rounded finely have the limits of the values."""
    x = standardised(12)
    half = 1e-3
    rounded = Laid([], x - half, x + half, np.ones(12))
    seen = Laid(x)
    for at in (-0.4, 0.0, 0.6):
        # Sheppard: h²/24 of a second derivative, and 1e-6 of quadrature.
        assert rounded.below(at) == pytest.approx(seen.below(at), abs=CLOSE)
