"""Find the files of a data set in KMIXUP_DATA or the cache, and download them.

A download is complete or not there: its speed, size and checksum are checked.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from filelock import FileLock

from kmixup.lab.files import digest_of, parsing

PARTS = ("-sample", "-subset")  # suffixes of folders that hold a part of a data set
SILENCE = 30  # seconds without a byte after which a connection is closed
PATIENCE, SLOWEST = 60.0, 1000  # seconds in which at least PATIENCE · SLOWEST bytes must arrive


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


def present(wanted: Sequence[str], place: Path) -> dict[str, Path]:
    """Return those of the `wanted` files that are in `place`, or in its archive's inner folder."""
    paths = [(name, place / inner) for name in wanted for inner in (Path(name).name, name)]
    return {name: path for name, path in paths if path.is_file()}


def find(wanted: Sequence[str], among: Sequence[Path]) -> list[Path] | None:
    """Return the `wanted` files, all in the first place that has every one of them."""
    for place in among:
        paths = present(wanted, place)
        if len(paths) == len(wanted):
            return list(paths.values())
    return None


def verify(path: Path, remote: Remote) -> None:
    """Raise if a file is not the published one."""
    actual = digest_of(path)
    if actual != remote.sha256:
        raise ValueError(
            f"{path} must have the SHA-256 {remote.sha256} ({remote.published}), has {actual}: "
            f"it is damaged or another file; fetch it again from {remote.url}"
        )


def download(
    remotes: Sequence[Remote], into: Path, *, wanted: Sequence[str], progress: bool = True
) -> None:
    """Download what the folder `into` lacks of the `wanted` files.

    Sizes and checksums are verified and archives unpacked in a `.part` folder beside it, so
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
                file = _retrieve(remote, part, progress)
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


def _retrieve(remote: Remote, folder: Path, progress: bool) -> Path:
    import pooch
    from urllib3.exceptions import HTTPError

    elsewhere = "or get the file elsewhere and set KMIXUP_DATA to its folder"

    def fetch(_: str, file: str, __: object) -> None:
        _stream(remote, Path(file), progress)

    checksum = f"sha256:{remote.sha256}"
    try:
        return Path(pooch.retrieve(remote.url, checksum, remote.name, folder, downloader=fetch))
    except ValueError as error:
        raise ValueError(
            f"{remote.url} must have the SHA-256 {remote.sha256} ({remote.published}), the "
            f"download has another and was deleted: try again, {elsewhere}"
        ) from error
    except (OSError, HTTPError) as error:
        raise ConnectionError(
            f"{remote.url} could not be downloaded ({error}): try again, {elsewhere}"
        ) from error


def _stream(remote: Remote, file: Path, progress: bool) -> None:
    """Write what the server sends until it exceeds the size; raise if it sends next to nothing.

    The timeout of a connection counts the time between two bytes, so a byte a second would keep
    it open forever.
    """
    import requests  # on first use: it loads slowly
    from tqdm import tqdm

    look: dict[str, Any] = {"ncols": 79, "unit": "B", "unit_scale": True}
    with (
        requests.get(remote.url, stream=True, timeout=SILENCE) as response,
        tqdm(total=remote.size, disable=not progress, **look) as bar,
        file.open("wb") as stream,
    ):
        response.raise_for_status()
        start, before, count = time.monotonic(), 0, 0
        while count <= remote.size and (chunk := response.raw.read1(1 << 16, decode_content=True)):
            stream.write(chunk)
            bar.update(len(chunk))
            count += len(chunk)
            waited = time.monotonic() - start
            if waited >= PATIENCE:
                if count - before < PATIENCE * SLOWEST:
                    raise ConnectionError(
                        f"only {count - before:,} bytes came in {waited:.0f} s, fewer than "
                        f"{SLOWEST:,} a second"
                    )
                start, before = time.monotonic(), count
    if count != remote.size:
        raise OSError(f"it must have {remote.size:,} bytes, {count:,} came; it may be a login page")
