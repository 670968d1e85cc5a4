"""Whether this machine's CPU can compute in bf16: tried in a child process, once.

Some hypervisors announce the bf16 unit of a CPU (AMX) and do not permit its use. torch believes
the announcement, and its first product in bf16 kills the process with an illegal instruction.
oneDNN, which computes these products, can be told to leave that unit alone by an environment
variable, but it reads the variable only once, before its first product.
"""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
import time
import warnings
from functools import cache

import torch

from kmixup.lab.formatting import ending

VARIABLE, WITHOUT_AMX = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16"

PRODUCT = """
import torch
torch.set_num_threads(1)
with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
    torch.nn.Linear(64, 64)(torch.ones(64, 64))
"""
PROBE = (sys.executable, "-c", PRODUCT)
PATIENCE = 120.0  # seconds; importing torch on a busy machine takes many
KILLED = 9  # SIGKILL, a name that Windows lacks


def prepare(precision: str, device: str) -> None:
    """Make `precision` safe in the processes that this one will start, or refuse it.

    Args:
        precision: "fp32" or "bf16".
        device: as in `train`; only CPUs are tried.
    """
    if precision == "bf16" and _is_cpu(device) and (refusal := _refusal()):
        raise ValueError(refusal)


def check(precision: str, device: str) -> None:
    """Make `precision` safe in this process too, or refuse it."""
    prepare(precision, device)
    if precision == "bf16" and _is_cpu(device) and VARIABLE in os.environ and not _survives_here():
        raise ValueError(
            f"precision bf16 needs {VARIABLE}={WITHOUT_AMX} on this CPU, and this process has "
            "computed products without it: set the variable before starting python, or use fp32"
        )


def _is_cpu(device: str) -> bool:
    accelerated = torch.cuda.is_available() or torch.backends.mps.is_available()
    return device == "cpu" or (device == "auto" and not accelerated)


@cache
def _refusal() -> str:
    """Set the variable if the CPU needs it; the sentence that refuses bf16 if that is no help."""
    if not _probe():
        return ""
    before = dict(os.environ)
    os.environ[VARIABLE] = WITHOUT_AMX
    if not (code := _probe()):
        return ""
    del os.environ[VARIABLE]
    os.environ.update(before)
    return (
        f"precision must be fp32 on this CPU: a process that computed in bf16 {ending(code)}, "
        f"even with {VARIABLE}={WITHOUT_AMX}"
    )


def _probe() -> int:
    """Exit code of a process that computes in bf16; negative for a signal."""
    try:
        return subprocess.run(PROBE, capture_output=True, timeout=PATIENCE).returncode
    except subprocess.TimeoutExpired:
        return -KILLED


@cache
def _survives_here() -> bool:
    """Whether a copy of this process, with what oneDNN has read already, survives bf16."""
    if not hasattr(os, "fork"):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork that has threads beside it
        copy = os.fork()
    if not copy:
        faulthandler.disable()  # its death is an answer, not a fault to report
        try:
            exec(PRODUCT, {})
            os._exit(0)
        finally:
            os._exit(1)
    deadline = time.monotonic() + PATIENCE
    while not (ended := os.waitpid(copy, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(copy, KILLED)
        time.sleep(0.01)
    return ended[1] == 0
