"""Attacks: files made to overwrite others, to hang, to fill memory or to command the terminal."""

import gzip
import hashlib
import io
import json
import os
import re
import signal
import struct
import sys
import zipfile
import zlib
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import optuna
import pytest
import torch
from rich.table import Table
from rich.text import Text
from sweeping import done_row, failed_row

from kmixup.lab import _files
from kmixup.lab._provenance import machine, versions
from kmixup.lab._terminal import SafeConsole
from kmixup.lab.data import load as load_data
from kmixup.lab.data.folders import read_images
from kmixup.lab.data.own import read_npz
from kmixup.lab.evaluate.scores import Scores
from kmixup.lab.experiments import references
from kmixup.lab.experiments import rows as rows_module
from kmixup.lab.experiments.grid import read_config
from kmixup.lab.experiments.rows import (
    DAMAGED,
    HEADER,
    LOCK,
    NAME,
    PUBLISHED,
    Store,
    read,
)
from kmixup.lab.experiments.search import url_of
from kmixup.lab.models import build
from kmixup.lab.report.frame import results_of, tables_of
from kmixup.lab.report.render_text import markdown
from kmixup.lab.report.sweep import Preface, sweep_document
from kmixup.lab.results import frame_of
from kmixup.lab.train import checkpoint
from kmixup.lab.train.loop import train
from kmixup.lab.train.model import Model, _checksum, load
from kmixup.lab.trial import Protocol, Trial

TRIAL = Trial("iris", "mlp-iris")
HEAD = json.dumps(HEADER) + "\n"


@pytest.fixture(autouse=True)
def _no_hang():
    """End a test that waits for ever, as one that reads a named pipe would."""
    signal.alarm(600)
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


@pytest.mark.parametrize("name", ["running", "running/ID"])
def test_checkpoints_are_not_written_through_a_link(rows, kmixup, name):
    grid = rows.parent / "grid.toml"
    grid.write_text('data = "iris"\n')
    (rows.parent / "elsewhere").mkdir()
    link = rows / name.replace("ID", read_config(grid)[0].id)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(rows.parent / "elsewhere")
    code, _, err = kmixup("sweep", "grid.toml", "--out", rows, "--quiet")
    assert code == 2
    assert f"{link} must be a folder, is a link: remove it" in err
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


def test_a_run_whose_lock_was_removed_stops(tmp_path, monkeypatch):
    save = checkpoint.save

    def save_and_unlock(path, state):
        save(path, state)
        (path.parent / checkpoint.LOCK).unlink()
        with checkpoint.locked(path.parent):  # another run begins
            pass

    monkeypatch.setattr(checkpoint, "save", save_and_unlock)
    with pytest.raises(OSError, match="lock was removed, another run may be training in"):
        train(replace(TRIAL, protocol=Protocol(epochs=3)), out=tmp_path)
    assert checkpoint.completed_epochs(tmp_path / checkpoint.NAME) == 1
    assert not (tmp_path / "record.json").exists()


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


WRONG = [None, "x", -1, 10**400, [[1]], {"a": 1}]


def places(value, place=()):
    """The places of all entries of a JSON value."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, entry in entries:
        yield (*place, key)
        if isinstance(entry, dict | list):
            yield from places(entry, (*place, key))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # means of infinite scores
def test_a_forged_row_is_read_and_reported_or_one_sentence(tmp_path):
    row = replace(
        done_row(replace(TRIAL, shifts=(("noise", (8.0,)),))),
        shifts={"noise": {8.0: Scores(0.2, 1.0, 0.1)}},
        versions=versions(),
        machine=machine(),
        training={"error": 0.1, "linear": 0.1, "fitted": True},
    )
    plain = row.to_dict()
    del plain["checksum"]
    shown = []
    for place in places(plain):
        for wrong in WRONG:
            forged = deepcopy(plain)
            forged["trial"]["seed"] = len(shown)  # another trial each
            inner = reduce(getitem, place[:-1], forged)
            inner[place[-1]] = wrong
            forged["checksum"] = rows_module._checksum(forged)
            (tmp_path / NAME).write_text(HEAD + json.dumps(forged) + "\n")
            with suppress(ValueError):  # a sentence; other errors are none
                shown += read(tmp_path)
    assert 100 < len(shown) < 300
    about = Preface(name="forged", command="")
    frame = frame_of({row.id: row for row in shown}.values())
    markdown(sweep_document(frame, results_of(frame, tables_of(frame)), about))


def test_published_rows_that_are_a_bomb_are_not_unpacked(rows, monkeypatch):
    (rows / PUBLISHED).write_bytes(gzip.compress(HEAD.encode() + bytes(1 << 20)))
    monkeypatch.setattr(_files, "ROOM", 1 << 10)
    with pytest.raises(ValueError, match="must not unpack to more than 100 times its size"):
        read(rows)


@pytest.mark.usefixtures("little_memory")
def test_a_line_of_published_rows_that_are_a_bomb_is_not_parsed(rows):
    line = b"[" + b"[]," * (20 << 20) + b"[]]\n"
    (rows / PUBLISHED).write_bytes(gzip.compress(HEAD.encode() + line, 1))
    with pytest.raises(ValueError, match=r"line 2 of \S*rows\.jsonl\.gz is damaged: restore"):
        read(rows)


def test_a_checkpoint_that_is_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    plain, packed = io.BytesIO(), io.BytesIO()
    torch.save({"history": [], "weights": torch.zeros(1 << 18)}, plain)
    with (
        zipfile.ZipFile(plain) as archive,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as bomb,
    ):
        for member in archive.namelist():
            bomb.writestr(member, archive.read(member))
    content = packed.getvalue()
    path = tmp_path / checkpoint.NAME
    path.write_bytes(hashlib.sha256(content).digest() + content)
    monkeypatch.setattr(_files, "ROOM", 1 << 10)
    with pytest.raises(ValueError, match=r"must not unpack to more than 100 times its size"):
        checkpoint.completed_epochs(path)


@pytest.mark.parametrize("text", ["[]", '{"a": 1}', '{"a": ["x", "y"]}', "[" * 100_000, '"'])
def test_damaged_scores_of_reference_models_are_one_sentence(tmp_path, text):
    (tmp_path / references.NAME).write_text(text)
    with pytest.raises(ValueError, match=r"references\.json must (hold scores|be JSON)"):
        references._stored(tmp_path / references.NAME)


# bombs: small files of huge contents


STATM = Path("/proc/self/statm")  # of Linux: memory in pages


@pytest.fixture
def little_memory():
    """Let what takes over a gigabyte more than now fail instead of slowing the machine down."""
    if not STATM.exists():
        pytest.skip("needs /proc to know its memory")
    resource = pytest.importorskip("resource")
    used = int(STATM.read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


def png(path, width, height):
    """Write a PNG of one colour, which takes few bytes whatever its size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    chunk = zlib.compressobj(9)
    row = bytes(1 + width // 8)
    data = b"".join(chunk.compress(row) for _ in range(height)) + chunk.flush()

    def part(kind, content):
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    head = part(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + head + part(b"IDAT", data) + part(b"IEND", b""))
    return path


@pytest.mark.usefixtures("little_memory")
def test_a_folder_of_image_bombs_is_rejected_before_it_is_decoded(tmp_path):
    paths = [png(tmp_path / "images" / f"{i}.png", 8000, 8000) for i in range(8)]
    assert sum(path.stat().st_size for path in paths) < 100_000
    with pytest.raises(ValueError, match="images must not unpack to more than 100 "):
        read_images(paths)


@pytest.mark.usefixtures("little_memory")
def test_image_bombs_by_stretching_are_rejected(tmp_path):
    with pytest.raises(ValueError, match="must not unpack to more than 100 times its size"):
        read_images([png(tmp_path / "a.png", 8, 8)], resize=(50_000, 50_000))


@pytest.mark.parametrize("shape", [(40_000, 5_000), (10**7, 20, 1)])
@pytest.mark.usefixtures("little_memory")
def test_an_npz_of_small_numbers_is_rejected_before_they_become_floats(tmp_path, shape):
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(shape, np.int8), y=np.arange(shape[0]))
    with pytest.raises(ValueError, match=r"^\S*a\.npz must not unpack to more than 100 "):
        read_npz(tmp_path / "a.npz")


@pytest.mark.usefixtures("little_memory")
def test_an_npy_header_that_lies_about_its_shape_allocates_nothing(tmp_path):
    header = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": (10**12, 2)}
    np.lib.format.write_array_header_1_0(header, about)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue())
    with pytest.raises(ValueError, match=r"^\S*a\.npz must not unpack to more than 100 "):
        read_npz(tmp_path / "a.npz")


@pytest.fixture
def model(tmp_path):
    """The folder of a small model, and a function that changes its settings."""
    data = load_data("iris")
    net = build("mlp-iris", in_shape=data.shape, num_classes=data.outputs)
    Model.of(net, TRIAL, data, {}).save(tmp_path / "run")
    path = tmp_path / "run" / "model.json"

    def forge(weights=None, **changes):
        plain = json.loads(path.read_text()) | changes
        if weights is not None:
            (path.parent / "model.safetensors").write_bytes(weights)
            plain["weights"] = hashlib.sha256(weights).hexdigest()
        del plain["checksum"]
        path.write_text(json.dumps(plain | {"checksum": _checksum(plain)}))
        return path.parent

    return forge


@pytest.mark.usefixtures("little_memory")
def test_a_model_with_millions_of_nested_numbers_is_rejected_before_parsing(model):
    nested = [[[[[[0.5]]]]]]
    folder = model(inputs={"shape": [4], "mean": [nested] * 700_000})
    with pytest.raises(ValueError, match=r"model\.json must have at most 4,000,000 values, has"):
        load(folder)


@pytest.mark.parametrize(
    "weights",
    [
        b"",
        b"\x08\x00\x00\x00\x00\x00\x00\x00{{{{{{{{",
        b"\xff" * 7 + b"\x7f{}",
        b"\x02\x00\x00\x00\x00\x00\x00\x00[]",
    ],
)
def test_damaged_headers_of_weights_are_one_sentence(model, weights):
    with pytest.raises(ValueError, match=r"model\.safetensors must be a whole file of weights"):
        load(model(weights))


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("name", ["model.json", "model.safetensors", "record.json"])
def test_a_model_of_other_things_than_files_is_one_sentence(model, name, kind):
    folder = model()
    (folder / name).unlink(missing_ok=True)
    lure(folder / name, kind)
    with pytest.raises(ValueError, match="must be the folder of a run|must be an ordinary file"):
        load(folder)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("name", ["a/1.png", "data.npz", "data.csv", "data.parquet", "data.xlsx"])
def test_data_that_are_no_ordinary_files_are_one_sentence(tmp_path, name, kind):
    path = tmp_path / "data" / name
    path.parent.mkdir(parents=True)
    lure(path, kind)
    if name == "a/1.png":
        png(tmp_path / "data/b/1.png", 8, 8)
        path = tmp_path / "data"
    with pytest.raises(ValueError, match="must be an ordinary file|must have a sub-folder"):
        load_data(str(path))


# grids


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("trials = 1000000000000", "the grid must have at most 100,000 trials, has 1,000,000,000,"),
        ("k = [1, 2]\ntrials = 60000", "the grid must have at most 100,000 trials, has 120,000:"),
        (
            "\n".join(f"{name} = {list(range(1, 200))}" for name in ("k", "limit", "size")),
            "the grid must have at most 100,000 trials, has 7,880,599",
        ),
        ("k = " + "[" * 20_000, "grid.toml must be TOML: it is nested too deeply"),
        ("protocol = [[[[1]]]]", "grid.toml has a value of the wrong kind"),
        ("k = {a = 1}", "k must be a whole number"),
        ("resize = [[[1, 2], 3]]", "grid.toml has a value of the wrong kind"),
        ("noise = [[1]]", "grid.toml has a value of the wrong kind"),
        ("alpha = 1" + "0" * 400, "grid.toml has a value of the wrong kind"),
        ("[protocol]\nnesterov = 'no'", "nesterov must be bool | None, got 'no'"),
        ("[protocol]\ndrop_last = 1979-05-27", "drop_last must be bool | None, got"),
        ("target = 5", "target must be str | None, got 5"),
        ("scaling = true", "scaling must be "),
        ("#" * 200_000, "grid.toml must have at most 100,000 bytes"),
    ],
)
@pytest.mark.usefixtures("little_memory")
def test_a_hostile_grid_is_one_sentence(kmixup, here, text, problem):
    (here / "grid.toml").write_text(f'data = "iris"\n{text}\n')
    code, out, err = kmixup("sweep", "grid.toml", "--dry-run")
    assert (code, out) == (2, "")
    assert problem in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_grid_that_is_no_ordinary_file_is_one_sentence(tmp_path, kind):
    lure(tmp_path / "grid.toml", kind)
    with pytest.raises(ValueError, match=r"grid\.toml must be an ordinary file"):
        read_config(tmp_path / "grid.toml")


# the terminal

ESCAPES = "\x1b[2J\x1b]0;evil\x07\x9b31m\r\u202e"


def check_plain(text):
    assert text.translate(dict.fromkeys(map(ord, "\n\t"))).isprintable()


@pytest.mark.parametrize("shown", ["so far", "running"])
def test_the_error_of_a_failed_row_does_not_command_the_terminal(kmixup, here, shown, engine):
    (here / "grid.toml").write_text('data = "iris"\nmethod = ["erm", "mixup"]\n')
    erm, mixup = read_config(here / "grid.toml")
    failed = failed_row(mixup, reason=f"ValueError: {ESCAPES}is evil")
    with Store(here / "out") as store:
        store.append([done_row(erm), failed])
    words = ["--so-far"] if shown == "so far" else []
    if not words:
        engine(SimpleNamespace(workers=1, rows=lambda units, **where: (yield [failed])))
    code, out, err = kmixup("sweep", "grid.toml", "--out", "out", *words)
    assert code == 1
    assert "ValueError: [2J" in err
    check_plain(out + err)


def test_names_of_images_do_not_command_the_terminal(kmixup, here):
    for i in range(6):
        png(here / "images" / "ab"[i % 2] / f"{ESCAPES}{i}.png", 8, 8)
    words = ("--epochs", 1, "--batch-size", 2, "--k", 1, "--out", "run")
    code, _, err = kmixup("train", "images", "--model", "mlp-2", *words)
    assert code == 0, err
    check_plain(err)
    code, out, err = kmixup("predict", "run", "images")
    assert (code, out.count("\n")) == (0, 7)
    check_plain(out + err)
    (here / "images" / "a" / f"{ESCAPES}9.png").write_bytes(b"damaged")
    code, out, err = kmixup("predict", "run", "images")
    assert (code, out) == (2, "")
    assert "must be a whole image" in err
    check_plain(err)


def test_reports_and_progress_do_not_command_the_terminal():
    stream = io.StringIO()
    console = SafeConsole(file=stream, force_terminal=True, color_system="standard", width=60)
    table = Table("name")
    table.add_row(Text(f"{ESCAPES}red", style="red"))
    console.print(table)
    console.print(f"{ESCAPES}more", markup=False)
    text = stream.getvalue()
    assert "\x1b[31m" in text  # the console's own
    assert "red" in text
    assert "more" in text
    for escape in ("\x1b[2J", "\x1b]0", "\x07", "\x9b", "\r", "\u202e"):
        assert escape not in text


def test_the_traceback_of_a_bug_does_not_command_the_terminal(kmixup, monkeypatch, capsys):
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    kmixup("--version")
    try:
        raise TypeError(f"{ESCAPES}evil")
    except TypeError:
        sys.excepthook(*sys.exc_info())
    text = capsys.readouterr().err
    assert text.endswith("evil\n")
    check_plain(text)


# the study of a search


FEW = ("--strategy", "simple", "--k", 1, "--k", 2, "--trials", 1, "--epochs", 1)


@pytest.mark.parametrize(
    "content", [b"notes", b"", b"SQLite format 3\0" + bytes(84), "folder", "pipe"]
)
def test_a_study_of_another_program_is_never_deleted(kmixup, here, engine, content):
    (here / "out").mkdir()
    path = here / "out" / "study.db"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        lure(path, content)
    code, out, err = kmixup("tune", "iris", *FEW, "--out", "out", "--quiet")
    assert (code, out) == (2, "")
    assert "study.db" in err
    assert err.count("\n") == 1
    assert not isinstance(content, bytes) or path.read_bytes() == content
    assert os.listdir(here / "out") == ["study.db"]


def test_a_study_of_another_program_is_known_from_that_of_an_earlier_search(kmixup, here, engine):
    for _ in range(2):
        code, _, err = kmixup("tune", "iris", *FEW, "--out", "out", "--quiet")
        assert code == 0, err
    names = optuna.get_all_study_names(url_of(here / "out" / "study.db"))
    assert "k-mixup" in names


# code in the current folder


def test_the_current_folder_is_searched_for_code_only_if_a_grid_names_some(kmixup, here):
    (here / "numexpr.py").write_text("raise SystemExit('hijacked')\n")
    (here / "grid.toml").write_text('data = "iris"\n[protocol]\nepochs = 1\n')
    before = list(sys.path)
    assert kmixup("sweep", "grid.toml", "--dry-run")[0] == 0
    assert sys.path == before
    (here / "own_attacked.py").write_text(
        "from torch import nn\n"
        "def net(*, in_shape, num_classes):\n    return nn.Linear(*in_shape, num_classes)\n"
    )
    (here / "grid.toml").write_text('data = "iris"\nmodel = ["mlp-iris", "own_attacked:net"]\n')
    assert kmixup("sweep", "grid.toml", "--dry-run")[0] == 0
    assert sys.path == [*before, str(here)]


def test_workers_import_nothing_from_the_current_folder(kmixup, here):
    for name in ("numexpr", "struct"):  # which pandas imports, and multiprocessing
        (here / f"{name}.py").write_text("open('hijacked', 'w')\n")
    (here / "grid.toml").write_text('data = "iris"\n[protocol]\nepochs = 1\n')
    code, _, err = kmixup("sweep", "grid.toml", "--workers", 1, "--no-report", "--quiet")
    assert (code, err) == (0, "")
    assert not (here / "hijacked").exists()


def test_a_model_that_names_no_code_is_loaded_without_the_current_folder(kmixup, here, model):
    (here / "new.csv").write_text("a,b,c,d\n1,2,3,4\n")
    np.savez(here / "new.npz", x=np.ones((2, 4), np.float32))
    before = list(sys.path)
    code, _, err = kmixup("predict", model(), "new.npz", "--allow-code")
    assert code == 0, err
    assert sys.path == before


# errors of the system


def test_an_error_of_the_system_names_the_file(kmixup, here, model):
    np.savez(here / "new.npz", x=np.ones((2, 4), np.float32))
    (here / "file").touch()
    code, out, err = kmixup("predict", model(), "new.npz", "--out", "file/below/out.csv")
    assert (code, out) == (2, "")
    assert re.fullmatch(r"kmixup: \S*file\S* cannot be used \(.*\): .*\n", err)


def test_too_little_memory_names_the_file(kmixup, here, monkeypatch):
    def fail(*args, **more):
        raise MemoryError

    np.savez(here / "a.npz", x=np.ones((6, 4)), y=np.arange(6) % 2)
    monkeypatch.setattr(np.lib.format, "read_array", fail)
    code, _, err = kmixup("train", "a.npz")
    assert code == 1
    assert "out of memory (a.npz takes more memory than there is): use fewer samples" in err


# outputs


@pytest.mark.parametrize("name", [".out.csv.partial", "out.csv"])
def test_predictions_are_not_written_through_a_link(kmixup, here, model, name):
    np.savez(here / "new.npz", x=np.ones((2, 4), np.float32))
    (here / "victim").write_text("mine")
    (here / name).symlink_to("victim")
    code, _, err = kmixup("predict", model(), "new.npz", "--out", "out.csv")
    assert code == 0, err
    assert (here / "victim").read_text() == "mine"
    assert (here / "out.csv").read_text().count("\n") == 3


@pytest.mark.parametrize("end", ["", ".partial"])
def test_a_run_is_not_written_through_links(kmixup, here, end):
    names = ("record.json", "model.json", "model.safetensors", "checkpoint.pt")
    (here / "run").mkdir()
    (here / "victim").write_text("mine")
    for name in names:
        (here / "run" / (f".{name}{end}" if end else name)).symlink_to("../victim")
    words = ("--epochs", 1, "--out", "run", "--overwrite", "--quiet")
    code, _, err = kmixup("train", "iris", *words)
    assert code == 0, err
    assert (here / "victim").read_text() == "mine"
    assert not any((here / "run" / name).is_symlink() for name in names)


# the page about all of them


def test_the_table_of_attacks_names_each_test_and_how_many_there_are(request):
    page = Path(__file__).parents[2] / "docs" / "reliability.md"
    section = page.read_text().partition("## Hostile files")[2].partition("\n## ")[0]
    table = re.findall(r"^\| .* \| (\d+) \| 0 \| `(\w+)` \|$", section, re.MULTILINE)
    here = [item.name for item in request.session.items if item.path == Path(__file__)]
    if "test_too_little_memory_names_the_file" not in here or len(here) < 20:
        pytest.skip("counts the tests of a run of the whole file")
    left = [name for name in here if name != request.node.name]
    for number, words in table:
        found = [name for name in here if words in name]
        assert len(found) == int(number), words
        left = [name for name in left if name not in found]
    assert left == []
