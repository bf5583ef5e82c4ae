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


def conditional(y, j, mean, covariance):
    """Mean and standard deviation of cell j given the rest of its row."""
    rest = [k for k in range(len(y)) if k != j]
    gain = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, j])
    m = mean[j] + gain @ (y[rest] - mean[rest])
    return m, math.sqrt(covariance[j, j] - covariance[j, rest] @ gain)


def chord(y, j, V, b, sign):
    """Between which values the inequalities ``sign · (V @ y) <= sign · b`` leave cell j of a row."""
    low, high = -math.inf, math.inf
    for v, level, s in zip(V, b, sign, strict=True):
        along = s * v[j]
        room = s * (level - sum(v[k] * y[k] for k in range(len(y)) if k != j))
        if along > 0:
            high = min(high, room / along)
        elif along < 0:
            low = max(low, room / along)
    return low, high


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


def gibbs_sweep(Y, sets, mean, covariance, uniforms, backwards, V, b, sign):
    """One Gibbs sweep over hidden cells, in place, row by row; their conditional means and variances.

    ``sets[row][column]`` is None for a seen cell, a list of intervals, or a pair of nodes and weights.
    """
    E, variance = Y.copy(), np.zeros(Y.shape)
    for r, y in enumerate(Y):
        columns = range(len(y))
        for j in reversed(columns) if backwards else columns:
            if sets[r][j] is None:
                continue
            m, s = conditional(y, j, mean, covariance)
            low, high = chord(y, j, V, b, sign[r])
            if isinstance(sets[r][j], list):
                pieces = [(max(p, low), min(q, high)) for p, q in sets[r][j]]
                y[j], E[r, j], variance[r, j] = draw_from_pieces(m, s, pieces, uniforms[r, j])
            else:
                nodes, weights = sets[r][j]
                keep = (nodes > low) & (nodes < high) & (weights > 0)
                y[j], E[r, j], variance[r, j] = draw_from_nodes(
                    m, s, nodes[keep], weights[keep], uniforms[r, j]
                )
    return E, variance


def slide(Y, sets, mean, covariance, direction, uniforms, V, b, sign):
    """Move the hidden cells of each row that have intervals along a direction, in place.

    The step is drawn on what the pieces that cells lie in, and the inequalities, leave of the line.
    """
    for r, y in enumerate(Y):
        along, low, high = np.zeros(len(y)), -math.inf, math.inf
        for j, given in enumerate(sets[r]):
            if isinstance(given, list):
                along[j] = direction[j]
                ends = next((p, q) for p, q in given if p <= y[j] <= q)
                left, right = sorted((end - y[j]) / along[j] for end in ends)
                low, high = max(low, left), min(high, right)
        if np.count_nonzero(along) < 2:
            continue
        for v, level, s in zip(V, b, sign[r], strict=True):
            if s * (v @ along) > 0:
                high = min(high, (level - v @ y) / (v @ along))
            elif s * (v @ along) < 0:
                low = max(low, (level - v @ y) / (v @ along))
        # −½ z'Σ⁻¹z at z + tδ is a parabola in t.
        toward, at = np.linalg.solve(covariance, along), y - mean
        spread = 1.0 / math.sqrt(along @ toward)
        centre = -(toward @ at) * spread**2
        step, _, _ = draw_from_pieces(centre, spread, [(low, high)], uniforms[r])
        y += step * along


def outside_holes(holes, Y):
    """How far outside its hole each row lies: the most by which a set or an inequality is missed."""
    sets, miss = holes.sets, np.zeros(len(Y))
    for row, column in np.argwhere(holes.index >= 0):
        k, y = holes.index[row, column], Y[row, column]
        pieces = range(sets.start[k], sets.start[k + 1])
        gaps = [max(sets.lower[p] - y, y - sets.upper[p], 0.0) for p in pieces]
        if not gaps:
            nodes = slice(sets.node_start[k], sets.node_start[k + 1])
            allowed = sets.node[nodes][sets.weight[nodes] > 0]
            gaps = [max(allowed.min() - y, y - allowed.max(), 0.0)]
        miss[row] = max(miss[row], min(gaps))
    if holes.inequalities is not None:
        miss = np.maximum(miss, -holes.inequalities.slack(Y).min(axis=1, initial=np.inf))
    return miss


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
