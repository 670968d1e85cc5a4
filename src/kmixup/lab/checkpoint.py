"""Runs that survive: whole files or none, and only of the run that is asked for."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import torch

NAME = "checkpoint.pt"


def save(path: Path, state: Mapping[str, Any]) -> None:
    """Write tensors and plain values so that a crash leaves the old file or the new one."""
    replace_file(path, lambda stream: torch.save(dict(state), stream))


def load(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """What `save` wrote, if it is of a run with this `config`."""
    state = _read(path)
    there, here = dict(_leaves(state["config"])), dict(_leaves(config))
    for key in [*here, *there]:
        if there.get(key) != here.get(key):
            raise ValueError(
                f"{path} must be of the same run to go on from, its {key} is {there.get(key)!r} "
                f"and not {here.get(key)!r}: ask for that, or choose another folder"
            )
    return state


def completed_epochs(path: Path) -> int:
    """How many epochs a checkpoint has behind it, 0 without one."""
    return len(_read(path)["history"]) if path.is_file() else 0


def check_folder(out: Path) -> None:
    """Refuse a file where a folder is to be written; nothing there yet is fine."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"out must be a folder, {out} is a file")


def replace_file(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write beside `path`, force it to the disk, then take its place in one motion."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.partial")  # what a crash leaves, the next write takes
    try:
        with scratch.open("wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk: a new file is there only with its folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read(path: Path) -> dict[str, Any]:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        if {"config", "history"} <= state.keys():
            return dict(state)
        found = "other contents"
    except (pickle.UnpicklingError, RuntimeError, EOFError, AttributeError, KeyError) as error:
        found = str(error).partition("\n")[0] or type(error).__name__
    raise ValueError(f"{path} must be a whole checkpoint of kmixup, found {found}: delete it")


def _leaves(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by their dotted names."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
