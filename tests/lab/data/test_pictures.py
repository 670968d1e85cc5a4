import os

import numpy as np
import pytest
from PIL import Image

from kmixup.lab.data import images as pictures
from kmixup.lab.data import safety
from kmixup.lab.data.images import read_images


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


@pytest.mark.parametrize(
    ("dtype", "mode"), [(np.uint16, "I;16"), (np.int32, "I"), (np.float32, "F")]
)
def test_more_than_eight_bits_a_channel_are_refused(tmp_path, dtype, mode):
    path = tmp_path / ("a.png" if dtype == np.uint16 else "a.tiff")
    Image.fromarray(np.arange(16, dtype=dtype).reshape(4, 4) * 1000).save(path)
    with pytest.raises(ValueError, match=f"must have 8 bits a channel, has Pillow's mode {mode}:"):
        read_images([path])


def test_an_image_of_too_many_pixels_is_refused_by_its_header(tmp_path, monkeypatch):
    path = write_image(tmp_path / "a.png", 5, (100, 50))
    monkeypatch.setattr(pictures, "PIXELS", 4999)
    monkeypatch.setattr(Image.Image, "convert", lambda *a: pytest.fail("it was decoded"))
    with pytest.raises(ValueError, match=r"a\.png must have at most 4,999 pixels, .* \(100×50\)"):
        read_images([path])
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(ValueError, match=r"must have at most 4,999 pixels, .* decompression bomb"):
        read_images([path])


def test_many_images_that_unpack_to_far_more_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(safety, "ROOM", 1 << 20)
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
        r"5×7 \(2\), 3×3 \(1\): stretch .* resize, e\.g\. 6x8$",
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
