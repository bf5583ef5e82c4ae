"""Lines that miss by chance are judged by other tables, and only those."""

import pytest

from benchmarks import two_stages
from benchmarks.two_stages import Share, TwoStages


@pytest.fixture
def asked(monkeypatch):
    """Seeds that were asked for, without processes."""
    seeds = []

    def many(work, items):
        seeds.append(items)
        return [work(item) for item in items]

    monkeypatch.setattr(two_stages, "many", many)
    return seeds


def share(answers, slack=0.0):
    return Share(sum(answers) / len(answers), f" of {len(answers)}", slack)


def test_a_line_on_its_target_is_judged_by_the_first_tables(asked):
    row = TwoStages(lambda seed: seed % 10 != 0).row("x", share, (0.85, 0.95))
    assert (row.measured, row.target, row.met) == ("0.900 of 200", "0.85 to 0.95", True)
    assert asked == [range(200)]


@pytest.mark.parametrize(("later", "said"), [(0.96, True), (0.5, False)])
def test_a_line_that_misses_is_judged_by_other_tables(asked, later, said):
    stages = TwoStages(lambda seed: seed < 200 or seed % 100 < 100 * later)
    row = stages.row("x", share, (0.93, 0.97))
    assert row.measured == f"1.000; of 1000 other tables {later:.3f} of 1000"
    assert row.met is said
    # Another line of the same tables costs nothing more.
    stages.row("y", share, (0.93, 0.97))
    assert asked == [range(200), range(200, 1200)]


def test_tables_that_cannot_be_judged_are_left_out(asked):
    row = TwoStages(lambda seed: None if seed % 2 else True, 20).row("x", share, (0.9, 1.0))
    assert (row.measured, row.target) == ("1.000 of 10", "0.90 or more")


def test_few_tables_are_given_more_room_and_fewer_others(asked):
    row = TwoStages(lambda seed: seed % 2 == 0, 10).row(
        "x", lambda found: share(found, slack=0.2), (0.8, 1.0)
    )
    assert (row.measured, row.met) == ("0.500; of 50 other tables 0.500 of 50", False)
    assert asked == [range(10), range(10, 60)]
