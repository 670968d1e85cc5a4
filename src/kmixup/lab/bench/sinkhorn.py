"""The exact assignment against its usual approximation: Sinkhorn in the log domain, by POT.

Sinkhorn blurs the matching: its plan spreads each sample over many partners. A smaller
regularisation brings the plan closer to the optimum, and takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from kmixup.assignment import solve, squared_distances
from kmixup.lab.bench.timing import interleaved

REGULARISATIONS = (0.1, 0.01)  # shares of the mean squared distance in a block
TOLERANCE = 0.01  # of the marginals, a share of their Euclidean norm: generous to Sinkhorn
ITERATIONS = 1000  # at most
MISSING = 'comparing with Sinkhorn needs POT, at least 0.9.7: pip install "kmixup[bench]"'

T = TypeVar("T")
R = TypeVar("R")
Pairs = Sequence[tuple[Tensor, Tensor]]  # inputs of a batch, and those that they are matched with


@dataclass(frozen=True)
class Comparison:
    """The exact assignment and Sinkhorn on the same blocks.

    Attributes:
        k: the number of samples in a block.
        regularisation: of Sinkhorn, as a share of the mean squared distance in a block.
        exact: seconds that the exact assignment takes for a batch.
        one_by_one: how many times as long Sinkhorn takes, called for each block.
        at_once: the same, called once for all blocks.
        excess: how much more its plan costs than the optimum, as a share.
    """

    k: int
    regularisation: float
    exact: float
    one_by_one: float
    at_once: float
    excess: float


def available() -> bool:
    """Whether a POT is here that has both ways."""
    try:
        import ot.batch  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


def compare(batches: Pairs, k: int, *, seconds: float) -> list[Comparison]:
    """Time both at each regularisation, in five turns or more, on the full blocks of `k`."""
    distances = [squared_distances(*_blocks(x, x2, k)) for x, x2 in batches]
    products = [-torch.bmm(a, b.mT).numpy() for a, b in (_blocks(*pair, k) for pair in batches)]
    contenders: dict[str, Callable[[], object]] = {"exact": partial(_all, solve, products)}
    plans: dict[float, list[Tensor]] = {}
    for share in REGULARISATIONS:
        affinities = [affinity(distance, share).float() for distance in distances]
        contenders[f"one by one {share}"] = partial(_all, one_by_one, affinities)
        contenders[f"at once {share}"] = partial(_all, at_once, affinities)
        plans[share] = _all(one_by_one, affinities)
    timed = interleaved(contenders, seconds=seconds, least=5)
    return [
        Comparison(
            k,
            share,
            timed.best("exact") / len(batches),
            timed.ratio(f"one by one {share}", "exact"),
            timed.ratio(f"at once {share}", "exact"),
            excess(torch.cat(plans[share]), torch.cat(distances)),
        )
        for share in REGULARISATIONS
    ]


def affinity(distance: Tensor, share: float) -> Tensor:
    """-distance / regularisation, the latter a share of the mean distance of each block."""
    mean = distance.mean((1, 2), keepdim=True).clamp_min(torch.finfo(distance.dtype).tiny)
    return -distance / mean / share


def one_by_one(affinities: Tensor) -> Tensor:
    """Sinkhorn's plan of every block, `(blocks, k, k)`, in a loop over the blocks."""
    import ot

    k = affinities.shape[1]
    weight = affinities.new_full((k,), 1 / k)
    run = partial(
        ot.bregman.sinkhorn_log, weight, weight,
        reg=1.0, stopThr=TOLERANCE / k**0.5, numItermax=ITERATIONS, warn=False,
    )  # fmt: skip
    return torch.stack([run(M=-block) for block in affinities])


def at_once(affinities: Tensor) -> Tensor:
    """The same in one call, until the last block is within the tolerance."""
    from ot.batch import bregman_log_projection_batch

    blocks, k, _ = affinities.shape
    weights = affinities.new_full((blocks, k), 1 / k)
    projected = bregman_log_projection_batch(
        affinities, weights, weights, max_iter=ITERATIONS, tol=TOLERANCE / k**0.5
    )
    plan: Tensor = projected["T"]
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


def _all(call: Callable[[T], R], inputs: Sequence[T]) -> list[R]:
    return [call(value) for value in inputs]
