"""How far the work has come, on stderr: bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

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

from cprsim.cli.pulse import pulse
from cprsim.cli.saying import complain
from cprsim.cli.terminal import Terminal
from cprsim.making.watch import Watch


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
def training() -> Iterator[Callable[[str, int, int], None]]:
    """A bar that starts again with each run; it is told which, what is done, and how much."""
    with _shown(
        TextColumn("training: {task.description}", markup=False), BarColumn(), TimeRemainingColumn()
    ) as shown:
        task = shown.add_task("clicks", total=None)
        pulse.doing("training", lambda: f"{shown.tasks[0].description} {_done(shown)}")

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
        pulse.doing("working", lambda: f"{shown.tasks[0].completed:,.0f} {what}")
        yield lambda: shown.update(task, advance=1)


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


class TerminalWatch(Watch):
    """Shows all of the work on stderr: bars, the pulse, complaints."""

    def doing(self, what: str) -> None:
        pulse.doing(what)

    def warn(self, message: str) -> None:
        complain(f"cprsim: {message}")

    def progress(self, doing: str) -> AbstractContextManager[Callable[[int, int], None]]:
        return progress(doing)

    def counting(self, what: str) -> AbstractContextManager[Callable[[], None]]:
        return counting(what)


ON_STDERR = TerminalWatch()
