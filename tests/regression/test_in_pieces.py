"""Regressions of tables in pieces: the answer in memory, and the same bits however it is done."""

import dataclasses
import functools
import warnings

import numpy as np
import pytest

import halfseen as hs
from halfseen.data.design import Summary
from halfseen.data.table import RowBlocks
from halfseen.data.triangles import lengths_of, triangle_of
from halfseen.errors import ContradictionError, InputError, NotIdentifiedError
from halfseen.solvers.full_information.ascent import Ascent
from halfseen.solvers.regression.layout import Regressors, Whitening
from tests.regression.tables import FORMULAS, SELECTION, heckman

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

ROWS = 900
SITES = {"lead + zinc ~ age + site + C(code) + smokes": {"lead": ">=0.5", "zinc": ">=0.2"}}


def numbers(fit):
    """What was learned, as bytes."""
    parts = [
        fit.weights, fit.residual, fit.log_likelihood, fit.seen_share, *fit.cut_points.values(),
        fit.history["log_likelihoods"],
    ]  # fmt: skip
    parts += [] if fit.covariance is None else [fit.covariance]
    return [np.asarray(one).tobytes() for one in parts]


def agree(one, other, tolerance=1e-9):
    """Whether all that was learned is the same but for rounding."""
    assert (one.outcomes, one.terms, one.kinds) == (other.outcomes, other.terms, other.kinds)
    assert one.categories == other.categories
    assert (one.rows, one.parameters) == (other.rows, other.parameters)
    assert np.array_equal(one.seen_share, other.seen_share)
    assert [note.text for note in one.notes] == [note.text for note in other.notes]
    assert one.design.levels == other.design.levels
    for name in ("weights", "residual", "covariance", "log_likelihood"):
        a, b = (np.asarray(getattr(fit, name)) for fit in (one, other))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max())
    for name, cuts in one.cut_points.items():
        np.testing.assert_allclose(cuts, other.cut_points[name], rtol=tolerance, atol=tolerance)


def sites(seed=0, n=ROWS):
    """Columns of all kinds."""
    rng = np.random.default_rng(seed)
    age, code = rng.uniform(20.0, 70.0, n), rng.integers(1, 5, n)
    site, smokes = np.array(["a", "b", "c"])[rng.integers(0, 3, n)], rng.random(n) < 0.4
    e = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], n)
    lead = 0.02 * age + 0.5 * (site == "b") + 0.1 * code + e[:, 0]
    zinc = 0.01 * age - 0.3 * smokes + e[:, 1]
    return pd.DataFrame(
        {
            "age": age, "site": site, "code": code, "smokes": smokes,
            "lead": np.where(lead >= 0.5, lead, np.nan),
            "zinc": np.where(zinc >= 0.2, zinc, np.nan), "note": "not a number",
        }
    )  # fmt: skip


def selected():
    data, _ = heckman(ROWS)
    return pd.DataFrame(data)


def graded(seed=3, n=200):
    """A binary, an ordered and a continuous outcome, with a category that is rare."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    e = rng.multivariate_normal(np.zeros(3), 0.6 * np.eye(3) + 0.4, n)
    grade = np.array(["low", "mid", "high"])[np.digitize(x[:, 0] + e[:, 1], [-0.5, 1.2])]
    value = 1.0 + 2.0 * x[:, 1] + e[:, 2]
    return pd.DataFrame(
        {
            "x": x[:, 0], "z": x[:, 1], "works": (0.3 + x[:, 0] + e[:, 0]) > 0.0,
            "grade": pd.Categorical(grade, ["low", "mid", "high"], ordered=True),
            "value": value,
        }
    )  # fmt: skip


def compared(n=300):
    """A wage that is seen where it is above a line in another column."""
    rng = np.random.default_rng(5)
    hours, kids = rng.normal(20.0, 4.0, n), rng.integers(0, 4, n).astype(float)
    wage = 0.8 * hours + 3.0 * rng.normal(size=n)
    seen = wage - 2.0 * kids >= 10.0
    return pd.DataFrame({"hours": hours, "kids": kids, "wage": np.where(seen, wage, np.nan)})


CASES = {
    "categories": (next(iter(SITES)), sites, next(iter(SITES.values())), {}),
    "selection": (FORMULAS, selected, SELECTION, {}),
    "an index that is no column": (
        FORMULAS, lambda: selected().drop(columns="works"), SELECTION, {},
    ),
    "latent": ("works + grade + value ~ x + z", graded, None, {}),
    "a line in another column": (
        "wage ~ hours", compared, hs.rules({"wage": "wage - 2*kids >= 10"}), {},
    ),
    "restrictions": (
        "lead + zinc ~ age + site", sites, {"lead": ">=0.5", "zinc": ">=0.2"},
        {"fixed": {"lead": {"age": 0.02}}, "equal": [[("lead", "site[T.c]"), ("zinc", "site[T.c]")]],
         "covariance": "diagonal"},
    ),
    "robust": ("lead ~ age", sites, {"lead": ">=0.5"}, {"robust": True}),
}  # fmt: skip


def files(folder, frame, parts, **options):
    """Write a frame to Parquet files of a folder."""
    folder.mkdir()
    for k, rows in enumerate(np.array_split(np.arange(len(frame)), parts)):
        frame.iloc[rows].to_parquet(folder / f"{k}.parquet", **options)
    return folder


@pytest.mark.parametrize("case", CASES)
def test_one_piece_is_the_table_in_memory(case, tmp_path, monkeypatch):
    """The cut into blocks is the same then, so that the draws of sampled cells are."""
    # As where there are many rows: pieces do not ask what estimates without each of them would be.
    monkeypatch.setattr("halfseen.regression.errors.MOST_GROUPS", 0)
    formula, make, rule, options = CASES[case]
    frame = make()
    whole = hs.regress(formula, frame, rule, random_state=0, **options)
    path = str(files(tmp_path / "data", frame, 1))
    # Rows under a line are sampled: a climb ends within noise, and rounding has more of a say.
    tolerance = 1e-6 if case == "a line in another column" else 1e-9
    agree(hs.regress(formula, path, rule, random_state=0, **options), whole, tolerance)


@pytest.mark.parametrize("case", ["categories", "latent", "a line in another column"])
def test_the_same_bits_with_threads_and_files(case, tmp_path, monkeypatch):
    """Three pieces: with two threads, and with every block in a file."""
    formula, make, rule, options = CASES[case]
    path = files(tmp_path / "data", make(), 3)
    options = {**options, "random_state": 0}
    one = hs.regress(formula, path, rule, n_jobs=1, **options)
    monkeypatch.setattr("halfseen.scaling.local.LocalEngine._room", lambda self: 0)
    two = hs.regress(formula, path, rule, n_jobs=2, memory="2GB", scratch=tmp_path, **options)
    assert numbers(one) == numbers(two)
    # The rows are the same ones, however they are cut.
    whole = hs.regress(formula, make(), rule, **options)
    assert (
        np.abs(one.weights - whole.weights).max()
        < 0.05 * whole.standard_errors.weights[whole.free].min()
    )


def test_categories_are_those_of_all_files(tmp_path):
    """Each file has its own, and their order is that of the column, or of the alphabet."""
    frame = sites()
    frame["site"] = np.repeat(["c", "b", "a"], ROWS // 3)
    frame["ward"] = pd.Categorical(
        np.repeat(["north", "east", "north"], ROWS // 3), ["north", "east", "west"]
    )
    path = files(tmp_path / "data", frame.sample(frac=1.0, random_state=0), 1) / "0.parquet"
    apart = files(tmp_path / "apart", frame, 3)
    rule = {"lead": ">=0.5"}
    # One ward in each file, so that the wards of the last two sites are mixed by ages alone.
    formula = "lead ~ age + site + C(code, levels=[4, 3, 2, 1])"
    one, three = (hs.regress(formula, one, rule, random_state=0) for one in (path, apart))
    assert one.terms == three.terms
    assert three.design.levels["site"] == ("a", "b", "c")
    assert three.terms[4:] == tuple(f"C(code, levels=[4, 3, 2, 1])[T.{k}]" for k in (3, 2, 1))
    np.testing.assert_allclose(one.weights, three.weights, rtol=1e-6, atol=1e-8)
    wards = hs.regress("lead ~ age + ward", apart, rule, random_state=0)
    assert wards.design.levels["ward"] == ("north", "east")


def arrays(n=600, seed=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Y = np.column_stack([1.0 + X @ [0.5, -1.0], X @ [1.0, 0.2]]) + rng.normal(size=(n, 2))
    return np.where(Y >= 0.0, Y, np.nan), X


def test_arrays_and_memmaps(tmp_path):
    Y, X = arrays()
    rule = hs.DetectionLimits(lower=np.full(Y.shape, 0.0))
    whole = hs.regress(Y, X, rule, random_state=0, names=["a", "b"])
    for name, array in (("Y", Y), ("X", X)):
        np.save(tmp_path / f"{name}.npy", array)
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "YX"]
    one = hs.regress(*mapped, rule, random_state=0, names=["a", "b"])
    agree(one, whole)
    assert numbers(one) == numbers(
        hs.regress(Y, X, rule, random_state=0, names=["a", "b"], memory="2GB")
    )
    both = np.hstack([Y, X])
    np.save(tmp_path / "both.npy", both)
    named = hs.regress(
        "x0 + x1 ~ x2 + x3", np.load(tmp_path / "both.npy", mmap_mode="r"),
        {"x0": ">=0", "x1": ">=0"}, random_state=0,
    )  # fmt: skip
    np.testing.assert_allclose(named.weights, whole.weights, rtol=1e-8)
    single = hs.regress(mapped[0][:, 0], mapped[1][:, 0], rules={"y0": ">=0"})
    assert single.terms == ("Intercept", "x0")


def test_dask_without_a_cluster():
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    Y, X = arrays()
    rule = hs.DetectionLimits(lower=0.0)
    whole = hs.regress(Y, X, rule, random_state=0)
    one = hs.regress(
        da.from_array(Y, chunks=(200, 1)), da.from_array(X, chunks=(600, 2)), rule, random_state=0
    )
    np.testing.assert_allclose(one.weights, whole.weights, rtol=1e-8)
    frame, (formula, rules) = sites(), next(iter(SITES.items()))
    parts = dd.from_pandas(frame, npartitions=3)
    np.testing.assert_allclose(
        hs.regress(formula, parts, rules, random_state=0).weights,
        hs.regress(formula, frame, rules, random_state=0).weights,
        rtol=1e-7, atol=1e-9,
    )  # fmt: skip


def test_row_blocks_and_frames_with_a_limit_of_memory(tmp_path):
    frame = sites()
    columns = ["age", "code", "lead"]
    path = files(tmp_path / "data", frame[columns], 2)
    rule = {"lead": ">=0.5"}
    one = hs.regress("lead ~ age + C(code)", path, rule, random_state=0)
    two = hs.regress("lead ~ age + C(code)", hs.scan_parquet(path), rule, random_state=0)
    assert numbers(one) == numbers(two)
    held = hs.regress(next(iter(SITES)), frame, rule, random_state=0, memory="2GB")
    agree(held, hs.regress(next(iter(SITES)), frame, rule, random_state=0))


def test_cells_that_are_missing_at_random(tmp_path):
    frame = sites()
    mask = np.zeros((ROWS, 2), dtype=bool)
    mask[::7, 0] = True
    frame.loc[mask[:, 0], "lead"] = np.nan
    formula, rule = next(iter(SITES.items()))
    asked = {"missing_at_random": mask, "random_state": 0}
    whole = hs.regress(formula, frame, rule, **asked)
    agree(hs.regress(formula, files(tmp_path / "a", frame, 1), rule, **asked), whole)
    three = hs.regress(formula, files(tmp_path / "b", frame, 3), rule, **asked)
    np.testing.assert_allclose(three.weights, whole.weights, rtol=1e-7, atol=1e-9)
    with pytest.raises(InputError, match="missing_at_random must be a boolean array of shape"):
        hs.regress(formula, tmp_path / "b", rule, missing_at_random=mask[:, 0])


def test_blank_cells_that_no_rule_explains(tmp_path):
    path = files(tmp_path / "data", sites(), 3)
    hidden = int(sites()["zinc"].isna().sum())
    with pytest.warns(hs.AssumptionWarning, match=rf"zinc \({hidden}\), and no rule says why"):
        hs.regress("zinc ~ age", path)


class Stopped(Exception):
    """Something that ends a run in the middle of a step."""


@pytest.mark.parametrize(("case", "parts"), [("categories", 0), ("selection", 2), ("latent", 2)])
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(case, parts, tmp_path, monkeypatch):
    """In memory and in pieces; where cut points are learned there are several climbs."""
    formula, make, rule, _ = CASES[case]
    data = files(tmp_path / "data", make(), parts) if parts else make()
    ask = functools.partial(hs.regress, formula, data, rule, random_state=0)
    whole, path = ask(), tmp_path / "run.hsckpt"
    step, done = Ascent.step, []

    def stopped(self, state):
        done.append(self.climb_only)
        # Climbs of some rows are not written down.
        if len(done) - sum(done) > 2:
            raise Stopped
        return step(self, state)

    with monkeypatch.context() as patched:
        patched.setattr(Ascent, "step", stopped)
        with pytest.raises(Stopped):
            ask(checkpoint=path, every=0.0)
    assert numbers(ask(checkpoint=path, every=0.0, resume=True)) == numbers(whole)
    with pytest.raises(InputError, match="is there already"):
        ask(checkpoint=path)
    with pytest.raises(InputError, match="the checkpoint of another run: of another accuracy"):
        ask(checkpoint=path, resume=True, accuracy=0.2)


class TestErrors:
    @pytest.fixture
    def folder(self, tmp_path):
        return files(tmp_path / "data", sites(), 3)

    def broken(self, tmp_path, row, column, value):
        """One cell of the second file of two is another."""
        frame = sites()
        if isinstance(value, str):
            frame[column] = frame[column].astype(object)
        frame.loc[ROWS // 2 + row, column] = value
        return files(tmp_path / "broken", frame, 2)

    @pytest.mark.parametrize(
        ("column", "value", "sentence"),
        [
            ("age", np.nan, "the value is missing, but regressors must be known in every row"),
            ("age", np.inf, "the value is inf; regressors must be finite"),
            ("site", None, "the value is missing, but regressors must be known in every row"),
            ("lead", 0.1, "the value 0.1"),
            ("lead", np.inf, "the value is inf; values must be finite"),
        ],
    )
    def test_a_cell_is_named_by_its_file(self, tmp_path, column, value, sentence):
        path = self.broken(tmp_path, 5, column, value)
        formula, rule = next(iter(SITES.items()))
        with pytest.raises(InputError) as caught:
            hs.regress(formula, path, rule)
        assert sentence in str(caught.value)
        assert f"row 5 of {path / '1.parquet'} (row {ROWS // 2 + 5} of all)" in str(caught.value)

    def test_a_value_that_a_function_does_not_take(self, tmp_path):
        path = self.broken(tmp_path, 5, "age", -1.0)
        with pytest.raises(InputError, match=r"row 5 of .*1\.parquet.*log\(age\).* is nan"):
            hs.regress("lead ~ log(age)", path, {"lead": ">=0.5"})

    @pytest.mark.parametrize("call", ["center(age)", "scale(age)", "poly(age, 2)", "bs(age, df=4)"])
    def test_what_learns_from_all_rows(self, folder, call):
        with pytest.raises(InputError, match="learns from all rows, which are read in pieces"):
            hs.regress(f"lead ~ {call}", folder, {"lead": ">=0.5"})

    @pytest.mark.parametrize(
        ("formula", "sentence"),
        [
            ("lead ~ agee", "the regressor 'agee' is not in the data; did you mean 'age'"),
            ("leads ~ age", "the outcome 'leads' is not in the data; did you mean 'lead'"),
            ("lead ~ age + note", "has the same category in all rows"),
            ("lead ~ age + I(2 * age)", r"I\(2 \* age\) = 2 age in every row"),
            ("lead ~ age + I(0 * age)", "is 0 in every row"),
            ("note ~ age", "note holds texts, such as 'not a number'. Say its categories"),
            ("lead ~ lead", "is an outcome and stands among the regressors too"),
        ],
    )
    def test_formulas(self, folder, formula, sentence):
        with pytest.raises(InputError, match=sentence):
            hs.regress(formula, folder, {"lead": ">=0.5"} if "lead " in formula else None)

    def test_what_needs_the_table(self, folder):
        rule = {"lead": ">=0.5"}
        fit = hs.regress("lead ~ age", folder, rule, random_state=0)
        for ask in (
            fit.residuals, fit.predict, fit.simulate, fit.draw_imputations, fit.robust,
            lambda: fit.marginal_effects("age"),
        ):  # fmt: skip
            with pytest.raises(InputError, match=r"table|rows"):
                ask()
        new = sites(1).head()
        assert fit.predict(new, kind="seen").shape == (5, 1)
        assert fit.marginal_effects("age", new=new).effects.shape == (1, 1)
        for asked in ({"cluster": "site"}, {"truncated": {"lead": ">=0"}}):
            with pytest.raises(InputError, match="needs the table in memory"):
                hs.regress("lead ~ age", folder, None if "truncated" in asked else rule, **asked)

    def test_outcomes(self, tmp_path):
        frame = sites()
        frame["works"] = (frame["age"] > 40.0).astype(float)
        frame["grade"] = np.resize(["low", "mid", "top"], ROWS)
        folder = files(tmp_path / "data", frame, 2)
        with pytest.raises(InputError, match="works holds 0 and 1 alone"):
            hs.regress("works ~ code", folder)
        with pytest.raises(NotIdentifiedError, match=r"of age.* no finite estimate"):
            hs.regress("works ~ age", folder, kinds={"works": "binary"})
        with pytest.raises(NotIdentifiedError, match="category high has no row"):
            hs.regress("grade ~ age", folder, kinds={"grade": ["low", "mid", "top", "high"]})
        with pytest.raises(InputError, match="the value is 'mid', but"):
            hs.regress("grade ~ age", folder, kinds={"grade": ["low", "top"]})
        with pytest.raises(InputError, match="but has 900 values"):
            hs.regress("age ~ code", folder, kinds={"age": "binary"})
        frame["lead"] = np.nan
        with pytest.raises(NotIdentifiedError, match="lead is hidden in all of its 900 rows"):
            hs.regress("lead ~ age", files(tmp_path / "none", frame, 2), {"lead": ">=0.5"})

    def test_columns_that_hold_nothing_at_first(self, tmp_path):
        frame = sites().astype({"smokes": object})
        frame.loc[: ROWS // 2 - 1, "smokes"] = None
        folder = files(tmp_path / "data", frame, 2)
        with pytest.raises(InputError, match=r"row 0 of .*1\.parquet.*{'smokes': 'binary'}"):
            hs.regress("smokes ~ age", folder)
        with pytest.warns(hs.AssumptionWarning, match=rf"smokes \({ROWS // 2}\)"):
            fit = hs.regress("smokes ~ age", folder, kinds={"smokes": "binary"})
        assert fit.categories["smokes"] == (False, True)
        with pytest.raises(InputError, match=r"row 0 of .*0\.parquet.* the value is missing"):
            hs.regress("lead ~ smokes", folder, {"lead": ">=0.5"})

    def test_tables(self, folder, tmp_path):
        Y, X = arrays(40)
        with pytest.raises(InputError, match="read in pieces are both Dask arrays, or both NumPy"):
            hs.regress(hs.scan_parquet(folder, ["lead"]), X)
        with pytest.raises(InputError, match="tables with the same rows; got shapes"):
            hs.regress(Y, X[:30], memory="2GB")
        with pytest.raises(InputError, match="names must be 2, one for each outcome; got 1"):
            hs.regress(Y, X, memory="2GB", names=["a"])
        data = hs.IntervalData(Y, Y, ["a", "b"])
        with pytest.raises(InputError, match="is for tables of numbers"):
            hs.regress("a ~ b", data, memory="2GB")
        frame = sites().head(40)
        odd = files(tmp_path / "odd", frame, 1)
        frame.astype({"age": str}).to_parquet(odd / "b.parquet")
        with pytest.raises(InputError, match=r"column 'age' has type .*string, but double in"):
            hs.regress("lead ~ age", odd, {"lead": ">=0.5"})
        with pytest.raises(InputError, match="no Parquet files match"):
            hs.regress("lead ~ age", str(tmp_path / "*.parquet"))
        blocks = RowBlocks(("a", "b"), (hs.scan_parquet(folder, ["age", "lead"]).pieces[0],), (7,))
        with pytest.raises(InputError, match="has 300 rows, but 7 were told"):
            hs.regress("lead ~ age", dataclasses.replace(blocks, names=("age", "lead")))

    def test_a_value_that_contradicts_selection(self, tmp_path):
        frame = selected()
        row = int(np.flatnonzero(~frame["works"])[-1])
        frame.loc[row, "wage"] = 3.0
        folder = files(tmp_path / "data", frame, 2)
        with pytest.raises(ContradictionError, match=rf"row {row - ROWS // 2} of .*1\.parquet"):
            hs.regress(FORMULAS, folder, SELECTION)


class TestParts:
    def test_triangles_of_parts_are_those_of_the_whole(self):
        """Against the products of a well-conditioned matrix, and the lengths of a badly scaled one."""
        rng = np.random.default_rng(0)
        A = rng.normal(size=(9000, 3))
        R = triangle_of(triangle_of(A[:5000]), triangle_of(A[5000:]))
        np.testing.assert_allclose(R.T @ R, A.T @ A, rtol=1e-12, atol=1e-9)
        far = np.array([[3e200, 1e-200], [4e200, 0.0]])
        np.testing.assert_allclose(lengths_of(far), [5e200, 1e-200], rtol=1e-15)

    def test_whitening_of_pieces_is_that_of_the_table(self):
        """Columns of sizes that are 10¹² apart, one that is constant, and one that repeats others."""
        rng = np.random.default_rng(1)
        W = rng.normal(size=(500, 4)) * [1.0, 1e-6, 1e6, 1.0] + [0.0, 1.0, 1e5, 5.0]
        W = np.column_stack([np.ones(500), W, W[:, 0] + 2.0 * W[:, 3]])
        constant = np.column_stack([np.ones(500), W])
        halves = [Summary.of(constant[:200]), Summary.of(constant[200:])]
        found = Whitening.of((halves[0] + halves[1]).triangle, 500)
        whole, X = Regressors.of(W), found.covariates(W)
        assert found.T.shape == whole.T.shape == (5, 6)
        np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-8)
        np.testing.assert_allclose(X.T @ X, 500 * np.eye(4), atol=1e-7)
        back = found.T[0] + X @ found.T[1:]
        np.testing.assert_allclose(
            back / np.abs(W).max(axis=0), W / np.abs(W).max(axis=0), atol=1e-9
        )


def test_quietly():
    """Nothing is warned of where nothing is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hs.regress(*arrays(), hs.DetectionLimits(lower=0.0), memory="2GB", random_state=0)
