"""What is written down of a run: its settings, its figures, and where they were made."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

import kmixup
from kmixup.lab.checkpoint import replace_file
from kmixup.lab.data import Dataset
from kmixup.lab.evaluate import Scores
from kmixup.lab.prepare import Strength
from kmixup.lab.protocol import Trial

NAME = "record.json"
PACKAGES = ("torch", "numpy", "scipy", "lapx", "lightning-fabric")

History = list[dict[str, Any]]  # one entry for each epoch


def describe(
    trial: Trial,
    data: Dataset,
    history: Sequence[Mapping[str, Any]],
    result: Scores,
    *,
    strength: Strength,
    device: torch.device | str,
    devices: int = 1,
) -> dict[str, Any]:
    """The record of a run. Its `result` is that of the last weights, never of the best."""
    return {
        "trial": trial.to_dict(),
        "alpha": strength.alpha,
        "xi": strength.xi,
        "data": {
            "name": data.name,
            "part": data.part,
            "train": len(data.x_train),
            "test": len(data.x_test),
            "classes": data.num_classes,
            "shape": list(data.shape),
            "scaling": data.scaling,
        },
        "result": asdict(result),
        "seconds": sum(entry["seconds"] for entry in history),
        "epochs": [dict(entry) for entry in history],
        "versions": versions(),
        "machine": machine(device, devices),
    }


def figures(
    epoch: int, rate: float, loss: float, accuracy: float, error: float, seconds: float
) -> dict[str, Any]:
    """One epoch in the history.

    `loss` and `accuracy` are of training, on the batches as they were mixed and while the
    weights moved; `error` is of the test part.
    """
    return {
        "epoch": epoch, "rate": rate, "loss": loss, "accuracy": accuracy, "error": error,
        "seconds": seconds,
    }  # fmt: skip


@cache
def versions() -> dict[str, str]:
    packages = {name: metadata.version(name) for name in PACKAGES}
    return {"kmixup": kmixup.__version__, "python": platform.python_version(), **packages}


def machine(device: torch.device | str, devices: int) -> dict[str, Any]:
    return {
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": str(device),
        "devices": devices,
    }


def write(record: Mapping[str, Any], folder: Path) -> Path:
    """Put a record into the folder of its run, whole or not at all."""
    text = json.dumps(record, indent=2) + "\n"
    replace_file(folder / NAME, lambda stream: stream.write(text.encode()))
    return folder / NAME
