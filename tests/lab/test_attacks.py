"""Attacks: files made to overwrite others, to hang, to fill memory or to command the terminal."""

import gzip
import json
import os
import signal

import pytest
from sweeping import done_row

from kmixup.lab import _files
from kmixup.lab.experiments.rows import DAMAGED, HEADER, LOCK, NAME, PUBLISHED, Store, read
from kmixup.lab.train.config import Trial

TRIAL = Trial("iris", "mlp-iris")
HEAD = json.dumps(HEADER) + "\n"


@pytest.fixture(autouse=True)
def _no_hang():
    """End a test that waits for ever, as one that reads a named pipe would."""
    signal.alarm(120)
    yield
    signal.alarm(0)


def lure(path, kind):
    """Put something at a path that is no ordinary file."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()


@pytest.fixture
def rows(tmp_path):
    """A store with one row, in a folder beside a file that is not to be touched."""
    (tmp_path / "victim").write_text("mine")
    with Store(tmp_path / "out") as store:
        store.append([done_row(TRIAL)])
    return tmp_path / "out"


# files prepared in a store


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("name", [NAME, DAMAGED])
def test_a_store_with_other_things_than_files_is_one_sentence(rows, name, kind):
    text = (rows / NAME).read_text()
    if name == NAME:
        (rows / NAME).unlink()
    else:
        (rows / NAME).write_text(text.replace("0.5", "0.6"))
    lure(rows / name, kind)
    with pytest.raises(ValueError, match=f"{name} must be an ordinary file"):
        Store(rows).__enter__()


@pytest.mark.parametrize(
    "name", [".rows.damaged.partial", ".rows.jsonl.partial", LOCK, DAMAGED, NAME]
)
def test_a_link_in_a_store_does_not_lead_to_another_file(kmixup, rows, name):
    text = (rows / NAME).read_text()
    (rows / name).unlink(missing_ok=True)
    (rows / name).symlink_to("../victim")
    if name != NAME:
        (rows / NAME).write_text(text.replace("0.5", "0.6") + "evil\n")
    code, _, err = kmixup("repair", rows)
    assert code in (0, 2)
    assert err.count("\n") == (code == 2)
    assert (rows.parent / "victim").read_text() == "mine"


def test_checkpoints_are_not_written_through_a_link(rows, kmixup):
    (rows.parent / "grid.toml").write_text('data = "iris"\n')
    (rows.parent / "elsewhere").mkdir()
    (rows / "running").symlink_to("../elsewhere")
    code, _, err = kmixup("sweep", "grid.toml", "--out", rows, "--quiet")
    assert code == 2
    assert "running must be a folder, is a link: remove it" in err
    assert os.listdir(rows.parent / "elsewhere") == []


# two writers


def test_rows_stay_locked_when_the_lock_file_is_removed(rows):
    with Store(rows) as first:
        (rows / LOCK).unlink()
        with pytest.raises(ValueError, match="is being written by another sweep: wait for its"):
            Store(rows).__enter__()
        first.append([done_row(Trial("cancer", "mlp-iris"))])
    assert len(read(rows)) == 2


def test_a_writer_whose_rows_were_replaced_stops(rows):
    with Store(rows) as first:
        (rows / LOCK).unlink()
        (rows / NAME).unlink()
        with Store(rows) as second:
            second.append([done_row(Trial("cancer", "mlp-iris"))])
            with pytest.raises(OSError, match="could not be written to .* removed or replaced"):
                first.append([done_row(TRIAL)])
    assert [row.trial.data for row in read(rows)] == ["cancer"]


# damaged rows


@pytest.mark.parametrize("value", ["NaN", "1e999", "-Infinity", '"\\ud800"', "9" * 5000])
def test_a_row_with_a_number_that_is_none_is_trained_again(rows, value):
    text = (rows / NAME).read_text()
    (rows / NAME).write_text(text.replace('"seconds":0.5', f'"seconds":{value}'))
    with pytest.warns(UserWarning, match="line 2 of .* is damaged and skipped: run the sweep"):
        assert read(rows) == []
    with pytest.warns(UserWarning, match="is damaged and moved to"), Store(rows) as store:
        store.append([done_row(TRIAL)])
    assert read(rows) == [done_row(TRIAL)]


def test_published_rows_that_are_a_bomb_are_not_unpacked(rows, monkeypatch):
    (rows / PUBLISHED).write_bytes(gzip.compress(HEAD.encode() + bytes(1 << 20)))
    monkeypatch.setattr(_files, "ROOM", 1 << 10)
    with pytest.raises(ValueError, match="must not unpack to more than 100 times its size"):
        read(rows)
