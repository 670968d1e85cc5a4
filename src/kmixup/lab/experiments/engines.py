"""Engines run the units of a sweep: in local processes, or on a Ray cluster.

An engine turns units into rows, in any order; the driver writes them. When a worker is lost (a
signal, out of memory, no response), its unit is tried again. A unit that loses its worker too
often gives failed rows.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, chdir, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

from kmixup._checks import SettingError, check_whole
from kmixup.lab.experiments.rows import Row
from kmixup.lab.experiments.units import Unit, failed, run
from kmixup.lab.formatting import duration, ending
from kmixup.lab.imports import import_callable, is_import_path, unknown_name
from kmixup.lab.train.setup import Device

SPAWN = multiprocessing.get_context("spawn")
Rows = Generator[list[Row], None, None]

GRACE = 10.0  # seconds for a process that has closed its connection to end
BEAT = 5.0  # seconds between two heartbeats of a worker, at most
IDLE = 0.01  # fraction of the time that a process which computes nothing may use
PATIENCE = 1800.0  # seconds: a worker may wait for shared data
SUBMITTED = 100  # tasks that Ray is given ahead of their turn
REACH = 5.0  # seconds for a Ray cluster to answer
POLL = 1.0  # seconds between polls of Ray's tasks; Ctrl-C may wait that long
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # "0" makes a cluster of one machine, on any system
CLIENT_PORT = 10001  # of a ray:// address that names none


@dataclass(frozen=True)
class Execution:
    """Where and how trials run, which does not change their results.

    Attributes:
        engine: Run trials in "local" processes, on a "ray" cluster, or with your own
            package.module:name.
        workers: Processes of the local engine. By default one per core.
        address: Address of a Ray cluster. By default one is started on this machine.
        num_cpus: CPU cores that a Ray task reserves.
        num_gpus: GPUs that a Ray task reserves, e.g. 0.25.
        device: Device of each worker. Batched ensembles of small networks always train on the CPU.
        accept_edited: Keep rows of your code from before it was edited, as another version.
        quiet: Show no progress.
    """

    engine: str = "local"
    workers: int | None = None
    address: str | None = None
    num_cpus: float = 1
    num_gpus: float = 0
    device: Device = "auto"
    accept_edited: bool = False
    quiet: bool = False

    def __post_init__(self) -> None:
        other = {"local": ("address", "num_cpus", "num_gpus"), "ray": ("workers",)}
        for name in other.get(self.engine, ()):
            if (value := getattr(self, name)) != getattr(Execution, name):
                raise SettingError(
                    name, f"is not an option of the {self.engine} engine, got {value}: leave it out"
                )


@runtime_checkable
class Engine(Protocol):
    """Runs units in parallel.

    `rows` yields the rows of each unit as it ends; `running` is the folder of checkpoints. `kept`
    is this engine for several sweeps, one after another, with the same workers.
    """

    @property
    def workers(self) -> int: ...
    def rows(self, units: Sequence[Unit], *, device: str, running: Path) -> Rows: ...
    def kept(self) -> AbstractContextManager[Engine]: ...


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Local:
    """A pool of processes on this machine.

    A process that computes nothing for `patience` seconds is killed, and its unit is tried again.
    """

    workers: int = field(default_factory=cores)  # processes
    attempts: int = 3  # how often a unit is tried when its process is lost
    patience: float = PATIENCE
    # processes that wait for the next sweep; None where they end with each
    resting: list[_Worker] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_whole("workers", self.workers)

    @contextmanager
    def kept(self) -> Iterator[Local]:
        resting: list[_Worker] = []
        try:
            yield replace(self, resting=resting)
        finally:
            for worker in resting:
                worker.stop()

    def rows(self, units: Sequence[Unit], *, device: str, running: Path) -> Rows:
        waiting = deque((unit, 1) for unit in units)
        pool: list[_Worker] = []
        try:
            while waiting or pool:
                while waiting and len(pool) < self.workers:
                    worker = self.resting.pop() if self.resting else _Worker(self.patience)
                    pool.append(worker)
                    worker.give(*waiting.popleft(), device, running)
                for worker, rows in _messages(pool):
                    if rows is None:
                        pool.remove(worker)
                        reason = worker.why_lost()
                        if worker.attempt < self.attempts:
                            waiting.appendleft((worker.unit, worker.attempt + 1))
                            continue
                        rows = lost(worker.unit, reason, worker.attempt)
                    elif waiting:
                        worker.give(*waiting.popleft(), device, running)
                    else:
                        pool.remove(worker)
                        if self.resting is None:
                            worker.stop()
                        else:
                            self.resting.append(worker)
                    yield rows
        finally:
            for worker in pool:
                worker.stop()


class _Worker:
    """A process that runs one unit after another, and sends heartbeats while it computes."""

    unit: Unit
    attempt: int

    def __init__(self, patience: float) -> None:
        self.patience, self.started, self.silent = patience, False, 0.0
        self.connection, theirs = SPAWN.Pipe()
        beat = min(BEAT, patience / 4)
        self.process = SPAWN.Process(target=_serve, args=(theirs, beat), daemon=True)
        with _without_interrupts():
            self.process.start()
        theirs.close()  # so that the end of the process is the end of the connection

    def give(self, unit: Unit, attempt: int, device: str, running: Path) -> None:
        self.unit, self.attempt, self.silent = unit, attempt, 0.0
        with suppress(OSError):  # the process has died, which `_messages` will find out
            self.connection.send((unit, device, running))

    @property
    def unresponsive(self) -> bool:
        return self.silent > (self.patience if self.started else PATIENCE)

    def why_lost(self) -> str:
        """Return how the process was lost."""
        if self.unresponsive:
            warnings.warn(
                f"worker process {self.process.pid} has not responded for "
                f"{duration(self.silent)} and is killed; its trials are tried again",
                stacklevel=2,
            )
            self.stop()
            return "process stopped responding"
        self.process.join(GRACE)  # a kill would hide the exit code
        self.stop()
        code = self.process.exitcode
        if not self.started and code is not None and code > 0:
            raise ChildProcessError(
                f"a worker process could not start, it ended with exit code {code}: a script "
                'that sweeps must do so under `if __name__ == "__main__":`'
            )
        return f"process {ending(code)}"

    def stop(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join(GRACE)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes that are started here ignore Ctrl-C, which the driver handles afterwards."""
    if not hasattr(signal, "pthread_sigmask"):  # on Windows `_serve` ignores it, a little later
        yield
        return
    resource_tracker.ensure_running()  # its own start would lift the mask
    # the mask is for the new process; here, threads of libraries may still take the signal
    came: list[int] = []
    in_main = threading.current_thread() is threading.main_thread()
    if in_main:
        handler = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if in_main:
            signal.signal(signal.SIGINT, handler)
        if came:
            signal.raise_signal(signal.SIGINT)


def _messages(pool: Sequence[_Worker]) -> Iterator[tuple[_Worker, list[Row] | None]]:
    """Wait a little, then yield the rows that workers have sent, and None for lost workers."""
    begin = time.monotonic()
    ready = wait([worker.connection for worker in pool], timeout=POLL)
    passed = min(time.monotonic() - begin, POLL)  # the driver itself may have been stopped
    for worker in tuple(pool):
        worker.silent += passed
        if worker.connection in ready:
            worker.silent = 0.0
            try:
                message = worker.connection.recv()
            except (EOFError, OSError):
                yield worker, None
                continue
            worker.started = True
            if message is not None:
                yield worker, message
        elif worker.unresponsive:
            yield worker, None


def _serve(connection: Connection, beat: float) -> None:
    """Run units until the driver is gone; send the rows of each, and None as a heartbeat."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sending = threading.Lock()

    def send(message: list[Row] | None) -> None:
        with sending:
            connection.send(message)

    def send_heartbeats() -> None:
        before = time.process_time()
        with suppress(OSError):
            while True:
                time.sleep(beat)
                now = time.process_time()
                if now - before > IDLE * beat:
                    send(None)
                before = now

    def end_with_parent() -> None:
        if (parent := multiprocessing.parent_process()) is not None:
            parent.join()
        os._exit(1)

    for task in (end_with_parent, send_heartbeats):
        threading.Thread(target=task, daemon=True).start()
    with suppress(EOFError, OSError):
        send(None)
        while True:
            unit, device, running = connection.recv()
            send(run(unit, device=device, running=running))


def lost(unit: Unit, reason: str, attempts: int) -> list[Row]:
    """Return the rows of a unit whose workers were lost."""
    sentence = (
        f"the worker's {reason} in each of {attempts} attempts: try fewer workers if memory is "
        "short, or run such a trial alone to see more"
    )
    return [failed(trial, sentence) for trial in unit]


@dataclass(frozen=True)
class Ray:
    """A Ray cluster, with one task for each unit.

    The address is "auto", "host:port" or "ray://host:port" of a running cluster; None starts one
    on this machine.
    """

    address: str | None = None
    num_cpus: float = 1  # that a task reserves, whole or in part
    num_gpus: float = 0
    retries: int = 3  # how often a task is given to another node when its own is lost

    def __post_init__(self) -> None:
        for name in ("num_cpus", "num_gpus"):
            if getattr(self, name) < 0:
                raise SettingError(name, f"must be 0 or more, got {getattr(self, name)}")

    @property
    def workers(self) -> int:
        """How many tasks the cluster can hold at once."""
        nodes = [node["Resources"] for node in _connected(self.address).nodes() if node["Alive"]]
        asked = {"CPU": self.num_cpus, "GPU": self.num_gpus}
        asked = {name: share for name, share in asked.items() if share} or {"CPU": 1}
        places = 0
        for node in nodes:
            places += int(min(node.get(name, 0) / share for name, share in asked.items()))
        if not places:
            raise ValueError(
                f"num_cpus={self.num_cpus:g} and num_gpus={self.num_gpus:g} must fit on a node of "
                f"the Ray cluster, none of {len(nodes)} has as many: ask for less"
            )
        return places

    def kept(self) -> AbstractContextManager[Ray]:
        return nullcontext(self)  # the processes of a cluster are its own to keep

    def rows(self, units: Sequence[Unit], *, device: str, running: Path) -> Rows:
        ray = _connected(self.address)
        reserved = {"num_cpus": self.num_cpus, "num_gpus": self.num_gpus}
        task = ray.remote(**reserved, max_retries=self.retries)(_remote)
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
            return lost(unit, f"task was lost ({reason})", self.retries + 1)
        return rows


def _local(execution: Execution) -> Engine:
    return Local() if execution.workers is None else Local(execution.workers)


def _ray(execution: Execution) -> Engine:
    return Ray(execution.address, execution.num_cpus, execution.num_gpus)


ENGINES: Mapping[str, Callable[[Execution], Engine]] = {"local": _local, "ray": _ray}


def make_engine(execution: Execution) -> Engine:
    """Return the engine of that name, or your own, with the options of an `Execution`.

    `package.module:name` is a class or function that is called with `execution` and returns an
    `Engine`.
    """
    name = execution.engine
    if is_import_path(name):
        engine = import_callable(name, "engine", execution=execution)(execution=execution)
        if not isinstance(engine, Engine):
            raise ValueError(
                f"engine {name!r} must return an engine with workers, rows and kept, got "
                f"{type(engine).__name__}"
            )
        return engine
    if name not in ENGINES:
        raise unknown_name("engine", name, ENGINES)
    return ENGINES[name](execution)


def _remote(unit: Unit, device: str, running: Path, folder: Path) -> list[Row]:
    if folder.is_dir():  # the user's own data and models are found as by the driver
        os.chdir(folder)
        names = (name for trial in unit for name in (trial.data, trial.model, trial.method.name))
        if str(folder) not in sys.path and any(map(is_import_path, names)):
            sys.path.append(str(folder))
    return run(unit, device=device, running=running)


def _connected(address: str | None) -> Any:
    """Return the module ray, connected to its cluster."""
    if address is None:  # Ray reads this on import: its servers then listen on loopback only
        os.environ.setdefault(LOOPBACK, "0")
    try:
        import ray
    except ImportError as error:
        raise ValueError(
            'the engine ray needs Ray, which is not installed: pip install "kmixup[ray]"'
        ) from error
    if ray.is_initialized():
        return ray
    if address and address != "auto":
        _check_reach(address)
    settings: dict[str, Any] = {} if address else {"include_dashboard": False}
    if data := os.environ.get("KMIXUP_DATA"):
        settings["runtime_env"] = {"env_vars": {"KMIXUP_DATA": data}}
    try:
        with chdir(sys.prefix):  # Ray's workers import from its folder before installed packages
            ray.init(
                address or "local", log_to_driver=False, logging_level=logging.WARNING, **settings
            )
    except (ConnectionError, ray.exceptions.AuthenticationError) as error:
        raise SettingError(
            "address",
            f"must be that of a running Ray cluster, {address} rejected the connection: start "
            "one with `ray start --head`, use its version of Ray, and if it asks for a token, set "
            "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN to the output of `ray get-auth-token` on its "
            "head node",
        ) from error
    return ray


def _check_reach(address: str) -> None:
    """Raise if nobody listens at an address: Ray would try for a quarter of an hour."""
    place = urlsplit(address if "://" in address else f"//{address}")
    try:
        at = (place.hostname or address, place.port or CLIENT_PORT)
        with socket.create_connection(at, timeout=REACH):
            pass
    except (OSError, ValueError) as error:
        raise SettingError(
            "address",
            'must be "auto", "host:port" or "ray://host:port" of a running Ray cluster, '
            f"{address} is unreachable: start one with `ray start --head`, or leave it out",
        ) from error
