"""
Incomes that are top-coded
==========================

What is the mean income, and how unequal are incomes, if large ones read "100 000 or more"?

A survey hides incomes above a ceiling, to protect its respondents. The question is about the
mean, the Gini coefficient, and how closely incomes follow education.
"""

# %%
# The data
# --------
# 1 500 respondents are invented: log-normal incomes (median 45 000, standard deviation of the
# logarithm 0.8) that have a correlation of 0.5 with years of education and 0.2 with age. So the
# truth is known. The survey reports the ceiling in place of what is above it.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

import halfseen as hs

# sphinx_gallery_start_ignore
spread = np.array([0.8, 2.6, 11.0])
together = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, -0.15], [0.2, -0.15, 1.0]])
truth = hs.Gaussian([np.log(45.0), 13.5, 43.0], together * np.outer(spread, spread))
people = truth.sample(1500, np.random.default_rng(3))
complete = pd.DataFrame(people, columns=["income", "education", "age"])
complete["income"] = np.exp(complete["income"])

CEILING = 100.0  # thousands a year
survey = complete.assign(income=complete["income"].clip(upper=CEILING))

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
# survey: simulated as told above (the code is in the download)
print(survey.head().round(1).to_string())
print(f"top-coded: {(survey['income'] == CEILING).mean():.1%} of respondents")

# %%
# The analysis
# ------------
# The pile at the ceiling is hidden; education and age say who is likely to be far above it.

hidden = survey["income"] == CEILING
table = survey.assign(income=survey["income"].mask(hidden))
fit = hs.fit(
    table,
    hs.DetectionLimits(upper={"income": CEILING}),
    transforms={"income": "log"},
    random_state=0,
)

print(fit.status.name, "-", fit.status.value)

# %%
# With :math:`\log` income :math:`\sim N(\mu, \sigma^2)` the mean is :math:`e^{\mu+\sigma^2/2}`, the
# Gini coefficient :math:`2\Phi(\sigma/\sqrt2)-1`, and those above the ceiling :math:`c` hold
# the share :math:`\Phi(\sigma-z_c)` of all income, :math:`z_c=(\log c-\mu)/\sigma`. Each is a smooth
# function of what was learned.


def answers(mean, covariance):
    """Mean, Gini, shares of people and income above the ceiling, correlation."""
    mu, sigma = mean[0], np.sqrt(covariance[0, 0])
    z = (np.log(CEILING) - mu) / sigma
    return np.array(
        [
            np.exp(mu + sigma**2 / 2),
            2 * ndtr(sigma / np.sqrt(2)) - 1,
            ndtr(-z),
            ndtr(sigma - z),
            covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]),
        ]
    )


value, error = fit.standard_errors.of(answers)

# %%
# What it says
# ------------
# Taken at the ceiling, incomes are too low by a sixth and far too equal. Leaving the top-coded
# out harms every answer.


# sphinx_gallery_start_ignore
def gini(income):
    """Gini coefficient of a sample."""
    ordered = np.sort(income)
    rank = np.arange(1, ordered.size + 1)
    return 2 * (rank @ ordered) / (ordered.size * ordered.sum()) - 1 - 1 / ordered.size


def by_habit(rows):
    """Return the same from incomes taken at their face value."""
    income, top = rows["income"], rows["income"] >= CEILING
    held = income[top].sum() / income.sum()
    r = np.corrcoef(np.log(income), rows["education"])[0, 1]
    return np.array([income.mean(), gini(income), top.mean(), held, r])


questions = ["mean", "Gini", "people above", "income above", "r(education)"]
# sphinx_gallery_end_ignore
# by_habit: the same five from a sample (the code is in the download)
columns = {
    "left out": by_habit(survey[~hidden]),
    "at ceiling": by_habit(survey),
    "halfseen": value,
    "lower": value - 1.96 * error,
    "upper": value + 1.96 * error,
    "truth": answers(truth.mean, truth.covariance),
    "nothing hidden": by_habit(complete),
}
print(pd.DataFrame(columns, questions).round(3).to_string())


# sphinx_gallery_start_ignore
def density(gaussian, income):
    """Density of a log-normal income, per thousand."""
    mu, sigma = gaussian.mean[0], gaussian.standard_deviations[0]
    z = (np.log(income) - mu) / sigma
    return np.exp(-(z**2) / 2) / (np.sqrt(2 * np.pi) * sigma * income)


figure, ax = plt.subplots()
grid = np.linspace(1, 250, 400)
ax.axvspan(CEILING, 250, fc="0.94", hatch="////", ec="0.8", lw=0)
on_hatch = {"fc": "0.94", "ec": "none", "pad": 1.5}
edges = np.arange(0, 110, 5)
weights = np.full(len(survey), 100 / len(survey))
ax.hist(survey["income"], edges, weights=weights, color=NAIVE, alpha=0.35)
ax.plot(grid, 500 * density(fit.gaussian, grid), color=HALFSEEN, lw=2)
ax.plot(grid, 500 * density(truth, grid), "--", color=TRUTH, lw=1.5)
reported, gini_reported = columns["at ceiling"][:2]
ax.plot([reported] * 2, [0, 10.2], color=NAIVE, lw=1.5)
ax.text(reported, 10.5, f"mean\n{reported:.0f}", color=NAIVE, ha="center")
ax.plot([value[0]] * 2, [0, 8.2], color=HALFSEEN, lw=1.5)
ax.text(value[0] + 2, 8.4, f"mean\n{value[0]:.0f}", color=HALFSEEN)
pile = f"{100 * hidden.mean():.0f} % of people:\n“100 or more”"
ax.text(109, 12.6, pile, color=NAIVE, bbox=on_hatch)
ax.text(121, 2.6, "halfseen, on the truth (dashed)", color=HALFSEEN, bbox=on_hatch)
ax.set(xlim=(0, 250), ylim=(0, 17.5), xlabel="income, thousands a year")
ax.set(ylabel="% of people (bins of 5)", yticks=[0, 5, 10, 15])
ax.set_title("The pile at the ceiling is a tail, cut off")
plt.show()
# sphinx_gallery_end_ignore

# %%
# The correlation hardly suffers from the ceiling; here the reported one even happens to be nearer
# to the truth than ours. With nothing hidden these respondents have one a little above the truth,
# too, and the small loss at the ceiling offsets that.
#
# The Gini coefficient is another matter. Drawn as Lorenz curves:

print(f"Gini as reported {gini_reported:.2f}, halfseen {value[1]:.2f}", end=", ")
print(f"truth {columns['truth'][1]:.2f}")

# sphinx_gallery_start_ignore
figure, ax = plt.subplots(figsize=(5.8, 3.4))
share = np.linspace(0, 1, 301)[1:-1]
sigma, true_sigma = fit.gaussian.standard_deviations[0], truth.standard_deviations[0]
ordered = np.sort(survey["income"])
rank = np.arange(1, ordered.size + 1) / ordered.size
ax.plot([0, 1], [0, 1], color="0.8", lw=0.8)
ax.plot(rank, ordered.cumsum() / ordered.sum(), color=NAIVE, lw=2)
ax.plot(share, ndtr(ndtri(share) - sigma), color=HALFSEEN, lw=2)
ax.plot(share, ndtr(ndtri(share) - true_sigma), "--", color=TRUTH, lw=1.5)
ax.annotate(
    f"as reported: Gini {gini_reported:.2f}",
    (0.72, 0.49),
    (0.52, 0.72),
    color=NAIVE,
    ha="right",
    arrowprops={"arrowstyle": "-", "color": NAIVE, "lw": 0.8},
)
label = f"halfseen: {value[1]:.2f} ± {1.96 * error[1]:.2f}"
ax.text(0.98, 0.16, label, color=HALFSEEN, ha="right")
ax.text(0.98, 0.06, f"truth: {columns['truth'][1]:.2f}", color=TRUTH, ha="right")
ax.text(0.3, 0.33, "all equal", color="0.55", ha="right")
ax.set(xlim=(0, 1), ylim=(0, 1))
ax.set(xlabel="share of people, poorest first", ylabel="share of income")
ax.set_title("Without the tail, incomes look more equal")
plt.show()
# sphinx_gallery_end_ignore

# %%
# What to be careful about
# ------------------------
# Everything above the ceiling is the log-normal's word. Real top incomes often fall off as
# a power, more slowly. Suppose that those above the ceiling had a Pareto tail with exponent 2
# instead: the survey would report **the very same table**, and the fit would be the same, while
# the truth would not.

exponent = 2.0
share_above, income_above = columns["truth"][2:4]
below = columns["truth"][0] * (1 - income_above)
pareto_mean = below + share_above * CEILING * exponent / (exponent - 1)
print(f"mean if the tail is log-normal: {columns['truth'][0]:.1f} thousand")
print(f"mean if the tail is Pareto({exponent:g}):  {pareto_mean:.1f} thousand")
print(f"halfseen, of either survey:     {value[0]:.1f} thousand")

# %%
# No method can tell these apart from the survey alone. Numbers that do not lean on the tail stay
# safe: the median and the share above the ceiling, and to a lesser degree the correlation.
# For the mean and the Gini coefficient, take the tail from elsewhere (tax records give its
# exponent) and use the fit below it. Education and age are treated as normal; they are always
# seen, so what matters is that log income is linear in them.
