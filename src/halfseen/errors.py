"""Typed errors and warnings.

An error says what was expected, what came (row, column, value) and what to try.
"""


class HalfseenError(Exception):
    """Base of every error that halfseen raises on purpose."""


class InputError(HalfseenError, ValueError):
    """The arguments or the data cannot be used as they are."""


class ContradictionError(InputError):
    """The data contain something that the stated missingness model rules out."""


class NotIdentifiedError(InputError):
    """The data say nothing about a parameter that was asked for."""


class RarelyHitError(HalfseenError, RuntimeError):
    """A set was hit too rarely by the sampler for a gradient to be estimated."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C was pressed, and how far the work had come was written down first."""


class HalfseenWarning(UserWarning):
    """Base of every warning of halfseen."""


class ConvergenceWarning(HalfseenWarning):
    """A solver stopped before, or at the edge of, what it was asked to reach."""


class AssumptionWarning(HalfseenWarning):
    """Something in the input was read in one of several possible ways."""


class ApproximationWarning(HalfseenWarning):
    """A result is less exact than usual, and the message says by how much."""
