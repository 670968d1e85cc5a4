"""Load a data set by its name, or your own by its path, whole or as the part you ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from kmixup.lab.checks import SettingError, check_choice
from kmixup.lab.data import download as files
from kmixup.lab.data.catalogue import ENTRIES, Entry, Request
from kmixup.lab.data.dataset import Dataset, Holdout, split
from kmixup.lab.data.own import (
    OwnOptions,
    arrays_of,
    is_frame,
    read_own,
    samples_in_memory,
    write_npz,
)
from kmixup.lab.data.preparation import Extent, Selection, prepare
from kmixup.lab.data.scaling import SCALINGS, Scaling
from kmixup.lab.data.targets import Task
from kmixup.lab.files import digest_of, replace_file
from kmixup.lab.imports import import_callable, is_import_path


def load(
    name: str,
    *,
    limit: int | None = None,
    samples: int | None = None,
    scaling: Scaling | None = None,
    seed: int = 0,
    size: int | None = None,
    target: str | None = None,
    drop: Sequence[str] | None = None,
    task: Task | None = None,
    resize: tuple[int, int] | None = None,
    test: str | None = None,
    test_size: float | None = None,
    holdout: Holdout | None = None,
    download: bool = False,
) -> Dataset:
    """Load a data set into memory.

    Args:
        name: one of `ENTRIES`; the path of your own data: a table, an `.npz`, or a folder of
            images or clips; or `package.module:name`, a function without arguments that returns
            `(x, y)`, a torch data set, a data frame, or a dict of the arrays of an `.npz`.
        limit: use only the first samples, this many of each part; needs only the files
            that hold them, and `Dataset.part` says so. Without it the data must be whole.
        samples: use only so many training samples, drawn by the seed with all classes alike, and
            the whole test part.
        scaling: "paper" (where the paper's xi tell it), "standard", "minmax" ([0, 1]),
            "symmetric" ([-1, 1]), "global" (one mean and deviation over all columns) or
            "none"; by default that of the entry, else "standard".
        seed: of the random split of data without an official one, and of the toys. Your own
            classes are split alike (stratified).
        size: number of training points of a toy, and of test points.
        target: the column of your table to learn; by default the one called target, label,
            class or y, else the last.
        drop: columns of your table to leave out.
        task: "classes" or "regression", for your table or `.npz`; by default decided by the
            values of the target.
        resize: height and width that your images are stretched to.
        test: path of the test part of your table or `.npz`, in a file of its own.
        test_size: share of your samples to test on; by default a third.
        holdout: replace the test part by a random share of the training samples, before
            anything is fitted to the rest.
        download: fetch missing files into the cache.

    >>> iris = load("iris", seed=3)
    >>> len(iris.x_train), len(iris.x_test), iris.num_classes, iris.scaling
    (100, 50, 3, 'symmetric')
    """
    if limit is not None and limit < 1:
        raise SettingError("limit", f"must be at least 1, got {limit}")
    if samples is not None and limit is not None:
        raise ValueError(
            f"samples and limit must not be given both, got {samples} and {limit}: samples draws "
            "training samples and keeps the test part, limit takes the first of both"
        )
    if scaling is not None:
        check_choice("scaling", scaling, SCALINGS)
    entry = ENTRIES.get(name)
    if size is not None and (entry is None or entry.kind != "toy"):
        raise SettingError(
            "size", f"is for toys, {name} has a size of its own: use limit (--limit) instead"
        )
    scaling_name = scaling or (entry.default_scaling if entry else "standard")
    rule = (entry.paper if entry else None) if scaling_name == "paper" else scaling_name
    if rule is None:
        known = ", ".join(SCALINGS[1:])
        raise ValueError(f"the paper's scaling of {name} is not known: use one of {known}")
    options = OwnOptions(target, tuple(drop or ()), task, resize, test, test_size)
    selection = Selection(limit, samples, seed, holdout)
    if entry is None:
        if is_import_path(name):
            label = name
            own = samples_in_memory(import_callable(name, "data")(), None, name, options)
        else:
            path = _own_path(name)
            label, own = path.name, read_own(path, options, cache=files.cache_folder())
        own = split(own, seed=seed, test_size=test_size, stratify=True)
        data = prepare(label, own, selection, scaling_name, rule)
        return replace(data, digest=digest(name, test=test))
    options.only(f"{name}, which is prepared already")
    if download and entry.remotes and not at_hand(name, limit=limit):
        fetch_dataset(name)
    request = Request(_paths(entry, limit), limit, scaling_name, seed, size)
    named = split(entry.read(request), seed=seed)
    whole = None
    if entry.kind != "toy":
        whole = Extent(entry.train, entry.test, entry.classes)
        _check_extent(name, Extent.of(named), whole, limit)
    return prepare(name, named, selection, scaling_name, rule, whole)


def digest(name: str, *, test: str | None = None) -> str | None:
    """Return a SHA-256 of the contents of your own files; None for data with a name.

    Ids and checkpoints include it, so that an edited file is not taken for the old one.

    >>> digest("iris") is None
    True
    """
    if name in ENTRIES or is_import_path(name):
        return None
    own = digest_of(_own_path(name))
    if test is None:
        return own
    return sha256((own + digest_of(_own_path(test))).encode()).hexdigest()


def from_memory(
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    drop: Sequence[str] | None = None,
    task: Task | None = None,
    scaling: str = "standard",
    seed: int = 0,
    name: str = "arrays",
    test_size: float | None = None,
) -> Dataset:
    """Return a data set of samples in memory, split at random (classes stratified).

    Args:
        data: inputs `(n, ...)` as an array or a tensor, with their targets `y` `(n,)`; a torch
            data set whose items are pairs of both; or a data frame, with its targets in `y` or
            in the column `target`. Inputs of uint8 are images.
        y: classes (whole numbers or strings) or numbers to learn.
        target, drop, task, scaling, test_size: as in `load`.
        seed: of the split.
        name: what records and messages call the data.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(90, 4))
    >>> from_memory(x, x[:, 0] > 0).classes
    ('0', '1')
    """
    check_choice("scaling", scaling, SCALINGS[1:])
    options = OwnOptions(target, tuple(drop or ()), task, test_size=test_size)
    samples = samples_in_memory(data, y, "the data", options)
    samples = split(samples, seed=seed, test_size=test_size, stratify=True)
    return prepare(name, samples, Selection(seed=seed), scaling, scaling)


def write_samples(data: Any, y: Any, folder: Path) -> Path:
    """Write samples in memory into a file that `load` reads: a data frame as Parquet.

    The targets of a data frame become its column "target".
    """
    if not is_frame(data):
        return write_npz(arrays_of(data, y), folder / "data.npz")
    frame = data if y is None else data.assign(target=np.asarray(y))
    path = folder / "data.parquet"
    replace_file(path, lambda stream: frame.to_parquet(stream, index=False))
    return path


def fetch_dataset(name: str, *, into: str | Path | None = None, progress: bool = True) -> Path:
    """Download a data set into the cache, or into the folder `into`; return where it is."""
    entry = _entry(name)
    if not entry.remotes:
        raise ValueError(f"{name} needs no download: {entry.source}")
    folder = (files.cache_folder() if into is None else Path(into).expanduser()) / name
    files.download(entry.remotes, folder, wanted=entry.files, progress=progress)
    return folder


def at_hand(name: str, *, limit: int | None = None) -> bool:
    """Return whether a data set, or its first `limit` samples, needs no download."""
    entry = _entry(name)
    among = files.places(entry.folders, parts=limit is not None)
    return not entry.files or files.find(entry.needed(limit), among) is not None


def _own_path(name: str) -> Path:
    path = Path(name).expanduser()
    if path.exists():
        return path
    if not path.suffix and path.name == name:
        _entry(name)
    folder = path.parent.resolve()
    if not folder.is_dir():
        raise ValueError(f"there is no file {name!r}: the folder {folder} does not exist")
    close = get_close_matches(path.name, [there.name for there in folder.iterdir()], 1, 0.8)
    hint = f": did you mean {path.parent / close[0]}?" if close else f" in the folder {folder}"
    raise ValueError(f"there is no file {name!r}{hint}")


def _entry(name: str) -> Entry:
    if name in ENTRIES:
        return ENTRIES[name]
    close = get_close_matches(name, ENTRIES, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(ENTRIES)}"
    raise ValueError(f"there is no data set or file {name!r}: {hint}")


def _paths(entry: Entry, limit: int | None) -> tuple[Path, ...]:
    """Return the files to read, or raise with the missing ones and how to get them."""
    if not entry.files:
        return ()
    wanted = entry.needed(limit)
    among = files.places(entry.folders, parts=limit is not None)
    paths = files.find(wanted, among)
    if paths is None:
        raise FileNotFoundError(_absence(entry, wanted, among))
    # MNIST and Fashion-MNIST have files of the same names, which only their folders tell apart
    if limit is None or paths[0].parent == files.data_folder():
        remotes = {remote.name: remote for remote in entry.remotes}
        for path in paths:
            if path.name in remotes:
                files.verify(path, remotes[path.name])
    return tuple(paths)


def _absence(entry: Entry, wanted: tuple[str, ...], among: list[Path]) -> str:
    nearest = max(among, key=lambda place: len(files.present(wanted, place)))
    there = files.present(wanted, nearest)
    absent = ", ".join(Path(name).name for name in wanted if name not in there)
    with_parts = files.places(entry.folders, parts=True)
    part = next((place for place in with_parts if place not in among and place.is_dir()), None)
    size = sum(remote.size for remote in entry.remotes) / 1e6
    url = entry.remotes[0].url
    if len(entry.remotes) > 1:
        url = url.rpartition("/")[0]
    return (
        f"{entry.name} lacks {absent} in {nearest}: run `kmixup data fetch {entry.name}` "
        f"({size:,.1f} MB), or put the files of {url} into a folder and set KMIXUP_DATA to it"
        + (f"; a part is in {part}, use its first samples (--limit)" if part else "")
    )


def _check_extent(name: str, extent: Extent, whole: Extent, limit: int | None) -> None:
    """Raise on a part of a data set where the whole was asked for."""
    if limit is None and extent != whole:
        raise ValueError(
            f"{name} must have {whole}, the files hold {extent}: "
            f"fetch the whole, or use the first {extent.train} (--limit)"
        )
    if limit is not None and extent.train < min(limit, whole.train):
        raise SettingError(
            "limit",
            f"asks for {min(limit, whole.train):,} training samples of {name}, "
            f"the files hold {extent.train:,}: fetch the whole, or lower the limit",
        )
