"""
Auctions of which only the winner is published
==============================================

What did the losers bid, and would a reserve price earn more?

An exchange sells advertising space by second-price auction: the highest bid wins, and pays
the second highest. Its public feed names the winner and the winning bid alone, so the price
that is paid, a losing bid, is never seen.
"""

# %%
# The data
# --------
# 3 000 auctions are invented: four bidders with independent log-normal bids, of medians 2.0,
# 1.5, 1.2 and 1.0 dollars for a thousand views. In a second-price auction it is best to bid what
# the space is worth, with or without a reserve price, so bids stay as they are when it changes.

import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

import halfseen as hs

# sphinx_gallery_start_ignore
bidders = ["Aster", "Birch", "Cedar", "Daisy"]
spread = np.array([0.5, 0.6, 0.8, 0.5])
truth = hs.Gaussian(np.log([2.0, 1.5, 1.2, 1.0]), np.diag(spread**2))
bids = np.exp(truth.sample(3000, np.random.default_rng(4)))
winner = np.take(bidders, bids.argmax(axis=1))
feed = pd.DataFrame({"winner": winner, "bid": bids.max(axis=1)})

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
# feed: simulated as told above (the code is in the download)
print(feed.head(4).round(2).to_string())

# %%
# The analysis
# ------------
# One column for each bidder, empty where another one won. The rule: of every row only the
# largest is shown. To lose says something too: that bid was below the winner's.

table = feed.pivot(columns="winner", values="bid")[bidders]
rule = hs.SelfSelection()
scale = {"transforms": "log", "random_state": 0}
fit = hs.fit(table, rule, covariance="diagonal", **scale)
found = fit.original_scale()

print(fit.status.name, "-", fit.status.value)

# %%
# What it says
# ------------
# Whoever takes a bidder's winning bids for all its bids thinks every bidder stronger than it is,
# Cedar even by 2.7 times.

won = np.log(table)
naive = hs.Gaussian(won.mean(), np.diag(won.var()))
columns = {
    "auctions won": table.count(),
    "winning bids": np.exp(naive.mean),
    "halfseen": found.median,
    "lower": found.median_lower,
    "upper": found.median_upper,
    "truth": np.exp(truth.mean),
}
print("median bid, $, with a 95 % interval")
print(pd.DataFrame(columns, bidders).round(2).to_string())

# sphinx_gallery_start_ignore
figure, ax = plt.subplots(figsize=(5.8, 3.3))
for gaussian, colour, shift, style in [
    (naive, NAIVE, -0.25, "-"),
    (fit.gaussian, HALFSEEN, 0.0, "-"),
    (truth, TRUTH, 0.25, "--"),
]:
    y = np.arange(4) + shift
    reach = ndtri(0.9) * gaussian.standard_deviations
    ends = np.exp([gaussian.mean - reach, gaussian.mean + reach])
    ax.plot(ends, [y, y], style, color=colour, lw=2)
    ax.plot(np.exp(gaussian.mean), y, "o", color=colour, ms=6)
labels = [f"{name}\nwon {table[name].count():,}" for name in bidders]
ax.set_yticks(range(4), labels)
ax.set(xscale="log", xlim=(0.35, 8), ylim=(3.6, -0.8))
ax.set(xlabel="bid, $: median, and from 10 % to 90 %")
ax.set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
ax.minorticks_off()
ax.text(2.7, -0.55, "winning bids", color=NAIVE, ha="center", va="center")
ax.text(0.98, -0.05, "halfseen", color=HALFSEEN, ha="right", va="center")
ax.text(0.98, 0.28, "truth", color=TRUTH, ha="right", va="center")
ax.set_title("Winning bids make every bidder look stronger")
plt.show()
# sphinx_gallery_end_ignore

# %%
# With a reserve price :math:`r` the exchange earns the second highest bid or :math:`r`,
# whichever is more, if the highest bid reaches :math:`r`: on average
# :math:`r\,P(\text{first} \ge r) + \int_r^\infty P(\text{second} \ge t)\,dt`. With independent
# bids both probabilities come from products, and ``standard_errors.of`` gives the uncertainty
# of the whole curve. The reserve price that winning bids suggest would lose money. The right one
# gains less than one per cent, which is worth knowing too.

# sphinx_gallery_start_ignore
reserves = np.linspace(0, 6, 121)
prices = np.linspace(0.01, 40, 4000)


def revenue(mean, covariance):
    """Revenue of an auction for each reserve price."""
    below = ndtr((np.log(prices)[:, None] - mean) / np.sqrt(np.diag(covariance)))
    first = below.prod(axis=1)
    others = [np.delete(below, k, axis=1).prod(axis=1) for k in range(4)]
    second_above = 1 - first - sum(other - first for other in others)
    beyond = np.cumsum(second_above[::-1])[::-1] - second_above / 2
    step = prices[1] - prices[0]
    return np.interp(reserves, prices, prices * (1 - first) + step * beyond)


# sphinx_gallery_end_ignore
# revenue: the formula, for reserve prices from 0 to 6 $ (the code is in the download)
value, error = fit.standard_errors.of(revenue)
low, high = value - 1.96 * error, value + 1.96 * error
true_value = revenue(truth.mean, truth.covariance)
naive_value = revenue(naive.mean, naive.covariance)
for name, curve in [
    ("winning bids", naive_value),
    ("halfseen", value),
    ("truth", true_value),
]:
    best = curve.argmax()
    print(
        f"{name:<12}  revenue {curve[0]:.2f} without a reserve price; "
        f"best at {reserves[best]:.2f}, which truly earns {true_value[best]:.2f}"
    )
print(f"halfseen, 95 % interval of {value[0]:.2f}: {low[0]:.2f} to {high[0]:.2f}")

# sphinx_gallery_start_ignore
figure, ax = plt.subplots(figsize=(5.8, 3.4))
ax.fill_between(reserves, low, high, color=HALFSEEN, alpha=0.25, lw=0)
ax.plot(reserves, naive_value, color=NAIVE, lw=2)
ax.plot(reserves, value, color=HALFSEEN, lw=2)
ax.plot(reserves, true_value, "--", color=TRUTH, lw=1.5)
for curve, colour in [(naive_value, NAIVE), (value, HALFSEEN)]:
    best = curve.argmax()
    ax.plot(reserves[best], curve[best], "o", color=colour)
    label = f"best reserve {reserves[best]:.2f}"
    ax.text(reserves[best], curve[best] + 0.13, label, color=colour, ha="center")
ax.text(4.1, 2.6, "winning bids", color=NAIVE)
ax.text(0.2, 0.72, "halfseen (95 % band\ntoo thin to see)", color=HALFSEEN)
ax.text(0.2, 1.42, "truth (dashed)", color=TRUTH)
ax.set(xlim=(0, 6), ylim=(0, 3.8))
ax.set(xlabel="reserve price, $", ylabel="revenue, $")
ax.set_title("They make revenue look far higher than it is")
plt.show()
# sphinx_gallery_end_ignore

# %%
# What to be careful about
# ------------------------
# ``covariance="diagonal"`` says that bids are independent. The feed can hardly tell: no two
# bids are ever seen together. With the covariance left free, the interval of a correlation is
# wide. (A fit that does not converge, or that has parameters of which little is known, warns;
# the status says the same, so here it is printed instead.)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", hs.ConvergenceWarning)
    free = hs.fit(table, rule, **scale)
print(textwrap.fill(f"{free.status.name} - {free.status.value}", 80))
limits = free.confidence_interval().correlation
low, high = (ends.loc["Aster", "Birch"] for ends in limits)
print(f"correlation of Aster and Birch, 95 %: {low:.2f} to {high:.2f}")

# %%
# If every bidder wants the same viewers, bids are correlated, and the second highest is closer
# to the first. So vary what is assumed: with the correlation given, all the rest is learned.

for rho in (0.1, 0.2):
    given = np.where(np.eye(4) == 1, 1.0, rho)
    other = hs.fit(table, rule, correlation=given, accuracy=0.3, **scale)
    drawn = np.exp(other.gaussian.sample(200_000, np.random.default_rng(0)))
    second = np.sort(drawn, axis=1)[:, -2].mean()
    print(f"correlation {rho:.1f}: revenue {second:.2f}, {other.status.name}")

# %%
# The interval above speaks against neither. With a correlation of 0.2 revenue would be
# a tenth higher: that is the real uncertainty, not the
# thin band in the figure. Something that is seen in every row and moves all bids, such as the
# site, would tell more: put it in as a column of its own.
