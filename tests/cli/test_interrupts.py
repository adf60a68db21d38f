"""Ctrl-C says what is kept and how to go on."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.making import PATIENCE_S, PROGRAM
from tests.measuring.conftest import SCENARIO as TRAINED

pytestmark = pytest.mark.long


SWEEP = (
    "sweep small.yaml --over costs.load=1min:9min:lin12 --over costs.detect=1s:9s:lin10 "
    "--replications 500"
)


def heeding_interrupts() -> None:
    """Tests that run in the background of a shell hand on that interrupts are ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupted(
    arguments: list[str], begun, number: int = signal.SIGINT
) -> subprocess.CompletedProcess[str]:
    """Call the program, and press Ctrl-C as a terminal does once it has begun."""
    command = [*PROGRAM, *arguments]
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
        os.killpg(running.pid, number) if number == signal.SIGINT else running.send_signal(number)
        try:
            out, err = running.communicate(timeout=PATIENCE_S)
        finally:
            running.kill()
    return subprocess.CompletedProcess(command, running.returncode, out, err)


@pytest.mark.parametrize(
    ("arguments", "parts", "kept"),
    [
        (f"{SWEEP} --workers 1", "results/points/*/*.json", "{} of 120 points are finished and "),
        (f"{SWEEP} --workers 2", "results/points/*/*.json", "{} of 120 points are finished and "),
        ("measure trained.yaml --out c.json --seeds 200 --workers 1", "c.json.runs/seed-*.jsonl",
         "{:,} finished training runs are kept in "),
    ],
    ids=["sweep", "sweep by two", "measure"],
)  # fmt: skip
def test_what_is_finished_is_kept_and_counted_and_the_way_on_is_said(
    scenario, arguments, parts, kept
) -> None:
    Path("trained.yaml").write_text(TRAINED, "utf-8")

    def n_finished() -> int:
        files = [path.read_bytes() for path in Path().glob(parts)]
        return sum(file.count(b"\n") if parts.endswith("l") else 1 for file in files)

    done = interrupted(arguments.split(), lambda: n_finished() > 2)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("cprsim: interrupted; ")
    assert kept.format(n_finished()) in last
    assert last.endswith(f". The same command continues from there: cprsim {arguments}")
    assert not list(Path("results").glob("small-sweep-*"))
    assert not Path("c.json").exists()


def test_sigterm_ends_a_sweep_and_its_workers_without_a_word(scenario) -> None:
    def finished() -> list[Path]:
        return list(Path().glob("results/points/*/*.json"))

    done = interrupted(f"{SWEEP} --workers 2".split(), finished, signal.SIGTERM)
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "")
    assert finished()
    assert not list(Path("results").glob(".*"))
