"""What a covariance may be, beyond free, diagonal and known."""

from halfseen.solvers.structures.base import InUnits, Structure, read_structure
from halfseen.solvers.structures.blocks import BlockDiagonal
from halfseen.solvers.structures.factor import Factor
from halfseen.solvers.structures.kronecker import Kronecker
from halfseen.solvers.structures.random_effects import RandomEffects
from halfseen.solvers.structures.repeated import AR1, CompoundSymmetry, Toeplitz

__all__ = [
    "AR1",
    "BlockDiagonal",
    "CompoundSymmetry",
    "Factor",
    "InUnits",
    "Kronecker",
    "RandomEffects",
    "Structure",
    "Toeplitz",
    "read_structure",
]
