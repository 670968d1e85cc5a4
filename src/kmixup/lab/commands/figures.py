"""`kmixup figures`: draw the paper's figures and additional ones."""

from __future__ import annotations

import time
from typing import Annotated

from cyclopts import Parameter

from kmixup._checks import SettingError, check_choice, check_whole
from kmixup.lab._files import check_folder
from kmixup.lab.commands.options import Flag, import_from_here, print_status
from kmixup.lab.figures import NAMES, OF_DATA
from kmixup.lab.figures.gallery import DRAW, Settings
from kmixup.lab.formatting import duration
from kmixup.lab.plotting import save

LIST = "\n".join(f"- {name}: {summary}" for name, summary in NAMES.items())


@Parameter(name="*")
class Options(Settings):
    """Options of `kmixup figures`."""

    data: Annotated[
        str | None, Parameter(help=f"Draw {', '.join(OF_DATA)} of a data set or your own data.")
    ]
    quick: Flag


def figures(
    names: Annotated[
        list[str] | None, Parameter(name="NAME", help=f"All by default.\n\n{LIST}")
    ] = None,
    /,
    *,
    settings: Options = Options(),
) -> None:
    """Draw the paper's figures and additional ones, as SVG and PNG with a caption.

    The runs of convergence are kept in the folder: repeat an interrupted command to resume it.

    ```
    # two of them
    kmixup figures couplings matching
    # what k-mixup does to your own data; more than two features are projected
    kmixup figures --data table.csv --target species
    # a quick look at all
    kmixup figures --quick
    ```
    """
    for name in names or ():
        check_choice("figure", name, NAMES)
        if settings.data is not None and name not in OF_DATA:
            raise SettingError(
                "data", f"can be drawn as {', '.join(OF_DATA)}, not as {name}: leave it out"
            )
    check_whole("seed", settings.seed, least=0)
    check_whole("trials", settings.trials)
    check_folder(settings.out)
    import_from_here(settings.data)
    usual = NAMES if settings.data is None else [name for name in OF_DATA if name != "convergence"]
    wanted = [name for name in NAMES if name in (names or usual)]
    for i, name in enumerate(wanted, 1):
        print_status(f"{i} of {len(wanted)}: {name}, {NAMES[name]}")
        start = time.perf_counter()
        files = save(DRAW[name](settings), settings.out, name)
        took = duration(time.perf_counter() - start)
        print(f"written: {files[0]}, {', '.join(file.suffix for file in files[1:])} ({took})")
