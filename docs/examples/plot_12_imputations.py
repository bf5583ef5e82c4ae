"""
Lead, manganese, and a model of another library
===============================================

Does manganese in house dust harm children, or does it stand for lead that was not detected?

Lead and manganese in the dust of 2000 homes, and the test score of a child in each. The question is
about the regression of the score on both metals, and the holes are in its regressors. So draw what
the holes may have held, many times, run any model of any library on each completed table, and pool.
"""

# %%
# The data
# --------
# The homes are invented: metals are log-normal and rise together (0.8), the score falls by 8 points
# with each tenfold increase of lead, and not at all with manganese. Of the lead, 60 % lies below the
# limit of the laboratory.

import io

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import statsmodels.formula.api as smf

import halfseen as hs

# sphinx_gallery_start_ignore
rng = np.random.default_rng(12)
HOMES, SLOPES = 2000, np.array([-8.0, 0.0])
metals = hs.Gaussian([1.6, 2.0], [[0.36, 0.24], [0.24, 0.25]]).sample(HOMES, rng)
score = 110.0 + metals @ SLOPES + 10.0 * rng.standard_normal(HOMES)
truth = pd.DataFrame({"lead": 10 ** metals[:, 0], "manganese": 10 ** metals[:, 1], "score": score})
table = truth.round({"lead": 1, "manganese": 1, "score": 0}).astype({"lead": str, "score": int})
table.loc[truth["lead"] < 56, "lead"] = "<56"
file = io.StringIO(table.to_csv(index=False))

NAIVE, OTHER, HALFSEEN = "#b5482a", "0.45", "#2a6fb5"
plt.rcParams.update(
    {
        "figure.figsize": (5.8, 2.6),
        "figure.constrained_layout.use": True,
        "font.size": 11,
        "axes.titlesize": 12,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.spines.left": False,
    }
)
# sphinx_gallery_end_ignore
# file: simulated as told above (the code is in the download)
data = hs.read_csv(file)
print(data)

# %%
# The analysis
# ------------
# The fit describes all three columns together, the outcome among them: what a hole held depends
# on the outcome of its row too. ``pool`` runs the model of statsmodels on each table.

fit = hs.fit(data, transforms={"lead": "log10", "manganese": "log10"}, random_state=0)
tables = fit.draw_imputations(m=50, random_state=0)


def model(table):
    frame = pd.DataFrame(table, columns=fit.names)
    return smf.ols("score ~ np.log10(lead) + np.log10(manganese)", frame).fit()


pooled = hs.pool(model, tables)
print(pooled)

# %%
# What it says
# ------------
# The interval for manganese holds 0. Half the limit in the holes makes the lead of most homes the
# same, so that manganese, which rises with it, gets the blame. Of the information about each slope,
# the holes took the share in the last column above.

half = pd.DataFrame(np.where(data.seen, data.values, data.upper / 2), columns=data.names)
complete = pd.DataFrame(data.values, columns=data.names).dropna()
answers = {
    "half limit": model(half),
    f"{len(complete)} homes with lead": model(complete),
    "nothing hidden": model(truth),
}
for name, result in answers.items():
    low, high = result.conf_int().loc["np.log10(manganese)"]
    print(f"{name:>20}: {result.params['np.log10(manganese)']:.1f} ({low:.1f} to {high:.1f})")

# sphinx_gallery_start_ignore
TERMS = {"np.log10(lead)": "lead", "np.log10(manganese)": "manganese"}
ends = pooled.interval()
figure, axes = plt.subplots(1, 2, sharey=True)
for j, (ax, (term, word)) in enumerate(zip(axes, TERMS.items(), strict=True), 1):
    rows = [(pooled.estimate[j], ends.lower[j], ends.upper[j], HALFSEEN)]
    for name, result in answers.items():
        colour = NAIVE if name == "half limit" else OTHER
        rows.append((result.params[term], *result.conf_int().loc[term], colour))
    for k, (value, low, high, colour) in enumerate(rows):
        ax.plot([low, high], [k, k], color=colour, lw=2.5)
        ax.plot(value, k, "o", color=colour, ms=7)
    ax.axvline(SLOPES[j - 1], color="black", ls="--", lw=1.5, zorder=0)
    ax.text(SLOPES[j - 1], -0.65, " truth", va="center")
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(word)
axes[0].set_yticks(range(4), ["halfseen, 50 tables", *answers])
axes[0].set_ylim(3.6, -1.0)
axes[0].set_title("Half the limit blames manganese", x=-0.75)
figure.supxlabel("points of the score for ten times as much", fontsize=11)
plt.show()
# sphinx_gallery_end_ignore
