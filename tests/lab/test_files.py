import csv
import gzip
import os
import threading

import pytest

from kmixup.lab import _files
from kmixup.lab._files import (
    check_regular,
    csv_text,
    digest_of,
    in_place,
    locked,
    open_regular,
    parsing,
    read_bytes,
    read_gzip,
    read_json,
    read_toml,
    remove_partial,
    replace_content,
)

# writing


def test_a_file_is_replaced_whole_and_nothing_is_left_of_a_failed_write(tmp_path):
    path = tmp_path / "new" / "a.txt"
    replace_content(path, "old")
    with pytest.raises(RuntimeError):
        _files.replace_file(path, _half)
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["a.txt"]


def _half(stream):
    stream.write(b"half")
    raise RuntimeError


@pytest.mark.parametrize("name", ["a.txt", ".a.txt.partial"])
def test_a_link_that_lies_ready_is_never_written_through(tmp_path, name):
    (tmp_path / "victim").write_text("mine")
    (tmp_path / name).symlink_to("victim")
    replace_content(tmp_path / "a.txt", "theirs")
    assert (tmp_path / "victim").read_text() == "mine"
    assert (tmp_path / "a.txt").read_text() == "theirs"
    assert not (tmp_path / "a.txt").is_symlink()


def test_a_guessed_name_of_the_new_file_is_not_opened(tmp_path, monkeypatch):
    monkeypatch.setattr("secrets.token_hex", lambda n: "guessed")
    (tmp_path / ".guessed.partial").symlink_to("victim")
    with pytest.raises(FileExistsError):
        replace_content(tmp_path / "a.txt", "theirs")
    assert not (tmp_path / "victim").exists()


def test_what_killed_writers_left_is_removed_but_not_what_is_written_now(tmp_path):
    (tmp_path / ".old.partial").touch()
    (tmp_path / ".link.partial").symlink_to(tmp_path / "victim")
    _files.replace_file(tmp_path / "a.txt", lambda stream: remove_partial(tmp_path))
    assert sorted(os.listdir(tmp_path)) == [".link.partial", "a.txt"]


def test_many_writers_and_readers_of_one_file_never_meet_half_of_it(tmp_path):
    path, wrong = tmp_path / "a.txt", []
    replace_content(path, "0" * 5000)

    def write(digit):
        try:
            for _ in range(20):
                replace_content(path, digit * 5000)
                text = read_bytes(path).decode()
                wrong.extend([] if len(text) == 5000 and len(set(text)) == 1 else [text])
        except OSError as error:
            wrong.append(error)

    threads = [threading.Thread(target=write, args=(str(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# locks


def test_a_lock_excludes_others_until_it_is_left(tmp_path):
    path = tmp_path / "rows"
    with locked(path) as file:
        os.write(file, b"a")
        with pytest.raises(BlockingIOError), locked(path):
            pass
        assert in_place(file, path)
    with locked(path) as file:
        os.write(file, b"b")
    assert path.read_bytes() == b"ab"


def test_a_locked_file_that_loses_its_name_is_noticed(tmp_path):
    path = tmp_path / "rows"
    with locked(path) as file:
        replace_content(path, "another")
        assert not in_place(file, path)
        path.unlink()
        assert not in_place(file, path)


def test_a_link_is_not_locked(tmp_path):
    (tmp_path / "rows").symlink_to("victim")
    with (
        pytest.raises(ValueError, match="rows must be an ordinary file"),
        locked(tmp_path / "rows"),
    ):
        pass
    assert not (tmp_path / "victim").exists()


# reading


def test_an_ordinary_file_passes_and_so_does_a_link_to_one(tmp_path):
    (tmp_path / "a").touch()
    (tmp_path / "b").symlink_to(tmp_path / "a")
    check_regular(tmp_path / "a")
    check_regular(tmp_path / "b")
    assert read_bytes(tmp_path / "b") == b""


def test_links_are_not_read_where_they_must_not(tmp_path):
    (tmp_path / "a").touch()
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(ValueError, match="b must be an ordinary file, not a link: copy"):
        read_bytes(tmp_path / "b", follow=False)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_other_things_than_files_are_refused(tmp_path, kind):
    path = tmp_path / "it"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/null")
    else:
        path.mkdir()
    uses = [check_regular, open_regular, read_json, lambda it: locked(it).__enter__()]
    for use in uses if kind == "folder" else [*uses, digest_of]:
        with pytest.raises(ValueError, match="it must be an ordinary file"):
            use(path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' * 100_000, "[1", "", "\xff"])
def test_json_that_cannot_be_read_is_one_sentence(tmp_path, text):
    (tmp_path / "a.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"a\.json must be JSON, could not be read: "):
        read_json(tmp_path / "a.json")


def test_json_of_too_many_values_is_not_parsed(tmp_path, monkeypatch):
    (tmp_path / "a.json").write_text("[" + ", ".join(["[[1]]"] * 50) + "]")
    assert len(read_json(tmp_path / "a.json")) == 50
    monkeypatch.setattr(_files, "JSON_VALUES", 100)
    with pytest.raises(ValueError, match=r"a\.json must have at most 100 values, has 150"):
        read_json(tmp_path / "a.json")
    monkeypatch.setattr(_files, "JSON_BYTES", 100)
    with pytest.raises(ValueError, match=r"a\.json must have at most 100 bytes, has "):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize("text", ["a = " + "[" * 50_000, "a = ", "a = " + "{b=" * 20_000, "\xff"])
def test_toml_that_cannot_be_read_is_one_sentence(tmp_path, text):
    (tmp_path / "a.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"a\.toml must be TOML: "):
        read_toml(tmp_path / "a.toml")


def test_a_large_toml_file_is_not_parsed(tmp_path):
    (tmp_path / "a.toml").write_text("#" * 100_001)
    with pytest.raises(ValueError, match=r"a\.toml must have at most 100,000 bytes, has 100,001"):
        read_toml(tmp_path / "a.toml")


def test_a_gzip_bomb_is_not_unpacked(tmp_path, monkeypatch):
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(1 << 20)))
    assert len(read_gzip(tmp_path / "a.gz")) == 1 << 20
    monkeypatch.setattr(_files, "ROOM", 1 << 10)
    with pytest.raises(ValueError, match=r"a\.gz must not unpack to more than 100 times its size"):
        read_gzip(tmp_path / "a.gz")


def test_too_little_memory_is_said_as_such(tmp_path):
    with pytest.raises(MemoryError, match="takes more memory than"), parsing(tmp_path, "file"):
        raise MemoryError


def test_a_digest_depends_on_names_and_contents_but_not_on_the_place(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder / "cat").mkdir(parents=True)
        (tmp_path / folder / "cat/1.png").write_bytes(b"meow")
    whole = digest_of(tmp_path / "a")
    assert whole == digest_of(tmp_path / "b")
    (tmp_path / "b/cat/1.png").write_bytes(b"woof")
    assert digest_of(tmp_path / "b") != whole
    (tmp_path / "a/cat/1.png").rename(tmp_path / "a/cat/2.png")
    assert digest_of(tmp_path / "a") != whole


@pytest.mark.parametrize("text", ["=1+2", "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "\t=1"])
def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text):
    (row,) = csv.reader([csv_text([["1", text]])])
    assert row == ["1", f"'{text}"]


def test_numbers_and_other_text_stay_as_they_are():
    cells = ["-1", "+2.5e3", "-inf", "a=b", "", "'x"]
    assert csv_text([cells]) == "-1,+2.5e3,-inf,a=b,,'x\n"
