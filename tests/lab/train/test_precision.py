"""bf16 on a CPU that announces it and dies of it: stubs stand in for the hypervisor."""

import os
import signal
import sys

import pytest
import torch

from kmixup.lab.experiments.engines import Local
from kmixup.lab.train import precision
from kmixup.lab.train.config import Protocol, Trial
from kmixup.lab.train.loop import train

DIES = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
NEEDS_VARIABLE = f"import os\nif '{precision.VARIABLE}' not in os.environ: exec({DIES!r})"


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Pretend that a product in bf16 does what some code does; counts the probes."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv(precision.VARIABLE, raising=False)
    caches = (precision._refusal, precision._survives_here)

    def pretend(product, *, here="pass"):
        note = f"open({str(tmp_path / 'probes')!r}, 'a').write('x')\n"
        monkeypatch.setattr(precision, "PROBE", (sys.executable, "-c", note + product))
        monkeypatch.setattr(precision, "PRODUCT", here)

    for cached in caches:
        cached.cache_clear()
    yield pretend
    for cached in caches:
        cached.cache_clear()
    os.environ.pop(precision.VARIABLE, None)


def probes(tmp_path):
    path = tmp_path / "probes"
    return len(path.read_text()) if path.exists() else 0


def test_a_sound_cpu_is_tried_once_and_left_alone(machine, tmp_path):
    machine("pass")
    for _ in range(3):
        precision.check("bf16", "auto")
    assert precision.VARIABLE not in os.environ
    assert probes(tmp_path) == 1


@pytest.mark.parametrize(("kind", "device"), [("fp32", "cpu"), ("bf16", "cuda"), ("bf16", "mps")])
def test_only_bf16_on_a_cpu_is_tried(machine, tmp_path, kind, device):
    machine(DIES)
    precision.check(kind, device)
    assert probes(tmp_path) == 0


def test_auto_is_tried_where_it_means_the_cpu(machine, tmp_path, monkeypatch):
    machine("pass")
    with monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: True)
        precision.check("bf16", "auto")
    assert probes(tmp_path) == 0
    precision.check("bf16", "auto")
    assert probes(tmp_path) == 1


def test_a_unit_that_is_not_permitted_is_switched_off_for_this_process_and_its_children(
    machine, tmp_path
):
    machine(NEEDS_VARIABLE)
    for _ in range(3):
        precision.check("bf16", "cpu")
    assert os.environ[precision.VARIABLE] == "AVX512_CORE_BF16"
    assert probes(tmp_path) == 2


def test_when_it_is_too_late_the_sentence_says_what_to_set_and_children_are_safe(machine):
    machine(NEEDS_VARIABLE, here=DIES)
    precision.prepare("bf16", "cpu")
    sentence = (
        "bf16 needs ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 on this CPU, and this process has computed "
        "products without it: set the variable before starting python, or use fp32"
    )
    with pytest.raises(ValueError, match=sentence):
        precision.check("bf16", "cpu")


def test_where_a_process_cannot_be_copied_it_is_not_risked(machine, monkeypatch):
    machine(NEEDS_VARIABLE)
    monkeypatch.delattr(os, "fork")
    with pytest.raises(ValueError, match="set the variable before starting python"):
        precision.check("bf16", "cpu")


def test_a_cpu_that_dies_all_the_same_is_refused_and_the_variable_is_as_it_was(
    machine, tmp_path, monkeypatch
):
    machine(DIES)
    sentence = "must be fp32 on this CPU: a process that computed in bf16 died of SIGILL, even with"
    for _ in range(2):
        with pytest.raises(ValueError, match=sentence):
            precision.prepare("bf16", "cpu")
    assert precision.VARIABLE not in os.environ
    assert probes(tmp_path) == 2
    precision._refusal.cache_clear()
    monkeypatch.setenv(precision.VARIABLE, "AVX2")
    with pytest.raises(ValueError, match=sentence):
        precision.prepare("bf16", "cpu")
    assert os.environ[precision.VARIABLE] == "AVX2"


def test_a_process_that_hangs_is_as_good_as_dead(machine, monkeypatch):
    machine("import time; time.sleep(60)", here="import time; time.sleep(60)")
    monkeypatch.setattr(precision, "PATIENCE", 0.3)
    assert precision._probe() == -signal.SIGKILL
    assert not precision._survives_here()


def test_training_and_sweeps_refuse_what_would_kill_them(machine, tmp_path):
    machine(DIES)
    trial = Trial("iris", "mlp-iris", protocol=Protocol(epochs=1, precision="bf16"))
    for devices in (1, 2):
        with pytest.raises(ValueError, match="precision must be fp32 on this CPU"):
            train(trial, device="cpu", devices=devices)
    with pytest.raises(ValueError, match="precision must be fp32 on this CPU"):
        next(Local(1).rows([(trial,)], device="cpu", running=tmp_path))


@pytest.mark.slow
def test_the_true_probe_computes_in_bf16(bf16):
    assert precision._probe() == 0
    assert precision._survives_here()
