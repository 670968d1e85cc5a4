"""`kmixup calibrate`: the alpha for k that perturbs a data set as much as mixup does."""

from __future__ import annotations

import warnings
from typing import Annotated

import torch
import typer

from kmixup.calibration import Calibration
from kmixup.calibration import calibrate as find
from kmixup.lab.commands.options import DATA, Limit, Scaling, Target

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
    seed: Annotated[int, typer.Option(help="Of the split and of the sampling.")] = 0,
) -> None:
    from kmixup.lab.data import load
    from kmixup.lab.prepare import Inputs
    from kmixup.lab.words import markdown

    loaded = load(data, scaling=scaling, limit=limit, target=target, seed=seed)  # type: ignore[arg-type]
    found = []
    for one in k:
        generator = torch.Generator().manual_seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the table says what is out of reach
            found.append(find(Inputs(loaded), one, alpha, disjoint=disjoint, generator=generator))
    typer.echo(
        f"{loaded.title}, {len(loaded.x_train):,} training samples, scaling {loaded.scaling}: "
        f"mixup with alpha = {alpha:g} has xi = {found[0].target_xi:.4g}"
    )
    header = ["k", "alpha", "xi", "squared distance, as a share of random pairs'"]
    typer.echo(markdown(header, [_line(one) for one in found]))
    if unreached := [str(one.k) for one in found if not one.reachable]:
        typer.echo(f"no alpha perturbs as much at k = {', '.join(unreached)}: this is the cap")


def _line(found: Calibration) -> list[str]:
    one = found.square_distance_1
    ratio, error = found.square_distance / one, found.standard_error / one
    return [str(found.k), f"{found.alpha:.3g}", f"{found.xi:.4g}", f"{ratio:.3f} ± {error:.3f}"]
