"""Checkpoints of runs: written atomically, read only if undamaged and from the same run.

A checkpoint is a file that `torch.load` can read. Its SHA-256 is in the comment at the end of the
file, because torch does not verify the checksums inside its archives and would load damaged
weights silently.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from kmixup.lab.files import replace_file

NAME = "checkpoint.pt"

LABEL = b"kmixup sha256 "
DIGEST_LENGTH = 32


class UnusableError(ValueError):
    """Raised for a checkpoint that is damaged or belongs to another run."""


def save(path: Path, state: Mapping[str, Any]) -> None:
    """Write tensors and plain values; if that fails, the checkpoint from before stays."""
    # torch.save into a file turns a full disk into a RuntimeError; plain bytes give an OSError
    buffer = io.BytesIO()
    torch.save(dict(state), buffer)
    contents = _sealed(buffer.getvalue())
    try:
        replace_file(path, lambda stream: stream.write(contents))
    except OSError as error:
        raise OSError(
            f"{path} could not be written ({error.strerror or error}): the checkpoint from before, "
            "if there was one, is kept; fix that and resume the run"
        ) from error


def load(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Read what `save` wrote; raise if the file is damaged or its run has another `config`."""
    state = _read(path)
    there, here = dict(_leaves(state["config"])), dict(_leaves(config))
    for key in [*here, *there]:
        if there.get(key) != here.get(key):
            raise UnusableError(
                f"{path} must be of the same run to go on from, that one has "
                f"{_told(key, there.get(key))} and not {_told(key, here.get(key))}: ask for the "
                "same, or choose another folder"
            )
    return state


def completed_epochs(path: Path) -> int:
    """Return the number of completed epochs, 0 if there is no checkpoint."""
    return len(_read(path)["history"]) if path.is_file() else 0


def _read(path: Path) -> dict[str, Any]:
    contents = path.read_bytes()  # disk errors are not the checkpoint's fault
    try:
        _check_whole(contents)
        state = torch.load(io.BytesIO(contents), map_location="cpu", weights_only=True)
        if {"config", "history"} <= state.keys():
            return dict(state)
        reason = "other contents"
    except MemoryError:
        raise
    except Exception as error:  # the file was read, so its contents are at fault
        reason = str(error).partition("\n")[0] or type(error).__name__
    raise UnusableError(f"{path} must be a whole checkpoint of kmixup, found {reason}: delete it")


def _sealed(archive: bytes) -> bytes:
    """Append a checksum of all bytes as the comment of a zip archive without one."""
    # the last two bytes of such an archive are the length of its comment
    length = len(LABEL) + DIGEST_LENGTH
    labelled = archive[:-2] + length.to_bytes(2, "little") + LABEL
    return labelled + hashlib.sha256(labelled).digest()


def _check_whole(contents: bytes) -> None:
    """Raise if a byte is missing or changed."""
    labelled, digest = contents[:-DIGEST_LENGTH], contents[-DIGEST_LENGTH:]
    if not labelled.endswith(LABEL):
        raise ValueError("no checksum")
    if hashlib.sha256(labelled).digest() != digest:
        raise ValueError("a wrong checksum")


def _told(key: str, value: object) -> str:
    """
    >>> _told("protocol.epochs", 3), _told("method.name", "erm"), _told("target", None)
    ('epochs=3', "method='erm'", 'no target')
    """
    name = key.removesuffix(".name").rpartition(".")[2]
    return f"no {name}" if value is None else f"{name}={value!r}"


def _leaves(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by their dotted names."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
