"""Loading a data set by its name, whole or as the part that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from kmixup.lab.data import fetch as files
from kmixup.lab.data import transfer
from kmixup.lab.data.catalogue import ENTRIES, Entry, Request
from kmixup.lab.data.dataset import Dataset, Holdout, Parts, Samples, split
from kmixup.lab.data.finishing import Drawn, Extent, Scale, finish
from kmixup.lab.data.memory import returned_samples
from kmixup.lab.data.own import ReadingOptions, read_own
from kmixup.lab.data.scaling import SCALINGS, Scaling
from kmixup.lab.data.targets import Task
from kmixup.lab.imports import import_callable, is_import_path


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
    """A data set in memory.

    Args:
        name: one of `ENTRIES`, the path of your own data (see `own`), or `package.module:name`, a
            function without arguments that returns `(x, y)`, a data set of torch, or a dict of
            the arrays of an `.npz`.
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
        target: the column of the user's `.csv` to learn; by default the one called target,
            label, class or y, else the last.
        drop: columns of the user's `.csv` to leave out.
        task: "classes" or "regression", for the user's `.csv` or `.npz`; by default decided
            by the values of the target.
        resize: height and width that the user's images are stretched to.
        holdout: put a random share of the training samples in the place of the test part,
            before anything is fitted to the rest.
        download: fetch what is not at hand into the cache; not with `root`.

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
    drawn = None if samples is None else Drawn(samples, seed)
    if scaling is not None and scaling not in SCALINGS:
        raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}")
    folder = None if root is None else Path(root).expanduser()
    reading = ReadingOptions(target, tuple(drop or ()), task, resize)
    if name not in ENTRIES:
        if size is not None:
            raise ValueError(f"size is for toys, {name} has a size of its own: set limit instead")
        if is_import_path(name):
            reading.refuse("data of your own in Python", ("target", "drop", "resize"))
            label, own = name, returned_samples(import_callable(name, "data")(), name, task=task)
        else:
            path = _own_path(name)
            label, own = path.name, read_own(path, reading, cache=files.cache_folder())
        scale = _scale(name, scaling or "standard", None)
        return finish(
            label, _parts(own, seed), limit=limit, samples=drawn, scale=scale, holdout=holdout
        )
    entry = ENTRIES[name]
    reading.refuse(f"{name}, which is prepared already", ("target", "drop", "task", "resize"))
    if size is not None and entry.kind != "toy":
        raise ValueError(f"size is for toys, {name} has a size of its own: set limit instead")
    scale = _scale(name, scaling or entry.default_scaling, entry.paper)
    if download and folder is None and entry.remotes and not at_hand(name, limit=limit):
        fetch_dataset(name)
    request = Request(_paths(entry, folder, limit), limit, scale.name, seed, size)
    parts = _parts(entry.read(request), seed)
    whole = None
    if entry.kind != "toy":
        whole = Extent(entry.train, entry.test, entry.classes)
        _check_extent(name, Extent.of(parts), whole, limit)
    return finish(
        name, parts, limit=limit, samples=drawn, scale=scale, holdout=holdout, whole=whole
    )


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
            transfer.download(remote, folder, progress=progress)
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


def _parts(samples: Samples | Parts, seed: int) -> Parts:
    """A random split of samples that have none of their own."""
    return split(samples, seed=seed) if isinstance(samples, Samples) else samples


def _scale(name: str, scaling: str, paper: str | None) -> Scale:
    """A scaling by its name, with the rule that "paper" stands for."""
    if scaling != "paper":
        return Scale(scaling, scaling)
    if paper is None:
        known = ", ".join(rule for rule in SCALINGS if rule != "paper")
        raise ValueError(f"the paper's scaling of {name} is not known: use one of {known}")
    return Scale("paper", paper)


def _paths(entry: Entry, root: Path | None, limit: int | None) -> tuple[Path, ...]:
    """The files to read, or one sentence on which are missing and how to get them."""
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
    url = (
        entry.remotes[0].url if len(entry.remotes) == 1 else entry.remotes[0].url.rpartition("/")[0]
    )
    return (
        f"{entry.name} lacks {absent} in {nearest}: run `kmixup data fetch {entry.name}`{size}, or "
        f"put what {url} has into the sub-folder {entry.folders[0]} of the folder KMIXUP_DATA"
        + (f"; a part is in {part}, set limit to use its first samples" if part else "")
    )


def _check_extent(name: str, extent: Extent, whole: Extent, limit: int | None) -> None:
    """Refuse a part of a data set where the whole was asked for."""
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
