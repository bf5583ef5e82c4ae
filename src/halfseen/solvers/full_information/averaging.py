"""Averages over sweeps, and the Monte-Carlo error that is left in them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from halfseen.solvers.full_information.completion import Moments

Floats = NDArray[np.float64]

# Batches that are kept; when they are full, neighbours are merged.
MOST_BATCHES = 32
# Weight of the common Monte-Carlo variance, in batches, when that of one parameter is estimated:
# with a dozen batches a variance of its own is off by half.
COMMON_BATCHES = 10
# Largest autocorrelation of batch means that is believed; beyond, the sweeps have not settled.
LARGEST_AUTOCORRELATION = 0.95


@dataclass
class Averages:
    """Batch means of expected moments and of parameters, over sweeps."""

    size: int = 1
    parameters: list[Floats] = field(default_factory=list)
    first: list[Floats] = field(default_factory=list)
    second: list[Floats] = field(default_factory=list)
    pending: list[tuple[Floats, Moments]] = field(default_factory=list)

    @property
    def batches(self) -> int:
        """Number of full batches."""
        return len(self.parameters)

    def add(self, parameters: Floats, moments: Moments) -> None:
        """Add one sweep."""
        self.pending.append((parameters, moments))
        if len(self.pending) < self.size:
            return
        self.parameters.append(np.mean([p for p, _ in self.pending], axis=0))
        self.first.append(np.mean([m.first for _, m in self.pending], axis=0))
        self.second.append(np.mean([m.second for _, m in self.pending], axis=0))
        self.pending.clear()
        if self.batches == MOST_BATCHES:
            for batches in (self.parameters, self.first, self.second):
                batches[:] = [
                    0.5 * (a + b) for a, b in zip(batches[::2], batches[1::2], strict=True)
                ]
            self.size *= 2

    def drop(self, count: int) -> None:
        """Forget the first batches."""
        for batches in (self.parameters, self.first, self.second):
            del batches[:count]

    def mean(self) -> Floats:
        """Average of the parameters."""
        return np.mean(self.parameters, axis=0)

    def moments(self) -> Moments:
        """Average of the expected moments."""
        return Moments(np.mean(self.first, axis=0), np.mean(self.second, axis=0))

    def errors(self, scale: Floats, groups: list[slice]) -> Floats:
        """Monte-Carlo standard errors of the averaged parameters.

        The variance of batch means is shared in part among the parameters of a group, in units of
        ``scale``, and corrected for their autocorrelation, which is that of the group.
        """
        table = np.array(self.parameters) / scale
        count = len(table)
        out = np.empty(table.shape[1])
        for group in groups:
            part = table[:, group] - table[:, group].mean(axis=0)
            own = (part * part).sum(axis=0) / (count - 1)
            common = own.mean() if own.size else 0.0
            variance = (count * own + COMMON_BATCHES * common) / (count + COMMON_BATCHES)
            if common > 0.0:
                rho = (part[1:] * part[:-1]).sum() / (part * part).sum()
                # Low by (1 + 4ρ)/count: Marriott and Pope (1954), with one product less than squares.
                rho = np.clip(rho + (1.0 + 4.0 * rho) / count, 0.0, LARGEST_AUTOCORRELATION)
                variance = variance * (1.0 + rho) / (1.0 - rho)
            out[group] = np.sqrt(variance / count)
        return out * scale

    def drift(self, scale: Floats) -> float:
        """Root mean square change from the first to the second half, in units of ``scale``."""
        table = np.array(self.parameters) / scale
        half = len(table) // 2
        change = table[half:].mean(axis=0) - table[:half].mean(axis=0)
        return float(np.sqrt(np.mean(change * change)))
