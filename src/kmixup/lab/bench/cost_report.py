"""The report of `kmixup bench cost`: tables beside the paper's, a conclusion and a figure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kmixup.lab.bench import sinkhorn
from kmixup.lab.bench.cost import PARTS, Cost, MethodCost
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import TextTable, count, stopwatch
from kmixup.lab.pages.style import BLACK, BLUE, FAINT, ORANGE, SKY, panels, styled
from kmixup.lab.pages.svg import png, svg
from kmixup.lab.train.record import machine, versions

# Supplement, "Computational cost": CIFAR-10 at k = 32, on the authors' GPU
PAPER = {
    "assignment": "0.69 s",
    "distance": "about 0.5 s",
    "epoch": "over 30 s",
    "share": "below 4%",
}
NAME = "cost"
ADDED = PARTS[1:]
COLOURS = dict(zip(ADDED, (FAINT, BLUE, SKY, ORANGE), strict=True))


def tables(cost: Cost) -> Iterator[TextTable]:
    """The methods and their parts, the paper's figures, and Sinkhorn where it was measured."""
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
        yield TextTable(
            ("k", "exact", "regularised", "by block", "at once", "plan's excess"),
            tuple(
                (
                    str(rival.k),
                    stopwatch(rival.exact),
                    f"{rival.regularisation:g}",
                    f"{_times(rival.one_by_one)} ×",
                    f"{_times(rival.at_once)} ×",
                    f"+ {100 * rival.excess:.1f} %",
                )
                for rival in cost.sinkhorn
            ),
            "Sinkhorn in place of the exact assignment",
        )


def protocol(cost: Cost) -> str:
    """How it was measured, in words."""
    where = machine("cpu", 1)
    words = (
        f"{cost.data}, {cost.model}, batches of {cost.batch_size}, on one thread of the CPU "
        f"({where['processor']}, {where['cores']} cores, torch {versions()['torch']}). All methods "
        f"and parts alternate, in {count(cost.turns, 'turn')} of {count(cost.steps, 'step')} each: "
        'times are the best turn\'s, "over ERM" is the median of the ratios within a turn, and an '
        f"epoch of {cost.samples:,} samples is extrapolated from the steps, without testing. The "
        "parts are timed alone, on the same batches; distance is all of the matching but the "
        "solver, which is the assignment."
    )
    if cost.sinkhorn is None:
        return words
    return words + (
        " Sinkhorn is POT's, in the log domain on float32 tensors, block by block (sinkhorn_log) "
        "and all blocks at once (bregman_log_projection_batch), regularised by the given share "
        "of the mean squared distance in a block, until the marginals are within "
        f"{sinkhorn.TOLERANCE:.0%}, for at most {sinkhorn.ITERATIONS:,} iterations; its times are "
        "multiples of the exact solver's for a batch, distances being given to both. The excess is "
        "the cost of its plan, made a coupling, over that of the optimal assignment."
    )


def conclusion(cost: Cost) -> str:
    """What it comes to, in plain words."""
    here, mixup = cost.row(cost.k), cost.row(1)
    words = (
        f"k-mixup at k = {here.k} adds {here.added:.1%} to an epoch of ERM, where mixup adds "
        f"{mixup.added:.1%}; the assignment is {here.shares['assignment']:.1%} of its step, the "
        f"distances {here.shares['distance']:.1%}."
    )
    if cost.sinkhorn is None:
        return words
    times = [min(rival.one_by_one, rival.at_once) for rival in cost.sinkhorn]
    excess = [rival.excess for rival in cost.sinkhorn]
    slower = sum(time > 1 for time in times)
    everywhere = (
        "at every k, as the paper found" if slower == len(times) else
        f"in {slower} of {len(times)} comparisons"
    )  # fmt: skip
    return (
        f"{words} Sinkhorn is slower than the exact assignment {everywhere}: the faster of its "
        f"two ways takes {_times(min(times))} to {_times(max(times))} times as long, and its "
        f"plans cost {min(excess):.1%} to {max(excess):.1%} more than the optimum."
    )


def page(cost: Cost, command: str) -> str:
    """All of it in Markdown."""
    parts = ["# What k-mixup costs", conclusion(cost)]
    parts += [f"## {table.title}\n\n{table.aligned()}" for table in tables(cost)]
    parts += [f"![Shares of a step, and seconds of an epoch, against k]({NAME}.svg)"]
    parts += [f"Measured with `{command}`: {protocol(cost)}"]
    return "\n\n".join(parts) + "\n"


def plain(cost: Cost, command: str) -> dict[str, Any]:
    """All of it as plain values, fit for JSON; times in seconds."""
    values = asdict(cost)
    for row, written in zip(cost.rows, values["rows"], strict=True):
        written |= {"name": row.name, "shares": row.shares, "added": row.added}
    where = machine("cpu", 1) | {"threads": 1}
    paper = {"data": "cifar10", "k": 32, **PAPER}
    return values | {"paper": paper, "command": command, "versions": versions(), "machine": where}


@styled
def figure(cost: Cost) -> Figure:
    """Left: what a step with mixing spends on its parts. Right: seconds of an epoch."""
    rows = [row for row in cost.rows if row.k is not None]
    labels = [str(row.k) for row in rows]
    drawing, grid = panels(1, 2, size=(4.5, 3.6))
    left, right = grid[0]
    _stacked(left, rows, labels)
    erm, epochs = cost.row(None).epoch, [row.epoch for row in rows]
    right.axhline(erm, color=BLACK, linestyle="dashed", label="ERM")
    right.plot(labels, epochs, marker="o", color=BLUE, label="k-mixup (k = 1: mixup)")
    right.set_ylim(0, 1.25 * max(erm, *epochs))
    right.set_title("Seconds of an epoch", loc="left")
    right.legend(loc="lower right")
    for axes in (left, right):
        axes.set_xlabel("k")
    drawing.suptitle(f"{cost.data}, {cost.model}, one thread", fontsize="medium")
    return drawing


def write(cost: Cost, folder: Path, command: str) -> list[Path]:
    """Put page, values and figure into a folder, each whole or not at all."""
    drawing, about = figure(cost), {"Title": f"kmixup: {NAME}"}
    contents: dict[str, str | bytes] = {
        "md": page(cost, command),
        "json": json.dumps(plain(cost, command), indent=2) + "\n",
        "svg": svg(drawing, about),
        "png": png(drawing, about),
    }
    paths = [folder / f"{NAME}.{kind}" for kind in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        replace_content(path, content)
    return paths


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


def _stacked(axes: Axes, rows: list[MethodCost], labels: list[str]) -> None:
    below = [0.0] * len(rows)
    for part in ADDED:
        heights = [100 * row.shares[part] for row in rows]
        axes.bar(labels, heights, bottom=below, color=COLOURS[part], label=part)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.set_ylim(0, 1.45 * max(below))
    axes.set_title("Shares of a step, % (the rest is training)", loc="left")
    axes.legend(loc="upper left", ncols=2)
