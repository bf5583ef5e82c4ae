"""Turning a set into something that can be integrated over.

Intervals stay as they are. The ends of a ``Predicate`` are found by a scan and bisection. A
``Probability`` becomes quadrature nodes, with panels that end at its jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import is_iterable, real_array
from halfseen.errors import ApproximationWarning, ContradictionError, InputError, warn
from halfseen.missingness.sets import Predicate, Probability, SeenSet

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

# The scan is uniform in asinh of the distance from the centre: about a thousandth of the spread
# apart where the data are, coarser far out.
SCAN_POINTS = 2**14
# Bisections that bring two neighbours of the scan to the last bit of a double.
BISECTIONS = 60
# More pieces than this in one set suggest a function that oscillates faster than the scan.
MANY_PIECES = SCAN_POINTS // 64
# A probability that changes by more than this between neighbours, however close, has a jump there.
SMALLEST_JUMP = 1e-3
NODES_PER_PANEL = 16
# Panels of half a spread at the centre, a quarter longer with each step outwards.
PANEL_WIDTH, PANEL_GROWTH = 0.5, 1.25


@dataclass(frozen=True)
class SetTable:
    """Sets ready for integration, as ragged arrays.

    Set k has the intervals ``start[k] : start[k + 1]``, some of which may be empty, or the quadrature
    nodes ``node_start[k] : node_start[k + 1]``, with weights that include the probability of being
    seen, and of being hidden.

    Attributes
    ----------
    start : integer array, one longer than there are sets
        Where the intervals of each set begin.
    lower, upper : arrays
        Ends of the intervals.
    node_start : integer array, one longer than there are sets
        Where the nodes of each set begin.
    node : array
        Nodes of sets that are known as probabilities.
    weight, hidden_weight : arrays
        Weight of each node, times the probability of being seen there, and of being hidden.
    log_weight : array
        Logarithm of the probability of being in the set, for values of each interval: 0 unless values
        were also lost.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> limits = hs.DetectionLimits(lower=[[0.5]], upper=[[9.0]])
    >>> sets = limits.holes(np.array([[np.nan]]), None).sets
    >>> len(sets), sets.start  # one set, of two intervals
    (1, array([0, 2]))
    >>> sets.lower, sets.upper
    (array([-inf,   9.]), array([0.5, inf]))
    """

    start: Integers
    lower: Floats
    upper: Floats
    node_start: Integers
    node: Floats
    weight: Floats
    hidden_weight: Floats
    log_weight: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if self.log_weight.size == 0:
            object.__setattr__(self, "log_weight", np.zeros(self.lower.size))

    def __len__(self) -> int:
        return self.start.size - 1

    @property
    def is_intervals(self) -> bool:
        """Whether every set is a union of intervals."""
        return self.node.size == 0

    @property
    def is_one_interval_each(self) -> bool:
        """Whether every set is one interval, or empty."""
        some = np.concatenate([[0], np.cumsum(self.lower < self.upper)])
        return self.is_intervals and bool((np.diff(some[self.start]) <= 1).all())

    @property
    def is_whole_line(self) -> bool:
        """Whether no set leaves anything out."""
        if not self.is_intervals:
            return not self.hidden_weight.any()
        rest = self.complement()
        return not (rest.lower < rest.upper).any()

    def within(self, reach: float) -> SetTable:
        """Return the sets with ends beyond ±reach moved to infinity, where there is no mass."""
        far = np.abs(self.lower) > reach, np.abs(self.upper) > reach
        lower = np.where(far[0], np.copysign(np.inf, self.lower), self.lower)
        upper = np.where(far[1], np.copysign(np.inf, self.upper), self.upper)
        return replace(self, lower=lower, upper=upper).without_empty()

    def without_empty(self) -> SetTable:
        """Return the same sets, without intervals that hold nothing."""
        keep = self.lower < self.upper
        owner = np.repeat(np.arange(len(self)), np.diff(self.start))
        return replace(
            self,
            # A set of which nothing is left stays, without intervals, so that tables stay aligned.
            start=starts(np.bincount(owner[keep], minlength=len(self))),
            lower=self.lower[keep],
            upper=self.upper[keep],
            log_weight=self.log_weight[keep],
        )

    def standardised(self, centre: float, scale: float) -> SetTable:
        """Return the same sets in units ``(x - centre) / scale``."""
        return replace(
            self,
            lower=(self.lower - centre) / scale,
            upper=(self.upper - centre) / scale,
            node=(self.node - centre) / scale,
            weight=self.weight / scale,
            hidden_weight=self.hidden_weight / scale,
        )

    def complement(self) -> SetTable:
        """Return what each set leaves of the line; some intervals of it may be empty.

        Returns
        -------
        SetTable

        Examples
        --------
        >>> import numpy as np
        >>> from halfseen.missingness import one_interval_each
        >>> shown = one_interval_each(np.array([0.5]), np.array([9.0]))
        >>> shown.complement().lower, shown.complement().upper
        (array([-inf,   9.]), array([0.5, inf]))
        """
        if not self.is_intervals:
            return replace(self, weight=self.hidden_weight, hidden_weight=self.weight)
        # (−∞, l₁), (u₁, l₂), …, (u_m, ∞)
        return replace(
            self,
            start=self.start + np.arange(self.start.size),
            lower=np.insert(self.upper, self.start[:-1], -np.inf),
            upper=np.insert(self.lower, self.start[1:], np.inf),
            log_weight=np.zeros(self.lower.size + len(self)),
        )

    def with_losses(self, share: Floats) -> SetTable:
        """Return the sets of hidden values, where a share of the others was lost.

        What a set leaves of the line is added to it, with the share as its probability.

        Parameters
        ----------
        share : array, one for each set
            Probability that a value outside the set was lost.

        Returns
        -------
        SetTable

        Examples
        --------
        >>> import numpy as np
        >>> from halfseen.missingness import one_interval_each
        >>> hidden = one_interval_each(np.array([-np.inf]), np.array([0.5]))
        >>> lost = hidden.with_losses(np.array([0.1]))
        >>> lost.lower, lost.upper, np.exp(lost.log_weight)
        (array([-inf,  0.5]), array([0.5, inf]), array([1. , 0.1]))
        """
        owner = np.repeat(np.arange(len(self)), np.diff(self.start))
        # Before the first interval of a set, between two, and after the last.
        around = np.repeat(np.arange(len(self)), np.diff(self.start) + 1)
        lower = np.concatenate([self.lower, np.insert(self.upper, self.start[:-1], -np.inf)])
        upper = np.concatenate([self.upper, np.insert(self.lower, self.start[1:], np.inf)])
        with np.errstate(divide="ignore"):
            log_weight = np.concatenate([self.log_weight, np.log(share)[around]])
        owner = np.concatenate([owner, around])
        # A set that is known by nodes has no intervals, nor anything between them.
        keep = (lower < upper) & (np.diff(self.start) > 0)[owner]
        order = np.flatnonzero(keep)[np.lexsort((lower[keep], owner[keep]))]
        of_node = np.repeat(share, np.diff(self.node_start))
        return replace(
            self,
            start=starts(np.bincount(owner[keep], minlength=len(self))),
            lower=lower[order],
            upper=upper[order],
            weight=self.weight + of_node * self.hidden_weight,
            hidden_weight=(1.0 - of_node) * self.hidden_weight,
            log_weight=log_weight[order],
        )

    def take(self, chosen: NDArray[np.intp]) -> SetTable:
        """Return some of the sets."""
        pieces, nodes = _ranges(self.start, chosen), _ranges(self.node_start, chosen)
        return SetTable(
            starts(np.diff(self.start)[chosen]),
            self.lower[pieces],
            self.upper[pieces],
            starts(np.diff(self.node_start)[chosen]),
            self.node[nodes],
            self.weight[nodes],
            self.hidden_weight[nodes],
            self.log_weight[pieces],
        )

    @staticmethod
    def join(tables: Sequence[SetTable]) -> SetTable:
        """Return all sets of several tables, in order.

        Parameters
        ----------
        tables : sequence of SetTable

        Returns
        -------
        SetTable

        Examples
        --------
        >>> import numpy as np
        >>> from halfseen.missingness import SetTable, one_interval_each
        >>> below = one_interval_each(np.array([-np.inf]), np.array([0.5]))
        >>> above = one_interval_each(np.array([9.0]), np.array([np.inf]))
        >>> SetTable.join([below, above]).start
        array([0, 1, 2])
        """
        tables = list(tables) if is_iterable(tables) else []
        if not tables or not all(isinstance(table, SetTable) for table in tables):
            raise InputError("join takes a list of at least one SetTable.")
        return SetTable(
            starts(np.concatenate([np.diff(t.start) for t in tables])),
            np.concatenate([t.lower for t in tables]),
            np.concatenate([t.upper for t in tables]),
            starts(np.concatenate([np.diff(t.node_start) for t in tables])),
            np.concatenate([t.node for t in tables]),
            np.concatenate([t.weight for t in tables]),
            np.concatenate([t.hidden_weight for t in tables]),
            np.concatenate([t.log_weight for t in tables]),
        )


def starts(sizes: ArrayLike) -> Integers:
    """Offsets of ragged pieces of the given sizes: 0, n₁, n₁ + n₂ and so on."""
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.intp))]).astype(np.intp)


def _ranges(start: Integers, chosen: Integers) -> Integers:
    """Positions of the chosen ragged pieces, one after the other."""
    sizes = (start[1:] - start[:-1])[chosen]
    offsets = starts(sizes)
    return np.arange(offsets[-1]) + np.repeat(start[:-1][chosen] - offsets[:-1], sizes)


def one_interval_each(lower: Floats, upper: Floats) -> SetTable:
    """Make a set of each interval.

    Parameters
    ----------
    lower, upper : arrays of shape (m,)
        Ends of the intervals.

    Returns
    -------
    SetTable

    Examples
    --------
    >>> import numpy as np
    >>> from halfseen.missingness import one_interval_each
    >>> below = one_interval_each(np.full(3, -np.inf), np.array([0.5, 0.7, 0.5]))
    >>> len(below), below.start
    (3, array([0, 1, 2, 3]))
    """
    lower, upper = real_array("lower", lower), real_array("upper", upper)
    if lower.ndim != 1 or lower.shape != upper.shape:
        raise InputError(
            f"lower and upper must be vectors of one length; got shapes {lower.shape} and "
            f"{upper.shape}."
        )
    return _with_intervals(np.arange(lower.size + 1), lower, upper)


def union_of_intervals(lower: Floats, upper: Floats) -> SetTable:
    """One set, the union of the given intervals."""
    return _with_intervals(np.array([0, lower.size]), lower, upper)


def _with_intervals(start: NDArray[np.integer], lower: Floats, upper: Floats) -> SetTable:
    none = np.empty(0)
    no_nodes = np.zeros(start.size, dtype=np.intp)
    return SetTable(start.astype(np.intp), lower, upper, no_nodes, none, none, none)


def set_of_nodes(node: Floats, weight: Floats, hidden_weight: Floats) -> SetTable:
    """One set, known at quadrature nodes."""
    none = np.empty(0)
    start = np.array([0, node.size], dtype=np.intp)
    return SetTable(np.zeros(2, dtype=np.intp), none, none, start, node, weight, hidden_weight)


def resolve(seen_set: SeenSet, centre: float, spread: float, reach: float) -> SetTable:
    """Describe ``seen_set`` for integration.

    Parameters
    ----------
    seen_set : SeenSet
    centre, spread : float
        Location and scale of the seen values.
    reach : float
        How far from the centre, in spreads, mass can lie.
    """
    if seen_set.pieces is not None:
        return union_of_intervals(
            np.array([p.lower for p in seen_set.pieces]),
            np.array([p.upper for p in seen_set.pieces]),
        )
    edge = np.arcsinh(reach)
    grid = centre + spread * np.sinh(np.linspace(-edge, edge, SCAN_POINTS))
    shown = seen_set.probability(grid)
    if isinstance(seen_set, Predicate):
        return _intervals_of(seen_set, grid, shown)
    assert isinstance(seen_set, Probability)
    return _nodes_of(seen_set, grid, shown, centre, spread, reach)


def _intervals_of(seen_set: SeenSet, grid: Floats, shown: Floats) -> SetTable:
    changes = np.flatnonzero(shown[1:] != shown[:-1])
    if changes.size == 0 and shown[0] == 0.0:
        raise ContradictionError(
            f"{seen_set!r} holds none of {grid.size} values between {grid[0]:.4g} and "
            f"{grid[-1]:.4g}. Its pieces may be too narrow to be found; state them as intervals."
        )
    if changes.size > MANY_PIECES:
        warn(
            f"{seen_set!r} changes {changes.size} times between {grid[0]:.4g} and {grid[-1]:.4g}; "
            "pieces narrower than the scan can have been missed. State them as intervals, or use "
            'method="truncation_psgd", which asks the function alone.',
            ApproximationWarning,
        )
    cuts = _bisect(seen_set, grid[changes], grid[changes + 1])
    # Beyond the scan the set goes on as it was at its end.
    before, after = [-np.inf] if shown[0] else [], [np.inf] if shown[-1] else []
    ends = np.concatenate([before, cuts, after])
    return union_of_intervals(ends[0::2].copy(), ends[1::2].copy())


def _nodes_of(
    seen_set: SeenSet, grid: Floats, shown: Floats, centre: float, spread: float, reach: float
) -> SetTable:
    steep = np.flatnonzero(np.abs(np.diff(shown)) > SMALLEST_JUMP)
    jumps = _bisect(seen_set, grid[steep], grid[steep + 1])
    # A steep but continuous place is smooth at the last bit; a jump is not.
    step = np.maximum(np.abs(jumps), spread) * 1e-9
    real = np.abs(seen_set.probability(jumps + step) - seen_set.probability(jumps - step))
    jumps = jumps[real > 0.5 * SMALLEST_JUMP]
    panels = 1 + int(np.log1p(reach * (PANEL_GROWTH - 1.0) / PANEL_WIDTH) / np.log(PANEL_GROWTH))
    out = PANEL_WIDTH * (PANEL_GROWTH ** np.arange(panels + 1) - 1.0) / (PANEL_GROWTH - 1.0)
    edges = centre + spread * np.concatenate([-out[:0:-1], out])
    edges = np.unique(np.concatenate([edges, jumps]))
    node, weight = composite_rule(edges, NODES_PER_PANEL)
    probability = seen_set.probability(node)
    return set_of_nodes(node, weight * probability, weight * (1.0 - probability))


def composite_rule(edges: Floats, nodes_per_panel: int) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights on each panel between neighbouring ``edges``."""
    x, w = np.polynomial.legendre.leggauss(nodes_per_panel)
    half = 0.5 * np.diff(edges)[:, None]
    middle = 0.5 * (edges[1:] + edges[:-1])[:, None]
    return (middle + half * x).ravel(), (half * w).ravel()


def _bisect(seen_set: SeenSet, left: Floats, right: Floats) -> Floats:
    """Bring pairs of points together around the greater change of probability between them."""
    left, right = left.copy(), right.copy()
    if left.size == 0:
        return left
    at_left, at_right = seen_set.probability(left), seen_set.probability(right)
    for _ in range(BISECTIONS):
        middle = 0.5 * (left + right)
        at_middle = seen_set.probability(middle)
        go_left = np.abs(at_middle - at_left) > np.abs(at_right - at_middle)
        right, at_right = np.where(go_left, middle, right), np.where(go_left, at_middle, at_right)
        left, at_left = np.where(go_left, left, middle), np.where(go_left, at_left, at_middle)
    return 0.5 * (left + right)
