"""`kmixup inspect`: what k and alpha would do to a data set, without training."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from kmixup._checks import check_whole
from kmixup.lab._files import check_folder
from kmixup.lab.commands import options
from kmixup.lab.data import load


def inspect(
    data: options.DataName,
    *,
    alpha: float = 1.0,
    largest_k: int = 256,
    size: int = 10_000,
    pairing: Literal["loaders", "batch"] = "loaders",
    seed: int = 0,
    reading: options.FileOptions = options.NONE_GIVEN,
    out: Path | None = None,
    page: bool = True,
) -> None:
    """Show what k and alpha would do to a data set, without training.

    Samples are matched at k = 1, 2, 4 and so on. You see how near partners come, which k and
    alpha are as strong as mixup, how often partners differ in class, and whether mixed points
    lie among the data or contradict the labels there, on the terminal and on a page with plots
    and pairs. Strength is xi, the root mean square distance between a sample and its mixed point.
    To choose k and alpha on validation samples, use kmixup tune.

    ```
    # your own table
    kmixup inspect table.csv --target species
    # embeddings of a network, saved as x and y in an .npz
    kmixup inspect embeddings.npz --scaling none
    # the alpha at each k that is as strong as mixup with alpha = 0.2
    kmixup inspect table.csv --alpha 0.2 --no-page
    # quick, on the terminal only
    kmixup inspect mnist --size 2000 --largest-k 64 --no-page
    ```

    Args:
        alpha: Alpha of mixup, to compare strengths with.
        largest_k: Largest k, in powers of two.
        size: Number of samples to inspect, drawn at random where there are more.
        pairing: Source of partners, as in kmixup train: a second loader, or the same batch.
        seed: Seed of the split and of all random draws.
        out: Folder of the page. By default one in out/inspect.
        page: Write inspect.html.
    """
    from kmixup.lab.inspection import inspect_data
    from kmixup.lab.report.inspect import inspect_document
    from kmixup.lab.report.render_html import write

    for name, value, least in (("seed", seed, 0), ("largest_k", largest_k, 1), ("size", size, 4)):
        check_whole(name, value, least=least)
    folder = out or Path("out/inspect") / Path(data).expanduser().resolve().name
    check_folder(folder)
    options.import_from_here(data)
    with options.spinner(f"reading {data}") as say:
        loaded = load(data, seed=seed, **reading)
        inspected = inspect_data(
            loaded, alpha=alpha, largest_k=largest_k, size=size, pairing=pairing, seed=seed,
            watch=lambda k: say(f"matching samples of {data} at k = {k}"),
        )  # fmt: skip
    options.print_columns(loaded)
    document = inspect_document(inspected, options.typed())
    options.print_document(document)
    if page:
        print(f"page: {write(document, folder / 'inspect.html')}")
