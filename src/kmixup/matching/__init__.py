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

__all__ = ["Blocks", "LamPer", "Metric", "Nearest", "Optimal", "Pairing", "match", "warn_short"]
