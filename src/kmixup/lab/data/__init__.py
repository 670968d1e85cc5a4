"""Data sets as tensors in memory: `load` one by its name, or the user's own by its path."""

from kmixup.lab.data.catalogue import ENTRIES, Entry
from kmixup.lab.data.dataset import Dataset, Holdout, split
from kmixup.lab.data.fetch import cache_folder
from kmixup.lab.data.preparation import Preparation
from kmixup.lab.data.registry import at_hand, fetch_dataset, load
from kmixup.lab.data.scaling import Scaling

__all__ = [
    "ENTRIES",
    "Dataset",
    "Entry",
    "Holdout",
    "Preparation",
    "Scaling",
    "at_hand",
    "cache_folder",
    "fetch_dataset",
    "load",
    "split",
]
