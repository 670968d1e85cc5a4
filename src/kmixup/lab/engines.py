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
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

from kmixup.lab.store import Row
from kmixup.lab.unit import Unit, failed, run

SPAWN = multiprocessing.get_context("spawn")
Rows = Generator[list[Row], None, None]

GRACE = 10.0  # seconds for a process that has let go of its connection to end
SUBMITTED = 100  # tasks that Ray is given ahead of their turn


class Engine(Protocol):
    """Runs units, and gives the rows of each as it ends."""

    @property
    def workers(self) -> int: ...

    def rows(self, units: Sequence[Unit], *, device: str, running: Path) -> Rows: ...


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Local:
    """A pool of processes on this machine, by default one for each core."""

    workers: int = field(default_factory=cores)
    attempts: int = 3

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError(f"workers must be at least 1, got {self.workers}")

    def rows(self, units: Sequence[Unit], *, device: str, running: Path) -> Rows:
        waiting = deque((unit, 1) for unit in units)
        pool: list[_Worker] = []
        try:
            while waiting or pool:
                while waiting and len(pool) < self.workers:
                    pool.append(_Worker(device, running))
                    pool[-1].give(*waiting.popleft())
                for worker in _heard_from(pool):
                    rows = worker.take()
                    if rows is None:
                        pool.remove(worker)
                        reason = f"process died with exit code {worker.fate()}"
                        if worker.attempt < self.attempts:
                            waiting.appendleft((worker.unit, worker.attempt + 1))
                            continue
                        rows = _lost(worker.unit, reason, worker.attempt)
                    elif not rows:
                        continue
                    elif waiting:
                        worker.give(*waiting.popleft())
                    else:
                        pool.remove(worker)
                        worker.stop()
                    yield rows
        finally:
            for worker in pool:
                worker.stop()


class _Worker:
    """A process that runs one unit after another."""

    unit: Unit
    attempt: int

    def __init__(self, device: str, running: Path) -> None:
        self.connection, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=_serve, args=(theirs, device, running), daemon=True)
        self.started = False
        # Ctrl-C is the driver's to answer: a worker is born deaf to it
        resource_tracker.ensure_running()  # its own start would lift the mask
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()  # so that the end of the process is the end of the connection

    def give(self, unit: Unit, attempt: int) -> None:
        self.unit, self.attempt = unit, attempt
        with suppress(OSError):  # of one that is dead already, which `take` finds out
            self.connection.send(unit)

    def take(self) -> list[Row] | None:
        """The rows of its unit; none from one that has just started; None if it died."""
        try:
            rows: list[Row] = self.connection.recv()
        except (EOFError, OSError):
            return None
        self.started = True
        return rows

    def fate(self) -> int | None:
        """The exit code of one that died; of one that never lived, the likely reason."""
        self.process.join(GRACE)  # a kill would hide its own exit code
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


def _heard_from(pool: Sequence[_Worker]) -> list[_Worker]:
    """Wait for workers that have rows, or have died."""
    ready = wait([worker.connection for worker in pool])
    return [worker for worker in pool if worker.connection in ready]


def _serve(connection: Connection, device: str, running: Path) -> None:
    """Run units until there are no more, or nobody who asks for them."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        connection.send([])
        while True:
            connection.send(run(connection.recv(), device=device, running=running))


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

    def __post_init__(self) -> None:
        for name in ("num_cpus", "num_gpus"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 or more, got {getattr(self, name)}")

    @property
    def workers(self) -> int:
        """How many tasks the cluster can hold at once."""
        nodes = [node["Resources"] for node in _connected(self.address).nodes() if node["Alive"]]
        places = sum(map(self._places, nodes))
        if not places:
            raise ValueError(
                f"num_cpus={self.num_cpus:g} and num_gpus={self.num_gpus:g} must fit on a node of "
                f"the Ray cluster, none of {len(nodes)} has as many: ask for less"
            )
        return places

    def _places(self, node: dict[str, float]) -> int:
        wanted = {"CPU": self.num_cpus, "GPU": self.num_gpus}
        shares = [node.get(name, 0) / share for name, share in wanted.items() if share]
        return int(min(shares, default=node.get("CPU", 0)))

    def rows(self, units: Sequence[Unit], *, device: str, running: Path) -> Rows:
        ray = _connected(self.address)
        task = ray.remote(num_cpus=self.num_cpus, num_gpus=self.num_gpus, max_retries=self.retries)(
            _remote
        )
        # all at once would make every wait as long as the whole sweep
        window = max(SUBMITTED, 2 * self.workers)
        waiting = deque(units)
        pending: dict[Any, Unit] = {}
        try:
            while waiting or pending:
                while waiting and len(pending) < window:
                    unit = waiting.popleft()
                    pending[task.remote(unit, device, running.absolute(), Path.cwd())] = unit
                (reference, *_), _ = ray.wait(list(pending))
                yield self._taken(ray, reference, pending.pop(reference))
        finally:
            for reference in pending:
                ray.cancel(reference, force=True)

    def _taken(self, ray: Any, reference: Any, unit: Unit) -> list[Row]:
        try:
            rows: list[Row] = ray.get(reference)
        except ray.exceptions.RayTaskError as error:  # raised outside of any trial
            return [failed(trial, error.cause) for trial in unit]
        except ray.exceptions.RayError as error:
            reason = str(error).strip().partition("\n")[0]
            return _lost(unit, f"task was lost ({reason})", self.retries + 1)
        return rows


def _remote(unit: Unit, device: str, running: Path, folder: Path) -> list[Row]:
    if folder.is_dir():  # data and models of one's own are found as beside the driver
        os.chdir(folder)
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
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
