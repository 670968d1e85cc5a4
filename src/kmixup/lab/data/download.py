"""Find the files of a data set in KMIXUP_DATA or the cache, and download them.

A download is complete or not there: its checksum is verified.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from filelock import FileLock

from kmixup.lab._files import digest_of, parsing

PARTS = ("-sample", "-subset")  # suffixes of folders that hold a part of a data set
SILENCE = 30  # seconds without a byte after which a connection is closed


@dataclass(frozen=True)
class Remote:
    """A file to download; an archive is unpacked afterwards."""

    url: str
    size: int  # in bytes
    sha256: str
    published: str = "published in tensorflow_datasets"  # where the checksum comes from

    @property
    def name(self) -> str:
        """Name of the file on the disk."""
        return unquote(self.url.rpartition("/")[2])

    @property
    def is_archive(self) -> bool:
        return self.name.endswith((".tar.gz", ".zip"))


def cache_folder() -> Path:
    """Return the user's cache folder for kmixup, as the operating system defines it."""
    import pooch  # on first use: `kmixup.lab.tune` works without the extra

    return Path(pooch.os_cache("kmixup"))


def data_folder() -> Path | None:
    """Return the folder that KMIXUP_DATA names, if it is set."""
    name = os.environ.get("KMIXUP_DATA")
    if not name:
        return None
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise ValueError(f"KMIXUP_DATA must name a folder, {name!r} is none: correct or unset it")
    return folder


def places(folders: Sequence[str], *, parts: bool = False) -> list[Path]:
    """Return the folders to look in, the best first.

    These are the `folders` inside KMIXUP_DATA and the cache, and KMIXUP_DATA itself. With `parts`,
    folders that hold a part of a data set come last.
    """
    data = [folder for folder in (data_folder(),) if folder is not None]
    bases = [*data, cache_folder()]
    whole = [*(base / name for base in bases for name in folders), *data]
    partial = [base / (name + suffix) for base in bases for name in folders for suffix in PARTS]
    return whole + partial if parts else whole


def find(wanted: Sequence[str], among: Sequence[Path]) -> list[Path] | None:
    """Return the `wanted` files, all in the first place that has every one of them.

    Files of an archive may lie in its inner folder, or in the place itself.
    """
    for place in among:
        paths = [
            place / name if (place / name).is_file() else place / Path(name).name for name in wanted
        ]
        if all(path.is_file() for path in paths):
            return paths
    return None


def verify(path: Path, remote: Remote) -> None:
    """Raise if a file is not the published one."""
    actual = digest_of(path)
    if actual != remote.sha256:
        raise ValueError(
            f"{path} must have the SHA-256 {remote.sha256} ({remote.published}), has {actual}: "
            f"it is damaged or another file; fetch it again from {remote.url}"
        )


def download(remotes: Sequence[Remote], into: Path, *, wanted: Sequence[str]) -> None:
    """Download what the folder `into` lacks of the `wanted` files.

    Checksums are verified and archives unpacked in a `.part` folder next to it, so
    that a failure leaves nothing behind. Another process that downloads the same is waited for.
    """
    into.parent.mkdir(parents=True, exist_ok=True)
    part = into.with_name(f".{into.name}.part")
    with FileLock(into.with_name(f".{into.name}.lock")):
        shutil.rmtree(part, ignore_errors=True)  # of a process that was killed
        if find(wanted, [into]):
            return
        try:
            for remote in remotes:
                if remote.is_archive and into.exists():
                    raise ValueError(
                        f"{into} must not exist before {remote.name} is unpacked there: move it "
                        "away"
                    )
                if (into / remote.name).is_file():
                    continue
                file = _retrieve(remote, part)
                if remote.is_archive:
                    unpack(file, part / "unpacked")
                    os.replace(part / "unpacked", into)
                else:
                    into.mkdir(exist_ok=True)
                    os.replace(file, into / remote.name)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def unpack(archive: Path, into: Path) -> None:
    """Unpack a tar or zip archive into the new folder `into`; nothing can escape from it."""
    into.mkdir(parents=True)
    # the module for zip skips paths that lead outside and makes no links, and takes no filter
    options: dict[str, Any] = {} if archive.suffix == ".zip" else {"filter": "data"}
    with parsing(archive, "archive that stays in its folder"):
        shutil.unpack_archive(archive, into, **options)


def _retrieve(remote: Remote, folder: Path) -> Path:
    import pooch
    from tqdm import tqdm

    elsewhere = "or get the file elsewhere and set KMIXUP_DATA to its folder"
    # the bar returns to the start of its line, which the filter of standard error would leave out
    terminal = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
    checksum = f"sha256:{remote.sha256}"
    try:
        with tqdm(total=remote.size, file=terminal, ncols=79, unit="B", unit_scale=True) as bar:
            downloader = pooch.HTTPDownloader(progressbar=bar, timeout=SILENCE, chunk_size=1 << 16)
            return Path(
                pooch.retrieve(remote.url, checksum, remote.name, folder, downloader=downloader)
            )
    except OSError as error:
        raise ConnectionError(
            f"{remote.url} could not be downloaded ({error}): try again, {elsewhere}"
        ) from error
    except ValueError as error:
        raise ValueError(
            f"{remote.url} must have the SHA-256 {remote.sha256} ({remote.published}), the "
            f"download has another and was deleted: try again, {elsewhere}"
        ) from error
