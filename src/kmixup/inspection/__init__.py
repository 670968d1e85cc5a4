"""An X-ray of a data set: what k and alpha would do to it, before any network is trained."""

from kmixup.inspection.readings import (
    DistanceDecay,
    Halfway,
    Inspection,
    LabelReading,
    Reading,
    inspect,
)
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
