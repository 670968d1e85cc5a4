"""`kmixup figures`: the paper's figures, drawn anew, and some that it lacks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kmixup.lab.checks import SettingError
from kmixup.lab.commands.options import import_from_here, print_status
from kmixup.lab.figures import NAMES, OF_DATA
from kmixup.lab.files import check_folder
from kmixup.lab.formatting import duration
from kmixup.lab.train.config import Flag

LIST = "\n".join(f"- {name}: {summary}" for name, summary in NAMES.items())


def figures(
    names: Annotated[
        list[str] | None, Parameter(name="NAME", help=f"All by default.\n\n{LIST}")
    ] = None,
    /,
    *,
    out: Path = Path("out/figures"),
    data: Annotated[
        str | None, Parameter(help=f"Draw {', '.join(OF_DATA)} of a data set or your own data.")
    ] = None,
    target: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    epochs: int | None = None,
    trials: int = 1,
    quick: Flag = False,
) -> None:
    """Draw the paper's figures, and some that it lacks, as SVG and PNG with a caption.

    Networks trained for a figure are kept in the folder, so that drawing it again is quick.

    ```
    # all of them, or two
    kmixup figures --out out/figures
    kmixup figures couplings matching
    # what k-mixup does to your own data; more than two features are projected
    kmixup figures --data table.csv --target species
    # convergence as in the paper, which needs a GPU
    kmixup figures convergence --data cifar10 --epochs 200 --trials 20
    # a quick look
    kmixup figures --quick
    ```

    Args:
        out: Folder to draw into.
        target: Column of a table with the classes.
        limit: Use only the first samples of --data or MNIST.
        seed: Seed of points, partners and networks.
        epochs: Number of epochs for surfaces (200 by default) and convergence (10).
        trials: Networks for each line of convergence.
        quick: Draw the smallest version that shows something.
    """
    wanted = chosen(names or (), own_data=data is not None)
    check_folder(out)
    import_from_here(data)
    from kmixup.lab.figures.gallery import Settings, draw

    settings = Settings(out, data, limit, target, seed, epochs, trials, quick)
    for i, name in enumerate(wanted, 1):
        print_status(f"{i} of {len(wanted)}: {name}, {NAMES[name]}")
        start = time.perf_counter()
        files = draw(name, settings)
        took = duration(time.perf_counter() - start)
        print(f"written: {files[0]}, {', '.join(file.suffix for file in files[1:])} ({took})")


def chosen(names: Sequence[str], *, own_data: bool) -> list[str]:
    """Return the figures to draw, in order; without names all that need no training."""
    for name in names:
        if name not in NAMES:
            close = get_close_matches(name, NAMES, n=3, cutoff=0.5) or NAMES
            raise ValueError(f"there is no figure {name!r}: did you mean {' or '.join(close)}?")
        if own_data and name not in OF_DATA:
            raise SettingError(
                "data", f"can be drawn as {', '.join(OF_DATA)}, not as {name}: leave it out"
            )
    usual = [name for name in OF_DATA if name != "convergence"] if own_data else NAMES
    return [name for name in NAMES if name in (names or usual)]
