"""Where files come from: the folder KMIXUP_DATA, the cache folder, or a download into it."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pooch

PARTS = ("-sample", "-subset")  # endings of folders that hold a part of a data set
ARCHIVES = (".tar.gz", ".zip")


@dataclass(frozen=True)
class Remote:
    """A file to download.

    `checksum` is "md5:…" or "sha256:…" as `published` somewhere, or None: "unverified".
    `size` in bytes, where it is known. Archives are unpacked after the download.
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
    """Folders to look in, best first; those that hold only a part come last, if at all.

    `root` is the only place if it is given: itself, or one of the `folders` in it.
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
    kind, _, expected = remote.checksum.partition(":")
    found = pooch.file_hash(str(path), alg=kind)
    if found != expected:
        raise ValueError(
            f"{path} must have the {kind} {expected} ({remote.published}), has {found}: "
            f"it is damaged or another file; fetch it anew from {remote.url}"
        )


def download(remote: Remote, into: Path, *, progress: bool = True) -> None:
    """Download a file into the folder `into`, or an archive and unpack it as `into`.

    The checksum is verified first and an archive unpacked elsewhere, so a failure at
    any point leaves nothing behind.
    """
    if remote.is_archive and into.exists():
        raise ValueError(
            f"{into} must not exist before {remote.name} is unpacked there: move it away"
        )
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent, prefix=".download-") as scratch:
        file = _retrieve(remote, Path(scratch), progress)
        if remote.is_archive:
            unpack(file, Path(scratch) / "unpacked")
            os.replace(Path(scratch) / "unpacked", into)
        else:
            into.mkdir(exist_ok=True)
            os.replace(file, into / remote.name)


def unpack(archive: Path, into: Path) -> None:
    """Unpack a tar or zip archive into the new folder `into`, which nothing can escape."""
    into.mkdir(parents=True)
    try:
        if archive.suffix == ".zip":
            _unzip(archive, into)
        else:
            with tarfile.open(archive) as tar:
                tar.extractall(into, filter="data")  # no paths or links that lead outside
    except Exception as error:  # a damaged archive fails in many ways
        shutil.rmtree(into)
        raise ValueError(
            f"{archive} must be a whole archive that stays in its folder, could not be unpacked: "
            f"{error}"
        ) from error


def _unzip(archive: Path, into: Path) -> None:
    with zipfile.ZipFile(archive) as pack:
        for member in pack.infolist():
            path = PurePosixPath(member.filename.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts or ":" in member.filename:
                raise ValueError(f"{member.filename!r} lies outside")
            if stat.S_ISLNK(member.external_attr >> 16):
                raise ValueError(f"{member.filename!r} is a link")
        pack.extractall(into)


def _retrieve(remote: Remote, scratch: Path, progress: bool) -> Path:
    try:
        return Path(
            pooch.retrieve(
                remote.url,
                known_hash=remote.checksum,
                fname=remote.name,
                path=scratch,
                progressbar=progress,
            )
        )
    except ValueError as error:
        raise ValueError(
            f"{remote.url} must have {remote.checksum} ({remote.published}), the download has "
            "another checksum and was deleted: try again, or get the file elsewhere"
        ) from error
    except OSError as error:
        raise ConnectionError(
            f"{remote.url} could not be downloaded ({error}): try again, or get the file elsewhere "
            "and set KMIXUP_DATA to its folder"
        ) from error


def _in(place: Path, name: str) -> Path | None:
    """`name` in `place`, or in the folder inside an archive if `place` is that folder."""
    for path in (place / name, place / Path(name).name):
        if path.is_file():
            return path
    return None
