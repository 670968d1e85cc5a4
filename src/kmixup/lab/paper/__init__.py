"""The paper as data: every results table as printed, and its experiments as presets."""

from kmixup.lab.paper.preset import Preset
from kmixup.lab.paper.presets import PRESETS, preset_of
from kmixup.lab.paper.tables import PaperTable

__all__ = ["PRESETS", "PaperTable", "Preset", "preset_of"]
