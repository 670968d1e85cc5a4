"""Decision surfaces on the Swiss roll while alpha rises: no mixup, mixup and k-mixup.

    python examples/demo.py                             # about a minute and a half
    python examples/demo.py --seeds 5 --out docs/img    # the published film

Trains small networks on two spiral arms for every alpha and k below, and writes

- `demo.webp`, a looping film: the surfaces of no mixup, mixup and k = 16 while alpha rises, and
- `demo.js`, the data of the interactive figure on the start page of the documentation.

Errors are means over the seeds on 2,048 fresh points; surfaces are those of the first seed.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
from dataclasses import replace
from pathlib import Path
from statistics import mean

import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor
from tqdm import tqdm

from kmixup import Beta, KMixup
from kmixup.lab.data import Dataset
from kmixup.lab.plotting import BLUE, ORANGE, in_style
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.train.fleet import train_fleet
from kmixup.lab.train.setup import DivergedError, computing_on, load_data
from kmixup.lab.trial import Method, Trial

DATA = "swiss-roll"
ALPHAS = (0.05, 0.1, 0.2, 0.5, 1, 2, 4, 8, 16)
KS = (1, 4, 16, 64)
FILM = (0, 1, 16)  # the k of the film's panels; 0 is no mixup
STEPS = 64  # points of a surface along an axis
SHOWN = 256  # mixed points in a picture
PAUSES = [600] * (len(ALPHAS) - 1) + [2500]  # milliseconds
FADED = LinearSegmentedColormap.from_list("faded", ["#f7dca6", "#ffffff", "#a6cfe8"])
STRONG = LinearSegmentedColormap.from_list("strong", [ORANGE, "#999999", BLUE])

Setting = tuple[int, float]  # k and alpha; (0, 0.0) is no mixup
SETTINGS: list[Setting] = [(0, 0.0), *((k, alpha) for k in KS for alpha in ALPHAS)]


def trained(seeds: int) -> tuple[dict[Setting, float], dict[Setting, Tensor], float]:
    """Test errors in %, surfaces `(STEPS, STEPS)` of the first seed, and half of their width."""
    usual = defaults_for(DATA)
    start = Trial(DATA, usual.model, protocol=usual.protocol)
    data = load_data(start)
    edge = 1.05 * float(data.x_train.abs().max())
    errors: dict[Setting, list[float]] = {setting: [] for setting in SETTINGS}
    surfaces: dict[Setting, Tensor] = {}
    for seed in tqdm(range(seeds), "seeds"):
        fleet = [
            replace(
                start, seed=seed, method=Method("kmixup", k, alpha=alpha) if k else Method("erm")
            )
            for k, alpha in SETTINGS
        ]
        with computing_on(1):
            members = train_fleet(fleet)
        for setting, member in zip(SETTINGS, members, strict=True):
            if isinstance(member, DivergedError):
                raise member
            errors[setting].append(100 * member.record["result"]["error"])
            if seed == 0:
                surfaces[setting] = surface(member.net, data, edge)
    return {setting: mean(values) for setting, values in errors.items()}, surfaces, edge


def surface(net: torch.nn.Module, data: Dataset, edge: float) -> Tensor:
    """Probability of class 1 on a grid, from the bottom to the top."""
    axis = torch.linspace(-edge, edge, STEPS)
    plane = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), 2).view(-1, 2)
    with torch.no_grad():
        belief: Tensor = net(data.normalise(plane)).softmax(1)[:, 1]
    return belief.view(STEPS, STEPS)


def sample() -> tuple[Tensor, Tensor, dict[int, Tensor]]:
    """Training points, their classes, and their partners at every k."""
    data = load_data(Trial(DATA, defaults_for(DATA).model))
    x, y = data.x_train[:SHOWN], data.y_train[:SHOWN]
    generator = torch.Generator()
    return x, y, {k: KMixup(k, generator=generator.manual_seed(1)).mix(x).partner for k in KS}


def lams(alpha: float) -> Tensor:
    """The lam of each point: the quantiles of its distribution in a random order."""
    order = torch.randperm(SHOWN, generator=torch.Generator().manual_seed(2))
    return Beta(alpha).lam((order + 0.5) / SHOWN).float()


def film(errors: dict[Setting, float], surfaces: dict[Setting, Tensor], edge: float) -> list[bytes]:
    """The pictures, as PNG files."""
    x, y, partners = sample()
    pictures = []
    for alpha in ALPHAS:
        with in_style():
            figure = Figure(figsize=(7.2, 2.95), layout="constrained")
            for axes, k in zip(figure.subplots(1, len(FILM)), FILM, strict=True):
                setting = (k, alpha) if k else (0, 0.0)
                points, labels = x, y.float()
                if k:
                    lam, partner = lams(alpha), partners[k]
                    points = lam[:, None] * x + (1 - lam[:, None]) * x[partner]
                    labels = lam * y + (1 - lam) * y[partner]
                draw(axes, surfaces[setting], edge, points, labels)
                name = {0: "no mixup", 1: "mixup"}.get(k, f"k-mixup, k = {k}")
                axes.set_title(name, fontsize=11)
                axes.set_xlabel(f"test error {errors[setting]:.1f} %", fontsize=11)
            figure.suptitle(f"alpha = {alpha:g}", fontsize=13, fontweight="bold")
            stream = io.BytesIO()
            figure.savefig(stream, format="png", dpi=100, metadata={"Software": None})
        pictures.append(stream.getvalue())
    return pictures


def draw(axes: Axes, belief: Tensor, edge: float, points: Tensor, labels: Tensor) -> None:
    extent = (-edge, edge, -edge, edge)
    grid = belief.numpy()
    axes.imshow(
        grid, origin="lower", extent=extent, cmap=FADED, vmin=0, vmax=1, interpolation="bilinear"
    )
    axes.contour(grid, levels=[0.5], extent=extent, colors="black", linewidths=0.8)
    across, up = points.T.numpy()
    axes.scatter(across, up, c=labels.numpy(), s=5, cmap=STRONG, vmin=0, vmax=1)
    axes.set(xlim=(-edge, edge), ylim=(-edge, edge), xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_visible(False)


def script(errors: dict[Setting, float], surfaces: dict[Setting, Tensor], edge: float) -> str:
    """The interactive figure's data, a script so that it loads from a disk too."""
    x, y, partners = sample()
    demo = {
        "steps": STEPS,
        "edge": round(edge, 3),
        "alphas": ALPHAS,
        "points": [[round(value, 2) for value in point] for point in x.tolist()],
        "classes": y.tolist(),
        "lams": [[round(value, 3) for value in lams(alpha).tolist()] for alpha in ALPHAS],
        "partners": {k: partner.tolist() for k, partner in partners.items()},
        "errors": {
            k: [round(errors[k, alpha], 2) for alpha in ALPHAS] for k in KS
        } | {0: [round(errors[0, 0.0], 2)]},
        "surfaces": {k: [packed(surfaces[k, alpha]) for alpha in ALPHAS] for k in KS}
        | {0: [packed(surfaces[0, 0.0])]},
    }  # fmt: skip
    return f"const kmixupDemo = {json.dumps(demo, separators=(',', ':'))};\n"


def packed(belief: Tensor) -> str:
    """Probabilities as 16 levels, two in a byte."""
    levels = (15 * belief.flatten()).round().to(torch.uint8)
    return base64.b64encode((16 * levels[::2] + levels[1::2]).numpy().tobytes()).decode()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1, help="networks per setting (default: 1)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder (default: out)")
    options = parser.parse_args()
    if options.seeds < 1:
        parser.error(f"--seeds must be 1 or more, got {options.seeds}")
    results = trained(options.seeds)
    options.out.mkdir(parents=True, exist_ok=True)
    pictures = film(*results)
    frames = [Image.open(io.BytesIO(picture)).convert("RGB") for picture in pictures]
    frames[0].save(
        options.out / "demo.webp", save_all=True, append_images=frames[1:], duration=PAUSES, loop=0,
        quality=80, method=6,
    )  # fmt: skip
    (options.out / "demo.js").write_text(script(*results))
    errors = results[0]
    print(f"test error at alpha = {ALPHAS[-1]}: no mixup {errors[0, 0.0]:.1f} %", end="")
    print("".join(f", k = {k} {errors[k, ALPHAS[-1]]:.1f} %" for k in KS))


if __name__ == "__main__":
    main()
