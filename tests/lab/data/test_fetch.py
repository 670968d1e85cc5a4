import hashlib

import pytest

from kmixup.lab.data import download as fetch
from kmixup.lab.data.download import Remote, data_folder, find, missing, places, verify

CONTENT = b"numbers, many of them\n" * 1000


def md5(content):
    return f"md5:{hashlib.md5(content).hexdigest()}"


def test_the_data_folder_comes_before_the_cache_and_parts_last(tmp_path, monkeypatch, cache):
    monkeypatch.setenv("KMIXUP_DATA", str(tmp_path))
    assert places(("a", "")) == [tmp_path / "a", tmp_path, cache / "a", cache]
    whole_and_parts = places(("a", ""), parts=True)
    assert whole_and_parts[:4] == places(("a", ""))
    assert [p.name for p in whole_and_parts[4:]] == ["a-sample", "a-subset"] * 2


def test_a_given_root_is_the_only_place(tmp_path, monkeypatch):
    monkeypatch.setenv("KMIXUP_DATA", str(tmp_path))
    root = tmp_path / "here"
    assert places(("a",), root=root) == [root, root / "a"]


def test_files_are_found_only_where_all_of_them_are(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for path in (one / "x", two / "inner/x", two / "y"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert find(["inner/x", "y"], [one, two]) == [two / "inner/x", two / "y"]
    assert missing(["inner/x", "y"], one) == ["y"]
    assert find(["z"], [one, two]) is None


def test_a_data_folder_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("KMIXUP_DATA", "/no/such/folder")
    with pytest.raises(ValueError, match="KMIXUP_DATA must name a folder, '/no/such/folder' is"):
        data_folder()


def test_a_file_with_another_checksum_is_refused(tmp_path):
    path = tmp_path / "file.data"
    path.write_bytes(CONTENT)
    verify(path, Remote("http://x/file.data", "file.data", md5(CONTENT), "here"))
    verify(path, Remote("http://x/file.data", "file.data"))
    with pytest.raises(ValueError, match=r"must have the md5 \w+ \(here\), has \w+: it is damaged"):
        verify(path, Remote("http://x/file.data", "file.data", md5(b"other"), "here"))


def test_the_cache_folder_is_the_users(monkeypatch):
    monkeypatch.undo()
    assert fetch.cache_folder().name == "kmixup"
