"""
Files that keep coming
======================

Must all old files be read again when a new one comes?

A network of air monitors writes one file a week; concentrations below a detection limit are
written as "ND". How strongly do lead and nickel in the air go together, and how sure is that
by now? Of each file, a few small matrices are enough to know.
"""

# %%
# The data
# --------
# The files are invented: 24 weeks, each of 168 hours at 8 stations, with five pollutants
# as logarithms (base 10, µg/m³), of which 15 to 60 % lie below the limit. Lead and nickel
# have a correlation of 0.7. Every week has weather of its own, so rows of one week are
# alike.

import tempfile
from functools import reduce
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import stdtrit

import halfseen as hs

rule = hs.DetectionLimits(lower=[1.15, 0.5, 0.1, -2.2, -2.5])
# sphinx_gallery_start_ignore
names = ["NO2", "SO2", "benzene", "lead", "nickel"]
spread = np.array([0.25, 0.40, 0.35, 0.45, 0.40])
correlation = np.full((5, 5), 0.3) + 0.7 * np.eye(5)
correlation[3, 4] = correlation[4, 3] = 0.7
covariance = correlation * np.outer(spread, spread)
mean = np.array([1.4, 0.5, 0.2, -2.1, -2.6])

folder = tempfile.TemporaryDirectory()
weather = hs.Gaussian(mean, 0.03 * covariance)
hours = hs.Gaussian(np.zeros(5), 0.97 * covariance)
for week, level in enumerate(weather.sample(24, np.random.default_rng(0))):
    rows = level + hours.sample(8 * 168, np.random.default_rng([1, week]))
    table = pd.DataFrame(np.where(rule.seen(rows), rows, np.nan), columns=names)
    path = Path(folder.name) / f"week{week:02}.csv"
    table.to_csv(path, index=False, na_rep="ND", float_format="%.4f")

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
# sphinx_gallery_end_ignore
# folder: has the simulated files (the code is in the download)
paths = sorted(Path(folder.name).iterdir())
print(len(paths), "files:", paths[0].name, "to", paths[-1].name)
print(*paths[0].read_text().splitlines()[:4], sep="\n")

# %%
# The analysis
# ------------
# Of each file we keep its :class:`halfseen.PairMoments`: how often two columns are seen
# together, and sums over those rows. They merge exactly, and :func:`halfseen.fit` takes
# them in place of a table.


def read(path):
    return pd.read_csv(path, na_values="ND")


weeks = [hs.PairMoments.from_array(read(path)) for path in paths]
fit = hs.fit(reduce(hs.PairMoments.merge, weeks), rule)

print(fit)
print(fit.status.value)

# %%
# How sure is it? Leave out one week at a time (the jackknife). Hours of one week are
# alike, so whole weeks are what must be left out; and the moments of the weeks are all
# that it takes. Fisher's z keeps the interval between -1 and 1.


def lead_and_nickel(moments):
    merged = reduce(hs.PairMoments.merge, moments)
    return np.arctanh(hs.fit(merged, rule).correlation[3, 4])


def jackknife(moments):
    k = len(moments)
    left_out = [lead_and_nickel(moments[:i] + moments[i + 1 :]) for i in range(k)]
    half = stdtrit(k - 1, 0.975) * np.sqrt((k - 1) * np.var(left_out))
    return np.tanh(lead_and_nickel(moments) + half * np.array([0, -1, 1]))


# %%
# What it says
# ------------
# More files make an answer surer, the naive one as well; only the rule makes it right.

steps = [4, 6, 9, 13, 18, 24]
ours = np.array([jackknife(weeks[:k]) for k in steps])
whole = pd.concat([read(path) for path in paths], ignore_index=True)
both = whole[["lead", "nickel"]]
naive = [both[: 1344 * k].dropna().corr().iloc[0, 1] for k in steps]
print("files  both detected  halfseen  95 % interval")
for k, a, (b, low, high) in zip(steps, naive, ours, strict=True):
    print(f"{k:5d} {a:14.3f} {b:9.3f}  {low:.3f} to {high:.3f}")
print("truth: 0.700")

# sphinx_gallery_start_ignore
figure, ax = plt.subplots()
ax.fill_between(steps, ours[:, 1], ours[:, 2], color=HALFSEEN, alpha=0.2, lw=0)
ax.plot(steps, ours[:, 0], "o-", color=HALFSEEN)
ax.plot(steps, naive, "s-", color=NAIVE)
ax.axhline(0.7, color=TRUTH, ls="--", lw=1.3)
ax.text(24, 0.712, "truth", ha="right")
ax.text(24, 0.63, "halfseen, 95 % interval", color=HALFSEEN, ha="right")
ax.text(24, naive[-1] + 0.025, "hours with both detected", color=NAIVE, ha="right")
ax.set(xlabel="files read", ylabel="correlation", xlim=(3, 24.8), ylim=(0.4, 0.77))
ax.set_xticks(steps)
ax.set_title("The naive answer settles too, on a wrong value")
plt.show()
# sphinx_gallery_end_ignore

# %%
# It is the fit of the whole table, to rounding. The scikit-learn estimator does the same,
# one file at a time. What must be kept, a few 5 × 5 matrices, does not grow with the files.

model = hs.CensoredGaussian(rule)
for path in paths:
    model.partial_fit(read(path))

at_once = hs.fit(whole.to_numpy(), rule, method="pairwise").covariance
for way, found in [("merged", fit.covariance), ("partial_fit", model.covariance_)]:
    print(f"{way:<11} differs by {abs(found / at_once - 1).max():.0e}, relatively")

# sphinx_gallery_start_ignore
folder.cleanup()
# sphinx_gallery_end_ignore

# %%
# What to be careful about
# ------------------------
# ``pairwise``, the method that takes moments, looks at two columns at a time, and
# believes that every "ND" was hidden by the rule. Where a monitor was also switched off
# now and then, for reasons that have nothing to do with the air, use
# ``method="truncation"``: it works from the same moments, and looks at seen values
# alone. Limits must be the same in all files. When a new instrument comes, keep its
# moments apart and compare the two fits, or fit the rows themselves, with limits by cell.
# Where all files are at hand and are Parquet, none of this is needed: ``hs.fit("folder")``
# reads them piece by piece, for ``full`` as well (:doc:`/large`).
