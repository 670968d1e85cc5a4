"""Data sets as tensors in memory: `load` one by its name, or your own by its path."""

from kmixup.lab.data.catalogue import ENTRIES, Entry
from kmixup.lab.data.dataset import Dataset, Holdout, split
from kmixup.lab.data.download import cache_folder
from kmixup.lab.data.loading import at_hand, digest, fetch_dataset, load
from kmixup.lab.data.preparation import Scaling
from kmixup.tables.targets import Task

__all__ = [
    "ENTRIES",
    "Dataset",
    "Entry",
    "Holdout",
    "Scaling",
    "Task",
    "at_hand",
    "cache_folder",
    "digest",
    "fetch_dataset",
    "load",
    "split",
]
