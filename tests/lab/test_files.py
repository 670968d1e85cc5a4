import csv
import os

import pytest

from kmixup.lab.files import check_regular, csv_text, digest_of


def test_an_ordinary_file_passes_and_so_does_a_link_to_one(tmp_path):
    (tmp_path / "a").touch()
    (tmp_path / "b").symlink_to(tmp_path / "a")
    check_regular(tmp_path / "a")
    check_regular(tmp_path / "b")


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_other_things_than_files_are_refused(tmp_path, kind):
    path = tmp_path / "it"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/null")
    else:
        path.mkdir()
    with pytest.raises(ValueError, match="it must be an ordinary file: copy its"):
        check_regular(path)


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
