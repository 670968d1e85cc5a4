"""Find the files of a data set in KMIXUP_DATA or the cache, and download them.

A download is whole or not there: its speed, size and checksum are checked.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from filelock import FileLock, Timeout

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
    """Return the folders to look in, the best first.

    With `parts`, folders that hold a part of a data set come last. Where `root` is given, only
    it and the `folders` inside of it are places.
    """
    bases = [root] if root is not None else [*filter(None, [data_folder()]), cache_folder()]
    whole = [*folders] if root is None else ["", *folders]
    partial = [name + ending for name in folders if name for ending in PARTS] if parts else []
    return [base / name for names in (whole, partial) for base in bases for name in names]


def find(wanted: Sequence[str], among: Sequence[Path]) -> list[Path] | None:
    """Return the `wanted` files, all in the first place that has every one of them."""
    for place in among:
        if not missing(wanted, place):
            return [path for name in wanted if (path := _in(place, name))]
    return None


def missing(wanted: Sequence[str], place: Path) -> list[str]:
    """Return those of the `wanted` files that `place` lacks."""
    return [name for name in wanted if _in(place, name) is None]


def verify(path: Path, remote: Remote) -> None:
    """Raise if a file is not the published one."""
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


SILENCE = 30  # seconds without a byte after which a server is given up
PATIENCE, SLOWEST = 60.0, 1000  # seconds in which at least PATIENCE · SLOWEST bytes must come
PREFIX, LOCK = ".download-", "lock"
YOUNG = 60  # seconds in which a new folder gets its lock


def download(remote: Remote, into: Path, *, progress: bool = True) -> None:
    """Download a file into the folder `into`, or an archive and unpack it as `into`.

    Size and checksum are verified and an archive is unpacked in another folder first, so
    that a failure at any point leaves nothing behind.
    """
    if remote.is_archive and into.exists():
        raise ValueError(
            f"{into} must not exist before {remote.name} is unpacked there: move it away"
        )
    into.parent.mkdir(parents=True, exist_ok=True)
    remove_stale(into.parent)
    with _scratch(into.parent) as scratch:
        file = _retrieve(remote, scratch, progress)
        if remote.is_archive:
            unpack(file, scratch / "unpacked")
            os.replace(scratch / "unpacked", into)
        else:
            into.mkdir(exist_ok=True)
            os.replace(file, into / remote.name)


def remove_stale(folder: Path) -> None:
    """Remove what killed downloads left in `folder`; those that still run hold their lock."""
    for scratch in folder.glob(f"{PREFIX}*"):
        try:
            if time.time() - scratch.stat().st_mtime < YOUNG:
                continue
            with FileLock(scratch / LOCK, timeout=0):
                pass
        except (OSError, Timeout):  # it runs, or another process has just removed it
            continue
        shutil.rmtree(scratch, ignore_errors=True)


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


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """A new folder inside of `folder`, locked while it is in use and removed after."""
    scratch = Path(tempfile.mkdtemp(dir=folder, prefix=PREFIX))
    try:
        with FileLock(scratch / LOCK):
            yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _retrieve(remote: Remote, scratch: Path, progress: bool) -> Path:
    import pooch  # on first use: `kmixup.lab.tune` works without the extra

    try:
        name = pooch.retrieve(
            remote.url,
            known_hash=remote.checksum,
            fname=remote.name,
            path=scratch,
            downloader=_Steady(remote, progress=progress),
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
    size = os.path.getsize(name)
    if remote.size is not None and size != remote.size:
        raise ConnectionError(
            f"{remote.url} must have {remote.size:,} bytes, the download has {size:,} and was "
            "deleted: it may be a page to log in; open the address in a browser, or get the file "
            "elsewhere and set KMIXUP_DATA to its folder"
        )
    return Path(name)


class _Steady:
    """A downloader for pooch that gives up on a server which sends next to nothing.

    The timeout of a connection counts the time between two bytes, so that a byte a second
    would keep it open for ever.
    """

    def __init__(self, remote: Remote, *, progress: bool) -> None:
        self.remote = remote
        self.progress = progress

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        import requests  # on first use: it loads slowly
        from tqdm import tqdm
        from urllib3.exceptions import HTTPError

        look: dict[str, Any] = {"ncols": 79, "unit": "B", "unit_scale": True}
        with (
            requests.get(url, stream=True, timeout=SILENCE) as response,
            Path(output_file).open("wb") as file,
        ):
            response.raise_for_status()
            total = int(response.headers.get("content-length", 0)) or self.remote.size
            with tqdm(total=total, disable=not self.progress, **look) as bar:
                try:
                    for chunk in _chunks(response.raw, self.remote.size):
                        file.write(chunk)
                        bar.update(len(chunk))
                except HTTPError as error:
                    raise ConnectionError(str(error)) from error


def _chunks(stream: Any, size: int | None) -> Iterator[bytes]:
    """What the server sends, as it comes, until it exceeds the `size` that is known."""
    start, count, whole = time.monotonic(), 0, 0
    while chunk := stream.read1(1 << 16, decode_content=True):
        yield chunk
        whole += len(chunk)
        if size is not None and whole > size:
            return
        count += len(chunk)
        waited = time.monotonic() - start
        if waited >= PATIENCE:
            if count < PATIENCE * SLOWEST:
                raise ConnectionError(
                    f"only {count:,} bytes came in {waited:.0f} s, fewer than {SLOWEST:,} a second"
                )
            start, count = time.monotonic(), 0
