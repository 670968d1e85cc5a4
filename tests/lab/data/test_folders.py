"""Folders of labelled files, and images in them."""

import numpy as np
import pytest
import torch
from PIL import Image

from kmixup.lab.data import folders, load
from kmixup.lab.data.folders import labelled, read_images, read_label_folders, read_tiny_imagenet

IDS = ("n02", "n01")


def write_image(path, colour, size=(64, 64)):
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = "L" if isinstance(colour, int) else "RGB"
    Image.new(mode, size, colour).save(path)
    return path


@pytest.fixture
def tiny(tmp_path):
    """Two classes of eleven training images and one validation image each."""
    folder = tmp_path / "tiny-imagenet-200"
    for wnid in IDS:
        for i in range(11):
            write_image(folder / "train" / wnid / "images" / f"{wnid}_{i}.JPEG", (20 * i, 0, 0))
    write_image(folder / "val/images/val_0.JPEG", 7)
    write_image(folder / "val/images/val_1.JPEG", 9)
    (folder / "wnids.txt").write_text("n02\nn01\n")
    (folder / "words.txt").write_text("n00\tentity\nn01\tgoldfish, Carassius\nn02\ttench\n")
    boxes = "\t0\t0\t62\t62\n"
    annotations = f"val_0.JPEG\tn01{boxes}val_1.JPEG\tn02{boxes}"
    (folder / "val/val_annotations.txt").write_text(annotations)
    return folder


def test_tiny_imagenet_has_the_classes_of_its_list_and_is_always_rgb(tiny):
    parts = read_tiny_imagenet(tiny)
    assert parts.classes == ("tench", "goldfish")
    assert parts.x.shape == (22, 3, 64, 64)
    assert parts.x_test[:, :, 0, 0].tolist() == [[7] * 3, [9] * 3]
    assert parts.y_test.tolist() == [1, 0]


def test_the_first_training_images_come_from_every_class_in_the_order_of_their_numbers(tiny):
    parts = read_tiny_imagenet(tiny, limit=22)
    assert parts.y.tolist() == [0, 1] * 11
    red = parts.x[::2, 0, 0, 0].tolist()
    assert red == sorted(red)


def test_a_limit_reads_no_more_images_than_it_needs(tiny):
    (tiny / "train/n01/images/n01_9.JPEG").write_bytes(b"broken")
    assert len(read_tiny_imagenet(tiny, limit=4).x) == 4
    with pytest.raises(ValueError, match=r"n01_9\.JPEG must be a whole image in PNG"):
        read_tiny_imagenet(tiny)


def written(name, text):
    return lambda tiny: (tiny / name).write_bytes(text)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda tiny: write_image(tiny / "train/n01/images/n01_3.JPEG", 0, size=(32, 64)),
            r"n01_3\.JPEG must be 64×64 as the others, is 32×64",
        ),
        (written("wnids.txt", b"n01\n"), "whole folder of Tiny ImageNet, could not be read: "),
        (written("wnids.txt", b"n01\nn02\nn03\n"), "whole folder of Tiny .*n03"),
        (
            lambda tiny: (tiny / "val/images/val_0.JPEG").unlink(),
            r"val_0\.JPEG must be a whole image .* No such file",
        ),
        (
            written("val/val_annotations.txt", b"../../../secret.png\tn01\t0\t0\t1\t1\n"),
            r"val/images/secret\.png must be a whole image",  # not the one outside
        ),
        (written("val/val_annotations.txt", b"a.JPEG n01\n"), "whole folder of Tiny ImageNet"),
    ],
)
def test_a_damaged_tiny_imagenet_is_named(tiny, damage, message):
    write_image(tiny.parent / "secret.png", 5)
    damage(tiny)
    with pytest.raises(ValueError, match=message):
        read_tiny_imagenet(tiny)


def test_folders_without_a_test_part_are_left_to_be_split(tmp_path):
    for name in ("cat/1.png", "dog/1.png", "dog/2.jpg"):
        write_image(tmp_path / "train" / name, 5)
    images = read_label_folders(tmp_path)
    assert not len(images.x_test)
    assert images.classes == ("cat", "dog")
    assert images.y.tolist() == [0, 1, 1]


def test_a_test_folder_may_lack_classes_but_not_add_any(tmp_path):
    for name in ("train/cat/1.png", "train/dog/1.png", "train/emu/1.png", "test/dog/1.png"):
        write_image(tmp_path / name, 5)
    write_image(tmp_path / "test/emu/1.png", 5)
    images = read_label_folders(tmp_path)
    assert images.y_test.tolist() == [1, 2]
    write_image(tmp_path / "test/fox/1.png", 5)
    with pytest.raises(ValueError, match="'fox' is not one"):
        read_label_folders(tmp_path)


def test_one_class_or_an_empty_one_is_named(tmp_path):
    write_image(tmp_path / "cat/1.png", 5)
    with pytest.raises(ValueError, match="two or more classes, has 1 sub-folders"):
        labelled(tmp_path)
    (tmp_path / "dog").mkdir()
    with pytest.raises(ValueError, match="has 2 sub-folders and no such file in 'dog'"):
        labelled(tmp_path)


@pytest.mark.data
def test_the_real_sample_of_tiny_imagenet_reads():
    data = load("tiny-imagenet", limit=40)
    assert data.part.endswith("40 of 10,000 test samples, 20 of 200 classes")
    assert data.x_train.shape == (40, 3, 64, 64)
    assert data.y_train.bincount().tolist() == [2] * 20
    assert data.classes[0] == "Egyptian cat"
    assert data.x_train.dtype == torch.uint8


# image files


def test_images_keep_their_pixels(tmp_path):
    pixels = np.random.default_rng(0).integers(256, size=(5, 7, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    x = read_images([tmp_path / "a.png"])
    assert np.array_equal(x[0].permute(1, 2, 0).numpy(), pixels)


def test_grey_images_have_one_channel_and_one_in_colour_makes_all_three(tmp_path):
    grey = [write_image(tmp_path / f"{i}.png", i) for i in range(3)]
    assert read_images(grey).shape == (3, 1, 64, 64)
    assert read_images([*grey, write_image(tmp_path / "c.png", (1, 2, 3))]).shape[1] == 3


def test_more_than_eight_bits_a_channel_are_rejected(tmp_path):
    Image.fromarray(np.arange(16, dtype=np.uint16).reshape(4, 4) * 1000).save(tmp_path / "a.png")
    with pytest.raises(ValueError, match="must have 8 bits a channel, has Pillow's mode I;16:"):
        read_images([tmp_path / "a.png"])


def test_an_image_of_too_many_pixels_is_rejected_by_its_header(tmp_path, monkeypatch):
    path = write_image(tmp_path / "a.png", 5, (100, 50))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(ValueError, match=r"a\.png must be a whole image .* decompression bomb"):
        read_images([path])


def test_several_sizes_are_named_with_the_remedy(tmp_path):
    paths = [write_image(tmp_path / f"{i}.png", i, (8 - i, 6 + i)) for i in range(2)]
    with pytest.raises(
        ValueError, match=r"1\.png must be 8×6 as the others, is 7×7: .* --resize 6 8$"
    ):
        read_images(paths)


def test_images_are_stretched_on_request_to_height_and_width(tmp_path):
    paths = [write_image(tmp_path / f"{i}.png", 40 * i, (8 + i, 6)) for i in range(3)]
    x = read_images(paths, resize=(4, 5))
    assert x.shape == (3, 1, 4, 5)
    assert x[:, 0, 2, 2].tolist() == [0, 40, 80]
    Image.fromarray(np.repeat(np.arange(0, 256, 8, dtype=np.uint8)[None], 32, 0)).save(paths[0])
    row = read_images(paths[:1], resize=(16, 16))[0, 0, 8].tolist()
    assert row == sorted(row)
    assert row[8] == pytest.approx(132, abs=4)


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 4\n%%EndComments\nshowpage\n"


def test_an_eps_called_png_is_not_given_to_ghostscript(tmp_path, monkeypatch):
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", lambda *a, **k: pytest.fail("started"))
    (tmp_path / "1.png").write_bytes(EPS)
    with pytest.raises(ValueError, match=r"1\.png must be a whole image in PNG, JPEG, BMP"):
        read_images([tmp_path / "1.png"])


@pytest.mark.parametrize("suffix", sorted(folders.SUFFIXES))
def test_every_allowed_format_is_read(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    Image.new("RGB", (5, 4), (200, 10, 10)).save(path)
    assert read_images([path]).shape == (1, 3, 4, 5)
