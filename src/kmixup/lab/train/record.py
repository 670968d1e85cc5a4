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
from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.scores import AnyScores
from kmixup.lab.files import replace_file
from kmixup.lab.train.config import Trial
from kmixup.lab.train.setup import Strength

NAME = "record.json"
CPU_NUMBERS = {"family": "cpu family", "model": "model", "stepping": "stepping"}
CLEAN = "clean"  # the scores with clean statistics of batch norm
PACKAGES = ("torch", "numpy", "scipy", "lapx", "lightning-fabric")

History = list[dict[str, Any]]  # one entry for each epoch


def describe(
    trial: Trial,
    data: Dataset,
    history: Sequence[Mapping[str, Any]],
    result: AnyScores,
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
            "split_by_seed": data.split_by_seed,
        },
        "result": asdict(result),
        "seconds": sum(entry["seconds"] for entry in history),
        "epochs": [dict(entry) for entry in history],
        "versions": versions(),
        "machine": machine(device, devices),
    }


def figures(
    epoch: int, rate: float, loss: float, accuracy: float, error: float | None, seconds: float
) -> dict[str, Any]:
    """One epoch in the history.

    `loss` and `accuracy` are of training, on the batches as they were mixed and while the
    weights moved; `error` is of the test part, None where it was not tested. In a regression
    `accuracy` is the share of the squares of the standardised targets that is explained.
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
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": str(device),
        "devices": devices,
    }


@cache
def cpu_model(description: Path = Path("/proc/cpuinfo")) -> str:
    """The make of the CPU, with its family and model where Linux tells them.

    Matrix products round differently on CPUs with other vector instructions, so a result
    repeats to the bit on the same make alone.
    """
    try:
        lines = description.read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    parts = (line.partition(":") for line in lines)
    facts = {name.strip(): value.strip() for name, _, value in parts}
    numbers = [f"{name} {facts[key]}" for name, key in CPU_NUMBERS.items() if key in facts]
    return ", ".join([facts.get("model name", platform.machine()), *numbers])


def write(record: Mapping[str, Any], folder: Path) -> Path:
    """Put a record into the folder of its run, whole or not at all."""
    text = json.dumps(record, indent=2) + "\n"
    replace_file(folder / NAME, lambda stream: stream.write(text.encode()))
    return folder / NAME
