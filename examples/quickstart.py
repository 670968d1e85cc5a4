"""ERM, mixup and k-mixup on two interleaved spirals: decision surfaces.

    python examples/quickstart.py [--alpha 1] [--epochs 100] [--out out/quickstart.png]

Trains a small network three times, with the same initial weights and batch order, and plots
the probability of the blue arm. Mixup averages points across the arms and blurs them;
k-mixup moves points along the arms. ERM is training without mixup.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn import functional as F

import kmixup

ORANGE, WHITE, BLUE = "#d95f0e", "#f7f7f7", "#2166ac"


def spirals(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return points `(n, 2)` and classes `(n,)` of two noisy arms, r = 1.4 t, t from π/2 to 3π."""
    y = torch.arange(n) % 2
    low, high = (math.pi / 2) ** 2, (3 * math.pi) ** 2
    t = (low + (high - low) * torch.rand(n, generator=generator)).sqrt()
    angle = t + math.pi * y
    arms = 1.4 * t[:, None] * torch.stack([angle.cos(), angle.sin()], 1)
    return arms + 0.2 * torch.randn(n, 2, generator=generator), y


def train(mix: kmixup.KMixup, x: Tensor, y: Tensor, epochs: int) -> nn.Module:
    """Train a network; k-mixup adds only the line with `mix`."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(2, 130), nn.ReLU(), nn.Linear(130, 120), nn.ReLU(), nn.Linear(120, 2)
    )
    optimiser = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, [epochs // 2, epochs * 3 // 4])
    order = torch.Generator().manual_seed(1)
    for _ in range(epochs):
        for index in torch.randperm(len(x), generator=order).split(128):
            mixed_x, mixed_y = mix(x[index], y[index])
            optimiser.zero_grad()
            F.cross_entropy(net(mixed_x), mixed_y).backward()
            optimiser.step()
        schedule.step()
    return net


def draw(panels: list[tuple[str, nn.Module]], x: Tensor, y: Tensor, out: Path) -> None:
    """Plot each network's decision surface with some of the data."""
    edge = float(x.abs().max()) + 1
    axis = torch.linspace(-edge, edge, 300)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), 2).view(-1, 2)
    colours = LinearSegmentedColormap.from_list("arms", [ORANGE, WHITE, BLUE])
    figure = Figure(figsize=(11, 3.7), layout="constrained")
    axes = figure.subplots(1, len(panels))
    for axes_, (title, net) in zip(axes, panels, strict=True):
        with torch.no_grad():
            prob = net(grid).softmax(1)[:, 1].view(300, 300)
        image = axes_.imshow(
            prob, origin="lower", extent=(-edge, edge, -edge, edge), cmap=colours, vmin=0, vmax=1
        )
        for arm, marker, colour in ((0, "o", "#fdd0a2"), (1, "^", "#c6dbef")):
            points = x[y == arm][:150]
            axes_.scatter(
                *points.T, s=10, marker=marker, c=colour, edgecolors="black", linewidths=0.4
            )
        axes_.set(title=title, xticks=[], yticks=[])
    figure.colorbar(image, ax=axes, label="probability of the blue arm", shrink=0.9)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description="ERM, mixup and k-mixup on two spirals.")
    parser.add_argument("--out", type=Path, default=Path("out/quickstart.png"), help="picture file")
    parser.add_argument("--epochs", type=int, default=100, help="training epochs per network")
    parser.add_argument("--alpha", type=float, default=1.0, help="alpha of mixup and k-mixup")
    arguments = parser.parse_args()
    if arguments.epochs < 1 or not arguments.alpha > 0:
        parser.error("--epochs must be at least 1, and --alpha more than 0")

    torch.set_num_threads(1)  # fastest for small tensors
    x, y = spirals(2048, torch.Generator().manual_seed(0))
    x_test, y_test = spirals(10_000, torch.Generator().manual_seed(1))
    panels = []
    alpha = arguments.alpha
    for name, k, strength in (("ERM", 1, 0.0), ("mixup", 1, alpha), ("k-mixup, k = 16", 16, alpha)):
        generator = torch.Generator().manual_seed(2)
        mix = kmixup.KMixup(k=k, alpha=strength, num_classes=2, generator=generator)
        net = train(mix, x, y, arguments.epochs)
        with torch.no_grad():
            logits = net(x_test)
        wrong = 100 * float((logits.argmax(1) != y_test).float().mean())
        nll = float(F.cross_entropy(logits, y_test))
        print(f"{name:16} test error {wrong:5.2f} %   negative log-likelihood {nll:.3f}")
        panels.append((f"{name}: {wrong:.2f} % error", net))
    draw(panels, x, y, arguments.out)
    print(f"decision surfaces: {arguments.out.resolve()}")


if __name__ == "__main__":
    main()
