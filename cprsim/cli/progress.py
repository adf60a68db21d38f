"""How far the work has come, on stderr; nothing where that is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from cprsim.cli.terminal import Terminal


@contextmanager
def progress(doing: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left; it is told what is done, and how much there is."""
    with _shown(
        TextColumn(doing, markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    ) as shown:
        task = shown.add_task(doing, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


@contextmanager
def training() -> Iterator[Callable[[str, int, int], None]]:
    """A bar that starts again with each run; it is told which, what is done, and how much."""
    with _shown(
        TextColumn("training: {task.description}", markup=False), BarColumn(), TimeRemainingColumn()
    ) as shown:
        task = shown.add_task("clicks", total=None)

        def on_progress(run: str, done: int, total: int) -> None:
            shown.update(task, description=run, completed=done, total=total)

        yield on_progress


@contextmanager
def counting(what: str) -> Iterator[Callable[[], None]]:
    """How many things are done, where nobody knows how many there will be."""
    with _shown(
        SpinnerColumn(),
        TextColumn(f"{{task.completed:.0f}} {what}", markup=False),
        TimeElapsedColumn(),
    ) as shown:
        task = shown.add_task(what, total=None)
        yield lambda: shown.update(task, advance=1)


@contextmanager
def _shown(*columns: ProgressColumn) -> Iterator[Progress]:
    console = Terminal(stderr=True)
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as shown:
        yield shown
