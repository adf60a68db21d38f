"""Memory follows what is asked for; what would not fit is done in parts, or refused."""

from typing import Any

import numpy as np
import pytest

from cprsim.errors import BudgetError, ParameterError
from cprsim.failures.block import BlockFailures
from cprsim.failures.sources import MEMORY_KEY, how_to_raise, memory_bytes
from cprsim.results import pipeline
from tests.making import Make
from tests.simulators import columns_of

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


def test_the_budget_is_a_gigabyte_or_what_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MEMORY_KEY, raising=False)
    assert memory_bytes() == 1e9
    monkeypatch.setenv(MEMORY_KEY, "4 GiB")
    assert memory_bytes() == 4 * 2**30
    assert f"4 GiB; {MEMORY_KEY}=" in how_to_raise()
    for text in ("", "4", "-1 GB", "0 GB", "4 h", "nan GB"):
        monkeypatch.setenv(MEMORY_KEY, text)
        with pytest.raises(ParameterError, match=f"{MEMORY_KEY}={text}: "):
            memory_bytes()


def assert_same_rows(one: pipeline.Outcome, other: pipeline.Outcome) -> None:
    for ours, theirs in zip(one.strategies, other.strategies, strict=True):
        for name in ("costs", "losses"):
            columns: dict[str, Any] = columns_of(getattr(theirs, name))
            for column, values in columns_of(getattr(ours, name)).items():
                assert np.array_equal(values, columns[column])


@pytest.mark.long
@pytest.mark.parametrize(
    ("mtbf", "memory"), [("1 h", "70 kB"), ("30 min", "200 kB")], ids=["done", "hardly done"]
)
def test_what_does_not_fit_at_once_is_done_in_parts_with_the_same_rows(
    make: Make, mtbf: str, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once: list[int] = []  # replications whose failures are in memory together
    of_these = BlockFailures.of_these

    def noting(failures: BlockFailures, kept: range) -> BlockFailures:
        at_once.append(len(kept))
        return of_these(failures, kept)

    monkeypatch.setattr("cprsim.failures.block.FIRST_REPLICATIONS", 30)  # all are drawn at once
    monkeypatch.setattr(BlockFailures, "of_these", noting)
    experiment = make(f"failures.mtbf={mtbf}").simulated(replications=30)
    whole = pipeline.simulate(experiment)
    assert not at_once
    monkeypatch.setenv(MEMORY_KEY, memory)
    monkeypatch.setattr(pipeline, "ROWS_SHARE", np.inf)
    assert_same_rows(pipeline.simulate(experiment), whole)
    assert 1 <= min(at_once) < 10


def test_more_results_than_there_is_room_for_are_refused_with_what_would_fit(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BudgetError, match=r"10,000,000 replications.*--replications \d+ would"):
        pipeline.simulate(make("simulation.replications=10000000"))  # before any is simulated
    monkeypatch.setenv(MEMORY_KEY, "3 MB")
    monkeypatch.setattr("cprsim.failures.sources.MOST_DRAWN", 100)  # of a block
    many = make("simulation.replications=1500")
    with pytest.raises(BudgetError, match=r"--replications \d+ would fit") as refused:
        pipeline.simulate(many)  # for its lost shards
    fits = int(str(refused.value).split("--replications ")[1].split()[0])
    assert 10 < fits < 1500
    assert pipeline.simulate(many.simulated(replications=int(0.8 * fits))).strategies


def test_the_events_of_one_replication_are_bounded(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    frequent = make("failures.mtbf=5 min", "costs.save=5 s")
    assert pipeline.replay(frequent, 3)
    monkeypatch.setattr("cprsim.failures.sources.MOST_DRAWN", 10)  # of a block
    monkeypatch.setenv(MEMORY_KEY, "3.4 MB")
    with pytest.raises(BudgetError, match=r"events of one replication.*would fit"):
        pipeline.replay(frequent, 3)


def test_small_blocks_are_kept_for_further_simulations(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = make("simulation.replications=20"), make("simulation.replications=4100")
    blocks = pipeline.failure_blocks([few, many])
    first, second = blocks()
    assert len(second.replications) == 100
    assert list(blocks()) == [first, second]
    assert_same_rows(pipeline.simulate(few, failures=blocks), pipeline.simulate(few))
    monkeypatch.setattr(pipeline, "KEPT_SHARE", 0.0)
    assert first not in list(blocks())
