"""Engines run the units of a sweep: in local processes, or on a Ray cluster.

An engine turns units into rows, in any order. It never writes them: the driver does. When a
worker is lost, by a signal or for want of memory, its unit is tried again; a unit that loses
its worker too often gives failed rows.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from kmixup.lab.experiments.rows import Row
from kmixup.lab.experiments.units import Unit, failed, run
from kmixup.lab.formatting import ending
from kmixup.lab.train import precision

SPAWN = multiprocessing.get_context("spawn")
Rows = Generator[list[Row], None, None]

KILLED = 9  # the signal by which a system that is out of memory ends a process
GRACE = 10.0  # seconds for a process that has closed its connection to end
SUBMITTED = 100  # tasks that Ray is given ahead of their turn
REACH = 5.0  # seconds for a Ray cluster to answer
POLL = 1.0  # seconds between two looks at Ray's tasks, in which Ctrl-C may not be heard
LEAVE_OUT = "leave the address out"
CLIENT_PORT = 10001  # of a ray:// address that names none


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


@dataclass(frozen=True)
class Ray:
    """A Ray cluster, with one task for each unit.

    Attributes:
        address: "auto", "host:port" or "ray://host:port" of a running cluster; None starts a
            cluster on this machine.
        num_cpus: cores that a task reserves, whole or in part.
        num_gpus: GPUs that a task reserves, whole or in part.
        retries: how often a task is given to another node when its own is lost.
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

    def kept(self) -> AbstractContextManager[Ray]:
        return nullcontext(self)  # the processes of a cluster are its own to keep

    def rows(self, units: Sequence[Unit], *, device: str, running: Path) -> Rows:
        ray = _connected(self.address)
        task = ray.remote(num_cpus=self.num_cpus, num_gpus=self.num_gpus, max_retries=self.retries)(
            _remote
        )
        # with all tasks submitted at once, every wait would take as long as the whole sweep
        window = max(SUBMITTED, 2 * self.workers)
        waiting = deque(units)
        pending: dict[Any, Unit] = {}
        try:
            while waiting or pending:
                while waiting and len(pending) < window:
                    unit = waiting.popleft()
                    pending[task.remote(unit, device, running.absolute(), Path.cwd())] = unit
                ended, _ = ray.wait(list(pending), timeout=POLL)
                for reference in ended:
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
            memory = isinstance(error, ray.exceptions.OutOfMemoryError)
            return lost(unit, f"task was lost ({reason})", self.retries + 1, memory=memory)
        return rows


def _remote(unit: Unit, device: str, running: Path, folder: Path) -> list[Row]:
    if folder.is_dir():  # the user's own data and models are found as beside the driver
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
        _check_reach(address)
        data = os.environ.get("KMIXUP_DATA")
        settings: dict[str, Any] = {} if address else {"include_dashboard": False}
        if data:
            settings["runtime_env"] = {"env_vars": {"KMIXUP_DATA": data}}
        try:
            ray.init(address, log_to_driver=False, logging_level=logging.WARNING, **settings)
        except ConnectionError as error:
            raise ValueError(_no_answer(address)) from error
    return ray


def _check_reach(address: str | None) -> None:
    """Refuse an address where nobody listens: Ray itself would try for a quarter of an hour."""
    remedy = LEAVE_OUT
    if address in (None, "auto"):
        address, remedy = _noted_address()
    if address is None or address == "local":
        return
    place = urlsplit(address if "://" in address else f"//{address}")
    if place.scheme not in ("", "ray"):
        return  # of a cluster manager, which Ray asks itself
    try:
        host, port = place.hostname, place.port or (CLIENT_PORT if place.scheme else None)
    except ValueError:  # the port is no number
        host = port = None
    if not host or port is None:
        raise ValueError(
            f'address must be "auto", "host:port" or "ray://host:port" of a Ray cluster, '
            f"got {address!r}"
        )
    try:
        socket.create_connection((host, port), timeout=REACH).close()
    except OSError as error:
        raise ValueError(_no_answer(address, remedy)) from error


def _noted_address() -> tuple[str | None, str]:
    """Where Ray looks for a cluster without an address, and how to keep Ray from looking there."""
    if address := os.environ.get("RAY_ADDRESS"):
        return address, "unset RAY_ADDRESS"
    note = Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir(), "ray", "ray_current_cluster")
    return (note.read_text().strip() or None) if note.is_file() else None, f"delete {note}"


def _no_answer(address: str | None, remedy: str = LEAVE_OUT) -> str:
    return (
        f"address must be that of a running Ray cluster, {address} does not answer: "
        f"start one with `ray start --head`, or {remedy}"
    )
