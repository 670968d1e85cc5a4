"""Engines return the same rows, whichever workers are lost."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from sweeping import Inline, done_row, table

from kmixup.lab.experiments import engines
from kmixup.lab.experiments.driver import sweep
from kmixup.lab.experiments.engines import SUBMITTED, Local, Ray, _remote, cores
from kmixup.lab.experiments.grid import expand
from kmixup.lab.experiments.rows import Done
from kmixup.lab.experiments.tuning import STUDY, make_plan, tune_plan
from kmixup.lab.experiments.units import units

REMEDY = "try fewer workers if memory is short, or run such a trial alone to see more"

NETS = """
import os, signal, time
from pathlib import Path
from torch import nn

def small(*, in_shape, num_classes):
    return nn.Linear(in_shape[0], num_classes)

def dies(*, in_shape, num_classes):
    os.kill(os.getpid(), signal.SIGKILL)

def first_time(name):
    try:
        Path(name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

def dies_once(*, in_shape, num_classes):
    if first_time("has-died"):
        os.kill(os.getpid(), signal.SIGKILL)
    return small(in_shape=in_shape, num_classes=num_classes)

def segfaults(*, in_shape, num_classes):
    os.kill(os.getpid(), signal.SIGSEGV)

def exits(*, in_shape, num_classes):
    os._exit(3)

def raises(*, in_shape, num_classes):
    raise RuntimeError("no such luck")

def waits(*, in_shape, num_classes):
    import ray
    node = ray.get_runtime_context().get_node_id()
    Path(f"waits-{node}").touch()
    while not Path("go").exists():
        time.sleep(0.01)
    return small(in_shape=in_shape, num_classes=num_classes)

def hangs_once(*, in_shape, num_classes):
    if first_time("has-hung"):
        time.sleep(3600)
    return small(in_shape=in_shape, num_classes=num_classes)

def stops(*, in_shape, num_classes):
    os.kill(os.getpid(), signal.SIGSTOP)

def tells_gpus(*, in_shape, num_classes):
    Path("gpus").write_text(os.environ.get("CUDA_VISIBLE_DEVICES", "none"))
    return small(in_shape=in_shape, num_classes=num_classes)
"""


@pytest.fixture
def nets(tmp_path, monkeypatch):
    """A folder to work in with your own networks, and a place for rows."""
    (tmp_path / "nets.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("nets", None)


def grid(*models, **more):
    """Three trials of every model; MLPs make fleets of three."""
    protocol = {"epochs": 3, "batch_size": 32} | more
    return expand(data="iris", model=models, method="mixup", trials=3, protocol=protocol)


def undisturbed(trials, folder):
    return table(sweep(trials, folder / "undisturbed", engine=Inline(), device="cpu").rows)


# processes of this machine


@pytest.mark.slow
def test_rows_of_processes_are_those_of_this_process(nets):
    trials = grid("mlp-iris", "nets:small", batch_size=[16, 32])
    expected = undisturbed(trials, nets)
    outcome = sweep(trials, nets / "rows", engine=Local(2), device="cpu")
    assert table(outcome.rows) == expected
    assert {row.machine["threads"] for row in outcome.rows} == {1}
    assert multiprocessing.active_children() == []


@pytest.mark.survival
def test_a_process_that_dies_costs_an_attempt_and_one_that_raises_its_row(nets):
    good = grid("nets:small")
    expected = undisturbed(good, nets)
    once, always, wrong = (grid(f"nets:{name}")[:1] for name in ("dies_once", "dies", "raises"))
    trials = [*always, *once, *wrong, *good]
    outcome = sweep(trials, nets / "rows", engine=Local(2, attempts=2), device="cpu")
    rows = {row.id: row for row in outcome.rows}
    assert table([rows[trial.id] for trial in good]) == expected
    assert rows[once[0].id].scores == rows[good[0].id].scores
    assert rows[wrong[0].id].reason == "RuntimeError: no such luck"
    assert "in raises" in rows[wrong[0].id].traceback
    assert rows[always[0].id].reason == (
        f"the worker's process died of SIGKILL in each of 2 attempts: {REMEDY}"
    )
    assert len(outcome.failed) == 2


@pytest.mark.slow
def test_the_row_of_a_lost_trial_says_how_its_process_ended(nets):
    trials = [grid(f"nets:{name}")[0] for name in ("segfaults", "exits")]
    outcome = sweep(trials, nets / "rows", engine=Local(1, attempts=1), device="cpu")
    for row, end in zip(outcome.rows, ("died of SIGSEGV", "ended with exit code 3"), strict=True):
        assert row.reason == f"the worker's process {end} in each of 1 attempts: {REMEDY}"


@pytest.mark.slow
def test_a_process_killed_from_outside_costs_no_row(nets):
    trials = grid("mlp-iris", batch_size=[8, 16, 32])
    expected = undisturbed(trials, nets)
    killed = []

    def kill_once(rows):
        if not killed:
            (worker,) = multiprocessing.active_children()
            killed.append(worker.pid)
            os.kill(worker.pid, signal.SIGKILL)

    outcome = sweep(trials, nets / "rows", engine=Local(1), ended=kill_once)
    assert killed
    assert table(outcome.rows) == expected


@pytest.mark.slow
def test_a_process_that_hangs_is_killed_and_costs_no_row(nets):
    good, (hanging, *_) = grid("nets:small"), grid("nets:hangs_once")
    with pytest.warns(UserWarning, match=r"worker process \d+ has not responded for .* is killed"):
        outcome = sweep([hanging, *good], nets / "rows", engine=Local(1, patience=8), device="cpu")
    assert outcome.failed == []
    rows = {row.id: row for row in outcome.rows}
    assert rows[hanging.id].scores == rows[good[0].id].scores


@pytest.mark.slow
def test_a_process_that_is_stopped_in_each_attempt_gives_a_failed_row(nets):
    trials = [*grid("nets:stops")[:1], *grid("nets:small")]
    engine = Local(2, attempts=2, patience=8)
    with pytest.warns(UserWarning, match="has not responded for"):
        outcome = sweep(trials, nets / "rows", engine=engine, device="cpu")
    (row,) = outcome.failed
    assert row.reason == (
        f"the worker's process stopped responding in each of 2 attempts: {REMEDY}"
    )
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_a_kept_engine_runs_several_sweeps_with_the_same_processes(nets):
    trials = grid("nets:small")
    expected = undisturbed(trials, nets)
    workers = []
    with Local(1).kept() as engine:
        for name in ("first", "second", "third"):
            outcome = sweep(trials, nets / name, engine=engine, device="cpu")
            assert table(outcome.rows) == expected
            workers += multiprocessing.active_children()
            if name == "second":  # a worker that is gone is replaced
                workers[-1].kill()
                workers[-1].join()
    first, second, third = (worker.pid for worker in workers)
    assert first == second != third
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_workers_end_when_their_rows_are_no_longer_read(nets):
    ending = Local(1).rows(units(grid("nets:small")), device="cpu", running=nets)
    next(ending)
    assert len(multiprocessing.active_children()) == 1
    ending.close()
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_a_script_without_a_main_guard_gets_a_hint(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from kmixup.lab.experiments.engines import Local\n"
        "from kmixup.lab.experiments.grid import expand\n"
        "from kmixup.lab.experiments.driver import sweep\n"
        f"sweep(expand(data='iris'), {str(tmp_path / 'rows')!r}, engine=Local(1))\n"
    )
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.endswith(
        "ChildProcessError: a worker process could not start, it ended with exit code 1: a script "
        'that sweeps must do so under `if __name__ == "__main__":`\n'
    )


def test_no_units_start_no_process(tmp_path):
    assert list(Local(2).rows([], device="cpu", running=tmp_path)) == []


def test_there_is_one_worker_for_each_core_that_may_be_used(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {2, 5, 7}, raising=False)
    assert Local().workers == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 11)
    assert Local().workers == 11
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


# Ray, imitated


class RayError(Exception):
    pass


class ImitatedRay:
    """As much of Ray as the engine uses; tasks run when they are waited for."""

    exceptions = SimpleNamespace(
        RayError=RayError,
        RayTaskError=type("RayTaskError", (RayError,), {}),
        AuthenticationError=type("AuthenticationError", (RayError,), {}),
    )

    def __init__(self, nodes=({"CPU": 2.0, "GPU": 1.0},), result=None):
        self._nodes, self.result = nodes, result
        self.started, self.options, self.most, self.cancelled = None, None, 0, []
        self.silent = 2  # waits without an answer

    def is_initialized(self):
        return self.started is not None

    def init(self, address, **settings):
        self.started = (address, settings, os.getcwd())

    def nodes(self):
        return [{"Alive": True, "Resources": node} for node in self._nodes] + [
            {"Alive": False, "Resources": {"CPU": 64.0}}
        ]

    def remote(self, **options):
        self.options = options
        return lambda function: SimpleNamespace(remote=lambda *given: given)

    def wait(self, references, timeout):
        assert timeout <= 1  # Ctrl-C may not be heard in the meantime
        self.silent -= 1
        if self.silent >= 0:
            return [], references
        self.most = max(self.most, len(references))
        return references[:1], references[1:]

    def get(self, reference):
        if isinstance(self.result, Exception):
            raise self.result
        return [done_row(trial) for trial in reference[0]]

    def cancel(self, reference, *, force):
        self.cancelled.append(reference)


@pytest.fixture
def imitated(monkeypatch):
    def give(*args, **more):
        ray = ImitatedRay(*args, **more)
        monkeypatch.setitem(sys.modules, "ray", ray)
        return ray

    return give


def many(number):
    return [(trial,) for trial in expand(data="iris", trials=number)]


def test_ray_tasks_are_submitted_in_a_window(imitated, tmp_path):
    ray = imitated()
    taken = list(Ray().rows(many(3 * SUBMITTED), device="cpu", running=tmp_path))
    assert [rows[0].id for rows in taken] == [unit[0].id for unit in many(3 * SUBMITTED)]
    assert ray.most == SUBMITTED
    ray = imitated([{"CPU": float(SUBMITTED)}])
    list(Ray().rows(many(3 * SUBMITTED), device="cpu", running=tmp_path))
    assert ray.most == 2 * SUBMITTED


def test_ray_tasks_reserve_the_requested_resources(imitated, tmp_path):
    ray = imitated()
    engine = Ray("auto", num_cpus=2, num_gpus=0.25, retries=5)
    list(engine.rows(many(1), device="cuda", running=tmp_path))
    assert ray.options == {"num_cpus": 2, "num_gpus": 0.25, "max_retries": 5}
    assert ray.started[0] == "auto"


def test_ray_workers_find_the_data(imitated, monkeypatch):
    monkeypatch.setenv("KMIXUP_DATA", "/data")
    ray = imitated()
    assert Ray().workers == 2
    assert ray.started[0] == "local"
    assert ray.started[1]["runtime_env"] == {"env_vars": {"KMIXUP_DATA": "/data"}}
    monkeypatch.delenv("KMIXUP_DATA")
    ray = imitated()
    assert Ray().workers == 2
    assert "runtime_env" not in ray.started[1]


def test_places_of_a_cluster_are_counted_node_by_node(imitated):
    imitated([{"CPU": 3.0, "GPU": 1.0}, {"CPU": 4.0}])
    assert Ray().workers == 7
    assert Ray(num_cpus=2).workers == 3
    assert Ray(num_cpus=0.5, num_gpus=0.25).workers == 4
    assert Ray(num_cpus=0, num_gpus=0.5).workers == 2
    assert Ray(num_cpus=0).workers == 7


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"num_gpus": 0.5}, "num_cpus=1 and num_gpus=0.5 must fit on a node of .*, none of 2 has"),
        ({"num_cpus": 3}, "num_cpus=3 and num_gpus=0 must fit on a node"),
        ({"num_gpus": -0.5}, "num_gpus must be 0 or more, got -0.5"),
    ],
)
def test_what_fits_on_no_node_raises_and_is_not_waited_for(imitated, tmp_path, asked, message):
    imitated([{"CPU": 2.0}, {"CPU": 2.0}])
    with pytest.raises(ValueError, match=message):
        next(Ray(**asked).rows(many(1), device="auto", running=tmp_path))


def test_tasks_are_cancelled_when_their_rows_are_no_longer_read(imitated, tmp_path):
    ray = imitated()
    ending = Ray().rows(many(5), device="cpu", running=tmp_path)
    next(ending)
    ending.close()
    assert len(ray.cancelled) == 4


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            RayError("The node died.\nMore."),
            f"the worker's task was lost (The node died.) in each of 2 attempts: {REMEDY}",
        ),
        (
            ImitatedRay.exceptions.RayTaskError("raised outside of a trial"),
            "ModuleNotFoundError: No module named 'kmixup'",
        ),
    ],
)
def test_a_task_that_is_lost_or_raises_gives_a_row_with_the_reason(
    imitated, tmp_path, error, reason
):
    error.cause = ModuleNotFoundError("No module named 'kmixup'")
    imitated(result=error)
    ((row,),) = Ray(retries=1).rows(many(1), device="cpu", running=tmp_path)
    assert row.reason == reason


def test_a_missing_ray_raises_with_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r'not installed: pip install "kmixup\[ray\]"'):
        assert Ray().workers


forms = pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}", "localhost:{}"])


@forms
def test_an_address_where_a_server_listens_is_left_to_ray(imitated, form):
    ray = imitated()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = form.format(server.getsockname()[1])
        assert Ray(address).workers == 2
    assert ray.started[0] == address
    ray = imitated()
    with pytest.raises(ValueError, match=f"cluster, {address} is unreachable: start one with"):
        assert Ray(address).workers  # which nobody listens at any more
    assert ray.started is None


@pytest.mark.parametrize("address", ["no where", "host:port", "ray://", ":6379"])
def test_an_invalid_address_raises(imitated, address):
    imitated()
    with pytest.raises(ValueError, match=f'"host:port" or .*cluster, {address} is unreachable'):
        assert Ray(address).workers


@pytest.mark.parametrize("error", [ConnectionError, ImitatedRay.exceptions.AuthenticationError])
def test_a_cluster_that_lets_nobody_in_is_one_sentence_with_the_remedy(imitated, error):
    def fail(*args, **more):
        raise error("Failed to connect")

    imitated().init = fail
    with pytest.raises(ValueError, match="cluster, auto rejected the connection: start one"):
        assert Ray("auto").workers


def test_a_system_without_signal_masks_starts_workers_too(monkeypatch):
    monkeypatch.delattr(signal, "pthread_sigmask")
    with engines._without_interrupts():
        pass


def test_ctrl_c_that_another_thread_takes_counts_once_a_worker_has_started():
    ready, started = threading.Event(), []
    other = threading.Thread(target=ready.wait)
    other.start()

    def start():
        with engines._without_interrupts():
            signal.pthread_kill(other.ident, signal.SIGINT)
            for _ in range(100):
                time.sleep(0.001)
            started.append(True)

    try:
        with pytest.raises(KeyboardInterrupt):
            start()
    finally:
        ready.set()
        other.join()
    assert started == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_task_runs_in_the_folder_of_the_driver(nets, monkeypatch):
    monkeypatch.chdir(nets.parent)
    monkeypatch.setattr(sys, "path", sys.path[:])
    (unit,) = units(grid("nets:small")[:1])
    for _ in range(2):
        (row,) = _remote(unit, "cpu", nets / "running", nets)
        assert isinstance(row, Done)
        assert os.getcwd() == str(nets)
    assert sys.path.count(str(nets)) == 1
    (row,) = _remote(unit, "cpu", nets / "running", nets / "on another machine")
    assert isinstance(row, Done)


def test_a_task_imports_from_the_folder_only_your_own_code(nets, monkeypatch):
    monkeypatch.chdir(nets)
    plain, own = (grid(model)[:1] for model in ("mlp-iris", "nets:small"))
    before = [path for path in sys.path if path != str(nets)]
    for unit, expected in ((plain, []), (own, [str(nets)])):
        monkeypatch.setattr(sys, "path", before[:])
        _remote(tuple(unit), "cpu", nets / "running", nets)
        assert sys.path == [*before, *expected]  # behind installed packages


def test_ray_is_not_told_the_current_folder_which_its_workers_would_import_from(imitated, nets):
    ray = imitated()
    assert Ray().workers == 2
    assert ray.started[2] == sys.prefix
    assert os.getcwd() != sys.prefix


# Ray itself


@pytest.fixture
def ray():
    ray = pytest.importorskip("ray")
    yield ray
    ray.shutdown()


@pytest.mark.survival
def test_rows_of_ray_are_those_of_processes(ray, nets):
    trials = grid("mlp-iris", "nets:tells_gpus", batch_size=[16, 32])
    ray.init(num_cpus=2, num_gpus=1, include_dashboard=False, log_to_driver=False)
    engine = Ray(num_gpus=0.5)
    assert engine.workers == 2
    swept = sweep(trials, nets / "ray", engine=engine, device="cpu").rows
    assert (nets / "gpus").read_text() == "0"
    assert table(swept) == table(sweep(trials, nets / "pool", engine=Local(2), device="cpu").rows)
    assert {row.machine["threads"] for row in swept} == {1}

    always, once, wrong = (grid(f"nets:{name}")[:1] for name in ("dies", "dies_once", "raises"))
    engine = Ray(retries=1)
    outcome = sweep([*always, *once, *wrong], nets / "failing", engine=engine, device="cpu")
    rows = {row.id: row for row in outcome.rows}
    assert isinstance(rows[once[0].id], Done)
    assert rows[wrong[0].id].reason == "RuntimeError: no such luck"
    assert rows[always[0].id].reason.startswith("the worker's task was lost (")
    assert "in each of 2 attempts" in rows[always[0].id].reason


@pytest.mark.survival
def test_a_search_on_ray_ends_as_one_in_this_process(ray, tmp_path):
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    few = {"k": [1, 4], "alpha": [0.25, 1.0], "trials": 1, "protocol": {"epochs": 2}}
    plan = make_plan("iris", strategy="tpe", **few)

    def tuned_on(engine, name):
        def run(trials):
            return sweep(trials, tmp_path / name, engine=engine, device="cpu").rows

        return tune_plan(plan, run, budget=12, study=tmp_path / name / STUDY)

    here, there = tuned_on(Inline(), "here"), tuned_on(Ray(), "there")
    assert there.search == here.search
    assert table(there.rows) == table(here.rows)
    assert (tmp_path / "there" / STUDY).is_file()


@pytest.mark.survival
def test_a_node_that_is_lost_costs_no_row(ray, nets):
    from ray.cluster_utils import Cluster

    trials = grid("nets:waits")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        second = cluster.add_node(num_cpus=1)
        ray.init(cluster.address, log_to_driver=False)
        cluster.wait_for_nodes()

        def lose_a_node():
            deadline = time.monotonic() + 300
            while len(list(nets.glob("waits-*"))) < 2 and time.monotonic() < deadline:
                time.sleep(0.05)
            cluster.remove_node(second, allow_graceful=False)
            (nets / "go").touch()

        killer = threading.Thread(target=lose_a_node)
        killer.start()
        outcome = sweep(trials, nets / "rows", engine=Ray(), device="cpu")
        killer.join()
        assert (nets / f"waits-{second.node_id}").exists()  # it was at work there
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert outcome.failed == []
    expected = undisturbed(grid("nets:small"), nets).values()
    assert {row.trial.seed: row.scores for row in outcome.rows} == {
        row.trial.seed: row.scores for row in expected
    }
