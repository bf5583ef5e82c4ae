"""Saved fits come back to the last bit, and a loaded fit says what it does not hold."""

import dataclasses
import warnings

import numpy as np
import pytest

import halfseen as hs
from halfseen.archive import ArchiveError, read_archive, write_archive
from halfseen.data.transforms import BoxCox, Log, YeoJohnson
from halfseen.missingness.written import NotSaved
from halfseen.solvers import saved_values, saving

TRUTH = hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]])
LIMITS = hs.DetectionLimits(lower=0.0)


def again(fit, path):
    fit.save(path / "fit.hsfit")
    return hs.load(path / "fit.hsfit")


def same(a, b):
    """Whether two values are the same to the last bit, whatever they are."""
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and (a.dtype, a.shape) == (b.dtype, b.shape) and (
            a.tobytes() == b.tobytes()
        )  # fmt: skip
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if dataclasses.is_dataclass(a) and not isinstance(a, type):
        names = [field.name for field in dataclasses.fields(a)]
        return type(a) is type(b) and all(same(getattr(a, n), getattr(b, n)) for n in names)
    if isinstance(a, float):
        return isinstance(b, float) and (a == b or (a != a and b != b))
    return a == b


def check_same(fit, back):
    for field in dataclasses.fields(hs.Fit):
        if field.name != "source":
            assert same(getattr(fit, field.name), getattr(back, field.name)), field.name
    assert back.gaussian.cholesky.tobytes() == fit.gaussian.cholesky.tobytes()
    assert back.status is fit.status
    # Profiles of the likelihood need the table: without it, intervals are from standard errors.
    said, before = back.to_dict(), fit.to_dict()
    for intervals in ("intervals", "original_scale"):
        said.pop(intervals), before.pop(intervals)
    assert same(said, before)
    assert same(
        back.original_scale(labels=False, kind="wald"),
        fit.original_scale(labels=False, kind="wald"),
    )
    if fit.uncertainty is not None:
        ends = [one.confidence_interval(kind="wald").without_labels() for one in (back, fit)]
        for name in ("mean", "standard_deviation", "covariance", "correlation"):
            assert same(*(getattr(one, name) for one in ends)), name


@pytest.fixture(scope="module")
def table():
    return hs.simulate(TRUTH, LIMITS, 300)


@pytest.fixture(scope="module")
def plain(table):
    return hs.fit(table, LIMITS, names=["lead", "zinc"], random_state=0)


def test_everything_that_needs_no_table_is_the_same(plain, tmp_path):
    back = again(plain, tmp_path)
    check_same(plain, back)
    assert same(back.simulate(50, random_state=3), plain.simulate(50, random_state=3))
    ratio = [f.standard_errors.of(lambda mean, cov: mean / cov[0, 0]) for f in (plain, back)]
    assert same(*ratio)


def test_a_table_that_is_passed_is_read_alike(plain, table, tmp_path):
    back = again(plain, tmp_path)
    assert same(back.impute(table), plain.impute(table))
    assert same(back.score_rows(table), plain.score_rows(table))
    drawn = [f.draw_imputations(table, m=2, random_state=5) for f in (plain, back)]
    assert same(*drawn)


@pytest.mark.parametrize(
    "ask",
    [
        lambda fit: fit.impute(),
        lambda fit: fit.score_rows(),
        lambda fit: fit.draw_imputations(m=2),
        lambda fit: fit.log_likelihood,
        lambda fit: fit.aic,
        lambda fit: fit.bic,
        lambda fit: fit.bootstrap(3),
        lambda fit: fit.bootstrap(3, "parametric"),
        lambda fit: hs.likelihood_ratio_test(fit, fit),
    ],
)
def test_what_needs_the_table_says_so(plain, tmp_path, ask):
    with pytest.raises(hs.InputError, match=r"does not hold its table|that holds its table"):
        ask(again(plain, tmp_path))


def test_figures_and_reports_do_without_the_table(plain, tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    back = again(plain, tmp_path)
    page = back.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "DetectionLimits(lower=0.0)" in page
    for draw in (
        lambda plot: plot.pair(0, 1),
        lambda plot: plot.marginal(0),
        lambda plot: plot.correlation(),
        lambda plot: plot.trace(),
    ):
        draw(back.plot)


def test_a_loaded_fit_can_be_saved_again(plain, tmp_path):
    back = again(plain, tmp_path)
    first = (tmp_path / "fit.hsfit").read_bytes()
    again(back, tmp_path)
    assert (tmp_path / "fit.hsfit").read_bytes() == first


METHODS = {
    "full": {},
    "full, sparse": {"method": "full", "covariance": "sparse"},
    "full, shrinkage": {"method": "full", "covariance": "shrinkage"},
    "full, known": {"method": "full", "covariance": TRUTH.covariance, "start": TRUTH},
    "pairwise": {},
    "truncation": {},
    "truncation_psgd": {},
}


@pytest.mark.filterwarnings("ignore::halfseen.HalfseenWarning")
@pytest.mark.parametrize("method", METHODS)
def test_every_method_for_columns(method, table, tmp_path):
    options = {"method": method, "random_state": 1, **METHODS[method]}
    fit = hs.fit(table, LIMITS, **options)
    back = again(fit, tmp_path)
    check_same(fit, back)
    assert same(back.impute(table), fit.impute(table))
    if fit.precision is not None:
        assert same(back.graph(), fit.graph())


def test_missing_descent(tmp_path):
    rule = hs.LinearThreshold.heckman(1, [1.0, 0.0])
    X = hs.simulate(TRUTH, rule, 400)
    fit = hs.fit(X, rule, "missing_descent", covariance=TRUTH.covariance, random_state=0)
    back = again(fit, tmp_path)
    check_same(fit, back)
    assert same(back.source.call["covariance"], TRUTH.covariance)


@pytest.mark.filterwarnings("ignore::halfseen.ConvergenceWarning")
def test_truncated_sgd_is_saved_without_its_function(tmp_path):
    rule = hs.RowTruncation(lambda Y: Y[:, 0] > 0)
    X = hs.simulate(TRUTH, rule, 400)
    fit = hs.fit(X[~np.isnan(X[:, 0])], rule, random_state=0)
    with pytest.warns(hs.AssumptionWarning, match="saved without its rule: RowTruncation is known"):
        fit.save(tmp_path / "a")
    back = hs.load(tmp_path / "a")
    check_same(fit, back)
    with pytest.raises(hs.InputError, match="saved without its rule, RowTruncation"):
        back.simulate(3)


def test_moments_have_no_source(table, tmp_path):
    fit = hs.fit(hs.PairMoments.from_array(table, ("a", "b")), LIMITS)
    back = again(fit, tmp_path)
    assert fit.source is None
    assert back.source is None
    check_same(fit, back)


ROW_LIMITS = np.random.default_rng(0).uniform(-1, 0.5, size=(300, 2))
RULES = {
    "none": None,
    "one limit": hs.DetectionLimits(lower=0.1),
    "by column": hs.DetectionLimits(lower=[0.0, np.nan], upper=[5.0, 4.0]),
    "by name": hs.DetectionLimits(lower={"zinc": 0.1}, upper={"lead": 6.0}),
    "by row": hs.DetectionLimits(lower=ROW_LIMITS),
    "everything": hs.SelfCensoring(hs.everything),
    "shared": hs.SelfCensoring(hs.at_least(1 / 3)),
    "unions": hs.SelfCensoring([~hs.between(0.1, 0.2), hs.Interval(0, 7, False, True)]),
    "union of one": hs.SelfCensoring(hs.Union([hs.at_least(0.0)])),
    "thresholds": hs.LinearThreshold([[0, 0], [0.3, -0.1]], [0, 0.5]),
    "selection": hs.SelfSelection(),
    "selection by name": hs.SelfSelection([["zinc", "lead"]], largest=False),
    "combined": hs.Combined(
        [([1], hs.DetectionLimits(lower=0.0)), ([0], hs.SelfCensoring(hs.at_most(3)))]
    ),
    "combined by name": hs.Combined([(["zinc"], hs.DetectionLimits(lower=0.0))]),
    "words": hs.rules("lead: >= 0.5"),
    "list of words": hs.rules(["lead: 0..5 | 6..7", "zinc: > 0"]),
    "words by name": hs.rules({("lead", "zinc"): ">= 0"}),
    "words, a comparison": hs.rules({"zinc": "lead - 2*zinc >= -3"}),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_every_rule(name, plain, tmp_path):
    rule = RULES[name]
    source = dataclasses.replace(plain.source, original=plain.source.X, original_rule=rule)
    fit = dataclasses.replace(plain, source=source)
    back = again(fit, tmp_path)
    found = back.source.missingness
    assert repr(found) == repr(rule)
    assert type(found) is type(rule)
    # Not on the scale of the table alone: the rule hides the same values, and imputes alike.
    X = fit.simulate(300, random_state=2)
    assert same(back.simulate(300, random_state=2), X)
    assert same(back.impute(X), fit.impute(X))


@pytest.mark.parametrize(
    "rule",
    [
        hs.SelfCensoring(hs.Predicate(lambda x: x > 0)),
        hs.SelfCensoring([hs.everything, hs.Probability(lambda x: 0.5 + 0 * x)]),
        hs.Combined([([0], hs.SelfCensoring(hs.Predicate(lambda x: x > 0, "odd \x1b[31m")))]),
        type("Mine", (hs.DetectionLimits,), {})(lower=0.0),
    ],
)
def test_a_rule_known_as_a_function_is_left_out_and_asked_for(rule, plain, table, tmp_path):
    fit = dataclasses.replace(plain, source=dataclasses.replace(plain.source, original_rule=rule))
    with pytest.warns(hs.AssumptionWarning, match="without its rule") as record:
        fit.save(tmp_path / "a")
    assert record[0].filename == __file__
    back = hs.load(tmp_path / "a")
    assert isinstance(back.source.missingness, NotSaved)
    for ask in (back.impute, back.score_rows):
        with pytest.raises(hs.InputError, match=r"Pass missingness=\.") as found:
            ask(table)
        assert str(found.value).isprintable()
    assert same(back.impute(table, LIMITS), fit.impute(table, LIMITS))
    # It was said once.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again(back, tmp_path)


@pytest.mark.parametrize("given", ["log", "log10", "sqrt", "boxcox", "yeojohnson", "boxcox(0.3)"])
def test_every_transform(given, tmp_path):
    X = np.exp(0.5 * TRUTH.sample(200, 0))
    X[X < 0.8] = np.nan
    rule = hs.DetectionLimits(lower=0.8)
    fit = hs.fit(X, rule, transforms=[given, "none"], random_state=0)
    back = again(fit, tmp_path)
    check_same(fit, back)
    assert back.transforms == fit.transforms
    assert same(back.impute(X), fit.impute(X))
    assert same(back.score_rows(X), fit.score_rows(X))


def test_a_transform_of_ones_own_is_refused(plain, tmp_path):
    fit = dataclasses.replace(plain, transforms=(Log(2), Log()))
    with pytest.raises(hs.InputError, match="cannot be written to a file"):
        fit.save(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_powers_come_back_to_the_last_bit(plain, tmp_path):
    scales = (BoxCox(np.float64(0.1) * 3), YeoJohnson(1e-310))
    assert again(dataclasses.replace(plain, transforms=scales), tmp_path).transforms == scales


def test_frames(tmp_path):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(hs.simulate(TRUTH, LIMITS, 200), columns=["lead", "zinc"])
    fit = hs.fit(X, LIMITS, random_state=0)
    back = again(fit, tmp_path)
    pd.testing.assert_series_equal(back.mean, fit.mean, check_exact=True)
    pd.testing.assert_frame_equal(back.impute(X), fit.impute(X), check_exact=True)


def test_interval_data(tmp_path):
    lower = np.array([[1.0, -np.inf], [0.3, 2.0], [-np.inf, 1.0], [2.0, 0.4], [0.9, 0.7]])
    upper = np.array([[1.0, 0.5], [0.3, 2.0], [0.2, 1.0], [2.0, 0.4], [0.9, 0.7]])
    data = hs.IntervalData(lower, upper, ("a", "b"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        fit = hs.fit(data, random_state=0)
    back = again(fit, tmp_path)
    check_same(fit, back)
    assert same(back.impute(data), fit.impute(data))


def test_history_of_any_kind(plain, tmp_path):
    history = {
        "list": [1, 2.5, None, "text", [True]],
        "tuple": (1, (2.0, "b")),
        "mapping": {"kind": "array", "": {}},
        "numbers": [float(k) / 3 for k in range(500)],
        "not finite": [np.nan, np.inf, -np.inf, -0.0],
        "records": [{"step": k, "mean": np.arange(2.0) + k} for k in range(5)],
        "ragged": [{"a": 1}, {"b": 2}],
        "arrays": [np.zeros(2), np.zeros(3)],
        "whole": np.arange(4, dtype=np.int32),
        "none": [],
        "gaussian": TRUTH,
    }
    fit = dataclasses.replace(plain, history=history)
    assert same(again(fit, tmp_path).history, history)


def test_what_a_file_cannot_hold_is_marked(plain, tmp_path):
    odd = {"function": print, "words": np.array(["a"]), "keys": {1: 2}, "$": {"$x": 1}, "n": 1}
    del odd["$"]
    back = again(dataclasses.replace(plain, history={**odd, "reserved": {"$x": 1}}), tmp_path)
    assert back.history["n"] == 1
    assert all(isinstance(back.history[k], saving.Absent) for k in back.history if k != "n")
    assert repr(back.history["function"]) == "<not saved>"


def test_lists_too_long_to_be_loaded_are_left_out(plain, tmp_path, monkeypatch):
    monkeypatch.setattr(saved_values, "MOST_ENTRIES", 250)
    history = {"first": [0.5] * 200, "second": [0.5] * 200}
    back = again(dataclasses.replace(plain, history=history), tmp_path)
    assert back.history["first"] == history["first"]
    assert isinstance(back.history["second"], saving.Absent)


def test_the_mask_of_the_table_is_not_saved(table, tmp_path):
    mask = np.isnan(table) & (np.arange(len(table))[:, None] < 5)
    fit = hs.fit(table, LIMITS, missing_at_random=mask, random_state=0)
    back = again(fit, tmp_path)
    assert isinstance(back.source.call["missing_at_random"], saving.Absent)
    with read_archive(tmp_path / "fit.hsfit", saving.FORMAT, 1) as found:
        assert all(len(table) not in found.array(name).shape for name in found.names)


# Files that say something else.


@pytest.fixture(scope="module")
def parts(plain, tmp_path_factory):
    path = tmp_path_factory.mktemp("parts") / "a"
    plain.save(path)
    with read_archive(path, saving.FORMAT, saving.VERSION) as found:
        return found.content, dict(found.arrays())


def changed(content, where, value):
    """Return the content with one place changed; None takes it away."""
    out = dict(content)
    first, *rest = where
    if rest:
        out[first] = changed(out[first], rest, value)
    else:
        out[first] = value
    return out


DETECTION = {"kind": "detection limits", "lower": "rule.lower.0", "upper": "rule.upper.1"}


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        (["method"], "eval", "method must be one of"),
        (["method"], ["full"], "method must be one of"),
        (["names"], None, "names: a list was expected"),
        (["names"], ["a"], "must hold numbers in the shape"),
        (["names"], ["a", "a"], "stands twice"),
        (["names"], ["a", 1], "a text was expected"),
        (["rows"], -1, "whole number"),
        (["rows"], True, "whole number"),
        (["notes"], [{"status": "FINE", "text": ""}], "status must be one of"),
        (["notes"], [{"status": "CONVERGED"}], "a text was expected"),
        (["parameters"], 1.5, "whole number"),
        (["frame"], "os", "frame must be one of"),
        (["transforms"], [{"name": "log"}], "1 transforms are told of 2 columns"),
        (["transforms"], [{"name": "exec"}] * 2, "transforms must be one of"),
        (["transforms"], [{"name": "boxcox", "power": float("nan")}] * 2, "wrong power"),
        (["transforms"], [{"name": "boxcox", "power": None}] * 2, "wrong power"),
        (["transforms"], [{"name": "log", "power": 1.0}] * 2, "wrong power"),
        (["history"], [], "JSON object"),
        (["history"], {"a": {"kind": "code"}}, "no kind of value"),
        (["history"], {"a": {}}, "no kind of value"),
        (["history"], {"a": {"kind": "array", "name": "mean"}}, "asked for twice"),
        (["history"], {"a": {"kind": "array", "name": "none"}}, "has no array"),
        (["history"], {"a": {"kind": "stack", "name": "nothing"}}, "cannot be a list"),
        (["history"], {"a": {"kind": "numbers", "name": "square"}}, "cannot be a list"),
        (["history"], {"a": {"kind": "gaussian", "mean": "square"}}, "twice, or has no name"),
        (["history"], {"a": {"kind": "defaults"}}, "are numbers"),
        (["history"], {"a": {"kind": "records", "columns": {"a": [1], "b": []}}}, "one length"),
        (["uncertainty", "gaussian"], True, "has no array"),
        (["source", "seed"], 2**200, "at most 128 bits"),
        (["source", "seed"], -1, "whole number"),
        (["source", "rule"], {"kind": "truncation"}, "no kind of rule"),
        (["source", "rule"], {"kind": "not saved"}, "a text was expected"),
        (["source", "rule"], {**DETECTION, "labels": ["a"]}, "one name for each column"),
        (["source", "rule"], {**DETECTION, "lower": "whole"}, "must hold numbers"),
        (["source", "rule"], {"kind": "self-censoring", "shared": True, "sets": []}, "one set"),
        (["source", "rule"], {"kind": "self-censoring", "shared": False, "sets": [3]}, "lacks"),
        (
            ["source", "rule"],
            {"kind": "self-censoring", "shared": True,
             "sets": [{"union": False, "intervals": [["0", 1, True, True]]}]},
            "ends of an interval are numbers",
        ),
        (["source", "rule"], {"kind": "combined", "parts": [[[0]]]}, "columns and a rule"),
        (["source", "rule"], {"kind": "rules", "texts": "lead: ?", "columns": None}, "saved fit"),
        (["source", "rule"], {"kind": "rules", "texts": ["x"], "columns": [[1]]}, "strings"),
        (["source", "rule"], {"kind": "self-selection", "groups": [[0]], "largest": True}, "least 2"),
    ],
)  # fmt: skip
def test_files_that_say_something_else(parts, tmp_path, where, value, words):
    content, arrays = parts
    more = {
        "nothing": np.zeros((10**9, 0)), "square": np.eye(2), "whole": np.arange(2),
    }  # fmt: skip
    write_archive(
        tmp_path / "a", saving.FORMAT, 1, changed(content, where, value), {**arrays, **more}
    )
    with pytest.raises(ArchiveError, match=words) as found:
        hs.load(tmp_path / "a")
    assert str(tmp_path) in str(found.value)


def test_a_covariance_that_is_none(parts, tmp_path):
    content, arrays = parts
    write_archive(
        tmp_path / "a", saving.FORMAT, 1, content, {**arrays, "covariance": np.full((2, 2), 1.0)}
    )
    with pytest.raises(ArchiveError, match="is not a saved fit: covariance must be positive"):
        hs.load(tmp_path / "a")


def test_a_newer_file_and_another_one(parts, tmp_path):
    content, arrays = parts
    write_archive(tmp_path / "a", saving.FORMAT, 2, content, arrays)
    with pytest.raises(hs.InputError, match=r"newer halfseen \(format 2, this one reads 1\)"):
        hs.load(tmp_path / "a")
    write_archive(tmp_path / "b", "halfseen checkpoint", 1, content, arrays)
    with pytest.raises(hs.InputError, match="is a 'halfseen checkpoint'; a 'halfseen fit'"):
        hs.load(tmp_path / "b")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seen_share", 7.0),
        ("seen_share", np.nan),
        ("uncertainty.mean", -1.0),
        ("uncertainty.covariance", np.nan),
        ("uncertainty.parameters", np.inf),
        ("monte_carlo.mean", np.nan),
    ],
)
def test_numbers_that_cannot_be(parts, tmp_path, name, value):
    content, arrays = parts
    arrays = {**arrays, name: np.full_like(arrays[name], value)}
    write_archive(tmp_path / "f", saving.FORMAT, saving.VERSION, content, arrays)
    with pytest.raises(ArchiveError, match="must hold numbers from"):
        hs.load(tmp_path / "f")


def test_a_place_that_cannot_be_written_to_gets_a_sentence(plain, tmp_path):
    (tmp_path / "link").symlink_to("link")
    for path in (tmp_path, tmp_path / "none" / "f", tmp_path / ("x" * 300), tmp_path / "link"):
        with pytest.raises(hs.InputError, match="the fit cannot be written to"):
            plain.save(path)


@pytest.mark.parametrize(
    "value", ["x", None, [["x"]], {"a": 1}, [], [[1.0]], [1.0, [2.0]], 5, [1e300]]
)
@pytest.mark.parametrize("key", ["gains", "log_likelihoods", "trace"])
def test_a_page_of_a_fit_whose_history_holds_anything(tmp_path, key, value):
    """A file may be valid, and yet hold in its history what no fit writes."""
    X = hs.simulate(TRUTH, LIMITS, 60, random_state=0)
    fit = hs.fit(X, LIMITS, "full", random_state=0)
    fit.history[key] = value
    found = again(fit, tmp_path)
    assert found.report(tmp_path / "page.html").stat().st_size > 1000
