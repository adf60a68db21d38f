"""What is said of work that takes its time: a line on a terminal, lines now and then elsewhere."""

from __future__ import annotations

import time
from io import StringIO

import pytest

from cprsim.cli import saying as module
from cprsim.cli.saying import ERASED, Pulse


class Screen(StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def wait_for(self, text: str) -> None:
        until = time.monotonic() + 20
        while text not in self.getvalue():
            assert time.monotonic() < until, f"{text!r} did not come: {self.getvalue()!r}"
            time.sleep(0.01)


@pytest.fixture
def screen(monkeypatch):
    """A screen that is stderr, of a pulse that beats fast."""
    for name in ("FIRST_S", "REDRAWN_S", "LINE_S"):
        monkeypatch.setattr(module, name, 0.03)

    def made(*, terminal: bool) -> Screen:
        screen = Screen(terminal)
        monkeypatch.setattr(module.sys, "stderr", screen)
        return screen

    return made


def test_a_terminal_shows_what_is_done_and_the_line_is_gone_at_the_end(screen) -> None:
    shown, pulse = screen(terminal=True), Pulse()
    with pulse.alive():
        pulse.doing("simulating", lambda: "3 of 10")
        shown.wait_for("simulating 3 of 10, 0 s")
    assert "\n" not in shown.getvalue()
    assert shown.getvalue().endswith(ERASED)


def test_where_there_is_no_terminal_lines_come_one_below_the_other(screen) -> None:
    shown, pulse = screen(terminal=False), Pulse()
    with pulse.alive():
        pulse.doing("simulating", lambda: "3 of 10")
        shown.wait_for("cprsim: simulating 3 of 10, 0 s\n")
    assert "\x1b" not in shown.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_the_quiet_say_nothing_and_so_does_who_draws_a_bar(screen, terminal) -> None:
    shown, pulse = screen(terminal=terminal), Pulse()
    with pulse.alive(), pulse.behind_a_bar():
        time.sleep(0.15)
    with pulse.alive():
        pulse.quiet = True
        time.sleep(0.15)
    assert shown.getvalue() == ""


def test_who_wants_to_know_is_told_every_step(cprsim, scenario) -> None:
    told = cprsim("-v", "run", scenario).stderr
    assert [line.split(" s  ")[1] for line in told.splitlines()] == [
        "loading", "simulating", "drawing figures",
    ]  # fmt: skip
    assert cprsim("run", scenario, "--seed", 2).stderr == ""
