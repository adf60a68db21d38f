"""Embedding servers of different sizes, asked differently often: times of transfers, and PLS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cprsim.errors import ScenarioError
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.experiments.pipeline import blocks_of, engine_of, simulate
from cprsim.results.rows import replication_rows
from cprsim.scenario import load_scenario

Load = Callable[..., Experiment]
SCENARIO = """\
job: {useful: 100 h}
cluster:
  trainers: 2
  emb_ps: 4
  shards:
    - {servers: 1, size: 70 GB, access: 0.7}
    - {servers: 3, size: 10 GB, access: 0.1}
failures: {kind: injected, at: [15 h, 38 h], servers: [[0], [2, 3]]}
costs: {save: 6 s, load: 30 s, detect: 1 min, reschedule: 4 min}
recovery: [{strategy: partial, interval: 10 h}]
simulation: {replications: 2}
"""


EVEN = "cluster.shards=[{servers: 1, size: 70 GB}, {servers: 3, size: 10 GB}]"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    path = tmp_path / "shards.yaml"
    path.write_text(SCENARIO, "utf-8")
    return lambda *overrides: assemble(load_scenario(path, list(overrides)))


@pytest.mark.parametrize("engine", ["simpy", "auto"])
def test_a_lost_shard_counts_by_the_share_of_look_ups_that_it_answers(
    load: Load, engine: str
) -> None:
    outcome = simulate(load(f"simulation.engine={engine}"))
    # 5 h of the shard with .7 of the look-ups, and 8 h of two with .1 each
    pls = replication_rows(outcome)["pls"].tolist()
    assert pls == pytest.approx([(5 * 0.7 + 8 * 0.2) / 100] * 2)
    assert outcome.strategies[0].losses.share.tolist() == pytest.approx([0.7, 0.1, 0.1] * 2)


def test_shards_without_accesses_count_alike(load: Load) -> None:
    pls = replication_rows(simulate(load(EVEN)))["pls"].tolist()
    assert pls == pytest.approx([(5 / 4 + 8 * 2 / 4) / 100] * 2)


@pytest.mark.parametrize(("overrides", "stale_h"), [([], 5 * 0.7 + 1.6), ([EVEN], 5 / 4 + 4)])
def test_sums_of_replications_whose_losses_are_not_kept_count_so_too(
    load: Load, overrides: list[str], stale_h: float
) -> None:
    experiment = load(*overrides)
    engine = engine_of(experiment.policies[0], experiment, keep_losses=False)
    (block,) = blocks_of(experiment, range(2))
    rows = engine.run(block, range(2))
    assert len(rows.losses.slot) == 0
    assert rows.stale_h == pytest.approx([stale_h] * 2)


BY_BYTES = ("costs.load=transfer", "storage.bandwidth=100 GB/h", "recovery.0.strategy=full")


@pytest.mark.parametrize(
    ("per_server", "load_h"),
    [
        ("1000 GB/h", 1.0),  # 100 GB over the storage's bandwidth
        ("35 GB/h", 0.4 + 60 / 35),  # shared evenly while 10 GB of each move, then by its own link
    ],
)
def test_all_is_loaded_when_the_largest_shard_is(
    load: Load, per_server: str, load_h: float
) -> None:
    experiment = load(*BY_BYTES, f"storage.per_server={per_server}")
    costs = simulate(experiment).strategies[0].costs
    assert costs.hours_of("load") == pytest.approx([2 * load_h] * 2)


@pytest.mark.parametrize("engine", ["simpy", "auto"])
@pytest.mark.parametrize(
    ("struck", "load_h"),
    [("[[0], [2]]", 70 / 100 + 10 / 100), ("[[0, 1], [1, 2]]", 20 / 100 + 60 / 100 + 20 / 100)],
)
def test_shards_that_go_back_alone_load_by_their_own_sizes(
    load: Load, engine: str, struck: str, load_h: float
) -> None:
    experiment = load(
        "costs.load=transfer", "storage.bandwidth=100 GB/h", f"simulation.engine={engine}",
        f"failures.servers={struck}",
    )  # fmt: skip
    costs = simulate(experiment).strategies[0].costs
    assert costs.hours_of("load") == pytest.approx([load_h] * 2)


def test_saves_and_loads_count_all_roles_that_hold_state(load: Load) -> None:
    roles = (
        "cluster={roles: {stage: {nodes: 2, state: 10 GB}, expert: {nodes: 3, state: 20 GB}}}",
        "failures={kind: injected, role: state, at: [15 h], servers: [[0]]}",
    )
    experiment = load(*BY_BYTES, *roles, "costs.save=transfer", "recovery.0.interval=10 h")
    costs = simulate(experiment).strategies[0].costs
    # 80 GB: once loaded, and saved ten times
    assert costs.hours_of("load") == pytest.approx([0.8] * 2)
    assert costs.hours_of("save") == pytest.approx([0.8 * 10] * 2)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("cluster.emb_ps=5", "are on 4 servers, and `emb_ps` is 5"),
        ("cluster.shards.0.access=0.8", "for 1.1 of the look-ups in all, which should be 1"),
        ("cluster.shard_size=10 GB", "give neither `tables` nor `shard_size`"),
        (
            "cluster.shards=[{servers: 1, size: 1 GB, access: 1.0}, {servers: 3, size: 1 GB}]",
            "give it for all, or for none",
        ),
    ],
)
def test_shards_that_do_not_fit_are_refused(load: Load, override: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        load(override)
