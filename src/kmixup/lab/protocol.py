"""What a run is: a protocol, a method and a trial, as plain frozen data.

Two runs with equal trials are the same run: everything that a result depends on is
here, but for the machine. The defaults are those of the paper, section 5.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from kmixup.coefficient import Beta
from kmixup.pairing import Nearest, Optimal, Pairing

MethodName = Literal["erm", "mixup", "kmixup", "nearest", "manifold", "cutmix", "local"]
AlphaRule = Literal["same", "xi"]
PairedWith = Literal["loaders", "batch"]
Precision = Literal["fp32", "bf16"]
MANIFOLD_LAYERS = "input+first-block"  # those of the paper


def check_whole(name: str, value: object, *, least: int = 1) -> None:
    """Refuse what is no whole number, or too small a one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}, got {value!r}")


def _check_choice(name: str, value: object, choices: object) -> None:
    if value not in get_args(choices):
        raise ValueError(f"{name} must be one of {', '.join(get_args(choices))}, got {value!r}")


@dataclass(frozen=True)
class Protocol:
    """How a network is trained, whatever the method.

    `rate` is divided by 10 at each of the `milestones`, which are shares of the
    `epochs` and so move with them. `augment`: random crops after a padding of 4, and
    random flips, of images. `precision`: "fp32", or "bf16" for mixed precision.

    >>> Protocol(epochs=4).rates()
    (0.1, 0.1, 0.01, 0.001)
    """

    epochs: int = 200
    rate: float = 0.1
    milestones: tuple[float, ...] = (0.5, 0.75)
    momentum: float = 0.9
    weight_decay: float = 1e-4
    batch_size: int = 128
    augment: bool = False
    precision: Precision = "fp32"

    def __post_init__(self) -> None:
        check_whole("epochs", self.epochs)
        check_whole("batch_size", self.batch_size, least=2)
        if not 0 < self.rate < math.inf:
            raise ValueError(f"rate must be a finite number above 0, got {self.rate}")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must lie in [0, 1), got {self.momentum}")
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(
                f"weight_decay must be a finite number, 0 or more, got {self.weight_decay}"
            )
        if not isinstance(self.augment, bool):
            raise ValueError(f"augment must be true or false, got {self.augment!r}")
        for name in ("rate", "momentum", "weight_decay"):  # 1 and 1.0 are one setting
            object.__setattr__(self, name, float(getattr(self, name)))
        object.__setattr__(self, "milestones", tuple(map(float, self.milestones)))
        if list(self.milestones) != sorted(self.milestones) or not all(
            0 < share < 1 for share in self.milestones
        ):
            raise ValueError(
                "milestones must be rising shares of the epochs between 0 and 1, "
                f"e.g. (0.5, 0.75), got {self.milestones}"
            )
        _check_choice("precision", self.precision, Precision)

    def rates(self) -> tuple[float, ...]:
        """The learning rate of every epoch."""
        # a third of the epochs may come out a rounding error above a whole number
        starts = [math.ceil(share * self.epochs - 1e-9) for share in self.milestones]
        return tuple(
            self.rate / 10 ** sum(epoch >= start for start in starts)
            for epoch in range(self.epochs)
        )


@dataclass(frozen=True)
class Method:
    """What training mixes.

    `name`: "erm" (nothing), "mixup" (random pairs), "kmixup" (optimal pairs in blocks
    of `k`), "nearest" (the nearest in a block, the paper's counter-example), "manifold"
    (in a layer of the network), "cutmix" (boxes of images) or "local" (the loss weighted
    by distance); the last three are as published at k = 1, with optimal pairs above.
    `alpha_rule`: use `alpha` as it is ("same"), or the alpha that has at `k` the
    strength xi of `alpha` at k = 1 ("xi"). `pairing`: partners come from a second,
    independent order of the data ("loaders", as in the paper) or from the same "batch".
    `layers`: of manifold alone, as `kmixup.lab.models.layers_of` reads them.

    What a name leaves no choice in is set, so that equal methods compare equal. There is
    one batch only inside of a network, so that manifold always pairs in the batch:

    >>> Method("mixup", k=16)
    Method(name='mixup', k=1, alpha=1.0, alpha_rule='same', pairing='loaders', layers=None)
    >>> Method("kmixup", k=1) == Method("mixup")
    True
    >>> Method("manifold").pairing, Method("manifold").layers
    ('batch', 'input+first-block')
    """

    name: MethodName = "kmixup"
    k: int = 16
    alpha: float = 1.0
    alpha_rule: AlphaRule = "same"
    pairing: PairedWith = "loaders"
    layers: str | None = None

    def __post_init__(self) -> None:
        _check_choice("method", self.name, MethodName)
        _check_choice("alpha_rule", self.alpha_rule, AlphaRule)
        _check_choice("pairing", self.pairing, PairedWith)
        check_whole("k", self.k)
        Beta(self.alpha)  # refuses what is no alpha
        if self.name == "kmixup" and self.k == 1:
            self._set(name="mixup")
        if self.name in ("erm", "mixup"):
            self._set(k=1, alpha_rule="same")
        if self.name == "erm":
            self._set(alpha=0.0, pairing="loaders")
        if not self.has_xi and self.alpha_rule == "xi":
            raise ValueError(
                f'alpha_rule must be "same" for the method {self.name}, got "xi": '
                "calibration is of optimal pairs, mixed linearly as inputs"
            )
        if self.name == "manifold":
            self._set(pairing="batch", layers=self.layers or MANIFOLD_LAYERS)
        else:
            self._set(layers=None)
        self._set(alpha=float(self.alpha))

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def label(self) -> str:
        """
        >>> Method("erm").label, Method("kmixup", 16, 0.5, "xi").label
        ('erm', 'kmixup k=16 alpha=0.5 at equal xi')
        """
        words: list[str] = [self.name]
        words += [f"k={self.k}"] * self.has_k
        words += [f"alpha={self.alpha:g}"] * (self.name != "erm")
        words += ["at equal xi"] * (self.alpha_rule == "xi")
        words += ["in the batch"] * (self.pairing == "batch" and self.name != "manifold")
        words += [f"in {self.layers}"] * (self.layers not in (None, MANIFOLD_LAYERS))
        return " ".join(words)

    @property
    def has_k(self) -> bool:
        """Whether k is a choice."""
        return self.name not in ("erm", "mixup")

    @property
    def has_xi(self) -> bool:
        """Whether the strength xi is known: that of inputs, mixed linearly in optimal pairs."""
        return self.name in ("erm", "mixup", "kmixup")

    @property
    def mixes_rows(self) -> bool:
        """Whether all is done to rows of numbers before the network, every row weighing 1."""
        return self.has_xi or self.name == "nearest"

    @property
    def stage(self) -> Pairing:
        """The library's stage that chooses the partners."""
        return Nearest(self.k) if self.name == "nearest" else Optimal(self.k)

    @property
    def smallest(self) -> int:
        """The least number of samples in which a full block has its counterpart."""
        return 2 * self.k if self.pairing == "batch" else self.k


@dataclass(frozen=True)
class Trial:
    """One run: data, network, method, protocol and seed.

    `data` and `model` are names or paths as `kmixup.lab.data.load` and
    `kmixup.lab.models.build` take them; `limit`, `scaling`, `size` and `target` are
    arguments of the former. Besides the test part as it is, the network is tested under
    Gaussian `noise` and under `fgsm` attacks of these many 255ths. Trials that differ in
    their method alone have the same split, initial weights and order of the samples.

    To choose among methods, `validation` is the share of the training samples to test on
    in the place of the test part, drawn by the seed. `split` is a seed for the division
    into training and test part, and for the points of a toy, that many trials share: by
    default it is the trial's own, and then what one seed tests on another trains on.
    """

    data: str
    model: str
    method: Method = Method()
    protocol: Protocol = Protocol()
    seed: int = 0
    limit: int | None = None
    scaling: str | None = None
    size: int | None = None
    target: str | None = None
    noise: tuple[float, ...] = ()
    fgsm: tuple[float, ...] = ()
    validation: float | None = None
    split: int | None = None

    def __post_init__(self) -> None:
        for name in ("noise", "fgsm"):
            object.__setattr__(self, name, _levels(name, getattr(self, name)))
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise ValueError(f"seed must be a whole number, 0 or more, got {self.seed!r}")
        if self.split is not None:
            check_whole("split", self.split, least=0)
        if self.validation is not None and not 0 < self.validation < 1:
            raise ValueError(
                f"validation must be a share between 0 and 1, e.g. 0.2, got {self.validation}"
            )
        if self.method.smallest > self.protocol.batch_size:
            twice = "twice k" if self.method.pairing == "batch" else "k"
            raise ValueError(
                f"batch_size must be at least {twice} = {self.method.smallest} with pairing "
                f'"{self.method.pairing}", got {self.protocol.batch_size}: '
                "lower k or raise batch_size"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON."""
        plain = asdict(self)
        plain["protocol"]["milestones"] = list(self.protocol.milestones)
        return plain | {"noise": list(self.noise), "fgsm": list(self.fgsm)}

    @property
    def id(self) -> str:
        """A name for the trial that stays: a hash of all that was chosen.

        What is None or empty does not count, so that settings which come later leave the
        names of older trials as they are.

        >>> Trial("iris", "mlp-iris").id == Trial("iris", "mlp-iris", limit=None).id
        True
        """
        canonical = json.dumps(_chosen(self.to_dict()), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Trial:
        """The trial that `to_dict` wrote.

        >>> trial = Trial("iris", "mlp-iris")
        >>> Trial.from_dict(trial.to_dict()) == trial
        True
        """
        values = known_settings(cls, plain)
        if "method" in values:
            values["method"] = Method(**known_settings(Method, values["method"], "method."))
        if "protocol" in values:
            values["protocol"] = Protocol(
                **known_settings(Protocol, values["protocol"], "protocol.")
            )
        if missing := {"data", "model"} - values.keys():
            raise ValueError(f"a trial must have {' and '.join(sorted(missing))}")
        return cls(**values)


SPEECH = Protocol(epochs=30, rate=3e-3, milestones=(1 / 3, 2 / 3))
# Batch sizes are nowhere in the paper. Those of the UCI tables are the ones, of 16, 32, 64 and
# 128, at which plain training comes nearest to its error in the paper (results/settings).
UCI = Protocol(rate=0.005)
# The largest rate, of 0.1, 0.05 and 0.02, at which plain training learns all three toys with
# every batch size tried (results/settings).
TOY = Protocol(rate=0.02)
# LeNet on digits in [0, 1] does not always start to learn at the rate 0.1. Mean training loss
# of the first epoch of plain training, seeds 0, 1, 2: 2.31 (chance is ln 10 = 2.30), 0.56
# and 0.55 at 0.1; 0.39, 0.96 and 0.48 at half of it.
DIGITS = Protocol(rate=0.05)
BY_KIND = {"toy": TOY, "table": UCI, "image": Protocol(), "speech": SPEECH}
BY_NAME = {
    "mnist": DIGITS,
    "fashion-mnist": DIGITS,
    "iris": replace(UCI, batch_size=32),
    "abalone": replace(UCI, batch_size=64),
}
CROPPED = ("cifar10", "cifar100")  # data sets of small photographs, cropped and flipped


def paper_protocol(data: str, kind: str | None) -> Protocol:
    """The paper's protocol for a data set of a kind: "toy", "table", "image" or "speech".

    The user's own data, `kind` None, get that of images. Batch sizes are nowhere in the
    paper and are our choice; and so are the rates of toys and digits, where the paper's 0.1
    fails.
    """
    if kind is not None and kind not in BY_KIND:
        raise ValueError(f"kind must be one of {', '.join(BY_KIND)}, got {kind!r}")
    protocol = BY_NAME.get(data, BY_KIND["image" if kind is None else kind])
    return replace(protocol, augment=data in CROPPED)


def _levels(name: str, given: Iterable[float]) -> tuple[float, ...]:
    levels = tuple(sorted({float(level) for level in given}))
    if not all(0 <= level < math.inf for level in levels):
        raise ValueError(f"{name} must be finite numbers of 255ths, 0 or more, got {list(levels)}")
    return levels


def _chosen(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _chosen(value) if isinstance(value, Mapping) else value
        for key, value in plain.items()
        if value is not None and value != []
    }


def known_settings(kind: type, plain: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The settings `plain` of a dataclass, refused where it has no such field."""
    names = [field.name for field in fields(kind)]
    for key in plain:
        if key not in names:
            raise ValueError(
                f"{prefix}{key} is not a setting: those of a {kind.__name__} are {', '.join(names)}"
            )
    return dict(plain)
