"""Image files of data sets, and images of your own."""

import gzip
import os
import pickle
import struct
import tracemalloc

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat

from kmixup.lab import files
from kmixup.lab.data import folders, load
from kmixup.lab.data.folders import read_images
from kmixup.lab.data.formats import read_cifar, read_idx, read_svhn

RNG = np.random.default_rng(0)


def write_idx(path, array):
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(gzip.compress(header + array.tobytes()))
    return path


@pytest.fixture
def pixels():
    return RNG.integers(256, size=(5, 28, 28), dtype=np.uint8)


@pytest.fixture
def idx(tmp_path, pixels):
    labels = np.array([3, 1, 4, 1, 9], np.uint8)
    return write_idx(tmp_path / "images.gz", pixels), write_idx(tmp_path / "labels.gz", labels)


def test_idx_gives_back_the_pixels_and_labels(idx, pixels):
    x, y = read_idx(*idx)
    assert x.dtype == torch.uint8
    assert np.array_equal(x[:, 0].numpy(), pixels)
    assert y.tolist() == [3, 1, 4, 1, 9]


def unpacked(change):
    return lambda packed: gzip.compress(change(gzip.decompress(packed)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda packed: packed[:-20], r"images\.gz must be a whole gzip file"),
        (lambda packed: b"<html>not found</html>", r"images\.gz must be a whole gzip file"),
        (unpacked(lambda raw: raw[:-1]), r"3920 bytes after its header, .* has 3919"),
        (unpacked(lambda raw: raw + b"0"), r"3920 bytes after its header, .* has more"),
        (unpacked(lambda raw: b""), "starts with nothing"),
        (
            unpacked(lambda raw: b"\0\0\x08\x01" + raw[4:]),
            r"00000803\), starts with 00000801",
        ),
    ],
)
def test_a_damaged_idx_is_named(idx, change, message):
    idx[0].write_bytes(change(idx[0].read_bytes()))
    with pytest.raises(ValueError, match=message):
        read_idx(*idx)


def test_a_gzip_that_unpacks_to_far_more_is_refused_before_it_does(tmp_path, idx):
    start = gzip.compress(struct.pack(">BBBBIII", 0, 0, 8, 3, 10_000_000, 28, 28) + bytes(1 << 20))
    (tmp_path / "bomb.gz").write_bytes(start)
    with pytest.raises(ValueError, match=r"bomb\.gz must not unpack .* of it declare 7\.8 GB"):
        read_idx(tmp_path / "bomb.gz", idx[1])


def test_what_follows_the_declared_pixels_is_not_unpacked(tmp_path, idx):
    header = struct.pack(">BBBBIII", 0, 0, 8, 3, 5, 28, 28)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(header + bytes(1 << 28)))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="must hold 3920 bytes after its header, .* has more"):
            read_idx(tmp_path / "bomb.gz", idx[1])
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 0], "label for each of the 5 images, has 2"),
        ([0, 0, 10, 0, 0], "labels from 0 to 9, sample 2 has 10"),
    ],
)
def test_labels_that_do_not_fit_are_named(idx, tmp_path, labels, message):
    path = write_idx(tmp_path / "bad.gz", np.array(labels, np.uint8))
    with pytest.raises(ValueError, match=message):
        read_idx(idx[0], path)


@pytest.mark.parametrize(("label_bytes", "classes"), [(1, 10), (2, 100)])
def test_cifar_records_give_planes_and_the_last_label(tmp_path, label_bytes, classes):
    rows = RNG.integers(10, size=(4, label_bytes + 3072), dtype=np.uint8)
    rows.tofile(tmp_path / "batch.bin")
    x, y = read_cifar(tmp_path / "batch.bin", label_bytes=label_bytes, classes=classes)
    assert x.shape == (4, 3, 32, 32)
    assert y.tolist() == rows[:, label_bytes - 1].tolist()
    assert np.array_equal(x[2, 1].numpy().ravel(), rows[2, label_bytes + 1024 : label_bytes + 2048])


@pytest.mark.parametrize("size", [0, 3072, 3074])
def test_a_cifar_file_of_broken_records_is_named(tmp_path, size):
    (tmp_path / "batch.bin").write_bytes(bytes(size))
    with pytest.raises(ValueError, match=f"records of 3073 bytes, has {size} bytes"):
        read_cifar(tmp_path / "batch.bin", label_bytes=1, classes=10)


def test_cifar_100_read_as_cifar_10_is_noticed(tmp_path):
    np.full((3073, 3074), 77, np.uint8).tofile(tmp_path / "train.bin")
    with pytest.raises(ValueError, match="labels from 0 to 9, sample 0 has 77"):
        read_cifar(tmp_path / "train.bin", label_bytes=1, classes=10)


def test_svhn_labels_ten_as_zero_and_puts_channels_first(tmp_path):
    x = RNG.integers(256, size=(32, 32, 3, 4), dtype=np.uint8)
    savemat(tmp_path / "train.mat", {"X": x, "y": np.array([[10], [1], [9], [5]], np.uint8)})
    images, labels = read_svhn(tmp_path / "train.mat")
    assert labels.tolist() == [0, 1, 9, 5]
    assert np.array_equal(images[3, 1].numpy(), x[:, :, 1, 3])


def test_reading_a_mat_unpickles_nothing(tmp_path, monkeypatch):
    path = tmp_path / "train.mat"
    savemat(path, {"X": np.zeros((32, 32, 3, 1), np.uint8), "y": np.ones((1, 1))})
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, lambda *a, **k: pytest.fail("something was unpickled"))
    assert len(read_svhn(path)[0]) == 1


def test_a_mat_that_unpacks_to_far_more_is_refused_before_it_does(tmp_path, monkeypatch):
    path = tmp_path / "train.mat"
    savemat(path, {"X": np.zeros((32, 32, 3, 1000), np.uint8)}, do_compression=True)
    monkeypatch.setattr(files, "ROOM", 1 << 20)
    with pytest.raises(ValueError, match=r"train\.mat must not unpack to more than 100 times"):
        read_svhn(path)


def test_a_missing_mat_stays_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_svhn(tmp_path / "none.mat")


ZEROS = np.zeros((32, 32, 3, 4), np.uint8)


@pytest.mark.parametrize(
    ("arrays", "end", "message"),
    [
        ({"X": ZEROS, "y": np.ones((4, 1))}, -500, r"train\.mat must be a whole MATLAB 5 file"),
        ({"X": ZEROS}, 50, r"train\.mat must be a whole MATLAB 5 file, could not be read"),
        ({"X": ZEROS}, None, "must hold the arrays X and y, has no y"),
        (
            {"X": ZEROS.transpose(3, 0, 1, 2), "y": np.ones((4, 1))},
            None,
            r"shape \(32, 32, 3, n\).* has uint8 \(4, 32, 32, 3\)",
        ),
    ],
)
def test_a_damaged_or_foreign_mat_is_named(tmp_path, arrays, end, message):
    path = tmp_path / "train.mat"
    savemat(path, arrays)
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(ValueError, match=message):
        read_svhn(path)


def test_the_real_mnist_is_whole(real):
    data = load("mnist")
    assert data.part is None
    assert data.x_train.shape == (60_000, 1, 28, 28)
    assert data.y_train.bincount().tolist()[:3] == [5923, 6742, 5958]
    x = data.normalise(data.x_train[:10_000]).flatten(1).double()
    assert float(2 * x.var(0).sum()) == pytest.approx(105, rel=0.01)


def test_the_first_real_batch_of_cifar_10_serves_a_limit(real):
    data = load("cifar10", limit=10_000)
    assert data.part == "the first 10,000 of 50,000 training and 10,000 of 10,000 test samples"
    assert data.y_test.bincount().tolist() == [1000] * 10
    assert data.classes[0] == "airplane"
    assert (data.mean / 255).flatten().tolist() == pytest.approx([0.491, 0.482, 0.447], abs=0.005)


def test_the_real_sample_of_cifar_100_has_fine_labels(real):
    data = load("cifar100", limit=500)
    assert (len(data.x_train), len(data.x_test), data.num_classes) == (500, 500, 100)
    assert len(data.y_train.unique()) > 90
    assert data.classes[:2] == ("apple", "aquarium_fish")


def test_the_real_sample_of_svhn_reads(real):
    data = load("svhn", limit=2000)
    assert (len(data.x_train), len(data.x_test)) == (2000, 500)
    assert set(data.y_train.tolist()) == set(range(10))


def write_image(path, colour, size=(64, 64)):
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = "L" if isinstance(colour, int) else "RGB"
    Image.new(mode, size, colour).save(path)
    return path


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


def test_an_image_of_too_many_pixels_is_refused_by_its_header(tmp_path, monkeypatch):
    path = write_image(tmp_path / "a.png", 5, (100, 50))
    monkeypatch.setattr("kmixup.lab.data.folders.PIXELS", 4999)
    monkeypatch.setattr(Image.Image, "convert", lambda *a: pytest.fail("it was decoded"))
    with pytest.raises(ValueError, match=r"a\.png must have at most 4,999 pixels, .* \(100×50\)"):
        read_images([path])
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(ValueError, match=r"must have at most 4,999 pixels, .* decompression bomb"):
        read_images([path])


def test_many_images_that_unpack_to_far_more_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "ROOM", 1 << 20)
    paths = [write_image(tmp_path / f"{i}.png", 5, (500, 500)) for i in range(6)]
    assert len(read_images(paths[:1])) == 1
    with pytest.raises(ValueError, match="must not unpack to more than 100 times its size"):
        read_images(paths)
    assert len(read_images(paths, resize=(4, 4))) == 6


def test_several_sizes_are_named_with_the_remedy(tmp_path):
    sizes = [(8, 6), (8, 6), (8, 6), (5, 7), (5, 7), (3, 3)]
    paths = [write_image(tmp_path / f"{i}.png", i, size) for i, size in enumerate(sizes)]
    with pytest.raises(
        ValueError,
        match=r"3\.png must be 8×6 as the others, is 5×7; there are images of 8×6 \(3\), "
        r"5×7 \(2\), 3×3 \(1\): stretch .* --resize 6x8, resize=\(6, 8\)",
    ):
        read_images(paths)


def test_more_than_five_sizes_are_summed_up(tmp_path):
    paths = [write_image(tmp_path / f"{i}.png", i, (i + 1, 1)) for i in range(8)]
    (tmp_path / "9.png").write_bytes(b"broken")
    with pytest.raises(ValueError, match=r"1×1 \(1\), .* 5×1 \(1\) and 3 other sizes: stretch"):
        read_images([*paths, tmp_path / "9.png"])


def test_images_are_stretched_on_request_to_height_and_width(tmp_path):
    paths = [write_image(tmp_path / f"{i}.png", 40 * i, (8 + i, 6)) for i in range(3)]
    x = read_images(paths, resize=(4, 5))
    assert x.shape == (3, 1, 4, 5)
    assert x[:, 0, 2, 2].tolist() == [0, 40, 80]


def test_a_stretched_image_keeps_its_picture(tmp_path):
    ramp = np.repeat(np.arange(0, 256, 8, dtype=np.uint8)[None], 32, 0)
    Image.fromarray(ramp).save(tmp_path / "a.png")
    row = read_images([tmp_path / "a.png"], resize=(16, 16))[0, 0, 8].tolist()
    assert row == sorted(row)
    assert row[8] == pytest.approx(132, abs=4)


def test_a_size_below_one_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"resize must be a height and a width of 1 or more, got"):
        read_images([], resize=(0, 5))


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(ValueError, match=r"a\.png must be an ordinary file, is a named pipe"):
        read_images([tmp_path / "a.png"])


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
