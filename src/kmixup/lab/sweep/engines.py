"""Engines run the units of a sweep; this one in processes of this machine.

An engine turns units into rows, in any order. It never writes them: the driver does. When a
worker is lost, by a signal or for want of memory, its unit is tried again; a unit that loses
its worker too often gives rows that say so.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Protocol

from kmixup.lab.formatting import ending
from kmixup.lab.sweep.rows import Row
from kmixup.lab.sweep.units import Unit, failed, run
from kmixup.lab.train import precision

SPAWN = multiprocessing.get_context("spawn")
Rows = Generator[list[Row], None, None]

KILLED = 9  # the signal by which a system that is out of memory ends a process
GRACE = 10.0  # seconds for a process that has let go of its connection to end


class Engine(Protocol):
    """Runs units, and yields the rows of each as it ends; no rows say that a worker has started."""

    @property
    def workers(self) -> int:
        """How many units are run at once."""
        ...

    def rows(self, units: Sequence[Unit], *, device: str, running: Path) -> Rows:
        """The rows of each unit; `running` is the folder of checkpoints."""
        ...

    def kept(self) -> AbstractContextManager[Engine]:
        """This engine for several sweeps, one after another: its workers stay for the next."""
        ...


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Local:
    """A pool of processes on this machine.

    Attributes:
        workers: number of processes, by default one for each core.
        attempts: how often a unit is tried when its process dies.
        resting: processes that wait for the next sweep; None where they end with each.
    """

    workers: int = field(default_factory=cores)
    attempts: int = 3
    resting: list[_Worker] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError(f"workers must be at least 1, got {self.workers}")

    @contextmanager
    def kept(self) -> Iterator[Local]:
        resting: list[_Worker] = []
        try:
            yield replace(self, resting=resting)
        finally:
            for worker in resting:
                worker.stop()

    def rows(self, units: Sequence[Unit], *, device: str, running: Path) -> Rows:
        for unit in units:
            for trial in unit:
                precision.prepare(trial.protocol.precision, device)
        waiting = deque((unit, 1) for unit in units)
        pool: list[_Worker] = []
        try:
            while waiting or pool:
                while waiting and len(pool) < self.workers:
                    pool.append(self.resting.pop() if self.resting else _Worker())
                    pool[-1].give(*waiting.popleft(), device, running)
                    if pool[-1].started:
                        yield []
                for worker in _heard_from(pool):
                    rows = worker.take()
                    if rows is None:
                        pool.remove(worker)
                        code = worker.exit_code()
                        if worker.attempt < self.attempts:
                            waiting.appendleft((worker.unit, worker.attempt + 1))
                            continue
                        killed = code == -KILLED
                        rows = lost(
                            worker.unit, f"process {ending(code)}", worker.attempt, memory=killed
                        )
                    elif not rows:
                        pass  # the worker has just started
                    elif waiting:
                        worker.give(*waiting.popleft(), device, running)
                    else:
                        pool.remove(worker)
                        self._dismiss(worker)
                    yield rows
        finally:
            for worker in pool:
                worker.stop()

    def _dismiss(self, worker: _Worker) -> None:
        """Let a worker rest, or stop it where workers end with each sweep."""
        if self.resting is None:
            worker.stop()
        else:
            self.resting.append(worker)


class _Worker:
    """A process that runs one unit after another."""

    unit: Unit
    attempt: int

    def __init__(self) -> None:
        self.connection, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=_serve, args=(theirs,), daemon=True)
        self.started = False
        with _without_interrupts():
            self.process.start()
        theirs.close()  # so that the end of the process is the end of the connection

    def give(self, unit: Unit, attempt: int, device: str, running: Path) -> None:
        self.unit, self.attempt = unit, attempt
        with suppress(OSError):  # the worker is dead already, and `take` will find that out
            self.connection.send((unit, device, running))

    def take(self) -> list[Row] | None:
        """The rows of the unit; an empty list if the worker has just started; None if it died."""
        try:
            rows: list[Row] = self.connection.recv()
        except (EOFError, OSError):
            return None
        self.started = True
        return rows

    def exit_code(self) -> int | None:
        """The exit code of a worker that died; raises if the worker could not even start."""
        self.process.join(GRACE)  # a kill would hide the exit code
        self.stop()
        code = self.process.exitcode
        if not self.started and code is not None and code > 0:
            raise ChildProcessError(
                f"a worker process could not start, it ended with exit code {code}: a script "
                'that sweeps must do so under `if __name__ == "__main__":`'
            )
        return code

    def stop(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes that are started here ignore Ctrl-C, which is the driver's to answer."""
    if not hasattr(signal, "pthread_sigmask"):  # on Windows `_serve` ignores it, a little later
        yield
        return
    resource_tracker.ensure_running()  # its own start would lift the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _heard_from(pool: Sequence[_Worker]) -> list[_Worker]:
    """Wait until some workers have sent rows or died, and return these workers."""
    ready = wait([worker.connection for worker in pool])
    return [worker for worker in pool if worker.connection in ready]


def _serve(connection: Connection) -> None:
    """Run units until there are no more, or until the driver is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        connection.send([])
        while True:
            unit, device, running = connection.recv()
            connection.send(run(unit, device=device, running=running))


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def lost(unit: Unit, reason: str, attempts: int, *, memory: bool) -> list[Row]:
    """Rows of a unit whose workers were lost; `memory`: perhaps killed for want of memory."""
    remedy = (
        "perhaps for want of memory: try fewer workers"
        if memory
        else "not by an error of Python: run such a trial alone to see more"
    )
    return [
        failed(trial, f"the worker's {reason} in each of {attempts} attempts, {remedy}")
        for trial in unit
    ]
