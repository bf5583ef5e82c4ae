"""What a solver returns: the Gaussian, how it went in a sentence, and what to know about it."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.table import labelled
from halfseen.errors import ConvergenceWarning, InputError, warn
from halfseen.gaussian import Gaussian
from halfseen.solvers.inference.uncertainty import StandardErrors

if TYPE_CHECKING:
    from halfseen.data.powers import LearnedPower
    from halfseen.data.transforms import Transform
    from halfseen.missingness.base import Missingness
    from halfseen.solvers.loss import Loss


class Status(enum.Enum):
    """How a fit ended, from best to worst. The value is a sentence for people.

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.Status.CONVERGED.value
    'The solver settled on an answer inside its domain.'
    >>> hs.Status.PROJECTED.severity < hs.Status.NOT_CONVERGED.severity
    True
    """

    CONVERGED = "The solver settled on an answer inside its domain."
    NO_GLOBAL_GUARANTEE = (
        "The likeliest of several starts was followed to its end, but the likelihood may have more than "
        "one peak (under linear thresholds with an unknown covariance, or where values hide on both "
        "sides): no theorem says that this is the highest."
    )
    REGULARISED = (
        "There are less than two rows for each column, so correlations were pulled towards zero to "
        "make the covariance usable."
    )
    AT_BOUND = (
        "A parameter of the structure of the covariance is at its bound, such as a variance of zero: a "
        "simpler structure does as well."
    )
    PROJECTED = (
        "The pairs did not fit together to a positive definite covariance; the nearest one was "
        "taken. More rows would help."
    )
    TOO_FEW_JOINT_ROWS = (
        "Some pairs of columns are seen together in so few rows that their correlation is hardly "
        "known."
    )
    WEAKLY_IDENTIFIED = (
        "Some parameters are hardly determined by what is seen; their standard errors say how "
        "little."
    )
    ON_DOMAIN_EDGE = (
        "Part of the estimate lies on the edge of the domain that the seen share allows: the data "
        "do not determine it. Check the limits and their units, and look for columns that repeat "
        "each other; more rows would help."
    )
    NOT_CONVERGED = "The solver stopped at its limit of steps before its objective settled."

    @property
    def severity(self) -> int:
        """0 for the best, growing."""
        return list(Status).index(self)


def needs_a_look(status: Status) -> bool:
    """Whether a status is one that a warning comes with."""
    return status.severity >= Status.TOO_FEW_JOINT_ROWS.severity


def warn_of_status(status: Status, notes: Iterable[Note]) -> None:
    """Warn whoever asked for an answer if it needs a look."""
    if needs_a_look(status):
        details = " ".join(note.text for note in notes if note.status is status)
        warn(f"{status.value} {details}", ConvergenceWarning)


@dataclass(frozen=True)
class Note:
    """One thing to know about a fit: its kind, and a sentence that names columns.

    Attributes
    ----------
    status : Status
        Its kind.
    text : str
        A sentence that names columns.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rng = np.random.default_rng(0)
    >>> fit = hs.fit(rng.normal(size=(5, 4)), random_state=0)
    >>> fit.notes[0].status.name
    'REGULARISED'
    """

    status: Status
    text: str


class MonteCarloErrors(NamedTuple):
    """Standard errors that sampling adds, of the mean and of the covariance."""

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]


@dataclass(frozen=True)
class Tails:
    """How heavy the tails of a t distribution are.

    Attributes
    ----------
    degrees : float
        Degrees of freedom ν: few for heavy tails, infinite for a Gaussian.
    standard_error : float
        Of ν; 0 where it was given, infinite where ν is.
    lower, upper : float
        A 95 % interval, from the standard error of 1/ν: its upper end is infinite where a Gaussian
        cannot be excluded. Both are ν where it was given.
    p_value : float
        Of a test of the Gaussian against heavier tails, by the likelihood ratio: half of chi-square's,
        as the Gaussian lies on the edge. 1 where ν was given.
    learned : bool

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> X = np.random.default_rng(0).standard_t(3.0, size=(1000, 1))
    >>> rule = hs.DetectionLimits(lower=-0.5)
    >>> tails = hs.fit(np.where(X > -0.5, X, np.nan), rule, errors="t", random_state=0).tails
    >>> tails.learned, bool(tails.lower < 3.0 < tails.upper), bool(tails.p_value < 1e-6)
    (True, True, True)
    """

    degrees: float
    standard_error: float = 0.0
    lower: float = np.nan
    upper: float = np.nan
    p_value: float = 1.0
    learned: bool = False

    def __post_init__(self) -> None:
        if not self.learned:
            object.__setattr__(self, "lower", self.degrees)
            object.__setattr__(self, "upper", self.degrees)

    @property
    def inflation(self) -> float:
        """Covariance of the values, over the scatter matrix: ν/(ν − 2), infinite up to ν = 2."""
        if np.isinf(self.degrees):
            return 1.0
        return self.degrees / (self.degrees - 2.0) if self.degrees > 2.0 else np.inf


@dataclass(frozen=True, eq=False)
class Source:
    """What a fit came from, as it was given to the solver: on the scale of the model.

    The table is not copied: imputations of a table that was changed since are those of the changed one.
    """

    X: Any
    missingness: Missingness | None
    missing_at_random: Any
    seed: int
    n_jobs: int | None
    options: Mapping[str, Any]
    # As the user gave them, in original units, where that is something else.
    original: Any = None
    original_rule: Missingness | None = None
    # Further arguments of ``fit``, as the user gave them.
    call: Mapping[str, Any] = field(default_factory=dict)
    # What was said of values that were lost beside the rule.
    loss: Any = None

    @property
    def stated_rule(self) -> Missingness | None:
        """The rule as it was given, in the units of the table."""
        return self.missingness if self.original is None else self.original_rule

    @property
    def given(self) -> tuple[Any, Missingness | None, Any]:
        """The table, the rule, and the cells that are missing at random."""
        return self.X, self.missingness, self.missing_at_random


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a solver found: numbers, how it went, and what it came from.

    ``halfseen.results.Fit`` has what can be done with them, and says what the fields are.
    """

    gaussian: Gaussian
    method: str
    names: tuple[str, ...]
    rows: int
    seen_share: NDArray[np.float64]
    notes: tuple[Note, ...] = ()
    history: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    source: Source | None = None
    uncertainty: StandardErrors | None = None
    monte_carlo_errors: MonteCarloErrors | None = None
    parameters: int | None = None
    precision: NDArray[np.float64] | None = None
    transforms: tuple[Transform, ...] | None = None
    frame: str | None = None
    tails: Tails | None = None
    powers: tuple[LearnedPower | None, ...] | None = None
    loss: Loss | None = None

    @property
    def status(self) -> Status:
        """The most serious of the notes, or ``CONVERGED``."""
        return max(
            (note.status for note in self.notes),
            key=lambda status: status.severity,
            default=Status.CONVERGED,
        )

    @property
    def mean(self) -> Any:
        """Recovered mean."""
        return self._labelled(self.gaussian.mean)

    @property
    def covariance(self) -> Any:
        """Recovered covariance."""
        return self._labelled(self.gaussian.covariance)

    @property
    def correlation(self) -> Any:
        """Recovered correlation matrix."""
        return self._labelled(self.gaussian.correlation)

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the t distribution; infinite for a Gaussian."""
        return np.inf if self.tails is None else self.tails.degrees

    def _labelled(self, array: NDArray[np.float64]) -> Any:
        return labelled(array, self.names, self.frame)

    @property
    def standard_errors(self) -> StandardErrors:
        """Standard errors of mean, covariance and correlation; ``.of(function)`` of anything smooth."""
        if self.uncertainty is None:
            raise InputError(
                f"this fit (method {self.method!r}) has no standard errors. "
                + (
                    "Regularised estimates, and those as good as singular, have none in closed form; "
                    "use fit.bootstrap()."
                    if self.method == "full"
                    else 'method="full" gives them.'
                )
            )
        if self.frame != "pandas":
            return self.uncertainty
        return self.uncertainty.labelled(self._labelled)

    def column(self, which: int | str) -> int:
        """Return the position of a column that is told by position or by name.

        Parameters
        ----------
        which : int or str

        Returns
        -------
        int

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
        >>> hs.fit(X, rule, names=["lead", "zinc"], random_state=0).column("zinc")
        1
        """
        names = list(self.names)
        if isinstance(which, str):
            if which not in names:
                raise InputError(
                    f"there is no column {which!r}; the columns are {name_some(names, 8)}."
                )
            return names.index(which)
        whole = isinstance(which, int | np.integer) and not isinstance(which, bool)
        if not whole or not -len(names) <= which < len(names):
            raise InputError(
                f"a column is told by its name or by a position below {len(names)}; got {which!r}."
            )
        return int(which) % len(names)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(method={self.method!r}, status={self.status.name}, "
            f"columns={len(self.names)}, rows={self.rows})"
        )


def projection_notes(
    covariance: NDArray[np.float64],
    before: NDArray[np.float64],
    projected: bool,
    floor: float,
) -> list[Note]:
    """Note how far a covariance moved to become positive definite."""
    if not projected:
        return []
    scale = np.sqrt(np.diag(before))
    moved = np.abs((covariance - before) / np.outer(scale, scale)).max()
    text = (
        f"The covariance was moved, by at most {moved:.2g} on the scale of correlations, to become "
        f"positive definite (smallest eigenvalue {floor:g})."
    )
    return [Note(Status.PROJECTED, text)]


def name_some(items: list[str], most: int = 3) -> str:
    """Join a few names, and say how many more there are."""
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"
