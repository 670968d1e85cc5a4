"""Whether two samples have one law."""

import numpy as np
from scipy import stats


def same_counts(first: np.ndarray, second: np.ndarray) -> float:
    """p-value of the hypothesis that two samples of whole numbers have one law, by chi²."""
    values = np.union1d(first, second)
    if len(values) == 1:
        return 1.0
    counts = [(sample[:, None] == values).sum(0) for sample in (first, second)]
    return float(stats.chi2_contingency(np.stack(counts)).pvalue)
