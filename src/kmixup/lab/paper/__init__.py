"""The paper as data: every results table as printed, and its experiments as presets."""

from kmixup.lab.paper.claims import Comparison
from kmixup.lab.paper.master import MASTER, Summary
from kmixup.lab.paper.preset import Preset
from kmixup.lab.paper.presets import PRESETS
from kmixup.lab.paper.tables import Cell, Column, Table

TABLES = {
    table.name: table
    for preset in PRESETS.values()
    for table in preset.tables
    if table.errors is not None
}

__all__ = [
    "MASTER",
    "PRESETS",
    "TABLES",
    "Cell",
    "Column",
    "Comparison",
    "Preset",
    "Summary",
    "Table",
]
