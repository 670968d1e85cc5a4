"""The gap of One Ring, from ERM and xi only.

The paper draws a ring around a disc and gives its xi, which imply a mean squared distance
of 1.13, and says that ERM is right on nearly every point. For each width of the
gap this takes the ring, 0.2 wide, that has that distance, and trains five networks without
any mixing. The narrowest gap with a mean error below 0.05 % is the one in `toy.py`.

    python results/settings/one_ring.py
"""

from __future__ import annotations

import math

import torch

from kmixup.lab.data import toy
from kmixup.lab.train.fleet import train_fleet
from kmixup.lab.train.loop import Trained
from kmixup.lab.trial import TOY, Method, Trial

SQUARE_DISTANCE, WIDTH = 1.13, 0.2


def inner_radius(gap: float) -> float:
    """The ring's: half of (a - gap)² + a² + (a + width)² is the mean squared distance."""
    b = (WIDTH - gap) / 3
    c = (gap**2 + WIDTH**2 - 2 * SQUARE_DISTANCE) / 3
    return -b + math.sqrt(b * b - c)


def main() -> None:
    torch.set_num_threads(1)
    print("gap    disc   ring           test errors of ERM, %")
    for gap in (0.01, 0.02, 0.03, 0.05, 0.075, 0.1):
        a = inner_radius(gap)
        toy.DISC, toy.RING = a - gap, (a, a + WIDTH)
        trials = [Trial("one-ring", "mlp-toy", Method("erm"), TOY, seed=t) for t in range(5)]
        errors = [
            100 * trained.record["result"]["error"]
            for trained in train_fleet(trials)
            if isinstance(trained, Trained)
        ]
        figures = "  ".join(f"{error:.2f}" for error in errors)
        print(f"{gap:<6} {a - gap:.3f}  {a:.3f} – {a + WIDTH:.3f}  {figures}", flush=True)


if __name__ == "__main__":
    main()
