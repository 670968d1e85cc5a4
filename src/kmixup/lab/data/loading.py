"""Load a data set by its name, or your own by its path, whole or as the part you ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import torch

from kmixup.lab.data import arrays
from kmixup.lab.data import download as files
from kmixup.lab.data.catalogue import ENTRIES, Entry, Request
from kmixup.lab.data.dataset import Dataset, Holdout, Parts, Samples, split
from kmixup.lab.data.folders import read_label_folders, suffixes_in
from kmixup.lab.data.images import SUFFIXES, Size
from kmixup.lab.data.inputs import TABLES
from kmixup.lab.data.scaling import SCALINGS, Scaling, fit
from kmixup.lab.data.speech import read_clips
from kmixup.lab.data.targets import Task, check_task
from kmixup.lab.files import check_regular, digest_of
from kmixup.lab.imports import import_callable, is_import_path

LAYOUTS = (
    "images as label/*.png or train/label/*.png (with test/label/*.png for a fixed test part), or "
    "clips as label/*.wav"
)


def load(
    name: str,
    *,
    limit: int | None = None,
    samples: int | None = None,
    scaling: Scaling | None = None,
    seed: int = 0,
    root: str | Path | None = None,
    size: int | None = None,
    target: str | None = None,
    drop: Sequence[str] | None = None,
    task: Task | None = None,
    resize: tuple[int, int] | None = None,
    holdout: Holdout | None = None,
    download: bool = False,
) -> Dataset:
    """Load a data set into memory.

    Args:
        name: one of `ENTRIES`; the path of your own data: a table, an `.npz`, or a folder of
            images or clips; or `package.module:name`, a function without arguments that returns
            `(x, y)`, a data set of torch, a data frame, or a dict of the arrays of an `.npz`.
        limit: use only the first samples, this many of each part; needs only the files
            that hold them, and `Dataset.part` says so. Without it the data must be whole.
        samples: use only so many training samples, drawn by the seed with all classes alike, and
            the whole test part.
        scaling: "paper" (where the paper's xi tell it), "standard", "minmax" ([0, 1]),
            "symmetric" ([-1, 1]), "global" (one mean and deviation over all columns) or
            "none"; by default that of the entry, else "standard".
        seed: of the random split of data without an official one, and of the toys.
        root: the only folder to look in, in place of KMIXUP_DATA and the cache.
        size: number of training points of a toy, and of test points.
        target: the column of your table to learn; by default the one called target, label,
            class or y, else the last.
        drop: columns of your table to leave out.
        task: "classes" or "regression", for your table or `.npz`; by default decided by the
            values of the target.
        resize: height and width that your images are stretched to.
        holdout: replace the test part by a random share of the training samples, before
            anything is fitted to the rest.
        download: fetch missing files into the cache; not with `root`.

    >>> iris = load("iris", seed=3)
    >>> len(iris.x_train), len(iris.x_test), iris.num_classes, iris.scaling
    (100, 50, 3, 'symmetric')
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    if samples is not None and limit is not None:
        raise ValueError(
            f"samples and limit must not be given both, got {samples} and {limit}: samples draws "
            "training samples and keeps the test part, limit takes the first of both"
        )
    if scaling is not None and scaling not in SCALINGS:
        raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}")
    entry = ENTRIES.get(name)
    if size is not None and (entry is None or entry.kind != "toy"):
        raise ValueError(f"size is for toys, {name} has a size of its own: set limit instead")
    options = ReadingOptions(target, tuple(drop or ()), task, resize)
    selection = Selection(limit, samples, seed, holdout)
    if entry is None:
        rule = _rule(name, scaling or "standard", None)
        if is_import_path(name):
            label, own = name, _samples(import_callable(name, "data")(), None, name, options)
        else:
            path = _own_path(name)
            label, own = path.name, read_own(path, options, cache=files.cache_folder())
        data = finish(label, own, selection, scaling or "standard", rule)
        return replace(data, digest=digest(name))
    options.reject(f"{name}, which is prepared already", ("target", "drop", "task", "resize"))
    scaling_name = scaling or entry.default_scaling
    rule = _rule(name, scaling_name, entry.paper)
    folder = None if root is None else Path(root).expanduser()
    if download and folder is None and entry.remotes and not at_hand(name, limit=limit):
        fetch_dataset(name)
    request = Request(_paths(entry, folder, limit), limit, scaling_name, seed, size)
    parts = _split(entry.read(request), seed)
    whole = None
    if entry.kind != "toy":
        whole = Extent(entry.train, entry.test, entry.classes)
        _check_extent(name, Extent.of(parts), whole, limit)
    return finish(name, parts, selection, scaling_name, rule, whole)


def digest(name: str) -> str | None:
    """Return a SHA-256 of the contents of your own file or folder; None for data with a name.

    Ids and checkpoints include it, so that an edited file is not taken for the old one.

    >>> digest("iris") is None
    True
    """
    if name in ENTRIES or is_import_path(name):
        return None
    return digest_of(_own_path(name))


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
) -> Dataset:
    """Return a data set of samples in memory, with a third for testing, drawn by the seed.

    Args:
        data: inputs `(n, ...)` as an array or a tensor, with their targets `y` `(n,)`; a
            data set of torch whose items are pairs of both; or a data frame, with its targets
            in `y` or in the column `target`. Inputs of uint8 are images.
        y: classes (whole numbers or texts) or numbers to learn.
        target, drop: columns of a data frame, as in `load`.
        task: "classes" or "regression"; by default decided by the values of the targets.
        scaling: as in `load`.
        seed: of the split.
        name: what records and messages call the data.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(90, 4))
    >>> from_memory(x, x[:, 0] > 0).classes
    ('0', '1')
    """
    if scaling not in SCALINGS or scaling == "paper":
        known = ", ".join(word for word in SCALINGS if word != "paper")
        raise ValueError(f"scaling must be one of {known}, got {scaling!r}")
    options = ReadingOptions(target, tuple(drop or ()), task)
    samples = _samples(data, y, "the data", options)
    return finish(name, samples, Selection(seed=seed), scaling, scaling)


def write_samples(data: Any, y: Any, folder: Path) -> Path:
    """Write samples in memory into a file that `load` reads: a data frame as Parquet."""
    if not _is_frame(data):
        return arrays.write_npz(arrays.arrays_of(data, y), folder / "data.npz")
    from kmixup.lab.data import tables

    return tables.write_table(data, y, folder / "data.parquet")


def fetch_dataset(name: str, *, into: str | Path | None = None, progress: bool = True) -> Path:
    """Download a data set into the cache, or into the folder `into`; return where it is."""
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
    """Return whether a data set, or its first `limit` samples, needs no download."""
    entry = _entry(name)
    among = files.places(entry.folders, parts=limit is not None)
    return not entry.files or files.find(entry.needed(limit), among) is not None


# your own data


def _samples(data: Any, y: Any, source: str, options: ReadingOptions) -> Samples | Parts:
    """Return samples in memory: as in `from_memory`, or a dict of the arrays of an `.npz`."""
    if isinstance(data, tuple) and len(data) == 2 and y is None:
        data, y = data
    if _is_frame(data):
        from kmixup.lab.data import tables

        options.reject("a data frame", ("resize",))
        table = tables.table_of(data, source)
        target, drop, task = options.target, options.drop, options.task
        return tables.samples_of(table, target=target, drop=drop, task=task, y=y)
    options.reject("arrays", ("target", "drop", "resize"))
    return arrays.samples_of(arrays.arrays_of(data, y), source, task=options.task)


def _is_frame(data: Any) -> bool:
    return hasattr(data, "columns") and hasattr(data, "iloc")


@dataclass(frozen=True)
class ReadingOptions:
    """Options for your own data.

    Attributes:
        target: the column of a table to learn; None to look for a usual name.
        drop: columns of a table to leave out.
        task: "classes" or "regression", for a table or an `.npz`; None to decide by the values.
        resize: height and width that images of a folder are stretched to.
    """

    target: str | None = None
    drop: tuple[str, ...] = ()
    task: Task | None = None
    resize: Size | None = None

    def __post_init__(self) -> None:
        check_task(self.task)

    def reject(self, what: str, names: Sequence[str]) -> None:
        """Raise if one of the options `names`, which have no meaning for `what`, is given."""
        for name in names:
            if getattr(self, name):
                raise ValueError(f"{name} must not be given for {what}, got {getattr(self, name)}")


def read_own(path: Path, options: ReadingOptions, *, cache: Path) -> Samples | Parts:
    """Read the data at `path`, by their kind."""
    if path.is_dir():
        options.reject("a folder", ("target", "drop", "task"))
        return _read_folder(path, options, cache)
    check_regular(path)
    kind = path.suffix.lower()
    if kind == ".npz":
        options.reject("an .npz", ("target", "drop", "resize"))
        return arrays.read_npz(path, task=options.task)
    if kind in TABLES:
        from kmixup.lab.data import tables  # on first use: pandas loads slowly

        options.reject(f"a {kind}", ("resize",))
        target, drop, task = options.target, options.drop, options.task
        table = tables.read_table(path, as_text=None if target is None else [target])
        return tables.samples_of(table, target=target, drop=drop, task=task)
    raise ValueError(
        f"{path} must be an .npz, a table ({', '.join(TABLES)}), or a folder of {LAYOUTS}, is a "
        f"{path.suffix or 'nameless'} file"
    )


def _read_folder(folder: Path, options: ReadingOptions, cache: Path) -> Samples | Parts:
    endings = suffixes_in(folder)
    if (folder / "train").is_dir() or endings & SUFFIXES:
        return read_label_folders(folder, options.resize)
    if ".wav" in endings:
        options.reject("a folder of clips", ("resize",))
        return read_clips(folder, cache)
    contents = [path.is_dir() for path in folder.iterdir()]
    raise ValueError(
        f"{folder} must hold {LAYOUTS}, has {sum(contents)} sub-folders without such files and "
        f"{len(contents) - sum(contents)} files"
    )


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


# files of the catalogue


def _entry(name: str) -> Entry:
    if name in ENTRIES:
        return ENTRIES[name]
    close = get_close_matches(name, ENTRIES, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(ENTRIES)}"
    raise ValueError(f"there is no data set or file {name!r}: {hint}")


def _paths(entry: Entry, root: Path | None, limit: int | None) -> tuple[Path, ...]:
    """Return the files to read, or raise with the missing ones and how to get them."""
    if not entry.files:
        return ()
    wanted = entry.needed(limit)
    among = files.places(entry.folders, root=root, parts=limit is not None)
    paths = files.find(wanted, among)
    if paths is None:
        raise FileNotFoundError(_absence(entry, wanted, among, root))
    if limit is None:
        remotes = {remote.name: remote for remote in entry.remotes}
        for path in paths:
            if path.name in remotes:
                files.verify(path, remotes[path.name])
    return tuple(paths)


def _absence(entry: Entry, wanted: tuple[str, ...], among: list[Path], root: Path | None) -> str:
    nearest = min(among, key=lambda place: len(files.missing(wanted, place)))
    absent = ", ".join(Path(name).name for name in files.missing(wanted, nearest))
    with_parts = files.places(entry.folders, root=root, parts=True)
    part = next((place for place in with_parts if place not in among and place.is_dir()), None)
    known = [remote.size for remote in entry.remotes if remote.size is not None]
    size = f" ({sum(known) / 1e6:,.1f} MB)" if len(known) == len(entry.remotes) else ""
    url = entry.remotes[0].url
    if len(entry.remotes) > 1:
        url = url.rpartition("/")[0]
    return (
        f"{entry.name} lacks {absent} in {nearest}: run `kmixup data fetch {entry.name}`{size}, or "
        f"put what {url} has into the sub-folder {entry.folders[0]} of the folder KMIXUP_DATA"
        + (f"; a part is in {part}, set limit to use its first samples" if part else "")
    )


def _check_extent(name: str, extent: Extent, whole: Extent, limit: int | None) -> None:
    """Raise on a part of a data set where the whole was asked for."""
    if limit is None and extent != whole:
        raise ValueError(
            f"{name} must have {whole}, the files hold {extent}: "
            f"fetch the whole, or set limit to {extent.train} to use a part"
        )
    if limit is not None and extent.train < min(limit, whole.train):
        raise ValueError(
            f"limit asks for {min(limit, whole.train):,} training samples of {name}, "
            f"the files hold {extent.train:,}: fetch the whole, or lower the limit"
        )


# from parts to a data set


class Extent(NamedTuple):
    """The numbers of training samples, test samples and classes of a data set."""

    train: int
    test: int
    classes: int

    @classmethod
    def of(cls, parts: Parts) -> Extent:
        return cls(len(parts.x_train), len(parts.x_test), len(parts.classes))

    def __str__(self) -> str:
        return f"{self.train:,} training and {self.test:,} test samples of {self.classes} classes"


class Selection(NamedTuple):
    """Which samples to use: `limit`, `samples`, `seed` and `holdout` as in `load`."""

    limit: int | None = None
    samples: int | None = None
    seed: int = 0
    holdout: Holdout | None = None

    def of(self, parts: Parts) -> Parts:
        if self.samples is not None:
            parts = parts.drawn(self.samples, self.seed)
        return (
            parts.first(self.limit) if self.holdout is None else self.holdout.of(parts, self.limit)
        )

    def in_words(self, extent: Extent, whole: Extent) -> str | None:
        """Describe the part, or return None for all samples.

        >>> Selection(limit=100).in_words(Extent(100, 50, 10), Extent(60000, 10000, 10))
        'the first 100 of 60,000 training and 50 of 10,000 test samples'
        >>> Selection(holdout=Holdout(0.2)).in_words(Extent(80, 20, 3), Extent(100, 50, 3))
        '80 of 100 training samples, and 20 others of them in the place of the test part'
        >>> Selection(samples=10).in_words(Extent(10, 50, 3), Extent(100, 50, 3))
        '10 of 100 training samples, drawn at random'
        """
        if extent == whole:
            return None
        some = f"{extent.train:,} of {whole.train:,} training"
        if self.holdout is not None:
            return (
                f"{some} samples, and {extent.test:,} others of them in the place of the test part"
            )
        if self.samples is not None:
            return f"{some} samples, drawn at random"
        text = f"the first {some} and {extent.test:,} of {whole.test:,} test samples"
        if extent.classes == whole.classes:
            return text
        return f"{text}, {extent.classes} of {whole.classes} classes"


def finish(
    name: str,
    samples: Samples | Parts,
    selection: Selection,
    scaling: str,
    rule: str,
    whole: Extent | None = None,
) -> Dataset:
    """Split and select samples, encode and scale them.

    Everything is fitted to the training samples that are selected. `rule` is what the scaling
    "paper" means for these data, and `whole` the extent of the whole data set, by default that
    of the samples.
    """
    parts = _split(samples, selection.seed)
    whole = whole or Extent.of(parts)
    parts = selection.of(parts)
    encoder, columns = None, parts.columns
    if parts.table is not None:
        parts, encoder = _encoded(parts)
        columns = encoder.names
    elif parts.x_train.is_floating_point() and parts.x_train.dim() == 2:
        parts = impute(parts)
    pixel_range = (0.0, 255.0) if parts.x_train.dtype == torch.uint8 else None
    mean, std = fit(rule, parts.x_train, pixel_range)
    if encoder is not None and any(encoder.binary):
        # a rare category would become large if it were scaled
        binary = torch.tensor(encoder.binary)
        mean, std = torch.where(binary, 0.0, mean), torch.where(binary, 1.0, std)
    parts, target_mean, target_std = standardise(parts)
    return Dataset(
        name, parts.x_train, parts.y_train, parts.x_test, parts.y_test, parts.classes,
        mean=mean, std=std, scaling=scaling, pixel_range=pixel_range,
        part=selection.in_words(Extent.of(parts), whole), columns=columns, encoder=encoder,
        target_mean=target_mean, target_std=target_std, notes=parts.notes,
        split_by_seed=parts.split_by_seed,
    )  # fmt: skip


def impute(parts: Parts) -> Parts:
    """Fill missing values with the median of their column over the training part.

    A column without any value there becomes 0.
    """
    if not any(x.isnan().any() for x in (parts.x_train, parts.x_test)):
        return parts
    median = parts.x_train.nanmedian(0).values.nan_to_num(0.0)
    x_train, x_test = (torch.where(x.isnan(), median, x) for x in (parts.x_train, parts.x_test))
    return replace(parts, x_train=x_train, x_test=x_test)


def standardise(parts: Parts) -> tuple[Parts, float, float]:
    """Scale the targets of a regression to mean 0 and deviation 1 in the training part.

    Returns the parts, and the mean and the deviation that were taken out.
    """
    if not parts.y_train.is_floating_point():
        return parts, 0.0, 1.0
    training = parts.y_train.double()
    mean, std = float(training.mean()), float(training.std(correction=0))
    if std == 0:
        raise ValueError(
            f"the targets of a regression must differ, all {len(training):,} training samples have "
            f"{mean:g}: name another target"
        )
    y_train, y_test = (((y.double() - mean) / std).float() for y in (parts.y_train, parts.y_test))
    return replace(parts, y_train=y_train, y_test=y_test), mean, std


def _encoded(parts: Parts) -> tuple[Parts, Any]:
    """Return the parts of a table as inputs, and the encoder, fitted to the training part."""
    assert parts.table is not None
    values = parts.table.values
    train, test = (values.iloc[rows.numpy()] for rows in (parts.x_train, parts.x_test))
    encoder = parts.table.encoder.fit(train)
    remarks = {
        name: f"{count:,} test rows have another category"
        for name, count in encoder.unseen(test).items()
    }
    x_train, x_test = (torch.from_numpy(encoder.encode(part)) for part in (train, test))
    return replace(parts, x_train=x_train, x_test=x_test), encoder.with_remarks(remarks)


def _split(samples: Samples | Parts, seed: int) -> Parts:
    """Split samples that have no split of their own at random."""
    return split(samples, seed=seed) if isinstance(samples, Samples) else samples


def _rule(name: str, scaling: str, paper: str | None) -> str:
    """Return the scaling itself, or what "paper" means for a data set."""
    if scaling != "paper":
        return scaling
    if paper is None:
        known = ", ".join(rule for rule in SCALINGS if rule != "paper")
        raise ValueError(f"the paper's scaling of {name} is not known: use one of {known}")
    return paper
