"""``cprsim rehearse`` as users call it."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from cprsim.results.folder import damage
from cprsim.results.run import load_result
from tests.making import PROGRAM, SCENARIOS, call

SCENARIO = SCENARIOS / "rehearsal.yaml"
TINY = [
    "--set", "job.useful=2 s", "--set", "kernel.samples=6000", "--set", "kernel.most_rows=200",
    "--set", "costs.save=0.1 s", "--set", "costs.detect=0.3 s", "--set", "costs.reschedule=0.1 s",
    "--set", "failures.count=2", "--set", "recovery.0.interval=0.6 s",
    "--set", "storage.bandwidth=20 MB/s", "--set", "storage.per_server=15 MB/s",
]  # fmt: skip


@pytest.mark.long
@pytest.mark.usefixtures("undrawn")
def test_a_tiny_rehearsal_is_kept_found_again_and_made_again_where_a_run_is_lost(
    tmp_path: Path,
) -> None:
    options = ["--strategies", "full", "--json", "-v", "--out", tmp_path]
    command = ["rehearse", SCENARIO, *TINY, *options]
    first = call(*command)
    if first.exit_code == 3 and not first.stdout:
        assert "the machine is busy" in first.stderr
        pytest.skip(first.stderr.splitlines()[-1])
    shown = json.loads(first.stdout)
    assert all(one["equal_bits"] for one in shown["frames"]["attempts"])
    assert re.fullmatch("[0-9a-f]{64}", shown["values"]["written_before_sha256"])
    if shown["folder"] is not None:
        result = load_result(shown["folder"])
        assert [one.name for one in result.policies] == ["full, predicted", "full, measured"]
        assert damage(result.path) is None
    if first.exit_code != 3:  # else it is tried again
        again = call(*command)
        assert json.loads(again.stdout) == shown
        assert "attempt" not in again.stderr
    (journal,) = (path for path in tmp_path.glob(".rehearsal-*") if path.is_dir())
    for path in journal.glob("full-*.json"):
        path.unlink()
    third = call(*command)
    assert "calibrating" not in third.stderr
    assert "full, trace 0, attempt 1" in third.stderr
    name = "written_before_sha256"
    assert json.loads(third.stdout)["values"][name] == shown["values"][name]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--strategies", "ful"], "the scenario has no `ful`"),
        (["--strategies", "full,full"], "names one twice"),
        (["--set", "failures.clock=uptime"], "failures.clock: wall"),
        (["--set", "cluster.trainers=3"], "`async` is rehearsed with one trainer"),
    ],
)
def test_what_can_not_be_rehearsed_is_said_and_nothing_is_left(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    called = call(
        "rehearse", SCENARIO, "--set", "kernel.samples=2000", *arguments, "--out", tmp_path / "r"
    )
    assert called.exit_code == 2
    assert said in called.stderr
    assert not list((tmp_path / "r").rglob("*.json"))


@pytest.mark.long
def test_ctrl_c_leaves_no_process_and_says_what_is_kept(tmp_path: Path) -> None:
    endless = [
        "--set", "job.useful=60 s", "--set", "recovery.0.interval=20 s",
        "--strategies", "full", "-v", "--out", str(tmp_path),
    ]  # fmt: skip
    process = subprocess.Popen(
        [*PROGRAM, "rehearse", str(SCENARIO), *TINY, *endless],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if "attempt 1" in line:
            break
    time.sleep(2)
    below = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "runs that were done are kept" in said
    assert len(below) > 5  # the fork_server, 4 servers, a trainer
    assert not [pid for pid in below if Path(f"/proc/{pid}").exists()]


def descendants(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    below = [int(word) for word in text.split()]
    return below + [pid for child in below for pid in descendants(child)]


@pytest.mark.long
def test_the_smoke_equals_its_replay_on_however_busy_a_machine(tmp_path: Path) -> None:
    """Its times say something on an idle machine alone: there it repeats once, and says both."""
    called = call("rehearse", SCENARIO, "--smoke", "--json", "--out", tmp_path)
    assert called.exit_code in (0, 1, 3), called.stderr
    if called.exit_code == 3 and not called.stdout:
        assert "busy" in called.stderr
        return
    attempts = json.loads(called.stdout)["frames"]["attempts"]
    assert all(one["equal_bits"] for one in attempts)
    for one in attempts:
        alone = [o for o in attempts if o["strategy"] == one["strategy"]]
        assert one["too_busy"] is None or len(alone) == 2
    if called.exit_code == 1:
        pytest.xfail(f"off on this machine: {called.stdout}")
    shutil.rmtree(tmp_path)
