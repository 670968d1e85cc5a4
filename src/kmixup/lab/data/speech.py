"""One-second clips of speech as 160 × 101 log-spectrograms.

A clip at 16 kHz is padded with silence, or cut, to 16,000 samples within [-1, 1]. A
short-time Fourier transform with a centred Hann window of 320 samples (20 ms) every 160
(10 ms) gives 161 frequencies at 101 times. The lowest frequency, 0 Hz, is left out: it holds
the offset of the microphone and no speech. A magnitude m becomes log(1 + m).
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np
import torch
from filelock import FileLock
from numpy.typing import NDArray
from torch import Tensor

from kmixup.lab._files import open_regular, parsing, read_lines, replace_file
from kmixup.lab.data.dataset import Samples
from kmixup.lab.data.folders import Labelled, in_turn, labelled

RATE, WINDOW, HOP = 16_000, 320, 160
BINS, FRAMES = WINDOW // 2, RATE // HOP + 1
CHUNK = 512  # clips transformed at a time


def read_speech_commands(folder: Path, limit: int | None, cache: Path) -> Samples:
    """Read the official split; clips of `validation_list.txt` are left out of both parts."""
    clips, classes = labelled(folder, [".wav"])
    tested, validated = (
        set(read_lines(folder / f"{part}_list.txt")) for part in ("testing", "validation")
    )
    by_name = {f"{path.parent.name}/{path.name}": (path, label) for path, label in clips}
    train, test = (
        in_turn([by_name[name] for name in by_name if name in part])[:limit]
        for part in (by_name.keys() - tested - validated, tested)
    )
    if not train or not test:
        raise ValueError(
            f"{folder} must have clips to train and to test on, has {len(train)} and {len(test)}"
        )
    return Samples(*_read(train, cache), classes, *_read(test, cache))


def _read(clips: Labelled, cache: Path) -> tuple[Tensor, Tensor]:
    x = spectrograms([path for path, _ in clips], cache=cache)
    return x, torch.tensor([label for _, label in clips])


def spectrograms(paths: Sequence[Path], *, cache: Path) -> Tensor:
    """Return log-spectrograms `(n, 1, 160, 101)` of wav files, mapped from a file in `cache`.

    The file's name is a hash of the clips' paths, sizes and times of change, and of the
    settings, so clips that change are computed again.
    """
    key = hashlib.sha256(repr((RATE, WINDOW, HOP, "hann", "log1p")).encode())
    for path in paths:
        stat = path.stat()
        key.update(repr((str(path.resolve()), stat.st_size, stat.st_mtime_ns)).encode())
    file = cache / "spectrograms" / f"{key.hexdigest()[:32]}.npy"
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock")):
        if not file.is_file():
            replace_file(file, lambda stream: _write(paths, stream))
    # "c" copies on write: a tensor over the array may be changed, the file is not
    return torch.from_numpy(np.load(file, mmap_mode="c", allow_pickle=False))


def _write(paths: Sequence[Path], stream: IO[bytes]) -> None:
    """Write the spectrograms as an .npy file, a chunk at a time."""
    shape = (len(paths), 1, BINS, FRAMES)
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    for start in range(0, len(paths), CHUNK):
        waves = np.stack([read_wav(path) for path in paths[start : start + CHUNK]])
        stream.write(log_spectrogram(torch.from_numpy(waves)).numpy().astype("<f4").tobytes())


def log_spectrogram(waves: Tensor) -> Tensor:
    """Transform waves `(n, 16000)` within [-1, 1] to `(n, 1, 160, 101)`."""
    window = torch.hann_window(WINDOW)
    transform = torch.stft(
        waves, WINDOW, HOP, window=window, center=True, pad_mode="constant", return_complex=True
    )
    return transform[:, 1:].abs().log1p().unsqueeze(1)


def read_wav(path: Path) -> NDArray[np.float32]:
    """Read one second of a mono 16-bit clip at 16 kHz, padded with silence or cut."""
    from scipy.io import wavfile  # on first use: it loads slowly

    with open_regular(path) as stream, warnings.catch_warnings():
        warnings.simplefilter("error", wavfile.WavFileWarning)
        # chunks of notes next to the sound are allowed
        warnings.filterwarnings("ignore", "Chunk", wavfile.WavFileWarning)
        with parsing(path, "wav file"):
            rate, wave = wavfile.read(stream)
    if rate != RATE or wave.dtype != np.int16 or wave.ndim != 1 or not len(wave):
        channels = 1 if wave.ndim == 1 else wave.shape[1]
        raise ValueError(
            f"{path} must be mono, int16, at {RATE} Hz and not empty, has {channels} channels, "
            f"{wave.dtype}, {rate} Hz and {len(wave)} samples: convert it first"
        )
    second = np.zeros(RATE, np.float32)
    second[: len(wave)] = wave[:RATE] / np.float32(1 << 15)
    return second
