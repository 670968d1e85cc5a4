"""Run a function in several processes (ranks) and return the result through a file.

Fabric sends the result of rank 0 to the parent through a pipe, which the parent reads only when
all ranks have ended. A pipe holds 64 KiB, so a larger result would deadlock.
"""

from __future__ import annotations

import logging
import multiprocessing
import pickle
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

from kmixup.lab.formatting import ending

if TYPE_CHECKING:
    from lightning_fabric import Fabric

KILLED = -9


def launch(fabric: Fabric, function: Callable[[Fabric], Any]) -> Any:
    """Run `function` in every rank of `fabric`, and return what it returns in rank 0.

    If a rank fails, the others are killed. Its error is raised here, or a ChildProcessError that
    says how the rank died.
    """
    # torch logs every rank that it ends
    logging.getLogger("torch.multiprocessing.spawn").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="kmixup-") as name, _no_child_left():
        folder = Path(name)
        try:
            fabric.launch(partial(_into_file, folder, function))
        except ProcessExitedException as death:
            killed = ", perhaps for want of memory: try smaller batches"
            raise ChildProcessError(
                f"process {death.error_index + 1} of {fabric.world_size} "
                f"{ending(death.exit_code)}, and the run with it"
                f"{killed if death.exit_code == KILLED else ''}"
                "; what was saved is safe: resume with --resume"
            ) from None
        except ProcessRaisedException as death:
            raise _error(folder, death) from None
        return pickle.loads((folder / "result").read_bytes())


def _into_file(folder: Path, function: Callable[[Fabric], Any], fabric: Fabric) -> None:
    """Run in a rank: write rank 0's result, or any rank's error, into a file."""
    rank = fabric.global_rank
    try:
        result = function(fabric)
    except Exception as error:
        error.add_note(traceback.format_exc())  # a traceback itself cannot be sent
        with suppress(Exception):  # an error that cannot be sent is described by its text
            (folder / str(rank)).write_bytes(pickle.dumps(error))
        raise
    if rank == 0:
        (folder / "result").write_bytes(pickle.dumps(result))


def _error(folder: Path, death: ProcessRaisedException) -> Exception:
    """Return the error that ended a rank."""
    with suppress(Exception):  # its class may need more arguments than it was sent with
        error = pickle.loads((folder / str(death.error_index)).read_bytes())
        if isinstance(error, Exception):
            return error
    return RuntimeError(f"process {death.error_index} of the run failed: {death.msg.strip()}")


@contextmanager
def _no_child_left() -> Iterator[None]:
    """Kill the ranks that are left when the run is given up, e.g. by Ctrl-C."""
    before = set(multiprocessing.active_children())
    try:
        yield
    finally:
        for child in set(multiprocessing.active_children()) - before:
            child.kill()
            child.join()
