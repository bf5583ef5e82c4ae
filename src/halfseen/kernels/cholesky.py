"""Small linear algebra for kernels: the leading block of a matrix that is used again and again."""

import math

from halfseen.kernels import KERNEL, njit


@njit(**KERNEL)
def factor(A, n, floor):
    """Factor the leading n × n block of A as L Lᵀ, in place, in its lower triangle.

    Pivots below ``floor`` are raised to it; returns False where one is not positive then.
    """
    for i in range(n):
        for j in range(i + 1):
            s = A[i, j]
            for k in range(j):
                s -= A[i, k] * A[j, k]
            if i == j:
                s = max(s, floor)
                if not s > 0.0:
                    return False
                A[i, i] = math.sqrt(s)
            else:
                A[i, j] = s / A[j, j]
    return True


@njit(**KERNEL)
def solve(L, r, n):
    """Solve L Lᵀ x = r for the leading block, in place of r."""
    for i in range(n):
        s = r[i]
        for k in range(i):
            s -= L[i, k] * r[k]
        r[i] = s / L[i, i]
    for i in range(n - 1, -1, -1):
        s = r[i]
        for k in range(i + 1, n):
            s -= L[k, i] * r[k]
        r[i] = s / L[i, i]
