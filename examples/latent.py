"""Latent mixup: mix the codes of a small class-conditional generator.

    python examples/latent.py [--data moons] [--steps 1000] [--out out/latent.png]
    python examples/latent.py --data mnist --limit 10000 --steps 2000

Trains a conditional variational autoencoder: E(x, y) is a code z, D(z, c) an input, where c is
the one-hot class. `LatentMixup` averages both, so two samples of one class mix on that class's
manifold, and two of different classes on one in between. Plots the samples of mixup, k-mixup and
latent mixup on two half-moons or on digits, and prints the distance from mixed samples of one
class to the nearest sample of that class.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from sklearn.datasets import make_moons
from torch import Tensor, nn
from torch.nn import functional as F

import kmixup
from kmixup.lab.data import load

ORANGE, GREY, BLUE = "#d95f0e", "#999999", "#2166ac"
COLOURS = LinearSegmentedColormap.from_list("classes", [ORANGE, GREY, BLUE])
K = 16
LATENT = {"moons": 1, "mnist": 16}  # code dimensions; a moon has one

Code = dict[str, Tensor]


class Generator(nn.Module):
    """Conditional variational autoencoder with two hidden layers on each side.

    Args:
        shape: shape of one input.
        classes: number of classes.
        latent: dimensions of a code.
        noise: standard deviation of inputs around the decoded ones.
    """

    def __init__(self, shape: tuple[int, ...], classes: int, latent: int, noise: float) -> None:
        super().__init__()
        size = math.prod(shape)
        width = 64 if size < 100 else 400
        self.shape, self.classes, self.noise = shape, classes, noise
        self.encoder = nn.Sequential(
            nn.Linear(size + classes, width), nn.ELU(), nn.Linear(width, width), nn.ELU(),
            nn.Linear(width, 2 * latent),
        )  # fmt: skip
        self.decoder = nn.Sequential(
            nn.Linear(latent + classes, width), nn.ELU(), nn.Linear(width, width), nn.ELU(),
            nn.Linear(width, size),
        )  # fmt: skip

    def encode(self, x: Tensor, y: Tensor) -> Code:
        """Return the mean of the code and the one-hot class."""
        return {"z": self._posterior(x, y)[0], "class": self._class(y)}

    def decode(self, code: Code) -> Tensor:
        both = torch.cat([code["z"], code["class"]], 1)
        inputs: Tensor = self.decoder(both).view(-1, *self.shape)
        return inputs

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the negative evidence lower bound, up to a constant."""
        mean, spread = self._posterior(x, y)
        z = mean + spread.exp() * torch.randn_like(mean)
        gap = (self.decode({"z": z, "class": self._class(y)}) - x) / self.noise
        misfit = gap.square().flatten(1).sum(1) / 2
        divergence = ((2 * spread).exp() + mean.square() - 1 - 2 * spread).sum(1) / 2
        return (misfit + divergence).mean()

    def _posterior(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        both = torch.cat([x.flatten(1), self._class(y)], 1)
        mean, spread = self.encoder(both).chunk(2, 1)
        return mean, spread.clamp(-8, 4)

    def _class(self, y: Tensor) -> Tensor:
        return F.one_hot(y, self.classes).float()


def samples(name: str, limit: int | None) -> tuple[Tensor, Tensor]:
    """Return the inputs and classes of a data set."""
    if name == "moons":
        points, classes = make_moons(limit or 1000, noise=0.05, random_state=0)
        return torch.tensor(points, dtype=torch.float32), torch.tensor(classes)
    data = load(name, limit=limit)
    return data.normalise(data.x_train), data.y_train


def learned(x: Tensor, y: Tensor, latent: int, steps: int) -> Generator:
    """Return a generator trained on the samples, in a few seconds."""
    torch.manual_seed(0)
    noise = 0.1 if x.dim() == 2 else 0.5
    generator = Generator(tuple(x.shape[1:]), int(y.max()) + 1, latent, noise)
    optimiser = torch.optim.Adam(generator.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        rows = torch.randint(len(x), (256,))
        optimiser.zero_grad()
        generator.loss(x[rows], y[rows]).backward()
        optimiser.step()
        schedule.step()
    return generator.requires_grad_(False).eval()


def mixers(generator: Generator) -> dict[str, kmixup.Mixer]:
    """Return mixup, k-mixup and latent mixup, with one lam per pair."""
    classes = generator.classes

    def seeded() -> torch.Generator:
        return torch.Generator().manual_seed(2)

    codecs = generator.encode, generator.decode
    return {
        "mixup": kmixup.KMixup(1, 1.0, classes, lam_per="sample", generator=seeded()),
        f"k-mixup, k = {K}": kmixup.KMixup(K, 1.0, classes, lam_per="sample", generator=seeded()),
        "latent mixup": kmixup.LatentMixup(
            *codecs, 1, 1.0, classes, conditional=True, lam_per="sample", generator=seeded()
        ),
        f"latent k-mixup, k = {K}": kmixup.LatentMixup(
            *codecs, K, 1.0, classes, conditional=True, lam_per="sample", generator=seeded()
        ),
    }


def off_manifold(mixed: kmixup.Mixed, x: Tensor, y: Tensor) -> float:
    """Return the mean distance from mixed samples of one class to its nearest sample."""
    own, partner = mixed.targets
    distances = [
        torch.cdist(mixed.x[rows].flatten(1), x[y == label].flatten(1)).amin(1)
        for label in y.unique()
        if (rows := (own == label) & (partner == label)).any()
    ]
    return float(torch.cat(distances).mean())


def draw_points(axes: Axes, x: Tensor, y: Tensor, mixed: kmixup.Mixed) -> None:
    """Plot the data, a line per pair, and the mixed points in the colours of their labels."""
    axes.scatter(x[:, 0], x[:, 1], s=3, c=COLOURS(y.float().numpy()), alpha=0.25, linewidths=0)
    n = len(mixed.x)
    lines = torch.stack([x[:n], x[mixed.partner]], 1).numpy()
    axes.add_collection(LineCollection(list(lines), colors="black", linewidths=0.4, alpha=0.25))
    inside = COLOURS(mixed.y[:, 1].numpy())
    axes.scatter(mixed.x[:, 0], mixed.x[:, 1], s=15, c=inside, edgecolors="black", linewidths=0.4)
    axes.set(xticks=[], yticks=[], aspect="equal")


def draw_digits(axes: Axes, x: Tensor, mixed: kmixup.Mixed) -> None:
    """Show eight digits, their partners and the mixed images."""
    rows = torch.cat([x[:8], x[mixed.partner[:8]], mixed.x[:8]])
    tiles = F.pad(rows[:, 0], (1, 1, 1, 1), value=float(x.max()))
    height, width = tiles.shape[-2:]
    image = tiles.view(3, 8, height, width).permute(0, 2, 1, 3).reshape(3 * height, 8 * width)
    axes.imshow(image.numpy(), cmap="gray_r", vmin=float(x.min()), vmax=float(x.max()))
    axes.set(xticks=[], yticks=[], xlabel="from the top: image, partner, mixed")


def picture(x: Tensor, y: Tensor, generator: Generator) -> tuple[Figure, dict[str, float]]:
    """Return the picture and, for each mixer, the distance of mixed samples from the data."""
    figure = Figure(figsize=(12, 2.3), layout="constrained")
    panels = figure.subplots(1, 4)
    far = {}
    for axes, (name, mix) in zip(panels, mixers(generator).items(), strict=True):
        mixed = mix.mix(x[:128], y[:128])
        far[name] = off_manifold(mixed, x, y)
        if x.dim() == 4:
            draw_digits(axes, x, mixed)
        else:
            draw_points(axes, x, y, mixed)
        axes.set_title(name, fontsize=10)
    return figure, far


def main() -> None:
    parser = argparse.ArgumentParser(description="Mix the codes of a generator.")
    parser.add_argument("--data", choices=LATENT, default="moons")
    parser.add_argument("--steps", type=int, default=1000, help="training steps of the generator")
    parser.add_argument("--limit", type=int, help="use only the first samples")
    parser.add_argument("--out", type=Path, default=Path("out/latent.png"), help="picture file")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error(f"--steps must be at least 1, got {options.steps}")
    x, y = samples(options.data, options.limit)
    figure, far = picture(x, y, learned(x, y, LATENT[options.data], options.steps))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=110)
    for name, distance in far.items():
        print(f"{name}: distance from mixed samples to the nearest of their class {distance:.3f}")
    print(f"picture: {options.out.resolve()}")


if __name__ == "__main__":
    main()
