"""Faults of sweeps, for real: what is killed, filled or damaged, and what becomes of the result.

Each case runs the same sweep, disturbs it, runs the same command again where it ended, and compares
the bytes of table, figures and points with those of a sweep that nobody disturbed. A case that
loses or changes anything ends the script. The full disk needs the right to mount (root).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench_sweep import SCENARIO

AXES = ["--over", "costs.save=30 s:10 min:log5", "--over", "recovery.interval=0.5h:40h:log8"]
N_POINTS = 40
REPLICATIONS = "4000"  # so that a sweep lasts long enough to be disturbed
Contents = dict[str, bytes]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "bench.yaml"
        scenario.write_text(SCENARIO, "utf-8")
        undisturbed = Path(folder) / "undisturbed"
        finish(start(scenario, undisturbed))
        wanted = contents(undisturbed)
        for case in CASES:
            said = case(scenario, Path(folder) / case.__name__)
            same = contents(Path(folder) / case.__name__) == wanted
            doc = str(case.__doc__).split("\n")[0].rstrip(".")
            print(f"{doc}: {said}; {'the same bytes' if same else 'OTHER BYTES'}", flush=True)
            if not same:
                sys.exit(1)


def start(scenario: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    """The sweep in a process of its own, with two workers unless the options say otherwise."""
    by = options or ("--workers", "2")
    command = [sys.executable, "-m", "cprsim.cli", "sweep", str(scenario), *AXES,
               "--replications", REPLICATIONS, "--out", str(out), *by]  # fmt: skip
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, bufsize=1
    )


def finish(running: subprocess.Popen[str], code: int = 0) -> str:
    """Wait for its end, which has this exit code; what it said on stderr."""
    _, said = running.communicate()
    assert running.returncode == code, f"exit code {running.returncode}: {said}"
    return said.strip()


def points(out: Path) -> list[Path]:
    return sorted((out / "points").rglob("*.json"))


def contents(out: Path) -> Contents:
    """Every file of the results folder but manifests, which know the time, by its path."""
    files = (path for path in out.rglob("*") if path.is_file() and path.name != "manifest.json")
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


def until_points(out: Path, n: int, running: subprocess.Popen[str]) -> None:
    while len(points(out)) < n:
        assert running.poll() is None, "it was over before it could be disturbed"
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    """Processes that compute for this one."""
    listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [one for one in map(int, listed.stdout.split()) if "popen_loky" in command_of(one)]


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


# ----------------------------------------------------------------------------- the cases


def worker_killed(scenario: Path, out: Path) -> str:
    """A worker of this machine killed."""
    running = start(scenario, out)
    until_points(out, 3, running)
    n_before = len(points(out))
    os.kill(children(running.pid)[0], signal.SIGKILL)
    finish(running)
    return f"killed after {n_before} of {N_POINTS} points; the sweep went on to its end"


def cluster_worker_killed(scenario: Path, out: Path) -> str:
    """A worker of a dask cluster of three killed."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=3, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster:
        address = ("--backend", "dask", "--address", cluster.scheduler_address)
        running = start(scenario, out, *address)
        until_points(out, 1, running)
        n_before = len(points(out))
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
        finish(running)
    return f"killed after {n_before} of {N_POINTS} points; the sweep went on to its end"


def all_killed(scenario: Path, out: Path) -> str:
    """The sweep itself killed (kill -9)."""
    running = start(scenario, out)
    until_points(out, 5, running)
    running.kill()
    running.wait()
    kept = {path: path.read_bytes() for path in points(out)}
    finish(start(scenario, out))
    assert all(path.read_bytes() == text for path, text in kept.items())
    return f"{len(kept)} of {N_POINTS} points were kept, the same command went on"


def interrupted(scenario: Path, out: Path) -> str:
    """Ctrl-C."""
    running = start(scenario, out)
    until_points(out, 5, running)
    running.send_signal(signal.SIGINT)
    said = finish(running, 130)
    assert said == "", said
    n_kept = len(points(out))
    finish(start(scenario, out))
    return f"{n_kept} of {N_POINTS} points were kept, the same command went on"


def twice_at_once(scenario: Path, out: Path) -> str:
    """Two sweeps started on the same folder."""
    first = start(scenario, out)
    until_points(out, 1, first)
    said = finish(start(scenario, out), 2)
    finish(first)
    assert len(said.splitlines()) == 1, said
    return f"the second said: {said.replace(str(out), 'DIR')}"


def point_damaged(scenario: Path, out: Path) -> str:
    """A point's file damaged between two runs."""
    finish(start(scenario, out))
    shutil.rmtree(next(out.glob("bench-sweep-*")))
    victim = points(out)[7]
    victim.write_bytes(victim.read_bytes()[:-40])
    said = finish(start(scenario, out))
    assert len(said.splitlines()) == 1, said
    return f"the next run said: {said.replace(str(out), 'DIR').replace(victim.stem, 'POINT')}"


def disk_full(scenario: Path, out: Path) -> str:
    """The disk full."""
    out.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(out)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        finish(start(scenario, out))
        return "left out, no right to mount a small disk"
    try:
        said = finish(start(scenario, out), 2)
        assert len(said.splitlines()) == 1, said
        subprocess.run(["mount", "-o", "remount,size=64m", str(out)], check=True)
        n_kept = len(points(out))
        finish(start(scenario, out))
        kept = Path(f"{out}-kept")
        shutil.copytree(out, kept)
    finally:
        subprocess.run(["umount", str(out)], check=True)
    out.rmdir()
    kept.rename(out)
    return f"it said: {said.replace(str(out), 'DIR')}; with more room {n_kept} points were there"


CASES: list[Callable[[Path, Path], str]] = [
    worker_killed,
    cluster_worker_killed,
    all_killed,
    interrupted,
    twice_at_once,
    point_damaged,
    disk_full,
]

if __name__ == "__main__":
    main()
