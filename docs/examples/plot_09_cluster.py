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
# 16 parts of 25 000 rows are invented: each is drawn with a seed of its own, where a
# real one would be read from its file. A sensor is hidden below half a standard
# deviation under its mean, 31 % of the time.

import logging
import pickle

import numpy as np
from dask import bag
from dask.distributed import Client, LocalCluster

import halfseen as hs

# sphinx_gallery_start_ignore
PARTS, ROWS, SENSORS = 16, 25_000, 20
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
# A worker turns its part into :class:`halfseen.PairMoments`, sums over the rows in which
# two columns are both seen; merging adds them up, two by two, as a tree.
# :func:`halfseen.fit` takes merged moments in place of a table. The cluster is two
# processes on one machine here. Workers import a script anew, so what must not run again
# in each of them stands below ``if __name__``; a notebook does not need that.


def moments_of_part(k):
    return hs.PairMoments.from_array(read_part(k), n_jobs=1)


def on_cluster(client):
    parts = bag.from_sequence(range(PARTS), npartitions=PARTS).map(moments_of_part)
    return client.compute(parts.fold(hs.PairMoments.merge, split_every=2)).result()


if __name__ == "__main__":
    two = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    # A task that fails raises its error here; logs would only tell of the closing down.
    quiet = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with LocalCluster(**two, **quiet) as cluster, Client(cluster) as client:
        moments = on_cluster(client)
    fit = hs.fit(moments, rule)
    print(fit)
    print(fit.status.value)

# %%
# What it says
# ------------
# Correlations over the rows in which both sensors are seen are too weak, and more rows
# do not help; those of the fit lie on the truth, and are equal to the fit of the whole
# table on one machine, to rounding. What travels is 14 kB from each part, however many
# rows it has.

if __name__ == "__main__":
    table = np.concatenate([read_part(k) for k in range(PARTS)])
    single = hs.fit(table, rule, method="pairwise")
    gaps = abs(fit.mean - single.mean), abs(fit.covariance - single.covariance)
    sent = len(pickle.dumps(moments))
    print(f"largest difference: {max(gap.max() for gap in gaps):.0e}")
    print(f"the table: {table.nbytes / 1e6:.0f} MB", end="; ")
    print(f"the moments of {PARTS} parts: {PARTS} x {sent / 1e3:.0f} kB")

    # sphinx_gallery_start_ignore
    # The naive answer, which moments hold too: rows in which both are seen.
    n, first = moments.counts, moments.first
    sums = moments.cross - first * first.T / n
    squares = moments.second - first**2 / n
    naive = sums / np.sqrt(squares * squares.T)
    pairs = np.triu_indices(SENSORS, 1)
    true = truth.correlation[pairs]

    def error(found):
        return np.sqrt(np.mean((found[pairs] - true) ** 2))

    # sphinx_gallery_end_ignore
    print(f"correlations are off by {error(naive):.3f} naively", end=", ")
    print(f"by {error(fit.correlation):.4f} with halfseen (root mean square)")

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
# Limits must be the same in all rows, and the method is ``pairwise`` (or ``truncation``,
# where cells are also missing for reasons that have nothing to do with any value):
# ``full`` needs the rows themselves. It would be a little sharper and bring standard
# errors. With this many rows the first hardly matters, and for the second one can leave
# out parts in turn, as in :ref:`sphx_glr_auto_examples_plot_08_streaming.py`. What no
# number of rows repairs is a wrong threshold or a shape far from normal: take one part,
# and ask :func:`halfseen.diagnose` about it.
