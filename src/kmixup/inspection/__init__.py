"""An X-ray of a data set: what k and alpha would do to it, before any network is trained."""

from kmixup.inspection.inspecting import Inspection, inspect
from kmixup.inspection.readings import DistanceDecay, Halfway, LabelReading, Reading
from kmixup.measured import Measured

__all__ = [
    "DistanceDecay",
    "Halfway",
    "Inspection",
    "LabelReading",
    "Measured",
    "Reading",
    "inspect",
]
