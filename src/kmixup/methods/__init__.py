"""Named methods: compositions of the stages."""

from kmixup.methods.adamixup import AdaMixup
from kmixup.methods.automix import AutoMix
from kmixup.methods.cmixup import CMixup
from kmixup.methods.comixup import CoMixup
from kmixup.methods.cutmix import CutMix
from kmixup.methods.fmix import FMix
from kmixup.methods.guided import GuidedMixup
from kmixup.methods.kmixup import KMixup
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
