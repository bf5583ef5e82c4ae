"""What structures of a covariance have in common, how texts have them, and how they are fitted.

A structure says what a covariance may be, up to its scale: if Σ has it, then so does cΣ. It is stated in
the units of the table. The engine works in units of its own, one for each column: ``InUnits`` is a
structure as the engine sees it. Moments of complete rows are fitted by scoring (Anderson 1973).
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError
from halfseen.solvers.full_information.charts import information_along
from halfseen.solvers.full_information.m_step import CovarianceStructure, Diagonal, Free
from halfseen.theta import entries, pack_slopes

Floats = NDArray[np.float64]
S = TypeVar("S", bound="type[Structure]")
# A text that is longer is not read.
LONGEST_TEXT = 200_000
# Steps of scoring, shorter ones that are tried, and when a step changes nothing.
MOST_STEPS, MOST_SHORTER, CLOSE_ENOUGH = 100, 30, 1e-10
# Heights are compared to so many of their digits.
ROUNDING = 1e-14


class Structure(ABC):
    """What a covariance may be.

    Attributes
    ----------
    name : str
        The structure as a text, which ``read_structure`` reads.
    regularised, linear : bool
        As in ``CovarianceStructure``. Steps leave these structures, and are brought back by ``solve``.
    scale_free : bool
        Whether it says the same whatever the units of each column are.
    """

    regularised: ClassVar[bool] = False
    linear: ClassVar[bool] = False
    # What it is called in texts.
    word: ClassVar[str] = ""
    # How many of its fields are written without their names.
    plain: ClassVar[int] = 0

    @property
    def scale_free(self) -> bool:
        """Whether it says the same whatever the units of each column are."""
        return False

    @property
    def name(self) -> str:
        """The structure as a text."""
        return self._written(self.word)

    @property
    @abstractmethod
    def words(self) -> str:
        """What it is, in the words of a methods section."""

    def for_columns(self, names: Sequence[str]) -> Structure:
        """Return the structure for these columns; raise where it does not go with them."""
        return self

    @abstractmethod
    def solve(self, S: Floats, rows: int) -> Floats:
        """Return the covariance of the structure that fits second moments S best.

        Parameters
        ----------
        S : array of shape (d, d)
            Second moments about the mean.
        rows : int
            Of how many rows they are.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> hs.CompoundSymmetry().solve(np.diag([1.0, 2.0, 3.0]) + 0.5, 100)
        array([[2.5, 0.5, 0.5],
               [0.5, 2.5, 0.5],
               [0.5, 0.5, 2.5]])
        """

    @abstractmethod
    def basis(self, covariance: Floats) -> Floats:
        """Return the derivatives of (Σ_ij, i >= j) in the free parameters, one column each.

        Where parameters are at a bound, those that move along it alone.

        Parameters
        ----------
        covariance : array of shape (d, d)
            One that has the structure.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> hs.CompoundSymmetry().basis(np.eye(3) + 0.5).shape  # a variance and a correlation
        (6, 2)
        """

    @abstractmethod
    def count(self, d: int) -> int:
        """Return how many parameters of a covariance of d columns are free.

        Parameters
        ----------
        d : int

        Examples
        --------
        >>> import halfseen as hs
        >>> hs.AR1().count(8), hs.Toeplitz().count(8), hs.Factor(2).count(8)
        (2, 8, 23)
        """

    @abstractmethod
    def learned(self, covariance: Floats) -> dict[str, Floats]:
        """Return the parameters of a covariance that has the structure, by name.

        Parameters
        ----------
        covariance : array of shape (d, d)

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> found = hs.CompoundSymmetry().learned(np.eye(3) + 0.5)
        >>> {name: round(float(value), 3) for name, value in found.items()}
        {'variance': 1.5, 'correlation': 0.333}
        """

    def edges(self, covariance: Floats, names: Sequence[str]) -> list[str]:
        """Say, in a sentence each, which parameters are at a bound.

        Parameters
        ----------
        covariance : array of shape (d, d)
            One that has the structure.
        names : sequence of str
            Of the columns.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> growth = hs.RandomEffects([[1, 0], [1, 1], [1, 2]])
        >>> growth.edges(np.eye(3), ["week_0", "week_1", "week_2"])
        ['The variances of all random effects are zero: the rest is noise.']
        """
        return []

    def _written(self, word: str) -> str:
        parts = []
        for k, field in enumerate(fields(self)):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            own = getattr(value, "name", value)
            if field.default is not MISSING and own == field.default:
                continue
            text = own if hasattr(value, "name") else repr(_plain(value))
            parts.append(text if k < self.plain else f"{field.name}={text}")
        return f"{word}({', '.join(parts)})" if parts else word

    def __repr__(self) -> str:
        text = self._written(type(self).__name__)
        return text if text.endswith(")") else f"{text}()"


def _plain(value: Any) -> Any:
    """Return tuples as lists, which look better."""
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class InUnits:
    """A structure as the engine sees it, which works in units of each column.

    Attributes
    ----------
    structure : Structure
    units : array of shape (d,)
        Of the engine, in those of the table, up to a factor that is common to all columns.
    """

    structure: Structure
    units: Floats
    regularised: ClassVar[bool] = False
    linear: ClassVar[bool] = False

    @classmethod
    def of(cls, structure: Structure, scale: Floats) -> CovarianceStructure:
        """Return a structure for columns of these scales."""
        if structure.scale_free:
            return structure
        return cls(structure, scale / np.exp(np.log(scale).mean()))

    @property
    def name(self) -> str:
        """The structure as a text."""
        return self.structure.name

    @property
    def _squares(self) -> Floats:
        return np.outer(self.units, self.units)

    def solve(self, S: Floats, rows: int) -> Floats:
        """Return the covariance of the structure that fits second moments S best."""
        return self.structure.solve(S * self._squares, rows) / self._squares

    def basis(self, covariance: Floats) -> Floats:
        """Return the derivatives of (Σ_ij, i >= j) in the free parameters, one column each."""
        own = self.structure.basis(covariance * self._squares)
        return own / entries(self._squares)[:, None]

    def count(self, d: int) -> int:
        """Return how many parameters are free."""
        return self.structure.count(d)


# Structures by the word that they have in a text; and short ones of SAS and of R.
WORDS: dict[str, Callable[..., CovarianceStructure]] = {"free": Free, "diagonal": Diagonal}
SHORT: dict[str, str] = {
    "unstructured": "free", "us": "free", "cs": "compound_symmetry",
    "csh": "compound_symmetry(heteroscedastic=True)", "ar1h": "ar1(heteroscedastic=True)",
    "toep": "toeplitz", "toeph": "toeplitz(heteroscedastic=True)",
}  # fmt: skip


def in_words(structure: S) -> S:
    """Let texts name a structure."""
    WORDS[structure.word] = structure
    return structure


def read_structure(given: Any, what: str = "covariance") -> CovarianceStructure:
    """Read a structure that is given as one, or as a text such as ``"factor(2)"``."""
    if isinstance(given, Structure | Free | Diagonal):
        return given
    text = given.strip().lower() if isinstance(given, str) else None
    if text is None:
        raise InputError(f"{what} must be a structure, or a text that names one; got {given!r}.")
    try:
        if len(text) > LONGEST_TEXT:
            raise ValueError
        return _evaluated(ast.parse(given.strip(), mode="eval").body)
    except InputError:
        # Of a structure that cannot be, in its own words.
        raise
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise InputError(
            f"{what} must be an array (where it is known) or one of {', '.join(known_words())}, "
            f"as in 'factor(2)' or 'ar1(heteroscedastic=True)'; got {_shortened(given)}."
        ) from None


def read_part(given: Any, what: str) -> CovarianceStructure:
    """Read a structure that is part of another one."""
    found = read_structure(given, what)
    if getattr(found, "k", None) == "bic":
        raise InputError(f"{what}: the number of factors must be said, as in Factor(1).")
    return found


def known_words() -> list[str]:
    """Return the words of all structures."""
    return [*WORDS, "shrinkage", "sparse"]


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")


def _evaluated(node: ast.expr) -> CovarianceStructure:
    """Make a structure from a text: a word, or a word with literals and structures as arguments."""
    call = node if isinstance(node, ast.Call) else None
    function = node if call is None else call.func
    if not isinstance(function, ast.Name):
        raise ValueError
    word = function.id.lower()
    if call is None and word in SHORT:
        return _evaluated(ast.parse(SHORT[word], mode="eval").body)
    if word not in WORDS or (call and any(one.arg is None for one in call.keywords)):
        raise ValueError
    if call is None:
        return WORDS[word]()
    more = {str(one.arg): _argument(one.value) for one in call.keywords}
    return WORDS[word](*map(_argument, call.args), **more)


def _argument(node: ast.expr) -> Any:
    if isinstance(node, ast.Name | ast.Call):
        return _evaluated(node)
    return ast.literal_eval(node)


def values_by_name(parts: Mapping[str, Floats]) -> tuple[list[str], Floats]:
    """Return the names of all numbers among parameters, and the numbers."""
    names, values = [], []
    for name, part in parts.items():
        part = np.asarray(part, dtype=float)
        for at in np.ndindex(part.shape):
            places = ", ".join(str(k + 1) for k in at)
            names.append(f"{name}[{places}]" if at else name)
        values.append(part.ravel())
    return names, np.concatenate(values) if values else np.empty(0)


def score_up(
    S: Floats, start: Floats, at: Callable[[Floats], Floats], slopes: Callable[[Floats], Floats]
) -> Floats:
    """Return the parameters that maximise −log|Σ| − tr Σ⁻¹S.

    Parameters
    ----------
    S : array of shape (d, d)
    start : array of shape (q,)
        Where Σ is positive definite.
    at : callable
        Returns Σ at some parameters; it need not be positive definite, nor finite.
    slopes : callable
        Returns derivatives of (Σ_ij, i >= j) in the parameters, one column each.
    """
    theta, covariance = start, at(start)
    height = _height(covariance, S)
    for _ in range(MOST_STEPS):
        P = np.asarray(np.linalg.inv(covariance))
        basis = slopes(theta)
        slope = basis.T @ pack_slopes(np.empty(0), 0.5 * P @ (S - covariance) @ P)
        step = np.linalg.solve(information_of_covariance(P, basis), slope)
        if slope @ step < CLOSE_ENOUGH**2:
            break
        for k in range(MOST_SHORTER):
            moved = theta + 0.5**k * step
            there = at(moved)
            reached = _height(there, S)
            if reached >= height:
                break
        else:
            break
        gained = reached - height
        theta, covariance, height = moved, there, reached
        if gained <= ROUNDING * abs(height) and k == 0 and slope @ step < CLOSE_ENOUGH:
            break
    return theta


def _height(covariance: Floats, S: Floats) -> float:
    """Return −log|Σ| − tr Σ⁻¹S, halved; −∞ where Σ is no covariance."""
    if not np.isfinite(covariance).all():
        return -np.inf
    try:
        root = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return -np.inf
    log_det = 2.0 * float(np.log(np.diag(root)).sum())
    return -0.5 * (log_det + float(np.trace(np.linalg.solve(covariance, S))))


def information_of_covariance(P: Floats, basis: Floats) -> Floats:
    """Information of one complete row about a covariance in the directions of a basis."""
    return information_along(P, np.concatenate([np.zeros((len(P), basis.shape[1])), basis]))
