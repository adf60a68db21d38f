"""What nobody foresaw ends in one line and exit code 70; closed streams hurt nobody."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cprsim.results.folder import damage
from tests.making import PROGRAM

pytestmark = pytest.mark.long

BREAKING = """\
import sys
import cprsim.scenario.reading
def broken(*_, **how):
    {what}
cprsim.scenario.reading.load_scenario = broken
from cprsim.cli import main
main()
"""
FORESEEN = """\
import cprsim.cli.app
def no_import(*_, **__): raise ImportError("numpy is broken")
cprsim.cli.app.app = no_import
from cprsim.cli import main
main()
"""


def run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    ("code", "exit_code", "told"),
    [
        (BREAKING.format(what="1 / 0"), 70, "ZeroDivisionError: division by zero"),
        (BREAKING.format(what="broken()"), 70, "RecursionError: maximum recursion depth exceeded"),
        (BREAKING.format(what=r"raise KeyError('a\nb\x1b[31m')"), 70, r"KeyError: 'a\nb\x1b[31m'"),
        (BREAKING.format(what="raise ValueError('x' * 10000 + 'hunter2')"), 70, "ValueError: xxx"),
        (FORESEEN, 70, "ImportError: numpy is broken"),  # it can't even be loaded
        (BREAKING.format(what="raise MemoryError"), 2, "memory"),
        (BREAKING.format(what="import numpy; numpy.zeros(10**18)"), 2, "memory"),
    ],
)
def test_what_nobody_foresaw_is_one_line(code, exit_code, told) -> None:
    done = run(code, "validate", "x.yaml")
    assert (done.returncode, done.stdout) == (exit_code, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("cprsim: ")
    assert told in line
    assert ("please report it" in line, "--traceback" in line) == (exit_code == 70,) * 2
    assert "hunter2" not in line
    assert line.isprintable()
    assert len(line) < 600


@pytest.mark.parametrize(
    ("before", "environment"), [(("--traceback",), {}), ((), {"CPRSIM_TRACEBACK": "1"})]
)
def test_a_flag_or_the_environment_shows_the_traceback(before, environment) -> None:
    done = run(BREAKING.format(what="1 / 0"), *before, "validate", "x.yaml", **environment)
    assert done.returncode == 70
    first, *_, last = done.stderr.splitlines()
    assert first == "Traceback (most recent call last):"
    assert "division by zero" in last
    assert "in broken" in done.stderr


# -------------------------------------------------------------------------- closed streams


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("validate small.yaml >&-", 0, ""),
        ("run nothing.yaml >&-", 2, "nothing.yaml: cannot be read: No such file or directory\n"),
        ("run nothing.yaml 2>&-", 2, ""),
        ("run nothing.yaml >&- 2>&- <&-", 2, ""),
        ("run small.yaml -q --replications 2 >&- <&-", 0, ""),
        ("--version >/dev/full", 1, "cprsim: No space left on device\n"),
        ("validate --schema >/dev/full", 1, "cprsim: No space left on device\n"),
    ],
)
def test_a_closed_stream_is_like_none_and_a_full_disk_is_said(
    scenario, arguments, code, said
) -> None:
    command = f"{' '.join(PROGRAM)} {arguments}"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, said)
    if arguments.startswith("run small"):
        (folder,) = (scenario.parent / "results").iterdir()
        assert damage(folder) is None
