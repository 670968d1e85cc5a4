"""The presets of `kmixup reproduce`, by name."""

from __future__ import annotations

from kmixup.lab.paper.claims import Comparison
from kmixup.lab.paper.family import FAMILY
from kmixup.lab.paper.images import (
    CIFAR10,
    CIFAR100,
    DENSENET,
    MANIFOLD,
    MANIFOLD_ALL,
    MANIFOLD_DEEP,
    MNIST,
    NEAREST,
    SPEECH,
    SVHN,
    TINY_IMAGENET,
    WIDE_RESNET,
)
from kmixup.lab.paper.master import MASTER
from kmixup.lab.paper.preset import Preset, Quick
from kmixup.lab.paper.shifts import FGSM_CIFAR10, FGSM_MNIST, NOISE
from kmixup.lab.paper.toy import TOYS
from kmixup.lab.paper.uci import UCI

# large networks on a CPU: to see that all parts work, no more
_GLIMPSE = Quick(alpha=(1.0,), limit=200)
_DIGITS = Quick(alpha=(10.0,), limit=10_000)

_PRESETS = (
    Preset(
        "toy",
        TOYS,
        "At every xi k-mixup errs less than mixup, with k = 16 best in all but one column.",
        Comparison(k=16, each="column"),
        measured="8.5 minutes on two cores",
        quick=Quick(trials=2, epochs=50),
    ),
    Preset(
        "uci",
        UCI,
        "The best k-mixup errs less than the best mixup on every data set, although ERM is "
        "better than both on Arrhythmia.",
        measured="64 minutes on two busy cores",
        quick=Quick(trials=2, epochs=20),
    ),
    Preset(
        "mnist",
        (MNIST,),
        "The best k-mixup errs 0.10 % less than the best mixup, which errs 0.19 % less than ERM.",
        measured="51 of them for 4 epochs took 35 minutes on two cores",
        quick=_DIGITS,
    ),
    Preset(
        "cifar10",
        (CIFAR10,),
        "The best k-mixup errs 0.16 % less than the best mixup, which errs 1.4 % less than ERM.",
        quick=_GLIMPSE,
    ),
    Preset(
        "cifar10-large",
        (DENSENET, WIDE_RESNET),
        "The best k-mixup errs less than the best mixup, by 0.44 % with DenseNet-BC-190 and by "
        "0.28 % with WideResNet-101.",
        quick=_GLIMPSE,
    ),
    Preset(
        "cifar100",
        (CIFAR100,),
        "The best k-mixup errs 2.14 % less than the best mixup with alpha above 0, and less "
        "than ERM, which no such mixup does.",
        quick=_GLIMPSE,
    ),
    Preset(
        "svhn",
        (SVHN,),
        "The best k-mixup errs 0.15 % less than the best mixup.",
        quick=_GLIMPSE,
    ),
    Preset(
        "tiny-imagenet",
        (TINY_IMAGENET,),
        "The best k-mixup errs 1.91 % less than the best mixup, which errs 0.92 % less than ERM.",
        quick=_GLIMPSE,
    ),
    Preset(
        "speech",
        (SPEECH,),
        "The best k-mixup errs 1.11 % less than the best mixup, which errs 0.83 % less than ERM.",
        quick=_GLIMPSE,
    ),
    Preset(
        "noise",
        NOISE,
        "Under noise of every level k = 16 errs less than mixup and ERM: at the best alpha of "
        "each by as much as 4.29 % and 16 %.",
        Comparison(k=16, each="column"),
        quick=Quick(alpha=(10.0,), limit=200),
    ),
    Preset(
        "fgsm-mnist",
        (FGSM_MNIST,),
        "Under attacks of every size the highest k, 32, errs less than mixup.",
        Comparison(k=32, each="column"),
        quick=Quick(k=(1, 32), alpha=(10.0,), limit=10_000),
    ),
    Preset(
        "fgsm-cifar10",
        (FGSM_CIFAR10,),
        "Under attacks of every size the highest k, 16, errs less than mixup, by as much as "
        "6.12 %.",
        Comparison(k=16, each="column"),
        quick=Quick(limit=200),
    ),
    Preset(
        "nearest",
        (NEAREST,),
        "Mixing with the nearest of 16 errs 0.09 % more than mixup: matching, not nearness, "
        "is what helps.",
        Comparison(better="mixup", than="nearest"),
        quick=_GLIMPSE,
    ),
    Preset(
        "manifold",
        (MANIFOLD,),
        "k-mixup in hidden layers at best matches manifold mixup (4.25 % and 4.26 %), and "
        "neither reaches the 4.02 % of k-mixup of the inputs.",
        Comparison(better="manifold"),
        quick=_GLIMPSE,
    ),
    Preset(
        "manifold-layers",
        (MANIFOLD, MANIFOLD_ALL, MANIFOLD_DEEP),
        "Manifold mixup and k-mixup in hidden layers both err more where the layer is drawn from "
        "all residual blocks, or from the deep ones alone.",
        Comparison(better="manifold"),
        quick=_GLIMPSE,
    ),
    Preset(
        "family",
        FAMILY,
        "k-mixup combines with related variants of mixup: said in the paper's conclusions, "
        "without figures.",
        Comparison(k=16),
        calibrates=False,
        quick=Quick(limit=1000),
    ),
    Preset(
        "master",
        tuple(line.table for line in MASTER),
        "In each of seven image settings the best k-mixup errs less than ERM and the best mixup.",
        quick=_GLIMPSE,
    ),
)

PRESETS = {preset.name: preset for preset in _PRESETS}
