"""Where the files of data sets are, and how they are downloaded."""

import contextlib
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler

import pytest

from kmixup.lab.data import download as module
from kmixup.lab.data.download import (
    Remote,
    data_folder,
    download,
    find,
    missing,
    places,
    remove_stale,
    unpack,
    verify,
)

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
    assert module.cache_folder().name == "kmixup"


class Dripping(BaseHTTPRequestHandler):
    """Sends a byte every now and then, for ever."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(10**6))
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(b"x")
                self.wfile.flush()
                time.sleep(0.02)

    def log_message(self, *args):
        pass


class Endless(Dripping):
    """Sends much, and never says how much."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(CONTENT)


class Truncating(BaseHTTPRequestHandler):
    """Promises twice what it sends."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(2 * len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT)

    def log_message(self, *args):
        pass


@pytest.fixture
def site(site):
    (site[0] / "file.data").write_bytes(CONTENT)
    return site


def tar_with(path, name="inside.txt", link=None):
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo(name)
        if link is None:
            member.size = len(CONTENT)
            tar.addfile(member, io.BytesIO(CONTENT))
        else:
            member.type, member.linkname = tarfile.SYMTYPE, link
            tar.addfile(member)
    return path


def everything_in(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


def test_a_download_with_the_right_checksum_arrives(site, cache, capsys):
    remote = Remote(f"{site[1]}/file.data", "file.data", md5(CONTENT), "here")
    download(remote, cache / "some")
    assert (cache / "some/file.data").read_bytes() == CONTENT
    assert everything_in(cache) == ["some", "some/file.data"]
    assert "100%" in capsys.readouterr().err


def test_a_download_without_a_checksum_arrives_unverified(site, cache):
    remote = Remote(f"{site[1]}/file.data", "file.data")
    download(remote, cache / "some", progress=False)
    assert (cache / "some/file.data").read_bytes() == CONTENT
    assert remote.published == "unverified"


def test_a_wrong_checksum_leaves_nothing_in_the_cache(site, cache):
    remote = Remote(f"{site[1]}/file.data", "file.data", md5(b"other"), "somewhere")
    with pytest.raises(
        ValueError, match=r"must have md5:\w+ \(somewhere\), the download has another"
    ):
        download(remote, cache / "some", progress=False)
    assert everything_in(cache) == []


@pytest.mark.parametrize("checksum", [None, md5(CONTENT * 2)])
def test_a_truncated_download_leaves_nothing_in_the_cache(serve, cache, checksum):
    remote = Remote(f"{serve(Truncating)}/file.data", "file.data", checksum, "here")
    with pytest.raises((ConnectionError, ValueError), match=r"file\.data (could not|must have)"):
        download(remote, cache / "some", progress=False)
    assert everything_in(cache) == []


def test_a_file_that_the_server_does_not_have_is_named(site, cache):
    remote = Remote(f"{site[1]}/none.data", "none.data", md5(CONTENT), "here")
    with pytest.raises(ConnectionError, match=r"none\.data could not be downloaded .*KMIXUP_DATA"):
        download(remote, cache / "some", progress=False)
    assert everything_in(cache) == []


def test_a_server_out_of_reach_is_named(cache):
    with pytest.raises(ConnectionError, match=r"could not be downloaded"):
        download(Remote("http://127.0.0.1:9/a.data", "a.data"), cache / "some", progress=False)


def test_a_page_in_place_of_a_file_without_a_checksum_is_refused_by_its_size(site, cache):
    remote = Remote(f"{site[1]}/file.data", "file.data", size=len(CONTENT) + 1)
    with pytest.raises(ConnectionError, match=r"must have 22,001 bytes, the download has 22,000"):
        download(remote, cache / "some", progress=False)
    assert everything_in(cache) == []
    download(replace(remote, size=len(CONTENT)), cache / "some", progress=False)
    assert (cache / "some/file.data").read_bytes() == CONTENT


def test_a_server_that_drips_is_given_up(serve, cache, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.3)
    remote = Remote(f"{serve(Dripping)}/file.data", "file.data")
    with pytest.raises(ConnectionError, match=r"only \d+ bytes came in 0 s, fewer than 1,000 a"):
        download(remote, cache / "some", progress=False)
    assert everything_in(cache) == []


def test_a_server_that_falls_silent_is_given_up(serve, cache, monkeypatch):
    monkeypatch.setattr(module, "SILENCE", 0.01)
    with pytest.raises(ConnectionError, match="could not be downloaded .*[Tt]ime"):
        download(Remote(f"{serve(Dripping)}/a", "a"), cache / "some", progress=False)


def test_no_more_is_taken_than_the_size_that_is_known(serve, cache):
    remote = Remote(f"{serve(Endless)}/file.data", "file.data", size=10_000)
    with pytest.raises(ConnectionError, match=r"must have 10,000 bytes, the download has"):
        download(remote, cache / "some", progress=False)


def stale(folder, age=1000):
    folder.mkdir(parents=True)
    (folder / "half").write_bytes(CONTENT)
    os.utime(folder, (time.time() - age,) * 2)
    return folder


def test_what_a_killed_download_left_is_removed_by_the_next_one(site, cache):
    stale(cache / ".download-old")
    download(Remote(f"{site[1]}/file.data", "file.data"), cache / "some", progress=False)
    assert everything_in(cache) == ["some", "some/file.data"]


def test_a_download_that_runs_or_has_just_begun_is_left_alone(cache):
    running, new = stale(cache / ".download-a"), stale(cache / ".download-b", age=0)
    holder = f"from filelock import FileLock; lock = FileLock({str(running / 'lock')!r}); "
    holder += "lock.acquire(); print('held', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"held\n"
        os.utime(running, (time.time() - 1000,) * 2)
        remove_stale(cache)
        assert (running / "half").is_file()
        assert (new / "half").is_file()
        process.communicate(b"\n")
    os.utime(running, (time.time() - 1000,) * 2)
    remove_stale(cache)
    assert not running.exists()


def test_data_load_without_fcntl():
    code = (
        "import sys; sys.modules['fcntl'] = None; from kmixup.lab.data import load, at_hand; "
        "print(load('iris').title, at_hand('mnist'))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.stdout, run.returncode) == ("iris False\n", 0), run.stderr


def test_an_archive_is_unpacked_and_not_kept(site, cache):
    archive = tar_with(site[0] / "some.tar.gz", "folder/inside.txt")
    remote = Remote(f"{site[1]}/some.tar.gz", archive.name, md5(archive.read_bytes()), "here")
    download(remote, cache / "some", progress=False)
    assert everything_in(cache) == ["some", "some/folder", "some/folder/inside.txt"]


def test_an_archive_that_is_cut_short_leaves_nothing_in_the_cache(site, cache):
    archive = tar_with(site[0] / "some.tar.gz")
    archive.write_bytes(archive.read_bytes()[:-50])
    remote = Remote(f"{site[1]}/some.tar.gz", archive.name)
    with pytest.raises(ValueError, match=r"some\.tar\.gz must be a whole archive"):
        download(remote, cache / "some", progress=False)
    assert everything_in(cache) == []


def test_an_archive_never_replaces_a_folder(cache):
    (cache / "some").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"must not exist before a\.zip is unpacked there"):
        download(Remote("http://127.0.0.1:9/a.zip", "a.zip"), cache / "some")


@pytest.mark.parametrize("name", ["../escape.txt", "a/../../escape.txt"])
@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_a_path_out_of_the_folder_is_refused(tmp_path, name, kind):
    archive = tmp_path / f"some.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as pack:
            pack.writestr(name, CONTENT)
    else:
        tar_with(archive, name)
    with pytest.raises(ValueError, match="archive that stays in its folder, could not be unpacked"):
        unpack(archive, tmp_path / "into")
    assert everything_in(tmp_path) == [archive.name]


@pytest.mark.parametrize("name", ["/tmp/escape.txt", "C:/escape.txt", "..\\escape.txt"])
def test_an_absolute_or_foreign_path_in_a_zip_is_refused(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as pack:
        pack.writestr(name, CONTENT)
    with pytest.raises(ValueError, match="lies outside"):
        unpack(tmp_path / "some.zip", tmp_path / "into")


@pytest.mark.parametrize("link", ["../../outside", "/etc/passwd"])
def test_a_link_out_of_a_tar_is_refused(tmp_path, link):
    with pytest.raises(ValueError, match="archive that stays in its folder"):
        unpack(tar_with(tmp_path / "some.tar.gz", "a", link), tmp_path / "into")
    assert not (tmp_path / "into").exists()


def test_a_link_in_a_zip_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as pack:
        member = zipfile.ZipInfo("a")
        member.external_attr = 0o120777 << 16
        pack.writestr(member, "/etc/passwd")
    with pytest.raises(ValueError, match="'a' is a link"):
        unpack(tmp_path / "some.zip", tmp_path / "into")


@pytest.mark.parametrize("name", ["some.zip", "some.tar.gz"])
def test_a_page_in_place_of_an_archive_is_named(tmp_path, name):
    (tmp_path / name).write_bytes(b"<html>not found</html>")
    with pytest.raises(ValueError, match=f"{name} must be a whole archive"):
        unpack(tmp_path / name, tmp_path / "into")


def test_a_zip_is_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as pack:
        pack.writestr("folder/inside.txt", CONTENT)
    unpack(tmp_path / "some.zip", tmp_path / "into")
    assert (tmp_path / "into/folder/inside.txt").read_bytes() == CONTENT
