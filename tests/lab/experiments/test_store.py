"""Stores survive crashes, full disks, damage and second writers."""

import errno
import fcntl
import gzip
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from sweeping import done_row, failed_row

from kmixup.lab.experiments import rows as module
from kmixup.lab.experiments.rows import DAMAGED, HEADER, NAME, PUBLISHED, Store, read, repair
from kmixup.lab.trial import Trial

HEAD = json.dumps(HEADER) + "\n"
TRIAL = Trial("iris", "mlp-iris")


def row(name, make=done_row, **changes):
    return make(replace(TRIAL, data=name), **changes)


def line(name, **changes):
    """A row as a line, with other values and their checksum."""
    plain = row(name).to_dict() | changes
    del plain["checksum"]
    return json.dumps(plain | {"checksum": module._checksum(plain)}) + "\n"


def names(rows):
    return [row.trial.data for row in rows]


def written(folder, text):
    (folder / NAME).write_text(text)
    return folder


@pytest.fixture
def rows(tmp_path):
    """A folder with the rows a and b."""
    with Store(tmp_path) as store:
        store.append([row("a"), row("b")])
    return tmp_path


# writing and reading


def test_rows_come_back_as_they_were_written(tmp_path):
    both = [row("a", error=0.1 + 0.2), row("b", failed_row, reason="é\n\u2028")]
    with Store(tmp_path / "new" / "deep") as store:
        store.append(both)
        store.append([])
    assert read(tmp_path / "new" / "deep") == both


def test_the_latest_row_of_a_trial_counts(tmp_path):
    with Store(tmp_path) as store:
        store.append([row("a", failed_row), row("b"), row("a", error=1.0)])
        store.append([row("c", failed_row)])
    assert read(tmp_path) == [row("b"), row("a", error=1.0), row("c", failed_row)]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc to name a handle")
def test_rows_are_forced_to_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(
        os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}"))
    )
    with Store(tmp_path) as store:
        assert synced[-1] == str(tmp_path)
        store.append([row("a")])
    assert synced[-1] == str(tmp_path / NAME)


def test_a_row_that_is_not_json_raises_before_a_byte_is_written(rows):
    with Store(rows) as store, pytest.raises(ValueError, match="Out of range float values"):
        store.append([row("c"), row("d", seconds=float("nan"))])
    assert read(rows) == [row("a"), row("b")]


# crashes


def test_every_prefix_of_a_store_can_be_resumed(tmp_path):
    with Store(tmp_path / "whole") as store:
        store.append([row("a"), row("b")])
        store.append([row("c")])
    contents = (tmp_path / "whole" / NAME).read_bytes()
    for cut in range(len(contents)):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / NAME).write_bytes(contents[:cut])
        kept = read(folder)
        with Store(folder) as store:
            store.append([row("d")])
        assert read(folder) == [*kept, row("d")]
        assert kept == [row("a"), row("b"), row("c")][: len(kept)]


def test_a_last_line_that_an_editor_left_without_its_end_is_kept(rows):
    text = (rows / NAME).read_text()
    written(rows, text.rstrip("\n"))
    with Store(rows) as store:
        store.append([row("c")])
    assert read(rows) == [row("a"), row("b"), row("c")]


# disks


@pytest.mark.parametrize("room", [0, 7, 60])
@pytest.mark.parametrize("cuttable", [True, False])
def test_a_full_disk_is_one_sentence_and_costs_no_row(rows, monkeypatch, room, cuttable):
    true_write = os.write

    def fails(*given):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fills_up(handle, data):
        nonlocal room
        if not room:
            fails()
        done = true_write(handle, data[:room])
        room -= done
        return done

    with Store(rows) as store:
        monkeypatch.setattr(os, "write", fills_up)
        if not cuttable:
            monkeypatch.setattr(os, "ftruncate", fails)
        with pytest.raises(
            OSError, match=rf"not be written to .*{NAME} \(No space left on device\)"
        ):
            store.append([row("c", versions={"fill": "x" * 100}), row("d")])
        assert read(rows) == [row("a"), row("b")]
        monkeypatch.undo()
    with Store(rows) as store:
        store.append([row("c")])
    assert read(rows) == [row("a"), row("b"), row("c")]


def test_a_folder_that_cannot_be_written_to_is_one_sentence(tmp_path, monkeypatch):
    def fail(*args, **more):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "mkdir", fail)
    with pytest.raises(
        OSError, match=r"new cannot be written to \(Read-only file system\): choose"
    ):
        Store(tmp_path / "new").__enter__()


def test_a_file_in_the_place_of_the_folder_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="out must be a folder, .*file is a file"):
        Store(tmp_path / "file").__enter__()
    with pytest.raises(OSError, match=r"cannot be written to \(Not a directory\): choose another"):
        Store(tmp_path / "file" / "below").__enter__()


def test_rows_are_not_written_into_a_file_that_was_taken_away(rows):
    with Store(rows) as store:
        (rows / NAME).rename(rows / "elsewhere")
        with pytest.raises(
            OSError, match=r"could not be written to .* \(it was removed or replaced\)"
        ):
            store.append([row("c")])
    assert not (rows / NAME).exists()


# two writers


def test_a_second_writer_raises_until_the_first_has_left(rows):
    sentence = "is being written by another sweep: wait for its end, or choose another folder"
    with Store(rows) as first:
        with pytest.raises(ValueError, match=sentence):
            Store(rows).__enter__()
        first.append([row("c")])
    with Store(rows) as second:
        second.append([row("d")])
    assert names(read(rows)) == ["a", "b", "c", "d"]


def test_a_writer_that_is_killed_leaves_no_lock(rows):
    code = f"""if True:
        import os, signal
        from kmixup.lab.experiments.rows import Store
        with Store({str(rows)!r}):
            os.kill(os.getpid(), signal.SIGKILL)
    """
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    with Store(rows) as store:
        store.append([row("c")])


def test_a_disk_without_locks_is_one_sentence(rows, monkeypatch):
    def fail(handle, how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(OSError, match=r"cannot be written to \(No locks available\): choose"):
        Store(rows).__enter__()


# files that are not ours


@pytest.mark.parametrize(
    "text",
    [
        '{"format": "kmixup rows", "version": 2}\n',
        '{"id": "a", "status": "done"}\n',
        "data,error\niris,0.1\n",
        "[1]\n",
    ],
)
def test_files_of_other_versions_or_programs_raise_and_stay_unchanged(tmp_path, text):
    written(tmp_path, text)
    sentence = f"{NAME} must hold rows of version 1, it begins with b'.*: choose another folder"
    for look in (read, lambda folder: Store(folder).__enter__()):
        with pytest.raises(ValueError, match=sentence):
            look(tmp_path)
    assert (tmp_path / NAME).read_text() == text
    written(tmp_path, HEAD)
    with Store(tmp_path):  # it is not locked
        pass


@pytest.mark.parametrize(
    "damaged",
    [
        '{"id": "b", "st',
        "",
        "3",
        "[3]",
        "[" * 100_000,
        "\x00\x00",
        '{"id": "b"}',
        '{"id": "b", "status": "done"}',
        line("b").replace("0.5", "0.6").rstrip(),
        line("b").replace('"data": "b"', '"data": "c"').rstrip(),
        line("b").replace('"seconds": 0.5, ', "").rstrip(),
        line("b").rstrip() + line("d").rstrip(),
    ],
)
@pytest.mark.parametrize("last", [False, True])
def test_a_damaged_line_is_moved_to_a_file_of_its_own(tmp_path, damaged, last):
    text = HEAD + line("a") + damaged + "\n" + line("c") * (not last)
    written(tmp_path, text)
    rest = ["a"] if last else ["a", "c"]
    with pytest.warns(UserWarning, match=f"line 3 of .*{NAME} is damaged and skipped: run the"):
        assert names(read(tmp_path)) == rest
    assert (tmp_path / NAME).read_text() == text
    sentence = f"line 3 of .*{NAME} is damaged and moved to .*{DAMAGED}: trials without a row"
    with pytest.warns(UserWarning, match=sentence):
        store = Store(tmp_path).__enter__()
    with pytest.raises(ValueError, match="is being written by another sweep"):
        Store(tmp_path).__enter__()
    store.append([row("e")])
    store.__exit__()
    assert (tmp_path / DAMAGED).read_text() == damaged + "\n"
    assert names(read(tmp_path)) == [*rest, "e"]


def test_a_store_is_checked_and_repaired_on_request(rows):
    assert repair(rows) is None
    whole = (rows / NAME).read_text()
    for number in (1, 2):
        written(rows, whole.replace('"seconds":0.5', '"seconds":0.6', number))
        lines = "line 2 of" if number == 1 else "lines 2, 3 of"
        assert repair(rows).startswith(f"{lines} {rows / NAME} ")
        assert len(read(rows)) == 2 - number
        assert repair(rows) is None
    assert (rows / DAMAGED).read_text().count('"seconds":0.6') == 3
    for look in (read, repair):
        with pytest.raises(FileNotFoundError, match=f"must be the folder of a sweep, .* no {NAME}"):
            look(rows / "elsewhere")


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_rows_with_other_line_ends_are_read_and_kept(rows, end):
    text = (rows / NAME).read_text().replace("\n", end)
    (rows / NAME).write_bytes(text.encode())
    with Store(rows) as store:
        store.append([row("c")])
    assert names(read(rows)) == ["a", "b", "c"]
    assert (rows / NAME).read_bytes().startswith(text.encode())


@pytest.mark.parametrize("between", ["", " ", "\x00", "\x1e"])
def test_a_file_without_line_ends_is_never_cut(rows, between):
    text = (rows / NAME).read_text().replace("\n", between)
    written(rows, text)
    with pytest.raises(ValueError, match="must hold rows of version 1"):
        Store(rows).__enter__()
    assert (rows / NAME).read_text() == text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"trial": {"data": "b", "model": "m", "method": {"depth": 3}}}, "method.depth is not a"),
        (
            {"trial": {"data": "b", "model": "m", "seed": -1}},
            "seed must be a whole number, at least 0",
        ),
        ({"trial": []}, "'list' object has no attribute 'items'"),
        ({"status": "lost"}, "status must be done or failed, got 'lost'"),
        ({"data": {"colour": "red"}}, "'shape'"),
    ],
)
def test_a_row_that_this_version_cannot_read_raises_with_the_reason(tmp_path, changes, reason):
    written(tmp_path, HEAD + line("a") + line("b", **changes))
    sentence = f"line 3 of .*{NAME} must be a row that this version can read, {reason}"
    with pytest.raises(ValueError, match=sentence):
        read(tmp_path)


# published rows


def publish(folder):
    """Compress the rows of a folder, as they are published."""
    (folder / PUBLISHED).write_bytes(gzip.compress((folder / NAME).read_bytes()))
    (folder / NAME).unlink()


def test_published_rows_are_read_and_new_ones_go_to_a_file_beside_them(rows):
    publish(rows)
    before = (rows / PUBLISHED).read_bytes()
    assert read(rows) == [row("a"), row("b")]
    with Store(rows) as store:
        store.append([row("a", error=0.5), row("c")])
    assert read(rows) == [row("b"), row("a", error=0.5), row("c")]
    assert (rows / PUBLISHED).read_bytes() == before


def test_published_rows_that_are_damaged_are_one_sentence(rows):
    text = (rows / NAME).read_text()
    (rows / PUBLISHED).write_bytes(gzip.compress(text.replace("0.5", "0.6", 1).encode()))
    with pytest.raises(ValueError, match=f"line 2 of .*{PUBLISHED} is damaged: restore"):
        read(rows)
    publish(rows)
    whole = (rows / PUBLISHED).read_bytes()
    for damaged in (whole[:-20], b"rows", whole[:30] + b"x" + whole[31:]):
        (rows / PUBLISHED).write_bytes(damaged)
        with pytest.raises(ValueError, match=f"{PUBLISHED} must be a gzip file, it is damaged"):
            read(rows)
