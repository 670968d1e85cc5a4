"""The presets of `kmixup reproduce`, by name."""

from __future__ import annotations

from kmixup.lab.paper.beyond import BEYOND_CIFAR10_5000, BEYOND_MNIST_1000, BEYOND_MNIST_5000
from kmixup.lab.paper.claims import Claim
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
from kmixup.lab.paper.script import SCRIPT
from kmixup.lab.paper.shifts import FGSM_CIFAR10, FGSM_MNIST, NOISE
from kmixup.lab.paper.small import CIFAR10_5000, CLEAN_PASS, MNIST_1000, MNIST_5000
from kmixup.lab.paper.tables import PaperTable
from kmixup.lab.paper.toy import TOYS
from kmixup.lab.paper.uci import UCI

# for large networks on a CPU: shows that all parts work, and no more
_GLIMPSE = Quick(alpha=(1.0,), limit=200)
_FEW = Quick(alpha=(1.0,))
_DIGITS = Quick(alpha=(10.0,), limit=10_000)

_PRESETS = (
    Preset(
        "toy",
        TOYS,
        "At every xi k-mixup errs less than mixup, with k = 16 best in all but one column.",
        Claim(k=16, each="column"),
        quick=Quick(trials=2, epochs=50),
    ),
    Preset(
        "uci",
        UCI,
        "The best k-mixup errs less than the best mixup on every data set, although ERM is "
        "better than both on Arrhythmia.",
        quick=Quick(trials=2, epochs=20),
    ),
    Preset(
        "mnist",
        (MNIST,),
        "The best k-mixup errs 0.10 % less than the best mixup, which errs 0.19 % less than ERM.",
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
        Claim(k=16, each="column"),
        quick=Quick(alpha=(10.0,), limit=200),
    ),
    Preset(
        "fgsm-mnist",
        (FGSM_MNIST,),
        "Under attacks of every size the highest k, 32, errs less than mixup.",
        Claim(k=32, each="column"),
        quick=Quick(k=(1, 32), alpha=(10.0,), limit=10_000),
    ),
    Preset(
        "fgsm-cifar10",
        (FGSM_CIFAR10,),
        "Under attacks of every size the highest k, 16, errs less than mixup, by as much as "
        "6.12 %.",
        Claim(k=16, each="column"),
        quick=Quick(limit=200),
    ),
    Preset(
        "nearest",
        (NEAREST,),
        "Mixing with the nearest of 16 errs 0.09 % more than mixup: matching, not nearness, "
        "is what helps.",
        Claim(better="mixup", than="nearest"),
        quick=_GLIMPSE,
    ),
    Preset(
        "manifold",
        (MANIFOLD,),
        "k-mixup in hidden layers at best matches manifold mixup (4.25 % and 4.26 %), and "
        "neither reaches the 4.02 % of k-mixup of the inputs.",
        Claim(better="manifold"),
        quick=_GLIMPSE,
    ),
    Preset(
        "manifold-layers",
        (MANIFOLD, MANIFOLD_ALL, MANIFOLD_DEEP),
        "Manifold mixup and k-mixup in hidden layers both err more where the layer is drawn from "
        "all residual blocks, or from the deep ones alone.",
        Claim(better="manifold"),
        quick=_GLIMPSE,
    ),
    Preset(
        "family",
        FAMILY,
        "k-mixup combines with related variants of mixup: said in the paper's conclusions, "
        "without figures.",
        Claim(k=16),
        rules=("same",),
        quick=Quick(),
    ),
    Preset(
        "script",
        SCRIPT,
        "The best k-mixup errs 0.16 % less than the best mixup, which errs 1.4 % less than ERM; "
        "here by the protocol of the paper's public script.",
        rules=("same", "root"),
        quick=_GLIMPSE,
    ),
    Preset(
        "mnist-1000",
        MNIST_1000,
        "With few samples the best k-mixup errs less than the best mixup: a question, as the "
        "paper has no such table.",
        rules=("same",),
        quick=_FEW,
    ),
    Preset(
        "mnist-5000",
        MNIST_5000,
        "With few samples the best k-mixup errs less than the best mixup: a question, as the "
        "paper has no such table.",
        rules=("same",),
        quick=_FEW,
    ),
    Preset(
        "cifar10-5000",
        (*CIFAR10_5000, *CLEAN_PASS),
        "With few samples the best k-mixup errs less than the best mixup: a question, as the "
        "paper has no such table.",
        rules=("same",),
        quick=_FEW,
    ),
    Preset(
        "small-images",
        (*MNIST_1000, *MNIST_5000, *CIFAR10_5000, *CLEAN_PASS),
        "The tables of mnist-1000, mnist-5000 and cifar10-5000 together.",
        rules=("same",),
        quick=_FEW,
    ),
    *(
        Preset(
            name,
            tables,
            "Labels, a learned metric or a memory lower the error of k-mixup: a question, as the "
            "paper leaves it to future work.",
            rules=("same",),
            quick=_GLIMPSE,
        )
        for name, tables in (
            ("beyond-mnist-1000", BEYOND_MNIST_1000),
            ("beyond-mnist-5000", BEYOND_MNIST_5000),
            ("beyond-cifar10-5000", BEYOND_CIFAR10_5000),
            ("beyond", (*BEYOND_MNIST_1000, *BEYOND_MNIST_5000, *BEYOND_CIFAR10_5000)),
        )
    ),
    Preset(
        "master",
        tuple(summary.table for summary in MASTER),
        "In each of seven image settings the best k-mixup errs less than ERM and the best mixup.",
        summaries=MASTER,
        quick=_GLIMPSE,
    ),
)

PRESETS = {preset.name: preset for preset in _PRESETS}


def preset_of(table: PaperTable) -> Preset:
    """The experiment that re-runs a table and no summary.

    >>> preset_of(WIDE_RESNET).name
    'cifar10-large'
    """
    return next(preset for preset in _PRESETS if table in preset.tables and not preset.summaries)
