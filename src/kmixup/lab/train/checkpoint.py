"""Checkpoints of runs: written atomically, read only if undamaged and from the same run.

A checkpoint is a file that `torch.load` can read. Its SHA-256 is in the comment at the end of the
file, because torch does not verify the checksums inside its archives and would load damaged
weights silently.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import filelock
import torch

from kmixup.lab.checks import SettingError
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import count

NAME, LOCK = "checkpoint.pt", ".lock"
DIGEST = "digest"  # key of the data's digest in a config
LABEL = b"kmixup sha256 "
LENGTH = 32  # of a SHA-256


class UnusableError(ValueError):
    """Raised for a checkpoint that is damaged or belongs to another run."""


@contextmanager
def locked(folder: Path | None) -> Iterator[None]:
    """Within this context no other run can use the folder; None needs no lock."""
    if folder is None:
        yield
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
        yield


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
    try:
        replace_content(path, _sealed(buffer.getvalue()))
    except OSError as error:
        raise OSError(
            f"{path} could not be written ({error.strerror or error}): the checkpoint from before, "
            "if there was one, is kept; fix that and resume the run"
        ) from error


def load(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Read what `save` wrote; raise if the file is damaged or its run has another `config`."""
    state = _read(path)
    there, here = dict(_flat(state["config"])), dict(_flat(config))
    differing = [key for key in {**here, **there} if there.get(key) != here.get(key)]
    if not differing:
        return state
    problem = f"{config['data']} has changed since {path} was written: restore it"
    if differing != [DIGEST]:
        changes = [
            f"{_setting(key, there.get(key))} and not {_setting(key, here.get(key))}"
            for key in differing
            if key != DIGEST
        ]
        problem = (
            f"{path} must be of the same run, it has {', '.join(changes)}: use the same settings"
        )
    raise UnusableError(f"{problem}, choose another folder, or overwrite it (--overwrite)")


def completed_epochs(path: Path) -> int:
    """Return the number of completed epochs, 0 if there is no checkpoint."""
    return len(_read(path)["history"]) if path.is_file() else 0


def _read(path: Path) -> dict[str, Any]:
    contents = path.read_bytes()  # disk errors are not the checkpoint's fault
    try:
        _check_whole(contents)
        state: dict[str, Any] = torch.load(
            io.BytesIO(contents), map_location="cpu", weights_only=True
        )
        if {"config", "history"} <= state.keys():
            return state
        reason = "other contents"
    except MemoryError:
        raise
    except Exception as error:  # the file was read, so its contents are at fault
        reason = str(error).partition("\n")[0] or type(error).__name__
    raise UnusableError(f"{path} must be a whole checkpoint of kmixup, found {reason}: delete it")


def _sealed(archive: bytes) -> bytes:
    """Append a checksum of all bytes as the comment of a zip archive without one."""
    # the last two bytes of such an archive are the length of its comment
    labelled = archive[:-2] + (len(LABEL) + LENGTH).to_bytes(2, "little") + LABEL
    return labelled + hashlib.sha256(labelled).digest()


def _check_whole(contents: bytes) -> None:
    """Raise if a byte is missing or changed."""
    labelled, digest = contents[:-LENGTH], contents[-LENGTH:]
    if not labelled.endswith(LABEL):
        raise ValueError("no checksum")
    if hashlib.sha256(labelled).digest() != digest:
        raise ValueError("a wrong checksum")


def _setting(key: str, value: object) -> str:
    """
    >>> _setting("protocol.epochs", 3), _setting("method.name", "erm"), _setting("target", None)
    ('epochs=3', "method='erm'", 'no target')
    """
    name = key.removesuffix(".name").rpartition(".")[2]
    return f"no {name}" if value is None else f"{name}={value!r}"


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield settings by their dotted names."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
