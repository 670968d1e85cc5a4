"""`kmixup calibrate`: the alpha for k that perturbs a data set as much as mixup does."""

from __future__ import annotations

import warnings
from typing import Annotated

import torch
import typer

from kmixup.calibration import Calibration
from kmixup.calibration import calibrate as find
from kmixup.lab.commands.options import DATA, Drop, Limit, Resize, Scaling, Target, height_and_width

HELP = """Find the alpha at k that perturbs the data as much as mixup does at yours.

Partners at a larger k are nearer, so that the same alpha perturbs less. The strength that is
kept is xi, the root mean square way from a sample to its mixed point.

\b
For the paper's k, on MNIST:
  kmixup calibrate mnist --alpha 0.2
For one k and your own table:
  kmixup calibrate table.csv --target species --k 16
With partners from the same batch in place of a second loader:
  kmixup calibrate iris --k 16 --disjoint
"""

KS = [2, 4, 8, 16, 32]


def calibrate(
    data: Annotated[str, typer.Argument(help=DATA)],
    k: Annotated[list[int], typer.Option(help="May be repeated.")] = KS,
    alpha: Annotated[float, typer.Option(help="Of the mixup to equal.")] = 1.0,
    disjoint: Annotated[
        bool, typer.Option("--disjoint", help="Pair inside a batch, not with a second loader.")
    ] = False,
    scaling: Scaling = None,
    limit: Limit = None,
    target: Target = None,
    drop: Drop = [],  # noqa: B006, typer copies it
    resize: Resize = None,
    augment: Annotated[
        bool | None,
        typer.Option(
            "--augment/--no-augment",
            help="Crop and flip images first; by default as training does.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the split and of the sampling.")] = 0,
) -> None:
    from kmixup.lab.data import load
    from kmixup.lab.formatting import TextTable
    from kmixup.lab.train.defaults import defaults_for
    from kmixup.lab.train.setup import Inputs, check_augment

    loaded = load(
        data, scaling=scaling, limit=limit, target=target, seed=seed, drop=drop,  # type: ignore[arg-type]
        resize=height_and_width(resize),
    )  # fmt: skip
    if augment is None:
        augment = defaults_for(data, loaded).protocol.augment
    if augment:
        check_augment(loaded)
    calibrations = []
    for size in k:
        generator, crops = (torch.Generator().manual_seed(seed) for _ in range(2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the table says what is out of reach
            calibrations.append(
                find(
                    Inputs(loaded, crops if augment else None),
                    size,
                    alpha,
                    disjoint=disjoint,
                    generator=generator,
                )
            )
    treated = ", cropped and flipped at random" if augment else ""
    typer.echo(
        f"{loaded.title}, {len(loaded.x_train):,} training samples, scaling {loaded.scaling}"
        f"{treated}: "
        f"mixup with alpha = {alpha:g} has xi = {calibrations[0].target_xi:.4g}"
    )
    header = ["k", "alpha", "xi", "squared distance, as a share of random pairs'"]
    typer.echo(TextTable(header, [_line(calibration) for calibration in calibrations]).aligned())
    if unreached := [str(missed.k) for missed in calibrations if not missed.reachable]:
        typer.echo(f"no alpha perturbs as much at k = {', '.join(unreached)}: this is the cap")


def _line(calibration: Calibration) -> list[str]:
    ratio = calibration.matched / calibration.square_distance_1
    share = f"{ratio.value:.3f} ± {ratio.error:.3f}"
    return [str(calibration.k), f"{calibration.alpha:.3g}", f"{calibration.xi:.4g}", share]
