"""One case of the fuzzer in a process of its own: started, watched, judged."""

from __future__ import annotations

import faulthandler
import json
import os
import re
import resource
import signal
import sys
import time
import traceback
import unicodedata
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from fuzz_material import without_figures
from fuzz_scenarios import Case

HANG_S = 5.0
MOST_ADDRESSES = 16e9  # of a case, so that the machine survives it
DUMP = signal.SIGUSR1  # a case that is about to be killed says where it is


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    verdict: str
    where: str  # the last frames, or what was broken: equal for the same defect
    said: str  # the end of what it printed
    took_s: float
    memory_bytes: float


@dataclass
class Running:
    """A case under way."""

    case: Case
    pid: int
    before: dict[str, tuple[int, int]]
    began: float
    own_bytes: float  # resident when it began
    peak_bytes: float = 0.0


def start(case: Case) -> Running:
    """Fork a process that runs the case in its folder."""
    before = contents(case.folder)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        run_case(case)
    return Running(case, pid, before, time.monotonic(), resident(pid))


def run_case(case: Case) -> NoReturn:
    """Run cprsim on the case in this process, which ends with it."""
    code: object = 1
    try:
        os.setpgid(0, 0)
        os.chdir(case.folder)
        for number, path in enumerate((os.devnull, *printed_by(case))):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), number)
        resource.setrlimit(resource.RLIMIT_AS, (addresses() + int(MOST_ADDRESSES),) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.register(DUMP, file=2, all_threads=False)
        with nullcontext() if case.draws else without_figures():
            code = run_program(case.arguments)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def run_program(arguments: Sequence[str]) -> object:
    """Run `cprsim` in this process; its exit code."""
    from cprsim.cli import main

    sys.argv = ["cprsim", *arguments]
    try:
        main()
    except SystemExit as end:
        return end.code


def look_after(running: Running, budget_bytes: float) -> Outcome | None:
    """What became of it; None while it may go on."""
    pid, status, used = os.wait4(running.pid, os.WNOHANG)
    if pid:
        return judged(running, status, used, budget_bytes)
    wall_s = time.monotonic() - running.began
    with suppress(OSError, ValueError, IndexError):
        running.peak_bytes = max(running.peak_bytes, resident(running.pid) - running.own_bytes)
        on_cpu_ns, queued_ns, _ = map(
            int, Path(f"/proc/{running.pid}/schedstat").read_text().split()
        )
        waited_s = wall_s - (on_cpu_ns + queued_ns) / 1e9
        if running.peak_bytes > budget_bytes:
            return killed(running, "memory", wall_s)
        if on_cpu_ns / 1e9 > HANG_S or waited_s > HANG_S:
            return killed(running, "hang", wall_s)
    return None


def killed(running: Running, verdict: str, took_s: float) -> Outcome:
    """End it, after it has said where it is."""
    os.kill(running.pid, DUMP)
    time.sleep(0.2)
    with suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    os.waitpid(running.pid, 0)
    said = read_printed(running.case)[1]
    frames = re.findall(r'File "([^"]+)", line (\d+) in (\w+)', said)
    ours = [f"{short(file)}:{line} {name}" for file, line, name in frames if "cprsim/" in file]
    return Outcome(verdict, " < ".join(ours[:2]), said[-1500:], took_s, running.peak_bytes)


def judged(
    running: Running, status: int, used: resource.struct_rusage, budget_bytes: float
) -> Outcome:
    """What an ended case comes to."""
    code = os.waitstatus_to_exitcode(status)
    out, err = read_printed(running.case)
    took_s = time.monotonic() - running.began
    memory = max(running.peak_bytes, used.ru_maxrss * 1024 - running.own_bytes)
    verdict, where = {0: "accepted", 1: "refused", 2: "refused"}.get(code, "traceback"), ""
    if "Traceback (most recent call last)" in err:
        verdict = "traceback"
    if verdict == "traceback":
        where = f"exit code {code}: {last_frame(err)}"
    elif memory > budget_bytes:
        verdict, where = "memory", f"{memory / 1e9:.2f} GB"
    elif broken := what_is_broken(running, code, out, err):
        verdict, where = "broken", broken
    return Outcome(verdict, where, (err or out)[-1500:], took_s, memory)


def what_is_broken(running: Running, code: int, out: str, err: str) -> str:
    """A promise that the case broke; empty where it kept all."""
    if code in (1, 2):
        after = contents(running.case.folder)
        if changed := sorted(set(after.items()) ^ set(running.before.items())):
            return f"refused, and changed {re.sub('[0-9a-f]{8,}', '#', changed[0][0])}"
        if not err.strip() and not out.strip():  # with --json the words are in the object
            return "refused without a word"
    if raw := [c for c in out + err if unicodedata.category(c) == "Cc" and c not in "\n\t"]:
        return f"printed {raw[0]!r}"
    if code == 0 and "--json" in running.case.arguments:
        try:
            json.loads(out, parse_constant=lambda word: 1 / 0)
        except (ValueError, ZeroDivisionError):
            return "--json printed no JSON"
    return ""


def last_frame(err: str) -> str:
    """Where the last traceback ends, and in what."""
    frames = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', err)
    ours = [f"{short(file)}:{line} {name}" for file, line, name in frames if "cprsim/" in file]
    lines = [line for line in err.strip().splitlines() if line[:1].isalpha()]
    return (
        f"{ours[-1] if ours else ''} {re.sub(r'[0-9]{3,}', '#', lines[-1])[:150] if lines else ''}"
    )


def short(file: str) -> str:
    return file[file.rindex("cprsim/") :]


def printed_by(case: Case) -> tuple[Path, Path]:
    """Where its stdout and its stderr go."""
    return case.folder.with_suffix(".out"), case.folder.with_suffix(".err")


def read_printed(case: Case) -> tuple[str, str]:
    out, err = (path.read_bytes().decode("utf-8", "replace") for path in printed_by(case))
    return out, err


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of everything in the folder."""
    stats = ((path, path.lstat()) for path in folder.rglob("*"))
    return {
        str(path.relative_to(folder)): (one.st_size, one.st_mtime_ns)
        for path, one in stats
        if path != folder
    }


def addresses() -> int:
    """Bytes of address space that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
