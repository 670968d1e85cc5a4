"""Matching: the partner of each sample, by optimal transport or otherwise."""

from kmixup.matching.blocks import Blocks
from kmixup.matching.pairing import Metric, Nearest, Optimal, Pairing, match, warn_short

__all__ = ["Blocks", "Metric", "Nearest", "Optimal", "Pairing", "match", "warn_short"]
