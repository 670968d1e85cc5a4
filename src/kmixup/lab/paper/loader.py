"""Read `tables.toml`: the tables by name."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from kmixup.lab.data import ENTRIES
from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.models import MANIFOLD_LAYERS
from kmixup.lab.paper.tables import ERROR, PaperColumn, PaperTable
from kmixup.lab.train.config import Protocol, Shifts, shifts_from
from kmixup.lab.train.methods import METHODS

Entry = dict[str, Any]  # settings of a table, as in the file
DATA: Entry = tomllib.loads(files("kmixup.lab.paper").joinpath("tables.toml").read_text("utf-8"))

NUMBERS = ("errors", "erm", "confidence")


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
        expand = EXPANSIONS[entry.pop("for_each", None)]
        for suffix, title, settings in expand(entry):
            full_title = ", ".join(filter(None, (entry["title"], title)))
            full_name = "-".join(filter(None, (name, suffix)))
            entries[full_name] = {**entry, **settings, "title": full_title}
    return entries


# Each expansion yields a suffix of the name, a suffix of the title, and the settings to change.
Expanded = Iterator[tuple[str, str, Entry]]


def _one(entry: Entry) -> Expanded:
    yield "", "", {}


def _each_measure(entry: Entry) -> Expanded:
    yield "", "", {"measure": ERROR}
    for shift, levels in entry["shifts"].items():
        for eps in levels:
            title = f"under {SHIFTS[shift].title} of {eps:g}/255"
            yield f"{shift}-{eps:g}", title, {"measure": shift, "eps": [eps]}


def _each_method(entry: Entry) -> Expanded:
    """All methods that have a k and can be trained on the data set's classes."""
    images = ENTRIES[entry["data"]].kind == "image"
    for name, method in METHODS.items():
        if method.has_k and method.needs_numbers is None and (images or not method.needs_images):
            # a method without an alpha is trained once, and shown in the first column
            alphas = entry["alphas"] if method.has_alpha else entry["alphas"][:1]
            layers = MANIFOLD_LAYERS if method.hidden else None
            yield name, method.title, {"method": name, "alphas": alphas, "layers": layers}


def _each_variant(entry: Entry) -> Expanded:
    for variant in DATA["variants"]:
        settings = {key: variant[key] for key in variant if key not in ("name", "title")}
        yield variant["name"], variant["title"], settings


EXPANSIONS = {
    None: _one,
    "measure": _each_measure,
    "method": _each_method,
    "variant": _each_variant,
}


def _table(name: str, entry: Entry, shifts: Shifts) -> PaperTable:
    settings = {"label": "not in the paper", **dict.fromkeys(NUMBERS), **entry}
    alphas, sizes = settings.pop("alphas"), settings.pop("eps", [None])
    xis = settings.pop("xis", [None] * len(alphas))
    if settings["errors"] is not None:
        settings["errors"] = tuple(map(tuple, settings["errors"]))
    if "protocol" in settings:
        settings["protocol"] = Protocol(**settings["protocol"])
    return PaperTable(
        **settings
        | {
            "name": name,
            "ks": tuple(settings["ks"]),
            "columns": tuple(
                PaperColumn(alpha, xi, eps)
                for alpha, xi in zip(alphas, xis, strict=True)
                for eps in sizes
            ),
            "notes": tuple(settings.get("notes", ())),
            "shifts": shifts,
        }
    )


def _load() -> dict[str, PaperTable]:
    entries = _entries()
    tested: dict[tuple[str, str], dict[str, list[float]]] = {}
    for entry in entries.values():
        if "eps" in entry and "shifts" not in entry:
            levels = tested.setdefault((entry["data"], entry["model"]), {})
            levels.setdefault(entry["measure"], []).extend(entry["eps"])
    tables = {}
    for name, entry in entries.items():
        levels = entry.get("shifts") or tested.get((entry["data"], entry["model"]), {})
        tables[name] = _table(name, entry, shifts_from(levels))
    return tables


TABLES = _load()
