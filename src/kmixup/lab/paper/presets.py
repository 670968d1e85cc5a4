"""The paper's tables from `tables.toml`, and the experiments of `kmixup reproduce`, by name."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import Any

from kmixup._checks import SettingError
from kmixup.lab.data import ENTRIES
from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.methods import METHODS
from kmixup.lab.paper.tables import (
    BEST_CELLS,
    ERROR,
    Claim,
    ErrorColumn,
    ErrorTable,
    Summary,
)
from kmixup.lab.trial import CLEAN, AlphaRule, Protocol, Trial, shifts_from

Entry = dict[str, Any]  # settings of a table or a preset, as in the file
DATA: Entry = tomllib.loads(files("kmixup.lab.paper").joinpath("tables.toml").read_text("utf-8"))
NUMBERS = ("errors", "erm", "confidence")
BOTH: tuple[AlphaRule, ...] = ("same", "xi")
SMALL = ("mnist-1000", "mnist-5000", "cifar10-5000")  # experiments with small training sets


def _entries() -> dict[str, Entry]:
    """Settings of every table, with `like`, `printed` and `for_each` resolved."""
    entries: dict[str, Entry] = {}
    for name, given in DATA["tables"].items():
        base = entries[given["like"]] if "like" in given else {}
        entry = {**base, **given}
        if "protocol" in entry:
            entry["protocol"] = base.get("protocol", {}) | given.get("protocol", {})
        if not entry.pop("printed", True):
            entry = {key: value for key, value in entry.items() if key not in NUMBERS}
        entry.pop("like", None)
        for suffix, title, settings in _expanded(entry.pop("for_each", None), entry):
            full_title = ", ".join(filter(None, (entry["title"], title)))
            full_name = "-".join(filter(None, (name, suffix)))
            entries[full_name] = {**entry, **settings, "title": full_title}
    return entries


def _expanded(for_each: str | None, entry: Entry) -> Iterator[tuple[str, str, Entry]]:
    """Yield a suffix of the name, a suffix of the title, and the settings of each table."""
    if for_each is None:
        yield "", "", {}
    elif for_each == "measure":
        yield "", "", {"measure": ERROR}
        for shift, levels in entry["shifts"].items():
            for eps in levels:
                title = f"under {SHIFTS[shift].title} of {eps:g}/255"
                yield f"{shift}-{eps:g}", title, {"measure": shift, "eps": [eps]}
    elif for_each == "method":  # all that have a k and can be trained on the data set's classes
        images = ENTRIES[entry["data"]].kind == "image"
        for name, method in METHODS.items():
            if (
                method.has_k
                and method.needs_numbers is None
                and (images or not method.needs_images)
            ):
                # a method without an alpha is trained once, and shown in the first column
                alphas = entry["alphas"] if method.has_alpha else entry["alphas"][:1]
                layers = method.layers
                yield name, method.title, {"method": name, "alphas": alphas, "layers": layers}
    else:  # "variant"
        for variant in DATA["variants"]:
            settings = {key: variant[key] for key in variant if key not in ("name", "title")}
            yield variant["name"], variant["title"], settings


def _tables() -> dict[str, ErrorTable]:
    entries = _entries()
    tested: dict[tuple[str, str], dict[str, list[float]]] = {}
    for entry in entries.values():
        if "eps" in entry and "shifts" not in entry:
            levels = tested.setdefault((entry["data"], entry["model"]), {})
            levels.setdefault(entry["measure"], []).extend(entry["eps"])
    tables = {}
    for name, entry in entries.items():
        settings = {"label": "not in the paper", **dict.fromkeys(NUMBERS), **entry}
        alphas, sizes = settings.pop("alphas"), settings.pop("eps", [None])
        xis = settings.pop("xis", [None] * len(alphas))
        settings["columns"] = tuple(
            ErrorColumn(alpha, xi, eps)
            for alpha, xi in zip(alphas, xis, strict=True)
            for eps in sizes
        )
        if settings["errors"] is not None:
            settings["errors"] = tuple(map(tuple, settings["errors"]))
        if "protocol" in settings:
            settings["protocol"] = Protocol(**settings["protocol"])
        levels = entry.get("shifts") or tested.get((entry["data"], entry["model"]), {})
        settings |= {
            "name": name,
            "ks": tuple(settings["ks"]),
            "notes": tuple(settings.get("notes", ())),
            "shifts": shifts_from(levels),
        }
        tables[name] = ErrorTable(**settings)
    return tables


TABLES = _tables()


@dataclass(frozen=True)
class Quick:
    """The smallest version of a preset that still shows something."""

    trials: int = 4  # networks of each cell; a verdict needs 4
    epochs: int = 2
    k: tuple[int, ...] = (1, 16)
    alpha: tuple[float, ...] | None = None  # None for all of the table's
    limit: int | None = None  # samples of each part, None for all of them


@dataclass(frozen=True)
class Preset:
    """An experiment, ready to run."""

    name: str  # in `kmixup reproduce`
    tables: tuple[ErrorTable, ...]  # to re-run
    claim: str  # what the paper claims about its tables, in a sentence
    comparison: Claim = BEST_CELLS  # the claim in a form that a grid of errors can test
    rules: tuple[AlphaRule, ...] = BOTH  # readings of alpha at k > 1 that are run
    quick: Quick = Quick()
    # lines of the paper's Table 1 that sum up the tables; empty for all other experiments
    summaries: tuple[Summary, ...] = ()

    @property
    def printed(self) -> bool:
        """Whether the paper has numbers to compare with."""
        return any(table.errors is not None for table in self.tables)

    def trials(
        self,
        *,
        trials: int | None = None,
        epochs: int | None = None,
        k: Sequence[int] | None = None,
        alpha: Sequence[float] | None = None,
        alpha_rule: Sequence[AlphaRule] | None = None,
        limit: int | None = None,
        quick: bool = False,
    ) -> list[Trial]:
        """Return every trial of the cells and of ERM once.

        What is None is as in each table, or with `quick` as in the smallest version; `limit` uses
        only the first samples of each part. The paper has no numbers for other k and alpha.
        """
        if alpha_rule is not None and not set(alpha_rule) & set(self.rules):
            known = " or ".join(self.rules)
            raise SettingError(
                "alpha_rule", f"must be {known} for {self.name}, got {alpha_rule[0]}: leave it out"
            )
        given = {"trials": trials, "epochs": epochs, "k": k, "alpha": alpha, "limit": limit}
        changes = {name: value for name, value in given.items() if value is not None}
        if quick:
            changes = {n: v for n, v in vars(self.quick).items() if v is not None} | changes
        with_clean = {(t.data, t.model) for t in self.tables if t.measure == CLEAN}
        chosen: list[Trial] = []
        for table in self.tables:
            clean = (table.data, table.model) in with_clean or None
            chosen += self._of_table(table, alpha_rule, clean_statistics=clean, **changes)
        return list(dict.fromkeys(chosen))

    def _of_table(
        self,
        table: ErrorTable,
        alpha_rule: Sequence[AlphaRule] | None,
        *,
        clean_statistics: bool | None,
        **changes: Any,
    ) -> list[Trial]:
        """Return the trials of a table; `changes` are arguments of `trials`."""
        # imported here because it imports all training code, which reports don't need
        from kmixup.lab.experiments.grid import expand

        has_xi = METHODS[table.method].has_xi and not table.labels and not table.match_on
        rules = self.rules if has_xi else ("same",)
        if alpha_rule is not None:
            rules = tuple(rule for rule in alpha_rule if rule in rules) or ("same",)
        protocol = {} if table.protocol is None else dict(vars(table.protocol))
        if "epochs" in changes:
            protocol["epochs"] = changes["epochs"]
        ks, limit = tuple(changes.get("k", table.ks)), changes.get("limit")
        common: dict[str, Any] = {
            "data": table.data,
            "model": table.model,
            "alpha": tuple(changes.get("alpha", table.alphas)),
            "layers": table.layers,
            "trials": changes.get("trials", table.trials),
            "pairing": table.pairing,
            "limit": limit,
            "samples": table.samples if limit is None else None,
            "scaling": table.scaling,
            "clean_statistics": clean_statistics,
            "protocol": protocol,
            **dict(table.shifts),
        }
        baselines = ("erm", table.baseline) if 1 in ks else ("erm",)
        chosen = expand(method=baselines, k=(1,), alpha_rule=("same",), **common)
        if several := tuple(k for k in ks if k != 1):
            chosen += expand(
                method=(table.method,), k=several, alpha_rule=rules, **table.variant, **common
            )
        return chosen


def _preset(name: str, entry: Entry) -> Preset:
    names = [
        table for pattern in entry["tables"] for table in TABLES if fnmatchcase(table, pattern)
    ]
    quick: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in entry.get("quick", {}).items()
    }
    summaries = (
        Summary(TABLES[table], **line | {"notes": tuple(line.get("notes", ()))})
        for table, line in entry.get("summaries", {}).items()
    )
    return Preset(
        name,
        tuple(TABLES[table] for table in dict.fromkeys(names)),
        entry["claim"],
        Claim(**entry.get("comparison", {})),
        tuple(entry.get("rules", BOTH)),
        Quick(**quick),
        tuple(summaries),
    )


PRESETS = {name: _preset(name, entry) for name, entry in DATA["presets"].items()}


def preset_of(table: ErrorTable) -> Preset:
    """Return the experiment that re-runs a table, not a summary of it.

    >>> preset_of(TABLES["cifar10-wide-resnet"]).name
    'cifar10-large'
    """
    return next(
        preset for preset in PRESETS.values() if table in preset.tables and not preset.summaries
    )


def small_experiments() -> dict[str, Trial]:
    """Return one trial of ERM for each experiment with a small training set, without shifts."""
    return {name: replace(PRESETS[name].trials(trials=1)[0], shifts=()) for name in SMALL}
