"""A console for reports and progress that shows text as text."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from kmixup_command import printable


class SafeConsole(Console):
    """A console that leaves out control characters of the text that it is given.

    Rich writes its own escape codes past the filter of standard output, so text is filtered here.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)
