"""Where the memory runs out, the program says in one line what to ask for."""

from __future__ import annotations

import sys

import pytest

from cprsim.failures.sources import MEMORY
from tests.cli.conftest import process_of
from tests.making import PATIENCE_S

pytestmark = pytest.mark.long

OFTEN = ["--set", "failures.mtbf=0.5 min", "--set", "failures.role=emb_ps"]

LIMITED = """
import os, resource, sys
from cprsim.experiments import pipeline
from cprsim.experiments.assemble import assemble
from cprsim.cli import main
from cprsim.scenario.reading import load_scenario
import cprsim.plots.save, cprsim.present.run, cprsim.results.folder

# machine code is what the program is made of: where it finds no room, LLVM ends the process
pipeline.compile_engine(assemble(load_scenario(sys.argv[2])), 1e9)
cprsim.plots.save.save_figures = lambda *_, **__: []
pages = int(open("/proc/self/statm").read().split()[0])
room = pages * os.sysconf("SC_PAGE_SIZE") + 100_000_000
resource.setrlimit(resource.RLIMIT_AS, (room, room))
main()
"""

resource = pytest.importorskip("resource")


@pytest.fixture
def limited(scenario, monkeypatch):
    """The program in a process of its own that may take 100 MB beside what it is made of."""
    monkeypatch.setenv(MEMORY, "40 GB")  # and does not know it
    return process_of([sys.executable, "-c", LIMITED])


def assert_one_line_that_says_what_to_ask_for(ran, folder):
    assert ran.returncode == 2, ran.stderr
    (line,) = ran.stderr.strip().splitlines()
    assert line.startswith("cprsim: ")
    assert "ask for less" in line or "would fit" in line
    assert not list(folder.glob("results/*"))


@pytest.mark.parametrize(
    "asked",
    [
        ["--replications", "3000000"],  # the rows of all replications
        ["--set", "cluster.emb_ps=20000", "--set", "failures.together=9000", *OFTEN],  # one alone
    ],
    ids=["many", "large"],
)
def test_a_run_that_takes_too_much(limited, scenario, tmp_path, asked):
    ran = limited("run", scenario, "--set", "recovery=[full]", *asked, timeout=PATIENCE_S)
    assert_one_line_that_says_what_to_ask_for(ran, tmp_path)
