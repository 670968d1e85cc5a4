"""k-mixup: mixup along optimal transport matchings.

>>> import torch
>>> mix = KMixup(k=16, alpha=1.0, num_classes=10)
>>> x, y = mix(torch.randn(64, 8), torch.randint(10, (64,)))
"""

from kmixup.calibration import Calibration, calibrate
from kmixup.coefficient import Beta
from kmixup.hidden import HiddenMixup
from kmixup.inspection import Inspection, inspect
from kmixup.interpolation import Cut, Linear
from kmixup.methods import Choice, CutMix, KMixup, LocalMixup
from kmixup.mixing import Mixed, Mixer
from kmixup.pairing import Nearest, Optimal, match
from kmixup.vicinal import vicinal_dataset

__version__ = "0.1.0"

__all__ = [
    "Beta",
    "Calibration",
    "Choice",
    "Cut",
    "CutMix",
    "HiddenMixup",
    "Inspection",
    "KMixup",
    "Linear",
    "LocalMixup",
    "Mixed",
    "Mixer",
    "Nearest",
    "Optimal",
    "calibrate",
    "inspect",
    "match",
    "vicinal_dataset",
]
