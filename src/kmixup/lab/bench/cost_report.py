"""The report of `kmixup bench cost`: tables beside the paper's, and a conclusion."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kmixup.lab.bench import sinkhorn
from kmixup.lab.bench.cost import PARTS, Cost, MethodCost
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import TextTable, count, stopwatch
from kmixup.lab.train.record import machine, versions

# Supplement, "Computational cost": CIFAR-10 at k = 32, on the authors' GPU
PAPER = {
    "assignment": "0.69 s",
    "distance": "about 0.5 s",
    "epoch": "over 30 s",
    "share": "below 4%",
}
ADDED = PARTS[1:]


def tables(cost: Cost) -> Iterator[TextTable]:
    """The methods and their parts, the paper's numbers, and Sinkhorn if it was measured."""
    yield TextTable(
        ("method", "epoch", "over ERM", *ADDED, "added"),
        tuple(_method(row) for row in cost.rows),
        "An epoch, and what mixing adds to it in % of an epoch of ERM (mixup is k = 1)",
    )
    here = cost.row(cost.k)
    share = here.shares["assignment"] + here.shares["distance"]
    yield TextTable(
        ("of an epoch", "paper: CIFAR-10, k = 32, GPU", f"here: k = {here.k}, one thread"),
        (
            ("assignment", PAPER["assignment"], stopwatch(here.parts["assignment"])),
            ("distances", PAPER["distance"], stopwatch(here.parts["distance"])),
            ("all of it", PAPER["epoch"], stopwatch(here.epoch)),
            ("both, as a share", PAPER["share"], f"{share:.1%}"),
        ),
        "Beside the paper",
    )
    if cost.sinkhorn is not None:
        rows = [
            (
                str(rival.k),
                stopwatch(rival.exact),
                f"{rival.regularisation:g}",
                f"{_times(rival.ratio)} ×",
                f"+ {100 * rival.excess:.1f} %",
            )
            for rival in cost.sinkhorn
        ]
        head = ("k", "exact", "regularised", "Sinkhorn", "plan's excess")
        yield TextTable(head, rows, "Sinkhorn in place of the exact assignment")


def protocol(cost: Cost) -> str:
    """How it was measured."""
    where = machine("cpu", 1)
    words = (
        f"{cost.data}, {cost.model}, batches of {cost.batch_size}, on one thread of the CPU "
        f"({where['processor']}, {where['cores']} cores, torch {versions()['torch']}). All methods "
        f"and parts alternate, in {count(cost.turns, 'turn')} of {count(cost.steps, 'step')} each: "
        'times are the best turn\'s, "over ERM" is the median of the ratios within a turn, and an '
        f"epoch of {cost.samples:,} samples is extrapolated from the steps, without testing. The "
        "parts are timed alone, on the same batches; distance is all of the matching except the "
        "solver, which is the assignment."
    )
    if cost.sinkhorn is None:
        return words
    return words + (
        " Sinkhorn is POT's, in the log domain on float32 tensors, all blocks of a batch at once "
        "(bregman_log_projection_batch), regularised by the given share of the mean squared "
        f"distance in a block, until the marginals are within {sinkhorn.TOLERANCE:.0%}, at most "
        f"{sinkhorn.ITERATIONS:,} iterations; its times are multiples of the exact solver's, with "
        "distances given to both. The excess is the cost of its plan, made a coupling, over that "
        "of the optimal assignment."
    )


def conclusion(cost: Cost) -> str:
    """The result in two sentences."""
    here, mixup = cost.row(cost.k), cost.row(1)
    words = (
        f"k-mixup at k = {here.k} adds {here.added:.1%} to an epoch of ERM, where mixup adds "
        f"{mixup.added:.1%}; the assignment is {here.shares['assignment']:.1%} of its step, the "
        f"distances {here.shares['distance']:.1%}."
    )
    if cost.sinkhorn is None:
        return words
    times = [rival.ratio for rival in cost.sinkhorn]
    excess = [rival.excess for rival in cost.sinkhorn]
    slower = sum(time > 1 for time in times)
    where = f"in {slower} of {len(times)} comparisons"
    if slower == len(times):
        where = "at every k, as the paper found"
    return (
        f"{words} Sinkhorn is slower than the exact assignment {where}: it takes "
        f"{_times(min(times))} to {_times(max(times))} times as long, and its plans cost "
        f"{min(excess):.1%} to {max(excess):.1%} more than the optimum."
    )


def write(cost: Cost, folder: Path, command: str) -> list[Path]:
    """Write `cost.md` and `cost.json` into a folder."""
    parts = ["# What k-mixup costs", conclusion(cost)]
    parts += [f"## {table.title}\n\n{table.aligned()}" for table in tables(cost)]
    parts.append(f"Measured with `{command}`: {protocol(cost)}")
    values = json.dumps(_plain(cost, command), indent=2)
    contents = {"cost.md": "\n\n".join(parts), "cost.json": values}
    for name, content in contents.items():
        replace_content(folder / name, content + "\n")
    return [folder / name for name in contents]


def _plain(cost: Cost, command: str) -> dict[str, Any]:
    """The measurements as JSON values; times in seconds."""
    values = asdict(cost)
    for row, written in zip(cost.rows, values["rows"], strict=True):
        written |= {"name": row.name, "shares": row.shares, "added": row.added}
    where = machine("cpu", 1) | {"threads": 1}
    paper = {"data": "cifar10", "k": 32, **PAPER}
    return values | {"paper": paper, "command": command, "versions": versions(), "machine": where}


def _method(row: MethodCost) -> tuple[str, ...]:
    training = row.parts["training"]
    shares = [f"{100 * row.parts[part] / training:.2f}" for part in ADDED]
    over = f"{100 * (row.over_erm - 1):+.1f}"
    return (row.name, stopwatch(row.epoch), over, *shares, f"{100 * row.added:.2f}")


def _times(ratio: float) -> str:
    """
    >>> _times(1.234), _times(12.34), _times(1234.5)
    ('1.2', '12', '1,234')
    """
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"
