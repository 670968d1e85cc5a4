"""Time the exact assignment against Sinkhorn in the log domain, by POT.

Sinkhorn blurs the matching: its plan spreads each sample over many partners. A smaller
regularisation brings the plan closer to the optimum, and takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from benchmarks.tables import table
from kmixup.lab.formatting import stopwatch
from kmixup.lab.timing import interleaved
from kmixup.matching._assignment import solve, squared_distances

REGULARISATIONS = (0.1, 0.01)  # shares of the mean squared distance in a block
TOLERANCE = 0.01  # of the marginals, a share of their Euclidean norm: generous to Sinkhorn
ITERATIONS = 1000  # at most
KS = (2, 4, 8, 16, 32, 64)
BATCHES, SHAPE = 4, (128, 784)

Pairs = Sequence[tuple[Tensor, Tensor]]  # inputs of a batch, and those that they are matched with


@dataclass(frozen=True)
class Comparison:
    """The exact assignment and Sinkhorn on the same blocks."""

    k: int
    regularisation: float  # as a share of the mean squared distance in a block
    exact: float  # seconds that the exact assignment takes for a batch
    ratio: float  # how many times as long Sinkhorn takes, for all blocks in one call
    excess: float  # how much more its plan costs than the optimum, as a share


def compare(batches: Pairs, k: int, *, seconds: float) -> list[Comparison]:
    """Time both at each regularisation, in five turns or more, on the full blocks of `k`."""
    blocks = [_blocks(x, x2, k) for x, x2 in batches]
    costs = [squared_distances(a, b) for a, b in blocks]
    distances = torch.cat([torch.from_numpy(cost) for cost in costs])
    contenders: dict[str, Callable[[], object]] = {"exact": lambda: [*map(solve, costs)]}
    affinities = {share: affinity(distances, share).float() for share in REGULARISATIONS}
    for share, values in affinities.items():
        parts = values.split(len(values) // len(batches))
        contenders[str(share)] = partial(lambda parts: [*map(sinkhorn, parts)], parts)
    timed = interleaved(contenders, seconds=seconds, least=5)
    return [
        Comparison(
            k,
            share,
            timed.best("exact") / len(batches),
            timed.ratio(str(share), "exact"),
            excess(sinkhorn(values), distances),
        )
        for share, values in affinities.items()
    ]


def affinity(distance: Tensor, share: float) -> Tensor:
    """-distance / regularisation, the latter a share of the mean distance of each block."""
    mean = distance.mean((1, 2), keepdim=True).clamp_min(torch.finfo(distance.dtype).tiny)
    return -distance / mean / share


def sinkhorn(affinities: Tensor) -> Tensor:
    """Sinkhorn's plan of every block, `(blocks, k, k)`."""
    from ot.batch import bregman_log_projection_batch

    blocks, k, _ = affinities.shape
    weights = affinities.new_full((blocks, k), 1 / k)
    plan: Tensor = bregman_log_projection_batch(
        affinities, weights, weights, max_iter=ITERATIONS, tol=TOLERANCE / k**0.5
    )["T"]
    return plan


def excess(plan: Tensor, distance: Tensor) -> float:
    """How much more the plans cost than the optimum, all blocks together, as a share.

    Plans are made couplings first, so that none can be cheaper than the optimum. A plan's
    cost is the mean squared distance to a partner that is drawn from it.
    """
    columns = torch.from_numpy(solve(distance.numpy()))
    optimum = distance.gather(2, columns[:, :, None]).mean((1, 2)).sum()
    return float((coupling(plan.double()) * distance).sum() / optimum) - 1


def coupling(plan: Tensor) -> Tensor:
    """The nearby plan whose rows and columns sum to 1/k each (Altschuler et al. 2017, alg. 2)."""
    k = plan.shape[1]
    for side in (2, 1):
        plan = plan * (1 / k / plan.sum(side, keepdim=True)).clamp_max(1)
    rows, columns = (1 / k - plan.sum(side) for side in (2, 1))
    total = rows.sum(1).clamp_min(torch.finfo(plan.dtype).tiny)
    return plan + rows[:, :, None] * columns[:, None, :] / total[:, None, None]


def _blocks(x: Tensor, x2: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Full blocks of both sides, `(blocks, k, d)`."""
    full = len(x) - len(x) % k
    return x[:full].reshape(full // k, k, -1), x2[:full].reshape(full // k, k, -1)


def sinkhorn_times(seconds: float) -> None:
    """Sinkhorn in place of the exact assignment, on noise of the size of MNIST."""
    batches = [tuple(torch.rand(2, *SHAPE)) for _ in range(BATCHES)]
    rows = [
        [
            str(rival.k),
            stopwatch(rival.exact),
            f"{rival.regularisation:g}",
            f"{rival.ratio:.3g} x",
            f"{100 * rival.excess:.1f} %",
        ]
        for k in KS
        for rival in compare([(x, x2) for x, x2 in batches], k, seconds=seconds / 4)
    ]
    table(
        f"Sinkhorn (POT, marginals within {TOLERANCE:.0%}) against the exact assignment",
        ["k", "exact", "regularised", "Sinkhorn takes", "plan above the optimum"],
        rows,
    )
