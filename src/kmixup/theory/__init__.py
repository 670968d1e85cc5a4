"""The paper's theory as instruments: what k-mixup does to a data set, and whether theorems hold.

Nothing here is needed for training. NumPy arrays or tensors go in, arrays and small frozen
results come out. `docs/theory.md` has the theorems and where the paper errs.
"""

from kmixup.theory.angles import LemmaCondition, lemma_condition, longest_chain
from kmixup.theory.clusters import CrossMatches, cross_matches, lemma_count, transport_count
from kmixup.theory.endpoints import CrossEndpoints, cross_endpoints
from kmixup.theory.expansion import (
    Expansion,
    Loss,
    expand,
    interpolated_loss,
    kmixup_loss,
    relative_remainder,
    remainder,
)
from kmixup.theory.fraction import (
    ExpectedFraction,
    draw_counts,
    expected_fraction,
    fraction_bound,
)
from kmixup.theory.manifold import ManifoldFraction, manifold_fraction
from kmixup.theory.matching import (
    MatchingDistribution,
    MatchingDistributions,
    matched_subsets,
    matching_distribution,
    matching_distributions,
)
from kmixup.theory.rate import (
    MatchedDistances,
    Slope,
    expected_rate,
    fitted_slope,
    matched_distances,
)
from kmixup.theory.reversion import (
    Covariances,
    LocalMeans,
    MeanReversion,
    local_means,
    mean_reversion,
)

__all__ = [
    "Covariances",
    "CrossEndpoints",
    "CrossMatches",
    "Expansion",
    "ExpectedFraction",
    "LemmaCondition",
    "LocalMeans",
    "Loss",
    "ManifoldFraction",
    "MatchedDistances",
    "MatchingDistribution",
    "MatchingDistributions",
    "MeanReversion",
    "Slope",
    "cross_endpoints",
    "cross_matches",
    "draw_counts",
    "expand",
    "expected_fraction",
    "expected_rate",
    "fitted_slope",
    "fraction_bound",
    "interpolated_loss",
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
