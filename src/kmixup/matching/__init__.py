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
from kmixup.matching.solver import Solver, check_solver, lapx

__all__ = [
    "Blocks",
    "LamPer",
    "Metric",
    "Nearest",
    "Optimal",
    "Pairing",
    "Solver",
    "check_solver",
    "lapx",
    "match",
    "warn_short",
]
