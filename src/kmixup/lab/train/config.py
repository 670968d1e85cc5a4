"""The configuration of a run: method, protocol and trial, as plain frozen data.

Two runs with equal trials are the same run: a trial has everything that a result depends on,
except the machine. The defaults are the paper's (section 5).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from kmixup.coefficient import Beta
from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.evaluate.tasks import CLASS_WEIGHTS, ClassWeights
from kmixup.lab.models import MANIFOLD_LAYERS
from kmixup.lab.train.methods import METHODS, VARIANTS, MethodEntry
from kmixup.lab.train.metric import MatchOn

AlphaRule = Literal["same", "xi", "root"]
PairedWith = Literal["loaders", "batch", "reshuffle"]
Shifts = tuple[tuple[str, tuple[float, ...]], ...]  # names of SHIFTS, and levels of each
Precision = Literal["fp32", "bf16"]
Layout = Literal["channels_last"]
CleanPass = Literal["always", "matched"]


def check_whole(name: str, value: object, *, least: int = 1) -> None:
    """Refuse what is no whole number, or too small a one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}, got {value!r}")


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Refuse what is not one of the choices."""
    if value not in (known := tuple(choices)):
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")


@dataclass(frozen=True)
class Protocol:
    """How a network is trained, whatever the method.

    >>> Protocol(epochs=4).rates()
    (0.1, 0.1, 0.01, 0.001)
    >>> Protocol(epochs=4, warmup=0.5, milestones=()).rates()
    (0.05, 0.1, 0.1, 0.1)

    Attributes:
        epochs: length of the training.
        rate: the learning rate, divided by 10 at each of the `milestones`.
        milestones: shares of the epochs, so that they move with them.
        momentum, weight_decay: of stochastic gradient descent.
        batch_size: samples of a step.
        augment: random crops after a padding of 4, and random flips, of images.
        precision: "fp32", or "bf16" for mixed precision.
        warmup: the share of the epochs in which the rate rises to its first value in equal
            steps; by default there are none.
        test_every: epochs between two tests, each with a checkpoint; the last epoch is always
            tested. By default every epoch is.
        layout: "channels_last" keeps the channels of a pixel together, which is faster on most
            CPUs and gives other roundings.
        drop_last: leave out the last batch of an epoch where it is short.
        clean_pass: before each step also run the batch through the network as it is, unmixed,
            in training mode, which moves the running statistics of batch norm and no weight:
            "always", or where the pairs are "matched", k > 1, as the paper's public script does.
    """

    epochs: int = 200
    rate: float = 0.1
    milestones: tuple[float, ...] = (0.5, 0.75)
    momentum: float = 0.9
    weight_decay: float = 1e-4
    batch_size: int = 128
    augment: bool = False
    precision: Precision = "fp32"
    # None where nothing is chosen: ids leave it out, so that those of older trials stay
    warmup: float | None = None
    test_every: int | None = None
    layout: Layout | None = None
    drop_last: bool | None = None
    clean_pass: CleanPass | None = None

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
        check_choice("precision", self.precision, get_args(Precision))
        self._check_optional()

    def _check_optional(self) -> None:
        if self.warmup is not None and not 0 <= self.warmup < 1:
            raise ValueError(f"warmup must be a share of the epochs in [0, 1), got {self.warmup}")
        if self.test_every is not None:
            check_whole("test_every", self.test_every)
        if self.layout is not None:
            check_choice("layout", self.layout, get_args(Layout))
        if self.clean_pass is not None:
            check_choice("clean_pass", self.clean_pass, get_args(CleanPass))
        for name in ("warmup", "drop_last"):  # the default has one form
            object.__setattr__(self, name, getattr(self, name) or None)

    def rates(self) -> tuple[float, ...]:
        """The learning rate of every epoch."""
        # a third of the epochs may come out a rounding error above a whole number
        starts = [math.ceil(share * self.epochs - 1e-9) for share in self.milestones]
        rising = math.ceil((self.warmup or 0.0) * self.epochs - 1e-9)
        return tuple(
            self.rate
            / 10 ** sum(epoch >= start for start in starts)
            * (min(1.0, (epoch + 1) / rising) if rising else 1.0)
            for epoch in range(self.epochs)
        )

    def tests(self, epoch: int) -> bool:
        """Whether the network is tested after an epoch, counted from 0."""
        return epoch + 1 == self.epochs or (epoch + 1) % (self.test_every or 1) == 0


@dataclass(frozen=True)
class Method:
    """What training mixes: an entry of `METHODS`, and its settings.

    Fields that a method fixes are overwritten, so that equal methods compare equal:

    >>> Method("mixup", k=16).k
    1
    >>> Method("kmixup", k=1) == Method("mixup")
    True
    >>> Method("manifold").pairing, Method("manifold").layers
    ('batch', 'input+first-block')

    Attributes:
        name: one of `METHODS`. "manifold", "cutmix" and "local" are as published at k = 1,
            and have optimal pairs above.
        k: the number of samples in a block.
        alpha: of the law of lam; 0 mixes nothing.
        alpha_rule: "same" uses `alpha` as it is, "xi" the alpha that has at `k` the
            strength xi of `alpha` at k = 1, "root" the product of `alpha` and the ratio of the
            root mean square distances of partners at 1 and at `k`, as the paper's public
            script has it.
        pairing: where partners come from: a second, independent order of the data
            ("loaders", as in the paper), the same "batch", where no sample meets itself, or a
            "reshuffle" of the same batch, where it may, as in the paper's public script.
        layers: of manifold alone, as `kmixup.lab.models.layers_of` reads them.
        memory: the number of samples of earlier batches that are kept to fill up blocks, so that
            k may be larger than the batch; None for no memory.
        labels: the cost of a pair of different classes, as in `Optimal`; None for none.
        match_on: what samples are matched on, as `MatchOn` reads it; None for pixels.
    """

    name: str = "kmixup"
    k: int = 16
    alpha: float = 1.0
    alpha_rule: AlphaRule = "same"
    pairing: PairedWith = "loaders"
    layers: str | None = None
    # None where nothing is chosen: ids leave it out, so that those of older trials stay
    memory: int | None = None
    labels: float | None = None
    match_on: str | None = None

    def __post_init__(self) -> None:
        check_choice("method", self.name, METHODS)
        check_choice("alpha_rule", self.alpha_rule, get_args(AlphaRule))
        check_choice("pairing", self.pairing, get_args(PairedWith))
        check_whole("k", self.k)
        Beta(self.alpha)  # refuses what is no alpha
        if self.k == 1 and self.entry.at_one is not None:
            self._set(name=self.entry.at_one)
        self._set(**self.entry.fixed)
        self._check_variant()
        if not self.has_xi and self.alpha_rule != "same":
            raise ValueError(
                f'alpha_rule must be "same" for the method {self.name}, got "{self.alpha_rule}": '
                "calibration is of optimal pairs, mixed linearly as inputs"
            )
        self._set(
            alpha=float(self.alpha),
            layers=(self.layers or MANIFOLD_LAYERS) if self.entry.hidden else None,
        )

    def _check_variant(self) -> None:
        """Give every variant of the pairing one form, and refuse those that cannot be."""
        if self.labels is not None:
            if not isinstance(self.labels, (int, float)) or not math.isfinite(self.labels):
                raise ValueError(f"labels must be a finite number, got {self.labels!r}")
            self._set(labels=float(self.labels) or None)
        if self.match_on is not None:
            read = MatchOn.read(self.match_on)
            self._set(match_on=None if read is None else str(read))
        for name in VARIANTS:
            if getattr(self, name) is not None and name not in self.entry.variants:
                raise ValueError(
                    f"{name} is a setting of kmixup with k above 1, got the method {self.name}: "
                    "leave it out"
                )
        if self.memory is None:
            return
        check_whole("memory", self.memory, least=2 * self.k)
        if self.pairing == "reshuffle":
            raise ValueError('memory must go with pairing "loaders" or "batch", got "reshuffle"')

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def entry(self) -> MethodEntry:
        """What the registry says of the method."""
        return METHODS[self.name]

    @property
    def has_xi(self) -> bool:
        """Whether the strength xi is known: pairs that are optimal by their inputs alone."""
        return self.entry.has_xi and self.labels is None and self.match_on is None

    @property
    def label(self) -> str:
        """
        >>> Method("erm").label, Method("kmixup", 16, 0.5, "xi").label
        ('erm', 'kmixup k=16 alpha=0.5 at equal xi')
        """
        words = [self.name]
        words += [f"k={self.k}"] * self.entry.has_k
        words += [f"alpha={self.alpha:g}"] * self.entry.has_alpha
        words += ["at equal xi"] * (self.alpha_rule == "xi")
        words += ["by the root of the costs"] * (self.alpha_rule == "root")
        words += ["reshuffled"] * (self.pairing == "reshuffle")
        words += ["in the batch"] * (self.pairing == "batch" and not self.entry.hidden)
        words += [f"in {self.layers}"] * (self.layers not in (None, MANIFOLD_LAYERS))
        words += variant_words(self)
        return " ".join(words)

    @property
    def smallest(self) -> int:
        """The least number of samples in which a full block has its counterpart."""
        if self.memory is not None:
            return 2
        return 2 * self.k if self.pairing == "batch" else self.k


def variant_words(chosen: object) -> list[str]:
    """How `VARIANTS`, which a method or a table has as attributes, are called.

    >>> variant_words(Method(memory=512, labels=0.5, match_on="pca"))
    ['with memory=512', 'with labels=0.5', 'matched on pca:50']
    """
    values = {name: getattr(chosen, name) for name in VARIANTS}
    return [
        f"matched on {value}" if name == "match_on" else f"with {name}={value:g}"
        for name, value in values.items()
        if value is not None
    ]


@dataclass(frozen=True)
class Trial:
    """One run: data, network, method, protocol and seed.

    Trials that differ in their method alone have the same split, initial weights and order
    of the samples.

    Attributes:
        data: a name or path, as `kmixup.lab.data.load` takes it.
        model: a name or path, as `kmixup.lab.models.build` takes it.
        method: what is mixed.
        protocol: how the network is trained.
        seed: of all random streams.
        limit, samples, scaling, size, target, drop, task, resize: arguments of
            `kmixup.lab.data.load`; None for its defaults.
        shifts: tests beside that of the test part as it is: names of `SHIFTS`, each with
            its levels, as `shifts_from` makes them.
        validation: the share of the training samples to test on in the place of the test
            part, drawn by the seed, to choose among methods.
        split: a seed for the division into training and test part, and for the points of a
            toy, that many trials share. By default it is the trial's own, and then samples
            that one seed tests on are samples that another trains on.
        class_weights: "balanced" weighs the loss of a class by the inverse of its frequency in
            the training part; by default all samples weigh alike.
        clean_statistics: also test the network with the statistics of its batch norm computed
            afresh on clean training samples, and leave it so.
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
    shifts: Shifts = ()
    validation: float | None = None
    split: int | None = None
    drop: tuple[str, ...] | None = None
    task: str | None = None
    resize: tuple[int, int] | None = None
    class_weights: ClassWeights | None = None
    samples: int | None = None
    clean_statistics: bool | None = None

    def __post_init__(self) -> None:
        for name in ("drop", "resize"):  # lists where they come from JSON; none is the default
            object.__setattr__(self, name, tuple(getattr(self, name) or ()) or None)
        object.__setattr__(self, "shifts", shifts_from(dict(self.shifts)))
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise ValueError(f"seed must be a whole number, 0 or more, got {self.seed!r}")
        if self.split is not None:
            check_whole("split", self.split, least=0)
        object.__setattr__(self, "clean_statistics", self.clean_statistics or None)
        if self.validation is not None and not 0 < self.validation < 1:
            raise ValueError(
                f"validation must be a share between 0 and 1, e.g. 0.2, got {self.validation}"
            )
        if self.class_weights is not None:
            check_choice("class_weights", self.class_weights, CLASS_WEIGHTS)
        if self.method.smallest > self.protocol.batch_size:
            twice = "twice k" if self.method.pairing == "batch" else "k"
            raise ValueError(
                f"batch_size must be at least {twice} = {self.method.smallest} with pairing "
                f'"{self.method.pairing}", got {self.protocol.batch_size}: '
                "lower k or raise batch_size"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON."""
        plain: dict[str, Any] = {}
        # `asdict` would copy every value deeply, which takes most of the time of reading rows
        for key, value in vars(self).items():
            # every shift has a key of its own, as it had before there was a list of them
            plain |= (
                {name: list(self.levels(name)) for name in SHIFTS}
                if key == "shifts"
                else {key: value}
            )
        plain["method"] = dict(vars(self.method))
        plain["protocol"] = vars(self.protocol) | {"milestones": list(self.protocol.milestones)}
        for name in ("drop", "resize"):
            plain[name] = None if plain[name] is None else list(plain[name])
        return plain

    def levels(self, shift: str) -> tuple[float, ...]:
        """The levels at which the network is tested under a shift."""
        return dict(self.shifts).get(shift, ())

    @property
    def id(self) -> str:
        """A stable name of the trial: a hash of its settings.

        A setting that is None or empty does not count. So a setting that is added to the lab
        later leaves the ids of older trials as they are.

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
        shifts = {name: levels for name, levels in plain.items() if name in SHIFTS}
        rest = {key: value for key, value in plain.items() if key not in SHIFTS}
        values = known_settings(cls, rest) | {"shifts": shifts_from(shifts)}
        if "method" in values:
            values["method"] = Method(**known_settings(Method, values["method"], "method."))
        if "protocol" in values:
            values["protocol"] = Protocol(
                **known_settings(Protocol, values["protocol"], "protocol.")
            )
        if missing := {"data", "model"} - values.keys():
            raise ValueError(f"a trial must have {' and '.join(sorted(missing))}")
        return cls(**values)


def shifts_from(given: Mapping[str, Iterable[float]]) -> Shifts:
    """Shifts in the order of the registry, without those that have no level.

    >>> shifts_from({"fgsm": [8], "noise": [16, 8]})
    (('noise', (8.0, 16.0)), ('fgsm', (8.0,)))
    """
    for name in given:
        check_choice("shifts", name, SHIFTS)
    levels = {name: tuple(sorted(set(map(float, given.get(name, ()))))) for name in SHIFTS}
    for name, values in levels.items():
        if not all(0 <= level < math.inf for level in values):
            raise ValueError(
                f"{name} must be finite numbers of 255ths, 0 or more, got {list(values)}"
            )
    return tuple((name, values) for name, values in levels.items() if values)


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
