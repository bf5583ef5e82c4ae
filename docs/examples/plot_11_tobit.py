"""
Blood lipids beyond the range of a meter
========================================

How do blood lipids depend on body mass, if a pocket meter does not show low and high values?

442 patients with diabetes had HDL cholesterol and triglycerides measured in a laboratory. The table
is real: scikit-learn ships it. We hide what a pocket meter would: HDL below 40 mg/dl, and
triglycerides above 150. So what the regression says with nothing hidden is known.
"""

# %%
# The data
# --------
# The outcomes are logarithms of concentrations. Regressors are as they are: age, a body mass index
# that is skewed, blood pressure, and sex, which has two values.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

import halfseen as hs

# sphinx_gallery_start_ignore
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
patients = load_diabetes(as_frame=True, scaled=False).frame
whole = patients[["age", "sex", "bmi", "bp"]].assign(
    hdl=np.log(patients["s3"]),
    triglycerides=patients["s5"],  # the table has its logarithm
)
LOWEST, HIGHEST = np.log(40.0), np.log(150.0)
table = whole.assign(
    hdl=whole["hdl"].where(whole["hdl"] >= LOWEST),
    triglycerides=whole["triglycerides"].where(whole["triglycerides"] <= HIGHEST),
)
print(table.head(4).round(2).to_string())
print(table[["hdl", "triglycerides"]].isna().mean().map("{:.0%} hidden".format).to_string())

# %%
# The analysis
# ------------
# Two outcomes with a limit each, on different sides, in one fit: the one that is seen says
# something of the one that is not.

rule = hs.rules({"hdl": f">={LOWEST}", "triglycerides": f"<={HIGHEST}"})
formula = "hdl + triglycerides ~ age + C(sex) + bmi + bp"
fit = hs.regress(formula, table, rule, random_state=0)
print(fit.summary())

# %%
# What it says
# ------------
# Beside it are the regression from the whole table, one on rows in which both are seen, and one with
# the limit in the place of what lies beyond. Both habits make body mass matter less than it does.

at_limit = table.fillna({"hdl": LOWEST, "triglycerides": HIGHEST})
fits = {
    "rows that show both": hs.regress(formula, table.dropna()),
    "limit in its place": hs.regress(formula, at_limit),
    "halfseen": fit,
    "nothing hidden": hs.regress(formula, whole),
}
found = pd.DataFrame({name: one.coefficients.loc["bmi"] for name, one in fits.items()})
print("change of the logarithm with one more kg/m²")
print(found.T.round(4).to_string())
R = {name: one.residual_correlation.loc["hdl", "triglycerides"] for name, one in fits.items()}
print("correlation of residuals")
print(pd.Series(R).round(2).to_string())

# sphinx_gallery_start_ignore
figure, axes = plt.subplots(1, 2, figsize=(5.8, 2.9), sharey=True)
looks = {
    "rows that show both": (NAIVE, "white"),
    "limit in its place": (NAIVE, NAIVE),
    "halfseen": (HALFSEEN, HALFSEEN),
    "nothing hidden": (TRUTH, TRUTH),
}
for ax, outcome in zip(axes, ["hdl", "triglycerides"], strict=True):
    for y, (name, (colour, inside)) in enumerate(looks.items()):
        one = fits[name]
        low, high = (100 * e.loc["bmi", outcome] for e in one.confidence_interval().coefficients)
        ax.plot([low, high], [y, y], color=colour, lw=2)
        ax.plot(100 * one.coefficients.loc["bmi", outcome], y, "o", color=colour, mfc=inside)
    ax.axvline(0, color="0.8", lw=0.8, zorder=0)
    ax.axvline(100 * found.loc[outcome, "nothing hidden"], color="0.3", lw=0.8, ls="--", zorder=0)
    ax.set(xlabel="% for one more kg/m²", ylim=(3.6, -0.6))
axes[0].set_yticks(range(len(looks)), looks)
for tick, (colour, _) in zip(axes[0].get_yticklabels(), looks.values(), strict=True):
    tick.set_color(colour)
axes[0].set_title("HDL")
axes[1].set_title("Triglycerides")
plt.show()
# sphinx_gallery_end_ignore

# %%
# Is the model right? Residuals of hidden values are drawn from where they can be; then all of
# them should be standard normal, whatever was hidden.

residuals = fit.residuals()
print(residuals.agg(["mean", "std", "skew"]).round(2).to_string())

# %%
# What to be careful about
# ------------------------
# What lies beyond a limit is told by the normal shape of the residuals, on the scale that was
# chosen; the logarithm is a good one here. If their spread changed with body mass, slopes would be
# off; ``fit.robust()`` has standard errors that do not believe the model, but does not move the
# estimate back.
