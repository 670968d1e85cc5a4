"""Load a data set by its name, or your own by its path, whole or as the part you ask for."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from kmixup._checks import SettingError, check_choice, check_whole, did_you_mean
from kmixup.lab._files import digest_of, read_bytes, replace_content
from kmixup.lab.data import download as files
from kmixup.lab.data.catalogue import ENTRIES, Entry, Request
from kmixup.lab.data.dataset import Dataset, Holdout, Samples, split
from kmixup.lab.data.own import (
    OwnOptions,
    arrays_of,
    is_frame,
    plain,
    raw_digest,
    read_own,
    samples_in_memory,
)
from kmixup.lab.data.preparation import SCALINGS, Scaling, prepare
from kmixup.lab.imports import import_callable, is_import_path
from kmixup.tables.targets import Task

Extent = tuple[int, int, int]  # numbers of training samples, test samples and classes


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
    decimal: str | None = None,
    thousands: str | None = None,
    dayfirst: bool | None = None,
    missing: Sequence[str] | None = None,
    schema: str | None = None,
    holdout: Holdout | None = None,
    label_noise: float | None = None,
) -> Dataset:
    """Load a data set into memory.

    Args:
        name: one of `ENTRIES`; the path of your table, `.npz` or folder of images;
            or `package.module:name`, a function without arguments that returns `(x, y)`, a torch
            data set, a data frame, or a dict of the arrays of an `.npz`.
        limit: use only the first samples of each part, and the files that hold them. Without it
            the data must be whole.
        samples: draw so many training samples, with all classes equally; keep the whole test set.
        scaling: "paper" (where the paper's xi imply one), "standard", "minmax", "symmetric",
            "global", "cifar" or "none", as in `preparation.fit`; by default that of the entry,
            else "standard".
        seed: of the random split of data without an official one, and of the toys. Your own
            data are split by class.
        size: number of training points of a toy, and of test points.
        target: column of your table to learn; by default target, label, class or y, else the last.
        drop: columns of your table to leave out.
        task: "classes" or "regression"; by default decided by the values of the target.
        resize: height and width that your images are stretched to.
        test: path of the separate file with the test set of your table.
        test_size: fraction of your samples to test on; by default a third.
        decimal: decimal separator of your table; by default inferred from all columns together.
        thousands: separator of groups of three digits; likewise.
        dayfirst: whether 03/04/2021 is in April; likewise.
        missing: further texts that stand for a missing value, such as "-999".
        schema: path of a `schema.json`, as a model has one, in place of inference.
        holdout: replace the test set by a random fraction of the training samples.
        label_noise: fraction of the training labels to redraw at random, also those held out.

    >>> iris = load("iris", seed=3)
    >>> len(iris.x_train), len(iris.x_test), iris.num_classes, iris.scaling
    (100, 50, 3, 'symmetric')
    """
    if (seed := check_whole("seed", seed, least=0)) >= 1 << 63:
        raise SettingError("seed", f"must be below 2**63, got {seed}")
    entry = ENTRIES.get(name)
    _check_sizes(name, entry, limit, samples, size)
    scaling_name, rule = _scaling_of(name, entry, scaling)
    options = OwnOptions(
        target, tuple(drop or ()), task, resize, test, test_size, decimal, thousands, dayfirst,
        tuple(missing or ()), schema,
    )  # fmt: skip
    label, contents = name, None
    if entry is not None:
        options.only(f"{name}, which is prepared already")
        request = Request(_paths(entry, limit), limit, scaling_name, seed, size)
        found = split(entry.read(request), seed=seed)
    else:
        if is_import_path(name):
            raw = plain(import_callable(name, "data")())
            contents = _joined(raw_digest(*raw), test)
            found = samples_in_memory(*raw, name, options)
        else:
            path = _own_path(name)
            label, found = path.name, read_own(path, options)
            contents = digest(name, test=test)
        found = split(found, seed=seed, test_size=test_size, stratify=True)
    whole = _extent(found)
    if entry is not None and entry.kind != "toy":
        whole = entry.train, entry.test, entry.classes
        _check_extent(name, _extent(found), whole, limit)
    if samples is not None:
        found = found.drawn(samples, seed)
    if label_noise:
        found = found.with_label_noise(label_noise, seed)
    found = holdout.of(found, limit) if holdout else found.first(limit)
    part = _part(_extent(found), whole, drawn=samples is not None, held_out=holdout is not None)
    if label_noise:
        part = f"{part or 'all samples'}, with {100 * label_noise:g} % random labels"
    data = prepare(label, found, scaling_name, rule, part)
    return replace(data, digest=contents)


def _check_sizes(
    name: str, entry: Entry | None, limit: int | None, samples: int | None, size: int | None
) -> None:
    if limit is not None:
        check_whole("limit", limit)
    if samples is not None and limit is not None:
        raise ValueError(
            f"samples and limit must not be given both, got {samples} and {limit}: samples draws "
            "training samples and keeps the test set, limit takes the first of both"
        )
    if size is not None and (entry is None or entry.kind != "toy"):
        raise SettingError(
            "size", f"is for toys, {name} has its own size: use limit (--limit) instead"
        )


def _scaling_of(name: str, entry: Entry | None, scaling: Scaling | None) -> tuple[str, str]:
    """Return the name of the scaling, and what it means for the data."""
    if scaling is not None:
        check_choice("scaling", scaling, SCALINGS)
    chosen = scaling or (entry.default_scaling if entry else "standard")
    rule = (entry.paper if entry else None) if chosen == "paper" else chosen
    if rule is None:
        known = ", ".join(SCALINGS[1:])
        raise ValueError(f"the paper's scaling of {name} is not known: use one of {known}")
    return chosen, rule


def digest(name: str, *, test: str | None = None) -> str | None:
    """Return a SHA-256 of the contents of your files; None for names and functions.

    Ids and checkpoints include it, so that an edited file is not taken for the old one.
    """
    if name in ENTRIES or is_import_path(name):
        return None
    return _joined(digest_of(_own_path(name)), test)


def _joined(contents: str, test: str | None) -> str:
    """Return the digest of data that may have their test set in another file."""
    if test is None:
        return contents
    return sha256((contents + digest_of(_own_path(test))).encode()).hexdigest()


def from_memory(
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    drop: Sequence[str] | None = None,
    task: Task | None = None,
    scaling: str = "standard",
    seed: int = 0,
    test_size: float | None = None,
) -> Dataset:
    """Return a data set of samples in memory, split at random by class.

    `data` are inputs `(n, ...)` as an array or a tensor, with their targets `y` `(n,)`; a torch
    data set whose items are pairs of both; or a data frame, with its targets in `y` or in the
    column `target`. Inputs of uint8 are images. Other arguments are as in `load`.
    """
    check_choice("scaling", scaling, SCALINGS[1:])
    options = OwnOptions(target, tuple(drop or ()), task, test_size=test_size)
    samples = samples_in_memory(data, y, "the data", options)
    samples = split(samples, seed=seed, test_size=test_size, stratify=True)
    return prepare("arrays", samples, scaling, scaling)


def write_samples(data: Any, y: Any, folder: Path) -> Path:
    """Write samples in memory into a file that `load` reads; `y` of a frame becomes "target"."""
    content = io.BytesIO()
    if is_frame(data):
        if y is not None and "target" in (str(name).strip().lower() for name in data.columns):
            raise ValueError("data must not have a column 'target' and y: rename or drop it")
        frame = data if y is None else data.assign(target=np.asarray(y))
        frame.to_parquet(content, index=False)
    else:
        np.savez(content, **arrays_of(data, y))  # type: ignore[arg-type]
    path = folder / ("data.parquet" if is_frame(data) else "data.npz")
    if not os.path.lexists(path):
        replace_content(path, content.getvalue())
    elif read_bytes(path) != content.getvalue():
        raise SettingError(
            "out", f"must be a folder without other data, {path} has some: choose another folder"
        )
    return path


def fetch_dataset(name: str, *, into: str | Path | None = None) -> Path:
    """Download a data set into the cache, or into the folder `into`; return where it is."""
    entry = _entry(name)
    if not entry.remotes:
        remedy = f"{name} cannot be fetched: {entry.recipe}" if entry.recipe else ""
        raise ValueError(remedy or f"{name} needs no download: {entry.source}")
    folder = (files.cache_folder() if into is None else Path(into).expanduser()) / name
    files.download(entry.remotes, folder, wanted=entry.files)
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
        _entry(name)  # raises
    raise ValueError(f"there is no file {name!r} in the folder {path.parent.resolve()}")


def _entry(name: str) -> Entry:
    if name not in ENTRIES:
        raise ValueError(f"unknown data set or file {name!r}: {did_you_mean(name, ENTRIES)}")
    return ENTRIES[name]


def _paths(entry: Entry, limit: int | None) -> tuple[Path, ...]:
    """Return the files to read, or raise with the missing ones and how to get them."""
    if not entry.files:
        return ()
    wanted = entry.needed(limit)
    among = files.places(entry.folders, parts=limit is not None)
    paths = files.find(wanted, among)
    if paths is None:
        raise FileNotFoundError(_absence(entry, wanted))
    # MNIST and Fashion-MNIST have files of the same names, which only their folders tell apart
    if limit is None or paths[0].parent == files.data_folder():
        remotes = {remote.name: remote for remote in entry.remotes}
        for path in paths:
            if path.name in remotes:
                files.verify(path, remotes[path.name])
    return tuple(paths)


def _absence(entry: Entry, wanted: tuple[str, ...]) -> str:
    names = ", ".join(Path(name).name for name in wanted)
    if entry.recipe:
        return f"{entry.name} needs {names}, which is in no folder: {entry.recipe}"
    size = sum(remote.size for remote in entry.remotes) / 1e6
    whole, every = (files.places(entry.folders, parts=parts) for parts in (False, True))
    part = next((place for place in every if place not in whole and place.is_dir()), None)
    return (
        f"{entry.name} needs {names} in one folder, none has them all: run `kmixup data fetch "
        f"{entry.name}` ({size:,.1f} MB), or set KMIXUP_DATA to a folder with the files"
        + (f"; a part is in {part}, use its first samples (--limit)" if part else "")
    )


def _extent(samples: Samples) -> Extent:
    return len(samples.x), len(samples.x_test), len(samples.classes)


def _check_extent(name: str, extent: Extent, whole: Extent, limit: int | None) -> None:
    """Raise on a part of a data set where the whole was asked for."""
    if limit is None and extent != whole:
        must, hold = (
            f"{train:,} training and {test:,} test samples of {classes} classes"
            for train, test, classes in (whole, extent)
        )
        raise ValueError(
            f"{name} must have {must}, the files hold {hold}: "
            f"fetch the whole, or use the first {extent[0]} (--limit)"
        )
    if limit is not None and extent[0] < (wanted := min(limit, whole[0])):
        raise SettingError(
            "limit",
            f"asks for {wanted:,} training samples of {name}, "
            f"the files hold {extent[0]:,}: fetch the whole, or lower the limit",
        )


def _part(extent: Extent, whole: Extent, *, drawn: bool, held_out: bool) -> str | None:
    """Describe a part of the data set, or return None for all of it."""
    if extent == whole:
        return None
    (train, test, classes), (all_train, all_test, all_classes) = extent, whole
    some = f"{train:,} of {all_train:,} training"
    if held_out:
        return f"{some} samples, and {test:,} others of them in the place of the test set"
    if drawn:
        return f"{some} samples, drawn at random"
    text = f"the first {some} and {test:,} of {all_test:,} test samples"
    return text if classes == all_classes else f"{text}, {classes} of {all_classes} classes"
