"""Sweeps in real processes that are killed, stopped and started again.

Starting Python with torch takes seconds, and much dies here: a driver is a fork of one
process that has imported everything. From there on all is real: the command, the signals,
the workers started afresh (but for drivers that die in a write, whose workers are forks too).
"""

import fcntl
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from sweeping import Inline, table

from kmixup.lab.experiments.driver import sweep
from kmixup.lab.experiments.engines import LOOPBACK
from kmixup.lab.experiments.grid import read_config
from kmixup.lab.experiments.rows import LOCK, NAME, read
from kmixup.lab.train import checkpoint

pytestmark = pytest.mark.survival

PATIENCE = 300  # seconds, after which something hangs

NURSERY = '''
"""Runs the command in a fork for every line that comes in; tells its process and its end."""
import json, multiprocessing, os, signal, sys
import torch._dynamo  # which torch's optimisers import
import kmixup.lab.commands.sweep
from kmixup.lab.experiments import engines
from kmixup_command import main


def die_in_a_write(left):
    """Be killed when the system has taken this many bytes of rows."""
    true_write = os.write

    def write(handle, data):
        nonlocal left
        if b'"status"' not in data and left > 0:
            return true_write(handle, data)
        taken = true_write(handle, data[:left])
        left -= taken
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return taken

    os.write = write


def drive(words, folder, left):
    os.chdir(folder)
    sys.path.insert(0, folder)
    output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if left is not None:
        die_in_a_write(left)
        engines.SPAWN = multiprocessing.get_context("fork")
    sys.argv = ["kmixup", *words]
    main()


if __name__ == "__main__":
    for line in sys.stdin:
        process = os.fork()
        if not process:
            drive(**json.loads(line))
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
'''


class Nursery:
    """Starts drivers quickly, one at a time."""

    def __init__(self, folder):
        (folder / "nursery.py").write_text(NURSERY)
        self.process = subprocess.Popen(
            [sys.executable, str(folder / "nursery.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, *words, folder, left=None):
        """The process of a driver; with `left`, one that dies in a write after so many bytes."""
        job = {"words": [*map(str, words)], "folder": str(folder), "left": left}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self):
        """The exit code of the driver, once it has ended; negative for a signal."""
        return int(self.process.stdout.readline())


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    nursery = Nursery(tmp_path_factory.mktemp("nursery"))
    with nursery.process:
        yield nursery
        nursery.process.stdin.close()


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def size(path):
    return path.stat().st_size if path.exists() else 0


def ids(path):
    return {row.id for row in read(path.parent)} if path.exists() else set()


def is_free(folder):
    """Whether nobody has locked a store."""
    with (folder / LOCK).open() as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def children(process):
    """Processes that a process has started."""
    started = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == process:
            started.append(int(path.parent.name))
    return started


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def statuses(path):
    return [json.loads(line)["status"] for line in path.read_text().splitlines()[1:]]


# a hundred fleets of three
GRID = f"""
data = "one-ring"
size = 64
method = "mixup"
trials = 3
[protocol]
epochs = 2
batch_size = 32
rate = {[0.001 * (number + 1) for number in range(100)]}
"""


def test_twenty_kills_cost_no_row_and_change_none(nursery, tmp_path):
    (tmp_path / "grid.toml").write_text(GRID)
    trials = read_config(tmp_path / "grid.toml")
    rows = tmp_path / "rows" / NAME
    words = ("sweep", "grid.toml", "--out", "rows", "--workers", 2, "--no-report")
    rng = random.Random(0)
    torn, safe = 0, set()
    for kill in range(20):
        before = size(rows)
        if kill % 2:  # in the middle of the rows of a fleet
            nursery.start(*words, folder=tmp_path, left=rng.randint(1, 8000))
            code = nursery.end()
            until(lambda: is_free(rows.parent))  # forks have the lock too, for a moment longer
        else:
            driver = nursery.start(*words, folder=tmp_path)
            if kill % 4:  # at any moment of the start
                time.sleep(rng.uniform(0, 2))
            else:  # at any moment of the work
                until(lambda before=before: size(rows) > max(before, 100))
                time.sleep(rng.uniform(0, 0.1))
            os.kill(driver, signal.SIGKILL)
            code = nursery.end()
        assert code == -signal.SIGKILL
        torn += rows.exists() and not rows.read_bytes().endswith(b"\n")
        assert safe <= ids(rows)
        safe = ids(rows)
    assert torn > 3
    assert 0 < len(safe) < len(trials)

    nursery.start(*words, folder=tmp_path)
    assert nursery.end() == 0
    assert statuses(rows) == ["done"] * len(trials)
    undisturbed = sweep(trials, tmp_path / "undisturbed", engine=Inline()).rows
    assert table(read(rows.parent)) == table(undisturbed)
    assert sorted(os.listdir(rows.parent)) == [LOCK, NAME]  # and nothing is left half done


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_orphaned_workers_end_by_themselves(nursery, tmp_path, end):
    (tmp_path / "nets.py").write_text(
        "import time\n"
        "from pathlib import Path\n"
        "def waits(*, in_shape, num_classes):\n"
        "    Path('at-work').touch()\n"
        "    time.sleep(3600)\n"
    )
    (tmp_path / "grid.toml").write_text('data = "iris"\nmodel = "nets:waits"\ntrials = 2\n')
    driver = nursery.start("sweep", "grid.toml", "--workers", 2, folder=tmp_path)
    until((tmp_path / "at-work").exists)
    workers = children(driver)
    assert len(workers) >= 2
    os.kill(driver, end)
    assert nursery.end() == -end
    until(lambda: not any(map(alive, workers)))
    assert read(tmp_path / "out" / "grid") == []


def test_a_large_network_resumes_from_its_checkpoint(nursery, tmp_path, monkeypatch):
    (tmp_path / "nets.py").write_text(
        "from torch import nn\n"
        "def small(*, in_shape, num_classes):\n"
        "    return nn.Linear(in_shape[0], num_classes)\n"
    )
    (tmp_path / "grid.toml").write_text(
        'data = "iris"\nmodel = "nets:small"\nmethod = "mixup"\nprotocol = { epochs = 150 }\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    (trial,) = read_config(tmp_path / "grid.toml")
    kept = tmp_path / "out" / "grid" / "running" / trial.id / checkpoint.NAME
    epochs = 0
    for _ in range(2):
        driver = nursery.start(
            "sweep", "grid.toml", "--device", "cpu", "--no-report", folder=tmp_path
        )
        until(lambda done=epochs: checkpoint.completed_epochs(kept) > done)
        os.kill(driver, signal.SIGKILL)
        assert nursery.end() == -signal.SIGKILL
        epochs = checkpoint.completed_epochs(kept)
    assert 2 <= epochs < 150
    nursery.start("sweep", "grid.toml", "--device", "cpu", "--no-report", folder=tmp_path)
    until(lambda: not kept.exists() or checkpoint.completed_epochs(kept) != epochs)
    assert not kept.exists() or checkpoint.completed_epochs(kept) > epochs
    assert nursery.end() == 0
    assert sorted(os.listdir(tmp_path / "out" / "grid")) == [LOCK, NAME]
    alone = sweep([trial], tmp_path / "alone", engine=Inline(), device="cpu").rows
    assert table(read(tmp_path / "out" / "grid")) == table(alone)


@pytest.mark.parametrize("moment", ["starting", "working"])
def test_ctrl_c_prints_how_to_resume_and_a_second_driver_raises(kmixup, here, nursery, moment):
    (here / "grid.toml").write_text(GRID)
    rows = here / "out" / "grid" / NAME
    process = subprocess.Popen(
        [sys.executable, "-m", "kmixup", "sweep", "grid.toml", "--quiet", "--no-report"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C goes to all processes of a terminal
    )
    until(lambda: size(rows) > (100 if moment == "working" else 0))
    code, _, err = kmixup("sweep", "grid.toml")
    assert (code, err) == (
        2,
        "kmixup: out/grid is being written by another sweep: wait for its end, or choose "
        "another folder\n",
    )
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert err == (
        "stopped; finished trials are in out/grid, resume with\n"
        "  kmixup sweep grid.toml --quiet --no-report\n"
    )
    before = rows.read_text()
    nursery.start("sweep", "grid.toml", "--no-report", folder=here)
    assert nursery.end() == 0
    assert rows.read_text().startswith(before)
    assert statuses(rows) == ["done"] * 300
    assert len(read(rows.parent)) == 300


# a Ray cluster that outlives its driver


def free_ports(number):
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [server.getsockname()[1] for server in servers]
    for server in servers:
        server.close()
    return ports


def answers(host, port):
    with socket.socket() as client:
        return client.connect_ex((host, port)) == 0


def outward():
    """An address of this machine beyond loopback, None if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return None
        return probe.getsockname()[0]


@pytest.fixture
def cluster(monkeypatch):
    """The address of a cluster of its own on loopback, which asks for a token."""
    pytest.importorskip("ray")
    port, agent = free_ports(2)
    folder = tempfile.mkdtemp(prefix="ray")  # paths of sockets must be short
    for name, value in {
        "RAY_TMPDIR": folder,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": "0123456789abcdef" * 2,
        LOOPBACK: "0",
    }.items():
        monkeypatch.setenv(name, value)
    options = f"--port={port} --num-cpus=2"
    options += f" --dashboard-agent-listen-port={agent} --include-dashboard=false"
    command = ["ray", "start", "--head", "--block", "--node-ip-address=127.0.0.1"]
    command[0] = str(Path(sys.executable).with_name("ray"))
    with (Path(folder) / "head.log").open("w") as log:
        head = subprocess.Popen([*command, *options.split()], stdout=log, stderr=log)
        try:
            until(lambda: answers("127.0.0.1", port) or head.poll() is not None)
            assert head.poll() is None, (Path(folder) / "head.log").read_text()
            if outward() is not None and answers(outward(), port):
                pytest.skip(f"this version of Ray listens on {outward()}, not on loopback only")
            yield f"127.0.0.1:{port}"
        finally:
            head.terminate()
            head.wait()
            shutil.rmtree(folder, ignore_errors=True)


NODE = """
from kmixup.lab.experiments.engines import Ray
assert Ray().workers
import ray
(node,) = ray.nodes()
print(node["NodeManagerAddress"], node["NodeManagerPort"], node["ObjectManagerPort"], flush=True)
input()
"""


@pytest.mark.skipif(outward() is None, reason="this machine has no address beyond loopback")
def test_a_cluster_that_the_engine_starts_is_reachable_from_this_machine_only(monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.delenv(LOOPBACK, raising=False)
    command = [sys.executable, "-c", NODE]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-3, text=True) as started:
        host, *ports = started.stdout.readline().split()
        assert host == "127.0.0.1"
        assert [answers(host, int(port)) for port in ports] == [True, True]
        assert [answers(outward(), int(port)) for port in ports] == [False, False]
        started.communicate("\n")


def test_a_driver_that_dies_while_its_cluster_lives_costs_no_row(cluster, tmp_path, monkeypatch):
    (tmp_path / "grid.toml").write_text(GRID)
    rows = tmp_path / "rows" / NAME
    words = f"sweep grid.toml --out rows --engine ray --address {cluster} --no-report --quiet"
    command = [sys.executable, "-m", "kmixup", *words.split()]

    driver = subprocess.Popen(command, cwd=tmp_path)
    until(lambda: size(rows) > 100)
    driver.kill()
    assert driver.wait() == -signal.SIGKILL
    safe = ids(rows)
    assert 0 < len(safe) < 300
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"300 trials, {300 - len(safe)} of them run now" in ended.stdout
    trials = read_config(tmp_path / "grid.toml")
    undisturbed = sweep(trials, tmp_path / "undisturbed", engine=Inline()).rows
    assert table(read(rows.parent)) == table(undisturbed)

    monkeypatch.setenv("RAY_AUTH_TOKEN", "wrong")
    (rows.parent / NAME).unlink()
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 2
    assert f"{cluster} rejected the connection: start one with" in ended.stderr
