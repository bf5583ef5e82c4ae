"""Verdicts: errors as multiples of a limit, coverage, and who is compared with whom."""

from dataclasses import replace

import numpy as np
import pytest

import halfseen as hs
from benchmarks.comparison.compare import targets
from benchmarks.comparison.judge import Verdict, judge, measures
from benchmarks.comparison.problems import Size, task_of
from benchmarks.comparison.processes import Outcome, Tool
from benchmarks.limits import Limit

TRUTH = hs.Gaussian([1.0, -1.0], [[4.0, 1.0], [1.0, 1.0]])
PEER = Tool("peer", "A peer", "peer", "no_program", ("limits",), "As its documentation advises.")
AUTO = replace(PEER, name="auto", group="ours")


def limit(rows=100):
    """Limits of complete data: d/n for the mean, d(d+1)/n for the covariance."""
    S = TRUTH.covariance
    variances = np.diag(S)
    entries = np.sqrt((np.outer(variances, variances) + S**2) / rows)
    return Limit(np.sqrt(variances / rows), entries, np.sqrt(2 / rows), np.sqrt(6 / rows))


def answer(table, mean, covariance, **more):
    return {
        "table": table, "seconds": 2.0, "peak": 100,
        "mean": np.asarray(mean).tolist(), "covariance": np.asarray(covariance).tolist(), **more,
    }  # fmt: skip


def test_complete_data_are_at_their_limit():
    rng, rows, tables = np.random.default_rng(0), 100, 2000
    answers = []
    for table in range(tables):
        Y = TRUTH.sample(rows, rng)
        answers.append(answer(table, Y.mean(axis=0), np.cov(Y.T)))
    found = measures(answers, TRUTH, limit(rows))
    # A mean of 2000 squared errors, whose own standard deviation is at most twice their mean (chi-square
    # with a degree of freedom has √2, and kurtosis adds to it): half of 2/√2000 for the root, times
    # four. Unbiased variances have n − 1 in place of n: half a per cent.
    for name in ("mean", "covariance", "entries", "variances"):
        assert found[name] == pytest.approx(1.0, abs=4 * 2 / np.sqrt(tables) / 2 + 0.005)


def test_an_error_in_one_entry_is_counted_in_units_of_its_limit():
    S = TRUTH.covariance.copy()
    S[0, 1] = S[1, 0] = S[0, 1] + 3.0 * limit().covariance[0, 1]
    found = measures([answer(0, TRUTH.mean, S)], TRUTH, limit())
    assert found["mean"] == 0.0
    assert found["variances"] == 0.0
    assert found["entries"] == pytest.approx(3.0 / np.sqrt(3))
    assert found["covariance"] == pytest.approx(
        hs.metrics.relative_frobenius_error(S, TRUTH) / limit().frobenius
    )


def test_a_part_of_a_covariance_is_not_compared_with_a_whole_one():
    S = TRUTH.covariance.astype(object)
    S[0, 1] = S[1, 0] = None
    found = measures([answer(0, TRUTH.mean, S)], TRUTH, limit())
    assert found["covariance"] is None
    assert found["entries"] is None
    assert found["variances"] == 0.0


def test_entries_that_everyone_is_told_do_not_count():
    bare = limit()
    entries = np.where(np.eye(2) > 0, bare.covariance, np.nan)
    S = np.where(np.eye(2) > 0, TRUTH.covariance, None)
    truth = hs.Gaussian(TRUTH.mean, np.diag(np.diag(TRUTH.covariance)))
    found = measures([answer(0, TRUTH.mean, S)], truth, Limit(bare.mean, entries, 1.0, 1.0))
    assert found["covariance"] == 0.0
    assert found["entries"] == 0.0


def test_intervals_for_what_everyone_is_told_do_not_count():
    bare = limit()
    entries = np.where(np.eye(2) > 0, bare.covariance, np.nan)
    # Right about the entry off the diagonal, which is told, and wrong about both variances.
    ends = [[[9.0, 1.0], [1.0, 9.0]], [[9.5, 1.0], [1.0, 9.5]]]
    found = measures(
        [answer(0, TRUTH.mean, TRUTH.covariance, covariance_interval=ends)],
        TRUTH,
        Limit(bare.mean, entries, 1.0, 1.0),
    )
    assert found["covariance_coverage"] == 0.0


def test_coverage_is_the_share_of_intervals_that_hold_the_truth():
    inside = [[0.0, 0.0], [2.0, -0.5]]  # 1 is in (0, 2), -1 is not in (0, -0.5)
    found = measures(
        [answer(0, TRUTH.mean, TRUTH.covariance, mean_interval=inside)], TRUTH, limit()
    )
    assert found["mean_coverage"] == 0.5
    assert found["covariance_coverage"] is None


def test_a_tool_is_compared_with_auto_on_the_tables_that_it_answered():
    good, bad = TRUTH.covariance, 1.5 * TRUTH.covariance
    ours = Outcome([answer(0, TRUTH.mean, good), answer(1, TRUTH.mean, bad)])
    theirs = Outcome([answer(1, TRUTH.mean, bad)], trouble="no answer in 9 s")
    verdict = judge(PEER, theirs, TRUTH, limit(), ours)
    assert verdict.tables == 1
    assert verdict.covariance == verdict.auto_covariance > 0
    assert verdict.trouble == "no answer in 9 s"
    assert judge(AUTO, ours, TRUTH, limit(), ours).covariance < verdict.covariance


def test_a_tool_without_answers_has_only_its_trouble():
    verdict = judge(PEER, Outcome(trouble="failed: no"), TRUTH, limit(), None)
    assert verdict.kept() == {
        "tool": "peer", "title": "A peer", "group": "peer", "uses": "the data",
        "tables": 0, "trouble": "failed: no",
    }  # fmt: skip


def found_by(name, group="peer", covariance=1.0, seconds=1.0, auto=1.02, uses="the data"):
    return Verdict(
        name, name, group, uses, 1, 1.0, covariance, seconds=seconds, auto_covariance=auto,
        auto_seconds=0.1,
    )  # fmt: skip


LEFT = task_of("left", Size(10, 2000, 3))
OURS = found_by("auto", "ours", 1.02)


@pytest.mark.parametrize(
    ("covariance", "seconds", "met"),
    [(1.0, 2.5, [True, True]), (0.98, 2.5, [False, True]), (1.0, 1.9, [True, False])],
)
def test_auto_has_to_be_sharpest_and_twenty_times_faster(covariance, seconds, met):
    verdicts = [
        OURS,
        found_by("complete", "oracle", 0.8, uses="hidden values"),
        found_by("slow", covariance=covariance, seconds=seconds),
        found_by("worse", covariance=1.5, seconds=0.001),
    ]
    assert [row.met for row in targets(LEFT, verdicts)] == met


def test_the_fastest_of_those_near_the_best_peer_counts():
    verdicts = [
        OURS,
        found_by("best", seconds=50.0),
        found_by("near", covariance=1.02, seconds=1.0),
    ]
    sharp, fast = targets(LEFT, verdicts)
    assert sharp.met
    assert not fast.met
    assert fast.measured == "10.0; 500"
    assert "near; best" in fast.what


def test_tools_are_compared_on_the_tables_that_they_answered():
    # On its own easy table this one is worse than auto, though its error is the lowest number of all.
    verdicts = [OURS, found_by("easy", covariance=0.6, auto=0.5), found_by("hard", covariance=1.1)]
    sharp, _ = targets(LEFT, verdicts)
    assert "(hard)" in sharp.what
    assert sharp.measured == "0.927"


def test_without_a_peer_that_answers_nothing_is_claimed_of_time():
    verdicts = [OURS, found_by("half", "baseline", 3.0)]
    assert [row.met for row in targets(LEFT, verdicts)] == [True, None]
