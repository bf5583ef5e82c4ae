"""Saved regressions come back to the last bit, and a loaded one says what it does not hold."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest

import halfseen as hs
from halfseen.archive import ArchiveError, read_archive, write_archive
from halfseen.missingness.written import NotSaved
from halfseen.regression import saving
from tests.regression.tables import FORMULAS, SELECTION, heckman
from tests.solvers.test_saving import changed, same

N = 250
RNG = np.random.default_rng(7)
AGE, DOSE = RNG.normal(size=(2, N))
SITE = RNG.choice(["a", "b", "c"], N)
NOISE = RNG.multivariate_normal(np.zeros(3), 0.5 + 0.5 * np.eye(3), N)
LEAD, ZINC, LATENT = (0.5 * AGE + (SITE == "b"))[:, None].T + NOISE.T
DATA = {
    "age": AGE,
    "dose": DOSE,
    "$site": SITE,
    "lead": np.where(LEAD >= 0.0, LEAD, np.nan),
    "zinc": ZINC,
    "ill": LATENT > 0.0,
    "grade": np.array(["low", "mid", "high"])[np.digitize(LATENT, [-0.5, 0.7])],
}
NEW = {"age": [-1.0, 0.3], "dose": [0.0, 1.0], "$site": ["b", "c"]}
RULE = {"lead": ">=0"}
GRADES = {"grade": ["low", "mid", "high"]}
WAGES, _ = heckman(300)
NEW_WAGES = {"educ": [10.0, 13.0], "kids": [0.0, 2.0]}


def regress(model="lead + zinc ~ age + `$site`", rules=RULE, data=DATA, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        return hs.regress(model, data, rules, random_state=0, **options)


def wages(**options):
    return regress(FORMULAS, SELECTION, WAGES, **options)


def truncated():
    kept = {name: column[LEAD >= 0.0] for name, column in DATA.items()}
    return regress("lead ~ age", None, kept, truncated={"lead": ">=0"})


FITS = {
    "one formula, a category": (regress, NEW),
    "selection": (wages, NEW_WAGES),
    "selection, clusters": (lambda: wages(cluster=np.arange(300) // 10), NEW_WAGES),
    "robust": (lambda: regress(robust=True), NEW),
    "ordered, binary, censored": (
        lambda: regress("grade + lead ~ age + dose", kinds=GRADES),
        NEW,
    ),
    "splines and scales": (lambda: regress("lead ~ bs(age, df=4) + scale(dose)"), NEW),
    "fixed and equal": (
        lambda: regress(
            "lead + zinc ~ age + dose",
            fixed={"lead": {"dose": 0.1}},
            equal=[[("lead", "age"), ("zinc", "age")]],
            covariance="diagonal",
        ),
        NEW,
    ),
    "no standard errors": (lambda: regress(standard_errors=False), NEW),
    "truncated": (truncated, NEW),
    "a union of intervals": (
        lambda: regress("zinc ~ age", {"zinc": "-9..9 | 10..20"}),
        NEW,
    ),
    "a threshold that goes with a covariate": (
        lambda: regress("zinc ~ age", hs.rules("zinc: zinc - dose >= -9")),
        NEW,
    ),
    "arrays": (
        lambda: regress(DATA["lead"], hs.DetectionLimits(lower=0.0), np.column_stack([AGE, DOSE])),
        np.array([[0.0, 1.0], [1.0, -1.0]]),
    ),
    "a data frame": (lambda: regress(data=pd.DataFrame(DATA)), pd.DataFrame(NEW)),
}  # fmt: skip


@pytest.fixture(scope="module")
def fits():
    made = {}

    def get(name):
        if name not in made:
            made[name] = FITS[name][0]()
        return made[name]

    return get


def again(fit, path):
    fit.save(path / "fit.hsreg")
    return hs.load(path / "fit.hsreg")


def plain(value):
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return np.asarray(value)


def kinds_for(fit):
    if fit.hiding.carried:
        return ["latent"]
    kinds = ["latent", "seen", "hidden_probability"]
    return [*kinds, "categories"] if fit.categories else kinds


@pytest.mark.parametrize("name", FITS)
def test_everything_that_needs_no_table_is_the_same(fits, name, tmp_path):
    fit, new = fits(name), FITS[name][1]
    back = again(fit, tmp_path)
    apart = ("source", "data", "design", "kept", "equations", "truncation")
    for field in dataclasses.fields(hs.RegressionFit):
        if field.name not in apart:
            assert same(getattr(fit, field.name), getattr(back, field.name)), field.name
    assert same(fit.equations, back.equations)
    assert back.design.to_dict() == fit.design.to_dict()
    assert back.to_dict() == fit.to_dict()
    assert back.summary() == fit.summary()
    assert (back.truncation is None) == (fit.truncation is None)
    for kind in kinds_for(fit):
        errors = fit.covariance is not None and kind != "categories"
        said = [plain(one.predict(new, kind, standard_error=errors)) for one in (fit, back)]
        assert same(*said), kind
    assert same(*(plain(one.simulate(new, random_state=1)) for one in (fit, back)))
    if fit.covariance is not None:
        ends = [one.confidence_interval().residual_correlation.lower for one in (fit, back)]
        assert same(*map(plain, ends))


def test_outcomes_given_what_is_seen_of_new_rows(fits, tmp_path):
    covariate = "a threshold that goes with a covariate"
    for name, data in (
        ("one formula, a category", DATA),
        ("selection", WAGES),
        (covariate, DATA),
    ):
        fit = fits(name)
        some = {column: values[:50] for column, values in data.items()}
        assert same(
            again(fit, tmp_path).predict(some, "given_seen"), fit.predict(some, "given_seen")
        )


def test_effects_over_new_rows(fits, tmp_path):
    fit = fits("one formula, a category")
    back = again(fit, tmp_path)
    for variable in ("age", "$site"):
        a, b = (one.marginal_effects(variable, new=DATA) for one in (fit, back))
        assert same((a.effects, a.standard_errors), (b.effects, b.standard_errors))
    with pytest.raises(hs.InputError, match="does not hold its table"):
        back.marginal_effects("age")


@pytest.mark.parametrize(
    "ask",
    [
        lambda fit: fit.predict(),
        lambda fit: fit.predict(kind="given_seen"),
        lambda fit: fit.residuals(),
        lambda fit: fit.simulate(),
        lambda fit: fit.draw_imputations(m=2),
        lambda fit: fit.robust(),
    ],
)
@pytest.mark.parametrize("name", ["selection", "truncated"])
def test_what_needs_the_table_says_so(fits, tmp_path, ask, name):
    with pytest.raises(hs.InputError, match=r"does not hold|needs? the rows"):
        ask(again(fits(name), tmp_path))


def test_loaded_fits_are_compared(fits, tmp_path):
    larger, smaller = regress("zinc ~ age + dose", None), regress("zinc ~ age", None)
    test = hs.compare(larger, smaller).test
    assert hs.compare(again(larger, tmp_path), again(smaller, tmp_path)).test == test


def test_a_loaded_fit_can_be_saved_again(fits, tmp_path):
    for name in FITS:
        back = again(fits(name), tmp_path)
        first = (tmp_path / "fit.hsreg").read_bytes()
        again(back, tmp_path)
        assert (tmp_path / "fit.hsreg").read_bytes() == first, name


def test_no_array_is_as_long_as_the_table(fits, tmp_path):
    for name in FITS:
        fit = fits(name)
        fit.save(tmp_path / "a")
        with read_archive(tmp_path / "a", saving.FORMAT, 1) as found:
            assert all(fit.rows not in found.array(one).shape for one in found.names), name


def test_a_set_known_as_a_function_is_kept_where_it_lies(tmp_path):
    rule = hs.SelfCensoring([hs.Predicate(lambda x: x >= 0.0)])
    fit = regress("lead ~ age", rule)
    with pytest.warns(hs.AssumptionWarning, match="saved without its rule") as record:
        fit.save(tmp_path / "a")
    assert record[0].filename == __file__
    back = hs.load(tmp_path / "a")
    assert isinstance(back.hiding.rule, NotSaved)
    for kind in ("seen", "hidden_probability"):
        assert same(back.predict(NEW, kind), fit.predict(NEW, kind))
    with pytest.raises(hs.InputError, match="saved without its rule, SelfCensoring"):
        back.predict(DATA, "given_seen")


def test_why_limits_of_new_rows_are_not_known_is_kept(tmp_path):
    by_row = regress("lead ~ age", hs.DetectionLimits(lower=np.full((N, 1), 0.0)))
    data = {"lead": pd.Series(["<0.1" if x < 0.1 else str(x) for x in LEAD]), "age": AGE}
    in_cells = regress("lead ~ age", None, pd.DataFrame(data))
    for fit, words in ((by_row, "differ by row"), (in_cells, "the cells of the table say")):
        for one in (fit, again(fit, tmp_path)):
            with pytest.raises(hs.InputError, match=words):
                one.predict(NEW, "seen")


def test_rules_of_several_parts_tell_where_each_outcome_is_shown():
    rule = hs.Combined([(["lead"], hs.DetectionLimits(lower=0.0))])
    alike = hs.rules(RULE)
    a, b = (regress(rules=one).predict(NEW, "seen") for one in (rule, alike))
    np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_category_that_is_no_plain_value_is_refused(fits, tmp_path):
    odd = dataclasses.replace(
        fits("ordered, binary, censored"), categories={"grade": ((1,), (2,), (3,))}
    )
    with pytest.raises(hs.InputError, match=r"the category \(1,\) of grade cannot be written"):
        odd.save(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


# Files that say something else.


@pytest.fixture(scope="module")
def parts(fits, tmp_path_factory):
    out = {}
    for name in ("selection", "ordered, binary, censored", "one formula, a category"):
        path = tmp_path_factory.mktemp("parts") / "a"
        fits(name).save(path)
        with read_archive(path, saving.FORMAT, saving.VERSION) as found:
            out[name] = found.content, dict(found.arrays())
    return out


WRITTEN = {"kind": "selection", "outcomes": [0], "by": 1, "when": True}


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        (["outcomes"], [], "has an outcome"),
        (["outcomes"], ["wage", "wage"], "twice"),
        (["outcomes"], ["wage"], "must say yes or no"),
        (["terms"], ["a"] * 3, "twice"),
        (["terms"], [1, 2, 3], "a text was expected"),
        (["kinds"], ["continuous", "count"], "kinds must be one of"),
        (["kinds"], ["continuous"], "1 kinds are told of 2 outcomes"),
        (["kinds"], ["continuous", "ordered"], "a binary outcome has two categories"),
        (["kinds"], ["continuous", "continuous"], "and no others"),
        (["categories"], [None, None], "latent outcomes have categories"),
        (["categories"], [None, [0.0, 0.0]], "different texts or numbers"),
        (["categories"], [None, [[0], [1]]], "different texts or numbers"),
        (["categories"], [None, [float("nan"), 1.0]], "different texts or numbers"),
        (["rows"], 0, "whole number"),
        (["rows"], True, "whole number"),
        (["parameters"], -1, "whole number"),
        (["log_likelihood"], float("nan"), "finite number"),
        (["log_likelihood"], "0", "finite number"),
        (["log_likelihood_error"], -1.0, "not be negative"),
        (["notes"], [{"status": "FINE", "text": ""}], "status must be one of"),
        (["history"], [], "JSON object"),
        (["history"], {"a": {"kind": "array", "name": "weights"}}, "asked for twice"),
        (["history"], {"undetermined": [[0, 2]]}, "pairs of outcomes"),
        (["history"], {"undetermined": 1}, "pairs of outcomes"),
        (["frame"], "os", "frame must be one of"),
        (["clusters"], 0, "whole number"),
        (["robust"], 1, "true or false"),
        (["truncated"], 2**40, "whole number"),
        (["design"], [], "JSON object"),
        (["design"], {}, "damaged"),
        (["design", "outcomes"], ["wage", "work"], "another regression"),
        (["design", "terms"], ["Intercept", "educ", "age"], "another regression"),
        (["design", "mask"], [[True] * 3] * 2, "another regression"),
        (["design", "coding", "kind"], "pickle", "damaged"),
        (["hiding"], None, "JSON object"),
        (["hiding", "rule"], {"kind": "truncation"}, "no kind of rule"),
        (["hiding", "rule"], {"kind": "self-selection", "groups": [[0, 7]], "largest": True}, "7"),
        (["hiding", "rule"], {"kind": "not saved"}, "a text was expected"),
        (["hiding", "selections"], [{"kind": "self-selection", "largest": True}], "a selection was"),
        (["hiding", "selections"], [{**WRITTEN, "by": 7}], "no outcome"),
        (["hiding", "selections"], [{**WRITTEN, "outcomes": [-1]}], "no outcome"),
        (["hiding", "selections"], [{**WRITTEN, "outcomes": ["wage"], "by": "works"}], "no outcome"),
        (["hiding", "selections"], [{**WRITTEN, "outcomes": [1], "by": 0}], "is binary"),
        (["hiding", "selections"], [{**WRITTEN, "outcomes": [[]]}], "Selection takes"),
        (["hiding", "selections"], [{**WRITTEN, "when": 1}], "lacks"),
        (["hiding", "carried"], None, "a list was expected"),
        (["hiding", "carried"], ["wage"], "twice"),
        (["hiding", "carried"], ["age"], "a column for each term"),
        (["hiding", "shown"], [], "0 sets are told of 2 outcomes"),
        (["hiding", "shown"], [{"unknown": "WHY"}] * 2, "shown must be one of"),
        (["hiding", "shown"], [{"array": "pieces"}] * 2, "asked for twice"),
        (["hiding", "shown"], [{"array": "huge"}] * 2, "two ends each"),
        (["hiding", "shown"], [{"array": "reversed"}] * 2, "two ends each"),
    ],
)  # fmt: skip
def test_files_that_say_something_else(parts, tmp_path, where, value, words):
    content, arrays = parts["selection"]
    more = {
        "huge": np.zeros((10**9, 0)),
        "reversed": np.array([[1.0, 0.0]]),
        "pieces": np.array([[0.0, 1.0]]),
    }
    write_archive(
        tmp_path / "a", saving.FORMAT, 1, changed(content, where, value), {**arrays, **more}
    )
    with pytest.raises(ArchiveError, match=words) as found:
        hs.load(tmp_path / "a")
    assert str(tmp_path) in str(found.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weights", np.full((2, 3), np.nan)),
        ("weights", np.ones((2, 3))),
        ("weights", np.ones((3, 2))),
        ("weights", np.ones((2, 3), dtype=np.float32)),
        ("residual", np.array([[1.0, 2.0], [2.0, 1.0]])),
        ("residual", np.array([[1.0, 0.5], [0.4, 1.0]])),
        ("residual", -np.eye(2)),
        ("residual", np.full((2, 2), np.inf)),
        ("residual", np.array([[1e-300, 1e300], [1e300, 1e-300]])),
        ("mask", np.ones((2, 3))),
        ("mask", np.ones((2, 4), dtype=bool)),
        ("mask", np.zeros((2, 3), dtype=bool)),
        ("free", np.ones((2, 3), dtype=bool)),
        ("seen_share", np.array([0.5, 1.5])),
        ("covariance", np.full((8, 8), np.nan)),
        ("covariance", np.triu(np.ones((8, 8)))),
        ("covariance", np.eye(7)),
        ("equations.T", np.zeros((5, 3))),
        ("equations.T", np.full((3, 3), np.nan)),
        ("equations.T", np.zeros((0, 3))),
        ("equations.fixed", np.ones((2, 3))),
        ("equations.centre", np.full(2, np.nan)),
        ("equations.scale", np.zeros(2)),
        ("equations.scale", np.full(2, np.inf)),
        ("equations.ties", np.zeros((1, 1))),
        ("place.coefficients", np.zeros((2, 9))),
        ("place.residual", np.zeros((2, 2))),
    ],
)
def test_numbers_that_cannot_be(parts, tmp_path, name, value):
    content, arrays = parts["selection"]
    write_archive(tmp_path / "f", saving.FORMAT, 1, content, {**arrays, name: value})
    with pytest.raises(ArchiveError, match=r"must|does not stand in an equation") as found:
        hs.load(tmp_path / "f")
    assert str(found.value).endswith(".")


@pytest.mark.parametrize("cuts", [[1.0, 2.0], [0.0, -1.0], [0.0, np.nan], [0.0], [0.0, np.inf]])
def test_cut_points_that_cannot_be(parts, tmp_path, cuts):
    content, arrays = parts["ordered, binary, censored"]
    write_archive(
        tmp_path / "f", saving.FORMAT, 1, content, {**arrays, "cut_points.0": np.array(cuts)}
    )
    with pytest.raises(ArchiveError, match=r"cut points must|in the shape"):
        hs.load(tmp_path / "f")


def test_every_array_is_needed(parts, tmp_path):
    content, arrays = parts["selection"]
    spare = ("covariance", "equations.ties", "place.coefficients")
    for name in arrays:
        if name not in spare:
            rest = {key: array for key, array in arrays.items() if key != name}
            write_archive(tmp_path / "f", saving.FORMAT, 1, content, rest)
            with pytest.raises(ArchiveError, match="has no array"):
                hs.load(tmp_path / "f")


def test_cut_and_changed_files_are_refused(fits, tmp_path):
    fits("selection").save(tmp_path / "f")
    whole = (tmp_path / "f").read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.integers(0, len(whole), 60):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << int(rng.integers(8))
        for content in (whole[:at], bytes(flipped)):
            (tmp_path / "f").write_bytes(content)
            with pytest.raises(ArchiveError, match=r"\.$"):
                hs.load(tmp_path / "f")


def test_a_newer_file_and_another_one(parts, tmp_path):
    content, arrays = parts["selection"]
    write_archive(tmp_path / "a", saving.FORMAT, 2, content, arrays)
    with pytest.raises(hs.InputError, match=r"newer halfseen \(format 2, this one reads 1\)"):
        hs.load(tmp_path / "a")
    write_archive(tmp_path / "b", "halfseen checkpoint", 1, content, arrays)
    with pytest.raises(
        hs.InputError, match="a 'halfseen fit' or a 'halfseen regression' was expected"
    ):
        hs.load(tmp_path / "b")
