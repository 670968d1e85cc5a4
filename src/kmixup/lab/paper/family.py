"""All methods side by side at one alpha, with k = 1 and k = 16, which the paper does not have.

There are two settings, both small enough for two cores: Four Bars, at alpha = 1 and at alpha = 16
where mixup fails in the paper, and MNIST with 1,000 training images, at alpha = 1 and by the
protocol of `mnist-1000`, whose networks it shares. Methods come from the registry.
"""

from __future__ import annotations

from kmixup.lab.data import ENTRIES
from kmixup.lab.models import MANIFOLD_LAYERS
from kmixup.lab.paper.small import MNIST_1000
from kmixup.lab.paper.tables import PaperColumn, PaperTable
from kmixup.lab.paper.toy import FOUR_BARS
from kmixup.lab.train.methods import METHODS, MethodEntry


def _tables(title: str, like: PaperTable, *alphas: float) -> tuple[PaperTable, ...]:
    """A table for each method with a k, by the protocol of the table `like`.

    ERM and mixup are in several tables, and are trained once.
    """
    return tuple(
        PaperTable(
            f"family-{like.data}-{method}",
            f"{title}, {entry.title}",
            "not in the paper",
            data=like.data,
            model=like.model,
            ks=(1, 16),
            # a method without an alpha is trained once, and stands in the first column
            columns=tuple(PaperColumn(alpha) for alpha in alphas[: None if entry.has_alpha else 1]),
            errors=None,
            erm=None,
            confidence=None,
            trials=3,
            method=method,
            layers=MANIFOLD_LAYERS if entry.hidden else None,
            samples=like.samples,
            protocol=like.protocol,
            shifts=like.shifts,
        )
        for method, entry in METHODS.items()
        if _applies(entry, like.data)
    )


def _applies(entry: MethodEntry, data: str) -> bool:
    """Whether a method has a k, and can be trained on a data set of classes."""
    images = ENTRIES[data].kind == "image"
    return entry.has_k and entry.needs_numbers is None and (images or entry.needs_images is None)


FAMILY = (
    *_tables("Four Bars", FOUR_BARS, 1.0, 16.0),
    *_tables("MNIST, 1,000 training images", MNIST_1000[0], 1.0),
)
