"""What nobody foresaw ends in exit code 70; closed streams hurt nobody."""

from __future__ import annotations

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


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (BREAKING.format(what="1 / 0"), "ZeroDivisionError: division by zero"),
        (BREAKING.format(what=r"raise KeyError('a\x1b[31m')"), r"KeyError: 'a\x1b[31m'"),
        (FORESEEN, "ImportError: numpy is broken"),  # it can't even be loaded
    ],
)
def test_what_nobody_foresaw_says_where_it_happened(code, told) -> None:
    done = run(code, "validate", "x.yaml")
    assert (done.returncode, done.stdout) == (70, "")
    first, *_, what, last = done.stderr.splitlines()
    assert (first, what) == ("Traceback (most recent call last):", told)
    assert "please report it" in last


@pytest.mark.parametrize("what", ["raise MemoryError", "import numpy; numpy.zeros(10**18)"])
def test_no_memory_is_one_line(what) -> None:
    done = run(BREAKING.format(what=what), "validate", "x.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "memory" in line


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
