"""An X-ray of a data set: what k and alpha would do to it, before any network is trained.

`inspect` measures; what it finds is an `Inspection`: a `Reading` for every k, and `Advice`.
"""

from kmixup.inspection.advice import Advice
from kmixup.inspection.halfway import Halfway, Measured
from kmixup.inspection.inspecting import Inspection, inspect
from kmixup.inspection.readings import Decay, Reading

__all__ = ["Advice", "Decay", "Halfway", "Inspection", "Measured", "Reading", "inspect"]
