"""What a command interpreted for long is compiled when it has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from cprsim.cli.behind import FORBIDS, compile_behind
from cprsim.experiments.assemble import assemble
from cprsim.experiments.pipeline import engine_of, simulate
from cprsim.scenario import load_scenario
from cprsim.simulate import blocks
from cprsim.simulate.fast.batch import run_batch
from tests.making import SCENARIOS


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has interpreted the common loop for long."""
    experiment = assemble(load_scenario(SCENARIOS / "quickstart.yaml"))
    job = engine_of(experiment.policies[0], experiment).job
    monkeypatch.setattr(blocks, "_interpreted", {run_batch: job})
    monkeypatch.setattr(run_batch, "is_there", False)
    monkeypatch.setattr(run_batch, "interpreted_s", 2 * blocks.LONG_S)


@pytest.mark.usefixtures("interpreted")
def test_it_fills_the_cache_and_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(FORBIDS, "1")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    process = compile_behind()
    assert process is not None
    assert process.wait(120) == 0
    assert list(tmp_path.rglob("batch.run_batch-*.nbc"))


@pytest.mark.usefixtures("interpreted")
def test_it_can_be_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORBIDS, "0")
    assert compile_behind() is None


def test_little_work_starts_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORBIDS, "1")
    monkeypatch.setattr(run_batch, "interpreted_s", 0.0)
    monkeypatch.setattr(blocks, "_interpreted", {})
    experiment = assemble(
        load_scenario(SCENARIOS / "quickstart.yaml", ["simulation.replications=20"])
    )
    simulate(experiment)
    assert compile_behind() is None
