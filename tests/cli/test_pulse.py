"""What is said of work that takes its time: a bar on a terminal, lines now and then elsewhere."""

import re
import time
from io import StringIO

import pytest

from cprsim.cli import console as module
from cprsim.cli.console import StatusLine


class Screen(StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.isatty = lambda: terminal

    def wait_for(self, text: str) -> None:
        until = time.monotonic() + 20
        while text not in self.getvalue():
            assert time.monotonic() < until, f"{text!r} did not come: {self.getvalue()!r}"
            time.sleep(0.01)


def screen_of(text: str) -> list[str]:
    """The lines that a terminal shows in the end, of the moves that a bar of one line makes."""
    lines, row = [""], 0
    for part in re.findall(r"\x1b\[\?25.|\x1b\[1A|\x1b\[2K|\x1b\[[\d;]*m|\r|\n|[^\x1b\r\n]+", text):
        row += (part == "\n") - (part == "\x1b[1A")
        lines += [""] * (row + 1 - len(lines))
        if part in ("\r", "\x1b[2K") or "\x1b" not in part:
            lines[row] = "" if part != "\r" and "\x1b" in part else part.strip("\r\n")
    return [line for line in lines if line]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_shows_a_bar_and_other_places_lines_below_each_other(
    monkeypatch, terminal
) -> None:
    for name in ("FIRST_S", "REDRAWN_S", "LINE_S"):
        monkeypatch.setattr(module, name, 0.03)
    pulse, shown = StatusLine(), Screen(terminal)
    monkeypatch.setattr(module.sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    with pulse.alive(), pulse.progress("simulating") as tell:
        shown.wait_for("0 s")
        tell(1000, 1000)
        shown.wait_for("1,000 of 1,000, 0 s" + "\n" * (not terminal))
        pulse.doing("compiling a\x1b[31m")
        shown.wait_for(r"compiling a\x1b[31m")
        tell(1, 4000)
        shown.wait_for("1 of 4,000, 0 s, about ")
    text = shown.getvalue()
    assert ("━" in text, "\x1b" in text) == (terminal, terminal)
    assert text.count("simulating, 1 of 4,000") == (0 if terminal else 1)
    assert not terminal or screen_of(text) == []
    with pulse.alive():
        pulse.quiet = True
        time.sleep(0.15)
    assert shown.getvalue() == text


def test_who_wants_to_know_is_told_every_step(cprsim, scenario) -> None:
    told = cprsim("-v", "run", scenario).stderr
    assert [line.split(" s  ")[1] for line in told.splitlines()] == [
        "loading", "simulating",
    ]  # fmt: skip
    assert cprsim("run", scenario, "--seed", 2).stderr == ""
