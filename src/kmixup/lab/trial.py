"""Trials: a method, a protocol, data, a network and a seed, as frozen dataclasses.

Two runs with equal trials are the same run: a trial has everything that a result depends on,
except the machine. The command line, the TOML of a sweep, the Python API and the record in a row
are generated from these classes; what a user gave is a dict, applied with `dataclasses.replace`.
Defaults are the paper's (section 5), except alpha.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, cast

import numpy as np

from kmixup._checks import SettingError, check_choice, check_fraction, check_number, check_whole
from kmixup.coefficient import Beta
from kmixup.lab.checks import check_choices, known_settings
from kmixup.lab.data import Scaling, Task
from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.evaluate.tasks import ClassWeights
from kmixup.lab.imports import is_import_path, source_digest
from kmixup.lab.methods import (
    MANIFOLD_LAYERS,
    VARIANTS,
    MatchOn,
    MethodEntry,
    import_method,
    method_entry,
)

AlphaRule = Literal["same", "xi"]
PairedWith = Literal["loaders", "batch", "reshuffle"]
MatchMetric = Literal["euclidean"]
Precision = Literal["fp32", "bf16"]
Layout = Literal["channels_last"]
Schedule = Literal["step", "cosine"]
CleanPass = Literal["matched"]
Shifts = tuple[tuple[str, tuple[float, ...]], ...]  # names of SHIFTS, each with its levels
# names of scores in records and rows, in addition to those under SHIFTS
CLEAN = "clean"  # with clean batch-norm statistics
TEST, SCALED = "test", "scaled"  # on the test set next to validation scores, and scaled
TRAINING = "training"  # how well the network fits the training data


def _set(settings: object, **values: object) -> None:
    """Set fields of a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(settings, name, value)


def _check(settings: object) -> None:
    """Turn NumPy numbers and arrays into numbers and lists of Python; check choices of words."""
    for name, value in vars(settings).items():
        if isinstance(value, (np.generic, np.ndarray)):
            _set(settings, **{name: value.tolist()})
    check_choices(settings)


def _require(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise SettingError(name, f"must {rule}, got {value!r}")


def _below_one(name: str, value: object) -> float:
    return check_number(name, value, "in [0, 1)", lambda number: 0 <= number < 1)


@dataclass(frozen=True)
class Protocol:
    """How a network is trained, whatever the method.

    >>> [Protocol(epochs=4).rate_at(epoch) for epoch in range(4)]
    [0.1, 0.1, 0.01, 0.001]
    >>> [Protocol(epochs=4, warmup=0.5, milestones=()).rate_at(epoch) for epoch in range(4)]
    [0.05, 0.1, 0.1, 0.1]

    Attributes:
        epochs: Number of epochs. LR milestones scale with it.
        rate: Initial learning rate, divided by 10 at each milestone.
        milestones: Fractions of the epochs at which the learning rate drops: 0.5 and 0.75. The
            cosine schedule has none.
        momentum: Momentum of SGD.
        weight_decay: Weight decay of SGD.
        batch_size: Samples per step.
        augment: Random crops (after padding by 4) and random flips of images.
        precision: "bf16" trains in mixed precision.
        warmup: Fraction of the epochs, or number of steps if it is 1 or more, in which the learning
            rate rises linearly to its initial value.
        test_every: Epochs between tests, each with a checkpoint. The last epoch is always tested.
        layout: "channels_last" is faster for images on most CPUs. Results round differently.
        drop_last: Drop the last, incomplete batch of an epoch.
        clean_pass: "matched" runs each batch through the network unmixed before its step where
            k > 1, in training mode, as the paper's public script does. It updates batch-norm
            statistics only.
        schedule: "step" divides the learning rate by 10 at each milestone, "cosine" lowers it to
            0 along half a cosine, at every step.
        nesterov: Nesterov momentum.
        label_smoothing: Weight of the uniform distribution over the classes in every target.
    """

    epochs: int = 200
    rate: float = 0.1
    milestones: tuple[float, ...] = (0.5, 0.75)
    momentum: float = 0.9
    weight_decay: float = 1e-4
    batch_size: int = 128
    augment: bool = False
    precision: Precision = "fp32"
    # None is the default of options that came later: ids leave it out, so that ids stay stable
    warmup: float | None = None
    test_every: int | None = None
    layout: Layout | None = None
    drop_last: bool | None = None
    clean_pass: CleanPass | None = None
    schedule: Schedule | None = None
    nesterov: bool | None = None
    label_smoothing: float | None = None

    def __post_init__(self) -> None:
        _check(self)
        check_whole("epochs", self.epochs)
        check_whole("batch_size", self.batch_size, least=2)
        if self.test_every is not None:
            check_whole("test_every", self.test_every)
        _require(isinstance(self.augment, bool), "augment", self.augment, "be true or false")
        milestones, cosine = tuple(map(float, self.milestones)), self.schedule == "cosine"
        _require(
            list(milestones) == sorted(milestones) and all(0 < at < 1 for at in milestones),
            "milestones",
            self.milestones,
            "be rising fractions of the epochs between 0 and 1, e.g. (0.5, 0.75)",
        )
        rate = check_number(
            "rate", self.rate, "a finite number above 0", lambda number: 0 < number < math.inf
        )
        decay = check_number(
            "weight_decay", self.weight_decay, "a finite number, 0 or more",
            lambda number: 0 <= number < math.inf,
        )  # fmt: skip
        warmup = check_number(
            "warmup", self.warmup or 0,
            "a fraction of the epochs in [0, 1) or a whole number of steps",
            lambda number: 0 <= number < 1 or (number > 0 and number.is_integer()),
        )  # fmt: skip
        momentum = _below_one("momentum", self.momentum)
        _require(momentum > 0 or not self.nesterov, "momentum", momentum, "be above 0 for nesterov")
        smoothing = _below_one("label_smoothing", self.label_smoothing or 0)
        _set(  # equal settings have one form
            self,
            rate=rate,
            momentum=momentum,
            weight_decay=decay,
            milestones=() if cosine else milestones,
            schedule="cosine" if cosine else None,
            warmup=warmup or None,
            drop_last=self.drop_last or None,
            nesterov=self.nesterov or None,
            label_smoothing=smoothing or None,
        )

    def rate_at(self, step: int, steps: int = 1) -> float:
        """Return the learning rate of a step, counted from 0, with `steps` in an epoch.

        >>> protocol = Protocol(epochs=2, rate=1, schedule="cosine", warmup=2)
        >>> [round(protocol.rate_at(step, steps=3), 2) for step in range(6)]
        [0.5, 0.93, 0.75, 0.5, 0.25, 0.07]
        """
        epoch, rate = step // steps, self.rate
        if self.schedule == "cosine":
            rate *= (1 + math.cos(math.pi * step / (self.epochs * steps))) / 2
        # a third of the epochs may come out a rounding error above a whole number
        starts = (math.ceil(share * self.epochs - 1e-9) for share in self.milestones)
        rate /= 10.0 ** sum(epoch >= start for start in starts)
        if self.warmup is None:
            return rate
        if self.warmup >= 1:
            return rate * min(1.0, (step + 1) / self.warmup)
        return rate * min(1.0, (epoch + 1) / math.ceil(self.warmup * self.epochs - 1e-9))

    def tests(self, epoch: int) -> bool:
        """Return whether the network is tested after an epoch, counted from 0."""
        return epoch + 1 == self.epochs or (epoch + 1) % (self.test_every or 1) == 0


@dataclass(frozen=True)
class Method:
    """What training mixes: an entry of `METHODS` or your own mixer, and its settings.

    Fields that a method fixes are overwritten, so that equal methods compare equal:

    >>> Method("mixup", k=16).k
    1
    >>> Method("kmixup", k=1) == Method("mixup")
    True
    >>> Method("manifold").pairing, Method("manifold").layers
    ('batch', 'input+first-block')

    Attributes:
        name: Mixing method, an entry of `METHODS` or your own package.module:name.
        k: Samples in a block, by default 16. At k = 1 a method is as published, k > 1 adds optimal
            pairs.
        alpha: lam ~ Beta(alpha, alpha). 0 mixes nothing. By default 0.2 for mixup and kmixup, 1 for
            other methods.
        alpha_rule: "same" (the default) uses alpha as it is, "xi" the alpha that is as strong at k
            as alpha is at k = 1.
        pairing: Source of partners: a second, independently shuffled loader ("loaders", as in the
            paper and by default), the same "batch" without self-pairs, or a "reshuffle" of the same
            batch, as in the paper's public script.
        layers: Layers of manifold: input+first-block (the default), all-blocks, deep-blocks, or
            modules with commas between, e.g. input,encoder.0.
        memory: Number of samples of earlier batches that are kept to fill up blocks, so that k
            may exceed the batch size.
        labels: Cost of a pair of different classes, in mean distances. Negative favours such
            pairs.
        match_on: Features that samples are matched on: pixels, pca:50 (components), network:5 or
            ema:5 (features of the network or of its moving average, every 5 epochs).
        metric: "euclidean" makes the cost of a pair its distance, as in the paper's public script,
            and not the squared distance.
    """

    name: str = "kmixup"
    k: int = 16
    alpha: float = cast(float, None)  # by default that of the entry
    alpha_rule: AlphaRule = "same"
    pairing: PairedWith = "loaders"
    layers: str | None = None
    memory: int | None = None
    labels: float | None = None
    match_on: str | None = None
    metric: MatchMetric | None = None

    def __post_init__(self) -> None:
        entry = method_entry(self.name)
        _set(self, alpha=entry.alpha if self.alpha is None else self.alpha)
        _check(self)
        check_whole("k", self.k)
        Beta(self.alpha)  # raises on what is no alpha
        if self.k == 1 and entry.at_one is not None:
            _set(self, name=entry.at_one)
        _set(self, **self.entry.fixed)
        self._check_variant()
        calibrated = self.alpha_rule == "same" or self.has_xi
        _require(calibrated, "alpha_rule", self.alpha_rule, f'be "same" for the method {self.name}')
        layers = (self.layers or self.entry.layers) if self.entry.hidden else None
        _set(self, alpha=float(self.alpha), layers=layers)

    def _check_variant(self) -> None:
        """Normalise the settings of the pairing; raise where the method does not have them."""
        if self.labels is not None:
            _set(self, labels=check_number("labels", self.labels) or None)
        if self.match_on is not None:
            read = MatchOn.read(self.match_on)
            _set(self, match_on=None if read is None else str(read))
        if self.memory is not None:
            check_whole("memory", self.memory, least=2 * self.k)
            loaded = self.pairing != "reshuffle"
            _require(loaded, "pairing", self.pairing, 'be "loaders" or "batch" with a memory')
        given = [name for name in VARIANTS if getattr(self, name) is not None]
        if given and not self.entry.has_variants:
            raise SettingError(
                given[0], f"is a setting of kmixup, got the method {self.name}: leave it out"
            )

    @classmethod
    def given(cls, settings: Mapping[str, Any]) -> Method:
        """Return the method with the settings that a user gave; raise if it would ignore one.

        >>> Method.given({"name": "cutmix", "k": 4}).label
        'cutmix k=4 alpha=1'
        >>> Method.given({"name": "mixup", "k": 16})
        Traceback (most recent call last):
        kmixup._checks.SettingError: k has no effect with method mixup, got 16: drop it
        """
        method = cls(**settings)
        for name in ("layers", *method.entry.fixed):
            value = settings.get(name)
            if value not in (None, getattr(method, name)):
                raise SettingError(
                    name, f"has no effect with method {method.name}, got {value}: drop it"
                )
        return method

    @property
    def entry(self) -> MethodEntry:
        """The method's entry in the registry."""
        return method_entry(self.name)

    @property
    def has_xi(self) -> bool:
        """Whether the strength xi is known: pairs that are optimal by their inputs only."""
        return self.entry.has_xi and self.labels is None and self.match_on is None

    @property
    def label(self) -> str:
        """The method with its settings, for people.

        >>> Method("erm").label, Method("kmixup", 16, 0.5, "xi").label
        ('erm', 'kmixup k=16 alpha=0.5 at equal xi')
        """
        words = {
            self.name: True,
            f"k={self.k}": self.entry.has_k,
            f"alpha={self.alpha:g}": self.entry.has_alpha,
            "at equal xi": self.alpha_rule == "xi",
            "reshuffled": self.pairing == "reshuffle",
            "in the batch": self.pairing == "batch" and not self.entry.hidden,
            f"in {self.layers}": self.layers not in (None, MANIFOLD_LAYERS),
        }
        said = [word for word, applies in words.items() if applies]
        return " ".join(said + variant_words(self))

    @property
    def smallest(self) -> int:
        """The least number of samples that a full block needs."""
        if self.memory is not None:
            return 2
        return 2 * self.k if self.pairing == "batch" else self.k


def variant_words(chosen: object) -> list[str]:
    """Describe the settings of the pairing that a method or a table has as attributes.

    >>> variant_words(Method(memory=512, labels=0.5, match_on="pca"))
    ['with memory=512', 'with labels=0.5', 'matched on pca:50']
    """
    words = {"match_on": "matched on {}", "metric": "with metric={}"}
    values = {name: getattr(chosen, name) for name in VARIANTS}
    return [
        words.get(name, f"with {name}={{:g}}").format(value)
        for name, value in values.items()
        if value is not None
    ]


@dataclass(frozen=True, kw_only=True)
class TrialData:
    """How a trial reads and weights its data.

    Attributes:
        limit: Use only the first N samples of the training and test sets.
        scaling: Scaling of columns or pixels. By default the data set's, "standard" for your own.
        target: Column of a table to learn. By default target, label, class, y or the last.
        drop: Column of a table to leave out. May be repeated.
        task: Classification or regression. By default inferred from the target's values.
        resize: Stretch the images of a folder, e.g. to 64 48.
        test: Separate file with the test set.
        test_size: Fraction of your own samples to test on. By default a third.
        decimal: Decimal separator of a table. By default inferred from all columns together.
        thousands: Separator of thousands in a table. By default inferred likewise.
        dayfirst: Whether 03/04/2021 is in April. By default inferred from all dates together.
        missing: Further text that stands for a missing value, e.g. -999. May be repeated.
        schema: A schema.json to read a table by, e.g. an edited one of another run.
        samples: Draw N training samples at random; the test set is unchanged.
        label_noise: Fraction of the training labels to redraw at random, also those of validation
            samples. Test labels are unchanged.
        size: Number of points of a toy data set.
        class_weights: "balanced" weights the loss of a class by the inverse of its frequency in
            the training set.
    """

    limit: int | None = None
    scaling: Scaling | None = None
    target: str | None = None
    drop: tuple[str, ...] | None = None
    task: Task | None = None
    resize: tuple[int, int] | None = None
    test: str | None = None
    test_size: float | None = None
    decimal: str | None = None
    thousands: str | None = None
    dayfirst: bool | None = None
    missing: tuple[str, ...] | None = None
    schema: str | None = None
    samples: int | None = None
    label_noise: float | None = None
    size: int | None = None
    class_weights: ClassWeights | None = None

    def __post_init__(self) -> None:
        _check(self)
        for name in ("limit", "samples", "size"):
            if (value := getattr(self, name)) is not None:
                check_whole(name, value)
        noise = check_number(
            "label_noise", self.label_noise or 0, "in [0, 1]", lambda number: 0 <= number <= 1
        )
        _set(  # lists if they come from JSON; empty is the default
            self,
            drop=tuple(self.drop or ()) or None,
            resize=tuple(map(int, self.resize or ())) or None,
            missing=tuple(map(str, self.missing or ())) or None,
            label_noise=noise or None,
        )

    def data_options(self) -> dict[str, Any]:
        """Return the arguments of `kmixup.lab.data.load`, by name."""
        names = [field.name for field in fields(TrialData) if field.name != "class_weights"]
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Trial(TrialData):
    """One run: data, network, method, protocol and seed.

    Trials that differ in their method only have the same split, initial weights and sample order.

    Attributes:
        data: a name, a path or `package.module:name`, as `kmixup.lab.data.load` takes it.
        model: a name or `package.module:name`, as `kmixup.lab.models.build` takes it.
        method: what is mixed.
        protocol: how the network is trained.
        seed: of all random streams.
        shifts: tests under distribution shift: names of `SHIFTS`, each with its levels, as
            `shifts_from` makes them.
        validation: the fraction of the training samples to test on in place of the test set,
            drawn by the seed, to choose among methods.
        temperature: also fit a temperature to the validation samples, and score the test set
            as trained and with that temperature.
        split: a seed for the division into training and test set, and for the points of a
            toy, that many trials share. By default the trial's own, so that a sample may be a
            test sample of one seed and a training sample of another.
        clean_statistics: also test the network with batch-norm statistics recomputed on clean
            training samples, and keep them.
        digest: SHA-256 of your data's contents, so that an edited file gives another id; None
            for data with a name.
        code: SHA-256 of the source of your own data function, method and model, by these names,
            as `code_of` returns them. So edited code gives another id.
    """

    data: str
    model: str
    method: Method = Method()
    protocol: Protocol = Protocol()
    seed: int = 0
    shifts: Shifts = ()
    validation: float | None = None
    temperature: bool | None = None
    split: int | None = None
    clean_statistics: bool | None = None
    digest: str | None = None
    code: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("seed", self.seed, least=0)
        if self.split is not None:
            check_whole("split", self.split, least=0)
        shifts = shifts_from(dict(self.shifts))
        _set(self, shifts=shifts, clean_statistics=self.clean_statistics or None)
        _set(self, code=tuple(sorted(dict(self.code).items())))
        if self.validation is not None:
            _set(self, validation=check_fraction("validation", self.validation))
        fitted_on = self.validation is not None or not self.temperature
        _require(fitted_on, "validation", self.validation, "be given for a temperature, e.g. 0.2")
        _set(self, temperature=self.temperature or None)
        least, batch_size = self.method.smallest, self.protocol.batch_size
        rule = f'be at least {least} for k = {self.method.k} with pairing "{self.method.pairing}"'
        _require(batch_size >= least, "batch_size", batch_size, rule)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, fit for JSON."""
        plain: dict[str, Any] = {}
        # `asdict` would copy every value deeply, which takes most of the time of reading rows
        for key, value in vars(self).items():
            if key == "shifts":  # every shift has a key of its own
                plain |= {name: list(self.levels(name)) for name in SHIFTS}
            elif key == "code":
                plain |= {"code": dict(value)} if value else {}
            elif key != "digest" or value is not None:
                plain[key] = list(value) if isinstance(value, tuple) else value
        plain["method"] = dict(vars(self.method))
        plain["protocol"] = vars(self.protocol) | {"milestones": list(self.protocol.milestones)}
        return plain

    def levels(self, shift: str) -> tuple[float, ...]:
        """Return the levels at which the network is tested under a shift."""
        return dict(self.shifts).get(shift, ())

    def with_method(self, method: Method, **changes: Any) -> Trial:
        """Return the trial with another method, its code, and changes of other fields."""
        code = code_of(self.data, self.model, method.name)
        return replace(self, method=method, code=code, **changes)

    @property
    def unversioned(self) -> Trial:
        """The trial without its code, and the arrays of its data function."""
        digest = None if "data" in dict(self.code) else self.digest
        return replace(self, code=(), digest=digest) if self.code else self

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
        """Return the trial that `to_dict` wrote.

        >>> trial = Trial("iris", "mlp-iris")
        >>> Trial.from_dict(trial.to_dict()) == trial
        True
        """
        shifts = {name: levels for name, levels in plain.items() if name in SHIFTS}
        rest = {key: value for key, value in plain.items() if key not in SHIFTS}
        values = known_settings(cls, rest) | {"shifts": shifts_from(shifts)}
        values["code"] = tuple(dict(values.get("code", {})).items())
        for name, kind in (("method", Method), ("protocol", Protocol)):
            if name in values:
                values[name] = kind(**known_settings(kind, values[name], f"{name}."))
        if missing := {"data", "model"} - values.keys():
            raise ValueError(f"a trial must have {' and '.join(sorted(missing))}")
        return cls(**values)


def code_of(data: str, model: str, method: str) -> tuple[tuple[str, str], ...]:
    """Return the `code` of trials; raise if the network or the method does not exist."""
    from kmixup.lab.models import check_model  # reading results needs no networks

    check_model(model)
    own = {"data": data, "method": method, "model": model}
    if is_import_path(method):
        import_method(method)
    return tuple((part, source_digest(name)) for part, name in own.items() if is_import_path(name))


def what_changed(before: Trial, after: Trial) -> str:
    """Name the own code that differs between two versions of a trial."""
    names = {"data": after.data, "method": after.method.name, "model": after.model}
    old, new = dict(before.code), dict(after.code)
    changed = [
        f"the {part} {name!r}" for part, name in names.items() if old.get(part) != new.get(part)
    ]
    return " and ".join(changed) or f"what the data function {after.data!r} returns"


def shifts_from(given: Mapping[str, Iterable[float]]) -> Shifts:
    """Return shifts in the order of the registry, without those that have no level.

    >>> shifts_from({"fgsm": [8], "noise": [16, 8]})
    (('noise', (8.0, 16.0)), ('fgsm', (8.0,)))
    """
    for name in given:
        check_choice("shifts", name, SHIFTS)
    levels = {name: tuple(sorted(set(map(float, given.get(name, ()))))) for name in SHIFTS}
    for name, values in levels.items():
        finite = all(0 <= level < math.inf for level in values)
        _require(finite, name, list(values), "be finite numbers of 255ths, 0 or more")
    return tuple((name, values) for name, values in levels.items() if values)


def _chosen(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _chosen(value) if isinstance(value, Mapping) else value
        for key, value in plain.items()
        if value is not None and value != []
    }
