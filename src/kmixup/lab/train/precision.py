"""Whether this machine's CPU can compute in bf16, tried in a child process.

Some hypervisors announce a CPU's bf16 unit (AMX) without permitting its use, and torch's first
product in bf16 dies of an illegal instruction. oneDNN, which computes these products, leaves the
unit alone if an environment variable is set before Python starts.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache

from kmixup.lab.checks import SettingError
from kmixup.lab.formatting import ending
from kmixup.lab.train.setup import device_of

WITHOUT_AMX = "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"

PRODUCT = """import torch
torch.set_num_threads(1)
with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
    torch.nn.Linear(64, 64)(torch.ones(64, 64))"""
PROBE = (sys.executable, "-c", PRODUCT)
PATIENCE = 120.0  # seconds; importing torch on a busy machine takes many
KILLED = 9  # SIGKILL, a name that Windows lacks


def check(precision: str, device: str) -> None:
    """Raise if `precision` is "bf16" and `device`, as in `train`, is a CPU that dies of it."""
    if precision == "bf16" and device_of(device).type == "cpu" and (code := _probe()):
        raise SettingError(
            "precision",
            f"must be fp32 on this CPU, a process that computed in bf16 {ending(code)}: use fp32, "
            f"or set {WITHOUT_AMX} before starting Python, which helps on some virtual machines",
        )


@cache
def _probe() -> int:
    """Return the exit code of a process that computes in bf16; negative for a signal."""
    try:
        return subprocess.run(PROBE, capture_output=True, timeout=PATIENCE).returncode
    except subprocess.TimeoutExpired:
        return -KILLED
