"""Why censored rows are so many: two Gaussians far apart whose censored rows hardly differ.

P_λ and Q_λ have variance λ along z = (x + y)/√2 and 1 along w = (x − y)/√2; Q_λ is P_λ moved by ε along
z. A coordinate is seen in [0, 1]. Since x ≈ −y, hardly a row shows both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import erf, ndtr
from scipy.stats import binom

from halfseen.errors import NotIdentifiedError
from halfseen.gaussian import Gaussian
from halfseen.ledger.harness import ALLOWED, Curve, Floats, Kind, Measured, claim, slope
from halfseen.metrics import total_variation
from halfseen.missingness import SelfCensoring, between
from halfseen.simulate import simulate
from halfseen.solvers.full_information.full import full

ROOT2 = math.sqrt(2.0)
# Panels of a quarter of √λ, up to this many √λ around the places where a normal factor turns.
PANEL, PANELS = 0.25, 12.0
NODES = 16
# Density of w at 0, and of x at 0 for λ = 0: what the width of a band is multiplied with.
PHI0 = 1.0 / math.sqrt(2.0 * math.pi)
# Probability of 4 standard errors on one side.
CHANCE = float(ndtr(-ALLOWED))


def normal_density(x: Floats, mean: Floats | float, deviation: float) -> Floats:
    """Density of N(mean, deviation²)."""
    t = (x - mean) / deviation
    return np.asarray(np.exp(-0.5 * t * t) * (PHI0 / deviation))


@dataclass(frozen=True)
class Pair:
    """P_λ and Q_λ of the appendix, seen through [0, 1] in each coordinate.

    Attributes
    ----------
    eps : float
        Distance of the means, along z.
    lam : float
        Variance along z.
    """

    eps: float
    lam: float

    @property
    def shift(self) -> float:
        """√2 ε: how far x + y moves. Moving x alone by it moves z by ε."""
        return ROOT2 * self.eps

    def gaussian(self, moved: bool) -> Gaussian:
        """P_λ, or Q_λ where ``moved``, in the coordinates x, y."""
        own, cross = 0.5 * (1.0 + self.lam), 0.5 * (self.lam - 1.0)
        mean = self.eps / ROOT2 if moved else 0.0
        return Gaussian([mean, mean], [[own, cross], [cross, own]])

    def density(self, rows: Floats, moved: bool) -> Floats:
        """Density of P_λ or Q_λ at complete rows."""
        z, w = (rows[:, 0] + rows[:, 1]) / ROOT2, (rows[:, 0] - rows[:, 1]) / ROOT2
        mean = self.eps if moved else 0.0
        return normal_density(z, mean, math.sqrt(self.lam)) * normal_density(w, 0.0, 1.0)

    def one(self, x: Floats, moved: bool) -> Floats:
        """Density of one coordinate at x while the other lies outside of [0, 1]."""
        mean = self.eps / ROOT2 if moved else 0.0
        regression = (self.lam - 1.0) / (self.lam + 1.0)
        centre = mean + regression * (x - mean)
        spread = math.sqrt(2.0 * self.lam / (1.0 + self.lam))
        hidden = ndtr(-centre / spread) + ndtr((centre - 1.0) / spread)
        return normal_density(x, mean, math.sqrt(0.5 * (1.0 + self.lam))) * hidden


def nodes(edges: Floats) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights on the panels between these edges."""
    t, w = np.polynomial.legendre.leggauss(NODES)
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    return (middle[:, None] + half[:, None] * t).ravel(), (half[:, None] * w).ravel()


Branches = Callable[[Pair, Floats], tuple[NDArray[np.bool_], NDArray[np.bool_]]]


@dataclass(frozen=True)
class Patterns:
    """Both censored distributions: mass of each pattern under P and Q, and half of ∫|p − q|."""

    both: tuple[float, float]
    one: tuple[float, float]
    none: tuple[float, float]
    distances: tuple[float, float, float]

    @property
    def total_variation(self) -> float:
        """The least share of rows in which a coupling lets the censored rows differ."""
        return sum(self.distances)


def censored(pair: Pair) -> Patterns:
    """Integrate over the four patterns: both seen, x alone, y alone (the same by symmetry), none."""
    fine = np.arange(-PANELS, PANELS + PANEL, PANEL) * math.sqrt(pair.lam)
    # Both seen: |w| <= min(z, √2 − z), and the densities of z cross at ε/2.
    places = np.concatenate([fine, pair.eps + fine, [0.5 * pair.eps, ROOT2 / 2, ROOT2, 0.0]])
    z, weight = nodes(np.unique(np.clip(places, 0.0, ROOT2)))
    window = weight * erf(np.minimum(z, ROOT2 - z) / ROOT2)
    p, q = (window * normal_density(z, mean, math.sqrt(pair.lam)) for mean in (0.0, pair.eps))
    # One seen: whether the other is hidden turns within √λ of 0, of √2 ε, and of 1 less those.
    turns = [at + ROOT2 * fine for at in (0.0, pair.shift, -1.0 + pair.shift, 1.0)]
    x, weight = nodes(
        np.unique(np.clip([*np.concatenate(turns), *np.linspace(0, 1, 101)], 0.0, 1.0))
    )
    alone = [weight * pair.one(x, moved) for moved in (False, True)]
    both, one = (float(p.sum()), float(q.sum())), (float(alone[0].sum()), float(alone[1].sum()))
    none = 1.0 - both[0] - 2 * one[0], 1.0 - both[1] - 2 * one[1]
    distances = (
        0.5 * float(np.abs(p - q).sum()),
        float(np.abs(alone[0] - alone[1]).sum()),
        0.5 * abs(none[0] - none[1]),
    )
    return Patterns(both, one, none, distances)


def censor(rows: Floats) -> Floats:
    """Show what lies in [0, 1]."""
    return np.where((rows >= 0.0) & (rows <= 1.0), rows, np.nan)


def differing(a: Floats, b: Floats) -> NDArray[np.bool_]:
    """Rows in which two censored tables differ, as a pattern or in a value."""
    # A coordinate that the coupling leaves alone is the same bits.
    return ~((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)


def printed_branches(pair: Pair, rows: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the first and third branch of the printed coupling: x left and right of the band.

    Q's density there is the larger of the two, not P's as printed: the move shortens |w|. It is what the
    coupling needs, for P's mass can then be carried along.
    """
    return rows[:, 0] <= -pair.shift, rows[:, 0] >= pair.shift


def mended_branches(pair: Pair, rows: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the branches in which nothing that is seen moves: x, or else y, hidden before and after."""
    left = rows[:, 0] <= -pair.shift
    return left, (rows[:, 0] >= 0.0) & (rows[:, 1] <= -pair.shift)


def couple(
    pair: Pair, n: int, rng: np.random.Generator, branches: Branches = mended_branches
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Draw n coupled rows of P_λ and Q_λ, and whether a branch made them.

    In the first branch x moves by √2 ε, in the other y does. A row of P is carried along with
    probability min(1, q/p), and what is left of Q is drawn by rejection, so that both margins are exact.
    """
    P = pair.gaussian(False).sample(n, rng)
    first, second = branches(pair, P)
    Q = P + pair.shift * np.stack([first, second], axis=1)
    carried = first | second
    carried &= rng.random(n) * pair.density(P, False) <= pair.density(Q, True)
    Q[~carried] = leftover(pair, int((~carried).sum()), rng, branches)
    return P, Q, carried


def leftover(pair: Pair, n: int, rng: np.random.Generator, branches: Branches) -> Floats:
    """Draw n rows from the part of Q_λ that no branch fills."""
    kept: list[Floats] = []
    while sum(map(len, kept)) < n:
        V = pair.gaussian(True).sample(1 << 16, rng)
        filled = np.zeros(len(V))
        for side in (0, 1):
            source = V.copy()
            source[:, side] -= pair.shift
            there = branches(pair, source)[side]
            filled += np.where(there, pair.density(source, False), 0.0)
        kept.append(V[rng.random(len(V)) * pair.density(V, True) > filled])
    return np.concatenate(kept)[:n]


def bound(pair: Pair) -> float:
    """Return what the mended coupling leaves over: 2√2 φ(0) s + 2φ(0)² √λ, where x or y moves by s.

    Rows in no branch have −s < x < 0, with probability at most √2 φ(0) s, or x >= 0 and y > −s:
    −z <= w < z + √2 s, with probability at most φ(0) E(2z + √2 s)⁺ <= φ(0)(2√λ φ(0) + √2 s). Rows in a
    branch that are refused, because q < p, are of third order.
    """
    return 2.0 * ROOT2 * PHI0 * pair.shift + 2.0 * PHI0**2 * math.sqrt(pair.lam)


# Distance of the means along z, in units of ε: as the proof and the lemma at λ = 0 have it, and as the
# mean of Q_λ and the total variation are printed.
READINGS = {"ε/√2": 1.0 / ROOT2, "ε": 1.0}


@claim("lower-bounds/total-variation", "Appendix, lower bound on the sample complexity")
def uncensored(quick: bool) -> Measured:
    """Compare three ways to the same total variation.

    Says: Complete rows tell P_λ from Q_λ: their total variation is erf(ε/(2√2 √λ)), a constant at ε =
    √λ.

    Experiment: The formula against the package's total variation of two Gaussians, and against
    quadrature of half of |p − q|, for ε from √λ/10 to 4√λ and λ from 1e-6 to 1.

    Tolerance: Exact: 1e-10, what rounding leaves where λ = 1e-6 (a condition number of a million).
    """
    ratios, found = (0.1, 0.5, 1.0, 2.0, 4.0), {}
    formula = [float(erf(r / (2.0 * ROOT2))) for r in ratios]
    # In units of √λ; the densities cross half-way.
    areas = [
        quad(
            lambda t, r=r: float(normal_density(t, 0.0, 1.0) - normal_density(t, r, 1.0)),
            -np.inf,
            0.5 * r,
            epsabs=1e-13,
        )[0]
        for r in ratios
    ]
    for lam in (1e-6, 1e-3, 1.0):
        pairs = [Pair(r * math.sqrt(lam), lam) for r in ratios]
        found[lam] = [total_variation(p.gaussian(False), p.gaussian(True)).value for p in pairs]
    worst = float(np.abs(np.array([areas, *found.values()]) - formula).max())
    lines, claimed = {"λ = 1e-6": found[1e-6]}, {"erf(ε/(2√2√λ))": formula}
    return Measured(
        f"at most {worst:.0e} apart; {formula[2]:.3f} at ε = √λ.",
        worst <= 1e-10,
        Curve(ratios, lines, "ε/√λ", "total variation", claimed),
    )


@claim(
    "lower-bounds/coupling",
    "Appendix, lower bound on the sample complexity; lemma in section 3",
    Kind.ERRATUM,
)
def coupling(quick: bool) -> Measured:
    """Measure the least and the constructed share of rows that differ, in both readings.

    Says: Censored rows hardly do: at ε = Θ(√λ), where the lemma has Ω, a coupling lets all but O(ε) of
    them agree. The coupling, which moves x or y by ε, needs means ε/√2 apart, as the proof says and the
    lemma at λ = 0 has it; Q_λ is printed with ε, for which it must move them by √2 ε. Either way a row
    right of the band may show both coordinates, so that branch must also ask that y is hidden, before
    and after: 0.32 √λ is added to the 1.13 ε that is printed (to 1.60 ε with means ε apart).

    Experiment: Both readings: the total variation of the censored distributions, which is the least
    share of rows that differ in any coupling, by quadrature over the four patterns; the coupling as
    printed and as mended, simulated with exact margins, and the rows counted that differ.

    Tolerance: At ε = √λ from 0.001 to 0.032 the least share goes as ε to a power of 1 within 0.032 (the
    next term is smaller by a factor ε). Counts within 4 binomial errors: mended between the least share
    and the bound, with no row that differs in a branch; printed 0.32 √λ outside of the band, to order ε.
    At √λ = ε/10 the least share is below the printed 1.13 ε with ε/√2 and above it with ε; at ε = 0.3 it
    does not fall with λ.
    """
    sizes = [10.0**k for k in (-3.0, -2.5, -2.0, -1.5)]
    n, rng = 400_000 if quick else 4_000_000, np.random.default_rng(31)
    found = {name: Coupled.measure(apart, sizes, n, rng) for name, apart in READINGS.items()}
    ours, other = found.values()
    narrow = [censored(Pair(0.01 * a, 1e-6)).total_variation / 0.01 for a in READINGS.values()]
    band = float(erf(0.01)) / 0.01
    fixed = [censored(Pair(0.3, lam)).total_variation for lam in (1e-2, 1e-4, 1e-8)]
    holds = ours.holds and other.holds and narrow[0] <= band < narrow[1]
    holds &= fixed[0] < fixed[1] < fixed[2]
    last = sizes[2]
    told = "; ".join(
        f"means {name} apart: least share {c.least[2] / last:.3f} ε, power {c.power:.3f}, mended "
        f"{c.mended[2] / last:.2f} ε (at most {c.bounds[2] / last:.2f} ε), printed "
        f"{c.printed[2] / last:.2f} ε outside of its band, at √λ = ε/10 the least is {least:.2f} "
        f"ε (printed {band:.2f} ε)"
        for (name, c), least in zip(found.items(), narrow, strict=True)
    )
    lines = {
        "mended coupling": ours.mended,
        "least of all couplings": ours.least,
        "printed, outside of its band": ours.printed,
    }
    across, up = "ε = √λ, means ε/√2 apart", "share of censored rows that differ"
    return Measured(
        f"{told}. With means 0.3 apart it is {fixed[0]:.2f} to {fixed[2]:.2f} as λ falls from "
        f"1e-2 to 1e-8. Complete rows: {float(erf(0.5 / ROOT2)):.3f} at "
        "every ε = √λ.",
        bool(holds),
        Curve(sizes, lines, across, up, {"1.13 ε + 0.32 √λ": ours.bounds}),
    )


@dataclass(frozen=True)
class Coupled:
    """Shares of rows that differ at each ε = √λ: least, mended, printed outside of its band, bound."""

    least: list[float]
    mended: list[float]
    printed: list[float]
    bounds: list[float]
    power: float
    holds: bool

    @classmethod
    def measure(cls, apart: float, sizes: list[float], n: int, rng: np.random.Generator) -> Coupled:
        """Count in n coupled rows of each size; means are ``apart`` · ε apart along z."""
        pairs, mended, printed, holds = [Pair(apart * e, e * e) for e in sizes], [], [], True
        least, bounds = [censored(p).total_variation for p in pairs], [bound(p) for p in pairs]
        for eps, pair, low, high in zip(sizes, pairs, least, bounds, strict=True):
            P, Q, carried = couple(pair, n, rng)
            differ = differing(censor(P), censor(Q))
            mended.append(float(differ.mean()))
            error = ALLOWED * math.sqrt(mended[-1] / n)
            holds &= low - error <= mended[-1] <= high + error
            holds &= not (differ & carried).any()
            P, Q, carried = couple(pair, n, rng, printed_branches)
            printed.append(float((differing(censor(P), censor(Q)) & carried).mean()))
            claimed = 2.0 * PHI0**2 * eps
            holds &= abs(printed[-1] - claimed) <= ALLOWED * math.sqrt(claimed / n) + eps * claimed
        power = slope(sizes, least)
        holds &= abs(power - 1.0) <= sizes[-1] * 1.02
        return cls(least, mended, printed, bounds, power, bool(holds))


def log_ratio(pair: Pair, X: Floats) -> Floats:
    """Log-likelihood ratio of Q to P of each censored row."""
    x, y = X[..., 0], X[..., 1]
    hidden = np.isnan(X).sum(axis=-1)
    patterns = censored(pair)
    answer = np.full(x.shape, math.log(patterns.none[1] / patterns.none[0]))
    alone = np.where(np.isnan(x), y, x)[hidden == 1]
    answer[hidden == 1] = np.log(pair.one(alone, True) / pair.one(alone, False))
    answer[hidden == 0] = complete_log_ratio(pair, X[hidden == 0])
    return answer


def complete_log_ratio(pair: Pair, Y: Floats) -> Floats:
    """Log-likelihood ratio of Q to P of complete rows: ε(z − ε/2)/λ."""
    z = (Y[..., 0] + Y[..., 1]) / ROOT2
    return np.asarray(pair.eps * (z - 0.5 * pair.eps) / pair.lam)


def share_right(pair: Pair, m: int, tables: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return how often the likelihood ratio of m rows is right, censored and complete."""
    right = np.zeros(2)
    for moved in (False, True):
        Y = pair.gaussian(moved).sample(m * tables, rng).reshape(tables, m, 2)
        for k, ratio in enumerate((log_ratio(pair, censor(Y)), complete_log_ratio(pair, Y))):
            right[k] += 0.5 * float(((ratio.sum(axis=1) > 0.0) == moved).mean())
    return float(right[0]), float(right[1])


def right_by_full(pair: Pair, m: int, tables: int, seed: int) -> tuple[int, int]:
    """Count tables in which the mean of ``full`` is nearer to the right one, and refused ones.

    A table in which a column is seen less than twice is refused; a coin decides, so that the count is
    binomial.
    """
    rule, right, refused = SelfCensoring([between(0.0, 1.0)] * 2), 0, 0
    coin = np.random.default_rng(seed)
    for k in range(tables):
        moved = bool(k % 2)
        X = simulate(pair.gaussian(moved), rule, m, random_state=seed + k)
        try:
            fit = full(X, rule, covariance=pair.gaussian(False).covariance, random_state=k)
        except NotIdentifiedError:
            refused, right = refused + 1, right + int(coin.random() < 0.5)
            continue
        right += int((fit.gaussian.mean.sum() / ROOT2 > 0.5 * pair.eps) == moved)
    return right, refused


@claim("lower-bounds/separation", "Section 3, lemma on the lower bound")
def separation(quick: bool) -> Measured:
    """Try to tell P from Q, below the bound and above it.

    Says: With o(1/√λ) censored rows nothing tells P_λ from Q_λ at ε = √λ, although complete rows do: a
    decision from m rows is right with probability at most ½ + m t/2, t the total variation of a censored
    row (as that of m rows is at most m t). With many times 1/√λ rows they separate.

    Experiment: λ = 1e-4 and 1 to 1 000 rows: shares of right decisions by the likelihood ratio, which no
    rule beats (Neyman and Pearson), from censored and from complete rows; with 10 rows also by the mean
    that full finds with Σ known, and with 200 at λ = 1e-2 (not in quick). Half of the tables are from
    each.

    Tolerance: 4 binomial standard errors: censored decisions at most ½ + m t/2; complete ones Φ(√m/2),
    as their theory has it. 2/3, the lemma's level, is above ½ + m t/2 with 10 rows, and passed with 10
    complete ones and with 1 000 censored ones. Counts of full by exact binomial tails, 3e-5 as for 4
    errors: with 10 rows not above what ½ + m t/2 gives, with 20/√λ above what 2/3 gives.
    """
    pair, rng = Pair(0.01, 1e-4), np.random.default_rng(32)
    t = censored(pair).total_variation
    counts, seen, complete, limits, holds = [1, 3, 10, 30, 100, 300, 1_000], [], [], [], True
    for m in counts:
        tables = min(20_000, 400_000 // m) * (1 if quick else 5)
        error = ALLOWED * 0.5 / math.sqrt(2 * tables)
        censored_share, complete_share = share_right(pair, m, tables, rng)
        limits.append(min(1.0, 0.5 + 0.5 * m * t))
        holds &= censored_share <= limits[-1] + error
        holds &= abs(complete_share - float(ndtr(0.5 * math.sqrt(m)))) <= error
        seen.append(censored_share)
        complete.append(complete_share)
    holds &= limits[2] < 2 / 3 < min(complete[2], seen[-1])
    few, many = (22, 0) if quick else (90, 40)
    below, refused = right_by_full(pair, 10, few, 33)
    above, _ = right_by_full(Pair(0.1, 1e-2), 200, many, 34)
    holds &= binom.sf(below - 1, few, limits[2]) > CHANCE
    holds &= quick or binom.sf(above - 1, many, 2 / 3) <= CHANCE
    lines = {"censored rows": seen, "complete rows": complete}
    after = "" if quick else f" full with 20/√λ rows at λ = 1e-2: {above} of {many}."
    return Measured(
        f"10 rows: right in {seen[2]:.3f} (at most {limits[2]:.3f}), complete {complete[2]:.3f}, "
        f"full in {below} of {few} tables ({refused} refused: a column seen less than twice). "
        f"1 000 rows: {seen[-1]:.3f}.{after}",
        bool(holds),
        Curve(counts, lines, "rows", "share of right decisions", {"½ + m t/2": limits}, linear="y"),
    )
