"""The paper's figures and additional ones, from plain inputs.

Functions take arrays and numbers and return a matplotlib `Figure` whose label is its caption.
`gallery` calls them with the settings of `kmixup figures`. Hue alone never carries a meaning:
classes have markers, lines have dashes, and colour maps run from dark to light.
"""

NAMES = {
    "surfaces": "decision surfaces: ERM, 1-mixup and 32-mixup on the toys (Figure 1)",
    "couplings": "who is mixed with whom, and the mixed points, k = 1 and 32 (Figure 2)",
    "matching": "the partners of one point, k = 32 (Figure 3)",
    "nearest": "the same point with nearest neighbours instead (appendix)",
    "steps": "one block, step by step: two sets, distances, match, mixed points",
    "injectivity": "the injectivity radius of a curve (Figure 4)",
    "convergence": "accuracy in training and testing, k = 1 and 32 (Figure 6)",
    "counterexample": "three clusters in a row, where Lemma 3.3 fails",
    "endpoints": "a cluster in two pieces, where Theorem 3.5 fails",
    "clusters": "cross-cluster matches against k, with exact value and bound",
    "distances": "matched squared distance against k, with its rate",
    "expansion": "remainder of the expansion of the loss, against 1 - lam",
}
OF_DATA = ("couplings", "matching", "nearest", "steps", "convergence")  # figures of any data set
