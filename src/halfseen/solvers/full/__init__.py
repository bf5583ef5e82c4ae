"""``full``: every value, and every hole, by stochastic expectation maximisation."""

from halfseen.solvers.full.full import full

__all__ = ["full"]
