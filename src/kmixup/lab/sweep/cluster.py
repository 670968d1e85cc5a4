"""The engine for a Ray cluster: units are tasks that Ray gives to its nodes."""

from __future__ import annotations

import logging
import os
import socket
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kmixup.lab.sweep.engines import Rows, lost
from kmixup.lab.sweep.rows import Row
from kmixup.lab.sweep.units import Unit, failed, run

SUBMITTED = 100  # tasks that Ray is given ahead of their turn
REACH = 5.0  # seconds for a Ray cluster to answer
POLL = 1.0  # seconds between two looks at Ray's tasks, in which Ctrl-C may not be heard
LEAVE_OUT = "leave the address out"
CLIENT_PORT = 10001  # of a ray:// address that names none


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
