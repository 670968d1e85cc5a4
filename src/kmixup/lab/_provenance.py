"""The versions and the machine that a result comes from."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

import kmixup

CPU_NUMBERS = {"family": "cpu family", "model": "model", "stepping": "stepping"}
PACKAGES = ("torch", "numpy", "scipy", "lapx")


@cache
def versions() -> dict[str, str]:
    packages = {name: metadata.version(name) for name in PACKAGES}
    cloned = commit(Path(kmixup.__file__).parents[2])
    own = {"kmixup": kmixup.__version__, **({"commit": cloned} if cloned else {})}
    return {**own, "python": platform.python_version(), **packages}


def commit(clone: Path) -> str | None:
    """Return the commit that is checked out in a clone; None for a folder that is none."""
    git = clone / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        name = head.removeprefix("ref: ")
        if name == head or (git / name).is_file():
            return head if name == head else (git / name).read_text().strip()
        packed = (git / "packed-refs").read_text().splitlines()
        return next(line.split()[0] for line in packed if line.endswith(f" {name}"))
    except (OSError, StopIteration):
        return None


def machine(device: torch.device | str = "cpu") -> dict[str, Any]:
    return {
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": str(device),
    }


@cache
def cpu_model(description: Path = Path("/proc/cpuinfo")) -> str:
    """Return the CPU model, with family and stepping on Linux.

    A result is bitwise repeatable only on the same CPU model, as others round products differently.
    """
    try:
        lines = description.read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    parts = (line.partition(":") for line in lines)
    facts = {name.strip(): value.strip() for name, _, value in parts}
    numbers = [f"{name} {facts[key]}" for name, key in CPU_NUMBERS.items() if key in facts]
    return ", ".join([facts.get("model name", platform.machine()), *numbers])
