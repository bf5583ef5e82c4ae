"""Ways to break the chain of Algorithm 5, for tests that see rows fail."""

from halfseen.samplers import projected_langevin


def multiply_drift(monkeypatch, factor):
    """Break the chain: its drift is multiplied."""
    true = projected_langevin.langevin_chain

    def chain(u, mean, A, c, radius, eta, drift, noise):
        true(u, mean, A, c, radius, eta, factor * drift, noise)

    monkeypatch.setattr(projected_langevin, "langevin_chain", chain)
