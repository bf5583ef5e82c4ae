import json

import numpy as np
import pytest

import halfseen as hs
from halfseen.cli.demonstrate import run_demo
from halfseen.solvers.summary import _with_error, shorten

SCREEN = (80, 48)


@pytest.fixture(scope="module")
def demo():
    return run_demo().fit


def test_the_demo_fits_on_one_screen_and_says_what_a_supplement_needs(demo):
    text = demo.summary()
    lines = text.splitlines()
    assert max(map(len, lines)) <= SCREEN[0]
    assert len(lines) <= SCREEN[1]
    for part in (
        "Multivariate normal distribution of 9 columns, 178 rows",
        "of the cells hidden",
        "full-information maximum likelihood",
        "(s.e.)",
        "95 % interval",
        "geometric mean",
        "Converged",
        "Standard errors are from the observed information",
    ):
        assert part in " ".join(text.split()), part
    for name in demo.names:
        assert any(line.startswith(name) for line in lines)


def test_estimates_have_the_digits_that_their_errors_leave(demo):
    assert _with_error(1.23456, 0.0123) == ("1.235", "(0.012)")
    assert _with_error(1234.56, 12.3) == ("1235", "(12)")
    assert _with_error(123456.0, 2345.0) == ("123456", "(2345)")
    assert _with_error(1.5e-9, 2e-11) == ("1.5e-09", "(2e-11)")
    assert _with_error(2.0, 0.0) == ("2", "(known)")
    assert _with_error(2.0, None) == ("2", "")
    assert _with_error(2.0, np.nan) == ("2", "")


def test_original_units_are_shown_for_transformed_columns():
    X = np.exp(hs.simulate(hs.Gaussian([0, 0], np.eye(2)), hs.DetectionLimits(lower=-0.5), 200, 0))
    rule = hs.DetectionLimits(lower=np.exp(-0.5))
    text = hs.fit(X, rule, transforms="log", random_state=0).summary()
    assert "geometric mean" in text
    assert "Scale of the model: log." in " ".join(text.split())
    mixed = hs.fit(X, rule, transforms=["log", "none"], random_state=0).summary()
    assert "median" in mixed
    assert "geometric" not in mixed
    assert "log (x0); none (x1)" in " ".join(mixed.split())
    assert max(map(len, f"{text}\n{mixed}".splitlines())) <= 80


def test_names_stay_on_their_line():
    assert shorten("a\nb", 10) == "a b"
    assert shorten("abcdef", 4) == "abc…"
    assert shorten(" ", 4) == "' '"


def test_plain_data_are_the_answer_itself_and_survive_json(demo):
    record = demo.to_dict()
    back = json.loads(json.dumps(record, allow_nan=False))
    assert back == record
    for j, name in enumerate(demo.names):
        assert back["mean"][name] == demo.gaussian.mean[j]
        assert back["standard_errors"]["mean"][name] == demo.uncertainty.mean[j]
        assert back["intervals"]["mean"]["lower"][name] == demo.confidence_interval().mean.lower[j]
    a, b = demo.names[:2]
    assert back["covariance"][a][b] == demo.gaussian.covariance[0, 1]
    assert back["intervals"]["level"] == 0.95
    assert back["transforms"][a] == "log10"
    assert back["status"] == "CONVERGED"
    assert back["seed"] == 0


def test_what_is_not_known_is_null():
    X = hs.simulate(hs.Gaussian([0, 0], np.eye(2)), hs.DetectionLimits(lower=-0.5), 200, 0)
    record = hs.fit(X, hs.DetectionLimits(lower=-0.5), "pairwise").to_dict()
    assert record["standard_errors"] is None
    assert record["intervals"] is None
    assert record["original_scale"]["median_lower"]["x0"] is None
    json.dumps(record, allow_nan=False)


def test_names_do_not_steer_the_terminal():
    X = hs.simulate(hs.Gaussian([0.0, 0.0], np.eye(2)), hs.DetectionLimits(lower=-1.0), 300, 0)
    fit = hs.fit(X, hs.DetectionLimits(lower=-1.0), names=["a\x1b[31m", "b\x07"], random_state=0)
    assert "\x1b" not in fit.summary()
    assert "a\N{REPLACEMENT CHARACTER}[31m" in fit.summary()


def test_correlations_that_were_not_learned_are_not_listed_as_if_they_were():
    rule = hs.DetectionLimits(lower=0.0)
    X = hs.simulate(hs.Gaussian([1.0, 0.5, 0.2], np.eye(3)), rule, 400, random_state=0)
    text = hs.fit(X, rule, covariance="diagonal", random_state=0).summary()
    assert "Correlations are 0 by the structure of the covariance." in text
    assert "+0.000" not in text
    R = np.eye(3)
    R[0, 1] = R[1, 0] = 0.3
    text = hs.fit(X, rule, correlation=R, random_state=0).summary()
    (line,) = [line for line in text.splitlines() if "~" in line]
    assert line.split()[-2:] == ["+0.300", "known"]
    assert "2 more are 0 by the structure" in text
