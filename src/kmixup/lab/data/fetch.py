"""Where the files of a data set are: in the folder KMIXUP_DATA or in the cache folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PARTS = ("-sample", "-subset")  # endings of folders that hold a part of a data set
ARCHIVES = (".tar.gz", ".zip")


@dataclass(frozen=True)
class Remote:
    """A file to download.

    Attributes:
        url: where it is.
        name: its name on the disk; an archive is unpacked after the download.
        checksum: "md5:…" or "sha256:…", or None where none was published.
        published: where the checksum was published, or "unverified".
        size: its bytes, where they are known.
    """

    url: str
    name: str
    checksum: str | None = None
    published: str = "unverified"
    size: int | None = None

    @property
    def is_archive(self) -> bool:
        return self.name.endswith(ARCHIVES)


def cache_folder() -> Path:
    """The user's cache folder for kmixup, by the custom of the operating system."""
    import pooch  # on first use: `kmixup.lab.tune` works without the extra

    return Path(pooch.os_cache("kmixup"))


def data_folder() -> Path | None:
    """The folder that KMIXUP_DATA names, if it is set."""
    name = os.environ.get("KMIXUP_DATA")
    if not name:
        return None
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise ValueError(f"KMIXUP_DATA must name a folder, {name!r} is none: correct or unset it")
    return folder


def places(folders: Sequence[str], *, root: Path | None = None, parts: bool = False) -> list[Path]:
    """Folders to look in, the best first.

    With `parts`, folders that hold a part of a data set come last. Where `root` is given, only
    it and the `folders` inside of it are places.
    """
    bases = [root] if root is not None else [*filter(None, [data_folder()]), cache_folder()]
    whole = [*folders] if root is None else ["", *folders]
    partial = [name + ending for name in folders if name for ending in PARTS] if parts else []
    return [base / name for names in (whole, partial) for base in bases for name in names]


def find(wanted: Sequence[str], among: Sequence[Path]) -> list[Path] | None:
    """The `wanted` files, all in the first place that has every one of them."""
    for place in among:
        if not missing(wanted, place):
            return [path for name in wanted if (path := _in(place, name))]
    return None


def missing(wanted: Sequence[str], place: Path) -> list[str]:
    """Those of the `wanted` files that `place` lacks."""
    return [name for name in wanted if _in(place, name) is None]


def verify(path: Path, remote: Remote) -> None:
    """Refuse a file that is not the published one."""
    if remote.checksum is None:
        return
    import pooch

    kind, _, expected = remote.checksum.partition(":")
    actual = pooch.file_hash(str(path), alg=kind)
    if actual != expected:
        raise ValueError(
            f"{path} must have the {kind} {expected} ({remote.published}), has {actual}: "
            f"it is damaged or another file; fetch it anew from {remote.url}"
        )


def _in(place: Path, name: str) -> Path | None:
    """`name` in `place`, or in the folder inside an archive if `place` is that folder."""
    for path in (place / name, place / Path(name).name):
        if path.is_file():
            return path
    return None
