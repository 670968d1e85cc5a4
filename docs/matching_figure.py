"""The figure on "How matching works": a batch, its matching at several k, and a slider for k.

`python docs/matching_figure.py` writes the picture at `SHOWN` into docs/img/matching.svg. The
site replaces it by a figure with the matchings at all k, and docs/matching.js adds the slider.
"""

import json
import math
from pathlib import Path

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


def drawing(points: Tensor, cluster: Tensor, partner: Tensor) -> str:
    """The batch, lines to partners, and the midpoints, as the inside of an SVG."""
    where = (160 + 120 * points).round(decimals=1)
    ends, middle = where[partner].tolist(), ((where + where[partner]) / 2).tolist()
    line = '<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'
    sample, mixed = (f'<circle {{}}cx="{{:.1f}}" cy="{{:.1f}}" r="{r}"/>' for r in (3.5, 2))
    kinds = [f'class="c{label % 2}" ' for label in cluster.tolist()]
    groups = {
        "pairs": (line.format(*a, *b) for a, b in zip(where.tolist(), ends, strict=True)),
        "samples": (sample.format(c, *at) for c, at in zip(kinds, where.tolist(), strict=True)),
        "mixed": (mixed.format("", *at) for at in middle),
    }
    return "\n".join(f'<g class="{name}">{"".join(parts)}</g>' for name, parts in groups.items())


def picture() -> str:
    """An SVG file, readable on light and dark pages."""
    points, cluster = ring()
    style = (
        "line { stroke: #888; stroke-width: 0.8 } .c0 { fill: #e69f00 } .c1 { fill: #2e8fd0 } "
        ".mixed { fill: #888 }"
    )
    inside = drawing(points, cluster, partners(points, SHOWN))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 320"><style>{style}</style>\n'
        f"{inside}\n</svg>\n"
    )


def figure(script: str) -> str:
    """HTML of the figure, in one block, with the address of its script."""
    points, cluster = ring()
    found, said = {k: partners(points, k) for k in KS}, []
    for k, partner in found.items():
        distance = (points - points[partner]).norm(dim=1).mean()
        other = (cluster != cluster[partner]).float().mean()
        name = "mixup, random pairs" if k == 1 else "matched pairs"
        said.append(
            f"k = {k} ({name}): partners are {distance:.2f} apart, {other:.0%} in another cluster"
        )
    data = json.dumps({k: partner.tolist() for k, partner in found.items()}, separators=(",", ":"))
    about, at = json.dumps(said).replace("'", "&#39;"), KS.index(SHOWN)
    return f"""<figure class='matching' data-partners='{data}' data-said='{about}'>
<svg viewBox="0 0 320 320" role="img" aria-label="Samples in eight clusters on a ring, lines to \
their partners, and the midpoints">
{drawing(points, cluster, found[SHOWN])}
</svg>
<label hidden>k <input type="range" min="0" max="{len(KS) - 1}" value="{at}" step="1"></label>
<figcaption aria-live="polite">{said[at]}</figcaption>
</figure>
<script src="{script}" defer></script>"""


if __name__ == "__main__":
    (Path(__file__).parent / "img/matching.svg").write_text(picture())
