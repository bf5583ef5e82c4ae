"""
A star cluster behind an odd-shaped footprint
=============================================

Where is the centre of a star cluster, if a bright star blinds that part of the image?

A survey maps the stars of a cluster. Nothing is recorded in the blinded disc, nor outside
the field of view, and of the stars there not even the number is known. How wide is the
cluster, and how many stars does it have?
"""

# %%
# The data
# --------
# The cluster is invented: 4 000 stars, normal around (1.5, −0.5) with standard deviations
# of 4 and 3 arcminutes. The survey is a list of positions of those inside the footprint.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle, Ellipse

import halfseen as hs

FIELD, BLIND = 7.0, 4.0  # radii, arcminutes
STAR = np.array([2.5, 1.0])  # where the bright star is


def in_footprint(positions):
    in_field = np.hypot(*positions.T) < FIELD
    return in_field & (np.hypot(*(positions - STAR).T) > BLIND)


footprint = hs.RowTruncation(in_footprint, width=2)
# sphinx_gallery_start_ignore
truth = hs.Gaussian([1.5, -0.5], [[16.0, 4.5], [4.5, 9.0]])
sky = hs.simulate(truth, footprint, 4000, random_state=3)
stars = sky[~np.isnan(sky).any(axis=1)]

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
# stars: simulated as told above (the code is in the download)
print(len(stars), "stars are in the list")

# %%
# The analysis
# ------------
# A footprint is a function that says, for each row, whether it would be in the list;
# any shape will do. :class:`halfseen.RowTruncation` needs nothing else, and the method
# ``truncated_sgd`` asks it about positions that it draws itself. ``alpha`` is the least
# share of the cluster that one is prepared to believe lies inside: it bounds the search.

fit = hs.fit(stars, footprint, alpha=0.1, random_state=0)
inside = in_footprint(fit.gaussian.sample(400_000, np.random.default_rng(0))).mean()
total = len(stars) / inside

print(fit.method, fit.status.name, "-", fit.status.value)
print(f"inside the footprint: {inside:.0%}, so about {total:.0f} stars")

# %%
# This method has no standard errors in closed form. A parametric bootstrap takes a few
# lines: draw lists from what was learned, and learn from each.


def learn(rows, seed):
    found = hs.fit(rows, footprint, alpha=0.1, repeats=1, random_state=seed).gaussian
    share = in_footprint(found.sample(50_000, np.random.default_rng(seed))).mean()
    return [*found.mean, *found.standard_deviations, len(rows) / share]


replicates = []
for seed in range(1, 41):
    again = hs.simulate(fit.gaussian, footprint, round(total), seed)
    replicates.append(learn(again[~np.isnan(again).any(axis=1)], seed))
errors = np.std(replicates, axis=0, ddof=1)

# %%
# What it says
# ------------
# The list as it is has its centre beside the blinded disc, is too narrow, and has fewer than
# half of the stars. With the footprint all five numbers come out right.

naive = [*stars.mean(axis=0), *stars.std(axis=0), len(stars)]
ours = [*fit.mean, *fit.gaussian.standard_deviations, total]
true = [*truth.mean, *truth.standard_deviations, 4000]
labels = ["centre, x (')", "centre, y (')", "width, x (')", "width, y (')", "stars"]
print("                naive     halfseen       truth")
for label, a, b, e, t in zip(labels, naive, ours, errors, true, strict=True):
    digits = 0 if label == "stars" else 1
    both = f"{b:.{digits}f} ± {1.96 * e:.{digits}f}"
    print(f"{label:<13} {a:7.{digits}f} {both:>14} {t:10.{digits}f}")


# sphinx_gallery_start_ignore
def two_sigma(ax, mean, covariance, **look):
    values, axes = np.linalg.eigh(covariance)
    width, height = 4 * np.sqrt(values)
    angle = np.degrees(np.arctan2(axes[1, 0], axes[0, 0]))
    ax.add_patch(Ellipse(mean, width, height, angle=angle, fill=False, lw=2, **look))


figure, ax = plt.subplots(figsize=(5.8, 3.1))
hidden = {"hatch": "///", "edgecolor": "0.8", "lw": 0.5}
ax.add_patch(plt.Rectangle((-19, -8), 33, 16, facecolor="0.95", **hidden))
ax.add_patch(Circle((0, 0), FIELD, facecolor="white", edgecolor="0.6"))
ax.add_patch(Circle(STAR, BLIND, facecolor="0.95", **hidden))
ax.plot(*stars.T, ".", color="0.35", ms=2)
two_sigma(ax, naive[:2], np.cov(stars.T), edgecolor=NAIVE)
two_sigma(ax, fit.mean, fit.covariance, edgecolor=HALFSEEN)
two_sigma(ax, truth.mean, truth.covariance, edgecolor=TRUTH, ls="--")
ax.plot(*naive[:2], "s", color=NAIVE)
ax.plot(*ours[:2], "o", color=HALFSEEN)
ax.plot(*truth.mean, "+", color=TRUTH, ms=12, mew=2)
box = {"facecolor": "0.95", "edgecolor": "none", "pad": 1.5}
spread = 1.96 * errors[4]
for y, colour, text in [
    (6.6, "0.35", "outside the field"),
    (-1.2, NAIVE, f"the list:\n{len(stars)} stars"),
    (-4.2, HALFSEEN, f"halfseen:\n{total:.0f} ± {spread:.0f} stars"),
    (-7.2, TRUTH, "truth (dashed):\n4000 stars"),
]:
    ax.text(-18.6, y, text, color=colour, bbox=box, va="bottom" if y < 6 else "center")
ax.text(-0.7, 1.5, "blinded", color="0.35", bbox=box)
ax.text(13.6, -7.4, "ellipses:\n2 sd", color="0.35", bbox=box, ha="right")
ax.plot([8.4, 13.4], [7, 7], color="0.3", lw=2)
ax.text(10.9, 6.5, "5 arcminutes", color="0.3", bbox=box, ha="center", va="top")
ax.set(xlim=(-19, 14), ylim=(-8, 8), aspect="equal")
ax.set_axis_off()
ax.set_title("The centre that nobody saw is found from around it")
plt.show()
# sphinx_gallery_end_ignore

# %%
# What to be careful about
# ------------------------
# The stars that were not seen are inferred from the shape of a normal distribution and
# nothing else. A cluster with a denser core than that has more of them, and no list of
# this kind can tell: check the profile where it is seen. Here, rings around the centre
# that was found, against what the fit expects in them:

drawn = fit.gaussian.sample(400_000, np.random.default_rng(1))
drawn = drawn[in_footprint(drawn)]
edges = np.array([0.0, 1.0, 1.5, 2.0, 4.0])


def in_rings(positions):
    away = np.linalg.solve(fit.gaussian.cholesky, (positions - fit.mean).T)
    return np.histogram(np.hypot(*away), edges)[0]


expected = in_rings(drawn) * len(stars) / len(drawn)
print("ring (standard deviations)  seen  expected")
for k, (count, mean) in enumerate(zip(in_rings(stars), expected, strict=True)):
    print(f"{edges[k]:>14} to {edges[k + 1]:<9} {count:6d} {mean:9.0f}")

# %%
# A footprint can also say too little. A peephole at the rim of the cluster shows a
# slope and no shape: the answer then lies on the edge of what ``alpha`` allows, and
# ``fit.status`` is ``ON_DOMAIN_EDGE``, with a warning. Only more sky helps.
#
# Where rows are there but single cells are hidden, state the rule by column
# (:class:`halfseen.SelfCensoring`): a hidden cell that is known of says far more than a
# row that is not.
