"""What was learned about a structure of the covariance, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError
from halfseen.solvers.inference.uncertainty import Estimate
from halfseen.solvers.structures.base import Structure, read_structure, values_by_name

Floats = NDArray[np.float64]

# Returns value and standard error of a function of (means or coefficients, covariance).
Errors = Callable[[Callable[[Any, Floats], Floats]], Estimate]


class Learned(NamedTuple):
    """A parameter, or an array of them, and its standard error; None where there is none."""

    value: Any
    standard_error: Any


@dataclass(frozen=True, eq=False)
class LearnedStructure(Mapping[str, Learned]):
    """The parameters of a structure of the covariance, by name.

    Attributes
    ----------
    name : str
        The structure as a text, as ``covariance=`` takes it.
    words : str
        What it is.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rule = hs.DetectionLimits(lower=-0.5)
    >>> X = hs.simulate(hs.Gaussian(np.zeros(4), 0.6 + 0.4 * np.eye(4)), rule, 500)
    >>> fit = hs.fit(X, rule, covariance="compound_symmetry", random_state=0)
    >>> fit.structure.name, list(fit.structure)
    ('compound_symmetry', ['variance', 'correlation'])
    >>> value, error = fit.structure["correlation"]
    >>> bool(abs(value - 0.6) < 4 * error)
    True
    """

    name: str
    words: str
    _parts: Mapping[str, Learned]

    def __getitem__(self, name: str) -> Learned:
        if name not in self._parts:
            raise KeyError(f"{name!r}; there is {', '.join(self._parts)}")
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def numbers(self) -> list[tuple[str, float, float | None]]:
        """Return every number by itself: its name, its value and its standard error.

        Returns
        -------
        list of tuples

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> X = hs.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]]).sample(200, random_state=0)
        >>> [name for name, _, _ in hs.fit(X, covariance="ar1").structure.numbers()]
        ['variance', 'correlation']
        """
        names, values = values_by_name({key: one.value for key, one in self._parts.items()})
        errors: list[float | None] = [None] * len(names)
        if all(one.standard_error is not None for one in self._parts.values()):
            parts = {key: one.standard_error for key, one in self._parts.items()}
            errors = list(values_by_name(parts)[1].tolist())
        return list(zip(names, values.tolist(), errors, strict=True))

    def __repr__(self) -> str:
        lines = [f"{self.words}:"]
        for name, value, error in self.numbers():
            lines.append(
                f"  {name:<32} {value:>10.4g}" + ("" if error is None else f" ({error:.2g})")
            )
        return "\n".join(lines)


def structure_of(history: Mapping[str, Any], names: Sequence[str]) -> Structure | None:
    """Return the structure that a fit was made with; None for one that has no parameters of its own."""
    # The history of a fit that was loaded may hold anything.
    try:
        found = read_structure(str(history.get("covariance_structure", "")))
        return found.for_columns(names) if isinstance(found, Structure) else None
    except InputError:
        return None


def learned_structure(
    structure: Structure, covariance: Floats, errors: Errors | None
) -> LearnedStructure:
    """Return what was learned, with standard errors by the delta method where these are known."""
    parts = structure.learned(covariance)
    sizes = [np.size(one) for one in parts.values()]
    if errors is None or not parts:
        known: list[Any] = [None] * len(parts)
    else:

        def flat(_: Any, S: Floats) -> Floats:
            return values_by_name(structure.learned(S))[1]

        spread = np.asarray(errors(flat).standard_error)
        known = np.split(spread, np.cumsum(sizes)[:-1])
    out = {}
    for (name, value), error in zip(parts.items(), known, strict=True):
        shape = np.shape(value)
        own = None if error is None else error.reshape(shape)
        out[name] = Learned(np.asarray(value)[()], own[()] if own is not None else None)
    return LearnedStructure(structure.name, structure.words, out)
