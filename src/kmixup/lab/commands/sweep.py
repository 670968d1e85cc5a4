"""`kmixup sweep` and `kmixup repair`: your own grid, and its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kmixup.lab.commands.execution import ExecutionOptions, finish, outcome_of, preview, report
from kmixup.lab.commands.options import Flag, Out, import_from_here
from kmixup.lab.experiments import rows
from kmixup.lab.experiments.driver import earlier_versions
from kmixup.lab.experiments.engines import Execution
from kmixup.lab.experiments.grid import named_in, read_config
from kmixup.lab.formatting import count


def sweep(
    config: Path,
    *,
    out: Out = None,
    dry_run: Flag = False,
    so_far: Flag = False,
    draw: Annotated[bool, Parameter(name="--report", show_default=False)] = True,
    execution: ExecutionOptions = Execution(),
) -> int:
    """Train your own grid, with one row for every trial.

    A grid is a TOML file. Lists are swept, everything else is one value:

    ```
    data = "table.csv"                   # options of kmixup train
    target = "species"
    method = ["erm", "mixup", "kmixup"]
    k = [4, 16]
    trials = 20
    [protocol]                           # and its training options
    epochs = 100
    batch_size = [32, 128]
    ```

    ```
    # number of trials and expected time
    kmixup sweep grid.toml --dry-run
    # train; the same command resumes after any interruption
    kmixup sweep grid.toml --out results/grid
    # on a Ray cluster, four trials per GPU
    kmixup sweep grid.toml --engine ray --address auto --num-gpus 0.25
    ```

    Args:
        config: The grid, a TOML file.
        dry_run: Print the number of trials and the expected time, and train nothing.
        so_far: Train nothing, report on the finished trials.
        draw: Print tables, and write a page next to the rows.
    """
    if not config.is_file():
        raise ValueError(f"there is no grid {str(config)!r}: name a TOML file")
    import_from_here(*named_in(config))
    trials = read_config(config)
    if dry_run:
        preview(count(len(trials), "trial"), trials, execution)
        return 0
    folder = out or Path("out") / config.stem
    outcome = outcome_of(trials, folder, execution, so_far=so_far)
    page = None
    if draw:
        name = f"The sweep {config.stem}"
        edited = [row for _, row in earlier_versions(trials, rows.read(folder))]
        shown = [*outcome.rows, *edited]
        page = report(shown, None, folder, name=name, quiet=execution.quiet)
    return finish(outcome, folder, page)


def repair(folder: Path) -> None:
    """Check every row of a sweep, and move damaged lines to rows.damaged.

    Trains nothing. The command that made the rows then trains what is missing.

    ```
    kmixup repair out/grid
    ```

    Args:
        folder: Folder of the rows, as in `--out`.
    """
    print(rows.repair(folder) or "no damaged lines")
    print(f"{count(len(rows.read(folder)), 'trial')} in {folder}")
