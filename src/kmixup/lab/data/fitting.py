"""Fitting a `Preparation` to the training rows of a table."""

from __future__ import annotations

import re
from dataclasses import replace
from shlex import quote

import torch
from torch import Tensor

from kmixup.lab.data.columns import UNKNOWN, Column
from kmixup.lab.data.dataset import Parts
from kmixup.lab.data.preparation import Feature, Preparation

CATEGORIES = 100  # the most frequent ones of a column, which get an input each
SOME = 10  # training rows below which different values tell nothing of ids
ID_WORDS = frozenset({"id", "ids", "uuid", "guid", "key", "index", "idx", "no", "nr", "number"})


def prepare(parts: Parts) -> tuple[Parts, Preparation]:
    """Both parts of a table as inputs, by what is fitted to the training part alone."""
    preparation = Preparation(
        tuple(fit_feature(column, parts.x_train[:, i]) for i, column in enumerate(parts.table))
    )
    if not preparation.names:
        raise ValueError(
            "the table must have a column to learn from, all are empty or of different texts"
        )
    raw_train, raw_test = (
        _recode(x, parts.table, preparation) for x in (parts.x_train, parts.x_test)
    )
    remarks = {
        name: f"{count:,} test rows have another category"
        for name, count in preparation.unseen(raw_test).items()
    }
    preparation = preparation.with_remarks(remarks)
    inputs = replace(
        parts,
        x_train=preparation.encode(raw_train),
        x_test=preparation.encode(raw_test),
        columns=preparation.names,
    )
    return inputs, preparation


def fit_feature(column: Column, raw: Tensor) -> Feature:
    """What a column becomes, by its numbers `(n,)` in the training rows."""
    values = raw[~raw.isnan()]
    blanks = len(raw) - len(values)
    if not len(values):
        return Feature(column, used=False, remarks=("it has no value in the training rows",))
    if column.kind == "category":
        return _fit_category(column, values, blanks)
    remarks = []
    if column.kind == "boolean":
        fill = float(values.mean() > 0.5)
        filling = f"taken for {'yes' if fill else 'no'}"
    else:
        fill = float(values.median())
        filling = "given the median"
    if blanks:
        remarks.append(f"{blanks:,} blanks, {filling}")
    if len(values.unique()) == 1 and not blanks:
        remarks.append(f"constant: --drop {quote(column.name)} leaves it out")
    elif column.kind == "number" and looks_like_id(column.name, values):
        remarks.append(f"looks like an id: --drop {quote(column.name)} leaves it out")
    return Feature(column, fill, indicator=blanks > 0, remarks=tuple(remarks))


def looks_like_id(name: str, values: Tensor) -> bool:
    """Whether whole numbers are all different, and fill their range or are called ids.

    >>> looks_like_id("row", torch.arange(100.0)), looks_like_id("age", torch.arange(100.0) % 60)
    (True, False)
    """
    if len(values) < SOME or not torch.equal(values, values.round()):
        return False
    if len(values.unique()) < len(values):
        return False
    words = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
    return bool(ID_WORDS.intersection(words)) or float(values.max() - values.min()) < 2 * len(
        values
    )


def _fit_category(column: Column, values: Tensor, blanks: int) -> Feature:
    counts = values.long().bincount(minlength=len(column.categories))
    occurring = int((counts > 0).sum())
    if occurring == len(values) >= SOME:
        remark = f"its {occurring:,} texts are all different: they tell nothing of other rows"
        return Feature(replace(column, categories=()), used=False, remarks=(remark,))
    order = counts.argsort(descending=True, stable=True)[: min(occurring, CATEGORIES)]
    names = tuple(sorted(column.categories[i] for i in order.tolist()))
    commonest = column.categories[int(order[0])]
    remarks = []
    if occurring > CATEGORIES:
        remarks.append(f"the {CATEGORIES} most frequent of {occurring:,}, others are 0 everywhere")
    if blanks:
        remarks.append(f"{blanks:,} blanks, taken for {commonest!r}, the most frequent")
    elif occurring == 1:
        remarks.append(f"constant: --drop {quote(column.name)} leaves it out")
    fitted = replace(column, categories=names)
    fill = float(names.index(commonest))
    return Feature(fitted, fill, indicator=blanks > 0, remarks=tuple(remarks))


def _recode(raw: Tensor, columns: tuple[Column, ...], preparation: Preparation) -> Tensor:
    """Numbers in which a category is a place among those of the training rows."""
    recoded = raw
    for i, (column, feature) in enumerate(zip(columns, preparation.features, strict=True)):
        if column.kind == "category":
            if recoded is raw:
                recoded = raw.clone()
            place = {text: float(j) for j, text in enumerate(feature.column.categories)}
            places = torch.tensor([place.get(text, UNKNOWN) for text in column.categories])
            filled = ~raw[:, i].isnan()
            recoded[filled, i] = places[raw[filled, i].long()]
    return recoded
