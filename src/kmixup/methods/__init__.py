"""Named methods: compositions of the stages. A method is imported on its first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kmixup.methods.kmixup import KMixup

if TYPE_CHECKING:
    from kmixup.methods.adamixup import AdaMixup
    from kmixup.methods.automix import AutoMix
    from kmixup.methods.cmixup import CMixup
    from kmixup.methods.comixup import CoMixup
    from kmixup.methods.cutmix import CutMix
    from kmixup.methods.fmix import FMix
    from kmixup.methods.guided import GuidedMixup
    from kmixup.methods.latent import LatentMixup
    from kmixup.methods.local import LocalMixup
    from kmixup.methods.puzzle import PuzzleMix
    from kmixup.methods.regmixup import RegMixup
    from kmixup.methods.resizemix import ResizeMix
    from kmixup.methods.saliencymix import SaliencyMix
    from kmixup.methods.similar import SimilarMixup
    from kmixup.methods.stackmix import StackMix

__all__ = [
    "AdaMixup",
    "AutoMix",
    "CMixup",
    "CoMixup",
    "CutMix",
    "FMix",
    "GuidedMixup",
    "KMixup",
    "LatentMixup",
    "LocalMixup",
    "PuzzleMix",
    "RegMixup",
    "ResizeMix",
    "SaliencyMix",
    "SimilarMixup",
    "StackMix",
]

_HOMES = {
    "AdaMixup": "adamixup",
    "AutoMix": "automix",
    "CMixup": "cmixup",
    "CoMixup": "comixup",
    "CutMix": "cutmix",
    "FMix": "fmix",
    "GuidedMixup": "guided",
    "LatentMixup": "latent",
    "LocalMixup": "local",
    "PuzzleMix": "puzzle",
    "RegMixup": "regmixup",
    "ResizeMix": "resizemix",
    "SaliencyMix": "saliencymix",
    "SimilarMixup": "similar",
    "StackMix": "stackmix",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"kmixup.methods.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
