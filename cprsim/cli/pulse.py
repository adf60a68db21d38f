"""What the program is doing, on stderr, where no bar shows it.

On a terminal it is one line, drawn anew and gone before anything else is printed; elsewhere a line
comes every 30 seconds. Light to import: the line is there while the libraries load.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, RLock, Thread
from time import monotonic

from cprsim.errors import one_line

FIRST_S, REDRAWN_S, LINE_S = 0.6, 0.5, 30.0
WIDEST = 60  # characters: a line that wraps could not be taken away
ERASED = "\r\x1b[2K"


class Pulse:
    """What is being done, since when, and whether that is said."""

    def __init__(self) -> None:
        self.quiet = False
        self.verbose = False
        self._lock, self._over = RLock(), Event()
        self._n_bars, self._drawn = 0, False
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
    def behind_a_bar(self) -> Iterator[None]:
        """While a bar is drawn, there is no line."""
        self.clear()
        self._n_bars += 1
        try:
            yield
        finally:
            self._n_bars -= 1
            self._last = monotonic()

    def _beat(self) -> None:
        terminal = _is_terminal()
        wait_s = FIRST_S if terminal else LINE_S
        while not self._over.wait(wait_s):
            with self._lock:
                silent_s = monotonic() - self._last
                if not (self.quiet or self._n_bars) and silent_s >= (FIRST_S if terminal else 0):
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
