"""What `kmixup.lab.cost` measured, in tables, a sentence and a figure, beside the paper's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kmixup.lab import sinkhorn
from kmixup.lab.checkpoint import replace_file
from kmixup.lab.cost import PARTS, Cost, Row
from kmixup.lab.record import machine, versions
from kmixup.lab.words import count, markdown

# Supplement, "Computational cost": CIFAR-10 at k = 32, on the authors' GPU
PAPER = {
    "assignment": "0.69 s",
    "distance": "about 0.5 s",
    "epoch": "over 30 s",
    "share": "below 4%",
}
NAME = "cost"
ADDED = PARTS[1:]
COLOURS = dict(zip(ADDED, ("#bbbbbb", "#4477aa", "#66ccee", "#ee6677"), strict=True))


@dataclass(frozen=True)
class Table:
    """A title, a header and rows of words."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(cost: Cost) -> Iterator[Table]:
    """The methods and their parts, the paper's figures, and Sinkhorn where it was measured."""
    yield Table(
        "An epoch, and what mixing adds to it in % of an epoch of ERM (mixup is k = 1)",
        ("method", "epoch", "over ERM", *ADDED, "added"),
        tuple(_method(row) for row in cost.rows),
    )
    here = cost.row(cost.k)
    share = here.shares["assignment"] + here.shares["distance"]
    yield Table(
        "Beside the paper",
        ("of an epoch", "paper: CIFAR-10, k = 32, GPU", f"here: k = {here.k}, one thread"),
        (
            ("assignment", PAPER["assignment"], _seconds(here.parts["assignment"])),
            ("distances", PAPER["distance"], _seconds(here.parts["distance"])),
            ("all of it", PAPER["epoch"], _seconds(here.epoch)),
            ("both, as a share", PAPER["share"], f"{share:.1%}"),
        ),
    )
    if cost.sinkhorn is not None:
        yield Table(
            "Sinkhorn in place of the exact assignment",
            ("k", "exact", "regularised", "by block", "at once", "plan's excess"),
            tuple(
                (
                    str(one.k),
                    _seconds(one.exact),
                    f"{one.regularisation:g}",
                    f"{_times(one.one_by_one)} ×",
                    f"{_times(one.at_once)} ×",
                    f"+ {100 * one.excess:.1f} %",
                )
                for one in cost.sinkhorn
            ),
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
    times = [min(one.one_by_one, one.at_once) for one in cost.sinkhorn]
    excess = [one.excess for one in cost.sinkhorn]
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
    parts += [f"## {one.title}\n\n{markdown(one.header, one.rows)}" for one in tables(cost)]
    parts += [f"![Shares of a step, and seconds of an epoch, against k]({NAME}.svg)"]
    parts += [f"Measured with `{command}`: {protocol(cost)}"]
    return "\n\n".join(parts) + "\n"


def plain(cost: Cost, command: str) -> dict[str, Any]:
    """All of it as plain values, fit for JSON; times in seconds."""
    found = asdict(cost)
    for row, written in zip(cost.rows, found["rows"], strict=True):
        written |= {"name": row.name, "shares": row.shares, "added": row.added}
    where = machine("cpu", 1) | {"threads": 1}
    paper = {"data": "cifar10", "k": 32, **PAPER}
    return found | {"paper": paper, "command": command, "versions": versions(), "machine": where}


def figure(cost: Cost) -> Figure:
    """Left: what a step with mixing spends on its parts. Right: seconds of an epoch."""
    rows = [row for row in cost.rows if row.k is not None]
    labels = [str(row.k) for row in rows]
    drawing = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = drawing.subplots(1, 2)
    _stacked(left, rows, labels)
    erm, epochs = cost.row(None).epoch, [row.epoch for row in rows]
    right.axhline(erm, color="black", linestyle="--", label="ERM")
    right.plot(labels, epochs, marker="o", color="#4477aa", label="k-mixup (k = 1: mixup)")
    right.set_ylim(0, 1.25 * max(erm, *epochs))
    right.set_title("Seconds of an epoch", loc="left")
    right.legend(frameon=False, loc="lower right")
    for axes in (left, right):
        axes.set_xlabel("k")
        axes.spines[["top", "right"]].set_visible(False)
    drawing.suptitle(f"{cost.data}, {cost.model}, one thread", fontsize="medium")
    return drawing


def write(cost: Cost, folder: Path, command: str) -> list[Path]:
    """Put page, values and figure into a folder, each whole or not at all."""
    values = json.dumps(plain(cost, command), indent=2) + "\n"
    writers = {
        "md": partial(_text, page(cost, command)),
        "json": partial(_text, values),
        "svg": partial(_picture, figure(cost), "svg", {"Date": None}),
        "png": partial(_picture, figure(cost), "png", {"Software": None}),
    }
    paths = {folder / f"{NAME}.{kind}": writer for kind, writer in writers.items()}
    for path, writer in paths.items():
        replace_file(path, writer)
    return list(paths)


def _text(text: str, stream: IO[bytes]) -> None:
    stream.write(text.encode())


def _picture(drawing: Figure, kind: str, metadata: dict[str, None], stream: IO[bytes]) -> None:
    # no date, version or random id: the same drawing gives the same file
    with rc_context({"svg.hashsalt": NAME}):
        drawing.savefig(stream, format=kind, dpi=150, metadata=metadata)


def _method(row: Row) -> tuple[str, ...]:
    training = row.parts["training"]
    shares = [f"{100 * row.parts[part] / training:.2f}" for part in ADDED]
    over = f"{100 * (row.over_erm - 1):+.1f}"
    return (row.name, _seconds(row.epoch), over, *shares, f"{100 * row.added:.2f}")


def _seconds(seconds: float) -> str:
    """
    >>> _seconds(0.0691), _seconds(0.691), _seconds(11.52), _seconds(1234.5)
    ('69.1 ms', '0.69 s', '11.5 s', '1,234 s')
    """
    if seconds < 0.1:
        return f"{1e3 * seconds:.3g} ms"
    digits = 2 if seconds < 10 else 1 if seconds < 100 else 0
    return f"{seconds:,.{digits}f} s"


def _times(ratio: float) -> str:
    """
    >>> _times(1.234), _times(12.34), _times(1234.5)
    ('1.2', '12', '1,234')
    """
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"


def _stacked(axes: Axes, rows: list[Row], labels: list[str]) -> None:
    below = [0.0] * len(rows)
    for part in ADDED:
        heights = [100 * row.shares[part] for row in rows]
        axes.bar(labels, heights, bottom=below, color=COLOURS[part], label=part)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.set_ylim(0, 1.45 * max(below))
    axes.set_title("Shares of a step, % (the rest is training)", loc="left")
    axes.legend(frameon=False, loc="upper left", ncols=2)
