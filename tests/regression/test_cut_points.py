"""Derivatives in cut points: in closed form, and as differences."""

import numpy as np
import pytest

import halfseen as hs
from halfseen.solvers.regression import cut_points, learn_regression

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
GRADE = np.digitize(X[:, 0] + RNG.normal(size=300), [-1.0, 0.2, 0.9]).astype(float)
DATA = {"grade": GRADE, "x": X[:, 0], "z": X[:, 1], "heavy": RNG.uniform(0.5, 2.0, 300)}
OPTIONS = {
    "plain": {},
    "some are not known": {"unknown": 20},
    "weights": {"weights": "heavy"},
    "a fixed slope": {"fixed": {"grade": {"z": 0.1}}},
    "equal slopes": {"equal": [[("grade", "x"), ("grade", "z")]]},
}


@pytest.mark.filterwarnings("ignore:cells are blank")
@pytest.mark.parametrize("name", OPTIONS)
def test_closed_forms_are_what_differences_tend_to(name, monkeypatch):
    """Steps of 3e-3 err by some 1e-5 of a second derivative, and rounding by 1e-15 · 300 / 1e-5."""
    options = dict(OPTIONS[name])
    data = dict(DATA)
    data["grade"] = np.where(np.arange(300) < options.pop("unknown", 0), np.nan, GRADE)
    pairs = []

    class Both(cut_points.Slopes):
        @classmethod
        def at(cls, *where):
            exact, ref = super().at(*where), cls._by_differences(*where)
            pairs.append((exact, ref))
            return exact

    monkeypatch.setattr(learn_regression, "Slopes", Both)
    hs.regress("grade ~ x + z", data, kinds={"grade": "ordered"}, random_state=0, **options)
    assert pairs
    for exact, ref in pairs:
        size = np.abs(ref.second).max()
        np.testing.assert_allclose(exact.first, ref.first, atol=1e-6 * size)
        np.testing.assert_allclose(exact.second, ref.second, atol=1e-4 * size)
        np.testing.assert_allclose(exact.across, ref.across, atol=1e-4 * size)
