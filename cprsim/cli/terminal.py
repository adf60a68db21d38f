"""The terminal of tables and progress; heavy to import. Plain lines: `cprsim.cli.saying`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from cprsim.cli.pulse import pulse
from cprsim.errors import printable


class Terminal(Console):
    """Rich's console for text from anywhere: it takes none for markup, and spells controls out.

    Cells of tables are spelled out before they are measured, so that columns keep their places;
    whatever else is drawn, when it becomes text with a style.
    """

    def __init__(self, **how: Any) -> None:
        super().__init__(markup=False, emoji=False, **how)

    def print(self, *objects: Any, **how: Any) -> None:
        pulse.clear()
        super().print(*objects, **how)

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(printable(text), **how)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))
