"""What a restart takes beyond one clean pass: mixtures, warm-ups, failed attempts, stops."""

import numpy as np
import pytest

from cprsim.job.distributions import Constant, Exponential, Mixture
from cprsim.job.records import CostBreakdown
from cprsim.results.pipeline import blocks_of, simulate
from cprsim.scenario.assemble import Experiment
from tests.making import Make
from tests.simulators import assert_cluster_agrees, told, z_score

SCENARIO = """\
job: {useful: 40 h, step: 10 s}
cluster: {workers: 8, state: 50 GB, link: 100 Gbit/s, replicas: 2}
failures: {kind: job, role: worker, family: exponential, mtbf: 5 h, clock: progress}
costs: {save: 2 min, load: 6 min, detect: 1 min, reschedule: 3 min}
recovery: [{strategy: full, interval: 2 h}]
simulation: {seed: 5, replications: 400}
"""
FAILING = "costs.restart={fails: 0.4, retry: 15 min, gives_up_after: 2, operator: 8 h}"
VARYING = (
    "costs.restart={fails: 30 %, retry: {family: exponential, mean: 9 min}, gives_up_after: 3, "
    "operator: {mix: [{share: 70 %, value: 30 min}, {share: 0.3, value: 9 h}]}}"
)
WARM, LATE = "costs.warmup=12 min", "costs.warmup={family: exponential, mean: 12 min}"
BEHIND = "costs.save={stall: 1 min, background: 5 min}"
SEVERAL = (
    "recovery=[full, none, gemini, torchft, elastic-restart, dlrover-flash, async, varuna, "
    "{strategy: ecrec, options: {data: 3}}]"
)


def costs_of(experiment: Experiment) -> list[CostBreakdown]:
    return [outcome.costs for outcome in simulate(experiment).strategies]


# --------------------------------------------------------------------------- mixtures


def test_a_mixture_has_the_mean_the_spread_and_the_shares_of_its_parts() -> None:
    mixed = Mixture((0.6, 0.4), (Constant(0.1), Exponential(7.0)))
    drawn = mixed.sample(np.random.default_rng(3), 200_000)
    assert mixed.mean_h == pytest.approx(0.06 + 2.8)
    assert abs(z_score(drawn, mixed.mean_h)) < 4
    assert abs(z_score((drawn == 0.1) * 1.0, 0.6)) < 4
    square = 0.6 * 0.01 + 0.4 * 2 * 49.0
    assert abs(z_score(drawn**2, square)) < 4


def test_a_mixture_is_a_time_wherever_there_is_one(make: Make) -> None:
    """Equal parts change nothing but the draws: each is as long as the fixed time."""
    one = "{mix: [{share: 0.25, value: 6 min}, {share: 75 %, value: 6 min}]}"
    costs = ("costs.load", "costs.reschedule", "costs.save", "costs.warmup", "cluster.repair")
    places = [*(f"{place}=%s" for place in costs), "scopes=[{name: node, share: 1, detect: %s}]"]
    (fixed,), (mixed,) = (
        costs_of(make("cluster.spares=1", *(place % time for place in places)))
        for time in ("6 min", one)
    )
    np.testing.assert_allclose(mixed.wall_h, fixed.wall_h, rtol=1e-12)


def test_detection_by_people_costs_the_mean_of_the_mixture(make: Make) -> None:
    """On the clock of progress a failure costs what it takes, whatever the distribution."""
    people = "costs.detect={mix: [{share: 60%, value: 5 min}, {share: 40%, value: 7 h}]}"
    (costs,) = costs_of(make(people, "simulation.replications=4000"))
    theory_h = costs.n_failures.mean() * (0.6 / 12 + 0.4 * 7)
    assert abs(z_score(costs.hours_of("detect") - theory_h, 0.0)) < 4


# --------------------------------------------------------------------------- warm-up, attempts


def test_a_warm_up_adds_its_time_at_each_failure(make: Make) -> None:
    (before,), (costs,) = costs_of(make()), costs_of(make(WARM))
    assert before.n_failures.sum() > 1000
    np.testing.assert_array_equal(costs.n_failures, before.n_failures)
    np.testing.assert_allclose(costs.wall_h - before.wall_h, 0.2 * before.n_failures, atol=1e-9)
    np.testing.assert_allclose(costs.hours_of("warm-up"), 0.2 * before.n_failures, atol=1e-9)
    assert "warm-up" not in before.parts


def test_failed_attempts_cost_their_stages_and_pauses_again(make: Make) -> None:
    """p/(1 - p) attempts more, and p^k/(1 - p^k) visits of a person in place of a pause."""
    (costs,) = costs_of(make(FAILING, WARM, "simulation.replications=6000"))
    p, k, attempt_h = 0.4, 2, 3 / 60 + 6 / 60 + 0.2
    n_failed, n_visits = p / (1 - p), p**k / (1 - p**k)
    n = costs.n_failures
    pauses_h = n_failed * 0.25 + n_visits * (8 - 0.25)
    for part, hours in {"reschedule": 3 / 60, "load": 6 / 60, "warm-up": 0.2}.items():
        extra_h = costs.hours_of(part) - n * hours * (1 + n_failed)
        assert abs(z_score(extra_h, 0.0)) < 4, part
    once_h = 1 / 60 + attempt_h + n_failed * attempt_h + pauses_h
    parts_h = sum(map(costs.hours_of, ("detect", "reschedule", "load", "warm-up", "retry")))
    assert abs(z_score(parts_h - n * once_h, 0.0)) < 4


def test_attempts_that_never_fail_change_nothing(make: Make) -> None:
    (before,), (costs,) = costs_of(make()), costs_of(make("costs.restart={fails: 0, retry: 1 h}"))
    assert costs.parts == before.parts
    np.testing.assert_array_equal(costs.hours, before.hours)


def test_the_log_has_a_line_for_each_stage_of_each_attempt(make: Make) -> None:
    """The first replication in which one attempt fails: it begins again after the pause."""
    experiment = make(
        "costs.restart={fails: 0.5, retry: 15 min}",
        WARM,
        "failures={kind: injected, at: [3 h], role: worker}",
    )
    job = experiment.simulated_job(experiment.policies[0])
    (block,) = blocks_of(experiment, range(20))
    rows = block.run(job, range(20)).costs
    once = int(np.flatnonzero(rows.hours_of("retry") == 0.25)[0])
    lines = [line for line in told(block.log(job, once)) if " stage " in line]
    words = [line.split()[2] for line in lines]
    attempt = ["reschedule", "load", "warm_up"]
    assert words[-7:] == [*attempt, "retry", *attempt]


EITHER = "costs.load={mix: [{share: 0.5, value: 1 min}, {share: 0.5, value: 9 min}]}"
SHORT_STOPS = "planned={every: 7 h, length: {family: exponential, mean: 1 h}, saves: %s}"


@pytest.mark.parametrize(
    ("part", "costs"),
    [
        ("warm-up", (WARM, FAILING, EITHER)),
        ("warm-up", (LATE, VARYING, EITHER)),
        ("warm-up", (LATE, EITHER)),
        ("planned", (LATE, VARYING, SHORT_STOPS % "true")),
        ("planned", (LATE, VARYING, SHORT_STOPS % "false")),
    ],
)
def test_every_system_is_the_same_on_the_cluster(
    make: Make, part: str, costs: tuple[str, ...]
) -> None:
    few = "simulation.replications=4"
    experiment = make(SEVERAL, *costs, BEHIND, "failures.clock=wall", few)
    assert_cluster_agrees(experiment, 4)
    for outcome in simulate(experiment).strategies:
        assert part in outcome.costs.parts, outcome.policy.name
        assert part == "warm-up" or outcome.costs.hours_of(part).all(), outcome.policy.name


def test_survivors_do_not_warm_up_and_a_rule_may_name_its_own(make: Make) -> None:
    """Without a reschedule nobody starts again; a stage that is named stays what it is."""
    stages = "stages: [detect, %s]}]}}]"
    rule = "recovery=[{strategy: policy, options: {rules: [{reverts: all, to: start, " + stages
    at = "failures={kind: injected, at: [3 h, 6 h], role: worker}"
    parts = {}
    for stage in ("load", "warm-up", "reschedule", "{kind: warm-up, cost: 1 h}, reschedule"):
        named = stage.replace("load", "{kind: load, cost: 1 min}")
        (costs,) = costs_of(make(WARM, at, rule % named, "job.useful=10 h"))
        parts[stage] = "warm-up" in costs.parts and float(costs.hours_of("warm-up").mean())
    assert parts == {
        "load": False, "warm-up": pytest.approx(0.4), "reschedule": pytest.approx(0.4),
        "{kind: warm-up, cost: 1 h}, reschedule": pytest.approx(2.0),
    }  # fmt: skip


def test_the_decision_of_cpr_counts_them(make: Make) -> None:
    """First order: what a failure costs under full recovery, failed attempts included."""
    cpr = ("cluster={emb_ps: 8}", "failures.role=emb_ps")
    entry = "recovery=[{strategy: cpr, target_pls: 0.1}]"
    decision = make(*cpr, entry, WARM, FAILING).policies[0].decision
    before = make(*cpr, entry).policies[0].decision
    p, k, attempt_h = 0.4, 2, 3 / 60 + 6 / 60 + 0.2
    extra_h = 0.2 + p / (1 - p) * (attempt_h + 0.25) + p**k / (1 - p**k) * (8 - 0.25)
    for way in ("partial_overhead_fraction", "full_overhead_fraction"):
        assert getattr(decision, way) - getattr(before, way) == pytest.approx(extra_h / 5)


# --------------------------------------------------------------------------- planned stops

STOPS = "planned={every: 9 h, length: 2 h}"
AT = "failures={kind: injected, clock: wall, role: worker, at: [%s]}"
LATE_FAILURE = AT % "3990 h"
PASS_H = 3 / 60 + 6 / 60 + 0.2  # reschedule, load, warm-up


def only(experiment: Experiment) -> dict[str, float]:
    """The hours of the only replication's parts, with its counts."""
    (costs,) = costs_of(experiment)
    parts = {part: float(costs.hours_of(part)[0]) for part in costs.parts}
    counts = {"failures": float(costs.n_failures[0]), "wall": float(costs.wall_h[0])}
    return {name: value for name, value in (parts | counts).items() if value}


def test_a_stop_costs_its_save_its_length_and_a_restart_and_is_no_failure(make: Make) -> None:
    """Stops at 9, 18, 27, 36 and 45 h of wall time; a save of 2 min each 2 h besides."""
    one = ("simulation.replications=1", LATE_FAILURE, WARM)
    hours = only(make(*one, STOPS))
    n = 5
    stop_h = n * (2 + PASS_H)
    assert hours == pytest.approx(
        {"save": (20 + n) / 30, "load": n / 10, "reschedule": n / 20, "warm-up": n / 5,
         "planned": 2 * n, "wall": 40 + (20 + n) / 30 + stop_h}
    )  # fmt: skip
    never = only(make(*one, STOPS, "recovery=[{strategy: full, interval: never}]"))
    assert never["save"] == pytest.approx(n / 30)
    assert "lost" not in never
    varying = "planned={every: 9 h, length: {family: gamma, mean: 2 h, shape: 9}}"
    (costs,) = costs_of(make("simulation.replications=2000", LATE_FAILURE, varying))
    n_stops = np.floor(costs.wall_h / 9)
    assert abs(z_score(costs.hours_of("planned") / n_stops, 2.0)) < 5
    assert not costs.n_failures.any()


def test_without_a_save_a_stop_loses_the_work_since_the_last(make: Make) -> None:
    """At 9 h of wall time 9 h less 4 saves are done, and 8 h saved."""
    one = ("simulation.replications=1", AT % "990 h", "job.useful=10 h")
    stops = "planned={every: 9 h, length: 2 h, saves: false}"
    lost_h = 9 - 4 / 30 - 8
    assert only(make(*one, stops))["lost"] == pytest.approx(lost_h)
    assert "lost" not in only(make(*one, STOPS))
    never = only(make(*one, STOPS, "recovery=[none]", "planned.every=8 h", "job.horizon=15 h"))
    assert never["lost"] == pytest.approx(8)  # it has saved nothing


def test_later_failures_go_back_to_what_a_stop_saved(make: Make) -> None:
    """The stop at 9 h saves 9 h less 4 saves; the failure comes half an hour after the restart."""
    again_h = 9 + 1 / 30 + 2 + 3 / 60 + 6 / 60 + 0.5
    one = ("simulation.replications=1", "job.useful=10.5 h", AT % f"{again_h!r} h")
    assert only(make(*one, STOPS))["lost"] == pytest.approx(0.5)
    one = ("simulation.replications=1", "job.useful=10.5 h", AT % "9.01 h, 10 h, 11 h")
    hours = only(make(*one, STOPS))  # the first within its save, the others as nobody works
    assert hours["failures"] == 1
    assert hours["planned"] == 2
    assert hours["lost"] == pytest.approx(9 - 4 / 30 - 8)
