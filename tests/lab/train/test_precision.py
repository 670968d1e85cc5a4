"""bf16 on a CPU that announces it and dies of it: stubs stand in for the hypervisor."""

import signal
import sys

import pytest
import torch

from kmixup.lab.experiments.engines import Local
from kmixup.lab.train import precision
from kmixup.lab.train.config import Protocol, Trial
from kmixup.lab.train.loop import train

VARIABLE = precision.WITHOUT_AMX.partition("=")[0]
DIES = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
NEEDS_VARIABLE = f"import os\nif '{VARIABLE}' not in os.environ: exec({DIES!r})"


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Pretend that a product in bf16 runs some code; counts the probes."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv(VARIABLE, raising=False)

    def pretend(product):
        note = f"open({str(tmp_path / 'probes')!r}, 'a').write('x')\n"
        monkeypatch.setattr(precision, "PROBE", (sys.executable, "-c", note + product))

    precision._probe.cache_clear()
    yield pretend
    precision._probe.cache_clear()


def probes(tmp_path):
    path = tmp_path / "probes"
    return len(path.read_text()) if path.exists() else 0


def test_a_sound_cpu_is_tried_once(machine, tmp_path):
    machine("pass")
    for _ in range(3):
        precision.check("bf16", "auto")
    assert probes(tmp_path) == 1


@pytest.mark.parametrize(
    ("kind", "device", "gpu"),
    [
        ("fp32", "cpu", False),
        ("bf16", "cuda", False),
        ("bf16", "mps", False),
        ("bf16", "auto", True),
    ],
)
def test_only_bf16_on_a_cpu_is_tried(machine, tmp_path, monkeypatch, kind, device, gpu):
    machine(DIES)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    precision.check(kind, device)
    assert probes(tmp_path) == 0


def test_the_error_for_a_cpu_that_dies_names_the_variable(machine, monkeypatch):
    machine(NEEDS_VARIABLE)
    sentence = "precision must be fp32 on this CPU, a process that computed in bf16 died of SIGILL"
    with pytest.raises(ValueError, match=f"{sentence}: use fp32, or set {precision.WITHOUT_AMX}"):
        precision.check("bf16", "cpu")
    precision._probe.cache_clear()
    monkeypatch.setenv(*precision.WITHOUT_AMX.split("="))
    precision.check("bf16", "cpu")


def test_a_process_that_hangs_counts_as_killed(machine, monkeypatch):
    machine("import time; time.sleep(60)")
    monkeypatch.setattr(precision, "PATIENCE", 0.3)
    assert precision._probe() == -signal.SIGKILL


def test_training_and_sweeps_raise_before_they_would_die(machine, tmp_path):
    machine(DIES)
    trial = Trial("iris", "mlp-iris", protocol=Protocol(epochs=1, precision="bf16"))
    with pytest.raises(ValueError, match="precision must be fp32 on this CPU"):
        train(trial, device="cpu")
    with pytest.raises(ValueError, match="precision must be fp32 on this CPU"):
        next(Local(1).rows([(trial,)], device="cpu", running=tmp_path))


@pytest.mark.slow
def test_the_true_probe_computes_in_bf16(bf16):
    assert precision._probe() == 0
