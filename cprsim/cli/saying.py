"""All that the commands say: lines, what they are doing, and errors nobody's input is to blame for.

Nothing from a file is obeyed by a terminal. A test sees to it that no command prints otherwise.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, RLock, Thread
from time import monotonic
from types import FrameType, TracebackType
from typing import Any, NoReturn

import typer

from cprsim.errors import Progress, json_printable, one_line, printable

INSIST_AFTER_S = 0.5  # of an interrupt that has not come through
REFUSED = 1  # the exit code where the system refuses
UNFORESEEN = 70  # the exit code: EX_SOFTWARE of sysexits.h
TRACEBACK = "CPRSIM_TRACEBACK"  # the environment variable that shows where it happened
MOST_OF_A_MESSAGE = 200  # characters
_PACKAGE = Path(__file__).parents[1]
_NO_ROOM = b"cprsim: out of memory: ask for less\n"
_REPORT = "please report it, with the command and this line"
_SHOW = f"`cprsim --traceback ...`, or {TRACEBACK}=1 in the environment, shows the traceback"


def say(what: object) -> None:
    """A line on stdout."""
    pulse.clear()
    typer.echo(printable(str(what)))


def say_json_text(text: str) -> None:
    """A JSON object on stdout."""
    pulse.clear()
    typer.echo(json_printable(text))


def complain(what: object) -> None:
    """A line on stderr: what is wrong, or what the user should know."""
    pulse.clear()
    typer.echo(printable(str(what)), err=True)


# --------------------------------------------------------------------------- what is being done

FIRST_S, REDRAWN_S, LINE_S = 0.6, 0.5, 30.0
WIDEST = 60  # characters: a line that wraps could not be taken away
ERASED = "\r\x1b[2K"


class Pulse:
    """What is being done, since when, and whether that is said."""

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
        """Say what is done for as long as the block takes."""
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

    def doing(self, what: str, how_far: Callable[[], str] = str) -> None:
        """Name what begins; with ``-v`` that is a line of its own."""
        with self._lock:
            self._doing, self._how_far = what, how_far
            if self.verbose:
                self.clear()
                self._write(f"{monotonic() - self._began:7.1f} s  {one_line(what)}\n")

    def clear(self) -> None:
        """Take the line away: something else is printed; it stays away for a moment."""
        with self._lock:
            if self._drawn:
                self._write(ERASED)
            self._drawn, self._last = False, monotonic()

    @contextmanager
    def progress(self, doing: str) -> Iterator[Progress]:
        """How far a step has come that is counted, and about how long it will take."""
        began, done, total = monotonic(), 0, 0

        def tell(n: int, of: int) -> None:
            nonlocal done, total
            done, total = n, of

        def how_far() -> str:
            if not total:
                return ""
            left_s = (monotonic() - began) * (total - done) / done if done else 0.0
            left = f", about {_clock(left_s)} left" if left_s else ""
            return f"{done:,} of {total:,}{left}"

        self.doing(doing, how_far)
        yield tell

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
        with suppress(OSError):  # of a file that is counted and just goes away
            far = self._how_far()
        doing = one_line(f"{self._doing} {far}".rstrip(), WIDEST)
        line = f"{doing}, {_clock(monotonic() - self._began)}"
        self._write(f"{ERASED}{line}" if terminal else f"cprsim: {line}\n")
        self._drawn = terminal

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # nobody reads it
            sys.stderr.write(text)
            sys.stderr.flush()


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except ValueError:  # closed
        return False


def _clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


pulse = Pulse()  # of the process: there is one stderr


# --------------------------------------------------------------------------- nobody is to blame


def show_tracebacks(wanted: bool) -> None:
    """What ``--traceback`` does; in the environment, so that worker processes know it too."""
    if wanted:
        os.environ[TRACEBACK] = "1"


def refused(error: OSError) -> None:
    """Say on stderr what the system refused, such as to write to a full disk."""
    where = f"{error.filename}: " if error.filename else ""
    with suppress(OSError):
        complain(f"cprsim: {where}{error.strerror or error}")


def tell(error: Exception) -> None:
    """Say on stderr what happened, in one line; after the traceback where that was asked for."""
    try:
        if os.environ.get(TRACEBACK):
            complain("".join(traceback.format_exception(error)).rstrip())
        complain(sentence(error))
    except Exception:  # no memory for words
        with suppress(OSError):
            os.write(2, _NO_ROOM)


def sentence(error: Exception) -> str:
    """The one line about it."""
    where = _where(error.__traceback__)
    message = one_line(str(error), MOST_OF_A_MESSAGE)
    what = type(error).__name__ + (f": {message}" if message else "")
    if isinstance(error, MemoryError):
        return (
            f"cprsim: out of memory ({what}{where}): ask for less, for example for fewer "
            f"replications. If it should have fitted, {_REPORT}. {_SHOW}"
        )
    return f"cprsim: an error that it did not foresee ({what}{where}): {_REPORT}. {_SHOW}"


def _where(trace: TracebackType | None) -> str:
    """File and line of the package's own innermost step, nothing where it took none."""
    found = ""
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if path.is_relative_to(_PACKAGE):
            found = f", {path.relative_to(_PACKAGE.parent)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def heed_interrupts() -> None:
    """Raise KeyboardInterrupt at Ctrl-C, and again until it has come through to `calm`.

    An exception raised inside some callbacks of C libraries is printed and forgotten; the run
    would go on. Where the caller has the program ignore interrupts, it does.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
        signal.signal(signal.SIGALRM, _interrupt)
        sys.unraisablehook = _swallowed


def calm() -> None:
    """The program is ending: no further exceptions."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    signal.setitimer(signal.ITIMER_REAL, INSIST_AFTER_S)
    raise KeyboardInterrupt


def _swallowed(unraisable: Any) -> None:
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
