"""Checkpoints: any damage is noticed, and a full disk costs nothing that was there."""

import os
import subprocess

import pytest
import torch

from kmixup.lab.train import checkpoint

STATE = {
    "config": {"seed": 0},
    "history": [{"epoch": 1}],
    "model": {"weight": torch.arange(60.0), "bias": torch.zeros(3)},
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / checkpoint.NAME


def assert_damaged(path, contents):
    path.write_bytes(contents)
    with pytest.raises(checkpoint.UnusableError, match="must be a whole checkpoint of kmixup"):
        checkpoint.load(path, STATE["config"])


def test_a_checkpoint_comes_back(path):
    checkpoint.save(path, STATE)
    state = checkpoint.load(path, {"seed": 0})
    assert state["history"] == STATE["history"]
    assert torch.equal(state["model"]["weight"], STATE["model"]["weight"])
    assert checkpoint.completed_epochs(path) == 1


def test_every_truncation_and_every_flipped_bit_is_noticed(path):
    checkpoint.save(path, STATE)
    whole = path.read_bytes()
    for place in range(len(whole)):
        assert_damaged(path, whole[:place])
        flipped = bytes([whole[place] ^ 1 << place % 8])
        assert_damaged(path, whole[:place] + flipped + whole[place + 1 :])
    assert_damaged(path, whole + b"\0")


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("this user may not mount a disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_one_sentence_and_keeps_the_last_checkpoint(small_disk):
    path = small_disk / "run" / checkpoint.NAME
    checkpoint.save(path, STATE)
    large = STATE | {"history": [{}] * 2, "model": torch.zeros(100_000)}
    sentence = r"checkpoint.pt could not be written \(No space left on device\): the checkpoint"
    with pytest.raises(OSError, match=sentence):
        checkpoint.save(path, large)
    assert checkpoint.completed_epochs(path) == 1
    assert os.listdir(path.parent) == [checkpoint.NAME]
