"""
Wages of those who work
=======================

What does a year of school pay, if wages are seen only of those who work?

Whoever could earn little stays at home more often, so those with little school who do work are the
lucky ones: among workers, school seems to pay less than it does. Heckman's model of 1979 has a
second equation, for who works.
"""

# %%
# The data
# --------
# 1 500 people are invented. A year of school adds 0.10 to the logarithm of the hourly wage. Who
# works depends on school, on small children and on the income of the partner, and on what else makes
# for a good wage: the residuals of both have a correlation of 0.7. The wage of those who do not
# work is not seen.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import halfseen as hs

# sphinx_gallery_start_ignore
rng = np.random.default_rng(10)
n = 1500
school = rng.integers(8, 19, n).astype(float)
kids = rng.poisson(0.7, n).astype(float)
partner = np.exp(rng.normal(3.2, 0.5, n)).round(1)
noise = rng.multivariate_normal([0.0, 0.0], [[0.25, 0.35], [0.35, 1.0]], n)
offer = 1.2 + 0.10 * school + noise[:, 0]
works = -1.7 + 0.18 * school - 0.6 * kids - 0.02 * partner + noise[:, 1] > 0.0
people = pd.DataFrame(
    {
        "school": school,
        "kids": kids,
        "partner": partner,
        "works": works,
        "wage": np.where(works, offer, np.nan),  # its logarithm
    }
)

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
# people: simulated as told above (the code is in the download)
print(people.head(4).round(2).to_string())
print(f"at work: {people['works'].mean():.0%}")

# %%
# The analysis
# ------------
# A formula for each equation, and a rule that says which outcome is seen by which. Children and
# the partner's income move people into work and out of it, not their wages: they stand in one
# equation alone.

formulas = {"wage": "school", "works": "school + kids + partner"}
rule = hs.Selection("wage", by="works")
fit = hs.regress(formulas, people, rule, random_state=0)
print(fit.summary())

# %%
# What it says
# ------------
# Least squares among those who work finds that a year of school pays a quarter less than it does.
# The mean of everyone is known as well: that of those who work is far above it.

shown = people["works"]
slope, start = np.polyfit(people.loc[shown, "school"], people.loc[shown, "wage"], 1)
ends = fit.confidence_interval()
low, high = (end.loc["school", "wage"] for end in ends.coefficients)
print("a year of school, in the logarithm of the wage")
print(f"  least squares among workers  {slope:.3f}")
print(f"  halfseen                     {fit.coefficients.loc['school', 'wage']:.3f}", end=" ")
print(f"({low:.3f} to {high:.3f})")
print("  truth                        0.100")
low, high = (end.loc["wage", "works"] for end in ends.residual_correlation)
print(f"correlation of residuals {fit.residual_correlation.loc['wage', 'works']:.2f}", end=" ")
print(f"({low:.2f} to {high:.2f}), truth 0.70")
print(f"mean of those who work {people['wage'].mean():.2f}", end=", ")
print(f"of everyone, halfseen {fit.predict()['wage'].mean():.2f}, truth {offer.mean():.2f}")

# sphinx_gallery_start_ignore
figure, ax = plt.subplots(figsize=(5.8, 3.6))
spread = school + rng.uniform(-0.3, 0.3, n)
ax.plot(spread[~works], offer[~works], "o", color="0.8", ms=2.2, mfc="white", mew=0.6)
ax.plot(spread[works], offer[works], ".", color="0.45", ms=3.5)
years = np.array([7.5, 18.5])
B = fit.coefficients["wage"]
ax.plot(years, start + slope * years, color=NAIVE, lw=2.5)
ax.plot(years, B["Intercept"] + B["school"] * years, color=HALFSEEN, lw=2.5)
ax.plot(years, 1.2 + 0.10 * years, "--", color=TRUTH, lw=1.5)
ax.set(xlim=(7.4, 22.5), xticks=range(8, 19, 2), ylim=(0.6, 4.95))
ax.set(xlabel="years of school", ylabel="logarithm of the hourly wage")
ax.text(18.7, start + slope * 18.5 + 0.13, "least squares,\nworkers", color=NAIVE, va="center")
ax.text(18.7, 3.05, "halfseen, on the\ntruth (dashed)", color=HALFSEEN, va="top")
ax.text(7.6, 4.7, "● at work", color="0.45")
ax.text(10.6, 4.7, "○ not at work: never seen", color="0.65")
ax.set_title("At little school, only the lucky ones work")
plt.show()
# sphinx_gallery_end_ignore

# %%
# What to be careful about
# ------------------------
# The answer rests on what stands in one equation alone. If the same regressors were in both,
# selection would be told from them by the normal law of the residuals and nothing else; the fit says
# so, as ``WEAKLY_IDENTIFIED``, with the share of the Mills ratio that is a line in the regressors.
# And if children also changed wages, the answer would be wrong, and nothing in the table would say
# it.
