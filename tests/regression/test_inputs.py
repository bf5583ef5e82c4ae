"""What ``regress`` says where it cannot do what is asked: what was expected, what came, what to try."""

import numpy as np
import pandas as pd
import pytest

import halfseen as hs

N = 120
RNG = np.random.default_rng(2)
AGE, ZINC = RNG.normal(size=(2, N))
SITE = RNG.choice(["a", "b", "c"], N)
LEAD = AGE + RNG.normal(size=N)
DATA = {
    "age": AGE,
    "zinc": ZINC,
    "site": SITE,
    "flat": np.ones(N),
    "twice": 1.0 + 2.0 * AGE,
    "older": AGE > 0.3,
    "ill": AGE + RNG.normal(size=N) > 0.0,
    "shown": LEAD >= 0.0,
    "lead": np.where(LEAD >= 0.0, LEAD, np.nan),
}
RULE = {"lead": ">=0"}


def regress(model="lead ~ age", data=DATA, rules=RULE, **options):
    return hs.regress(model, data, rules, random_state=0, **options)


def changed(**columns):
    return {**DATA, **columns}


def put(name, row, value):
    column = DATA[name].astype(object if isinstance(DATA[name][0], str) else float)
    column[row] = value
    return changed(**{name: column})


# What is passed to ``regress``, and pieces of the sentence that comes.
REFUSED = {
    "a kind that there is not": (
        {"kinds": {"lead": "count"}},
        ["continuous, binary, ordered", "'count'", "lead"],
    ),
    "a kind of what is no outcome": ({"kinds": {"led": "binary"}}, ["'led'", "lead"]),
    "kinds without names": ({"kinds": "binary"}, ['kinds={"works": "binary"}', "'binary'"]),
    "one category": ({"kinds": {"lead": ["low"]}}, ["2 categories", "['low']"]),
    "categories twice": (
        {"model": "ill ~ age", "rules": None, "kinds": {"ill": [True, True, False]}},
        ["each of them once", "[True, True, False]"],
    ),
    "categories that are lists": (
        {"model": "ill ~ age", "rules": None, "kinds": {"ill": [[1], [2]]}},
        ["texts or numbers", "[[1], [2]]"],
    ),
    "a truncated outcome that is binary": (
        {"model": "ill ~ age", "rules": None, "truncated": {"ill": ">=0"}},
        ["ill has categories", "for a measurement"],
    ),
    "categories without an order": (
        {
            "model": "site ~ age",
            "rules": None,
            "data": pd.DataFrame(DATA).astype({"site": "category"}),
        },
        ["without an order: a, b, c", "kinds={'site': ['a', 'b', 'c']}"],
    ),
    "an outcome that is always 1": (
        {"model": "flat ~ age", "rules": None},
        ["flat has 1 distinct value"],
    ),
    "a binary outcome of many values": (
        {"model": "zinc ~ age", "rules": None, "kinds": {"zinc": "binary"}},
        ["zinc", "120 values", "'ordered'"],
    ),
    "a category that was not listed": (
        {"model": "site ~ age", "rules": None, "kinds": {"site": ["a", "b"]}},
        ["column site", "'c'", "'a', 'b'"],
    ),
    "ordered words": (
        {"model": "site ~ age", "rules": None, "kinds": {"site": "ordered"}},
        ["order is not known", "kinds={'site': ['a', 'b', 'c']}"],
    ),
    "words, of a data frame": (
        {"model": "site ~ age", "data": pd.DataFrame(DATA), "rules": None},
        ["site holds words", "a, b", "kinds={'site'"],
    ),
    "0 and 1 alone": (
        {"model": "y ~ age", "data": changed(y=1.0 * DATA["ill"]), "rules": None},
        ["0 and 1", "'binary'", "'continuous'"],
    ),
    "no such outcome": ({"model": "led ~ age"}, ["'led'", "did you mean 'lead'"]),
    "no such regressor": ({"model": "lead ~ aeg"}, ["'aeg'", "did you mean 'age'"]),
    "a formula without data": ({"data": None}, ["formula needs data", "regress(formula, data)"]),
    "a formula without a wave": ({"model": "lead"}, ["has no ~", "lead + zinc ~ age"]),
    "an outcome on both sides": ({"model": "lead + zinc ~ zinc"}, ["zinc is an outcome"]),
    "no formula": ({"model": None}, ["a formula such as", "None"]),
    "no regressors": ({"model": [[1.0], [2.0]], "data": None}, ["regress(Y, X)", "fit(X)"]),
    "rows that do not match": (
        {"model": [1.0, 2.5, 3.0], "data": [[1.0], [2.0]], "rules": None},
        ["3 rows", "regressors 2"],
    ),
    "columns that do not match": (
        {"data": {"lead": [1.0, 2.0], "age": [1.0, 2.0, 3.0]}},
        ["'lead' has 2 rows", "'age' has 3"],
    ),
    "names that are none": (
        {"model": [1.0, 2.0, 4.0], "data": [[1.0], [2.0], [5.0]], "rules": None, "names": 3},
        ["sequence of names", "3"],
    ),
    "too many names": (
        {"model": LEAD, "data": AGE[:, None], "rules": None, "names": ["a", "b"]},
        ["names must be 1", "got 2"],
    ),
    "a rule that is none": ({"rules": 3}, ["Selection('wage', by='works')", "got 3"]),
    "a list with what is no rule": ({"rules": [3]}, ["rules({'lead': '>=0.5'})", "got 3"]),
    "a rule that cannot be read": ({"rules": {"lead": ">>0"}}, ["lead: >>0", "expected"]),
    "a rule about another column": ({"rules": {"led": ">=0"}}, ["Did you mean 'lead'"]),
    "two rules": (
        {"rules": [hs.DetectionLimits(lower=0.0), hs.DetectionLimits(upper=9.0)]},
        ["one rule", "got 2", "Combined"],
    ),
    "rows that are not there": (
        {"rules": hs.RowTruncation(lambda rows: rows[:, 0] > 0)},
        ["whole rows", "truncated={"],
    ),
    "a value that the rule hides": ({"rules": {"lead": ">=9"}}, ["column lead", "at_least(9)"]),
    "a mask of another shape": (
        {"missing_at_random": [True]},
        ["missing_at_random", "(120, 1)", "(1,)"],
    ),
    "fixed without names": ({"fixed": 3}, ["fixed={'wage': {'exper': 0.02}}", "got 3"]),
    "fixed without terms": ({"fixed": {"lead": 3}}, ["outcome and term", "{'lead': 3}"]),
    "fixed for no outcome": ({"fixed": {"led": {"age": 1}}}, ["'led'", "outcomes are lead"]),
    "fixed for no term": ({"fixed": {"lead": {"aeg": 1}}}, ["'aeg'", "Intercept, age"]),
    "fixed at a text": ({"fixed": {"lead": {"age": "x"}}}, ["age must be numbers", "'x'"]),
    "fixed at several": ({"fixed": {"lead": {"age": [1, 2]}}}, ["a finite number", "[1, 2]"]),
    "fixed at nothing": ({"fixed": {"lead": {"age": np.nan}}}, ["a finite number", "nan"]),
    "fixed far off": ({"fixed": {"lead": {"age": 1e300}}}, ["below 1e+100", "1e+300"]),
    "equal to nothing": ({"equal": 3}, ["groups of (outcome, term)", "got 3"]),
    "equal to an array": ({"equal": np.ones(3)}, ["groups of (outcome, term)", "1.0"]),
    "fixed out of reach": ({"fixed": {"lead": {"age": 1e18}}}, ["sixteen digits", "fixed="]),
    "a covariance out of reach": ({"covariance": [[1e300]]}, ["below 1e+100", "1e+300"]),
    "equal without groups": (
        {"equal": [("lead", "age"), ("lead", "age")]},
        ["groups of (outcome, term)", "equal=[[("],
    ),
    "equal numbers": ({"equal": [[1, 2]]}, ["groups of (outcome, term)", "[1, 2]"]),
    "equal to no term": (
        {"model": "lead + zinc ~ age", "equal": [[("lead", "age"), ("zinc", "aeg")]]},
        ["zinc has no term 'aeg'", "Intercept, age"],
    ),
    "equal to what is fixed": (
        {
            "model": "lead + zinc ~ age",
            "equal": [[("lead", "age"), ("zinc", "age")]],
            "fixed": {"lead": {"age": 1.0}},
        },
        ["fixed and equal", "('lead', 'age')"],
    ),
    "a covariance that there is not": (
        {"covariance": "sparse"},
        ["'free', 'diagonal', a structure or an array", "'sparse'"],
    ),
    "a covariance of another shape": ({"covariance": np.eye(2)}, ["(1, 1)", "(2, 2)"]),
    "a covariance that is not symmetric": (
        {"model": "lead + zinc ~ age", "covariance": [[1, 0.5], [0.1, 1]]},
        ["symmetric", "0.1"],
    ),
    "a covariance that is none": (
        {"model": "lead + zinc ~ age", "covariance": [[1, 2], [2, 1]]},
        ["positive definite", "eigenvalue is -1", "smaller"],
    ),
    "a latent variance": (
        {"model": "ill ~ age", "rules": None, "covariance": [[2.0]]},
        ["variance 1", "ill"],
    ),
    "a selection without an equation": (
        {"rules": hs.Selection("lead", by="works")},
        ["speaks of works", "no equation", "'works': 'educ + kids'"],
    ),
    "a selection of what has no equation": (
        {"model": "shown ~ age", "rules": hs.Selection("lead", by="shown")},
        ["speaks of lead", "no equation"],
    ),
    "an index that is a measurement": (
        {
            "model": "lead + shown ~ age",
            "rules": hs.Selection("lead", by="shown"),
            "kinds": {"shown": "continuous"},
        },
        ["shown is the index", "cannot be continuous"],
    ),
    "a selection of the others": (
        {"model": "lead + shown ~ age", "rules": hs.Selection("lead", by="shown", when=False)},
        ["column lead", "shown says that it is not", "set the value to NaN"],
    ),
    "everybody is selected": (
        {
            "model": "zinc + all ~ age",
            "data": changed(all=np.ones(N, dtype=bool)),
            "rules": hs.Selection("zinc", by="all"),
        },
        ["second category has no row"],
    ),
    "a blank regressor": (
        {"data": put("age", 7, np.nan)},
        ["row 7, column age", "missing", "Leave such rows out"],
    ),
    "an infinite regressor": ({"data": put("age", 7, np.inf)}, ["row 7, column age", "finite"]),
    "a regressor far off": (
        {"data": put("age", 7, 1e308)},
        ["row 7, column age", "below 1e+152", "another unit"],
    ),
    "a blank category": (
        {"model": "lead ~ site", "data": put("site", 5, None)},
        ["row 5, column site", "missing"],
    ),
    "separation": (
        {"model": "older ~ age", "rules": None},
        ["older: the coefficient of age", "no finite estimate", "fixed={'older': {'age'"],
    ),
    "a category of which everything is hidden": (
        {"model": "lead ~ site", "data": changed(lead=np.where(SITE == "b", np.nan, DATA["lead"]))},
        ["site[T.b]", "hidden on the same side", "put categories together"],
    ),
    "nothing is seen": (
        {"data": changed(lead=np.full(N, np.nan))},
        ["column lead", "0 distinct values", "Leave the column out"],
    ),
    "a constant column": ({"model": "lead ~ flat"}, ["flat", "1 in every row", "intercept"]),
    "repeated columns": (
        {"model": "lead ~ age + twice"},
        ["twice = Intercept + 2 age", "Leave one of these terms out"],
    ),
    "clusters that are not there": (
        {"cluster": "county"},
        ["clusters 'county' is not in the data", "age, zinc"],
    ),
    "no clusters of a row": ({"cluster": [1, 2]}, ["120 rows", "(2,)"]),
    "robust, of nothing": (
        {"robust": True, "standard_errors": False},
        ["no standard errors to begin with"],
    ),
    "weights of no column": (
        {"weights": "heavy"},
        ["weights 'heavy' is not in the data", "age, zinc"],
    ),
    "weights of other rows": ({"weights": [1.0, 2.0]}, ["each of the 120 rows", "(2,)"]),
    "one weight": ({"weights": 2.0}, ["each of the 120 rows", "name of a column", "()"]),
    "a weight below 0": (
        {"data": put("zinc", 7, -1.0), "weights": "zinc"},
        ["column zinc", "not negative", "got -"],
    ),
    "a blank weight": (
        {"data": changed(heavy=np.where(np.arange(N) == 7, np.nan, 1.0)), "weights": "heavy"},
        ["row 7, column heavy", "finite", "got nan"],
    ),
    "weights that are words": ({"weights": "site"}, ["site must be numbers", "'"]),
    "no weight at all": ({"weights": np.zeros(N)}, ["every weight is 0"]),
    "truncated beside hidden": ({"truncated": {"lead": ">=0"}}, ["rows are not there", "rules"]),
    "several truncated": (
        {"model": "lead + zinc ~ age", "rules": None, "truncated": {"lead": ">=0"}},
        ["one outcome", "got 2"],
    ),
    "truncated, with a blank": (
        {"rules": None, "truncated": {"lead": ">=0"}},
        ["column lead", "not seen", "Leave such rows out"],
    ),
    "truncated by nothing": (
        {"model": "zinc ~ age", "rules": None, "truncated": 3},
        ["must be a set", "got 3"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_says_what_is_wrong_and_what_to_try(name):
    options, pieces = REFUSED[name]
    with pytest.raises(hs.HalfseenError) as caught:
        regress(**options)
    told = str(caught.value)
    assert isinstance(caught.value, hs.RuleError) or told.endswith((".", "?"))
    for piece in pieces:
        assert piece in told, told


def test_true_and_false_are_binary_though_some_are_not_known():
    plain = regress("ill ~ age", {"ill": DATA["ill"][5:], "age": AGE[5:]}, None)
    known = [None] * 5 + DATA["ill"][5:].tolist()
    for column in (
        np.array(known, dtype=object),
        pd.array(known, dtype="boolean"),
        pd.Series([np.nan] * 5 + known[5:], dtype=object),
    ):
        for data in ({"ill": column, "age": AGE}, pd.DataFrame({"ill": column, "age": AGE})):
            with pytest.warns(hs.AssumptionWarning, match="blank in ill"):
                found = regress("ill ~ age", data, None)
            assert found.categories == {"ill": (False, True)}
            np.testing.assert_allclose(found.weights, plain.weights, atol=1e-6)


def ordered_site():
    order = pd.CategoricalDtype(["c", "a", "b"], ordered=True)
    return pd.DataFrame({"age": AGE, "site": SITE}).astype({"site": order})


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "parquet", "two tables"])
@pytest.mark.parametrize("kinds", [None, {"site": "ordered"}])
def test_ordered_categories_keep_their_order(library, kinds, tmp_path):
    frame = ordered_site()
    model, data = "site ~ age", frame
    if library == "polars":
        pl = pytest.importorskip("polars")
        data = pl.DataFrame({"age": AGE, "site": pl.Series(SITE, dtype=pl.Enum(["c", "a", "b"]))})
    elif library == "pyarrow":
        data = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    elif library == "parquet":
        data = tmp_path / "table.parquet"
        frame.to_parquet(data)
    elif library == "two tables":
        model, data = frame[["site"]], frame[["age"]]
    assert regress(model, data, None, kinds=kinds).categories == {"site": ("c", "a", "b")}


@pytest.fixture(scope="module")
def fit():
    return regress("lead ~ age + site")


# What a fit is asked, and pieces of the sentence that comes.
UNANSWERED = {
    "a category that was never met": (
        lambda fit: fit.predict({"age": [1.0], "site": ["z"]}),
        ["row 0, column site", "'z'", "'a', 'b', 'c'"],
    ),
    "a column that is not there": (
        lambda fit: fit.predict({"age": [1.0]}),
        ["'site' is not in the data", "age"],
    ),
    "a blank": (lambda fit: fit.predict({"age": [np.nan], "site": ["a"]}), ["column age"]),
    "rows without names": (lambda fit: fit.predict(np.ones((2, 2))), ["data frame", "ndarray"]),
    "no kind": (lambda fit: fit.predict(kind="median"), ["latent, seen", "'median'"]),
    "given what is seen, without it": (
        lambda fit: fit.predict({"age": [1.0], "site": ["a"]}, kind="given_seen"),
        ["outcome 'lead' is not in the data"],
    ),
    "errors of what has none": (
        lambda fit: fit.predict(kind="given_seen", standard_error=True),
        ["standard errors of latent, seen, hidden_probability", "'given_seen'"],
    ),
    "categories of a measurement": (lambda fit: fit.predict(kind="categories"), ["no categories"]),
    "effects of no variable": (
        lambda fit: fit.marginal_effects("aeg"),
        ["'aeg' is no variable", "age, site"],
    ),
    "effects of no kind": (lambda fit: fit.marginal_effects("age", "median"), ["'median'"]),
    "effects of several": (lambda fit: fit.marginal_effects(np.ones(2)), ["is no variable"]),
    "effects over no rows": (
        lambda fit: fit.marginal_effects("age", new={"age": [], "site": []}),
        ["averages over rows", "got none"],
    ),
    "effects over rows far off": (
        lambda fit: fit.marginal_effects("age", new={"age": [1e308], "site": ["a"]}),
        ["below 1e+100", "1e+308"],
    ),
    "several kinds": (lambda fit: fit.predict(kind=np.ones(2)), ["latent, seen"]),
    "effects over a number": (lambda fit: fit.marginal_effects("age", new=3), ["data frame"]),
    "effects over too few columns": (
        lambda fit: fit.marginal_effects("age", new={"age": [1.0]}),
        ["'site' is not in the data"],
    ),
    "no level": (lambda fit: fit.confidence_interval(2), ["between 0 and 1", "got 2"]),
    "a function that is none": (lambda fit: fit.standard_errors.of(3), ["function", "got 3"]),
    "a function without numbers": (
        lambda fit: fit.standard_errors.of(lambda B, S: np.nan),
        ["finite numbers"],
    ),
    "no tables": (lambda fit: fit.draw_imputations(0), ["m must be", "got 0"]),
    "no seed": (lambda fit: fit.residuals("x"), ["random_state", "'x'"]),
    "compared with nothing": (lambda fit: hs.compare(fit, 3), ["smaller is a int"]),
    "compared with itself": (lambda fit: hs.compare(fit, fit), ["more parameters"]),
    "compared with another outcome": (
        lambda fit: hs.compare(fit, regress("zinc ~ 1", rules=None)),
        ["same outcomes", "lead", "zinc"],
    ),
    "compared with other rows": (
        lambda fit: hs.compare(
            fit, regress("lead ~ 1", {name: cells[:90] for name, cells in DATA.items()})
        ),
        ["same rows", "120 and 90"],
    ),
    "errors that were not wanted": (
        lambda fit: regress(standard_errors=False).standard_errors,
        ["standard_errors=False"],
    ),
}


@pytest.mark.parametrize("name", UNANSWERED)
def test_a_fit_says_what_it_cannot_answer(name, fit):
    ask, pieces = UNANSWERED[name]
    with pytest.raises(hs.InputError) as caught:
        ask(fit)
    told = str(caught.value)
    assert told.endswith(".")
    for piece in pieces:
        assert piece in told, told


def test_effects_of_arrays_need_no_names():
    fit = hs.regress(AGE + ZINC, AGE[:, None], random_state=0)
    slope = fit.marginal_effects("x0", "latent", AGE[:5, None]).effects[0, 0]
    assert slope == pytest.approx(fit.weights[0, 1], rel=1e-6)


def test_effects_of_numbers_that_are_categories():
    rng = np.random.default_rng(3)
    number = rng.integers(1, 4, 200)
    y = number + rng.normal(size=200)
    for values in (number, number.astype(float)):
        effects = hs.regress("y ~ C(number)", {"number": values, "y": y}).marginal_effects("number")
        means = [y[number == k].mean() for k in (1, 2, 3)]
        np.testing.assert_allclose(
            effects.effects[:, 0], np.subtract(means[1:], means[0]), rtol=1e-7
        )


def test_values_on_their_limit_are_told(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": np.linspace(-1.0, 1.0, 300)})
    hours = table.x + rng.normal(size=300)
    table["hours"], table["ill"] = np.maximum(hours, 0.0), rng.random(300) < 0.5
    table.to_parquet(tmp_path / "hours.parquet", row_group_size=100)
    for data in (table, tmp_path / "hours.parquet"):
        with pytest.warns(hs.AssumptionWarning) as said:
            hs.regress("ill + hours ~ x", data, {"hours": ">=0"}, standard_errors=False)
        assert f"on the limit: hours ({(hours <= 0.0).sum()} times 0)" in str(said[0].message)


@pytest.mark.parametrize("rule", [{"lead": ">=0"}, hs.DetectionLimits(lower=0.0)])
def test_zeros_that_stand_for_what_lies_below_are_asked_about(rule):
    piled = changed(lead=np.maximum(LEAD, 0.0))
    with pytest.warns(hs.AssumptionWarning, match=r"exactly on the limit: lead \(\d+ times 0\)"):
        regress(data=piled, rules=rule)


def test_a_series_is_called_by_its_name():
    frame = pd.DataFrame({"age": AGE, "zinc": ZINC})
    assert hs.regress(frame.zinc, frame[["age"]]).outcomes == ("zinc",)
    assert hs.regress(pd.Series(ZINC), frame[["age"]]).outcomes == ("y0",)
    with pytest.raises(hs.InputError, match="rows with other labels"):
        hs.regress(frame.zinc[::-1], frame[["age"]])


def test_residuals_that_are_as_good_as_zero_are_said_once():
    """Where the likelihood has no top, that is what there is to say, and not that steps ran out."""
    line = 1.0 + 2.0 * AGE + 1e-9 * ZINC
    with pytest.warns(hs.ConvergenceWarning, match="as good as zero"):
        fit = regress(data=changed(lead=np.where(line > 0.0, line, np.nan)))
    assert fit.status.name == "ON_DOMAIN_EDGE"


def test_the_summary_tells_intervals_from_standard_errors_in_small_tables():
    few = {name: column[:14] for name, column in DATA.items()}
    fit = regress("zinc ~ age", few, None)
    low, high = (end[1, 0] for end in fit.confidence_interval().coefficients)
    wider = (high - low) / (2.0 * 1.959964 * fit.standard_errors.weights[0, 1]) - 1.0
    # Student's t with 12 degrees of freedom, and √(14/12).
    assert wider == pytest.approx(2.178813 / 1.959964 * np.sqrt(14 / 12) - 1.0, abs=1e-5)
    assert f"up to {wider:.0%} wider than standard errors" in " ".join(fit.summary().split())
    assert "wider" not in regress("zinc ~ age", {**DATA}, None).summary()


def test_a_limit_among_the_texts_of_a_regressor_is_told():
    """pandas makes texts of all numbers of a column in which one cell is a limit."""
    zinc = [f"{x:.1f}" for x in np.linspace(1.0, 9.0, 20)]
    data = {"lead": np.linspace(0.0, 1.0, 40), "zinc": [*zinc, *zinc[:-1], "<1"]}
    with pytest.warns(
        hs.HalfseenWarning, match="holds 39 numbers, but row 39 has '<1'.* on the left"
    ):
        hs.regress("lead ~ zinc", data)
    words = {"lead": data["lead"], "place": ["1", "2"] * 20}
    assert hs.regress("lead ~ place", words).terms == ("Intercept", "place[T.2]")
