"""Recovery systems in a selection: their intervals, what they are compared with, how it is said."""

import re
from dataclasses import replace
from math import inf, sqrt
from pathlib import Path
from typing import Any

import pytest

import cprsim
from cprsim.commands.select.evaluation import RELOADING, options_of
from cprsim.commands.select.search import max_writes
from cprsim.job.losses import Metric
from cprsim.job.policy import (
    Medium,
    Outside,
    Policy,
    Reverts,
    Rule,
    SaveSchedule,
    Stage,
    StageKind,
    Tier,
)
from cprsim.job.records import Estimate
from cprsim.recovery.system import JobProfile, Option, System
from cprsim.recovery.systems import all_systems
from cprsim.results.limit import NO_LIMIT, PLS, Limit
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.reading import load_scenario
from tests.making import SCENARIOS, maker
from tests.selector.conftest import bench_by, choose, curve_of, said_of, same

WORKERS = """\
name: workers
job: {useful: 40 h, step: 10 s}
cluster: {workers: 8, state: 20 GB, link: 25 Gbit/s, rack: 4}
failures: {kind: job, family: exponential, mtbf: 4 h, role: worker}
scopes:
  - {name: process, share: 0.5, reach: process, detect: 1 min}
  - {name: node, share: 0.4, reach: node, detect: 3 min}
  - {name: rack, share: 0.1, reach: rack, detect: 3 min}
costs: {save: 2 min, load: 3 min, detect: 30 s, reschedule: 2 min}
recovery: [RECOVERY]
simulation: {seed: 1, replications: 200}
"""
SERVERS = """\
name: servers
job: {useful: 40 h}
cluster: {trainers: 2, emb_ps: 10, shard_size: 20 GB, link: 25 Gbit/s}
failures: {kind: job, family: exponential, mtbf: 5 h}
costs: {save: 3 min, load: 3 min, detect: 30 s, reschedule: 2 min}
recovery: [RECOVERY]
simulation: {seed: 1, replications: 200}
"""
SCOPES = "scopes=[{name: node, share: 1.0, reach: node, detect: 3 min}]"
FEW = "simulation.replications=100"
SAVE_H, MTBF_H = 2 / 60, 4.0
YOUNG_H = sqrt(2 * SAVE_H * MTBF_H)


def experiment(folder: Path, recovery: str, *overrides: str, text: str = WORKERS) -> Experiment:
    return maker(folder, text.replace("RECOVERY", recovery))(*overrides)


OPTIONS = {
    "every": Option("time", "progress between saves", 1.0),
    "longest_part": Option("time", "shortest interval that it takes", 0.0),
}


def disguised(stale: bool = False) -> System:
    """Full recovery, or partial recovery, as a recovery system."""

    def plan(facts: JobProfile, options: Any) -> Policy:
        stages = (
            Stage(StageKind.DETECT),
            Stage(StageKind.WAIT),
            Stage(StageKind.RESCHEDULE, facts.reschedule),
            Stage(StageKind.LOAD),
        )
        every_h = max(options.every, options.longest_part)
        return Policy(
            options.name,
            (Rule(Reverts.STRUCK if stale else Reverts.ALL, stages, sources=("store",)),),
            (Tier("store", Medium.REMOTE, Outside(), facts.role, load=facts.load),),
            (SaveSchedule("store", every_h=every_h, stall=facts.save_stall),),
        )

    return System("disguised", "a disguise", "made up", OPTIONS, plan, interval="every")


@pytest.fixture
def known(monkeypatch):
    """Make a system known for the time of a test."""

    def register(system: System) -> None:
        monkeypatch.setitem(all_systems(), system.name, system)

    return register


# ----------------------------------------------------------------------------- the interval


def test_full_recovery_in_disguise_is_best_where_full_recovery_is(known, tmp_path) -> None:
    known(disguised())
    made = experiment(tmp_path, "full, disguised")
    found = choose(made, None, NO_LIMIT)
    one = found.at_best["disguised"]
    assert one.interval_option == "every"
    assert one.policy.interval_h == pytest.approx(YOUNG_H, rel=0.25)
    assert one.overhead.mean == pytest.approx(found.full.overhead.mean, rel=0.005)
    assert found.fell_back  # it does not surely cost less
    evaluator = bench_by(made, None, NO_LIMIT)
    same = [evaluator.evaluate(name, [0.5])[0].overhead for name in ("full", "disguised")]
    assert same[0] == pytest.approx(same[1], rel=1e-12)


def test_partial_recovery_in_disguise_saves_as_seldom_as_the_limit_allows(known, tmp_path) -> None:
    known(disguised(stale=True))
    made = experiment(tmp_path, "full, partial, disguised", text=SERVERS)
    for limit, curve in (
        (Limit(PLS, 0.02), None),
        (Limit(Metric.AUC, 0.0002), curve_of(partial=0.01)),
    ):
        found = choose(made, curve, limit, options_of(made, ["partial"]))
        one, partial = found.at_best["disguised"], found.at_best["partial"]
        assert one.n_saves == partial.n_saves > 0
        assert one.upper_bound == pytest.approx(partial.upper_bound)
        assert found.limited


GEMINI = "{strategy: gemini, options: {remote_every: 7 h}}"
OFTEN = "{strategy: disguised, name: often, options: {every: 10 min}}"
LATE = "{strategy: disguised, options: {longest_part: 90 min}}"
LONG = ("job.useful=2000 h", SCOPES, "costs.save={stall: 1 s, background: 5 s}")


@pytest.mark.parametrize(
    ("recovery", "overrides", "interval", "between_h", "entry"),
    [
        (LATE, (), "every", (1.5, 1.65), None),  # its shortest
        # where hardly anything fails: a save a day, in 40 h one
        ("disguised", ("failures.mtbf=100000 h",), "every", (20.0, 20.1), None),
        # which it does not take where that costs a hundredth of the job
        ("disguised", ("failures.mtbf=100000 h", "costs.save=30 min"), "every", (inf, inf), None),
        (OFTEN, (), None, (1 / 6, 1 / 6), OFTEN),  # without an interval it is priced as it is
        # free saves that guard against nothing: as the scenario says
        (GEMINI, (SCOPES, "failures.mtbf=40 h"), "remote_every", (7.0, 7.0), GEMINI),
        # Young's, not the 100 s of 10 steps, at which saves of 2 min more than double the hours
        ("varuna", (), "every", (0.6 * YOUNG_H, 1.4 * YOUNG_H), None),
        # a step's copy each 10 s, 500 failures: of 1,000 saves each is 2 h old
        ("checkfreq", LONG, "every", (0.0, 0.4), None),
    ],
)  # fmt: skip
def test_the_interval_of_a_system(
    known, tmp_path, recovery, overrides, interval, between_h, entry
) -> None:
    known(replace(disguised(), interval=interval))
    full = "{strategy: full, interval: 1 h}"
    made = experiment(tmp_path, f"{full}, {recovery}", *overrides, FEW)
    (one,) = choose(made, None, NO_LIMIT).best.values()
    assert one.interval_option == (interval or "")
    low, high = between_h
    assert low * (1 - 1e-9) <= one.policy.interval_h <= high * (1 + 1e-9)
    assert entry in (None, one.entry)


def test_where_saves_cost_nothing_the_fewest_are_taken_that_are_as_good(tmp_path) -> None:
    made = experiment(tmp_path, "full, gemini")
    evaluator = bench_by(made, None, NO_LIMIT)
    one = choose(made, None, NO_LIMIT).at_best["gemini"]
    n_most = max_writes(evaluator, "gemini")
    assert n_most > 1000, "as many as are written one after the other"
    most = evaluator.with_writes("gemini", [n_most])[0]
    assert 0 < one.n_saves < n_most
    assert one.overhead.mean <= 1.02 * most.cost_fraction
    fewer = evaluator.with_writes("gemini", [one.n_saves // 3])[0]
    assert fewer.cost_fraction > 1.01 * most.cost_fraction


def test_a_system_that_differs_from_full_recovery_by_rounding_is_not_recommended(tmp_path) -> None:
    """Where each failure loses its node, copies in memory are of no use."""
    made = experiment(
        tmp_path, "full, dlrover-flash", SCOPES, "storage={bandwidth: 100 Gbit/s}",
        "costs.save={stall: 15 s, background: transfer}", "costs.load=transfer", FEW,
    )  # fmt: skip
    found = choose(made, None, NO_LIMIT)
    assert found.at_best["dlrover-flash"].benefit.by_name == {"mean": 0.0, "low": 0.0, "high": 0.0}
    assert found.fell_back


@pytest.mark.parametrize(("most", "kept"), [(0.02, True), (0.001, False)])
def test_it_is_left_out_where_it_loses_too_much(known, tmp_path, most: float, kept: bool) -> None:
    known(replace(disguised(stale=True), interval=None))
    made = experiment(tmp_path, "full, disguised", text=SERVERS)
    limit = Limit(PLS, most)
    one = choose(made, None, limit, options_of(made, [])).best["disguised"]
    assert (one is not None) == kept


# ----------------------------------------------------------------------------- what is compared


def test_workers_are_compared_with_the_listed_systems_alone(tmp_path) -> None:
    assert list(options_of(experiment(tmp_path, "full, gemini"))) == ["gemini"]
    servers = experiment(tmp_path, "full, ecrec", text=SERVERS)
    assert list(options_of(servers)) == [*RELOADING, "ecrec"]
    alone = choose(experiment(tmp_path, "full"), None, NO_LIMIT, with_figure=True)
    assert alone.best == {}
    assert "partial" not in said_of(alone)  # nothing was decided between it and full


def test_a_horizon_ends_jobs_and_overheads_are_shares_of_what_is_done(tmp_path) -> None:
    whole, half = (
        choose(experiment(tmp_path, "full", *more), None, NO_LIMIT)
        for more in ((), ("job.horizon=20 h",))
    )
    assert half.full.finished_fraction == 1.0
    assert half.full.overhead.mean == pytest.approx(whole.full.overhead.mean, rel=0.15)
    assert "jobs end after 20 h, done or not" in said_of(half)


def test_what_costs_accuracy_that_nothing_prices_is_not_recommended() -> None:
    only = "recovery=[full, {strategy: hsdp, options: {group: 16}}]"
    loaded = load_scenario(SCENARIOS / "llm.yaml", [only, "cluster.replicas=8"])
    experiment = assemble(loaded, with_policies=False)
    made = choose(experiment.simulated(replications=200), None, NO_LIMIT)
    hsdp = made.at_best["hsdp"]
    assert hsdp.is_cheaper
    assert made.fell_back
    assert "so hsdp is not recommended" in made.notes[0]
    assert "and its accuracy loss is unknown" in said_of(made)


# ----------------------------------------------------------------------------- how it is said


def test_it_names_the_option_and_no_loss(tmp_path: Path) -> None:
    recovery = "full, gemini, {strategy: varuna, name: often}"
    made = experiment(tmp_path, recovery, FEW)
    whole = choose(made, None, NO_LIMIT, with_figure=True)
    assert set(whole.points) == {"full", "gemini", "often"}
    text = said_of(whole)
    assert "No compared option leaves shards stale, so no limit is needed." in text
    assert re.search(r"gemini \(recommended\) +[\d.]+ (h|min|s) \(remote_every\)", text)
    assert "PLS" not in text
    assert "limit" not in text.replace("no limit is needed", "")
    less = replace(whole.at_best["often"], overhead=Estimate(whole.chosen.overhead.mean - 0.001))
    said = said_of(replace(whole, best={**whole.best, "often": less}))
    assert "often: 0.10 points cheaper, but not significantly." in said


def test_entries_give_the_policies_that_were_selected(tmp_path) -> None:
    recovery = (
        "full, {strategy: gemini, name: peers, options: {copies: 4}, costs: {reschedule: 90 s}}, "
        "{strategy: hsdp, options: {group: 2}}, varuna"
    )
    found = choose(experiment(tmp_path, recovery, FEW), None, NO_LIMIT)
    assert "options: {copies: 4, remote_every: " in found.entries["peers"]
    pasted = experiment(tmp_path, ", ".join(found.entries.values()))
    assert [policy.name for policy in pasted.policies] == ["full", "peers", "hsdp", "varuna"]
    for policy in pasted.policies:
        assert same(policy, found.at_best[policy.name].policy), policy.name


def test_a_limit_holds_for_a_system_that_a_curve_prices(tmp_path: Path) -> None:
    """Groups are missing for an hour at a time; smaller batches then cost accuracy."""
    (curve := tmp_path / "mine.csv").write_text(
        "strategy,pls,loss,standard_error,by\nhsdp,.5,.1,.001,degraded\n"
    )
    more = "rack: 4, replicas: 4, spares: 0, repair: 1 h"
    text = WORKERS.replace("RECOVERY", "full, hsdp").replace("rack: 4", more)
    for most, name in ((0.5, "hsdp"), (1e-6, "full")):
        limit = {"accuracy": {"max_auc_loss": most, "curve": str(curve)}}
        ran, selected = (of(text, limit, replications=100) for of in (cprsim.run, cprsim.select))
        assert ran.values["recommendation"]["name"] == selected.values["recommended"] == name
        assert "not recommended" not in str(selected)
    unlimited = cprsim.run(text, {"accuracy": {"curve": str(curve)}}, replications=100)
    assert unlimited.values["recommendation"]["name"] == "full"
    assert "hsdp costs" in str(unlimited.document.remarks)


@pytest.mark.parametrize(
    ("recovery", "said"),
    [
        ("full", "Nothing else is compared"),
        (
            "full, {strategy: checkmate, options: {shadow_nodes: 1}}",
            "Warning: checkmate takes additional nodes (1); overheads do not count their hours.",
        ),
        (
            "{strategy: full, costs: {save: 3 s}}, gemini",
            "recovery.0.costs: move costs of `full` to the section",
        ),
        ("{strategy: gemini, name: full}", "recovery: `full` is the name of a compared strategy"),
    ],
)
def test_what_the_program_says(recovery: str, said: str) -> None:
    try:
        text = str(cprsim.select(WORKERS.replace("RECOVERY", recovery), replications=100))
    except cprsim.CprsimError as error:
        text = str(error)
    assert said in " ".join(text.split())


def test_nothing_is_recommended_where_no_job_finishes() -> None:
    text = """\
name: hopeless
job: {useful: 2 h, horizon: 6 h}
cluster: {workers: 4, state: 10 GB}
failures: {kind: job, family: exponential, mtbf: 1 min, role: worker}
storage: {bandwidth: 1 Gbit/s}
costs: {save: 5 min, load: 5 min}
recovery: [full]
"""
    found = cprsim.select(text, replications=100)
    assert found.document.answer == [
        "Use none of these: full recovery finishes 0 % of the jobs, and no other option of known, "
        "allowed loss finishes all."
    ]
    assert (found.values["recommended"], found.values["recommendation"]) == (None, None)
    assert not found.frames["strategies"]["recommended"].any()
    said = f"{found.document.table} {found.document.remarks}"
    assert "recommended" not in said
    assert "Takes" not in said
    assert "None" not in str(cprsim.run(text, replications=10).document.remarks)
