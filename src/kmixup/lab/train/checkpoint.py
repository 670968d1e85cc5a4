"""Checkpoints of runs: written atomically, read only if undamaged and from the same run.

A checkpoint is the SHA-256 of what `torch.save` writes, and then that, because torch does not
verify the checksums inside its archives and would load damaged weights silently.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import filelock
import torch

from kmixup._checks import SettingError
from kmixup.lab._files import check_expansion, read_bytes, remove_partial, replace_content
from kmixup.lab.formatting import count

NAME, LOCK = "checkpoint.pt", ".lock"
DIGEST = "digest"  # key of the data's digest in a config
LENGTH = 32  # of a SHA-256


class UnusableError(ValueError):
    """Raised for a checkpoint that is damaged or belongs to another run."""


@contextmanager
def locked(folder: Path | None) -> Iterator[Callable[[], None]]:
    """Within this context no other run can use the folder.

    Yields a function that raises if somebody has removed the lock, so that another run can.
    """
    if folder is None:
        yield lambda: None
        return
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = filelock.FileLock(folder / LOCK).acquire(timeout=0)
    except filelock.Timeout:
        raise SettingError(
            "out",
            f"must be a folder that no other run is using, a run is training in {folder}: wait "
            "until it ends, or choose another folder",
        ) from None
    with lock:
        remove_partial(folder)
        made = os.stat(folder / LOCK)

        def check_lock() -> None:
            with suppress(FileNotFoundError):
                if os.path.samestat(made, os.stat(folder / LOCK)):
                    return
            raise OSError(
                f"{folder / LOCK} was removed, another run may be training in {folder}: choose "
                "another folder"
            )

        yield check_lock


def check(folder: Path, config: Mapping[str, Any], *, resume: bool) -> None:
    """Raise if a folder holds another run, or this run and it is not to be resumed."""
    if (folder / NAME).is_file():
        done = count(len(load(folder / NAME, config)["history"]), "epoch")
        if not resume:
            raise SettingError(
                "out",
                f"must be a new folder, {folder} holds a run with {done} done: resume it "
                "(--resume), or overwrite it (--overwrite)",
            )


def save(path: Path, state: Mapping[str, Any]) -> None:
    """Write tensors and plain values; if that fails, the previous checkpoint stays."""
    # torch.save into a file turns a full disk into a RuntimeError; plain bytes give an OSError
    buffer = io.BytesIO()
    torch.save(dict(state), buffer)
    archive = buffer.getvalue()
    try:
        replace_content(path, hashlib.sha256(archive).digest() + archive)
    except OSError as error:
        raise OSError(
            f"{path} could not be written ({error.strerror or error}): the checkpoint from before, "
            "if there was one, is kept; fix that and resume the run"
        ) from error


def load(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Read what `save` wrote; raise if the file is damaged or its run has another `config`."""
    state = read(path)
    there, here = dict(_flat(state["config"])), dict(_flat(config))
    differing = [key for key in {**here, **there} if there.get(key) != here.get(key)]
    if not differing:
        return state
    if differing == [DIGEST]:
        problem = f"{config['data']} has changed since {path} was written: restore it"
    else:
        changes = [f"{key}={there.get(key)!r} and not {here.get(key)!r}" for key in differing]
        problem = (
            f"{path} must be of the same run, it has {', '.join(changes)}: use the same settings"
        )
    raise UnusableError(f"{problem}, choose another folder, or overwrite it (--overwrite)")


def completed_epochs(path: Path) -> int:
    """Return the number of completed epochs, 0 if there is no checkpoint."""
    return len(read(path)["history"]) if path.is_file() else 0


def read(path: Path) -> dict[str, Any]:
    """Read what `save` wrote; raise if the file is damaged."""
    contents = read_bytes(path)
    digest, archive = contents[:LENGTH], contents[LENGTH:]
    if hashlib.sha256(archive).digest() != digest:
        raise UnusableError(
            f"{path} must be a whole checkpoint of kmixup, its checksum is wrong: delete it"
        )
    stream = io.BytesIO(archive)
    check_expansion(path, stream)
    state: dict[str, Any] = torch.load(stream, map_location="cpu", weights_only=True)
    return state


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield settings by their dotted names."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
