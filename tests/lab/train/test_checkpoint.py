"""Checkpoints: any damage is noticed, and a full disk costs nothing that was there."""

import io
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
def whole():
    """The bytes of a checkpoint."""
    buffer = io.BytesIO()
    torch.save(STATE, buffer)
    return checkpoint._sealed(buffer.getvalue())


@pytest.fixture
def path(tmp_path):
    return tmp_path / checkpoint.NAME


def refused(path, contents):
    """Whether a checkpoint with these contents is refused, in the sentence for damage."""
    path.write_bytes(contents)
    try:
        checkpoint.load(path, STATE["config"])
    except checkpoint.UnusableError as error:
        sentence = str(error)
    else:
        return False
    assert sentence.startswith(f"{path} must be a whole checkpoint of kmixup, found ")
    assert sentence.endswith(": delete it")
    return True


def test_a_checkpoint_comes_back_and_torch_can_read_it_too(path):
    checkpoint.save(path, STATE)
    for state in (checkpoint.load(path, {"seed": 0}), torch.load(path, weights_only=True)):
        assert state["history"] == STATE["history"]
        assert torch.equal(state["model"]["weight"], STATE["model"]["weight"])
    assert checkpoint.completed_epochs(path) == 1


def is_whole(contents):
    try:
        checkpoint._check_whole(contents)
    except ValueError:
        return False
    return True


def flipped(contents, place):
    """The contents with one bit changed."""
    return contents[:place] + bytes([contents[place] ^ 1 << place % 8]) + contents[place + 1 :]


def test_every_truncation_is_refused(path, whole):
    assert not refused(path, whole)
    assert [length for length in range(len(whole)) if is_whole(whole[:length])] == []
    assert all(refused(path, whole[:length]) for length in range(0, len(whole), 50))


def test_every_flipped_bit_is_refused(path, whole):
    assert [place for place in range(len(whole)) if is_whole(flipped(whole, place))] == []
    assert all(refused(path, flipped(whole, place)) for place in range(0, len(whole), 50))


def test_bytes_that_follow_the_end_are_refused(path, whole):
    assert refused(path, whole + b"\0")
    assert refused(path, whole + whole)


def test_a_checkpoint_without_a_checksum_is_refused(path):
    torch.save(STATE, path)
    assert refused(path, path.read_bytes())


def test_want_of_memory_is_not_blamed_on_the_checkpoint(path, monkeypatch):
    checkpoint.save(path, STATE)

    def refuse(*args, **more):
        raise MemoryError

    monkeypatch.setattr(torch, "load", refuse)
    with pytest.raises(MemoryError):
        checkpoint.completed_epochs(path)


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
