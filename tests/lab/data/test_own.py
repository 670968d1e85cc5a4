import os

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import wavfile

from kmixup.lab.data import load
from kmixup.lab.data.loading import ReadingOptions, read_own

X, Y = np.arange(12.0).reshape(6, 2), np.array([5, 7, 5, 7, 7, 5])


def save(tmp_path, **arrays):
    np.savez(tmp_path / "own.npz", **arrays)
    return tmp_path / "own.npz"


def table(tmp_path, text):
    path = tmp_path / "own.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_another_kind_is_refused(tmp_path, cache):
    (tmp_path / "own.pkl").touch()
    with pytest.raises(ValueError, match=r"must be an \.npz, a table .* is a \.pkl file"):
        read_own(tmp_path / "own.pkl", ReadingOptions(), cache=cache)


def test_own_data_load_by_their_path_with_a_seeded_split_and_a_named_part(tmp_path):
    path = save(tmp_path, x=X, y=Y)
    whole, part = load(str(path), seed=1), load(str(path), seed=1, limit=3)
    assert (whole.name, whole.part, whole.scaling) == ("own.npz", None, "standard")
    assert part.part == "the first 3 of 4 training and 2 of 2 test samples"
    assert torch.equal(part.x_train, whole.x_train[:3])
    assert not torch.equal(whole.x_train, load(str(path), seed=2).x_train)


def test_data_say_whether_their_seed_splits_them(tmp_path):
    assert load(str(save(tmp_path, x=X, y=Y))).split_by_seed
    assert load(str(table(tmp_path, "a,b\n1,x\n2,y\n3,x\n")), target="b").split_by_seed
    assert not load(str(save(tmp_path, x=X, y=Y, x_test=X, y_test=Y))).split_by_seed
    assert load("iris").split_by_seed
    assert not load("four-bars").split_by_seed  # another seed draws other points


def test_own_csv_loads_with_its_target(tmp_path):
    path = table(tmp_path, "kind,a\n" + "".join(f"{'xy'[i % 2]},{i}\n" for i in range(9)))
    assert load(str(path), target="kind").classes == ("x", "y")


def test_own_folders_of_images_and_of_clips_load_by_their_path(tmp_path):
    for label in ("a", "b"):
        for folder in ("pictures/train", "clips"):
            (tmp_path / folder / label).mkdir(parents=True)
        for i in range(3):
            Image.new("L", (4, 4), i).save(tmp_path / "pictures/train" / label / f"{i}.png")
            wave = np.full(100, i, np.int16)
            wavfile.write(tmp_path / "clips" / label / f"{i}.wav", 16_000, wave)
    assert load(str(tmp_path / "pictures")).shape == (1, 4, 4)
    assert load(str(tmp_path / "clips")).shape == (1, 160, 101)


def test_a_folder_of_labels_with_images_loads_without_a_folder_train(tmp_path):
    for label in ("cat", "dog"):
        (tmp_path / label).mkdir()
        for i in range(3):
            Image.new("L", (4, 5), i).save(tmp_path / label / f"{i}.PNG")
    data = load(str(tmp_path))
    assert (data.classes, data.shape) == (("cat", "dog"), (1, 5, 4))
    assert (len(data.x_train), len(data.x_test)) == (4, 2)


def test_images_of_several_sizes_load_on_request(tmp_path):
    for label in ("cat", "dog"):
        (tmp_path / label).mkdir()
        for i in range(3):
            Image.new("L", (4 + i, 5), i).save(tmp_path / label / f"{i}.png")
    with pytest.raises(ValueError, match="stretch all to one height and width"):
        load(str(tmp_path))
    assert load(str(tmp_path), resize=(6, 7)).shape == (1, 6, 7)


@pytest.mark.parametrize("files", [[], ["a.png"], ["a/notes.txt"]])
def test_a_folder_without_labelled_files_is_told_the_layouts(tmp_path, files):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(
        ValueError,
        match=r"must hold images as label/\*\.png or train/label/\*\.png .*, or clips as "
        r"label/\*\.wav, has \d sub-folders without such files and \d files",
    ):
        load(str(tmp_path))


@pytest.mark.parametrize("name", ["pipe.csv", "pipe.npz", "pictures/cat/1.png", "clips/yes/1.wav"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    with pytest.raises(ValueError, match="must be an ordinary file, is a named pipe"):
        load(str(tmp_path / name.split("/")[0]))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("own.npz", {"drop": ["a"]}, "drop must not be given for an .npz, got"),
        ("own.npz", {"resize": (4, 4)}, "resize must not be given for an .npz, got"),
        ("own.csv", {"resize": (4, 4)}, "resize must not be given for a .csv, got"),
        ("clips", {"resize": (4, 4)}, "resize must not be given for a folder of clips, got"),
        ("clips", {"task": "classes"}, "task must not be given for a folder, got classes"),
        ("own.npz", {"target": "y"}, "target must not be given for an .npz, got y"),
        (
            "own.csv",
            {"size": 9},
            r"size is for toys, .*own\.csv has a size .*: set limit",
        ),
        ("clips", {"target": "y"}, "target must not be given for a folder, got y"),
        ("iris", {"target": "y"}, "target must not be given for iris, which is prepared already"),
        ("iris", {"drop": ["a"]}, "drop must not be given for iris, which is prepared already"),
        ("iris", {"task": "sorting"}, "task must be one of classes, regression, got 'sorting'"),
    ],
)
def test_a_setting_without_a_meaning_is_refused(tmp_path, name, settings, message):
    save(tmp_path, x=X, y=Y)
    table(tmp_path, "a,target\n1,x\n2,y\n")
    (tmp_path / "clips" / "yes").mkdir(parents=True)
    (tmp_path / "clips" / "yes" / "1.wav").touch()
    with pytest.raises(ValueError, match=message):
        load(name if name == "iris" else str(tmp_path / name), **settings)


@pytest.mark.parametrize("name", ["[/b].csv", "[red].CSV"])
def test_names_that_look_like_markup_are_names(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("a,target\n" + "".join(f"{i},{i % 2}\n" for i in range(9)))
    assert load(str(tmp_path / name)).title == name.split("/")[-1]
