"""What small tasks measured once, measured again: errors may not grow beyond their margins.

Times are measured by ``make bench BENCH=guard`` alone: a test must not depend on who else is computing.
"""

import pytest

from benchmarks import guard


@pytest.mark.xdist_group("guard")
@pytest.mark.parametrize(
    "ratio", [one for one in guard.ratios() if not one.is_time], ids=lambda ratio: ratio.what
)
def test_no_ratio_has_grown(ratio):
    now, then = ratio.measure(), guard.recorded()[ratio.what]
    assert now <= ratio.most(then), (
        f"{ratio.what}: {now:.3f}, where {then:.3f} was recorded. If that is meant, record it anew: "
        "make bench BENCH=guard"
    )


def test_all_that_is_recorded_is_measured():
    assert set(guard.recorded()) == {ratio.what for ratio in guard.ratios()}
