"""`kmixup repair`: check the rows of a sweep, and move damaged ones away."""

from __future__ import annotations

from pathlib import Path

from kmixup.lab.experiments import rows
from kmixup.lab.formatting import count


def repair(folder: Path) -> None:
    """Check every row of a sweep, and move damaged lines to rows.damaged beside them.

    Trains nothing. The command that made the rows then trains what is missing.

    ```
    kmixup repair out/grid
    ```

    Args:
        folder: Folder of the rows, as in `--out`.
    """
    print(rows.repair(folder) or "no line is damaged")
    print(f"{count(len(rows.read(folder)), 'trial')} in {folder}")
