"""Memory follows what is asked for; what would not fit is done in parts, or refused."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cprsim.errors import BudgetError
from cprsim.experiments import pipeline
from cprsim.failures.block import BlockFailures
from cprsim.failures.budget import MEMORY
from tests.engines import columns_of
from tests.making import PATIENCE_S, SCENARIOS, Make, maker

pytestmark = pytest.mark.long

GROWTH = """
import sys
from pathlib import Path
from cprsim.compiling import always
from cprsim.experiments import pipeline
from cprsim.experiments.assemble import assemble
from cprsim.scenario import load_scenario

def peak():  # of this program alone: what getrusage says has that of its parent in it
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

def simulate(*overrides):
    experiment = assemble(load_scenario(Path(sys.argv[1]), [*sys.argv[2:], *overrides]))
    return pipeline.simulate(experiment)

with always(machine_code=True):
    simulate("failures.mtbf=20 h", "simulation.replications=2")  # all that is imported, compiled
    before = peak()
    outcome = simulate()
    pipeline.replay(assemble(load_scenario(Path(sys.argv[1]), sys.argv[2:])), 0)
print(peak() - before)
"""
TOGETHER = ("failures.role=any", "failures.together=12")
SCENARIO = """\
job: {useful: 20 h}
cluster: {emb_ps: 4, trainers: 2}
failures: {kind: job, family: gamma, shape: 0.7, mtbf: 1 h, role: any, together: 2}
costs:
  save: {family: gamma, mean: 1 min, shape: 4}
  load: {family: lognormal, mean: 3 min, sigma: 0.5}
  detect: 30 s
  reschedule: {family: exponential, mean: 3 min}
recovery: [full, partial]
simulation: {seed: 5, replications: 60}
"""


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """An experiment from the scenario above, with overrides."""
    return maker(tmp_path, SCENARIO)


def growth_mb(scenario: str, *overrides: str) -> float:
    """By how much a process grows that simulates, over one that has all loaded [MiB]."""
    if not Path("/proc/self/status").exists():
        pytest.skip("there is no /proc to read a peak of memory from")
    ran = subprocess.run(
        [sys.executable, "-c", GROWTH, str(SCENARIOS / scenario), *overrides],
        capture_output=True, text=True, check=True, timeout=PATIENCE_S,
    )  # fmt: skip
    return float(ran.stdout)


@pytest.mark.parametrize(
    ("scenario", "overrides"),
    [
        (
            "quickstart.yaml",
            ("simulation.replications=3", "failures.mtbf=1 h", "job.useful=40 h", *TOGETHER),
        ),
        (
            "production-gamma.yaml",
            ("simulation.replications=5", "failures.mtbf=2 min", "recovery=[full]"),
        ),
    ],
)
def test_a_few_replications_take_the_memory_of_a_few(
    scenario: str, overrides: tuple[str, ...]
) -> None:
    assert growth_mb(scenario, *overrides) < 100


def rows_of(outcome: pipeline.Outcome) -> list[Any]:
    return [
        column
        for one in outcome.strategies
        for record in (one.costs, one.losses)
        for column in columns_of(record).values()
    ]


def assert_same_rows(one: pipeline.Outcome, other: pipeline.Outcome) -> None:
    for ours, theirs in zip(rows_of(one), rows_of(other), strict=True):
        assert np.array_equal(ours, theirs)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many replications' failures are in memory at once, each time that not all are."""
    told: list[int] = []
    of_these = BlockFailures.of_these

    def noting(failures: BlockFailures, kept: range) -> BlockFailures:
        told.append(len(kept))
        return of_these(failures, kept)

    monkeypatch.setattr(BlockFailures, "of_these", noting)
    return told


@pytest.mark.parametrize("engine", ["auto", "simpy"])
@pytest.mark.parametrize(
    ("mtbf", "memory"), [("1 h", "30 kB"), ("30 min", "60 kB")], ids=["done", "hardly done"]
)
def test_what_does_not_fit_at_once_is_done_in_parts_with_the_same_rows(
    make: Make, engine: str, mtbf: str, memory: str, at_once: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    experiment = replace(make(f"failures.mtbf={mtbf}"), engine=engine, n_replications=30)
    whole = pipeline.simulate(experiment)
    assert at_once == [30]  # of the block
    monkeypatch.setenv(MEMORY, memory)
    monkeypatch.setattr(pipeline, "ROWS_SHARE", np.inf)
    assert_same_rows(pipeline.simulate(experiment), whole)
    assert 1 <= min(at_once) < 10


def test_more_replications_than_there_is_room_for_are_refused_at_once(make: Make) -> None:
    with pytest.raises(BudgetError, match=r"10,000,000 replications.*--replications \d+ would"):
        pipeline.simulate(make("simulation.replications=10000000"))


def test_shards_that_take_too_much_are_refused_with_what_would_fit(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MEMORY, "3 MB")
    many = make("simulation.replications=1500")
    with pytest.raises(BudgetError, match=r"--replications \d+ would fit") as refused:
        pipeline.simulate(many)
    fits = int(str(refused.value).split("--replications ")[1].split()[0])
    assert 10 < fits < 1500
    assert pipeline.simulate(replace(many, n_replications=int(0.8 * fits))).strategies


def test_the_events_of_one_replication_are_bounded(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    frequent = make("failures.mtbf=5 min", "costs.save=5 s")
    assert pipeline.replay(frequent, 3)
    monkeypatch.setenv(MEMORY, "3.4 MB")
    with pytest.raises(BudgetError, match=r"events of one replication.*would fit"):
        pipeline.replay(frequent, 3)


def test_only_blocks_with_room_are_kept_for_further_simulations(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = make("simulation.replications=4100")
    blocks = pipeline.FailureBlocks(experiment)
    first = blocks.block(0)
    first.strikes(1)
    blocks.block(1).strikes(1)
    assert blocks.block(0) is first
    assert first.n_drawn > 0
    assert len(blocks.block(1).replications) == 100
    monkeypatch.setattr(pipeline, "KEPT_SHARE", 0.0)
    blocks.block(1)
    assert first.n_drawn == 0


def test_further_simulations_may_ask_for_more_replications_than_the_first(make: Make) -> None:
    few, many = make("simulation.replications=20"), make()
    shared = pipeline.FailureBlocks(few)
    assert_same_rows(pipeline.simulate(many, failures=shared), pipeline.simulate(many))
