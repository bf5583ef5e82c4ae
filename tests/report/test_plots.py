"""Figures with Matplotlib."""

import dataclasses
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from scipy.stats import chi2

import halfseen as hs
from halfseen.report import Plots, plots
from tests.report.test_content import ODD

mpl.use("Agg")


@pytest.fixture(autouse=True)
def no_figures():
    plt.close("all")
    yield
    plt.close("all")


def test_each_figure_draws_and_returns_its_axes(plain):
    figures = Plots(plain)

    def pair(ax):
        return figures.pair(0, 1, ax)

    def marginal(ax):
        return figures.marginal(0, ax)

    for make in (pair, marginal, figures.correlation, figures.trace):
        _, ax = plt.subplots()
        assert make(ax) is ax
        ax.figure.canvas.draw()
        assert len(plt.get_fignums()) == 1, "a figure of its own was made"
        plt.close(ax.figure)
        own = make(None)
        assert plt.get_fignums() == [own.figure.number]
        plt.close(own.figure)


@pytest.mark.parametrize("name", ODD)
def test_whatever_is_lacking_there_are_figures(odd, name):
    figures = Plots(odd[name])
    for make in (figures.marginal, figures.correlation):
        make().figure.canvas.draw()
    if len(odd[name].names) > 1:
        figures.pair(0, -1).figure.canvas.draw()


def test_columns_are_told_by_name_or_position(plain):
    figures = Plots(plain)
    assert figures.pair("zinc", 2).get_xlabel() == "zinc"
    assert figures.pair(np.int64(0), -1).get_ylabel() == "copper"
    with pytest.raises(hs.InputError, match="no column 'tin'; the columns are lead, zinc, copper"):
        figures.marginal("tin")
    for wrong in (3, -4, 1.0, True, None):
        with pytest.raises(hs.InputError, match="by a position below 3"):
            figures.marginal(wrong)
    with pytest.raises(hs.InputError, match="two different columns"):
        figures.pair("lead", 0)


def test_one_column_has_no_pair(odd):
    with pytest.raises(hs.InputError, match="this fit has one"):
        Plots(odd["one column"]).pair()


def test_no_trace_is_a_sentence(odd):
    with pytest.raises(hs.InputError, match=r"method 'pairwise'\) kept no trace"):
        Plots(odd["no errors"]).trace()


def test_the_ellipse_holds_ninety_five_percent(plain):
    ax = Plots(plain).pair(0, 1)
    (line,) = [x for x in ax.lines if x.get_label().startswith("recovered")]
    points = np.stack(line.get_data(), axis=1) - plain.gaussian.mean[:2]
    distance = np.einsum(
        "ni,ij,nj->n", points, np.linalg.inv(plain.gaussian.covariance[:2, :2]), points
    )
    # The correlation is kept to five digits.
    assert distance == pytest.approx(chi2.ppf(0.95, 2), rel=1e-3)


@pytest.mark.parametrize(("i", "j"), [(0, 1), (1, 0), (2, 1)])
def test_the_naive_ellipse_fits_the_dots(odd, i, j):
    fit = odd["thresholds"]
    ax = Plots(fit).pair(i, j)
    (line,) = [x for x in ax.lines if x.get_label().startswith("seen only")]
    X = fit.source.X.values[:, [i, j]]
    both = X[~np.isnan(X).any(axis=1)]
    points = np.stack(line.get_data(), axis=1) - both.mean(axis=0)
    inverse = np.linalg.inv(np.cov(both.T, ddof=0))
    distance = np.einsum("ni,ij,nj->n", points, inverse, points)
    # Means are kept to a hundredth of a deviation, of 2.4 from the middle; the rest to three digits.
    assert distance == pytest.approx(chi2.ppf(0.95, 2), rel=0.03)


def test_lines_of_the_trace_are_told_apart(plain, hostile):
    ax = Plots(plain).trace()
    names = [text.get_text().strip("\u200b") for text in ax.get_legend().get_texts()]
    assert names == ["lead", "zinc", "copper"]
    looks = {(line.get_color(), line.get_linestyle()) for line in ax.lines}
    assert len(looks) == 3
    odd_names = dataclasses.replace(plain, names=("_a", "$b$", "c"))
    assert len(Plots(odd_names).trace().get_legend().get_texts()) == 3
    ax = Plots(hostile).trace()
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.lines}) == 9
    many = Plots(plain)
    for found in (many._content, many._content["trace"]):
        found["columns"] *= 5
    # Fifteen are too many for a legend.
    assert many.trace().get_legend() is None


def test_the_trace_counts_steps(plain):
    ax = Plots(plain).trace()
    assert ax.get_xlabel() == "step"
    assert ax.get_ylabel().endswith("from the estimate")
    ax.figure.canvas.draw()
    assert all(tick == round(tick) for tick in ax.get_xticks())


@pytest.mark.parametrize("name", ["both sides", "probability", "one column", "plain", "lab"])
def test_the_hidden_share_is_not_on_the_curve(odd, plain, lab, name):
    figures = Plots({"plain": plain, "lab": lab}.get(name) or odd[name])
    for k in range(len(figures.fit.names)):
        ax = figures.marginal(k)
        ax.figure.canvas.draw()
        (curve,) = [x for x in ax.lines if x.get_label() == "recovered density"]
        x, y = ax.transData.transform(np.stack(curve.get_data(), axis=1)).T
        for text in ax.texts:
            box = text.get_window_extent()
            inside = (x > box.x0) & (x < box.x1) & (y > box.y0) & (y < box.y1)
            assert not inside.any()
            assert box.y1 <= ax.get_window_extent().y1
        plt.close(ax.figure)


def test_a_common_scale_stands_beside_the_colours_alone(same_scale):
    ax = Plots(same_scale).correlation()
    assert [t.get_text() for t in ax.get_xticklabels()] == ["lead", "zinc", "copper"]
    assert ax.images[0].colorbar.ax.get_ylabel().endswith("on the log scale")


def test_hidden_cells_stand_at_their_limits(plain):
    ax = Plots(plain).pair(0, 1)
    X = plain.source.X.values
    at = {c.get_label(): c.get_offsets() for c in ax.collections}
    assert len(at["both seen"]) == (~np.isnan(X[:, :2])).all(axis=1).sum()
    # Four digits of the spread are kept.
    assert np.asarray(at["one or both hidden"])[:, 0] == pytest.approx(1.5, abs=1e-4)
    assert len(at["one or both hidden"]) == np.isnan(X[:, 0]).sum()


def test_bars_and_density_have_the_same_scale(plain):
    ax = Plots(plain).marginal(0)
    total = sum(bar.get_width() * bar.get_height() for c in ax.containers for bar in c)
    # Heights are rounded to four digits.
    assert total == pytest.approx(1.0, rel=1e-3)
    x, y = next(x for x in ax.lines if x.get_label() == "recovered density").get_data()
    # The axis holds all but a two-thousandth of the recovered mass.
    assert np.trapezoid(y, x) == pytest.approx(1.0, abs=2e-3)


def test_transformed_axes_show_original_units(logs):
    ax = Plots(logs).marginal("lead")
    at, texts = ax.get_xticks(), [t.get_text() for t in ax.get_xticklabels()]
    assert np.exp(at) == pytest.approx([float(t) for t in texts], rel=1e-9)
    assert ax.get_xlabel() == "lead (axis on the scale of log(lead))"


def test_names_are_not_mathematics(plain):
    names = ("$x^2$", "a\\b\nc", r"\$ $\frac{1}{0}$ $")
    figures = Plots(dataclasses.replace(plain, names=names))
    ax = figures.pair(0, 2)
    ax.figure.canvas.draw()
    assert ax.get_xlabel() == r"\$x^2\$"
    figures.correlation().figure.canvas.draw()


def test_correlations_are_drawn_once_and_readable(plain):
    ax = Plots(plain).correlation()
    assert len(ax.texts) == 6
    assert ax.texts[0].get_text() == f"{plain.gaussian.correlation[0, 1]:+.2f}"
    shown = ax.images[0].get_array()
    assert np.ma.getmaskarray(shown).diagonal().all()


def test_without_matplotlib_there_is_an_install_line(plain, monkeypatch):
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "matplotlib", None)
        for make in (Plots(plain).marginal, Plots(plain).correlation):
            with pytest.raises(hs.InputError, match=r'pip install "halfseen\[report\]"'):
                make()


def test_colours_are_those_of_the_page():
    from importlib import resources

    style = resources.files("halfseen.report").joinpath("page.css").read_text(encoding="utf-8")
    light = style[: style.index("@media")]
    names = ("ink", "quiet", "recovered", "naive", "seen", "point", "hidden")
    for name in (*names, "low", "middle", "high"):
        assert f"--{name}: {getattr(plots, name.upper())};" in light


def test_a_profile_is_drawn_with_its_interval():
    rule = hs.DetectionLimits(lower=0.8)
    X = hs.simulate(hs.Gaussian([0.0], [[1.0]]), rule, 30, 3)
    fit = hs.fit(X, rule, names=["lead $"], random_state=0)
    ax = fit.plot.profile("mean", 0, level=0.9)
    found = fit.profile("mean", 0, level=0.9)
    curve, by_error = ax.get_lines()[:2]
    np.testing.assert_array_equal(curve.get_xdata(), found.at)
    np.testing.assert_array_equal(by_error.get_ydata(), found.by_error)
    assert ax.get_xlabel() == r"mean of lead \$"
    low, high = (f"{float(end):.3g}" for end in found.interval)
    assert ax.get_title() == f"90 % interval: {low} to {high}"
