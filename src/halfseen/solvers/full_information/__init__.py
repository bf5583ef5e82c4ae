"""``full``: every value, and every hole, by stochastic expectation maximisation."""

from halfseen.solvers.full_information.full import full

__all__ = ["full"]
