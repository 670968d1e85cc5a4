"""Atomic file writes, and checks of the folders that files are written into."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO


def check_folder(out: Path) -> None:
    """Refuse a file where a folder is to be written; a path that does not exist yet is fine."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"out must be a folder, {out} is a file")


def replace_file(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file whole or not at all: a crash or a full disk leaves the old file in place.

    `write` fills a partial file beside `path`. The partial file is forced to the disk and
    then takes the name `path` in one step.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # a crash may leave the partial file behind: its name is fixed, so the next write reuses it
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def replace_content(path: Path, content: str | bytes) -> None:
    """Write text or bytes to `path`, whole or not at all."""
    data = content.encode() if isinstance(content, str) else content
    replace_file(path, lambda stream: stream.write(data))


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk: a new file survives a crash only with its name."""
    if os.name == "nt":  # Windows cannot open a folder, and writes names through by itself
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
