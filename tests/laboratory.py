"""A file as laboratories send them: skewed columns, limits that differ by row, a few blanks."""

import numpy as np

import halfseen as hs

NAMES = ("lead", "zinc", "copper", "iron", "nickel", "cadmium", "arsenic", "tin")
ROWS = 500


def write_laboratory(path):
    """Write 500 rows of 8 columns, and return the Gaussian of their logarithms."""
    rng = np.random.default_rng(11)
    d = len(NAMES)
    root = rng.normal(size=(d, d)) / 3.0
    truth = hs.Gaussian(rng.normal(size=d), root @ root.T + 0.4 * np.eye(d))
    Z = truth.sample(ROWS, rng)
    # Three instruments, each with limits of its own.
    offsets = np.array([-0.7, -0.4, 0.0])[rng.integers(3, size=ROWS)]
    limits = np.round(np.exp(truth.mean + truth.standard_deviations * offsets[:, None]), 3)
    cells = [
        [f"<{limit!r}" if x < limit else repr(x) for x, limit in zip(*row, strict=True)]
        for row in zip(np.exp(Z).tolist(), limits.tolist(), strict=True)
    ]
    for row in rng.integers(ROWS, size=6):
        cells[row][0] = ""
    lines = [",".join(("sample", *NAMES))]
    lines += [",".join((f"S{k:03}", *row)) for k, row in enumerate(cells)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return truth
