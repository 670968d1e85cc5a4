"""The figure on the start page: a batch, its matching at several k, and a slider between them.

The site's build calls `figure`, so it always shows what `kmixup.KMixup` computes. Without a
script the page shows the picture at `SHOWN`; docs/matching.js adds the slider.
"""

import json
import math

import torch
from torch import Tensor

from kmixup import KMixup

KS = (1, 2, 4, 8, 16, 32, 64)
SHOWN = 16
CLUSTERS = 8


def ring(n: int = 128) -> tuple[Tensor, Tensor]:
    """Points `(n, 2)` of clusters on a ring, and the cluster of each."""
    cluster = torch.arange(n) % CLUSTERS
    angle = 2 * math.pi * cluster / CLUSTERS
    centres = torch.stack([angle.cos(), angle.sin()], 1)
    return centres + 0.08 * torch.randn(n, 2, generator=torch.Generator().manual_seed(0)), cluster


def partners(points: Tensor, k: int) -> Tensor:
    return KMixup(k=k, generator=torch.Generator().manual_seed(1)).mix(points).partner


def figure() -> str:
    """HTML of the figure, in one block."""
    points, cluster = ring()
    found = {k: partners(points, k) for k in KS}
    where = (160 + 120 * points).round(decimals=1)
    shown = found[SHOWN]
    middle = (where + where[shown]) / 2
    lines = [
        '<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'.format(*a, *b)
        for a, b in zip(where.tolist(), where[shown].tolist(), strict=True)
    ]
    samples = [
        '<circle class="c{}" cx="{:.1f}" cy="{:.1f}" r="3.5"/>'.format(label % 2, *at)
        for label, at in zip(cluster.tolist(), where.tolist(), strict=True)
    ]
    mixed = ['<circle cx="{:.1f}" cy="{:.1f}" r="2"/>'.format(*at) for at in middle.tolist()]
    said = []
    for k, partner in found.items():
        distance = (points - points[partner]).norm(dim=1).mean()
        other = (cluster != cluster[partner]).float().mean()
        name = "mixup, random pairs" if k == 1 else "matched pairs"
        said.append(
            f"k = {k} ({name}): partners are {distance:.2f} apart, {other:.0%} in another cluster"
        )
    data = json.dumps({k: partner.tolist() for k, partner in found.items()}, separators=(",", ":"))
    about = json.dumps(said).replace("'", "&#39;")
    return "\n".join(
        [
            f"<figure class='matching' data-partners='{data}' data-said='{about}'>",
            '<svg viewBox="0 0 320 320" role="img" aria-label="Samples in eight clusters on a '
            'ring, lines to their partners, and the mixed points half-way">',
            f'<g class="pairs">{"".join(lines)}</g>',
            f'<g class="samples">{"".join(samples)}</g>',
            f'<g class="mixed">{"".join(mixed)}</g>',
            "</svg>",
            f'<label hidden>k <input type="range" min="0" max="{len(KS) - 1}" '
            f'value="{KS.index(SHOWN)}" step="1"></label>',
            f'<figcaption aria-live="polite">{said[KS.index(SHOWN)]}</figcaption>',
            "</figure>",
            '<script src="matching.js" defer></script>',
        ]
    )
