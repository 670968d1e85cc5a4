"""`kmixup sweep`: a grid of the user's own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from kmixup.lab.commands.options import (
    DryRun,
    Out,
    SoFar,
    grouped,
)
from kmixup.lab.commands.running import How, carry_out, ended_so_far, finish, preview, report
from kmixup.lab.experiments.grid import read_config
from kmixup.lab.train.methods import METHODS

OTHERS = ", ".join(name for name in METHODS if name not in ("erm", "mixup", "kmixup"))

HELP = f"""Train a grid of your own, and write down every trial.

\b
A grid is a TOML file; lists are swept, all else is one value:
  data = ["iris", "table.csv"]        # names, .npz, .csv or folders
  method = ["erm", "mixup", "kmixup"] # {OTHERS}
  k = [4, 16]
  alpha = [0.1, 1.0]
  alpha_rule = ["same", "xi"]
  trials = 20
  target = "species"                  # of a .csv; else target, label, class, y or the last
  [protocol]                          # what differs from the paper's
  epochs = 100
  batch_size = [32, 128]

\b
Other pairs of kmixup:
  memory = 512                        # fills up blocks, so that k may exceed the batch
  labels = [-0.5, 0.5]                # cost of a pair of different classes
  match_on = ["pixels", "pca", "ema"] # see kmixup train --help

\b
Further keys, for your own .csv:
  drop = ["id"]                       # columns to leave out
  task = "regression"                 # or classes; by default as the target's values tell
  class_weights = "balanced"          # rare classes weigh as much as frequent ones

\b
What would be run, and for how long:
  kmixup sweep grid.toml --dry-run
Run it, and go on with it after any interruption:
  kmixup sweep grid.toml --out results/grid
The report of what has ended, while the rest is running or after Ctrl-C:
  kmixup sweep grid.toml --out results/grid --so-far
On a Ray cluster, four trials to a GPU:
  kmixup sweep grid.toml --engine ray --address auto --num-gpus 0.25
"""


@grouped
def sweep(
    config: Annotated[
        Path, typer.Argument(help="The grid, a TOML file.", exists=True, dir_okay=False)
    ],
    out: Out = None,
    dry_run: DryRun = False,
    so_far: SoFar = False,
    draw: Annotated[
        bool, typer.Option("--report/--no-report", help="Tables here, and a page beside the rows.")
    ] = True,
    *,
    how: How,
) -> None:
    sys.path.insert(0, os.getcwd())  # for models of one's own
    trials = read_config(config)
    if dry_run:
        preview(trials, how)
        return
    folder = out or Path("out") / config.stem
    outcome = ended_so_far(trials, folder) if so_far else carry_out(trials, folder, how)
    page = None
    if draw:
        name = f"The sweep {config.stem}"
        page = report(outcome.rows, None, folder, name=name, quiet=how.quiet)
    finish(outcome, folder, page)
