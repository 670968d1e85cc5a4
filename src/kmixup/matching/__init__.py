"""Matching: the partner of each sample, by optimal transport or otherwise."""

from kmixup.matching.pairing import (
    Blocks,
    LamPer,
    Metric,
    Nearest,
    Optimal,
    Pairing,
    match,
    warn_short,
)
from kmixup.matching.solver import Solver, check_solver

__all__ = [
    "Blocks",
    "LamPer",
    "Metric",
    "Nearest",
    "Optimal",
    "Pairing",
    "Solver",
    "check_solver",
    "match",
    "warn_short",
]
