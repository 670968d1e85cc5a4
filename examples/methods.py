"""Every mixing method in one picture: who is mixed with whom, where, and what it counts.

    python examples/methods.py [--out out/methods.png]

Four bars of two classes, alternating. A line joins a point with its partner, and the dot on
it is the mixed sample, in the colour of its soft label. Below: the weights of local mixup as
the strength of lines and dots, manifold mixup in the first hidden layer of a network that has
learned the bars, seen along its two main directions, and CutMix of small digits. A name that
ends in .svg gives that format.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

import kmixup
from kmixup.lab.data import load

ORANGE, GREY, BLUE = "#d95f0e", "#999999", "#2166ac"
COLOURS = LinearSegmentedColormap.from_list("classes", [ORANGE, GREY, BLUE])
K = 16


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(4)


def draw_points(axes: Axes, title: str, x: Tensor, y: Tensor, *, alpha: float = 0.35) -> None:
    """The data, round for one class and square for the other."""
    for label, marker in ((0, "o"), (1, "s")):
        points, colour = x[y == label], COLOURS(float(label))
        axes.scatter(
            points[:, 0], points[:, 1], s=9, marker=marker, color=colour, alpha=alpha, linewidths=0
        )
    axes.set_title(title, fontsize=10)
    axes.set(xticks=[], yticks=[])
    axes.margins(0.06)


def draw_pairs(axes: Axes, title: str, x: Tensor, mixed: kmixup.Mixed, at: Tensor) -> None:
    """Lines between partners in the plane, and the mixed samples `at` on them."""
    draw_points(axes, title, x, mixed.targets[0])
    weight = torch.ones(len(x)) if mixed.weight is None else mixed.weight
    strength = (weight / weight.max()).square().numpy()  # squared: so that the eye sees it
    lines = torch.stack([x, x[mixed.partner]], 1).numpy()
    axes.add_collection(
        LineCollection(list(lines), colors="black", linewidths=0.5, alpha=0.45 * strength)
    )
    inside = COLOURS(mixed.y[:, 1].numpy())
    inside[:, 3] = strength
    border = [(0.0, 0.0, 0.0, one) for one in strength]
    axes.scatter(at[:, 0], at[:, 1], s=16, color=inside, edgecolors=border, linewidths=0.4)


def learned(x: Tensor, y: Tensor) -> nn.Sequential:
    """A small network that tells the bars apart."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(300):
        optimiser.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimiser.step()
    return net


def draw_hidden(axes: Axes, title: str, x: Tensor, y: Tensor) -> None:
    """Manifold mixup after the first activation, along the two main directions there."""
    net = learned(x, y)
    mix = kmixup.KMixup(K, 1.0, 2, lam_per="sample", generator=seeded())
    hidden = kmixup.HiddenMixup(net, ["1"], mixer=mix)
    with torch.no_grad():
        _, mixed = hidden.draw(x, y)
        inside = net[:2](x)
        *_, directions = torch.linalg.svd(inside - inside.mean(0), full_matrices=False)
        draw_pairs(axes, title, inside @ directions[:2].T, mixed, mixed.x @ directions[:2].T)


def draw_cuts(axes: Axes, title: str, k: int) -> None:
    """Four digits, the partner of each, and what CutMix makes of them."""
    digits = load_digits()
    x = torch.tensor(digits.images[:128, None], dtype=torch.float32)
    y = torch.tensor(digits.target[:128])
    generator = torch.Generator().manual_seed(5)  # a box that is neither tiny nor all
    mixed = kmixup.CutMix(k, 1.0, 10, generator=generator).draw(x, y)
    rows = [x[:4], x[mixed.partner[:4]], mixed.x[:4]]
    tiles = [F.pad(row[:, 0], (1, 1, 1, 1), value=3.0) for row in rows]
    image = torch.cat([torch.cat(list(row), 1) for row in tiles])
    axes.imshow(image.numpy(), cmap="gray_r")
    # the box is where any image of the batch has changed
    changed = (mixed.x != x).any(0)[0].nonzero()
    (top, left), (bottom, right) = changed.amin(0).tolist(), changed.amax(0).tolist()
    size = right - left + 1, bottom - top + 1
    for i in range(4):
        corner = (10 * i + 1 + left - 0.5, 20 + 1 + top - 0.5)
        axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor=ORANGE, linewidth=1.5))
    axes.set_title(f"{title}, lam = {float(mixed.lam):.2f}", fontsize=10)
    axes.set_xlabel("from the top: image, partner, mixed", fontsize=8)
    axes.set(xticks=[], yticks=[])


def picture() -> Figure:
    data = load("four-bars", size=128, seed=1)
    x, y = data.x_train.float(), data.y_train
    stages = kmixup.Beta(1.0), kmixup.Linear()
    mixers = {
        "mixup": kmixup.KMixup(1, 1.0, 2, lam_per="sample", generator=seeded()),
        f"k-mixup, k = {K}": kmixup.KMixup(K, 1.0, 2, lam_per="sample", generator=seeded()),
        f"nearest of {K}": kmixup.Mixer(
            kmixup.Nearest(K), *stages, num_classes=2, lam_per="sample", generator=seeded()
        ),
        "local mixup": kmixup.LocalMixup(1, 1.0, 2, lam_per="sample", generator=seeded()),
    }
    figure = Figure(figsize=(11, 5.8), layout="constrained")
    first, *panels = figure.subplots(2, 4).flat
    draw_points(first, "ERM", x, y, alpha=1.0)
    for axes, (title, mix) in zip(panels[:4], mixers.items(), strict=True):
        mixed = mix.draw(x, y)
        draw_pairs(axes, title, x, mixed, mixed.x)
    draw_hidden(panels[4], f"manifold mixup, k = {K}: inside", x, y)
    draw_cuts(panels[5], "CutMix", 1)
    draw_cuts(panels[6], f"CutMix, k = {K}", K)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description="Every mixing method in one picture.")
    parser.add_argument("--out", type=Path, default=Path("out/methods.png"), help="the picture")
    out = parser.parse_args().out
    out.parent.mkdir(parents=True, exist_ok=True)
    picture().savefig(out, dpi=110)
    print(f"methods: {out.resolve()}")


if __name__ == "__main__":
    main()
