"""One-second clips of speech as 160 × 101 log-spectrograms.

A clip at 16 kHz is padded with silence, or cut, to 16,000 samples within [-1, 1]. A
short-time Fourier transform with a centred Hann window of 320 samples (20 ms) every 160
(10 ms) gives 161 frequencies at 101 times. The lowest frequency, 0 Hz, is left out: it holds
the offset of the microphone and no speech. A magnitude m becomes log(1 + m). Spectrograms are
computed once and kept in the cache folder.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kmixup.lab.data.dataset import Parts, Samples
from kmixup.lab.data.folders import Labelled, in_turn, labelled
from kmixup.lab.files import read_lines

RATE, WINDOW, HOP = 16_000, 320, 160
BINS, FRAMES = WINDOW // 2, RATE // HOP + 1
CHUNK = 512  # clips transformed at a time


def read_speech_commands(folder: Path, limit: int | None, cache: Path) -> Parts:
    """The official split; clips of `validation_list.txt` are left out of both parts."""
    clips, classes = labelled(folder, [".wav"])
    tested = _listed(folder / "testing_list.txt")
    held_out = tested | _listed(folder / "validation_list.txt")
    by_name = {f"{path.parent.name}/{path.name}": (path, label) for path, label in clips}
    if absent := sorted(tested - by_name.keys()):
        raise ValueError(
            f"{folder / 'testing_list.txt'} names {absent[0]}, which is not in {folder}: "
            "the folder is incomplete"
        )
    count = len(classes)
    train = _every_word([by_name[name] for name in by_name if name not in held_out], count)[:limit]
    test = _every_word([by_name[name] for name in by_name if name in tested], count)[:limit]
    if not train or not test:
        raise ValueError(
            f"{folder} must have clips to train and to test on, has {len(train)} and {len(test)}"
        )
    x_train, x_test = (spectrograms(_paths(part), cache=cache) for part in (train, test))
    return Parts(x_train, _labels(train), x_test, _labels(test), classes)


def read_clips(folder: Path, cache: Path) -> Samples:
    """Any folder of `label/*.wav`."""
    clips, classes = labelled(folder, [".wav"])
    return Samples(spectrograms(_paths(clips), cache=cache), _labels(clips), classes)


def spectrograms(paths: Sequence[Path], *, cache: Path) -> Tensor:
    """Log-spectrograms `(n, 1, 160, 101)` of wav files, mapped from a file in `cache`.

    The file's name is a hash of the clips' paths, sizes and times of change, and of
    the settings, so clips that change are computed anew.
    """
    shape = (len(paths), 1, BINS, FRAMES)
    file = cache / "spectrograms" / f"{_key(paths)}.npy"
    stored = _stored(file, shape)
    if stored is None:
        file.parent.mkdir(parents=True, exist_ok=True)
        _compute(paths, file, shape)
        stored = np.load(file, mmap_mode="c", allow_pickle=False)
    return torch.from_numpy(stored)


def log_spectrogram(waves: Tensor) -> Tensor:
    """Waves `(n, 16000)` within [-1, 1] to `(n, 1, 160, 101)`."""
    transform = torch.stft(
        waves,
        n_fft=WINDOW,
        hop_length=HOP,
        window=torch.hann_window(WINDOW),
        center=True,
        pad_mode="constant",
        return_complex=True,
    )
    return transform[:, 1:].abs().log1p().unsqueeze(1)


def read_wav(path: Path) -> NDArray[np.float32]:
    """One second of a mono 16-bit clip at 16 kHz, padded with silence or cut."""
    from scipy.io import wavfile  # on first use: it loads slowly

    with path.open("rb") as stream, warnings.catch_warnings():
        warnings.simplefilter("error", wavfile.WavFileWarning)
        # chunks of notes beside the sound are allowed
        warnings.filterwarnings("ignore", "Chunk", wavfile.WavFileWarning)
        try:
            rate, wave = wavfile.read(stream)
        except Exception as error:  # its parser fails in many ways on a damaged file
            raise ValueError(
                f"{path} must be a whole wav file, could not be read: {error}"
            ) from error
    if rate != RATE or wave.dtype != np.int16 or wave.ndim != 1 or not len(wave):
        channels = 1 if wave.ndim == 1 else wave.shape[1]
        raise ValueError(
            f"{path} must be mono, int16, at {RATE} Hz and not empty, has {channels} channels, "
            f"{wave.dtype}, {rate} Hz and {len(wave)} samples: convert it first"
        )
    second = np.zeros(RATE, np.float32)
    second[: len(wave)] = wave[:RATE] / np.float32(1 << 15)
    return second


def _compute(paths: Sequence[Path], file: Path, shape: tuple[int, ...]) -> None:
    """Write the spectrograms to `file`, which appears only when it is whole."""
    handle, name = tempfile.mkstemp(dir=file.parent, suffix=".part")
    os.close(handle)
    try:
        out = np.lib.format.open_memmap(name, mode="w+", dtype=np.float32, shape=shape)
        for start in range(0, len(paths), CHUNK):
            waves = np.stack([read_wav(path) for path in paths[start : start + CHUNK]])
            out[start : start + CHUNK] = log_spectrogram(torch.from_numpy(waves)).numpy()
        out.flush()
        del out
        os.replace(name, file)
    finally:
        Path(name).unlink(missing_ok=True)


def _stored(file: Path, shape: tuple[int, ...]) -> NDArray[np.float32] | None:
    """The stored spectrograms; None where they are missing or damaged."""
    try:
        # "c" copies on write: a tensor over the array may be changed, the file is not
        stored: NDArray[np.float32] = np.load(file, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return stored if stored.shape == shape and stored.dtype == np.float32 else None


def _key(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256(repr((RATE, WINDOW, HOP, "hann", "log1p")).encode())
    for path in paths:
        stat = path.stat()
        digest.update(repr((str(path.resolve()), stat.st_size, stat.st_mtime_ns)).encode())
    return digest.hexdigest()[:32]


def _listed(path: Path) -> set[str]:
    if not path.is_file():
        raise ValueError(f"{path} must list the clips of its part, one in a line, is not there")
    return {line for line in read_lines(path) if line}


def _every_word(clips: Labelled, count: int) -> Labelled:
    """The clips with the words in turn, so that the first ones are not all of a few words."""
    return in_turn([clip for clip in clips if clip[1] == word] for word in range(count))


def _paths(clips: Labelled) -> list[Path]:
    return [path for path, _ in clips]


def _labels(clips: Labelled) -> Tensor:
    return torch.tensor([label for _, label in clips])
