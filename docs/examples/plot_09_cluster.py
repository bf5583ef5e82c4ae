"""
A table spread over a cluster
=============================

How much must travel over the network to find the correlations behind all rows?

Twenty sensors have reported for years, and their rows lie in parts on several machines.
No sensor shows anything below its threshold. A table has n × d numbers; what has to
travel is d × d.
"""

# %%
# The data
# --------
# 16 parts of 12 500 rows are invented: each is drawn with a seed of its own, where a
# real one would be read from its file. A sensor is hidden below half a standard
# deviation under its mean, 31 % of the time.

import logging

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster

import halfseen as hs

# sphinx_gallery_start_ignore
PARTS, ROWS, SENSORS = 16, 12_500, 20
loadings = np.random.default_rng(0).normal(size=(SENSORS, 4))
covariance = loadings @ loadings.T + 2 * np.eye(SENSORS)
truth = hs.Gaussian(np.zeros(SENSORS), covariance)
# sphinx_gallery_end_ignore
# truth: a Gaussian of 20 sensors (the code is in the download)
rule = hs.DetectionLimits(lower=-0.5 * truth.standard_deviations)


def read_part(k):
    return hs.simulate(truth, rule, ROWS, random_state=k)


# %%
# The analysis
# ------------
# A Dask array says how each part is read; none is read yet. With ``client=``,
# :func:`halfseen.fit` works on the parts where they are. ``full``, the method that is
# taken, draws the hidden cells of a part on the worker that has it, again and again, and
# only sums over rows come back, added two by two. The cluster is two processes on one
# machine here. Workers import a script anew, so what must not run again in each of them
# stands below ``if __name__``; a notebook does not need that.

shape = ROWS, SENSORS
parts = [dask.delayed(read_part)(k) for k in range(PARTS)]
table = da.concatenate([da.from_delayed(part, shape, float) for part in parts])

if __name__ == "__main__":
    two = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    # A task that fails raises its error here; logs would only tell of the closing down.
    quiet = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with LocalCluster(**two, **quiet) as cluster, Client(cluster) as client:
        fit = hs.fit(table, rule, random_state=0, client=client)
        moments_only = hs.fit(table, rule, "pairwise", client=client)
    print(fit)
    print(fit.status.value)

# %%
# What it says
# ------------
# Correlations over the rows in which both sensors are seen are too weak, and more rows
# do not help; those of the fit lie on the truth. ``pairwise``, which reads each part once
# and asks for one set of sums, is nearly as good here. On one machine the same parts
# give the same answer, to the last bit.

if __name__ == "__main__":
    here = hs.fit(table, rule, "pairwise")
    same = np.array_equal(here.covariance, moments_only.covariance)
    print(f"one machine and the cluster: {'the same bits' if same else 'they differ'}")
    sums = 8 * (SENSORS + SENSORS**2)
    print(f"the table: {table.nbytes / 1e6:.0f} MB", end="; ")
    print(f"a step sends {sums / 1e3:.1f} kB to each part and as much back")

    # sphinx_gallery_start_ignore
    # The naive answer: rows in which both are seen.
    moments = hs.PairMoments.from_array(table.compute())
    n, first = moments.counts, moments.first
    sums = moments.cross - first * first.T / n
    squares = moments.second - first**2 / n
    naive = sums / np.sqrt(squares * squares.T)
    pairs = np.triu_indices(SENSORS, 1)
    true = truth.correlation[pairs]

    def error(found):
        return np.sqrt(np.mean((found[pairs] - true) ** 2))

    # sphinx_gallery_end_ignore
    print(f"correlations are off (root mean square) by {error(naive):.3f} naively,")
    print(f"by {error(fit.correlation):.4f} with full", end=", ")
    print(f"by {error(moments_only.correlation):.4f} with pairwise")

    # sphinx_gallery_start_ignore
    import matplotlib.pyplot as plt

    TRUTH, NAIVE, HALFSEEN = "black", "#b5482a", "#2a6fb5"
    plt.rcParams.update(
        {
            "figure.figsize": (5.8, 3.0),
            "figure.constrained_layout.use": True,
            "font.size": 11,
            "axes.titlesize": 12,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    figure, ax = plt.subplots(figsize=(5.8, 3.3))
    ax.axline((0, 0), slope=1, color=TRUTH, ls="--", lw=1.3)
    ax.plot(true, naive[pairs], "s", color=NAIVE, ms=3.5)
    ax.plot(true, fit.correlation[pairs], "o", color=HALFSEEN, ms=3.5)
    ax.text(0.93, -0.12, "rows with both seen", color=NAIVE, ha="right")
    ax.text(0.22, 0.42, "halfseen", color=HALFSEEN, ha="right")
    ax.text(0.78, 0.85, "truth", color=TRUTH, ha="right")
    ax.set(xlim=(-0.95, 0.95), ylim=(-0.95, 0.95))
    ax.set(xticks=[-0.5, 0, 0.5], yticks=[-0.5, 0, 0.5])
    ax.set(xlabel="true correlation (a dot for each of 190 pairs)", ylabel="estimate")
    ax.set_title("Naive correlations are too weak")
    plt.show()
    # sphinx_gallery_end_ignore

# %%
# What to be careful about
# ------------------------
# ``full`` keeps the rows of every part in the memory of the workers: one and a half times
# the table. Where that is too much, ``pairwise`` reads and
# forgets; its limits must be the same in all rows. Parts should be neither small (each
# costs some milliseconds a step) nor too large for a worker to hold a few of them:
# :doc:`/large` says more, and :doc:`/scale-plan` where it ends. What no number of rows
# repairs is a wrong threshold or a shape far from normal: take one part, and ask
# :func:`halfseen.diagnose` about it.
