"""Ctrl-C says what is kept and how to go on; the program may be called as a module."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cprsim
from tests.making import PATIENCE_S, PROGRAM
from tests.measuring.conftest import SCENARIO as TRAINED

pytestmark = pytest.mark.long


def heeding_interrupts() -> None:
    """Tests that run in the background of a shell hand on that interrupts are ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupted(arguments: list[object], begun) -> subprocess.CompletedProcess[str]:
    """Call the program, and press Ctrl-C as a terminal does once it has begun."""
    command = [*PROGRAM, *map(str, arguments)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heeding_interrupts,
    ) as running:
        ends = time.monotonic() + PATIENCE_S
        while not begun() and running.poll() is None and time.monotonic() < ends:
            time.sleep(0.01)
        os.killpg(running.pid, signal.SIGINT)
        try:
            out, err = running.communicate(timeout=PATIENCE_S)
        finally:
            running.kill()
    return subprocess.CompletedProcess(command, running.returncode, out, err)


def said_of(
    done: subprocess.CompletedProcess[str], arguments: list[object], before: str = ""
) -> str:
    """What is said of the interruption, which is the last line on stderr."""
    assert done.returncode == 130, done.stderr
    assert done.stdout.startswith(before)
    assert bool(done.stdout) is bool(before)
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("cprsim: interrupted; ")
    again = " ".join(["cprsim", *map(str, arguments)])
    assert last.endswith(f". The same command goes on from there: {again}")
    return last


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_sweep_says_how_many_points_are_kept(scenario, workers) -> None:
    arguments = [
        "sweep", "small.yaml", "--over", "costs.load=1min:9min:lin12",
        "--over", "costs.detect=1s:9s:lin10", "--workers", workers, "--replications", 500,
    ]  # fmt: skip
    points = Path("results") / "points"
    done = interrupted(arguments, lambda: len(list(points.glob("*/*.json"))) > 2)
    n = len(list(points.glob("*/*.json")))
    assert f"{n} of 120 points are finished and kept in results/points" in said_of(done, arguments)
    assert not list(Path("results").glob("small-sweep-*"))


def test_an_interrupted_measurement_says_how_many_runs_are_kept(scenario) -> None:
    Path("trained.yaml").write_text(TRAINED, "utf-8")
    arguments = ["measure", "trained.yaml", "--out", "c.json", "--seeds", 200, "--workers", 1]
    runs = Path("c.json.runs")
    done = interrupted(arguments, lambda: any(p.stat().st_size for p in runs.glob("seed-*.jsonl")))
    n = sum(path.read_bytes().count(b"\n") for path in runs.glob("seed-*.jsonl"))
    said = said_of(done, arguments)
    assert n > 0
    assert f"{n:,} finished training runs are kept in " in said
    assert "c.json.runs; c.json is not written yet" in said
    assert not Path("c.json").exists()


def test_the_program_may_be_called_as_a_module() -> None:
    command = [sys.executable, "-m", "cprsim", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"cprsim {cprsim.__version__}\n"
    wrong = subprocess.run([*command[:-1], "run", "no-such.yaml"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert re.match(r"(cprsim: )?no-such\.yaml", wrong.stderr)
