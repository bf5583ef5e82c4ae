"""``full``: every value, and every hole: the top of the likelihood of what is seen."""

from halfseen.solvers.full_information.full import full

__all__ = ["full"]
