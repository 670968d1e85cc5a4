import os

import numpy as np
import pytest
import torch
from scipy.io import wavfile

from kmixup.lab.data import load, speech
from kmixup.lab.data.speech import (
    RATE,
    log_spectrogram,
    read_speech_commands,
    read_wav,
    spectrograms,
)

TIME = np.arange(RATE) / RATE


def tone(hertz, samples=RATE):
    return (0.5 * 32767 * np.sin(2 * np.pi * hertz * TIME[:samples])).astype(np.int16)


def write_wav(path, wave, rate=RATE):
    path.parent.mkdir(parents=True, exist_ok=True)
    wavfile.write(path, rate, wave)
    return path


@pytest.fixture
def commands(tmp_path):
    folder = tmp_path / "speech_commands_v0.01"
    for word, hertz in (("no", 400), ("yes", 800)):
        for i in range(4):
            write_wav(folder / word / f"a_nohash_{i}.wav", tone(hertz + i))
    write_wav(folder / "_background_noise_" / "hum.wav", tone(50))
    (folder / "testing_list.txt").write_text("no/a_nohash_0.wav\nyes/a_nohash_0.wav\n")
    (folder / "validation_list.txt").write_text("no/a_nohash_1.wav\n")
    return folder


@pytest.mark.parametrize("hertz", [50, 1000, 7950, 8000])
def test_a_tone_lights_up_its_own_row_of_fifty_hertz(hertz):
    wave = torch.cos(2 * torch.pi * hertz * torch.arange(RATE) / RATE).unsqueeze(0)
    image = log_spectrogram(wave)
    assert image.shape == (1, 1, 160, 101)
    assert int(image[0, 0, :, 50].argmax()) == hertz // 50 - 1


def test_the_offset_of_a_microphone_leaves_no_more_than_what_leaks():
    middle = log_spectrogram(torch.full((1, RATE), 0.5))[..., 5:-5]
    assert middle[0, 0, 2:].max() < 1e-4


def test_short_clips_are_padded_with_silence_and_long_ones_cut(tmp_path):
    short = read_wav(write_wav(tmp_path / "short.wav", tone(440, 9000)))
    long = read_wav(write_wav(tmp_path / "long.wav", np.concatenate([tone(440), tone(440)])))
    assert short.shape == long.shape == (RATE,)
    assert (short[9000:] == 0).all()
    assert np.array_equal(short[:9000], long[:9000])
    assert np.abs(long).max() == pytest.approx(0.5, rel=1e-3)


def test_the_official_split_leaves_validation_and_noise_out(commands, cache):
    parts = read_speech_commands(commands, None, cache)
    assert parts.classes == ("no", "yes")
    assert parts.y.tolist() == [0, 1, 0, 1, 1]
    assert parts.y_test.tolist() == [0, 1]
    assert parts.x.shape == (5, 1, 160, 101)
    assert parts.x.dtype == torch.float32


def test_a_limit_takes_the_first_clips_of_every_word(commands, cache):
    parts = read_speech_commands(commands, 2, cache)
    assert sorted(parts.y.tolist()) == [0, 1]


def test_spectrograms_are_computed_once(commands, cache, monkeypatch):
    clips = sorted(commands.glob("*/a_*.wav"))
    first = spectrograms(clips, cache=cache).clone()
    monkeypatch.setattr(speech, "read_wav", lambda path: pytest.fail(f"{path} was read again"))
    again = spectrograms(clips, cache=cache)
    assert torch.equal(first, again)
    again.zero_()  # a copy: the cache stays as it is
    assert torch.equal(spectrograms(clips, cache=cache), first)


def test_a_clip_that_changes_is_computed_anew(commands, cache):
    clips = sorted(commands.glob("*/a_*.wav"))
    before = spectrograms(clips, cache=cache).clone()
    path = write_wav(commands / "no" / "a_nohash_0.wav", tone(3000))
    os.utime(path, ns=(1, 1))
    assert not torch.equal(spectrograms(clips, cache=cache), before)


@pytest.mark.parametrize("end", [4, -1001])
def test_a_truncated_clip_is_named_and_leaves_nothing_in_the_cache(commands, cache, end):
    path = commands / "yes" / "a_nohash_2.wav"
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(ValueError, match=r"a_nohash_2\.wav must be a whole wav file, could not"):
        read_speech_commands(commands, None, cache)
    assert [p.suffix for p in (cache / "spectrograms").iterdir()] in ([], [".lock"])


@pytest.mark.parametrize(
    ("wave", "rate", "found"),
    [
        (tone(440), 8000, "1 channels, int16, 8000 Hz"),
        (np.stack([tone(440)] * 2, axis=1), RATE, "2 channels, int16, 16000 Hz"),
        (tone(440).astype(np.float32), RATE, "1 channels, float32, 16000 Hz"),
        (tone(440)[:0], RATE, "16000 Hz and 0 samples"),
    ],
)
def test_a_clip_of_another_kind_is_named(tmp_path, wave, rate, found):
    with pytest.raises(ValueError, match=f"must be mono, int16, at 16000 Hz.*{found}"):
        read_wav(write_wav(tmp_path / "clip.wav", wave, rate))


def test_a_list_without_clips_is_named(commands, cache):
    (commands / "testing_list.txt").write_text("")
    with pytest.raises(ValueError, match="clips to train and to test on, has 7 and 0"):
        read_speech_commands(commands, None, cache)


def test_spectrograms_of_different_clips_do_not_share_a_file(commands, cache):
    first, second = commands / "no" / "a_nohash_0.wav", commands / "yes" / "a_nohash_0.wav"
    assert not torch.equal(spectrograms([first], cache=cache), spectrograms([second], cache=cache))


@pytest.mark.data
def test_the_real_subset_of_speech_commands_reads():
    data = load("speech-commands", limit=30)
    assert data.x_train.shape == data.x_test.shape == (30, 1, 160, 101)
    assert data.y_train.bincount().tolist() == [3] * 10
    assert data.part.endswith("10 of 30 classes")
    z = data.normalise(data.x_train)
    assert (float(z.mean()), float(z.std())) == pytest.approx((0, 1), abs=1e-3)
