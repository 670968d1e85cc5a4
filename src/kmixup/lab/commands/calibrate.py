"""`kmixup calibrate`: the alpha at k that perturbs a data set as much as mixup does."""

from __future__ import annotations

import warnings
from typing import Annotated, Literal

import torch
from cyclopts import Parameter

from kmixup.calibration import calibrate as find
from kmixup.lab.checks import check_whole
from kmixup.lab.commands.options import DataName, import_from_here, print_columns, spinner
from kmixup.lab.data import load
from kmixup.lab.formatting import TextTable
from kmixup.lab.train.config import DataOptions
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.train.setup import Inputs


def calibrate(
    data: DataName,
    *,
    k: Annotated[tuple[int, ...], Parameter(show_default=True)] = (2, 4, 8, 16, 32),
    alpha: float = 1.0,
    pairing: Literal["loaders", "batch"] = "loaders",
    seed: int = 0,
    reading: DataOptions = DataOptions(),
) -> None:
    """Find the alpha at which k-mixup perturbs the data as much as mixup.

    Partners at a larger k are nearer, so that the same alpha perturbs less. The strength that is
    kept is xi, the root mean square distance between a sample and its mixed point. Images are
    cropped and flipped first where training does so.

    ```
    # for the paper's k, on MNIST
    kmixup calibrate mnist --alpha 0.2
    # for one k and your own table, with partners from the same batch
    kmixup calibrate table.csv --target species --k 16 --pairing batch
    ```

    Args:
        k: Samples in a block. May be repeated.
        alpha: Alpha of mixup.
        pairing: Source of partners, as in kmixup train: a second loader, or the same batch.
        seed: Seed of the split and of the sampling.
    """
    check_whole("seed", seed, least=0)
    import_from_here(data)
    with spinner(f"matching samples of {data}"):
        loaded = load(data, seed=seed, **vars(reading))
        augment = defaults_for(data, loaded).protocol.augment
        calibrations = []
        for size in k:
            generator, crops = (torch.Generator().manual_seed(seed) for _ in range(2))
            inputs = Inputs(loaded, crops if augment else None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the table says what is out of reach
                calibrations.append(
                    find(inputs, size, alpha, disjoint=pairing == "batch", generator=generator)
                )
    print_columns(loaded)
    print(
        f"{loaded.title}, {len(loaded.x_train):,} training samples, scaling {loaded.scaling}"
        f"{', randomly cropped and flipped' if augment else ''}, "
        f"partners from {'a second loader' if pairing == 'loaders' else 'the same batch'}: "
        f"mixup with alpha = {alpha:g} has xi = {calibrations[0].target_xi:.4g}"
    )
    header = ["k", "alpha", "xi", "squared distance, as a share of random pairs'"]
    rows = []
    for found in calibrations:
        ratio = found.matched / found.square_distance_1
        share = f"{ratio.value:.3f} ± {ratio.error:.3f}"
        rows.append([str(found.k), f"{found.alpha:.3g}", f"{found.xi:.4g}", share])
    print(TextTable(header, rows).aligned())
    if unreached := [str(missed.k) for missed in calibrations if not missed.reachable]:
        print(f"no alpha perturbs as much at k = {', '.join(unreached)}: this is the cap")
