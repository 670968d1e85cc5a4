"""Numbers, times, exit codes and tables as text."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kmixup._measured import Measured

NOTHING = "–"  # where there is no number


def count(number: int, thing: str) -> str:
    """
    >>> count(1, "epoch"), count(1200, "trial")
    ('1 epoch', '1,200 trials')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def joined(words: Sequence[str], conjunction: str = "and") -> str:
    """
    >>> joined(["mixup"]), joined(["k-mixup", "mixup", "ERM"])
    ('mixup', 'k-mixup, mixup and ERM')
    """
    *first, last = words
    return f"{', '.join(first)} {conjunction} {last}" if first else last


def duration(seconds: float) -> str:
    """A time that someone waits for.

    >>> duration(42), duration(600), duration(8000), duration(4e5)
    ('42 s', '10 min', '2.2 h', '4.6 days')
    """
    for size, form in ((86400, "{:.1f} days"), (3600, "{:.1f} h"), (60, "{:.0f} min")):
        if seconds >= 2 * size:
            return form.format(seconds / size)
    return f"{seconds:.0f} s"


def ending(code: int | None) -> str:
    """How a process ended, from its exit code; negative codes stand for signals.

    >>> ending(-11), ending(3)
    ('died of SIGSEGV', 'ended with exit code 3')
    """
    if code in {-number for number in signal.Signals}:
        return f"died of {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def stopwatch(seconds: float) -> str:
    """A time that was measured, to two or three digits.

    >>> stopwatch(0.0691), stopwatch(0.691), stopwatch(11.52), stopwatch(1234.5)
    ('69.1 ms', '0.69 s', '11.5 s', '1,234 s')
    """
    if seconds < 0.1:
        return f"{1e3 * seconds:.3g} ms"
    digits = 2 if seconds < 10 else 1 if seconds < 100 else 0
    return f"{seconds:,.{digits}f} s"


def number(value: float | None, digits: int = 2) -> str:
    """A number, or a dash where there is none.

    >>> number(3.14159), number(-0.001), number(None)
    ('3.14', '0.00', '–')
    """
    if value is None:
        return NOTHING
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def signed(value: float | None, digits: int = 2) -> str:
    """A difference with its sign.

    >>> signed(-0.5), signed(0.25), signed(-0.001)
    ('−0.50', '+0.25', '0.00')
    """
    above = value is not None and round(value, digits) > 0
    return f"+{number(value, digits)}" if above else number(value, digits)


def with_error(value: float | None, error: float | None) -> str:
    """A number with its standard error, if that is known.

    >>> with_error(3.2, 0.25), with_error(3.2, None), with_error(0.0812, 0.00234)
    ('3.20 ± 0.25', '3.20', '0.0812 ± 0.0023')
    """
    if error is None:
        return number(value)
    digits = _digits(error, 0.005)
    return f"{number(value, digits)} ± {number(error, digits)}"


def with_interval(difference: float, low: float, high: float) -> str:
    """A difference with its interval of confidence.

    >>> with_interval(-0.5, -1.25, 0.25)
    '−0.50 [−1.25, +0.25]'
    """
    digits = _digits(high - low, 0.02)
    return f"{signed(difference, digits)} [{signed(low, digits)}, {signed(high, digits)}]"


def _digits(spread: float, fine: float) -> int:
    """Digits after the point: two, or as many as show two digits of a spread that is finer."""
    return math.ceil(-math.log10(spread)) + 1 if 1e-6 < spread < fine else 2


def strength(value: float | None) -> str:
    """An alpha or a xi in three digits.

    >>> strength(2.3134), strength(0.05), strength(1234.5), strength(None), strength(math.inf)
    ('2.31', '0.05', '1234', '–', '∞')
    """
    if value is None or math.isinf(value):
        return NOTHING if value is None else "∞"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def measured(reading: Measured | None) -> str:
    """A value to the first digit of its standard error.

    >>> from kmixup._measured import Measured
    >>> measured(Measured(1.0883, 0.0096)), measured(Measured(1.0, 0.0)), measured(None)
    ('1.09 ± 0.01', '1', '–')
    """
    if reading is None:
        return NOTHING
    if not reading.error > 0:
        return f"{reading.value:.3g}"
    digits = max(0, -math.floor(math.log10(float(f"{reading.error:.0e}"))))
    return f"{reading.value:.{digits}f} ± {reading.error:.{digits}f}".replace("-", "−")


def percent(reading: Measured | None) -> str:
    """A share in per cent, to the first digit of its standard error.

    >>> from kmixup._measured import Measured
    >>> percent(Measured(0.57702, 0.00541)), percent(Measured(0.000488, 0.000488)), percent(None)
    ('57.7 ± 0.5', '0.05 ± 0.05', '–')
    """
    return NOTHING if reading is None else measured(reading / 0.01)


def escaped(text: str) -> str:
    """Escape what Markdown would read as markup."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


@dataclass(frozen=True)
class TextTable:
    header: Sequence[str]
    rows: Sequence[Sequence[str]]  # in Markdown a row may end early

    def aligned(self) -> str:
        """Markdown whose columns line up, to be read as it is. The cells must be plain text.

        >>> print(TextTable(["k", "time"], [["16", "2 s"]]).aligned())
        | k  | time |
        | -- | ---- |
        | 16 | 2 s  |
        """
        header, *rows = self._padded()
        return _lines([header, ["-" * len(cell) for cell in header], *rows])

    def plain(self) -> str:
        """Columns that line up, and no lines between them.

        >>> print(TextTable(["K", "TIME"], [["16", "2 s"]]).plain())
        K   TIME
        16  2 s
        """
        return "\n".join("  ".join(line).rstrip() for line in self._padded())

    def markdown(self) -> str:
        """Markdown for documents: escaped, and numbers to the right.

        >>> print(TextTable(["k", "a*b"], [["16", "<z> | 2"], ["32"]]).markdown())
        | k | a\\*b |
        | --- | ---: |
        | 16 | &lt;z> \\| 2 |
        | 32 |  |
        """
        width = len(self.header)
        rule = ["---", *["---:"] * (width - 1)]
        lines = [[*map(escaped, row), *[""] * (width - len(row))] for row in self.rows]
        return _lines([[*map(escaped, self.header)], rule, *lines])

    def _padded(self) -> list[list[str]]:
        """The header and all rows, the cells of a column made equally wide."""
        lines = [self.header, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return [list(map(str.ljust, line, widths)) for line in lines]


def _lines(lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
