"""Tables, and how far the work has come; heavy to import. Plain lines: `cprsim.cli.saying`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.text import Text

from cprsim.cli.saying import pulse
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


# How far the work has come, on stderr: bars on a terminal, a line now and then elsewhere.


@contextmanager
def progress(doing: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left; it is told what is done, and how much there is."""
    with _shown(
        TextColumn(doing, markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    ) as shown:
        task = shown.add_task(doing, total=None)
        pulse.doing(doing, lambda: _done(shown))
        yield lambda done, total: shown.update(task, completed=done, total=total)


@contextmanager
def _shown(*columns: ProgressColumn) -> Iterator[Progress]:
    console = Terminal(stderr=True)
    bar = console.is_terminal and not pulse.quiet
    with ExitStack() as stack:
        if bar:
            stack.enter_context(pulse.behind_a_bar())
        bars = Progress(*columns, console=console, transient=True, disable=not bar)
        yield stack.enter_context(bars)


def _done(shown: Progress) -> str:
    """``300 of 1,000``; nothing where that is not known yet."""
    task = shown.tasks[0]
    return "" if task.total is None else f"{task.completed:,.0f} of {task.total:,.0f}"
