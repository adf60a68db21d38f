"""What is said of work that takes its time: a line on a terminal, lines now and then elsewhere."""

from __future__ import annotations

import time
from io import StringIO

import pytest

from cprsim.cli import console as module
from cprsim.cli.console import ERASED, StatusLine


class Screen(StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.isatty = lambda: terminal

    def wait_for(self, text: str) -> None:
        until = time.monotonic() + 20
        while text not in self.getvalue():
            assert time.monotonic() < until, f"{text!r} did not come: {self.getvalue()!r}"
            time.sleep(0.01)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_shows_a_line_and_other_places_lines_below_each_other(
    monkeypatch, terminal
) -> None:
    for name in ("FIRST_S", "REDRAWN_S", "LINE_S"):
        monkeypatch.setattr(module, name, 0.03)
    pulse, shown = StatusLine(), Screen(terminal)
    monkeypatch.setattr(module.sys, "stderr", shown)
    with pulse.alive(), pulse.progress("simulating") as tell:
        shown.wait_for("simulating, 0 s")
        tell(1000, 1000)
        shown.wait_for("simulating 1,000 of 1,000, 0 s" + "\n" * (not terminal))
        tell(1, 4000)
        shown.wait_for(" left, 0 s")
    text = shown.getvalue()
    assert ("\n" in text, "\x1b" in text, text.endswith(ERASED)) == (
        not terminal, terminal, terminal
    )  # fmt: skip
    with pulse.alive():
        pulse.quiet = True
        time.sleep(0.15)
    assert shown.getvalue() == text


def test_who_wants_to_know_is_told_every_step(cprsim, scenario) -> None:
    told = cprsim("-v", "run", scenario).stderr
    assert [line.split(" s  ")[1] for line in told.splitlines()] == [
        "loading", "simulating", "drawing figures",
    ]  # fmt: skip
    assert cprsim("run", scenario, "--seed", 2).stderr == ""
