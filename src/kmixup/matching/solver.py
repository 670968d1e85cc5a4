"""Solvers of assignment problems, for `Optimal`: the default, and tests for your own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from kmixup.matching._assignment import solve

# returns the column of each row (blocks, k), given costs (blocks, k, k)
Solver = Callable[[Tensor], Tensor]


def validated(columns: object, costs: Tensor, solver: Solver, *, debug: bool = False) -> Tensor:
    """Return a solver's columns on the device of `costs`; raise if they are not valid.

    Columns on a device are only read with `debug`, since the host would wait for them.
    """
    name = getattr(solver, "__name__", repr(solver))
    if not isinstance(columns, Tensor) or columns.is_floating_point():
        kind = columns.dtype if isinstance(columns, Tensor) else type(columns).__name__
        raise TypeError(f"solver must return a tensor of integers, got {kind} from {name}")
    if columns.shape != costs.shape[:2]:
        raise ValueError(
            f"solver must return the column of each row, of shape {tuple(costs.shape[:2])} for "
            f"costs of shape {tuple(costs.shape)}, got {tuple(columns.shape)} from {name}"
        )
    columns = columns.long()
    if debug and not costs.isfinite().all():
        raise ValueError(
            "costs must be finite to be solved, got a NaN or an infinity: clean the samples, or "
            "scale them"
        )
    if debug or columns.device.type == "cpu":
        order = torch.arange(costs.shape[2], device=columns.device)
        bad = (columns.sort(1).values != order).any(1).nonzero()
        if len(bad):
            raise ValueError(
                f"solver must use each column once, got {columns[bad[0, 0]].tolist()} for a block "
                f"from {name}: try it with kmixup.check_solver"
            )
    return columns.to(costs.device, non_blocking=True)


def check_solver(solver: Solver, device: torch.device | str = "cpu") -> None:
    """Raise unless `solver` keeps the contract of `Optimal(solver=…)`, on many small problems.

    Call it in your tests. A solver gets costs `(blocks, k, k)` in float32 or float64, which it must
    not change, and returns the column of each row, `(blocks, k)` integers, so that the total cost
    of each block is least. Costs may be negative, equal, or zero, and k may be 1.

    Args:
        solver: a function from costs to columns.
        device: where the costs are.

    Returns:
        Nothing, if the solver keeps the contract.

    Raises:
        TypeError, ValueError: if columns are not valid, not optimal, or on the wrong device, or if
            the costs were changed.

    >>> from scipy.optimize import linear_sum_assignment
    >>> def scipy_solver(costs):
    ...     return torch.tensor(np.stack([linear_sum_assignment(block)[1] for block in costs]))
    >>> check_solver(scipy_solver)
    """
    name = getattr(solver, "__name__", repr(solver))
    for case, costs in _problems():
        given = costs.to(device)
        before = given.clone()
        columns = solver(given)
        if isinstance(columns, Tensor) and columns.device not in (given.device, costs.device):
            raise ValueError(
                f"solver must return columns on the device of the costs, {given.device}, or on the "
                f"CPU, got {columns.device} from {name}"
            )
        columns = validated(columns, given, solver, debug=True).cpu()
        if not torch.equal(given, before):
            raise ValueError(f"solver must not change the costs, {name} changed {case}")
        reached, best = (
            costs.double().gather(2, chosen[:, :, None]).sum((1, 2))
            for chosen in (columns, torch.from_numpy(solve(costs.numpy())))
        )
        tolerance = 1e-5 * costs.double().abs().amax((1, 2)) * costs.shape[1]
        wrong = (reached > best + tolerance).nonzero()
        if len(wrong):
            block = int(wrong[0])
            raise ValueError(
                f"solver must return the least total cost, got {reached[block]:g} from {name} "
                f"where {best[block]:g} is possible, in {case}"
            )


def _problems() -> Iterator[tuple[str, Tensor]]:
    """Yield problems and their names."""
    rng = np.random.default_rng(0)
    for dtype in (torch.float32, torch.float64):
        for blocks, k in ((1, 1), (5, 1), (7, 2), (4, 3), (8, 16), (1, 64), (2, 100)):
            uniform = rng.random((blocks, k, k))
            points, others = rng.normal(size=(2, blocks, k, 1, 2))
            kinds = {
                "uniform costs": uniform,
                "costs of both signs": uniform - 0.5,
                "large costs": 1e12 * uniform,
                "small costs": 1e-12 * uniform,
                "costs with ties": np.floor(3 * uniform),
                "costs of zero": np.zeros_like(uniform),
                "squared distances": ((points - others.swapaxes(1, 2)) ** 2).sum(-1),
            }
            for name, costs in kinds.items():
                yield f"{name} of shape {costs.shape} in {dtype}", torch.tensor(costs, dtype=dtype)
