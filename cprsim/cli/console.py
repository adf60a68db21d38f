"""Console output: messages, the progress of the work, internal errors.

Control characters from files are escaped. A test checks that no command prints by another path.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import Event, RLock, Thread
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from cprsim.errors import (
    CprsimError,
    InputError,
    Progress,
    json_printable,
    one_line,
    printable,
    watch,
)

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

INSIST_AFTER_S = 0.5  # of an interrupt that has not come through
REFUSED = 1  # the exit code where the system refuses
ERROR = "red"  # the colour of errors
UNFORESEEN = 70  # the exit code: EX_SOFTWARE of sysexits.h


def echo(message: object, *, is_printable: bool = False) -> None:
    """Print a line on stdout; one that is printable has no controls but those of `style_on`."""
    _echo(str(message) if is_printable else printable(str(message)))


def echo_json(text: str) -> None:
    """Print a JSON object on stdout."""
    _echo(json_printable(text))


def warn(message: object, colour: str = "yellow") -> None:
    """Print a line on stderr: an error, a warning or a notice."""
    text = printable(str(message))
    _echo(style_on(sys.stderr)(text, fg=colour), err=True)


def _echo(text: str, *, err: bool = False) -> None:
    import typer  # takes most of the start-up time, during which Ctrl-C must work

    status.clear()
    typer.echo(text, err=err)


def is_terminal(stream: TextIO) -> bool:
    """Whether a stream is a terminal that can move its cursor."""
    try:
        return stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    except ValueError:  # closed
        return False


def style_on(stream: TextIO) -> Callable[..., str]:
    """A function that styles a text, if the stream shows styles (https://no-color.org)."""
    import typer

    shows = is_terminal(stream) and not os.environ.get("NO_COLOR")
    return lambda text, **how: (
        typer.style(text, **how) if shows and text and any(how.values()) else text
    )


# --------------------------------------------------------------------------- the progress

FIRST_S, REDRAWN_S, LINE_S = 0.4, 0.2, 30.0
BAR_WIDTH, LEAST_WORDS = 16, 12  # characters


@dataclass(slots=True)
class Step:
    """A step of the work; its total is 0 where that is unknown."""

    name: str
    n_done: int = 0
    total: int = 0
    began: float = field(default_factory=monotonic)

    @property
    def how_far(self) -> str:
        """Its count, the time it has taken, and the time left at its mean speed."""
        taken_s = monotonic() - self.began
        count = [f"{self.n_done:,} of {self.total:,}"] if self.total else []
        left_s = taken_s * (self.total - self.n_done) / self.n_done if self.n_done else 0.0
        left = [f"about {_clock(left_s)} left"] if left_s > 0 else []
        return ", ".join([*count, _clock(taken_s), *left])


class StatusLine:
    """Progress on stderr: a bar on a terminal, elsewhere a line every 30 s."""

    def __init__(self) -> None:
        self.quiet = False
        self.verbose = False
        self._lock, self._over = RLock(), Event()
        self._bar: Bar | None = None  # while it is drawn
        self._began = self._last = monotonic()
        self._step = self._drawn = Step("starting")
        self._counted: Step | None = None  # within whose count others are

    @contextmanager
    def alive(self) -> Iterator[None]:
        self._over.clear()
        self._began = self._last = monotonic()
        self.doing("starting")
        thread = Thread(target=self._beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()
            self.clear()
            self.quiet = self.verbose = False

    def doing(self, name: str) -> None:
        """Set the current step; with ``-v``, also print it on a new line."""
        with self._lock:
            self._step = replace(self._counted, name=name) if self._counted else Step(name)
            if self.verbose:
                self.clear()
                self._write(f"{monotonic() - self._began:7.1f} s  {one_line(name)}\n")

    def clear(self) -> None:
        """Erase the bar before other output; it is drawn again after a pause."""
        with self._lock:
            if self._bar is not None:
                with suppress(OSError, ValueError):
                    self._bar.stop()
            self._bar, self._last = None, monotonic()

    @contextmanager
    def progress(self, doing: str) -> Iterator[Progress]:
        """Show the count of a step and the estimated time left."""
        self._counted = None
        self.doing(doing)
        step = self._counted = self._step

        def tell(n: int, of: int) -> None:
            step.n_done, step.total = n, of
            self._step = step  # also after another one within it, such as compiling

        try:
            yield tell
        finally:  # the next work may take a while, and has no name
            self._step, self._counted = Step("finishing"), None

    def _beat(self) -> None:
        terminal = is_terminal(sys.stderr)
        while not self._over.wait(REDRAWN_S if terminal else LINE_S):
            with self._lock, suppress(OSError, ValueError):  # stderr is closed
                if self.quiet or (terminal and monotonic() - self._last < FIRST_S):
                    continue
                if terminal:
                    self._draw()
                else:
                    self._write(f"cprsim: {one_line(self._step.name)}, {self._step.how_far}\n")

    def _draw(self) -> None:
        step, total = self._step, self._step.total or None
        if self._bar is None:
            self._bar = _bar()
        bar = self._bar
        if step is not self._drawn or not bar.task_ids:
            for task in bar.task_ids:
                bar.remove_task(task)
            bar.add_task("", total=total, far="")
        far, room = step.how_far, bar.console.width - BAR_WIDTH - 3
        name = one_line(step.name, max(LEAST_WORDS, room - len(far)))
        bar.update(bar.task_ids[0], description=name, total=total, completed=step.n_done, far=far)
        self._drawn = step
        bar.start()
        bar.refresh()

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # stderr is closed
            sys.stderr.write(text)
            sys.stderr.flush()


def _bar() -> Bar:
    """A bar of one line on stderr that leaves nothing behind."""
    from rich import console, progress  # takes a tenth of a second

    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(BAR_WIDTH),
        progress.TextColumn("{task.fields[far]}", markup=False),
        console=console.Console(file=sys.stderr, force_terminal=True),
        auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False,
    )  # fmt: skip


def _clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


status = StatusLine()  # of the process: there is one stderr


# --------------------------------------------------------------------------- errors and signals


_interrupted: list[int] = []  # signals of interrupts so far
keeps: list[Callable[[], str]] = []  # the last one names the stored results


@contextmanager
def exit_codes() -> Iterator[None]:
    """Print an expected error on stderr and end with its exit code (see `main`)."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        # after Ctrl-C any error is an interrupt: the import of a library in C makes others of it
        sys.exit(_exit_code(KeyboardInterrupt() if _interrupted else error))


def _exit_code(error: BaseException) -> int:
    """Print an expected error and return its exit code; raises an unexpected one."""
    match error:
        case CprsimError():  # one that is about a file or an option begins with its name
            located = isinstance(error, InputError) or error.option
            warn(error if located else f"cprsim: {error}", ERROR)
            return error.exit_code
        case MemoryError():
            warn(out_of_memory(), ERROR)
            return 2
        case KeyboardInterrupt():
            calm()
            if keeps:
                again = f"The same command continues from there: {shlex.join(watch.command)}"
                warn(f"cprsim: interrupted; {keeps[-1]()}. {again}")
            return 128 + signal.SIGINT
        case BrokenPipeError():
            return 128 + signal.SIGPIPE
        case OSError():  # of stdout for example: writers of results have their own
            refused(error)
            return REFUSED
    raise error


def refused(error: OSError) -> None:
    """Print an operating-system error, such as a full disk, on stderr."""
    where = f"{error.filename}: " if error.filename else ""
    with suppress(OSError):
        warn(f"cprsim: {where}{error.strerror or error}", ERROR)


def out_of_memory() -> str:
    """The message for exhausted memory, with ways to need less."""
    from cprsim.failures.sources import DEFAULT_MEMORY, MEMORY_KEY

    return (
        "cprsim: the memory that this process may have is used up: ask for less (half as many "
        "--replications, a shorter job, a longer MTBF, fewer nodes), or have the work done in "
        f"smaller pieces: {MEMORY_KEY} in the environment says how much there is (unless said, "
        f"{DEFAULT_MEMORY})"
    )


def unforeseen() -> None:
    """Print the traceback of an internal error, and ask the user to report it."""
    warn(traceback.format_exc().rstrip())
    warn("cprsim: an error that it did not foresee: please report it, with these lines", ERROR)


def heed_interrupts() -> None:
    """Raise KeyboardInterrupt at Ctrl-C, and repeat it until `calm` is called.

    Some C libraries print and discard an exception raised inside their callbacks, and the run would
    continue. Interrupts that the caller ignores stay ignored. SIGTERM, sent by a batch system, ends
    the program cleanly: workers stop and temporary folders are removed.
    """
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
        signal.signal(signal.SIGALRM, _interrupt)
        sys.unraisablehook = _swallowed


def calm() -> None:
    """Stop raising KeyboardInterrupt: the program is ending."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one kills the process
    raise SystemExit(128 + number)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _interrupted.append(number)
    signal.setitimer(signal.ITIMER_REAL, INSIST_AFTER_S)
    raise KeyboardInterrupt


def _swallowed(unraisable: Any) -> None:
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
