"""Console output: messages, the status line, internal errors.

Control characters from files are escaped. A test checks that no command prints by another path.
"""

from __future__ import annotations

import shlex
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, RLock, Thread
from time import monotonic
from types import FrameType
from typing import Any, NoReturn

from cprsim.errors import (
    CprsimError,
    InputError,
    Progress,
    json_printable,
    one_line,
    printable,
    watch,
)

INSIST_AFTER_S = 0.5  # of an interrupt that has not come through
REFUSED = 1  # the exit code where the system refuses
UNFORESEEN = 70  # the exit code: EX_SOFTWARE of sysexits.h


def echo(message: object) -> None:
    """Print a line on stdout."""
    _echo(printable(str(message)))


def echo_json(text: str) -> None:
    """Print a JSON object on stdout."""
    _echo(json_printable(text))


def warn(message: object) -> None:
    """Print a line on stderr: an error, a warning or a notice."""
    _echo(printable(str(message)), err=True)


def _echo(text: str, *, err: bool = False) -> None:
    import typer  # takes most of the start-up time, during which Ctrl-C must work

    status.clear()
    typer.echo(text, err=err)


# --------------------------------------------------------------------------- the status line

FIRST_S, REDRAWN_S, LINE_S = 0.6, 0.5, 30.0
WIDEST_STATUS = 60  # characters: a wrapped line can't be erased
ERASED = "\r\x1b[2K"


class StatusLine:
    """The status line on stderr: the current step and its elapsed time."""

    def __init__(self) -> None:
        self.quiet = False
        self.verbose = False
        self._lock, self._over = RLock(), Event()
        self._drawn = False
        self._began = self._last = monotonic()
        self._doing: str = "starting"
        self._how_far: Callable[[], str] = str

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Show the status line while the block runs."""
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

    def doing(self, step: str, how_far: Callable[[], str] = str) -> None:
        """Set the current step; with ``-v``, also print it on a new line."""
        with self._lock:
            self._doing, self._how_far = step, how_far
            if self.verbose:
                self.clear()
                self._write(f"{monotonic() - self._began:7.1f} s  {one_line(step)}\n")

    def clear(self) -> None:
        """Erase the line before other output; it is drawn again after a pause."""
        with self._lock:
            if self._drawn:
                self._write(ERASED)
            self._drawn, self._last = False, monotonic()

    @contextmanager
    def progress(self, doing: str) -> Iterator[Progress]:
        """Show the count of a step and the estimated time left."""
        began, n_done, total = monotonic(), 0, 0

        def tell(n: int, of: int) -> None:
            nonlocal n_done, total
            n_done, total = n, of

        def how_far() -> str:
            if not total:
                return ""
            left_s = (monotonic() - began) * (total - n_done) / n_done if n_done else 0.0
            left = f", about {_clock(left_s)} left" if left_s else ""
            return f"{n_done:,} of {total:,}{left}"

        self.doing(doing, how_far)
        yield tell
        with self._lock:  # the next work may take a while, and has no name
            self._doing, self._how_far = "finishing", str

    def _beat(self) -> None:
        terminal = _is_terminal()
        wait_s = FIRST_S if terminal else LINE_S
        while not self._over.wait(wait_s):
            with self._lock:
                silent_s = monotonic() - self._last
                if not self.quiet and silent_s >= (FIRST_S if terminal else 0):
                    self._say(terminal)
            wait_s = REDRAWN_S if terminal else LINE_S

    def _say(self, terminal: bool) -> None:
        far = ""
        with suppress(OSError):  # a file that is counted may vanish
            far = self._how_far()
        doing = one_line(f"{self._doing} {far}".rstrip(), WIDEST_STATUS)
        line = f"{doing}, {_clock(monotonic() - self._began)}"
        self._write(f"{ERASED}{line}" if terminal else f"cprsim: {line}\n")
        self._drawn = terminal

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # stderr is closed
            sys.stderr.write(text)
            sys.stderr.flush()


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except ValueError:  # closed
        return False


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
        case CprsimError():  # lines of an input error begin with file and line
            warn(error if isinstance(error, InputError) else f"cprsim: {error}")
            return error.exit_code
        case MemoryError():
            warn(out_of_memory())
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
        warn(f"cprsim: {where}{error.strerror or error}")


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
    warn("cprsim: an error that it did not foresee: please report it, with these lines")


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
