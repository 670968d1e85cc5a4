"""The user's own data: an `.npz`, a `.csv`, or a folder of images or of wav clips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kmixup.lab.data.arrays import read_npz
from kmixup.lab.data.dataset import Parts, Samples
from kmixup.lab.data.folders import read_label_folders, suffixes_in
from kmixup.lab.data.pictures import SUFFIXES, Size
from kmixup.lab.data.safety import check_regular
from kmixup.lab.data.speech import read_clips
from kmixup.lab.data.table import read_csv
from kmixup.lab.data.targets import Task, check_task

LAYOUTS = (
    "images as label/*.png or train/label/*.png (with test/label/*.png for a fixed test part), or "
    "clips as label/*.wav"
)


@dataclass(frozen=True)
class ReadingOptions:
    """What a user says of data of their own.

    Attributes:
        target: the column of a `.csv` to learn; None to look for a usual name.
        drop: columns of a `.csv` to leave out.
        task: "classes" or "regression", of a `.csv` or an `.npz`; None to decide by the values.
        resize: height and width that images of a folder are stretched to.
    """

    target: str | None = None
    drop: tuple[str, ...] = ()
    task: Task | None = None
    resize: Size | None = None

    def __post_init__(self) -> None:
        check_task(self.task)

    def refuse(self, what: str, names: Sequence[str]) -> None:
        """Refuse settings, by their `names`, that have no meaning for `what`."""
        for name in names:
            if getattr(self, name):
                raise ValueError(f"{name} must not be given for {what}, got {getattr(self, name)}")


def read_own(path: Path, reading: ReadingOptions, *, cache: Path) -> Samples | Parts:
    """Data at `path`, by their kind."""
    if path.is_dir():
        reading.refuse("a folder", ("target", "drop", "task"))
        return _read_folder(path, reading, cache)
    check_regular(path)
    kind = path.suffix.lower()
    if kind == ".npz":
        reading.refuse("an .npz", ("target", "drop", "resize"))
        return read_npz(path, task=reading.task)
    if kind == ".csv":
        reading.refuse("a .csv", ("resize",))
        return read_csv(path, target=reading.target, drop=reading.drop, task=reading.task)
    raise ValueError(
        f"{path} must be an .npz or a .csv file, or a folder of {LAYOUTS}, is a "
        f"{path.suffix or 'nameless'} file"
    )


def _read_folder(folder: Path, reading: ReadingOptions, cache: Path) -> Samples | Parts:
    endings = suffixes_in(folder)
    if (folder / "train").is_dir() or endings & SUFFIXES:
        return read_label_folders(folder, reading.resize)
    if ".wav" in endings:
        reading.refuse("a folder of clips", ("resize",))
        return read_clips(folder, cache)
    contents = [path.is_dir() for path in folder.iterdir()]
    raise ValueError(
        f"{folder} must hold {LAYOUTS}, has {sum(contents)} sub-folders without such files and "
        f"{len(contents) - sum(contents)} files"
    )
