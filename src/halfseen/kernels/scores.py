"""Scores of complete rows: derivatives of the log-density in the mean and the covariance."""

from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def fill_scores(R, P, scores):
    """Fill ``scores`` with those of rows for which R = P (y − μ), one row each.

    First R itself, for the mean; then c_ij (R_i R_j − P_ij) for i >= j, by rows of the lower triangle,
    where c is ½ on the diagonal and 1 elsewhere.
    """
    n, d = R.shape
    for r in range(n):
        k = d
        for i in range(d):
            x = R[r, i]
            scores[r, i] = x
            for j in range(i):
                scores[r, k] = x * R[r, j] - P[i, j]
                k += 1
            scores[r, k] = 0.5 * (x * x - P[i, i])
            k += 1
