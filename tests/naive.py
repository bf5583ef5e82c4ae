"""Slow, obvious oracles. Nothing here imports a kernel or a solver of halfseen."""

import itertools
import math

import mpmath as mp
import numpy as np
from scipy import integrate, optimize, stats


def pdf(x, mu, sigma):
    return math.exp(-0.5 * ((x - mu) / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))


def cdf(x, mu, sigma):
    return 0.5 * math.erfc((mu - x) / (sigma * math.sqrt(2)))


def mp_truncated_moments(a, b, order=4, digits=40):
    """log-mass and raw moments of a standard normal on (a, b), by adaptive quadrature in mpmath."""
    with mp.workdps(digits):
        low = mp.mpf(a) if a > -math.inf else -mp.mpf(max(60, abs(b) + 20 if b < 0 else 60))
        high = mp.mpf(b) if b < math.inf else mp.mpf(max(60, a + 20 if a > 0 else 60))
        peak = min(max(mp.mpf(0), low), high)
        # Cut where the integrand changes scale, on both sides of its peak.
        scale = 1 / (1 + abs(peak))
        cuts = {low, high, peak}
        for factor in (0.5, 2, 5, 10, 20, 40):
            cuts |= {peak + factor * scale, peak - factor * scale}
        cuts = sorted(c for c in cuts if low <= c <= high)

        def integral(k):
            return mp.quad(lambda z: z**k * mp.exp(-(z - peak) * (z + peak) / 2), cuts)

        total = integral(0)
        log_mass = mp.log(total) - peak**2 / 2 - mp.log(2 * mp.pi) / 2
        return log_mass, [integral(k) / total for k in range(order + 1)]


def mp_inverse_cdf(a, b, u, digits=40):
    """The z with P(a < Z < z) = u·P(a < Z < b), by root finding in mpmath."""
    with mp.workdps(digits):
        sign = 1 if a >= 0 else -1

        # Work in the tail that is smaller: survival for positive limits, CDF for negative ones.
        def tail(z):
            return (
                mp.erfc(sign * mp.mpf(z) / mp.sqrt(2))
                if abs(z) < math.inf
                else mp.mpf(0 if sign * z > 0 else 2)
            )

        target = tail(a) + mp.mpf(u) * (tail(b) - tail(a))
        low = mp.mpf(a) if a > -math.inf else min(mp.mpf(b), 0) - 60
        high = mp.mpf(b) if b < math.inf else max(mp.mpf(a), 0) + 60
        for _ in range(160):
            middle = (low + high) / 2
            if (tail(middle) - target) * sign > 0:
                low = middle
            else:
                high = middle
        return (low + high) / 2


def pieces_of(sets, far=60.0):
    """Intervals of a set as finite pairs."""
    return [(max(p.lower, -far), min(p.upper, far)) for p in sets.pieces]


def product_moment(gaussian, left, right, a, b):
    """∫∫ x^a y^b density over a product of intervals, by nested quadrature."""
    m, S = gaussian.mean, gaussian.covariance
    s1 = math.sqrt(S[0, 0])
    slope, s2 = S[0, 1] / S[0, 0], math.sqrt(S[1, 1] - S[0, 1] ** 2 / S[0, 0])

    def inner(x):
        centre = m[1] + slope * (x - m[0])
        total = 0.0
        for low, high in right:
            low, high = max(low, centre - 12 * s2), min(high, centre + 12 * s2)
            if low < high:
                total += integrate.quad(
                    lambda y: y**b * pdf(y, centre, s2),
                    low,
                    high,
                    epsabs=1e-14,
                    epsrel=1e-12,
                    limit=200,
                )[0]
        return total * x**a * pdf(x, m[0], s1)

    total = 0.0
    for low, high in left:
        low, high = max(low, m[0] - 12 * s1), min(high, m[0] + 12 * s1)
        if low < high:
            total += integrate.quad(inner, low, high, epsabs=1e-13, epsrel=1e-11, limit=200)[0]
    return total


def line_moments(mu, sigma, pieces, weight=None):
    """Mass, E[x], E[x²] of N(mu, sigma²) on pieces (or with a weight function), by quadrature."""
    weight = weight or (lambda x: 1.0)

    def integral(k):
        total = 0.0
        for low, high in pieces:
            low, high = max(low, mu - 12 * sigma), min(high, mu + 12 * sigma)
            if low < high:
                total += integrate.quad(
                    lambda x: x**k * weight(x) * pdf(x, mu, sigma),
                    low,
                    high,
                    epsabs=1e-14,
                    epsrel=1e-12,
                    limit=400,
                )[0]
        return total

    mass = integral(0)
    return mass, integral(1) / mass, integral(2) / mass


def _minimise(function, start):
    """BFGS on a function that returns its value and gradient, polished on the gradient alone."""
    found = optimize.minimize(function, start, jac=True, method="BFGS", options={"gtol": 1e-9})
    root = optimize.root(lambda p: function(p)[1], found.x, tol=1e-12)
    assert root.success or np.abs(root.fun).max() < 1e-9
    return root.x


def truncated_line_mle(x, pieces, weight=None):
    """Mean and deviation that maximise the likelihood of x, all of which lie in the pieces."""
    scale, centre = x.std(), x.mean()
    z = (x - centre) / scale
    pieces = [((a - centre) / scale, (b - centre) / scale) for a, b in pieces]
    inner = None if weight is None else (lambda t: weight(centre + scale * t))

    def loss(p):
        mu, sigma = p[0], math.exp(p[1])
        mass, m1, m2 = line_moments(mu, sigma, pieces, inner)
        value = -stats.norm.logpdf(z, mu, sigma).mean() + math.log(mass)
        # d/dmu and d/dlog(sigma) of both terms
        data = np.array([(z.mean() - mu) / sigma**2, ((z - mu) ** 2).mean() / sigma**2 - 1])
        model = np.array([(m1 - mu) / sigma**2, (m2 - 2 * mu * m1 + mu**2) / sigma**2 - 1])
        return value, model - data

    mu, log_sigma = _minimise(loss, np.zeros(2))
    return centre + scale * mu, scale * math.exp(log_sigma)


def censored_line_mle(x, hidden, hidden_pieces, start, weight=None):
    """Mean and deviation that maximise the likelihood of seen x and a count of hidden values."""
    n, total = x.size, x.size + hidden

    def loss(p):
        mu, sigma = p[0], math.exp(p[1])
        mass, m1, m2 = line_moments(mu, sigma, hidden_pieces, weight)
        value = -(stats.norm.logpdf(x, mu, sigma).sum() + hidden * math.log(mass)) / total
        seen = np.array([(x - mu).sum() / sigma**2, ((x - mu) ** 2).sum() / sigma**2 - n])
        rest = hidden * np.array([(m1 - mu) / sigma**2, (m2 - 2 * mu * m1 + mu**2) / sigma**2 - 1])
        return value, -(seen + rest) / total

    mu, log_sigma = _minimise(loss, np.array([start[0], math.log(start[1])]))
    return mu, math.exp(log_sigma)


def product_mass(marginals, rho, left, right, left_weight=None, right_weight=None):
    """P(x in left, y in right) with standard deviations and means fixed, by nested quadrature."""
    (m1, s1), (m2, s2) = marginals
    root = math.sqrt(1 - rho**2)
    left_weight = left_weight or (lambda x: 1.0)

    def inner(x):
        centre, width = m2 + s2 * rho * (x - m1) / s1, s2 * root
        if right_weight is None:
            return sum(cdf(b, centre, width) - cdf(a, centre, width) for a, b in right)
        return integrate.quad(
            lambda y: right_weight(y) * pdf(y, centre, width),
            centre - 12 * width,
            centre + 12 * width,
            epsabs=1e-12,
            limit=200,
        )[0]

    total = 0.0
    for a, b in left:
        a, b = max(a, m1 - 10 * s1), min(b, m1 + 10 * s1)
        if a < b:
            total += integrate.quad(
                lambda x: left_weight(x) * pdf(x, m1, s1) * inner(x),
                a,
                b,
                epsabs=1e-13,
                epsrel=1e-12,
                limit=400,
            )[0]
    return total


def correlation_mle(X, marginals, cell_masses, cells):
    """The ρ that maximises seen-seen densities and Σ count·log mass, by bounded search.

    ``cell_masses(rho)`` and ``cells`` are dictionaries over (seen, seen) patterns.
    """
    (m1, s1), (m2, s2) = marginals
    both = X[~np.isnan(X).any(axis=1)]
    u, v = (both[:, 0] - m1) / s1, (both[:, 1] - m2) / s2

    def loss(rho):
        q = (u**2 - 2 * rho * u * v + v**2) / (1 - rho**2)
        value = 0.5 * q.sum() + 0.5 * len(u) * math.log(1 - rho**2)
        masses = cell_masses(rho)
        return value - sum(count * math.log(masses[c]) for c, count in cells.items() if count)

    grid = np.linspace(-0.95, 0.95, 20)
    k = int(np.argmin([loss(r) for r in grid]))
    found = optimize.minimize_scalar(
        loss,
        bounds=(max(grid[k] - 0.1, -0.999), min(grid[k] + 0.1, 0.999)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return found.x


def truncated_plane_mle(X, left, right):
    """Mean and covariance that maximise the likelihood of pairs in a product of intervals."""
    from halfseen.gaussian import Gaussian

    centre, scale = X.mean(axis=0), X.std(axis=0)
    Z = (X - centre) / scale
    left = [((a - centre[0]) / scale[0], (b - centre[0]) / scale[0]) for a, b in left]
    right = [((a - centre[1]) / scale[1], (b - centre[1]) / scale[1]) for a, b in right]
    powers = [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]
    factors = np.array([1, 1, -0.5, -1, -0.5])
    data = factors * [(Z[:, 0] ** a * Z[:, 1] ** b).mean() for a, b in powers]

    def gaussian(theta):
        T = np.array([[theta[2], theta[3]], [theta[3], theta[4]]])
        S = np.linalg.inv(T)
        return Gaussian(S @ theta[:2], S)

    def score(theta):
        g = gaussian(theta)
        mass = product_moment(g, left, right, 0, 0)
        model = [product_moment(g, left, right, a, b) / mass for a, b in powers]
        return factors * model - data

    T = np.linalg.inv(np.cov(Z.T, bias=True))
    found = optimize.root(score, [0, 0, T[0, 0], T[0, 1], T[1, 1]], tol=1e-10)
    assert np.abs(found.fun).max() < 1e-8
    g = gaussian(found.x)
    return centre + scale * g.mean, g.covariance * np.outer(scale, scale)


def pair_sums(X):
    """Counts and sums over the rows in which both columns are seen, with loops."""
    n, d = X.shape
    counts, first, second, cross = (np.zeros((d, d)) for _ in range(4))
    for row in range(n):
        for i, j in itertools.product(range(d), repeat=2):
            x, y = X[row, i], X[row, j]
            if not (math.isnan(x) or math.isnan(y)):
                counts[i, j] += 1
                first[i, j] += x
                second[i, j] += x * x
                cross[i, j] += x * y
    return counts, first, second, cross


def project_polyhedron(point, A, c):
    """Nearest point of {A u <= c}, as Lawson and Hanson's least-distance problem."""
    E = np.vstack([-A.T, A @ point - c])
    target = np.zeros(point.size + 1)
    target[-1] = 1.0
    weights, _ = optimize.nnls(E, target)
    gap = E @ weights - target
    # No residual means that the point is already inside.
    return point - gap[:-1] / gap[-1]


def truncated_draws(mean, covariance, inside, count, seed=0):
    """Draws of a Gaussian restricted to a set, by plain rejection."""
    rng = np.random.default_rng(seed)
    kept, have = [], 0
    while have < count:
        Y = rng.multivariate_normal(mean, covariance, 200_000)
        Y = Y[inside(Y)]
        kept.append(Y)
        have += len(Y)
    return np.concatenate(kept)[:count]


def mp_interval_moments(a, b, digits=60):
    """Mass, E[z] and Var[z] of a standard normal on (a, b), by closed forms with digits to spare."""
    with mp.workdps(digits):

        def end(z, power):
            return mp.mpf(0) if abs(z) == math.inf else mp.mpf(z) ** power * mp.npdf(z)

        # On the side where both tails are small.
        low, high = (-b, -a) if a > 0 else (a, b)
        mass = mp.ncdf(high) - mp.ncdf(low)
        mean = (end(a, 0) - end(b, 0)) / mass
        return mass, mean, 1 + (end(a, 1) - end(b, 1)) / mass - mean**2


def draw_from_pieces(m, s, pieces, u):
    """Draw of N(m, s²) on a union of intervals by its inverse CDF, with its mean and variance."""
    pieces = [((a - m) / s, (b - m) / s) for a, b in pieces if a < b]
    found = [mp_interval_moments(a, b) for a, b in pieces]
    with mp.workdps(60):
        total = sum(mass for mass, _, _ in found)
        mean = sum(mass * e for mass, e, _ in found) / total
        second = sum(mass * (v + e**2) for mass, e, v in found) / total
        left = mp.mpf(u) * total
        chosen = 0
        while left >= found[chosen][0]:
            left -= found[chosen][0]
            chosen += 1
        inner, (a, b) = left / found[chosen][0], pieces[chosen]
    z = stats.norm.ppf(u) if a == -math.inf and b == math.inf else mp_inverse_cdf(a, b, inner)
    return m + s * float(z), m + s * float(mean), s * s * float(second - mean**2)


def draw_from_nodes(m, s, nodes, weights, u):
    """Draw of N(m, s²) times a weight function that is known at quadrature nodes."""
    log_share = np.log(weights) - 0.5 * ((nodes - m) / s) ** 2
    share = np.exp(log_share - log_share.max())
    share /= share.sum()
    mean = share @ nodes
    chosen = min(int((np.cumsum(share) <= u).sum()), len(nodes) - 1)
    return nodes[chosen], mean, share @ (nodes - mean) ** 2


def region_mass(mean, covariance, cells):
    """P(each coordinate lies in its cell), for one or two coordinates.

    A cell is a list of intervals, or a function: the probability that a value there is hidden.
    """
    s = np.sqrt(np.diag(covariance))
    if len(cells) == 1:
        return _line_mass(cells[0], mean[0], s[0])
    if covariance[0, 1] == 0:
        return _line_mass(cells[0], mean[0], s[0]) * _line_mass(cells[1], mean[1], s[1])
    pieces = [[(-math.inf, math.inf)] if callable(cell) else cell for cell in cells]
    weights = [cell if callable(cell) else None for cell in cells]
    rho = covariance[0, 1] / (s[0] * s[1])
    return product_mass([(mean[0], s[0]), (mean[1], s[1])], rho, *pieces, *weights)


def _line_mass(cell, mu, sigma):
    if callable(cell):
        return integrate.quad(
            lambda x: cell(x) * pdf(x, mu, sigma), mu - 12 * sigma, mu + 12 * sigma, limit=200
        )[0]
    # Taken in the smaller tail, so that far pieces keep their digits.
    return sum(
        cdf(-a, -mu, sigma) - cdf(-b, -mu, sigma)
        if a > mu
        else cdf(b, mu, sigma) - cdf(a, mu, sigma)
        for a, b in cell
    )


def observed_log_likelihood(X, cells, mean, covariance):
    """Log-likelihood of rows with at most two hidden cells: density of the seen, mass of the hidden.

    ``cells(row, column)`` says where a hidden cell can be.
    """
    mean, covariance = np.asarray(mean, float), np.asarray(covariance, float)
    total, known = 0.0, {}
    for pattern in np.unique(np.isnan(X), axis=0):
        H, S = np.flatnonzero(pattern), np.flatnonzero(~pattern)
        rows = np.flatnonzero((np.isnan(X) == pattern).all(axis=1))
        m, C = np.tile(mean[H], (rows.size, 1)), covariance[np.ix_(H, H)]
        if S.size:
            within, step = covariance[np.ix_(S, S)], X[np.ix_(rows, S)] - mean[S]
            total += np.sum(stats.multivariate_normal.logpdf(step, cov=within))
            slope = np.linalg.solve(within, covariance[np.ix_(S, H)])
            m, C = m + step @ slope, C - covariance[np.ix_(H, S)] @ slope
        for r, centre in zip(rows if H.size else (), m, strict=False):
            where = [cells(r, k) for k in H]
            key = (*centre, *pattern, *(c if callable(c) else tuple(c) for c in where))
            if key not in known:
                known[key] = math.log(region_mass(centre, C, where))
            total += known[key]
    return total


def t_log_likelihood(x, cells, mean, covariance, degrees):
    """Log-likelihood of one row of a t distribution: rows N(μ, Σ/w), integrated over w ~ χ²(ν)/ν.

    ``cells(row, column)`` says where a hidden cell can be; at most two of them.
    """
    law = stats.gamma(0.5 * degrees, scale=2.0 / degrees)

    def integrand(u):
        w = math.exp(u)
        try:
            inner = observed_log_likelihood(x[None], cells, mean, np.asarray(covariance) / w)
        except ValueError:
            # The logarithm of a mass that is too small for a float.
            return 0.0
        return math.exp(inner + law.logpdf(w) + u)

    # A smooth bell in log w: panels as wide as it is, down to where w has a chance of 1e-18.
    node, weight = np.polynomial.legendre.leggauss(9)
    edges = np.linspace(-84.0 / degrees, 3.5, 21)
    half = 0.5 * np.diff(edges)
    return math.log(
        sum(
            size * k * integrand(middle + size * z)
            for middle, size in zip(edges[:-1] + half, half, strict=True)
            for z, k in zip(node, weight, strict=True)
        )
    )


def maximum_likelihood(log_likelihood, start, steps):
    """Highest point of a function of few parameters, and its inverse numerical Hessian there.

    Newton's method with central differences, until what is left to climb is a thousandth of a
    standard error (squared: 1e-6 of log-likelihood).
    """
    at, steps = np.array(start, float), np.array(steps, float)
    axes = np.diag(steps)
    for _ in range(30):
        here = log_likelihood(at)
        plus, minus = ([log_likelihood(at + sign * e) for e in axes] for sign in (1, -1))
        gradient = (np.array(plus) - minus) / 2
        hessian = np.diag(np.array(plus) + minus - 2 * here)
        for i, j in itertools.combinations(range(at.size), 2):
            both = log_likelihood(at + axes[i] + axes[j]) + log_likelihood(at - axes[i] - axes[j])
            hessian[i, j] = hessian[j, i] = (
                both + 2 * here - plus[i] - minus[i] - plus[j] - minus[j]
            ) / 2
        values, vectors = np.linalg.eigh(-hessian)
        # Uphill also where the function is not concave.
        move = vectors @ ((vectors.T @ gradient) / np.maximum(np.abs(values), 1e-8))
        if gradient @ move < 1e-6:
            assert values[0] > 0
            return at, np.linalg.inv(-hessian) * np.outer(steps, steps)
        while log_likelihood(at + steps * move) < here:
            move = move / 2
        at = at + steps * move
    raise AssertionError("no maximum was found")


def plain_em(X, tolerance=1e-10, steps=20_000):
    """Mean and covariance of a table whose NaN are missing at random, by expectation maximisation.

    One row at a time: missing cells are filled by their regression on the seen ones, whose residual
    covariance is added to the second moments. It ends when nothing moves by more than ``tolerance``
    spreads.
    """
    X = np.asarray(X, float)
    mean, covariance = np.nanmean(X, axis=0), np.diag(np.nanvar(X, axis=0))
    for _ in range(steps):
        filled, residual = np.array(X), np.zeros_like(covariance)
        for row in filled:
            H, S = np.flatnonzero(np.isnan(row)), np.flatnonzero(~np.isnan(row))
            slope = np.linalg.solve(covariance[np.ix_(S, S)], covariance[np.ix_(S, H)])
            row[H] = mean[H] + (row[S] - mean[S]) @ slope
            residual[np.ix_(H, H)] += covariance[np.ix_(H, H)] - covariance[np.ix_(H, S)] @ slope
        before, spread = (mean, covariance), np.sqrt(np.diag(covariance))
        mean = filled.mean(axis=0)
        covariance = ((filled - mean).T @ (filled - mean) + residual) / len(X)
        step = np.abs(mean - before[0]) / spread
        turn = np.abs(covariance - before[1]) / np.outer(spread, spread)
        if max(step.max(), turn.max()) < tolerance:
            return mean, covariance
    raise AssertionError(f"nothing settled in {steps} steps")


def log_likelihood_at_random(X, mean, covariance):
    """Log-likelihood of the seen cells of a table whose NaN are missing at random."""
    total = 0.0
    for pattern in np.unique(np.isnan(X), axis=0):
        S = np.flatnonzero(~pattern)
        if S.size:
            rows = (np.isnan(X) == pattern).all(axis=1)
            part = stats.multivariate_normal(mean[S], covariance[np.ix_(S, S)])
            total += np.sum(part.logpdf(X[np.ix_(rows, S)]))
    return total


def complete_information(P):
    """Information of one complete row about (μ, Σ_ij for i >= j), with P = Σ⁻¹.

    P for the mean, and c_ij c_kl (P_ik P_jl + P_il P_jk) for the covariance, where c is ½ on the
    diagonal and 1 elsewhere: an entry off the diagonal stands for two.
    """
    d = len(P)
    i, j = np.tril_indices(d)
    c = np.where(i == j, 0.5, 1.0)
    out = np.zeros((d + i.size, d + i.size))
    out[:d, :d] = P
    products = P[np.ix_(i, i)] * P[np.ix_(j, j)] + P[np.ix_(i, j)] * P[np.ix_(j, i)]
    out[d:, d:] = np.outer(c, c) * products
    return out


def observed_information_at_random(X, mean, covariance, h=0.02):
    """Minus the Hessian of ``log_likelihood_at_random`` in (μ, Σ_ij for i >= j), numerically.

    Central differences along μ + L a and Σ + L A Lᵀ, where all directions are of one size and the
    parameters are linear, so that the Hessian is only turned afterwards. Two widths together
    (Richardson) leave an error of some h⁴.
    """
    mean, covariance = np.asarray(mean, float), np.asarray(covariance, float)
    d, L = len(mean), np.linalg.cholesky(covariance)
    lower = np.tril_indices(d)
    moves = [(L[:, i], np.zeros((d, d))) for i in range(d)]
    for i, j in zip(*lower, strict=True):
        A = np.zeros((d, d))
        A[i, j] = A[j, i] = 1.0
        moves.append((np.zeros(d), L @ A @ L.T))

    def difference(one, other, width):
        total = 0.0
        for p, q in itertools.product((1, -1), repeat=2):
            shift = [width * (p * a + q * b) for a, b in zip(one, other, strict=True)]
            total += p * q * log_likelihood_at_random(X, mean + shift[0], covariance + shift[1])
        return total / (4 * width**2)

    size = len(moves)
    hessian = np.empty((size, size))
    for k, m in itertools.combinations_with_replacement(range(size), 2):
        wide, narrow = (difference(moves[k], moves[m], width) for width in (h, h / 2))
        hessian[k, m] = hessian[m, k] = (4 * narrow - wide) / 3
    back = np.linalg.inv([np.concatenate([step, turn[lower]]) for step, turn in moves])
    return -back @ hessian @ back.T
