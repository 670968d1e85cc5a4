"""Tools that measure what k-mixup does to a data set, and check the paper's theorems.

Training needs none of them. They take NumPy arrays or tensors and return arrays or frozen
dataclasses. `docs/evidence/theory.md` states the theorems and the paper's errors.
"""

from kmixup._measured import Measured
from kmixup.theory.clusters import (
    CrossEndpoints,
    CrossMatches,
    ExpectedFraction,
    cross_endpoints,
    cross_matches,
    draw_counts,
    expected_fraction,
    fraction_bound,
    islands,
    lemma_condition,
    lemma_count,
    longest_chain,
    transport_count,
)
from kmixup.theory.expansion import (
    Expansion,
    expand,
    interpolated_loss,
    kmixup_loss,
    relative_remainder,
    remainder,
)
from kmixup.theory.manifold import (
    ManifoldFraction,
    MatchedDistances,
    expected_rate,
    fitted_slope,
    manifold_fraction,
    matched_distances,
)
from kmixup.theory.matching import (
    MatchingDistribution,
    MatchingDistributions,
    matched_subsets,
    matching_distribution,
    matching_distributions,
)
from kmixup.theory.reversion import MeanReversion, local_means, mean_reversion

__all__ = [
    "CrossEndpoints",
    "CrossMatches",
    "Expansion",
    "ExpectedFraction",
    "ManifoldFraction",
    "MatchedDistances",
    "MatchingDistribution",
    "MatchingDistributions",
    "MeanReversion",
    "Measured",
    "cross_endpoints",
    "cross_matches",
    "draw_counts",
    "expand",
    "expected_fraction",
    "expected_rate",
    "fitted_slope",
    "fraction_bound",
    "interpolated_loss",
    "islands",
    "kmixup_loss",
    "lemma_condition",
    "lemma_count",
    "local_means",
    "longest_chain",
    "manifold_fraction",
    "matched_distances",
    "matched_subsets",
    "matching_distribution",
    "matching_distributions",
    "mean_reversion",
    "relative_remainder",
    "remainder",
    "transport_count",
]
