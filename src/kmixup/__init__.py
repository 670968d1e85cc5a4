"""k-mixup: mixup along optimal transport matchings.

>>> import torch
>>> mix = KMixup(k=16, alpha=0.2, num_classes=10)
>>> x, y = mix(torch.randn(64, 8), torch.randint(10, (64,)))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kmixup._batch import Batch
from kmixup._checks import SettingError
from kmixup.batchnorm import clean_batchnorm
from kmixup.calibration import Calibration, calibrate
from kmixup.coefficient import Beta, Coefficient
from kmixup.collate import MixCollate
from kmixup.importance import saliency, spectral_residual
from kmixup.interpolation import Cut, Interpolation, Linear
from kmixup.matching import Nearest, Optimal, Pairing, check_solver, match
from kmixup.methods.adamixup import AdaMixup
from kmixup.methods.automix import AutoMix
from kmixup.methods.cmixup import CMixup
from kmixup.methods.comixup import CoMixup
from kmixup.methods.cutmix import CutMix
from kmixup.methods.fmix import FMix
from kmixup.methods.guided import GuidedMixup
from kmixup.methods.kmixup import KMixup, MixerOptions, PairOptions
from kmixup.methods.latent import LatentMixup
from kmixup.methods.local import LocalMixup
from kmixup.methods.puzzle import PuzzleMix
from kmixup.methods.regmixup import RegMixup
from kmixup.methods.resizemix import ResizeMix
from kmixup.methods.saliencymix import SaliencyMix
from kmixup.methods.similar import SimilarMixup
from kmixup.methods.stackmix import StackMix
from kmixup.mixed import Draw, Mixed, PairDraw
from kmixup.mixer import Mixer, Mixing
from kmixup.vicinal import vicinal_dataset
from kmixup.wrappers.choice import Choice
from kmixup.wrappers.clean import WithClean
from kmixup.wrappers.hidden import HiddenMixup
from kmixup.wrappers.memory import Memory
from kmixup.wrappers.prefetch import Prefetch
from kmixup.wrappers.wrapper import Sometimes, Wrapper, WrapperDraw

if TYPE_CHECKING:
    from kmixup.inspection import Inspection, inspect

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
    "MixCollate",
    "Mixed",
    "Mixer",
    "MixerOptions",
    "Mixing",
    "Nearest",
    "Optimal",
    "PairDraw",
    "PairOptions",
    "Pairing",
    "Prefetch",
    "PuzzleMix",
    "RegMixup",
    "ResizeMix",
    "SaliencyMix",
    "SettingError",
    "SimilarMixup",
    "Sometimes",
    "StackMix",
    "WithClean",
    "Wrapper",
    "WrapperDraw",
    "calibrate",
    "check_solver",
    "clean_batchnorm",
    "inspect",
    "match",
    "saliency",
    "spectral_residual",
    "vicinal_dataset",
]


def __getattr__(name: str) -> Any:
    if name in ("Inspection", "inspect"):  # few programs need them, and they load slowly
        return getattr(import_module("kmixup.inspection"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
