import numpy as np
from scipy.stats import multivariate_normal

from halfseen.kernels.scores import fill_scores


def test_scores_are_derivatives_of_the_log_density():
    rng = np.random.default_rng(0)
    d, step = 3, 1e-5
    A = rng.normal(size=(d, d))
    mean, covariance = rng.normal(size=d), A @ A.T + np.eye(d)
    Y = rng.normal(size=(4, d))
    P = np.linalg.inv(covariance)
    comp = np.empty((4, d + d * (d + 1) // 2))
    fill_scores((Y - mean) @ P, P, comp)

    moves = [(np.eye(d)[k], np.zeros((d, d))) for k in range(d)]
    for i in range(d):
        for j in range(i + 1):
            both = np.zeros((d, d))
            both[i, j] = both[j, i] = 1.0
            moves.append((np.zeros(d), both))
    for k, (m, S) in enumerate(moves):
        up, down = (
            multivariate_normal(mean + s * m, covariance + s * S).logpdf(Y) for s in (step, -step)
        )
        # Central differences: step² times third derivatives of the order of 1, and rounding / step.
        np.testing.assert_allclose(comp[:, k], (up - down) / (2 * step), atol=1e-8)
