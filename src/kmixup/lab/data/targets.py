"""Decide what is learnt: classes, or a number (regression)."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from kmixup.lab.checks import SettingError

Task = Literal["classes", "regression"]
TASKS: tuple[str, ...] = get_args(Task)

# Whole numbers are classes unless they are many, in number and among the rows.
MANY, MANY_SHARE = 50, 0.05
FEW = 10  # so few distinct values may be meant otherwise than they are taken


class Decision(NamedTuple):
    """The task of a target, and a note for the user where it may be another."""

    task: Task
    note: str | None = None


def check_task(task: str | None) -> None:
    """Raise on an unknown task."""
    if task is not None and task not in TASKS:
        raise SettingError("task", f"must be one of {', '.join(TASKS)}, got {task!r}")


def decide(
    values: NDArray[np.float64] | None, *, distinct: int, rows: int, task: Task | None, name: str
) -> Decision:
    """Classes or regression, of a target called `name` with `distinct` values in `rows` rows.

    `values` are the distinct values as numbers, None where some are none; `task` is what the user
    says.

    >>> decide(np.array([0.5, 1.25]), distinct=2, rows=100, task=None, name="y").task
    'regression'
    >>> decide(np.array([0.0, 1.0]), distinct=2, rows=100, task=None, name="y").task
    'classes'
    """
    check_task(task)
    if distinct == 1:
        raise ValueError(
            f"the target {name!r} must have two different values or more, all {rows:,} rows have "
            "the same: there is nothing to learn, name another target"
        )
    if task == "regression" and values is None:
        raise SettingError(
            "task",
            f"must be classes for the target {name!r}, got regression: its values are no numbers",
        )
    if task is not None:
        return Decision(task)
    if values is None:
        if distinct > MANY and 2 * distinct > rows:
            raise ValueError(
                f"the target {name!r} must have fewer classes, has {distinct:,} different values "
                f"in {rows:,} rows: name another column (--target), or insist on --task classes"
            )
        return Decision("classes")
    whole = bool((values == np.rint(values)).all())
    many = distinct > MANY and distinct > MANY_SHARE * rows
    task, other = ("classes", "regression") if whole and not many else ("regression", "classes")
    note = (
        f"the target {name!r} has {distinct:,} distinct numbers and is taken for {task}: "
        f"--task {other} takes it for {other}"
    )
    is_clear = distinct <= FEW if whole else distinct > FEW
    return Decision(task, None if is_clear else note)
