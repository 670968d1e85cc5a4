"""What was found, as one HTML page that needs nothing but itself."""

from __future__ import annotations

from pathlib import Path

from kmixup.inspection import readings
from kmixup.lab.checkpoint import replace_file
from kmixup.lab.record import versions
from kmixup.lab.report.page import rendered
from kmixup.lab.xray import wording
from kmixup.lab.xray.couplings import picture
from kmixup.lab.xray.examining import Xray
from kmixup.lab.xray.pairs import examples
from kmixup.lab.xray.plots import plots

NAME = "inspect.html"
LISTED = 12  # classes by name


def page(xray: Xray, *, command: str) -> str:
    """The whole page; `command` is what to type to repeat it."""
    found = xray.found
    return rendered(
        "inspect.html",
        name=f"An X-ray of {xray.data.name}",
        xray=xray,
        found=found,
        advice=found.advice,
        told=wording,
        columns=wording.columns(found, labelled=xray.labelled),
        plots=plots(found),
        couplings=picture(xray),
        examples=examples(xray),
        facts_=_facts(xray),
        draws=(readings.MATCHES, readings.LEAST_BLOCKS),
        versions=versions(),
        command=command,
    )


def write(xray: Xray, folder: Path, *, command: str) -> Path:
    """Put the page into `folder`, whole or not at all."""
    text = page(xray, command=command)
    replace_file(folder / NAME, lambda stream: stream.write(text.encode()))
    return folder / NAME


def _facts(xray: Xray) -> dict[str, str]:
    data, found = xray.data, xray.found
    counts = {data.classes[int(index)]: n for index, n in found.classes.items()}
    named = ", ".join(f"{name} {n:,}" for name, n in list(counts.items())[:LISTED])
    rest = len(found.classes) - LISTED
    return {
        "training samples": f"{found.samples:,}",
        "looked at": f"{found.used:,}",
        "numbers in a sample": f"{found.features:,}",
        "classes, with samples looked at": f"{named} and {rest} more" if rest > 0 else named,
        "scaling": data.scaling,
        "batch size": str(found.batch_size),
        "mixup to compare with": f"alpha = {found.alpha:g}",
        "seed": str(xray.seed),
    }
