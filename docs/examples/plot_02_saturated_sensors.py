"""
Vibration sensors that clip
===========================

How often does a bridge shake harder than its sensors can record?

Three accelerometers on a railway bridge record the peak of every passing train. Above 3 m/s² they
saturate, below 0.3 m/s² they show their noise floor, and the record holds the limit itself.
The usual design limit of a deck without ballast is 5 m/s², which no record can show. And how
well does one sensor stand in for another?
"""

# %%
# The data
# --------
# 400 trains are simulated, with log-normal peaks of plausible size and spread (a median of
# 1.9 m/s² at midspan), so the truth is known: 5.3 % of trains pass 5 m/s² there, and the
# logarithms of midspan and pier have a correlation of 0.70.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import log_ndtr, ndtr

import halfseen as hs

# sphinx_gallery_start_ignore
sensors = ["quarter", "midspan", "pier"]
spread = np.array([0.55, 0.6, 0.5])
together = np.array([[1.0, 0.85, 0.6], [0.85, 1.0, 0.7], [0.6, 0.7, 1.0]])
truth = hs.Gaussian(np.log([1.2, 1.9, 0.45]), together * np.outer(spread, spread))
peaks = np.exp(truth.sample(400, np.random.default_rng(2)))
FLOOR, CEILING, DESIGN = 0.3, 3.0, 5.0

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
# peaks: simulated as told above (the code is in the download)
record = np.clip(peaks, FLOOR, CEILING)  # what the logger keeps
print(sensors)
print(record[:4].round(2))

# %%
# The analysis
# ------------
# ``saturated`` reads a value on a limit as lying beyond it, on the side of that limit.

data = hs.IntervalData(record, record, sensors)
data = data.saturated(hs.DetectionLimits(lower=FLOOR, upper=CEILING))
fit = hs.fit(data, transforms="log", random_state=0)

print(data)
print(fit.status.name, "-", fit.status.value)

# %%
# The share of trains above a level is a smooth function of what was learned, so
# ``standard_errors.of`` gives its uncertainty. The interval is taken on the scale of logarithms,
# on which a small share is more nearly normal.


def log_share(mean, covariance, level=DESIGN):
    """Logarithm of the share of trains above a level, at midspan."""
    sd = np.sqrt(covariance[1, 1])
    return log_ndtr((mean[1] - np.log(level)) / sd)


value, error = fit.standard_errors.of(log_share)
share, lowest, highest = np.exp([value, value - 1.96 * error, value + 1.96 * error])

# %%
# What it says
# ------------
# One train in twenty passes 5 m/s² at midspan. Taking the limit for a measurement makes such
# peaks look more than three times too rare; leaving clipped peaks out, more than ten times.

clipped = np.log(record)  # limits as if they had been measured
naive = hs.Gaussian(clipped.mean(axis=0), np.cov(clipped.T))
as_it_is = np.exp(log_share(naive.mean, naive.covariance))
inside = np.log(data.values[:, 1])  # NaN where clipped
dropped = ndtr((np.nanmean(inside) - np.log(DESIGN)) / np.nanstd(inside))
true_share = np.exp(log_share(truth.mean, truth.covariance))

print(f"share of trains above {DESIGN:g} m/s² at midspan")
print(f"  clipped peaks left out     {dropped:.1%}")
print(f"  clipped peaks as they are  {as_it_is:.1%}")
print(f"  halfseen                   {share:.1%} ({lowest:.1%} to {highest:.1%})")
print(f"  truth                      {true_share:.1%}")

# sphinx_gallery_start_ignore
hidden = {"fc": "0.94", "hatch": "////", "ec": "0.8", "lw": 0, "zorder": 0}
on_hatch = {"fc": "0.94", "ec": "none", "pad": 1.5}
levels = np.geomspace(0.3, 12.0, 120)
curve, width = fit.standard_errors.of(lambda m, c: log_share(m, c, levels))
low, high = np.exp([curve - 1.96 * width, curve + 1.96 * width])

figure, ax = plt.subplots(figsize=(5.8, 3.2))
ax.axvspan(CEILING, 12, **hidden)
ax.fill_between(levels, low, high, color=HALFSEEN, alpha=0.25, lw=0)
ax.plot(levels, np.exp(curve), color=HALFSEEN, lw=2)
naive_curve = np.exp(log_share(naive.mean, naive.covariance, levels))
true_curve = np.exp(log_share(truth.mean, truth.covariance, levels))
ax.plot(levels, naive_curve, color=NAIVE, lw=2)
ax.plot(levels, true_curve, "--", color=TRUTH, lw=1.5)
ordered = np.sort(record[:, 1])
share_above = 1 - (np.arange(len(ordered)) + 0.5) / len(ordered)
recorded = (ordered > FLOOR) & (ordered < CEILING)
ax.plot(ordered[recorded][::4], share_above[recorded][::4], ".", color="0.45", ms=5)
ax.axvline(DESIGN, color="0.3", lw=0.8)
ax.set(xscale="log", yscale="log", xlim=(0.5, 12), ylim=(1e-3, 1.2))
ax.set(xlabel="peak at midspan, m/s²", ylabel="trains above it")
ax.set_xticks([0.5, 1, 2, 3, 5, 10], ["0.5", "1", "2", "3", "5", "10"])
ax.set_yticks([1e-3, 1e-2, 1e-1, 1], ["0.1 %", "1 %", "10 %", "100 %"])
ax.minorticks_off()
ax.text(5.2, 0.95, "design\nlimit", color="0.3", va="top", bbox=on_hatch)
ax.text(3.08, 0.0014, "never\nrecorded", color="0.35", bbox=on_hatch)
ax.text(2.9, 0.012, "clipped peaks\nas they are", color=NAIVE, ha="right")
ax.text(4.5, 0.125, "halfseen, 95 %", color=HALFSEEN, bbox=on_hatch)
ax.text(8.6, 0.016, "truth", color=TRUTH, va="center", bbox=on_hatch)
ax.text(0.53, 0.45, "recorded", color="0.4")
ax.set_title("Large peaks are not rare, only not recorded")
plt.show()
# sphinx_gallery_end_ignore

# %%
# Clipping also makes two sensors look less alike than they are.

interval = fit.confidence_interval().correlation
print("correlations of logarithms")
for i, j in [(0, 1), (1, 2), (0, 2)]:
    print(
        f"  {sensors[i]:>7} ~ {sensors[j]:<7}  "
        f"as they are {naive.correlation[i, j]:.2f}, "
        f"halfseen {fit.correlation[i, j]:.2f} "
        f"({interval.lower[i, j]:.2f} to {interval.upper[i, j]:.2f}), "
        f"truth {truth.correlation[i, j]:.2f}"
    )


# sphinx_gallery_start_ignore
def ellipse(gaussian, share=0.9):
    """Outline that holds a share of the trains, for midspan and pier."""
    turn = np.linspace(0, 2 * np.pi, 200)
    circle = np.sqrt(-2 * np.log(1 - share)) * np.array([np.cos(turn), np.sin(turn)])
    pair = gaussian.marginal([1, 2])
    return np.exp(pair.mean[:, None] + np.linalg.cholesky(pair.covariance) @ circle)


figure, ax = plt.subplots(figsize=(5.8, 3.8))
ax.axvspan(CEILING, 12, **hidden)
ax.axhspan(0.06, FLOOR, **hidden)
ax.plot(record[:, 1], record[:, 2], ".", color="0.45", ms=4)
ax.plot(*ellipse(naive), color=NAIVE, lw=2)
ax.plot(*ellipse(fit.gaussian), color=HALFSEEN, lw=2)
ax.plot(*ellipse(truth), "--", color=TRUTH, lw=1.5)
ax.set(xscale="log", yscale="log", xlim=(0.25, 12), ylim=(0.06, 6))
ax.set(xlabel="peak at midspan, m/s²", ylabel="peak at the pier, m/s²")
ax.set_xticks([0.3, 1, 3, 10], ["0.3", "1", "3", "10"])
ax.set_yticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
ax.minorticks_off()
r = fit.correlation[1, 2], interval.lower[1, 2], interval.upper[1, 2]
for y, colour, label in [
    (0.92, NAIVE, f"as they are: correlation {naive.correlation[1, 2]:.2f}"),
    (0.83, HALFSEEN, f"halfseen: {r[0]:.2f} ({r[1]:.2f} to {r[2]:.2f})"),
    (0.74, TRUTH, f"truth: {truth.correlation[1, 2]:.2f}"),
]:
    ax.text(0.03, y, label, color=colour, transform=ax.transAxes)
ax.text(0.27, 0.07, "each ellipse holds 90 % of trains", color="0.35", bbox=on_hatch)
ax.set_title("Clipping makes two sensors look less alike")
plt.show()
# sphinx_gallery_end_ignore

# %%
# What to be careful about
# ------------------------
# What lies beyond the range is known through the number of clipped peaks, through the other
# sensors, and through the log-normal shape. The last is an assumption: if a second kind of train
# made the large peaks, nothing in these records would show how large they are. Then a few runs
# with a sensor of wider range are worth more than any model; or report only levels just beyond
# the range, where the shape matters least. An unequal range by sensor, or one that was changed on
# some day, is told by ``lower=`` and ``upper=`` with one number for each column or each cell.
