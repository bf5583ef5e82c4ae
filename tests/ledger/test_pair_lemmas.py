"""The two lemmas of section 3: their rows can fail."""

import pytest

from halfseen.ledger import designs
from halfseen.ledger.registry import CLAIMS, check_claim


@pytest.mark.parametrize("lemma", ["lemma-mean", "lemma-covariance"])
def test_an_estimate_twice_as_far_off_is_noticed(lemma, monkeypatch):
    true = designs.constants

    def halved(*place):
        alpha, *errors = true(*place)
        return alpha, *(0.5 * c for c in errors)

    monkeypatch.setattr(designs, "constants", halved)
    entry = check_claim(CLAIMS[f"{lemma}/constant"], quick=True)
    assert not entry.holds
    # Not because the row broke down: it is the constant that is off.
    assert "n^-0." in entry.measured
