"""Manifold intrusion on Four Bars: mixed samples on a bar of the wrong class.

    python examples/intrusion.py [--epochs 100] [--trials 3] [--out out/intrusion.png]

Midway between two bars of one class lies a bar of the other: the data contradict the label of a
mixed sample there ("manifold intrusion"). Trains a small network with mixup and k-mixup, each with
uniform lam per pair and the clean batch added, and with AdaMixup, whose policy learns from the
whole loss, as published, or from its critic only. Plots the mixed samples of the first trial, with
crosses where they intrude, and the learned intervals by the pair's average. Writes the numbers of
all trials to a CSV next to the picture.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from torch import Tensor, nn

import kmixup
from kmixup.interpolation import Pair
from kmixup.lab.data import load
from kmixup.lab.data.toy import BAR_DISTANCE, BAR_LENGTH, BAR_WIDTH

ORANGE, GREY, BLUE = "#d95f0e", "#999999", "#2166ac"
COLOURS = LinearSegmentedColormap.from_list("classes", [ORANGE, GREY, BLUE])
EACH = nn.CrossEntropyLoss(reduction="none")

MIXERS: dict[str, Callable[[nn.Module], kmixup.Mixer]] = {
    "mixup": lambda net: kmixup.RegMixup(1, 1.0, 2, lam_per="sample"),
    "k-mixup, k = 16": lambda net: kmixup.RegMixup(16, 1.0, 2, lam_per="sample"),
    "AdaMixup": lambda net: kmixup.AdaMixup(net, (2,), 1, 2),
    "AdaMixup, policy from the critic": lambda net: kmixup.AdaMixup(net, (2,), 1, 2, joint=False),
}


@dataclass(frozen=True)
class Outcome:
    """Result of one trained network.

    Attributes:
        mixer: its name.
        trial: its seed.
        intrusion: fraction of mixed samples on a bar whose class has less than half of the label.
        step: mean of min(lam, 1 - lam), the strength of mixing.
        error: test error.
    """

    mixer: str
    trial: int
    intrusion: float
    step: float
    error: float


def class_at(x: Tensor) -> Tensor:
    """Return the class of the bar at each point, or -1 off the bars."""
    bar = (x[:, 0] / BAR_DISTANCE + 1.5).round().clamp(0, 3)
    beside = (x[:, 0] - BAR_DISTANCE * (bar - 1.5)).abs() > BAR_WIDTH / 2
    return torch.where(beside | (x[:, 1].abs() > BAR_LENGTH / 2), -1, bar.long() % 2)


def intrudes(mixed: kmixup.Mixed, n: int) -> Tensor:
    """Return whether each of the first `n` mixed samples lies on a bar of the other class."""
    there = class_at(mixed.x[:n])
    share: Tensor = mixed.y[:n].gather(1, there.clamp(min=0)[:, None])[:, 0]
    return (there >= 0) & (share < 0.5)


def train(
    name: str, trial: int, x: Tensor, y: Tensor, epochs: int
) -> tuple[nn.Module, kmixup.Mixer]:
    """Train a network together with the mixer's parameters."""
    torch.manual_seed(trial)
    net = nn.Sequential(
        nn.Linear(2, 130), nn.ReLU(), nn.Linear(130, 120), nn.ReLU(), nn.Linear(120, 2)
    )
    mix = MIXERS[name](net)
    optimiser = torch.optim.Adam([*net.parameters(), *mix.parameters()], lr=0.003)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(128):
            mixed = mix.mix(x[rows], y[rows])
            optimiser.zero_grad()
            mixed.loss(EACH, net(mixed.x)).mean().backward()
            optimiser.step()
    return net, mix


@torch.no_grad()
def judge(
    name: str, trial: int, net: nn.Module, mixed: kmixup.Mixed, test: tuple[Tensor, Tensor]
) -> Outcome:
    n = len(mixed.lam) // 2
    lam = mixed.lam[:n]
    x, y = test
    return Outcome(
        name,
        trial,
        float(intrudes(mixed, n).float().mean()),
        float(torch.minimum(lam, 1 - lam).mean()),
        float((net(x).argmax(1) != y).float().mean()),
    )


def draw_mixed(axes: Axes, title: str, x: Tensor, mixed: kmixup.Mixed) -> None:
    n = len(x)
    axes.scatter(x[:, 0], x[:, 1], s=4, color="#dddddd", linewidths=0)
    wrong = intrudes(mixed, n)
    for rows, marker, size in ((~wrong, "o", 7), (wrong, "x", 16)):
        colours = COLOURS(mixed.y[:n][rows, 1].numpy())
        at = mixed.x[:n][rows]
        axes.scatter(at[:, 0], at[:, 1], s=size, marker=marker, c=colours, linewidths=0.9)
    axes.set_title(f"{title}\n{100 * float(wrong.float().mean()):.1f} % intrude", fontsize=9)
    axes.set(xticks=[], yticks=[])


@torch.no_grad()
def draw_intervals(axes: Axes, mix: kmixup.Mixer) -> None:
    """Plot the interval of lam by the pair's average, halfway up the bars."""
    across = torch.linspace(-6, 6, 241)
    points = torch.stack([across, torch.zeros(241)], 1)
    low, high = (
        mix.interpolation.settle(torch.tensor(u), None, Pair.of([points]))[0] for u in (0.0, 1.0)
    )
    for bar in range(4):
        middle, half = BAR_DISTANCE * (bar - 1.5), BAR_WIDTH / 2
        colour = COLOURS(float(bar % 2))
        axes.axvspan(middle - half, middle + half, color=colour, alpha=0.25, linewidth=0)
    axes.fill_between(across, low, high, color="black", alpha=0.35, linewidth=1.5)
    axes.set(ylim=(-0.03, 1.03), xlabel="average of the pair, across the bars", ylabel="lam")
    axes.set_title("learned intervals, from a to a + Δ", fontsize=9)


def run(epochs: int, trials: int) -> tuple[Figure, list[Outcome]]:
    data = load("four-bars")
    x, y = data.x_train.float(), data.y_train
    test = data.x_test.float(), data.y_test
    outcomes = []
    figure = Figure(figsize=(11, 6.4), layout="constrained")
    above, below = figure.subplots(2, 3)
    panels = dict(zip(MIXERS, (above[0], below[0], *above[1:]), strict=True))
    intervals = dict(zip(MIXERS, (None, None, *below[1:]), strict=True))
    for trial in range(trials):
        for name in MIXERS:
            net, mix = train(name, trial, x, y, epochs)
            with torch.no_grad():
                mixed = mix.mix(x, y)
            outcomes.append(judge(name, trial, net, mixed, test))
            if trial == 0:
                draw_mixed(panels[name], name, x, mixed)
                if (axes := intervals[name]) is not None:
                    draw_intervals(axes, mix)
    return figure, outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description="Manifold intrusion on Four Bars.")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("out/intrusion.png"), help="picture file")
    options = parser.parse_args()
    if min(options.epochs, options.trials) < 1:
        parser.error("--epochs and --trials must be at least 1")
    figure, outcomes = run(options.epochs, options.trials)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=110)
    with options.out.with_suffix(".csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([field.name for field in fields(Outcome)])
        table.writerows(astuple(outcome) for outcome in outcomes)
    for outcome in outcomes:
        print(
            f"{outcome.mixer}, trial {outcome.trial}: {100 * outcome.intrusion:.1f} % intrude, "
            f"mean step {outcome.step:.3f}, test error {100 * outcome.error:.1f} %"
        )
    print(f"picture: {options.out.resolve()}")


if __name__ == "__main__":
    main()
