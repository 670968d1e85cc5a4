"""The plots that reports begin with: means with their standard errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from kmixup.lab.plotting import BLACK, BLUE, FAINT, shade
from kmixup.lab.report.document import Figure

Mean = tuple[float, float | None]  # with its standard error, if known
Line = Mapping[float, Mean]  # by what the horizontal axis shows


def curves(title: str, axis: str, erm: Mean | None, lines: Mapping[str, Line]) -> Figure:

    def draw(axes: Axes) -> None:
        if erm is not None:
            low, error = erm[0], erm[1] or 0.0
            axes.axhspan(low - error, low + error, color=FAINT, alpha=0.3, linewidth=0)
            axes.axhline(low, color=BLACK, ls="dashed", label="ERM")
        for i, (name, line) in enumerate(lines.items()):
            means, errors = zip(*line.values(), strict=True)
            axes.errorbar(
                [*line], means, yerr=[error or 0.0 for error in errors], label=name, marker="o",
                color=shade(i, len(lines)), ms=4.5, lw=1.4, capsize=2.5,
            )  # fmt: skip
        if axis != "level" and all(at > 0 for line in lines.values() for at in line):
            axes.set_xscale("log")
        axes.set_xlabel(axis)

    named = erm is not None or any(lines)
    return Figure(title, draw, legend=3 if named else 0)


def dots(
    title: str, label: str, means: Mapping[str, Mean], references: Sequence[str] = ()
) -> Figure:
    """A row for each name; those of `references` are faint."""

    def draw(axes: Axes) -> None:
        for at, (name, (mean, error)) in enumerate(means.items()):
            colour = FAINT if name in references else BLUE
            axes.errorbar(mean, at, xerr=error, fmt="o", color=colour, capsize=3)
        axes.set_yticks(range(len(means)), [*means])
        axes.invert_yaxis()
        axes.set_xlabel(label)

    return Figure(title, draw, size=(4.6, 1.2 + 0.3 * len(means)))
