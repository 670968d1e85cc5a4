"""`kmixup bench`: the cost of mixing on this machine."""

from __future__ import annotations

from cyclopts import App

from kmixup.lab.commands import options

bench = App(name="bench", help="Measure what mixing costs.")


@bench.command
def cost(
    data: options.DataName = "mnist",
    *,
    model: options.ModelName = None,
    batch_size: int = 128,
    steps: int = 20,
    seconds: float = 60,
) -> None:
    """Measure what k-mixup adds to an epoch of training, for k = 1 … 64, on one thread.

    A data set that is not downloaded is replaced by random noise of the same shape.

    ```
    # MNIST and LeNet, about two minutes
    kmixup bench cost
    # the paper's example, from few steps of a large network
    kmixup bench cost cifar10 --steps 2
    # your own data and network
    kmixup bench cost photos/ --model my_package.nets:small --batch-size 256
    ```

    Args:
        batch_size: Samples per step, and the largest k.
        steps: Batches in a turn, from which an epoch is extrapolated.
        seconds: Time to spend on the methods, three turns at least.
    """
    from kmixup.lab.bench.cost import cost_document, measure

    options.import_from_here(data, model)
    with options.spinner(f"timing {data}"):
        measured = measure(data, model=model, batch_size=batch_size, steps=steps, seconds=seconds)
    options.print_document(cost_document(measured, options.typed()))
