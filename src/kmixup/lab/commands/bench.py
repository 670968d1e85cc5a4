"""`kmixup bench`: the cost of mixing on this machine."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from kmixup.lab.commands import options
from kmixup.lab.files import check_folder

bench = App(name="bench", help="Measure what mixing costs.")


@bench.command
def cost(
    data: options.DataName = "mnist",
    *,
    model: options.ModelName = None,
    batch_size: int = 128,
    steps: int = 20,
    seconds: float = 60,
    out: Path | None = None,
) -> None:
    """Measure what k-mixup adds to training, part by part.

    Seconds per epoch of ERM, mixup and k-mixup for k = 1 … 64, and the shares of distances,
    assignment and mixing in a step, beside the paper's numbers. On one thread, in turns. If a
    data set is not at hand, noise of its shape takes its place.

    ```
    # MNIST and LeNet, about two minutes
    kmixup bench cost
    # the paper's example, from few steps of a large network, with tables in a folder
    kmixup bench cost cifar10 --steps 2 --out out/cost
    # your own data and network
    kmixup bench cost photos/ --model my_package.nets:small --batch-size 256
    # a quick look
    kmixup bench cost iris --steps 1 --seconds 1
    ```

    Args:
        batch_size: Samples per step, and the largest k.
        steps: Batches in a turn, from which an epoch is extrapolated.
        seconds: Time to spend on the methods, three turns at least.
        out: Folder for cost.md and cost.json.
    """
    from kmixup.lab.bench.cost import cost_document, measure, write

    options.import_from_here(data, model)
    if out is not None:
        check_folder(out)
    with options.spinner("loading") as say:
        measured = measure(
            data, model=model, batch_size=batch_size, steps=steps, seconds=seconds, say=say
        )
    options.print_document(cost_document(measured, options.typed()))
    if out is not None:
        for path in write(measured, out, options.typed()):
            print(f"written: {path}")
