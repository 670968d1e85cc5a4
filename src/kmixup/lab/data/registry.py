"""Loading a data set by its name, whole or as the part that was asked for."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

import torch

from kmixup.lab.data import fetch as files
from kmixup.lab.data.catalogue import ENTRIES, Entry, Request
from kmixup.lab.data.dataset import Dataset, Holdout, Parts, Samples, split
from kmixup.lab.data.own import read_own
from kmixup.lab.data.scaling import SCALINGS, Scaling, fit
from kmixup.lab.data.tabular import impute


def load(
    name: str,
    *,
    limit: int | None = None,
    scaling: Scaling | None = None,
    seed: int = 0,
    root: str | Path | None = None,
    size: int | None = None,
    target: str | None = None,
    holdout: Holdout | None = None,
    download: bool = False,
) -> Dataset:
    """A data set in memory.

    Args:
        name: one of `ENTRIES`, or the path of the user's own data (see `own`).
        limit: use only the first samples, this many of each part; needs only the files
            that hold them, and `Dataset.part` says so. Without it the data must be whole.
        scaling: "paper" (where the paper's xi tell it), "standard", "minmax" ([0, 1]),
            "symmetric" ([-1, 1]) or "none"; by default "paper", else "standard".
        seed: of the random split of data without an official one, and of the toys.
        root: the only folder to look in, in place of KMIXUP_DATA and the cache.
        size: number of training points of a toy, and of test points.
        target: the column of the user's `.csv` that holds the classes.
        holdout: put a random share of the training samples in the place of the test part,
            before anything is fitted to the rest.
        download: fetch what is not at hand into the cache; not with `root`.

    >>> iris = load("iris", seed=3)
    >>> len(iris.x_train), len(iris.x_test), iris.num_classes, iris.scaling
    (100, 50, 3, 'paper')
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    if scaling is not None and scaling not in SCALINGS:
        raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}")
    folder = None if root is None else Path(root).expanduser()
    if name not in ENTRIES:
        own = _own_path(name)
        parts = _own_parts(own, target, seed)
        return _finish(own.name, parts, limit, _known(name, scaling, None), holdout)
    entry = ENTRIES[name]
    if size is not None and entry.kind != "toy":
        raise ValueError(f"size is for toys, {name} has a size of its own: use limit={size}")
    chosen = _known(name, scaling, entry.paper)
    if download and folder is None and entry.remotes and not at_hand(name, limit=limit):
        fetch_dataset(name)
    found = entry.read(Request(_paths(entry, folder, limit), limit, chosen[0], seed, size))
    parts = split(found, seed=seed) if isinstance(found, Samples) else found
    if entry.kind != "toy":
        _check_extent(entry, parts, limit)
    return _finish(name, parts, limit, chosen, holdout, entry)


def fetch_dataset(name: str, *, into: str | Path | None = None, progress: bool = True) -> Path:
    """Download a data set into the cache, or into the folder `into`; returns where it is."""
    entry = _entry(name)
    if not entry.remotes:
        raise ValueError(f"{name} needs no download: {entry.source}")
    folder = (files.cache_folder() if into is None else Path(into).expanduser()) / name
    if not files.missing(entry.files, folder):
        return folder
    for remote in entry.remotes:
        if not (folder / remote.name).is_file():
            files.download(remote, folder, progress=progress)
    return folder


def at_hand(name: str, *, limit: int | None = None) -> bool:
    """Whether the files of a data set, or of its first `limit` samples, need no download."""
    entry = _entry(name)
    among = files.places(entry.folders, parts=limit is not None)
    return not entry.files or files.find(entry.needed(limit), among) is not None


def _entry(name: str) -> Entry:
    if name in ENTRIES:
        return ENTRIES[name]
    close = get_close_matches(name, ENTRIES, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(ENTRIES)}"
    raise ValueError(f"there is no data set or file {name!r}: {hint}")


def _own_path(name: str) -> Path:
    path = Path(name).expanduser()
    if not path.exists():
        _entry(name)
    return path


def _own_parts(path: Path, target: str | None, seed: int) -> Parts:
    found = read_own(path, target=target, cache=files.cache_folder())
    return split(found, seed=seed) if isinstance(found, Samples) else found


def _known(name: str, scaling: str | None, paper: str | None) -> tuple[str, str]:
    """The scaling as it is called and as it is computed."""
    if scaling == "paper" and paper is None:
        raise ValueError(
            f"the paper's scaling of {name} is not known: use standard, minmax, symmetric or none"
        )
    if paper is not None and scaling in (None, "paper"):
        return "paper", paper
    return scaling or "standard", scaling or "standard"


def _paths(entry: Entry, root: Path | None, limit: int | None) -> tuple[Path, ...]:
    """The files to read, or one sentence on which are missing and how to get them."""
    if not entry.files:
        return ()
    wanted = entry.needed(limit)
    among = files.places(entry.folders, root=root, parts=limit is not None)
    found = files.find(wanted, among)
    if found is None:
        raise FileNotFoundError(_absence(entry, wanted, among, root))
    if limit is None:
        remotes = {remote.name: remote for remote in entry.remotes}
        for path in found:
            if path.name in remotes:
                files.verify(path, remotes[path.name])
    return tuple(found)


def _absence(entry: Entry, wanted: tuple[str, ...], among: list[Path], root: Path | None) -> str:
    nearest = min(among, key=lambda place: len(files.missing(wanted, place)))
    absent = ", ".join(Path(name).name for name in files.missing(wanted, nearest))
    with_parts = files.places(entry.folders, root=root, parts=True)
    part = next((place for place in with_parts if place not in among and place.is_dir()), None)
    known = [remote.size for remote in entry.remotes if remote.size is not None]
    size = f" ({sum(known) / 1e6:,.1f} MB)" if len(known) == len(entry.remotes) else ""
    url = (
        entry.remotes[0].url if len(entry.remotes) == 1 else entry.remotes[0].url.rpartition("/")[0]
    )
    return (
        f"{entry.name} lacks {absent} in {nearest}: run `kmixup data fetch {entry.name}`{size}, or "
        f"put what {url} has into the sub-folder {entry.folders[0]} of the folder KMIXUP_DATA"
        + (f"; a part is in {part}, pass limit=N to use its first N samples" if part else "")
    )


def _check_extent(entry: Entry, parts: Parts, limit: int | None) -> None:
    """A part never passes for the whole."""
    extent = (len(parts.x_train), len(parts.x_test), len(parts.classes))
    whole = (entry.train, entry.test, entry.classes)
    if limit is None and extent != whole:
        raise ValueError(
            f"{entry.name} must have {_words(whole)}, the files hold {_words(extent)}: "
            f"fetch the whole, or pass limit={extent[0]} to use a part"
        )
    if limit is not None and extent[0] < min(limit, entry.train):
        raise ValueError(
            f"limit={limit} asks for {min(limit, entry.train):,} training samples of {entry.name}, "
            f"the files hold {extent[0]:,}: fetch the whole, or lower the limit"
        )


def _words(extent: tuple[int, int, int]) -> str:
    train, test, classes = extent
    return f"{train:,} training and {test:,} test samples of {classes} classes"


def _finish(
    name: str,
    parts: Parts,
    limit: int | None,
    scaling: tuple[str, str],
    holdout: Holdout | None,
    entry: Entry | None = None,
) -> Dataset:
    """Cut to the limit, fill what is missing, fit the scaling, and say which part it is."""
    whole = (len(parts.x_train), len(parts.x_test), len(parts.classes))
    if entry is not None and entry.kind != "toy":
        whole = (entry.train, entry.test, entry.classes)
    parts = parts.first(limit) if holdout is None else holdout.of(parts, limit)
    if parts.x_train.is_floating_point() and parts.x_train.dim() == 2:
        parts = impute(parts)
    extent = (len(parts.x_train), len(parts.x_test), len(parts.classes))
    part = None if extent == whole else _part(extent, whole, holdout)
    pixel_range = (0.0, 255.0) if parts.x_train.dtype == torch.uint8 else None
    mean, std = fit(scaling[1], parts.x_train, pixel_range)
    return Dataset(
        name, **vars(parts), mean=mean, std=std, scaling=scaling[0],
        pixel_range=pixel_range, part=part,
    )  # fmt: skip


def _part(
    extent: tuple[int, int, int], whole: tuple[int, int, int], holdout: Holdout | None = None
) -> str:
    """
    >>> _part((100, 50, 10), (60000, 10000, 10))
    'the first 100 of 60,000 training and 50 of 10,000 test samples'
    >>> _part((80, 20, 3), (100, 50, 3), Holdout(0.2))
    '80 of 100 training samples, and 20 others of them in the place of the test part'
    """
    if holdout is not None:
        return (
            f"{extent[0]:,} of {whole[0]:,} training samples, and {extent[1]:,} others of them "
            "in the place of the test part"
        )
    text = (
        f"the first {extent[0]:,} of {whole[0]:,} training and "
        f"{extent[1]:,} of {whole[1]:,} test samples"
    )
    return text if extent[2] == whole[2] else f"{text}, {extent[2]} of {whole[2]} classes"
