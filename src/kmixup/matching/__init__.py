"""Matching: the partner of each sample, by optimal transport or otherwise."""

from kmixup.matching.blocks import Blocks, LamPer
from kmixup.matching.pairing import Metric, Nearest, Optimal, Pairing, match, warn_short

__all__ = ["Blocks", "LamPer", "Metric", "Nearest", "Optimal", "Pairing", "match", "warn_short"]
