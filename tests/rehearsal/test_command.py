"""``cprsim rehearse`` as users call it."""

import json
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from cprsim.rehearsal.nodes import forking
from cprsim.results.folder import damage
from cprsim.results.run import load_result
from tests.making import PROGRAM, call
from tests.rehearsal.making import SCENARIO, descendants, material

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
    assert re.search("calibrating for .*, then 1 run of 2 s or more", first.stderr)
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


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_process_survives_the_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    endless = ["--set", "job.useful=60 s", "--set", "recovery.0.interval=20 s"]
    options = ["--strategies", "full", "-v", "--out", str(tmp_path)]
    command = [*PROGRAM, "rehearse", str(SCENARIO), *TINY, *endless, *options]
    with tempfile.TemporaryDirectory() as short:  # as paths of sockets are to be
        monkeypatch.setenv("TMPDIR", short)
        monkeypatch.setattr(tempfile, "tempdir", short)
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        try:
            assert any("attempt 1" in line for line in process.stderr)
            time.sleep(2)
            pids = descendants(process.pid)
            assert len(pids) > 5  # the fork server, 4 servers, a trainer
            (folder,) = Path(short).glob("*/s")
            assert folder.stat().st_mode & 0o77 == 0  # frames there are unpickled
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
        killed = number == signal.SIGKILL
        deadline = time.monotonic() + 10 * killed
        while any(map(is_there, pids)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        if killed:  # it could not tidy up: the next one does
            assert folder.exists()
            with forking(material()):
                assert not folder.exists()
        else:
            assert process.returncode == 130, said
            assert "runs that were done are kept" in said
        assert not folder.exists()


def is_there(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.long
def test_the_smoke_equals_its_replay_on_however_busy_a_machine(tmp_path: Path) -> None:
    """Its times say something on an idle machine alone: there it repeats once, and says both."""
    called = call("rehearse", SCENARIO, "--smoke", "--json", "--out", tmp_path)
    assert called.exit_code in (0, 1, 3), called.stderr
    if called.exit_code == 3 and not called.stdout:
        assert "busy" in called.stderr
        return
    attempts = json.loads(called.stdout)["frames"]["attempts"]
    for one in attempts:
        assert one["equal_bits"]
        alone = [o for o in attempts if o["strategy"] == one["strategy"]]
        assert one["too_busy"] is None or len(alone) == 2
    if called.exit_code == 1:
        pytest.xfail(f"off on this machine: {called.stdout}")
