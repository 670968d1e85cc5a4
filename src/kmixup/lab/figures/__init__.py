"""Figures of the paper, and some that it lacks, from plain inputs.

Every module draws one kind. Its functions take arrays and numbers, return a matplotlib
`Figure`, and leave what is to be said about it in the figure's label. `gallery` has the
settings with which `kmixup figures` calls them. Nothing is told by hue alone: classes have
markers, lines have dashes, and colour maps run from dark to light.
"""

NAMES = {
    "surfaces": "what networks believe: ERM, 1-mixup and 32-mixup on the toys (Figure 1)",
    "couplings": "who is mixed with whom, and the mixed points, k = 1 and 32 (Figure 2)",
    "matching": "the partners of one point, k = 32 (Figure 3)",
    "nearest": "the same point with nearest neighbours instead (appendix)",
    "injectivity": "the injectivity radius of a curve (Figure 4)",
    "convergence": "accuracy in training and testing, k = 1 and 32 (Figure 5)",
    "counterexample": "three clusters in a row, where Lemma 3.3 fails",
    "clusters": "cross-cluster matches against k, with exact value and bound",
    "distances": "matched squared distance against k, with its rate",
    "expansion": "what the expansion of the loss leaves unexplained, against 1 - lam",
}
OF_DATA = ("couplings", "matching", "nearest", "convergence")  # what can be drawn of any data
