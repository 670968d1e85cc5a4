"""The mixing methods that the lab can train with, each defined once.

Command-line choices, help, labels, checks, sweeps and reports read this registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

import torch
from torch import nn
from torch.nn import functional as F

import kmixup
from kmixup._checks import SettingError
from kmixup.coefficient import Beta
from kmixup.interpolation import Linear
from kmixup.lab.imports import import_callable, is_import_path, unknown_name
from kmixup.matching import Nearest
from kmixup.mixer import Mixer, Mixing
from kmixup.wrappers.memory import Memory

if TYPE_CHECKING:
    from kmixup.methods.stackmix import Stack


@dataclass(frozen=True)
class Ingredients:
    """What a mixer is made from."""

    k: int
    alpha: float  # to train with
    classes: int | None  # their number; None where targets are numbers
    shape: tuple[int, ...] = ()  # of one input
    net: nn.Module | None = None  # the network that is trained; None where no method learns
    memory: int | None = None  # this and the next two are settings of kmixup
    labels: float = 0.0
    metric: Literal["sqeuclidean", "euclidean"] = "sqeuclidean"


Build = Callable[[Ingredients], Mixing]
VARIANTS = ("memory", "labels", "match_on", "metric")  # settings that change the pairs
NO_VARIANT = dict.fromkeys(VARIANTS)

USUAL = {"pca": 50, "network": 5, "ema": 5}  # numbers of `MatchOn`


@dataclass(frozen=True)
class MatchOn:
    """What samples are matched on, parsed from a setting such as "pca:50".

    "pca" are the first principal components of the training inputs, "network" the penultimate
    features of the network in training, "ema" those of the moving average of its weights.
    """

    kind: str
    number: int  # of components, or of epochs between computations of the features

    @classmethod
    def read(cls, text: str) -> MatchOn | None:
        """Parse a setting; None for pixels, which need no features.

        >>> MatchOn.read("pca"), MatchOn.read("pixels")
        (MatchOn(kind='pca', number=50), None)
        """
        if text == "pixels":
            return None
        kind, colon, number = str(text).partition(":")
        usual = USUAL.get(kind)
        if usual is None or (colon and not (number.isdecimal() and int(number) > 0)):
            raise SettingError(
                "match_on",
                f"must be pixels, {', '.join(USUAL)}, or one of these with a number, "
                f'e.g. pca:20 or network:5, got "{text}"',
            )
        return cls(kind, int(number) if colon else usual)

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"


@dataclass(frozen=True)
class MethodEntry:
    """A method of the registry."""

    title: str  # in reports
    build: Build  # makes the mixer; what it learns itself is trained with the network
    fixed: Mapping[str, object] = field(default_factory=dict)  # settings that leave no choice
    has_xi: bool = False  # the strength xi is known: inputs, mixed linearly in optimal pairs
    plain: bool = False  # mixes rows of numbers before the network, every row weighing 1
    needs_images: str | None = None  # what for
    layers: str | None = None  # of the network at which it mixes by default, if at any
    by_saliency: bool = False  # of pixels, by one more forward and backward pass in every step
    needs_numbers: str | None = None  # what it needs targets for that are numbers
    # makes the interpolation that encodes clean samples of a shape for the network
    encoding: Callable[[tuple[int, ...]], Stack] | None = None
    has_variants: bool = False  # has the settings of `VARIANTS`
    at_one: str | None = None  # its name at k = 1, where that is another
    alpha: float = 1.0  # its default
    baseline: str | None = None  # the method that it is compared with; itself at k = 1 by default

    @property
    def hidden(self) -> bool:
        """Whether it mixes in a layer of the network."""
        return self.layers is not None

    @property
    def has_k(self) -> bool:
        """Whether k is a choice."""
        return "k" not in self.fixed

    @property
    def has_alpha(self) -> bool:
        """Whether alpha is a choice."""
        return "alpha" not in self.fixed

    @property
    def mixes(self) -> bool:
        """Whether anything can be mixed: all methods but ERM do."""
        return self.fixed.get("alpha") != 0

    def suits(self, shape: tuple[int, ...], task: str) -> bool:
        """Return whether it can be trained on inputs of a shape and targets of a task."""
        lacks_images = self.needs_images is not None and len(shape) != 3
        lacks_numbers = self.needs_numbers is not None and task != "regression"
        return not (lacks_images or lacks_numbers)

    def seen_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape in which the network sees a sample of `shape`."""
        if self.encoding is None:
            return shape
        return tuple(self.encoding(shape).twice(torch.empty(1, *shape, device="meta")).shape[1:])


def _of(name: str) -> Build:
    """Build a mixer of the library from k, alpha and the number of classes."""
    return lambda at: getattr(kmixup, name)(at.k, at.alpha, at.classes)


def _kmixup(at: Ingredients) -> Mixing:
    mixer = kmixup.KMixup(at.k, at.alpha, at.classes, metric=at.metric, labels=at.labels)
    return mixer if at.memory is None else Memory(mixer, at.memory)


def _stack(shape: tuple[int, ...]) -> Stack:
    """Images one above the other, the features of tables one after the other."""
    from kmixup.methods.stackmix import Stack

    return Stack(-2 if len(shape) > 1 else -1)


def _automix(at: Ingredients) -> Mixer:
    criterion = F.mse_loss if at.classes is None else F.cross_entropy
    return kmixup.AutoMix(
        cast(nn.Module, at.net), at.shape, at.k, at.alpha, at.classes, criterion=criterion
    )


MANIFOLD_LAYERS = "input+first-block"  # the paper's
DEFAULT_ALPHA = 0.2  # of mixup and k-mixup; docs/evidence/default.md has the reason
SALIENT = "with salient parts"
# groups and saliency are those of one batch
BY_SALIENCY = partial(
    MethodEntry, fixed={"pairing": "batch"}, needs_images=SALIENT, by_saliency=True
)
METHODS: Mapping[str, MethodEntry] = MappingProxyType(
    {
        "erm": MethodEntry(
            "ERM",
            _of("KMixup"),
            {"k": 1, "alpha": 0.0, "alpha_rule": "same", "pairing": "loaders", **NO_VARIANT},
            has_xi=True,
            plain=True,
        ),
        "mixup": MethodEntry(
            "mixup",
            _of("KMixup"),
            {"k": 1, "alpha_rule": "same", **NO_VARIANT},  # random pairs look at nothing
            has_xi=True,
            plain=True,
            alpha=DEFAULT_ALPHA,
        ),
        "kmixup": MethodEntry(
            "k-mixup",
            _kmixup,
            has_xi=True,
            plain=True,
            has_variants=True,
            at_one="mixup",
            alpha=DEFAULT_ALPHA,
            baseline="mixup",
        ),
        "nearest": MethodEntry(
            "nearest neighbours",
            lambda at: Mixer(Nearest(at.k), Beta(at.alpha), Linear(), num_classes=at.classes),
            plain=True,
            baseline="mixup",
        ),
        # inside a network there is only one batch
        "manifold": MethodEntry(
            "manifold mixup", _of("KMixup"), {"pairing": "batch"}, layers=MANIFOLD_LAYERS
        ),
        "cutmix": MethodEntry("CutMix", _of("CutMix"), needs_images="to cut boxes from"),
        "local": MethodEntry("local mixup", _of("LocalMixup")),
        "puzzlemix": BY_SALIENCY("PuzzleMix", _of("PuzzleMix")),
        "guided": BY_SALIENCY("guided mixup", _of("GuidedMixup")),
        "comixup": BY_SALIENCY("Co-Mixup", _of("CoMixup")),
        "regmixup": MethodEntry("RegMixup", _of("RegMixup")),
        "similar": MethodEntry("similarity mixup", _of("SimilarMixup")),
        "cmixup": MethodEntry(
            "C-Mixup",
            lambda at: kmixup.CMixup(at.k, at.alpha),
            needs_numbers="to compare samples by",
        ),
        "stackmix": MethodEntry(
            "StackMix",
            lambda at: kmixup.StackMix(at.k, at.classes, axis=_stack(at.shape).axis),
            {"alpha": 1.0},  # lam is 1/2
            encoding=_stack,
        ),
        "adamixup": MethodEntry(
            "AdaMixup",
            lambda at: kmixup.AdaMixup(cast(nn.Module, at.net), at.shape, at.k, at.classes),
            {"alpha": 1.0},  # u is uniform
        ),
        "automix": MethodEntry("AutoMix", _automix, needs_images="to learn masks for"),
        "resizemix": MethodEntry(
            "ResizeMix",
            lambda at: kmixup.ResizeMix(at.k, at.classes),
            {"alpha": 1.0},  # sides are uniform
            needs_images="to paste into each other",
        ),
        "fmix": MethodEntry("FMix", _of("FMix"), needs_images="to paste into each other"),
        "saliencymix": MethodEntry("SaliencyMix", _of("SaliencyMix"), needs_images=SALIENT),
    }
)


def method_entry(name: str) -> MethodEntry:
    """Return the entry of a method of `METHODS`, or of your own mixer.

    `package.module:name` is a class or function that is called with `k`, `alpha` and
    `num_classes` (None for a regression) and returns a mixer.

    >>> method_entry("kmixup").title
    'k-mixup'
    """
    if name in METHODS:
        return METHODS[name]
    if is_import_path(name):
        return _own_entry(name)
    raise unknown_name("method", name, METHODS)


def import_method(name: str) -> Callable[..., Any]:
    """Import the class or function that makes your own mixer; raise if there is none."""
    return import_callable(name, "method", k=1, alpha=1.0, num_classes=None)


@cache
def _own_entry(name: str) -> MethodEntry:
    """Make the entry of your own mixer, which is imported only when it is built."""

    def build(at: Ingredients) -> Mixer:
        settings = {"k": at.k, "alpha": at.alpha, "num_classes": at.classes}
        mixer = import_method(name)(**settings)
        if not isinstance(mixer, Mixer):
            raise ValueError(
                f"method {name!r} must return a kmixup.Mixer, got {type(mixer).__name__}"
            )
        return mixer

    return MethodEntry(name, build)


def baseline_of(name: str) -> str:
    """Return the method that `name` is compared with, its row k = 1.

    >>> baseline_of("kmixup"), baseline_of("cutmix")
    ('mixup', 'cutmix')
    """
    return method_entry(name).baseline or name
