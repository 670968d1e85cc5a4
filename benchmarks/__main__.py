"""Measure everything, or some of it: `python -m benchmarks [section ...]`.

All peers of a table are measured in one run, in turns. A ratio is the median of the
ratios within a turn, a time the best of all turns; read the ratios, not the times.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import torch
from threadpoolctl import threadpool_limits

from benchmarks.beyond import labels, memory, prefetch
from benchmarks.calls import calls, growth
from benchmarks.integrations import integrations
from benchmarks.kinds import kinds
from benchmarks.lab import fleets
from benchmarks.matching import dimensions, matching, mixing
from benchmarks.methods import methods
from benchmarks.peers import peers
from benchmarks.puzzle import puzzle
from benchmarks.sinkhorn import sinkhorn_times
from benchmarks.tables import table
from benchmarks.training import training
from kmixup import Beta
from kmixup.calibration import alpha_for
from kmixup.lab.formatting import stopwatch
from kmixup.lab.timing import interleaved
from tests.oracles import literal_search


def calibration(seconds: float) -> None:
    """The search for alpha, given the distances, at 10⁶ draws for the literal algorithm."""
    rows = []
    for alpha in (0.2, 1.0):
        target = Beta(alpha).mean_square_step
        timed = interleaved(
            {
                "kmixup": partial(alpha_for, target, 0.7, alpha, 1e3),
                "literal": partial(literal_search, 1.0, 0.7, alpha),
            },
            seconds=seconds,
            least=2,
        )
        ratio = timed.ratio("literal", "kmixup")
        rows.append([str(alpha), stopwatch(timed.best("kmixup")), f"{ratio:.0f} x"])
    table(
        "Finding alpha where matched partners are at 0.7 of the mean squared distance",
        ["alpha at k = 1", "kmixup", "literal Algorithm 1, 10⁶ draws, c = 1.01"],
        rows,
    )


def imports(seconds: float) -> None:
    """What `import kmixup` adds to `import torch`; each in a process of its own."""
    code = "import time, torch; start = time.perf_counter(); {}; print(time.perf_counter() - start)"
    added = {"import kmixup": math.inf, "import scipy.special": math.inf}
    for _ in range(5):
        for name in added:
            done = subprocess.run(
                [sys.executable, "-c", code.format(name)],
                capture_output=True,
                text=True,
                check=True,
            )
            added[name] = min(added[name], float(done.stdout))
    rows = [[name, stopwatch(time)] for name, time in added.items()]
    table("Import time on top of `import torch`", ["statement", "adds"], rows)


SECTIONS: dict[str, Callable[[float], None]] = {
    "peers": peers,
    "kinds": kinds,
    "calls": calls,
    "growth": growth,
    "matching": matching,
    "dimensions": dimensions,
    "mixing": mixing,
    "methods": methods,
    "puzzle": puzzle,
    "integrations": integrations,
    "training": training,
    "sinkhorn": sinkhorn_times,
    "memory": memory,
    "labels": labels,
    "prefetch": prefetch,
    "fleets": fleets,
    "calibration": calibration,
    "imports": imports,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"any of {[*SECTIONS]}")
    parser.add_argument("--seconds", type=float, default=5.0, help="to spend on each table row")
    parser.add_argument("--threads", type=int, default=1, help="of torch and of BLAS")
    arguments = parser.parse_args()
    if unknown := set(arguments.sections) - set(SECTIONS):
        parser.error(f"sections must be among {[*SECTIONS]}, got {sorted(unknown)}")
    torch.manual_seed(0)
    # on more than one, the thread pools of torch and of NumPy disturb each other's turns
    torch.set_num_threads(arguments.threads)
    threadpool_limits(arguments.threads)
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} of {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, {platform.machine()}"
    )
    for name in arguments.sections or SECTIONS:
        SECTIONS[name](arguments.seconds)


if __name__ == "__main__":
    main()
