"""The report of `kmixup bench cost`: the conclusion, then tables beside the paper's numbers."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from kmixup.lab.bench.cost import PARTS, Cost, MethodCost
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import count, stopwatch
from kmixup.lab.report import document as doc
from kmixup.lab.report.render_text import markdown
from kmixup.lab.train.record import machine, versions

# Supplement, "Computational cost": CIFAR-10 at k = 32, on the authors' GPU
PAPER = {
    "assignment": "0.69 s",
    "distance": "about 0.5 s",
    "epoch": "over 30 s",
    "share": "below 4%",
}
ADDED = PARTS[1:]


def cost_document(cost: Cost, command: str) -> doc.Document:
    """The methods and their parts, and the paper's numbers."""
    here, mixup = cost.row(cost.k), cost.row(1)
    share = here.shares["assignment"] + here.shares["distance"]
    conclusion = (
        f"k-mixup at k = {here.k} adds {here.added:.1%} to an epoch of ERM, mixup adds "
        f"{mixup.added:.1%}."
    )
    parts = (
        f"The assignment is {here.shares['assignment']:.1%} of a step at k = {here.k}, the "
        f"distances {here.shares['distance']:.1%}."
    )
    methods = doc.ReportTable(
        ("method", "epoch", "over ERM", *ADDED, "added"),
        [_method(row) for row in cost.rows],
        "An epoch, and what mixing adds to it in % of an epoch of ERM (mixup is k = 1)",
        numeric=True,
    )
    paper = doc.ReportTable(
        ("of an epoch", "paper: CIFAR-10, k = 32, GPU", f"here: k = {here.k}, one thread"),
        (
            ("assignment", PAPER["assignment"], stopwatch(here.parts["assignment"])),
            ("distances", PAPER["distance"], stopwatch(here.parts["distance"])),
            ("all of it", PAPER["epoch"], stopwatch(here.epoch)),
            ("both, as a share", PAPER["share"], f"{share:.1%}"),
        ),
        "Beside the paper",
    )
    blocks = (
        doc.Headline(conclusion, [parts]), methods, paper, doc.Paragraph(protocol(cost)),
        doc.Code(command),
    )  # fmt: skip
    return doc.Document("What k-mixup costs", blocks)


def protocol(cost: Cost) -> str:
    """How it was measured."""
    where = machine("cpu", 1)
    return (
        f"{cost.data}, {cost.model}, batches of {cost.batch_size}, on one CPU thread "
        f"({where['processor']}, {where['cores']} cores, torch {versions()['torch']}). All methods "
        f"and parts alternate, in {count(cost.turns, 'turn')} of {count(cost.steps, 'step')} each: "
        'times are the best turn\'s, "over ERM" is the median of the ratios within a turn, and an '
        f"epoch of {cost.samples:,} samples is extrapolated from the steps, without testing. The "
        "parts are timed alone, on the same batches; distance is all of the matching except the "
        "solver, which is the assignment."
    )


def write(cost: Cost, folder: Path, command: str) -> list[Path]:
    """Write `cost.md` and `cost.json`, with times in seconds, into a folder."""
    values = asdict(cost)
    for row, written in zip(cost.rows, values["rows"], strict=True):
        written |= {"name": row.name, "shares": row.shares, "added": row.added}
    values |= {
        "paper": {"data": "cifar10", "k": 32, **PAPER},
        "command": command,
        "versions": versions(),
        "machine": machine("cpu", 1) | {"threads": 1},
    }
    contents = {
        "cost.md": markdown(cost_document(cost, command)),
        "cost.json": json.dumps(values, indent=2) + "\n",
    }
    for name, content in contents.items():
        replace_content(folder / name, content)
    return [folder / name for name in contents]


def _method(row: MethodCost) -> tuple[str, ...]:
    training = row.parts["training"]
    shares = [f"{100 * row.parts[part] / training:.2f}" for part in ADDED]
    over = f"{100 * (row.over_erm - 1):+.1f}"
    return (row.name, stopwatch(row.epoch), over, *shares, f"{100 * row.added:.2f}")
