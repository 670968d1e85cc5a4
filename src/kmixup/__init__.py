"""k-mixup: mixup along optimal transport matchings.

>>> import torch
>>> mix = KMixup(k=16, alpha=1.0, num_classes=10)
>>> x, y = mix(torch.randn(64, 8), torch.randint(10, (64,)))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kmixup.batch import Batch
from kmixup.batchnorm import clean_batchnorm
from kmixup.calibration import Calibration, calibrate
from kmixup.coefficient import Beta, Coefficient
from kmixup.importance import saliency, spectral_residual
from kmixup.interpolation import Cut, Interpolation, Linear
from kmixup.matching import Nearest, Optimal, Pairing, match
from kmixup.methods import __all__ as _METHODS
from kmixup.methods.kmixup import KMixup
from kmixup.mixed import Draw, Mixed
from kmixup.mixer import Mixer, Mixing
from kmixup.wrappers.clean import WithClean
from kmixup.wrappers.hidden import HiddenMixup
from kmixup.wrappers.memory import Memory
from kmixup.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from kmixup.inspection import Inspection, inspect
    from kmixup.methods import (
        AdaMixup,
        AutoMix,
        CMixup,
        CoMixup,
        CutMix,
        FMix,
        GuidedMixup,
        LatentMixup,
        LocalMixup,
        PuzzleMix,
        RegMixup,
        ResizeMix,
        SaliencyMix,
        SimilarMixup,
        StackMix,
    )
    from kmixup.vicinal import vicinal_dataset
    from kmixup.wrappers.choice import Choice
    from kmixup.wrappers.prefetch import Prefetch
    from kmixup.wrappers.sometimes import Sometimes

__version__ = "0.2.0"

__all__ = [
    "AdaMixup",
    "AutoMix",
    "Batch",
    "Beta",
    "CMixup",
    "Calibration",
    "Choice",
    "CoMixup",
    "Coefficient",
    "Cut",
    "CutMix",
    "Draw",
    "FMix",
    "GuidedMixup",
    "HiddenMixup",
    "Inspection",
    "Interpolation",
    "KMixup",
    "LatentMixup",
    "Linear",
    "LocalMixup",
    "Memory",
    "Mixed",
    "Mixer",
    "Mixing",
    "Nearest",
    "Optimal",
    "Pairing",
    "Prefetch",
    "PuzzleMix",
    "RegMixup",
    "ResizeMix",
    "SaliencyMix",
    "SimilarMixup",
    "Sometimes",
    "StackMix",
    "WithClean",
    "Wrapper",
    "calibrate",
    "clean_batchnorm",
    "inspect",
    "match",
    "saliency",
    "spectral_residual",
    "vicinal_dataset",
]

# modules that few programs need, imported on first use, with their names
_LAZY = {
    "inspection": ("Inspection", "inspect"),
    "methods": tuple(_METHODS),
    "vicinal": ("vicinal_dataset",),
    "wrappers.choice": ("Choice",),
    "wrappers.prefetch": ("Prefetch",),
    "wrappers.sometimes": ("Sometimes",),
}


def __getattr__(name: str) -> Any:
    for home, names in _LAZY.items():
        if name in names:
            return getattr(import_module(f"kmixup.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
