"""Tables as people have them, written by a seed: for tests of the whole way from file to model."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np

CITIES = ("Aachen", "Bern", "Cádiz", "Dover")


def write_csv(
    path: Path,
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    delimiter: str = ",",
    encoding: str = "utf-8",
) -> Path:
    with path.open("w", newline="", encoding=encoding) as stream:
        csv.writer(stream, delimiter=delimiter).writerows([header, *rows])
    return path


def mixed(path: Path, rows: int = 300, *, seed: int = 0, **how: str) -> Path:
    """Customers who leave or stay: ids, categories, dates, booleans, blanks and a constant.

    `churn` depends on the age, the city and the day of the contract, so that it can be learnt.
    """
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(rows):
        age, city = int(rng.integers(18, 80)), str(rng.choice(CITIES, p=[0.4, 0.3, 0.2, 0.1]))
        since = date(2015, 1, 1) + timedelta(days=int(rng.integers(0, 3000)))
        income = round(float(rng.lognormal(10, 0.4)), 2)
        score = (age - 45) / 15 + (city == "Bern") - (since.year > 2019) + rng.normal(0, 0.5)
        lines.append([
            f"C{100000 + 7 * i}", i + 1, "" if rng.random() < 0.1 else age,
            "" if rng.random() < 0.15 else city, since.isoformat(), income,
            ("yes", "no")[int(rng.integers(2))], "EUR", "leaves" if score > 0 else "stays",
        ])  # fmt: skip
    header = ["customer", "row", "age", "city", "since", "income", "mail", "currency", "churn"]
    return write_csv(path, header, lines, **how)


def imbalanced(path: Path, rows: int = 1420, *, seed: int = 0) -> Path:
    """Machines that fail, one in 71: what always says "fine" errs in 1.4 % of all rows."""
    rng = np.random.default_rng(seed)
    fails = np.arange(rows) % 71 == 0
    x = rng.normal(size=(rows, 5)) + 1.5 * fails[:, None] * np.array([1, 1, 1, 0, 0])
    order = rng.permutation(rows)
    lines = [[*np.round(x[i], 4), ("fine", "fails")[int(fails[i])]] for i in order]
    return write_csv(path, ["heat", "noise", "current", "load", "hour", "state"], lines)


def wide(path: Path, rows: int = 48, columns: int = 400, *, seed: int = 0) -> Path:
    """Gene expressions of few patients: 400 numbers for each of 48, ten of which tell."""
    rng = np.random.default_rng(seed)
    kind = np.arange(rows) % 3
    x = rng.normal(size=(rows, columns))
    x[:, :10] += 1.5 * (kind[:, None] - 1)
    lines = [[f"p{i:02d}", *np.round(x[i], 3), "ABC"[kind[i]]] for i in rng.permutation(rows)]
    return write_csv(path, ["patient", *(f"g{i}" for i in range(columns)), "subtype"], lines)


def regression(path: Path, rows: int = 240, *, seed: int = 0) -> Path:
    """Flats and their rent in a file of a German office: semicolons, decimal commas, DD.MM.YYYY."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(rows):
        area, rooms = float(rng.uniform(20, 140)), int(rng.integers(1, 6))
        district = str(rng.choice(["Altstadt", "Süd", "West"]))
        built = date(1950, 1, 1) + timedelta(days=int(rng.integers(0, 25000)))
        rent = 8.5 * area + 40 * rooms + 120 * (district == "Altstadt") + rng.normal(0, 40)
        balcony = ("ja", "nein")[int(rng.integers(2))]
        lines.append([
            f"{area:.1f}".replace(".", ","), "" if rng.random() < 0.05 else rooms, district,
            built.strftime("%d.%m.%Y"), balcony, f"{rent:.2f}".replace(".", ","),
        ])  # fmt: skip
    header = ["area", "rooms", "district", "built", "balcony", "rent"]
    return write_csv(path, header, lines, delimiter=";", encoding="cp1252")


GOOD, BAD = ("great", "solid", "quick", "lovely"), ("broken", "late", "dull", "cracked")
PLAIN = ("the", "box", "came", "with", "it", "and", "we", "used", "this", "for", "a", "while")


def comments(path: Path, rows: int = 450, *, seed: int = 0) -> Path:
    """Orders with a comment of some words, which tell whether they are returned or kept."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(rows):
        returned = bool(rng.random() < 0.35)
        words = [str(word) for word in rng.choice(PLAIN, int(rng.integers(5, 12)))]
        for place in rng.integers(0, len(words), 2):
            words[place] = str(rng.choice(BAD if returned ^ (rng.random() < 0.15) else GOOD))
        price = round(float(rng.lognormal(3, 0.5)), 2)
        shop = str(rng.choice(["north", "south", "web"]))
        state = "returned" if returned else "kept"
        lines.append([f"O{5000 + 3 * i}", " ".join(words), price, shop, state])
    return write_csv(path, ["order", "comment", "price", "shop", "state"], lines)


def towns(path: Path, rows: int = 900, *, seed: int = 0) -> Path:
    """Flats in 90 towns, each with a level of prices: whether the rent is high."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=90)
    lines = []
    for _ in range(rows):
        town = int(rng.integers(90))
        area, floor = float(rng.uniform(20, 140)), int(rng.integers(0, 9))
        score = 1.5 * level[town] + (area - 80) / 40 + rng.normal(0, 0.5)
        lines.append([f"town {town:02d}", f"{area:.1f}", floor, "high" if score > 0 else "low"])
    return write_csv(path, ["town", "area", "floor", "rent"], lines)


def twenty(path: Path, rows: int = 20, *, seed: int = 0) -> Path:
    """Twenty measurements of two kinds."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 4)) + 1.2 * (np.arange(rows) % 2)[:, None]
    lines = [[*np.round(x[i], 3), "ab"[i % 2]] for i in rng.permutation(rows)]
    return write_csv(path, ["width", "height", "depth", "mass", "kind"], lines)
