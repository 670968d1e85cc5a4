"""All methods side by side, at one alpha, k = 1 and k = 16: a comparison that the paper lacks.

In two settings that two cores can train: the digits, and a part of CIFAR-10 with a residual
network that is small enough.
"""

from __future__ import annotations

from kmixup.lab.paper.tables import Column, Table
from kmixup.lab.protocol import MANIFOLD_LAYERS

METHODS = {
    "kmixup": "k-mixup",
    "nearest": "nearest neighbours",
    "manifold": "manifold mixup",
    "cutmix": "CutMix",
    "local": "local mixup",
}


def _tables(
    title: str, *, data: str, model: str, epochs: int, limit: int | None = None
) -> tuple[Table, ...]:
    """A table for each method; ERM and mixup are in several of them, and trained once."""
    return tuple(
        Table(
            f"family-{data}-{method}",
            f"{title}, {words}",
            "not in the paper",
            data=data,
            model=model,
            ks=(1, 16),
            columns=(Column(1.0),),
            errors=None,
            erm=None,
            confidence=None,
            trials=5,
            method=method,
            layers=MANIFOLD_LAYERS if method == "manifold" else None,
            epochs=epochs,
            limit=limit,
        )
        for method, words in METHODS.items()
    )


FAMILY = (
    *_tables("MNIST", data="mnist", model="lenet", epochs=20),
    *_tables("CIFAR-10, a part", data="cifar10", model="preact-resnet20", epochs=30, limit=5000),
)
