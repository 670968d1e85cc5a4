"""An X-ray of a data set: what k and alpha would do to it, before any network is trained."""

from kmixup._measured import Measured
from kmixup.inspection.readings import (
    DistanceDecay,
    Halfway,
    Inspection,
    LabelReading,
    Reading,
    inspect,
)

__all__ = [
    "DistanceDecay",
    "Halfway",
    "Inspection",
    "LabelReading",
    "Measured",
    "Reading",
    "inspect",
]
