"""Where the files of data sets are, and how they are downloaded."""

import contextlib
import hashlib
import io
import tarfile
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler

import pytest
from filelock import FileLock

from kmixup.lab.data import download as module
from kmixup.lab.data.download import Remote, data_folder, download, find, places, unpack, verify

CONTENT = b"numbers, many of them\n" * 1000


def remote(url, content=CONTENT):
    return Remote(url, len(content), hashlib.sha256(content).hexdigest(), "here")


def fetch(one, cache):
    wanted = "folder/inside.txt" if one.is_archive else one.name
    download([one], cache / "some", wanted=[wanted])


def test_the_data_folder_comes_before_the_cache_and_parts_last(tmp_path, monkeypatch, cache):
    monkeypatch.setenv("KMIXUP_DATA", str(tmp_path))
    assert places(("a", "b")) == [
        tmp_path / "a", tmp_path / "b", cache / "a", cache / "b", tmp_path
    ]  # fmt: skip
    whole_and_parts = places(("a",), parts=True)
    assert whole_and_parts[:3] == places(("a",))
    assert whole_and_parts[3:5] == [tmp_path / "a-sample", tmp_path / "a-subset"]


def test_files_are_found_only_where_all_of_them_are(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for path in (one / "x", two / "inner/x", two / "y"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert find(["inner/x", "y"], [one, two]) == [two / "inner/x", two / "y"]
    assert find(["z"], [one, two]) is None


def test_a_data_folder_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("KMIXUP_DATA", "/no/such/folder")
    with pytest.raises(ValueError, match="KMIXUP_DATA must name a folder, '/no/such/folder' is"):
        data_folder()


def test_a_file_with_another_checksum_is_rejected(tmp_path):
    path = tmp_path / "file.data"
    path.write_bytes(CONTENT)
    verify(path, remote("http://x/file.data"))
    with pytest.raises(ValueError, match=r"SHA-256 \w+ \(here\), has \w+: it is damaged"):
        verify(path, remote("http://x/file.data", b"other"))


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


class Truncating(Dripping):
    """Promises twice what it sends."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(2 * len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT)


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
    names = (p.relative_to(folder).as_posix() for p in folder.rglob("*"))
    return sorted(name for name in names if not name.endswith(".lock"))


def test_a_download_with_the_right_checksum_arrives(site, cache, capsys):
    fetch(remote(f"{site[1]}/file.data"), cache)
    assert (cache / "some/file.data").read_bytes() == CONTENT
    assert everything_in(cache) == ["some", "some/file.data"]
    assert "100%" in capsys.readouterr().err


def test_the_name_of_a_file_is_the_end_of_its_url():
    assert remote("https://x/y/Training%20Dataset.arff").name == "Training Dataset.arff"


@pytest.mark.parametrize(
    ("server", "file", "content", "message"),
    [
        (None, "file.data", CONTENT[::-1], r"must have the SHA-256 \w+ \(here\), the download has"),
        (None, "none.data", CONTENT, r"none\.data could not be downloaded .*set KMIXUP_DATA to"),
        ("out of reach", "file.data", CONTENT, "could not be downloaded"),
        (Truncating, "file.data", CONTENT * 2, r"file\.data could not be downloaded"),
    ],
)
def test_a_failed_download_leaves_nothing_in_the_cache(
    site, serve, cache, server, file, content, message
):
    address = site[1]
    if server is not None:
        address = "http://127.0.0.1:9" if server == "out of reach" else serve(server)
    with pytest.raises((ConnectionError, ValueError), match=message):
        fetch(remote(f"{address}/{file}", content), cache)
    assert everything_in(cache) == []


def test_a_server_that_falls_silent_is_given_up(serve, cache, monkeypatch):
    monkeypatch.setattr(module, "SILENCE", 0.01)
    with pytest.raises(ConnectionError, match="could not be downloaded .*[Tt]ime"):
        fetch(remote(f"{serve(Dripping)}/a"), cache)


def test_what_a_killed_download_left_is_removed_by_the_next_one(site, cache):
    (cache / ".some.part").mkdir(parents=True)
    (cache / ".some.part/half").write_bytes(CONTENT)
    fetch(remote(f"{site[1]}/file.data"), cache)
    assert everything_in(cache) == ["some", "some/file.data"]


def test_a_download_of_the_same_by_another_process_is_waited_for(site, cache):
    (cache / "some").mkdir(parents=True)
    with FileLock(cache / ".some.lock"):
        one = remote("http://127.0.0.1:9/file.data")
        waiting = threading.Thread(target=fetch, args=(one, cache))
        waiting.start()
        time.sleep(0.1)
        (cache / "some/file.data").write_bytes(CONTENT)  # by the other process
    waiting.join(5)
    assert not waiting.is_alive()


def test_an_archive_is_unpacked_and_not_kept(site, cache):
    archive = tar_with(site[0] / "some.tar.gz", "folder/inside.txt")
    fetch(remote(f"{site[1]}/some.tar.gz", archive.read_bytes()), cache)
    assert everything_in(cache) == ["some", "some/folder", "some/folder/inside.txt"]


def test_an_archive_never_replaces_a_folder(cache):
    (cache / "some").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"must not exist before a\.zip is unpacked there"):
        fetch(remote("http://127.0.0.1:9/a.zip"), cache)


@pytest.mark.parametrize("name", ["../escape.txt", "a/../../escape.txt", "/tmp/escape.txt"])
def test_no_path_in_a_zip_leads_out_of_the_folder(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as pack:
        pack.writestr(name, CONTENT)
        pack.writestr("folder/inside.txt", CONTENT)
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        pack.writestr(link, "/etc/passwd")
    unpack(tmp_path / "some.zip", tmp_path / "into")
    inside = ["into", "into/folder", "into/folder/inside.txt", "into/link", "some.zip"]
    assert everything_in(tmp_path) == inside
    assert not (tmp_path / "into/link").is_symlink()


@pytest.mark.parametrize(
    ("name", "link"),
    [("../escape.txt", None), ("a/../../b", None), ("a", "../../outside"), ("a", "/etc/passwd")],
)
def test_a_tar_that_leads_out_of_the_folder_is_rejected(tmp_path, name, link):
    with pytest.raises(ValueError, match="archive that stays in its folder, could not be read"):
        unpack(tar_with(tmp_path / "some.tar.gz", name, link), tmp_path / "into")
    assert everything_in(tmp_path) == ["into", "some.tar.gz"]


@pytest.mark.parametrize("name", ["page.zip", "page.tar.gz", "short.tar.gz"])
def test_a_damaged_archive_is_named_and_leaves_nothing_in_the_cache(site, cache, name):
    content = b"<html>not found</html>"
    if name.startswith("short"):
        content = tar_with(site[0] / name).read_bytes()[:-50]
    (site[0] / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} must be a whole archive"):
        fetch(remote(f"{site[1]}/{name}", content), cache)
    assert everything_in(cache) == []
