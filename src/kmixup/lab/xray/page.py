"""An X-ray as one HTML page that needs nothing but itself."""

from __future__ import annotations

from pathlib import Path

from kmixup.inspection import readings
from kmixup.lab.files import replace_content
from kmixup.lab.pages.html import render
from kmixup.lab.train.record import versions
from kmixup.lab.xray import wording
from kmixup.lab.xray.couplings import picture
from kmixup.lab.xray.examining import Xray
from kmixup.lab.xray.pairs import examples
from kmixup.lab.xray.plots import drawings

NAME = "inspect.html"


def page(xray: Xray, *, command: str) -> str:
    """The whole page; `command` is what to type to repeat it."""
    inspection = xray.inspection
    return render(
        "kmixup.lab.xray",
        "inspect.html",
        name=f"An X-ray of {xray.data.name}",
        xray=xray,
        inspection=inspection,
        told=wording,
        columns=wording.columns(inspection, labelled=xray.labelled),
        drawn=drawings(inspection),
        couplings=picture(xray),
        examples=examples(xray),
        measured_on=_facts(xray),
        draws=(readings.MATCHES, readings.LEAST_BLOCKS),
        versions=versions(),
        command=command,
    )


def write(xray: Xray, folder: Path, *, command: str) -> Path:
    """Put the page into `folder`, whole or not at all."""
    path = folder / NAME
    replace_content(path, page(xray, command=command))
    return path


def _facts(xray: Xray) -> dict[str, str]:
    data, inspection = xray.data, xray.inspection
    return {
        "training samples": f"{inspection.samples:,}",
        "looked at": f"{inspection.used:,}",
        "numbers in a sample": f"{inspection.features:,}",
        "scaling": data.scaling,
        "mixup to compare with": f"alpha = {inspection.alpha:g}",
        "seed": str(xray.seed),
    }
