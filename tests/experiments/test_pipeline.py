"""A scenario through the whole chain: the same failures for everybody, the same numbers twice."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

from cprsim.errors import ScenarioError
from cprsim.experiments import pipeline
from cprsim.failures.distributions import LogNormal
from cprsim.records import CostBreakdown
from cprsim.recovery.policy import ROLL_BACK
from cprsim.simulate.folding import cost_breakdown
from tests.engines import assert_same
from tests.making import Make, maker

SCENARIO = """\
job: {useful: 20 h}
cluster: {emb_ps: 4, trainers: 2}
failures: {kind: job, family: gamma, shape: 0.7, mtbf: 6 h, role: any}
costs:
  save: {family: gamma, mean: 3 min, shape: 4}
  load: {family: lognormal, mean: 6 min, sigma: 0.5}
  detect: 30 s
  reschedule: {family: exponential, mean: 9 min}
recovery: [none, full, partial, {strategy: cpr, target_pls: 0.1}]
simulation: {seed: 5, replications: 120}
"""


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """An experiment from the scenario above, with overrides."""
    return maker(tmp_path, SCENARIO)


def same(a: CostBreakdown, b: CostBreakdown) -> bool:
    return all(
        np.array_equal(*both)
        for both in zip(a.columns().values(), b.columns().values(), strict=True)
    )


def by_name(outcome: pipeline.Outcome) -> dict[str, CostBreakdown]:
    return {one.policy.name: one.costs for one in outcome.strategies}


def test_the_same_seed_gives_the_same_numbers_whatever_the_order_of_strategies(make: Make) -> None:
    experiment = make()
    turned = replace(experiment, policies=experiment.policies[::-1])
    first, second = by_name(pipeline.simulate(experiment)), by_name(pipeline.simulate(turned))
    assert list(first) == list(second)[::-1]
    assert all(same(first[name], second[name]) for name in first)


def test_another_seed_gives_other_numbers(make: Make) -> None:
    first, second = (by_name(pipeline.simulate(make(f"simulation.seed={s}"))) for s in (5, 6))
    assert not np.array_equal(first["full"].wall_h, second["full"].wall_h)


def test_more_replications_leave_the_first_ones_as_they_were(make: Make) -> None:
    few, many = (
        by_name(pipeline.simulate(make(f"simulation.replications={n}")))["full"] for n in (30, 120)
    )
    assert np.array_equal(few.wall_h, many.wall_h[:30])
    assert many.replication.tolist() == list(range(120))


def test_a_replication_replayed_alone_is_the_one_of_the_run(make: Make) -> None:
    experiment = make()
    whole = by_name(pipeline.simulate(experiment))
    for name, log in pipeline.replay(experiment, 17).items():
        alone = cost_breakdown(log, experiment.useful_h)
        assert alone.wall_h[0] == pytest.approx(whole[name].wall_h[17], rel=1e-9)
        assert alone.n_failures[0] == whole[name].n_failures[17]
        assert alone.replication[0] == 17


def test_replications_go_on_over_the_end_of_a_block(make: Make) -> None:
    experiment = make("simulation.replications=4005")
    whole = by_name(pipeline.simulate(experiment))["full"]
    assert whole.replication.tolist() == list(range(4005))
    alone = cost_breakdown(pipeline.replay(experiment, 4003)["full"], experiment.useful_h)
    assert alone.wall_h[0] == pytest.approx(whole.wall_h[4003], rel=1e-9)


MFU = "recovery=[{strategy: cpr-mfu, target_pls: 0.1}]"
ON_BOTH = {
    "fixed replications": ("simulation={seed: 5, replications: 300}",),
    "a precision": ("simulation={seed: 5, precision: 4 %, at_most: 1500}",),
    "more than are run at once": (
        "simulation={seed: 5, replications: 4100}", "job.useful=3 h",
    ),
    "one never finishes": (
        "simulation={seed: 5, replications: 30}", "failures.mtbf=12 min", "job.useful=4 h",
    ),
    "priority saving": (MFU,),
    "priority saving, finite spares and shared loads": (
        "cluster={emb_ps: 4, trainers: 2, spares: 1, repair: 2 h, shard_size: 50 GB}",
        "storage={bandwidth: 1 Gbit/s}", "costs.load=transfer", MFU,
    ),
    "finite spares": ("cluster={emb_ps: 4, trainers: 2, spares: 1, repair: 20 h}",),
}  # fmt: skip
SLOW = list(ON_BOTH)[:4]


@pytest.mark.parametrize(
    "what", [pytest.param(one, marks=[pytest.mark.long] * (one in SLOW)) for one in ON_BOTH]
)
def test_the_engine_does_not_change_the_rows(make: Make, what: str) -> None:
    fast, simpy = (
        pipeline.simulate(make(*ON_BOTH[what], f"simulation.engine={engine}"))
        for engine in ("auto", "simpy")
    )
    for ours, theirs in zip(fast.strategies, simpy.strategies, strict=True):
        assert ours.gave_up == theirs.gave_up
        assert_same(ours.costs, theirs.costs)
        assert_same(ours.losses, theirs.losses)


def test_all_strategies_meet_every_injected_failure(make: Make) -> None:
    experiment = make("failures={kind: injected, count: 4, role: emb_ps, together: 2}")
    for costs in by_name(pipeline.simulate(experiment)).values():
        assert (costs.n_failures == 4).all()


def test_a_precision_decides_the_replications(make: Make) -> None:
    precise = "simulation={seed: 5, precision: 3 %, at_most: 3000}"
    outcome = pipeline.simulate(make(precise, "recovery=[full]"))
    wall_h = outcome.strategies[0].costs.wall_h
    overhead_h = wall_h - 20.0
    assert 100 < len(wall_h) < 3000
    assert 1.96 * overhead_h.std(ddof=1) / len(wall_h) ** 0.5 <= 0.03 * overhead_h.mean()


def test_a_precision_out_of_reach_stops_at_most_there(make: Make) -> None:
    outcome = pipeline.simulate(make("simulation={seed: 5, precision: 0.1 %, at_most: 250}"))
    assert outcome.strategies[0].costs.n_replications == 250


def test_a_job_that_never_finishes_is_given_up_early(make: Make) -> None:
    outcome = pipeline.simulate(make("failures.mtbf=1 min", "recovery=[none, full]"))
    for one in outcome.strategies:
        assert one.gave_up
        assert one.costs.n_replications == pipeline.FIRST_LOOK
        assert not one.costs.finished.any()


def test_progress_is_told_to_the_end(make: Make) -> None:
    told: list[tuple[int, int]] = []
    pipeline.simulate(make(), on_progress=lambda done, wanted: told.append((done, wanted)))
    assert told[-1] == (120, 120)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


class TestAssembling:
    def test_cpr_divides_by_the_shards_that_a_failure_strikes(self, make: Make) -> None:
        struck = "failures={kind: injected, count: 5, role: emb_ps, together: 2}"
        divided, undivided = (
            make(struck, f"recovery=[{{strategy: cpr, target_pls: 0.1, interval: {rule}}}]")
            .policies[0]
            .interval_h
            for rule in ("cpr", "cpr-undivided")
        )
        assert divided == pytest.approx(2 * 0.1 * 4 * (20 / 5) / 2)
        assert undivided == pytest.approx(2 * divided)

    def test_failures_of_trainers_alone_leave_cpr_nothing_to_save_for(self, make: Make) -> None:
        job = "failures={kind: job, family: exponential, mtbf: 6 h, role: trainer}"
        policy = make(job, "recovery=[{strategy: cpr, target_pls: 0.1}]").policies[0]
        assert policy.interval_h == inf

    def test_a_target_of_zero_leaves_only_full_recovery(self, make: Make) -> None:
        policy = make("recovery=[{strategy: cpr, target_pls: 0}]").policies[0]
        assert policy.on_failure is ROLL_BACK
        assert policy.decision is not None
        assert policy.decision.chosen == "full"

    def test_a_failure_that_strikes_no_shard_loads_nothing_under_partial_recovery(
        self, make: Make
    ) -> None:
        trainers = "failures={kind: job, family: exponential, mtbf: 6 h, role: trainer}"
        policy = make(trainers, "recovery=[{strategy: cpr, target_pls: 0.1}]").policies[0]
        assert policy.decision is not None
        restart_h = (30 + 9 * 60) / 3600
        assert policy.decision.partial_overhead_fraction == pytest.approx(restart_h / 6)

    def test_priority_strategies_pay_for_their_sub_saves(self, make: Make) -> None:
        dear = "{strategy: cpr-mfu, target_pls: 0.1, sub_saves: {latency: 1 h}}"
        policy = make(f"recovery=[{dear}]").policies[0]
        assert policy.on_failure is ROLL_BACK
        assert policy.sub_saves is None

    def test_a_lognormal_cost_has_the_mean_and_the_median_that_were_named(self, make: Make) -> None:
        load = make("costs.load={family: lognormal, mean: 5.9 h, median: 1 h}").costs.load
        assert isinstance(load, LogNormal)
        assert load.mean_h == pytest.approx(5.9)
        assert load.quantile(0.5) == pytest.approx(1.0)

    def test_an_interval_beyond_the_job_costs_no_save(self, make: Make) -> None:
        policy = make("recovery=[{strategy: cpr, target_pls: 1.0}]").policies[0]
        assert policy.decision is not None
        assert policy.interval_h > 20
        without = make("costs.save=0 s", "recovery=[{strategy: cpr, target_pls: 1.0}]").policies[0]
        assert without.decision is not None
        assert policy.decision.partial_overhead_fraction == pytest.approx(
            without.decision.partial_overhead_fraction
        )

    @pytest.mark.parametrize(
        "strategy", ["{strategy: full, interval: young}", "{strategy: cpr, target_pls: 1.0e-10}"]
    )
    def test_a_rule_that_makes_millions_of_saves_is_refused(
        self, make: Make, strategy: str
    ) -> None:
        with pytest.raises(ScenarioError, match=r"recovery\.0.*make sense"):
            make("costs.save=1e-9 s", f"recovery=[{strategy}]")

    def test_a_rule_that_gives_no_interval_is_blamed_on_its_line(self, make: Make) -> None:
        with pytest.raises(ScenarioError, match=r"recovery\.1.*young.*name the interval"):
            make("costs.save=0 s")

    def test_a_trace_with_fewer_nodes_than_the_job_is_blamed_on_its_section(
        self, make: Make, tmp_path: Path
    ) -> None:
        (tmp_path / "log.csv").write_text("node,start,end\na,1,2\nb,5,9\n")
        with pytest.raises(ScenarioError, match=r"failures"):
            make("failures={kind: trace, file: log.csv, format: tidy, time_unit: h}")

    def test_a_trace_of_one_outage_tells_nothing_between(self, make: Make, tmp_path: Path) -> None:
        (tmp_path / "log.csv").write_text("node,start,end\na,1,2\n")
        with pytest.raises(ScenarioError, match=r"failures.*1 outage"):
            make("failures={kind: trace, file: log.csv, format: tidy, time_unit: h, nodes: 9}")


def test_events_are_in_memory_for_few_replications_at_once(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pipeline.SIMPY_AT_ONCE == 1000
    monkeypatch.setattr(pipeline, "SIMPY_AT_ONCE", 30)
    told: list[int] = []
    brief = make("simulation={seed: 5, replications: 65, engine: simpy}", "recovery=[full]")
    pipeline.simulate(brief, lambda done, wanted: told.append(done))
    assert told == [pipeline.FIRST_LOOK, 40, 65]
