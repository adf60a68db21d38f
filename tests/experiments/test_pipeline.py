"""A scenario through the whole chain: the same failures for everybody, the same numbers twice."""

from dataclasses import replace
from math import inf
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from cprsim.errors import ScenarioError
from cprsim.failures.several import SeveralSources
from cprsim.job.policy import ROLL_BACK
from cprsim.job.records import CostBreakdown
from cprsim.results import pipeline
from cprsim.simulation.blocks import Block
from cprsim.simulation.folding import cost_breakdown
from tests.making import Make

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


def by_name(outcome: pipeline.Outcome) -> dict[str, CostBreakdown]:
    return {one.policy.name: one.costs for one in outcome.strategies}


def test_the_seed_decides_the_numbers_and_the_order_of_strategies_does_not(make: Make) -> None:
    experiment = make()
    turned = replace(experiment, policies=experiment.policies[::-1])
    first, second = by_name(pipeline.simulate(experiment)), by_name(pipeline.simulate(turned))
    assert list(first) == list(second)[::-1]
    for name, costs in first.items():
        for column, values in costs.columns().items():
            assert np.array_equal(values, second[name].columns()[column])
    other = by_name(pipeline.simulate(make("simulation.seed=6")))
    assert not np.array_equal(first["full"].wall_h, other["full"].wall_h)


def test_more_replications_leave_the_first_ones_as_they_were(make: Make) -> None:
    few, many = (
        by_name(pipeline.simulate(make(f"simulation.replications={n}")))["full"] for n in (30, 120)
    )
    assert np.array_equal(few.wall_h, many.wall_h[:30])


@pytest.mark.parametrize(("n", "replayed"), [(120, 17), (4005, 4003)], ids=["a block", "two"])
def test_a_replication_replayed_alone_is_the_one_of_the_run(
    make: Make, n: int, replayed: int
) -> None:
    experiment = make(f"simulation.replications={n}", "recovery=[full, partial]")
    whole = by_name(pipeline.simulate(experiment))
    for name, log in pipeline.replay(experiment, replayed).items():
        alone = cost_breakdown(log, experiment.useful_h)
        assert alone.wall_h[0] == pytest.approx(whole[name].wall_h[replayed], rel=1e-9)
        assert alone.n_failures[0] == whole[name].n_failures[replayed]
        assert alone.replication[0] == replayed
        assert whole[name].replication.tolist() == list(range(n))


SILENT = "silent={mtbf: 8 h, latency: {family: exponential, mean: 1 h}}"


def test_a_precision_decides_the_replications_up_to_at_most(make: Make) -> None:
    precise = "simulation={seed: 5, precision: 3 %, at_most: 3000}"
    wall_h = by_name(pipeline.simulate(make(precise, "recovery=[full]")))["full"].wall_h
    overhead_h = wall_h - 20.0
    assert 100 < len(wall_h) < 3000
    assert 1.96 * overhead_h.std(ddof=1) / len(wall_h) ** 0.5 <= 0.03 * overhead_h.mean()
    at_most = make("simulation={seed: 5, precision: 0.1 %, at_most: 250}")
    for experiment, n in ((at_most, 250), (at_most.simulated(replications=260), 260)):
        assert pipeline.simulate(experiment).strategies[0].costs.n_replications == n


def test_a_job_that_never_finishes_is_given_up_early(make: Make) -> None:
    outcome = pipeline.simulate(make("failures.mtbf=1 min", "recovery=[none, full]"))
    for one in outcome.strategies:
        assert not one.costs.finished.any()
        assert one.costs.n_replications == pipeline.FIRST_LOOK


def test_policies_that_differ_by_name_alone_are_simulated_once(make: Make) -> None:
    twins = make("recovery=[full, {strategy: full, name: again}, partial]")
    with patch.object(Block, "run", autospec=True, side_effect=Block.run) as run:
        rows = by_name(pipeline.simulate(twins))
    assert {call.args[1].policy.name for call in run.call_args_list} == {"full", "partial"}
    assert (rows["again"].wall_h == rows["full"].wall_h).all()
    assert (rows["partial"].wall_h != rows["full"].wall_h).any()


def test_progress_is_told_to_the_end(make: Make) -> None:
    told: list[tuple[int, int]] = []
    brief = make("simulation={replications: 65}", "recovery=[full]")
    pipeline.simulate(brief, on_progress=lambda *done_of: told.append(done_of))
    assert told == [(10, 65), (65, 65)]


RECOVERY = "recovery=[{strategy: %s}]"
TRACE = "failures={kind: trace, format: tidy, time_unit: h, file: %s}"


def test_silent_errors_leave_other_failures_where_they_are(make: Make) -> None:
    """Each source has streams of its own; expected failures count the errors."""
    exponential = "failures={kind: job, family: exponential, mtbf: 6 h}"
    without, with_errors = make(exponential), make(exponential, SILENT)
    assert isinstance(with_errors.failures, SeveralSources)
    assert dict(with_errors.failures.sources)[""] == without.failures
    expected = with_errors.failures.expected(with_errors.cluster, with_errors.useful_h)
    assert 1 / expected.mtbf_h == pytest.approx(1 / 6 + 1 / 8)
    assert with_errors.expected_shares == pytest.approx((8 / 14, 6 / 14), rel=1e-6)


def test_cpr_divides_by_the_shards_that_a_failure_strikes(make: Make) -> None:
    struck = "failures={kind: injected, count: 5, role: emb_ps, together: 2}"
    divided, undivided = (
        make(struck, f"recovery=[{{strategy: cpr, target_pls: 0.1, interval: {rule}}}]")
        .policies[0]
        .interval_h
        for rule in ("cpr", "cpr-undivided")
    )
    assert divided == pytest.approx(2 * 0.1 * 4 * (20 / 5) / 2)
    assert undivided == pytest.approx(2 * divided)


def test_failures_of_trainers_alone_leave_cpr_nothing_to_save_for_or_to_load(make: Make) -> None:
    job = "failures={kind: job, family: exponential, mtbf: 6 h, role: trainer}"
    policy = make(job, "recovery=[{strategy: cpr, target_pls: 0.1}]").policies[0]
    assert policy.interval_h == inf
    restart_h = (30 + 9 * 60) / 3600
    assert policy.decision.partial_overhead_fraction == pytest.approx(restart_h / 6)


@pytest.mark.parametrize(
    "entry",
    ["cpr, target_pls: 0", "cpr-mfu, target_pls: 0.1, sub_saves: {latency: 1 h}"],  # dear ones
)
def test_only_full_recovery_is_left(make: Make, entry: str) -> None:
    policy = make(f"recovery=[{{strategy: {entry}}}]").policies[0]
    assert policy.on_failure is ROLL_BACK
    assert policy.sub_saves is None
    assert policy.decision.chosen == "full"


def test_an_interval_beyond_the_job_costs_no_save(make: Make) -> None:
    entry = "recovery=[{strategy: cpr, target_pls: 1.0}]"
    policy, without = make(entry).policies[0], make("costs.save=0 s", entry).policies[0]
    assert policy.interval_h > 20
    expected = pytest.approx(without.decision.partial_overhead_fraction)
    assert policy.decision.partial_overhead_fraction == expected


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["costs.save=1e-9 s", RECOVERY % "full, interval: young"], r"recovery\.0.*sense"),
        (["costs.save=0 s"], r"recovery\.1.*young.*name the interval"),
        ([TRACE % "two.csv"], "failures"),
        ([TRACE % "one.csv, nodes: 9"], r"failures.*1 outage"),
    ],
    ids=["young", "no interval", "too few nodes", "one outage"],
)
def test_what_only_building_shows_is_blamed_on_its_section(
    make: Make, tmp_path: Path, overrides: list[str], said: str
) -> None:
    (tmp_path / "two.csv").write_text("node,start,end\na,1,2\nb,5,9\n")
    (tmp_path / "one.csv").write_text("node,start,end\na,1,2\n")
    with pytest.raises(ScenarioError, match=said):
        make(*overrides)
