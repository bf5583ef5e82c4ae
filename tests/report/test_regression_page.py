"""The page of a regression: its numbers are those of the fit, and a browser shows them quietly."""

import dataclasses
import json
import re
import shutil
import warnings

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from scipy.stats import norm

import halfseen as hs
from halfseen.report import regression_content
from halfseen.report.regression_page import regression_page_of
from halfseen.report.regression_residuals import (
    hidden_alike,
    normal_scores,
    order_statistics,
    with_half_the_limit,
)
from halfseen.report.shown_table import Kind, Ranges, ShownColumn
from tests.regression.tables import FORMULAS, SELECTION, heckman, residuals
from tests.report.conftest import HOSTILE, MadeOnce
from tests.report.test_browser import COVERED, CUT
from tests.report.test_page import Reader

mpl.use("Agg")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
PAGES = ("heckman", "tobit", "ordered", "no errors", "arrays", "hostile", "no table", "truncated")


def three_metals():
    """Three outcomes with limits, on a number, a skewed number and a category."""
    rng = np.random.default_rng(0)
    n = 300
    data = {"age": rng.uniform(20, 70, n), "dose": rng.lognormal(size=n)}
    data["site"] = rng.choice(["north", "south", "west"], n)
    e = residuals(rng, n, 3, 0.5)
    slopes = {"lead": 0.02, "zinc": 0.01, "copper": 0.03}
    for k, (name, slope) in enumerate(slopes.items()):
        y = slope * data["age"] + 0.5 * (data["site"] == "south") + e[:, k]
        data[name] = np.where(y >= 0.6, y, np.nan)
    return data, dict.fromkeys(slopes, ">=0.6")


def tobit(**options):
    data, rules = three_metals()
    formula = "lead + zinc + copper ~ age + dose + C(site)"
    return hs.regress(formula, data, rules, random_state=0, **options)


def ordered():
    rng = np.random.default_rng(1)
    x, group = rng.normal(size=300), rng.choice(["a", "b"], 300)
    z = 0.8 * x + 0.4 * (group == "b") + rng.normal(size=300)
    grade = np.array(["low", "middle", "high"])[np.digitize(z, [-0.3, 0.9])]
    data = {"grade": grade, "x": x, "group": group}
    kinds = {"grade": ["low", "middle", "high"]}
    return hs.regress("grade ~ x + group", data, kinds=kinds, random_state=0)


def arrays():
    """Limits that differ by row, and regressors without names."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2))
    Y = X @ [[1.0, 0.5], [0.0, 1.0]] + rng.normal(size=(200, 2))
    limits = rng.choice([-0.5, 0.0, 0.3], size=Y.shape)
    return hs.regress(
        np.where(limits <= Y, Y, np.nan), X, hs.DetectionLimits(lower=limits), random_state=0
    )


def hostile():
    """Names that mean something to a browser: outcomes, regressors and categories."""
    rng = np.random.default_rng(3)
    names = [*HOSTILE[:4], HOSTILE[7]]
    X = {name: rng.normal(size=120) for name in names}
    y = {"<i>y</i>": sum(X.values()) + rng.normal(size=120), HOSTILE[8]: rng.normal(size=120)}
    return hs.regress(y, X, random_state=0)


def truncated():
    rng = np.random.default_rng(4)
    x = rng.normal(size=600)
    y = 1.0 + x + rng.normal(size=600)
    kept = y >= 0.5
    return hs.regress("y ~ x", {"x": x[kept], "y": y[kept]}, truncated={"y": ">=0.5"})


@pytest.fixture(scope="module")
def fits():
    data, _ = heckman(300)
    found = MadeOnce(
        {
            "heckman": lambda: hs.regress(FORMULAS, data, SELECTION, random_state=0),
            "tobit": tobit,
            "ordered": ordered,
            "no errors": lambda: tobit(standard_errors=False),
            "arrays": arrays,
            "hostile": hostile,
            "no table": lambda: dataclasses.replace(tobit(), source=None, data=None),
            "truncated": truncated,
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        for name in PAGES:
            assert found[name]
    return found


@pytest.fixture(scope="module")
def contents(fits):
    return MadeOnce({name: lambda name=name: regression_content(fits[name]) for name in PAGES})


def read(content):
    return Reader(regression_page_of(content))


@pytest.mark.parametrize("name", PAGES)
def test_coefficients_are_those_of_the_fit(fits, contents, name):
    fit, content = fits[name], contents[name]
    assert (content["aic"], content["bic"]) == pytest.approx((fit.aic, fit.bic), rel=1e-12)
    assert content["log_likelihood"] == pytest.approx(fit.log_likelihood, rel=1e-12)
    for j, equation in enumerate(content["equations"]):
        own = np.flatnonzero(fit.mask[j])
        assert [one["name"] for one in equation["terms"]] == [fit.terms[t] for t in own]
        assert [t["estimate"] for t in equation["terms"]] == pytest.approx(
            fit.weights[j, own], rel=1e-12
        )
        if fit.covariance is None:
            assert all(term["lower"] is None for term in equation["terms"])
            continue
        ends = fit.standard_errors.coefficient_limits(0.95)
        for key, values in (("lower", ends.lower), ("upper", ends.upper)):
            assert [t[key] for t in equation["terms"]] == pytest.approx(values[j, own], rel=1e-12)
    found = content["residuals"]
    assert [d["estimate"] for d in found["deviations"]] == pytest.approx(
        np.sqrt(np.diag(fit.residual)), rel=1e-12
    )
    json.dumps(content, allow_nan=False)


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_whole_and_says_what_it_has(fits, contents, name):
    found = read(contents[name])
    text = " ".join(found.texts)
    for word in ("nan", "None", "undefined"):
        assert not re.search(rf"\b{word}\b", text), word
    assert fits[name].status.value in text
    assert len(found.all("script")) == 2
    names = [a["id"] for _, a in found.elements if "id" in a]
    assert len(names) == len(set(names))
    for attributes in (a for _, a in found.elements):
        for key in ("aria-labelledby", "for"):
            assert attributes.get(key, names[0]) in names
        target = attributes.get("href", "#main")
        assert target.startswith(("#", "data:"))
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert max(np.diff(levels)) <= 1


def test_tables_have_the_numbers_of_the_fit(fits, contents):
    fit, text = fits["heckman"], " ".join(read(contents["heckman"]).texts)
    assert f"{fit.log_likelihood:.3f}".replace("-", "−") in text
    assert f"{fit.weights[0, 1]:.3f}" in text
    ends = fit.confidence_interval().residual_correlation
    assert f"{ends.lower[0, 1]:+.2f} to {ends.upper[0, 1]:+.2f}".replace("-", "−") in text
    assert 'hs.Selection("wage", by="works")' in text
    grade, text = fits["ordered"], " ".join(read(contents["ordered"]).texts)
    assert f"{grade.cut_points['grade'][1]:.3f}" in text


def test_long_names_that_begin_alike_are_told_apart(browser, tmp_path):
    rng = np.random.default_rng(8)
    names = [f"state of the economy in the {one}" for one in ("country", "household")]
    data = {"x": rng.normal(size=200), **{name: rng.normal(size=200) for name in names}}
    fit = hs.regress(dict.fromkeys(names, "x"), data, random_state=0)
    assert f"correlation {names[0]} ~ {names[1]}" in " ".join(fit.summary().split())
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(fit.report(tmp_path / "page.html").as_uri())
    assert page.evaluate(CUT) == {"said": [], "silent": [], "wrong": []}
    title = page.locator("#forest-plot .xtitle").text_content()
    assert title == "coefficient, in units of state of the economy…e country"
    page.close()


def test_residuals_that_the_model_does_not_simulate_are_named_at_the_top(contents):
    rng = np.random.default_rng(7)
    x = rng.normal(size=300)
    data = {"x": x, "skewed": x + rng.exponential(size=300), "right": x + rng.normal(size=300)}
    content = regression_content(hs.regress("skewed + right ~ x", data, random_state=0))
    assert [one["odd"] for one in content["quantiles"]] == [True, False]
    assert "The residuals of skewed are not those of the model" in content["learned"][-1]
    told = [text for name in PAGES for text in contents[name]["learned"]]
    assert not any("residuals" in text for text in told)


def test_naive_is_least_squares_where_the_outcome_is_seen(fits, contents):
    data, _ = three_metals()
    W = fits["tobit"].design.matrix
    for equation, name in zip(
        contents["tobit"]["equations"], ("lead", "zinc", "copper"), strict=True
    ):
        seen = ~np.isnan(data[name])
        own = np.linalg.lstsq(W[seen], data[name][seen], rcond=None)[0]
        assert [t["naive"] for t in equation["terms"]] == pytest.approx(own, rel=1e-9)
        half = np.linalg.lstsq(W, np.where(seen, data[name], 0.3), rcond=None)[0]
        assert [t["half"] for t in equation["terms"]] == pytest.approx(half, rel=1e-9)
        assert equation["hidden"] == {"below a limit": int((~seen).sum())}


def test_half_the_limit_is_for_positive_limits_alone():
    def cells(kind, lower, upper):
        empty = np.empty(0)
        ranges = Ranges(empty, empty, empty.astype(int), empty.astype(int))
        return ShownColumn(np.array(kind, dtype=np.int8), np.array(lower), np.array(upper), ranges)

    below = cells([Kind.SEEN, Kind.BELOW, Kind.ABOVE], [2.0, -np.inf, 9.0], [2.0, 1.0, np.inf])
    assert with_half_the_limit(below).tolist() == [2.0, 0.5, 9.0]
    assert with_half_the_limit(cells([Kind.SEEN, Kind.BELOW], [2.0, -np.inf], [2.0, -1.0])) is None
    assert with_half_the_limit(cells([Kind.SEEN], [2.0], [2.0])) is None


def test_effects_are_predictions(fits, contents):
    fit, content = fits["heckman"], contents["heckman"]
    data, _ = heckman(300)
    along = content["variables"][0]
    grid = np.array(along["grid"])
    new = {"educ": grid, "kids": np.full(grid.size, data["kids"].mean())}
    assert along["name"] == "educ"
    for j in range(2):
        curves = content["effects"][j][0]
        for kind in ("latent", "seen"):
            value, error = fit.predict(new, kind, standard_error=True)
            # Five digits are kept, and steps of the differences are not the same.
            tolerance = {"rel": 2e-4, "abs": 2e-4}
            assert curves[kind] == pytest.approx(value[:, j], **tolerance)
            if kind == "latent" or j == 0:
                upper = value[:, j] + 1.959964 * error[:, j]
                assert curves[f"{kind}_upper"] == pytest.approx(upper, **tolerance)


@pytest.mark.parametrize("kind", [int, float, str])
def test_categories_of_any_kind_have_effects(kind):
    rng = np.random.default_rng(0)
    codes = rng.integers(1, 4, 200)
    data = {"group": codes.astype(kind), "y": codes + rng.normal(size=200)}
    fit = hs.regress("y ~ C(group)", data)
    (along,), ((curves,),) = (regression_content(fit)[key] for key in ("variables", "effects"))
    assert along["values"] == (codes - 1).tolist()
    means = [data["y"][codes == code].mean() for code in (1, 2, 3)]
    assert curves["latent"] == pytest.approx(means, rel=1e-4)


def test_what_cannot_be_predicted_is_said(fits, contents):
    curves = contents["arrays"]["effects"][0][0]
    assert "limits differ by row" in curves["why"]
    assert "seen" not in curves


def test_selection_adds_the_mills_ratio(fits, contents):
    fit, (one,) = fits["heckman"], contents["heckman"]["mills"]
    index = fit.predict()[:, 1]
    data, _ = heckman(300)
    ratio = norm.pdf(index) / norm.cdf(index)
    added = fit.residual[0, 1] * ratio[data["works"]]
    assert one["added"] == pytest.approx(added, rel=1e-4)
    assert one["average"] == pytest.approx(added.mean(), rel=1e-9)
    W = np.column_stack([np.ones(300), data["educ"]])[data["works"]]
    left = ratio[data["works"]] - W @ np.linalg.lstsq(W, ratio[data["works"]], rcond=None)[0]
    assert one["share"] == pytest.approx(1.0 - left.var() / ratio[data["works"]].var(), rel=1e-9)


def test_residuals_are_drawn_in_order_with_an_envelope(fits, contents):
    values = np.asarray(fits["tobit"].residuals())
    for j, found in enumerate(contents["tobit"]["quantiles"]):
        assert found["residual"] == pytest.approx(np.sort(values[:, j]), rel=1e-3, abs=1e-3)
        assert found["normal"] == pytest.approx(normal_scores(300), rel=1e-3, abs=1e-3)
        inside = np.array(found["lower"]) <= np.array(found["upper"])
        assert inside.all()
    assert contents["tobit"]["envelope"] == {"refitted": 39, "why": None}
    assert "nobody knows" in contents["truncated"]["envelope"]["why"]


def test_the_envelope_is_narrower_than_that_of_known_parameters(contents):
    """Parameters that are fitted follow the sample: about halfway, at a quartile (Lilliefors)."""
    low, high = order_statistics(300, np.arange(300))
    middle = slice(60, 240)
    for found in contents["tobit"]["quantiles"]:
        width = (np.array(found["upper"]) - np.array(found["lower"]))[middle].mean()
        assert 0.4 < width / (high - low)[middle].mean() < 1.0


def test_simulated_tables_hide_as_the_fitted_one_does(fits):
    fit = fits["heckman"]
    rng = np.random.default_rng(0)
    values = np.asarray(fit.simulate(random_state=1))
    made = hidden_alike(fit, values, rng)
    works = values[:, 1] > 0.0
    assert (made.data.seen[:, 0] == works).all()
    assert (made.codes[:, 1] == works).all()
    assert (made.unselected()[:, 0] == ~works).all()
    metals = fits["tobit"]
    values = np.asarray(metals.simulate(random_state=1))
    assert (hidden_alike(metals, values, rng).data.seen == (values >= 0.6)).all()


def test_names_stay_text(contents):
    text = regression_page_of(contents["hostile"])
    found = Reader(text)
    assert len(found.all("script")) == 2
    assert found.all("img", "b", "i") == []
    assert not any(key.startswith("on") for _, a in found.elements for key in a)
    words = "".join(found.texts)
    for name in ("<i>y</i>", *HOSTILE[:3]):
        assert name in words
    block = re.search(r'id="content">(.*?)</script>', text, re.DOTALL)[1]
    assert not re.search(r"[<>&\u2028\u2029]", block)


def test_titles_and_calls_stay_text_and_are_shown(fits):
    content = regression_content(fits["truncated"], title="</title><b>", call="</pre><i>")
    found = read(content)
    assert found.all("b", "i") == []
    assert content["title"] in "".join(found.texts)
    assert content["call"] in "".join(found.texts)


def test_the_same_fit_gives_the_same_bytes(fits, tmp_path):
    first = fits["truncated"].report(tmp_path / "a.html").read_bytes()
    assert fits["truncated"].report(tmp_path / "b.html").read_bytes() == first
    assert len(first) < 6_000_000
    with pytest.raises(hs.InputError, match="is a folder; the report needs a file name"):
        fits["truncated"].report(tmp_path)


@pytest.mark.parametrize("name", ["heckman", "tobit", "ordered", "truncated"])
def test_the_call_repeats_the_fit(fits, contents, name):
    data = {
        "heckman": lambda: heckman(300)[0],
        "tobit": lambda: three_metals()[0],
        "ordered": lambda: fits["ordered"].data,
        "truncated": lambda: fits["truncated"].data,
    }[name]()
    call = contents[name]["call"]
    known = {"hs": hs, "data": data}
    exec(call, known)
    assert known["fit"].log_likelihood == pytest.approx(fits[name].log_likelihood, abs=1e-6)


def test_many_rows_are_thinned_and_this_is_said():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 2))
    fit = hs.regress(x @ [[1.0], [2.0]] + rng.normal(size=(5000, 1)), x)
    content = regression_content(fit)
    assert len(content["drawn_rows"]) == 2000
    assert len(content["points"][0]["residual"]) == 2000
    assert len(content["quantiles"][0]["normal"]) <= 600
    text = " ".join(read(content).texts)
    assert "Drawn are 2,000 of 5,000 rows" in text
    assert re.search(r"Drawn are \d+ of 5,000 residuals", text)


def test_many_equations_are_closed(contents):
    found = read(contents["tobit"])
    assert [("open" in a) for a in found.all("details")] == [True] * 3
    content = {**contents["tobit"], "equations": contents["tobit"]["equations"] * 2}
    doubled = {"deviations": content["residuals"]["deviations"] * 2, "pairs": [], "all_pairs": 0}
    found = read({**content, "residuals": doubled})
    assert [("open" in a) for a in found.all("details")] == [False] * 6


def test_figures_draw_what_the_page_has(fits):
    plt.close("all")
    fit = fits["heckman"]
    _, ax = plt.subplots()
    assert fit.plot.coefficients("works", ax) is ax
    assert [t.get_text() for t in ax.get_yticklabels()] == ["educ", "kids"]
    own = fit.plot.effect()
    assert (own.get_xlabel(), own.get_ylabel()) == ("educ", "wage")
    for name in ("tobit", "ordered", "no errors", "arrays", "truncated"):
        plots = fits[name].plot
        for axes in (plots.coefficients(), plots.residuals(), plots.effect()):
            axes.figure.canvas.draw()
    fits["tobit"].plot.effect("site", "zinc").figure.canvas.draw()
    plt.close("all")


def test_figures_say_what_there_is(fits):
    with pytest.raises(hs.InputError, match="no outcome 'tin'; the outcomes are wage, works"):
        fits["heckman"].plot.residuals("tin")
    with pytest.raises(hs.InputError, match="no variable 'age'; there are educ, kids"):
        fits["heckman"].plot.effect("age")
    with pytest.raises(hs.InputError, match="which this fit does not hold"):
        fits["no table"].plot.residuals()
    plt.close("all")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the browser tests need Playwright: pip install playwright"
    )
    if CHROMIUM is None:
        pytest.skip("the browser tests need Chromium: apt install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield browser
        browser.close()


# Chooses every option of every list, one after the other.
CHOOSE_ALL = """() => document.querySelectorAll("select").forEach(select => {
  for (const option of [...select.options].reverse()) {
    select.value = option.value;
    select.dispatchEvent(new Event("change"));
  }
})"""


def test_rules_are_told_in_words(fits, contents):
    line = "lead, zinc, copper: shown at 0.6 and above."
    assert contents["tobit"]["rule"]["lines"] == [line]
    text = " ".join(read(contents["tobit"]).texts)
    assert line in text
    for name in PAGES:
        lines, code = (contents[name]["rule"][key] for key in ("lines", "code"))
        assert lines is None or code is None


@pytest.mark.parametrize("name", PAGES)
def test_a_browser_shows_it_and_asks_for_nothing(browser, fits, tmp_path, name):
    address = fits[name].report(tmp_path / "page.html").as_uri()
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.evaluate(CHOOSE_ALL)
    drawn = page.locator(".plot > svg").count()
    assert drawn >= (1 if name == "no table" else 4)
    page.set_viewport_size({"width": 400, "height": 900})
    page.wait_for_function(
        "() => [...document.querySelectorAll('.plot')].every("
        "plot => Math.abs(plot.querySelector('svg').clientWidth - plot.clientWidth) <= 1)"
    )
    assert page.evaluate(COVERED) == []
    page.evaluate(CHOOSE_ALL)
    assert page.evaluate(COVERED) == []
    wide, room = page.evaluate("[document.body.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= room
    page.emulate_media(media="screen", color_scheme="dark")
    assert page.locator("svg a, svg img, svg b, a[href^='javascript']").count() == 0
    context.close()
    assert said == []
    assert asked == [address]
