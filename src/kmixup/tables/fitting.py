"""Small networks for tables, and whether one has fitted its training data."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

CHECKED = 2000  # samples and steps of a quick training without mixing
STEPS = 500
TOLERANCE = 0.1  # by which a training error may exceed that without mixing


def mlp(inputs: int, widths: Sequence[int], outputs: int) -> nn.Sequential:
    """Return a network of linear layers with ReLU in between."""
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


def problem(error: float, constant: float, unmixed: Callable[[], float]) -> str | None:
    """Return how a network has failed to fit its training data; None if it has fitted them.

    Args:
        error: its error on clean training samples, as a fraction or in deviations of the target.
        constant: the error of the best constant answer.
        unmixed: measures the error of a network that is trained without mixing.

    >>> problem(0.3, 0.3, lambda: 0.1)
    'its training error is that of a constant answer'
    >>> problem(0.02, 0.3, lambda: 0.0)
    """
    if error >= constant:
        return "its training error is that of a constant answer"
    if error > constant / 2 and error > (least := unmixed()) + TOLERANCE:
        return f"its training error is {error:.2f}, without mixing {least:.2f}"
    return None


def unmixed_error(x: Tensor, y: Tensor, widths: Sequence[int]) -> float:
    """Return the training error of a network after a quick training without mixing.

    Args:
        x: standardised inputs `(n, d)`.
        y: class indices `(n,)`, or standardised numbers `(n, outputs)`.
        widths: its hidden layers.
    """
    rows = torch.arange(0, len(x), -(-len(x) // CHECKED))
    x, y = x[rows].float(), y[rows]
    classes = not y.is_floating_point()
    y = y if classes else y.float().reshape(len(y), -1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = mlp(x.shape[1], widths, int(y.max()) + 1 if classes else y.shape[1])
        optimiser = torch.optim.AdamW(net.parameters(), lr=3e-3)
        criterion = nn.CrossEntropyLoss() if classes else nn.MSELoss()
        for _ in range(STEPS):
            batch = torch.randint(len(x), (min(64, len(x)),))
            optimiser.zero_grad()
            criterion(net(x[batch]), y[batch]).backward()
            optimiser.step()
    with torch.no_grad():
        return error_of(net(x), y)


def error_of(outputs: Tensor, y: Tensor) -> float:
    """Return the fraction of wrong classes, or the root mean squared error."""
    if y.is_floating_point():
        return float((outputs - y).square().mean().sqrt())
    return float((outputs.argmax(1) != y).double().mean())


def constant_error(y: Tensor) -> float:
    """Return the training error of the best constant answer."""
    if y.is_floating_point():
        return float((y - y.mean(0)).square().mean().sqrt())
    return 1 - int(y.bincount().max()) / len(y)
