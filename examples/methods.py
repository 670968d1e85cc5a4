"""A picture of every mixing method: partners, mixed samples and weights.

    python examples/methods.py [--out out/methods]

Points: four bars of two alternating classes. A line joins a point with its partner; the dot on it
is the mixed sample, in the colour of its soft label. For local mixup, opacity shows weights.
AdaMixup's lam is learned. Manifold mixup is shown in the first hidden layer of a trained network,
along its two principal directions. Latent mixup mixes the radius and angle of one ring, C-Mixup a
regression curve. Images: small digits, with masks from the saliency of a trained network.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
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
from kmixup.methods.comixup import SharedMixed
from kmixup.wrappers.clean import BesideClean

ORANGE, GREY, BLUE = "#d95f0e", "#999999", "#2166ac"
COLOURS = LinearSegmentedColormap.from_list("classes", [ORANGE, GREY, BLUE])
K = 16


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(4)


def draw_points(axes: Axes, x: Tensor, y: Tensor, *, alpha: float = 0.35) -> None:
    """Plot the data, round for one class and square for the other."""
    for label, marker in ((0, "o"), (1, "s")):
        points, colour = x[y == label], COLOURS(float(label))
        axes.scatter(
            points[:, 0], points[:, 1], s=9, marker=marker, color=colour, alpha=alpha, linewidths=0
        )
    axes.margins(0.06)


def draw_pairs(axes: Axes, x: Tensor, mixed: kmixup.Mixed, at: Tensor | None = None) -> None:
    """Plot lines between partners, and the mixed samples at `at`."""
    at = mixed.x if at is None else at
    draw_points(axes, x, mixed.targets[0])
    weight = torch.ones(len(x)) if mixed.weight is None else mixed.weight
    strength = (weight / weight.max()).square().numpy()  # squared, to make differences visible
    lines = torch.stack([x, x[mixed.partner]], 1).numpy()
    axes.add_collection(
        LineCollection(list(lines), colors="black", linewidths=0.5, alpha=0.45 * strength)
    )
    inside = COLOURS(mixed.y[:, 1].numpy())
    inside[:, 3] = strength
    border = [(0.0, 0.0, 0.0, one) for one in strength]
    axes.scatter(at[:, 0], at[:, 1], s=16, color=inside, edgecolors=border, linewidths=0.4)


def fitted(net: nn.Sequential, x: Tensor, y: Tensor, mix: kmixup.Mixer | None = None) -> None:
    """Train a network on a batch, together with the mixer's parameters."""
    own = [] if mix is None else [one for one in mix.parameters() if one.requires_grad]
    optimiser = torch.optim.Adam([*net.parameters(), *own], lr=0.01)
    for _ in range(300 if mix is None else 150):
        optimiser.zero_grad()
        if mix is None:
            loss = F.cross_entropy(net(x), y)
        else:
            mixed = mix.mix(x, y)
            loss = mixed.loss(nn.CrossEntropyLoss(reduction="none"), net(mixed.x)).mean()
        loss.backward()
        optimiser.step()


def plain() -> nn.Sequential:
    """Return a network for points in the plane, always with the same weights."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
    )


def convolutional() -> nn.Sequential:
    """Return a network for digits of 8 x 8 pixels."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip


def draw_hidden(axes: Axes, x: Tensor, y: Tensor) -> None:
    """Plot manifold mixup after the first activation, along its two principal directions."""
    net = plain()
    fitted(net, x, y)
    mix = kmixup.KMixup(K, 1.0, 2, lam_per="sample", generator=seeded())
    hidden = kmixup.HiddenMixup(net, ["1"], mixer=mix)
    with torch.no_grad():
        _, mixed = hidden.mix(x, y)
        inside = net[:2](x)
        *_, directions = torch.linalg.svd(inside - inside.mean(0), full_matrices=False)
        draw_pairs(axes, inside @ directions[:2].T, mixed, mixed.x @ directions[:2].T)


def draw_adapted(axes: Axes, x: Tensor, y: Tensor) -> None:
    """Plot AdaMixup with its learned lam, after some steps."""
    net = plain()
    mix = kmixup.AdaMixup(net, (2,), 1, 2, joint=False, generator=seeded())
    fitted(net, x, y, mix)
    with torch.no_grad():
        draw_pairs(axes, x, first_half(mix.mix(x, y)))


def first_half(mixed: kmixup.Mixed) -> kmixup.Mixed:
    """Return only the mixed samples of a batch with clean ones appended."""
    assert isinstance(mixed, BesideClean)
    return replace(mixed.mixed, x=mixed.x[: len(mixed.mixed.partner)])


def draw_latent(axes: Axes) -> None:
    """Plot samples of one ring, mixed by radius and angle."""
    data = load("one-ring", size=128, seed=1)
    x, y = data.x_train.float(), data.y_train

    def encode(x: Tensor) -> Tensor:
        return torch.stack([x.norm(dim=1), torch.atan2(x[:, 1], x[:, 0])], 1)

    def decode(code: Tensor) -> Tensor:
        return code[:, :1] * torch.stack([code[:, 1].cos(), code[:, 1].sin()], 1)

    mix = kmixup.LatentMixup(encode, decode, K, 1.0, 2, lam_per="sample", generator=seeded())
    draw_pairs(axes, x, mix.mix(x, y))


def draw_regression(axes: Axes) -> None:
    """Plot points on a curve, mixed with points of similar target."""
    x = torch.rand(96, 1, generator=seeded())
    y = torch.sin(7 * x[:, 0])
    mixed = kmixup.CMixup(1, 2.0, sigma=0.1, lam_per="sample", generator=seeded()).mix(x, y)
    points = torch.stack([x[:, 0], y], 1)
    lines = torch.stack([points, points[mixed.partner]], 1).numpy()
    axes.scatter(points[:, 0], points[:, 1], s=9, color=BLUE, alpha=0.35, linewidths=0)
    axes.add_collection(LineCollection(list(lines), colors="black", linewidths=0.5, alpha=0.45))
    axes.scatter(mixed.x[:, 0], mixed.y, s=16, color=GREY, edgecolors="black", linewidths=0.4)


def draw_digits(axes: Axes, mixed: kmixup.Mixed, x: Tensor) -> None:
    """Show four digits, their partners (if one each) and the mixed images."""
    rows = [x[:4], mixed.x[:4]] if isinstance(mixed, SharedMixed) else [
        x[:4], x[mixed.partner[:4]], mixed.x[:4]
    ]  # fmt: skip
    tiles = [F.pad(row[:, 0], (1, 1, 1, 1), value=3.0) for row in rows]
    image = torch.cat([torch.cat(list(row), 1) for row in tiles])
    axes.imshow(image.detach().numpy(), cmap="gray_r")
    if isinstance(mixed.region, Tensor):  # a box
        boxes = mixed.region.expand(len(x), 4).tolist()
        for i, (top, left, bottom, right) in enumerate(boxes[:4]):
            corner = (10 * i + 1 + left - 0.5, 20 + 1 + top - 0.5)
            size = right - left, bottom - top
            axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor=ORANGE, linewidth=1.5))


def image_methods() -> Iterator[tuple[str, Figure]]:
    digits = load_digits()
    x = torch.tensor(digits.images[:128, None], dtype=torch.float32)
    y = torch.tensor(digits.target[:128])
    net = convolutional()
    automix = kmixup.AutoMix(net, (1, 8, 8), 1, 2.0, 10, generator=seeded())
    fitted(net, x, y, automix)
    importance = kmixup.saliency(net, x, y)
    place = torch.Generator().manual_seed(5)  # gives a box of medium size
    mixers = {
        "cutmix": kmixup.CutMix(1, 1.0, 10, generator=place),
        "resizemix": kmixup.ResizeMix(1, 10, scale=(0.6, 0.8), generator=seeded()),
        "fmix": kmixup.FMix(1, 1.0, 10, generator=seeded()),
        "saliencymix": kmixup.SaliencyMix(1, 1.0, 10, generator=place.clone_state()),
        "stackmix": kmixup.StackMix(1, 10, generator=seeded()),
        "guided": kmixup.GuidedMixup(K, 1.0, 10, generator=seeded()),
        "puzzlemix": kmixup.PuzzleMix(1, 1.0, 10, lam_per="sample", generator=seeded()),
        "comixup": kmixup.CoMixup(1, 2.0, 10, generator=seeded()),
        "automix": automix,
    }
    for name, mix in mixers.items():
        figure, axes = panel()
        draw_digits(axes, mix.mix(x, y, importance=importance), x)
        yield name, figure


def point_methods() -> Iterator[tuple[str, Figure]]:
    data = load("four-bars", size=128, seed=1)
    x, y = data.x_train.float(), data.y_train
    stages = kmixup.Beta(1.0), kmixup.Linear()
    mixers = {
        "mixup": kmixup.KMixup(1, 1.0, 2, lam_per="sample"),
        "kmixup": kmixup.KMixup(K, 1.0, 2, lam_per="sample"),
        "nearest": kmixup.Mixer(kmixup.Nearest(K), *stages, num_classes=2, lam_per="sample"),
        "local": kmixup.LocalMixup(1, 1.0, 2, lam_per="sample"),
        "similar": kmixup.SimilarMixup(1, 1.0, 2),
    }
    for name, mix in mixers.items():
        figure, axes = panel()
        mix.generator = seeded()
        draw_pairs(axes, x, mix.mix(x, y))
        yield name, figure
    figure, axes = panel()
    clean = kmixup.RegMixup(1, 10.0, 2, lam_per="sample", generator=seeded()).mix(x, y)
    draw_pairs(axes, x, first_half(clean))
    draw_points(axes, x, y, alpha=1.0)
    yield "regmixup", figure
    for name, draw in (
        ("adamixup", partial(draw_adapted, x=x, y=y)),
        ("manifold", partial(draw_hidden, x=x, y=y)),
        ("latent", draw_latent),
        ("cmixup", draw_regression),
    ):
        figure, axes = panel()
        draw(axes)
        yield name, figure


def panel() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(4.2, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    return figure, axes


def main() -> None:
    parser = argparse.ArgumentParser(description="A picture of every mixing method.")
    parser.add_argument("--out", type=Path, default=Path("out/methods"), help="folder")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name, figure in chain(point_methods(), image_methods()):
        figure.savefig(out / f"{name}.webp", dpi=100)
    print(f"methods: {out.resolve()}")


if __name__ == "__main__":
    main()
