"""Who does the work of a sweep: processes of this machine, or a Ray cluster.

An engine turns units into rows, in any order, and never writes them: that is the driver's
part. A worker that is lost, by a signal or for want of memory, costs another attempt of the
unit that it had; one that is lost too often gives rows that say so.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

from kmixup.lab.store import Row
from kmixup.lab.unit import Unit, failed, run

SPAWN = multiprocessing.get_context("spawn")


class Engine(Protocol):
    """Runs units, and gives the rows of each as it ends."""

    @property
    def workers(self) -> int: ...

    def rows(self, units: Sequence[Unit], *, device: str, running: Path) -> Iterator[list[Row]]: ...


@dataclass(frozen=True)
class Local:
    """A pool of processes on this machine, by default one for each core."""

    workers: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    attempts: int = 3

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError(f"workers must be at least 1, got {self.workers}")

    def rows(self, units: Sequence[Unit], *, device: str, running: Path) -> Iterator[list[Row]]:
        waiting = deque((unit, 1) for unit in units)
        pool = [_Worker(device, running) for _ in range(min(self.workers, len(units)))]
        try:
            for worker in pool:
                worker.give(*waiting.popleft())
            while busy := [worker for worker in pool if worker.unit]:
                ended = wait([worker.connection for worker in busy])
                for worker in [worker for worker in busy if worker.connection in ended]:
                    unit, attempt, rows = worker.unit, worker.attempt, worker.take()
                    if rows is None:
                        code = worker.stop()
                        pool.remove(worker)
                        worker = _Worker(device, running)
                        pool.append(worker)
                        if attempt < self.attempts:
                            waiting.appendleft((unit, attempt + 1))
                        else:
                            rows = _lost(unit, f"process died with exit code {code}", attempt)
                    if waiting:
                        worker.give(*waiting.popleft())
                    if rows is not None:
                        yield rows
        finally:
            for worker in pool:
                worker.stop()


class _Worker:
    """A process that runs one unit after another."""

    def __init__(self, device: str, running: Path) -> None:
        self.connection, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=_serve, args=(theirs, device, running), daemon=True)
        self.process.start()
        theirs.close()  # so that the end of the process is the end of the connection
        self.unit: Unit = ()
        self.attempt = 0

    def give(self, unit: Unit, attempt: int) -> None:
        self.unit, self.attempt = unit, attempt
        with suppress(OSError):  # of one that is dead already, which `take` finds out
            self.connection.send(unit)

    def take(self) -> list[Row] | None:
        """The rows of its unit, or None from one that died."""
        self.unit = ()
        try:
            rows: list[Row] = self.connection.recv()
        except (EOFError, OSError):
            return None
        return rows

    def stop(self) -> int | None:
        self.connection.close()
        self.process.kill()
        self.process.join()
        return self.process.exitcode


def _serve(connection: Connection, device: str, running: Path) -> None:
    """Run units until there are no more, or nobody who asks for them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to answer
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            unit = connection.recv()
        except EOFError:
            return
        connection.send(run(unit, device=device, running=running))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


@dataclass(frozen=True)
class Ray:
    """A Ray cluster: the one at `address`, or one that is started on this machine.

    Every unit is a task that reserves `num_cpus` and `num_gpus` (shares of one are fine), and
    is given to another node up to `retries` times when its own is lost.
    """

    address: str | None = None
    num_cpus: float = 1
    num_gpus: float = 0
    retries: int = 3

    @property
    def workers(self) -> int:
        ray = _connected(self.address)
        total = ray.cluster_resources()
        shares = [total.get("CPU", 0) / self.num_cpus] if self.num_cpus else []
        shares += [total.get("GPU", 0) / self.num_gpus] if self.num_gpus else []
        return max(1, int(min(shares, default=1)))

    def rows(self, units: Sequence[Unit], *, device: str, running: Path) -> Iterator[list[Row]]:
        ray = _connected(self.address)
        work = ray.remote(num_cpus=self.num_cpus, num_gpus=self.num_gpus, max_retries=self.retries)(
            _remote
        )
        pending = {
            work.remote(unit, device, running.absolute(), os.getcwd()): unit for unit in units
        }
        try:
            while pending:
                (reference, *_), _ = ray.wait(list(pending))
                unit = pending.pop(reference)
                try:
                    yield ray.get(reference)
                except ray.exceptions.RayError as error:
                    reason = str(error).strip().partition("\n")[0]
                    yield _lost(unit, f"task was lost ({reason})", self.retries + 1)
        finally:
            for reference in pending:
                ray.cancel(reference, force=True)


def _remote(unit: Unit, device: str, running: Path, folder: str) -> list[Row]:
    sys.path.insert(0, folder)  # for models of one's own, as beside the driver
    return run(unit, device=device, running=running)


def _connected(address: str | None) -> Any:
    """The module ray, connected to its cluster."""
    try:
        import ray
    except ImportError as error:
        raise ValueError(
            'the engine ray needs Ray, which is not installed: pip install "kmixup[ray]"'
        ) from error
    if not ray.is_initialized():
        data = os.environ.get("KMIXUP_DATA")
        settings: dict[str, Any] = {} if address else {"include_dashboard": False}
        if data:
            settings["runtime_env"] = {"env_vars": {"KMIXUP_DATA": data}}
        try:
            ray.init(address, log_to_driver=False, logging_level=logging.WARNING, **settings)
        except ConnectionError as error:
            raise ValueError(
                f"address must be that of a running Ray cluster, {address} does not answer: "
                "start one with `ray start --head`, or leave the address out"
            ) from error
    return ray


def _lost(unit: Unit, reason: str, attempts: int) -> list[Row]:
    sentence = (
        f"the worker's {reason} in each of {attempts} attempts, perhaps for want of memory: "
        "try fewer workers"
    )
    return [failed(trial, sentence) for trial in unit]
