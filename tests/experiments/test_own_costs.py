"""Strategies with costs of their own: as if the scenario's section had said them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cprsim.errors import ScenarioError
from cprsim.experiments import pipeline
from cprsim.experiments.assemble import Experiment
from cprsim.failures.distributions import Constant
from cprsim.recovery.policy import StageKind
from cprsim.recovery.system import noticed_after
from tests.making import Make, maker

SCENARIO = """\
job: {useful: 20 h, step: 10 s}
cluster: {emb_ps: 8, trainers: 2, shard_size: 50 GB, link: 100 Gbit/s}
storage: {bandwidth: 25 Gbit/s}
failures: {kind: job, family: gamma, shape: 0.7, mtbf: 6 h, role: any}
costs: {save: {stall: 3 min, background: 4 min}, load: 6 min, detect: 30 s, reschedule: 9 min}
recovery: [none, full, partial, {strategy: cpr, target_pls: 0.1}, gemini]
simulation: {seed: 5, replications: 60}
"""
OTHERS = {
    "save": "5 s",
    "load": "1 min",
    "detect": "{family: gamma, mean: 2 min, shape: 3}",
    "reschedule": "{family: exponential, mean: 4 min}",
}
ENTRIES = {
    "none": "none",
    "full": "full",
    "full by bytes": "full",
    "partial": "partial",
    "cpr": "cpr, target_pls: 0.1",
    "gemini": "gemini",
}


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """An experiment from the scenario above, with overrides."""
    return maker(tmp_path, SCENARIO)


def rows(experiment: Experiment) -> pipeline.StrategyOutcome:
    (only,) = pipeline.simulate(experiment).strategies
    return only


@pytest.mark.parametrize("engine", ["auto", "simpy"])
@pytest.mark.parametrize("name", ENTRIES)
def test_they_count_as_if_the_section_said_them(make: Make, name: str, engine: str) -> None:
    costs = OTHERS | ({"save": "transfer", "load": "transfer"} if "bytes" in name else {})
    if name == "gemini":  # whose own detection is drawn by stage: other draws of what varies
        costs["detect"] = "2 min"
    own = ", ".join(f"{key}: {cost}" for key, cost in costs.items())
    run_by = f"simulation.engine={engine}"
    section = [f"costs.{key}={cost}" for key, cost in costs.items()]
    theirs = make(f"recovery=[{{strategy: {ENTRIES[name]}}}]", *section, run_by)
    ours = make(f"recovery=[{{strategy: {ENTRIES[name]}, costs: {{{own}}}}}]", run_by)
    found, known = rows(ours), rows(theirs)
    bare = [replace(one.policy, rules=(), captures=(), tiers=()) for one in (found, known)]
    assert bare[0] == bare[1]
    np.testing.assert_array_equal(found.costs.n_failures, known.costs.n_failures)
    np.testing.assert_array_equal(found.costs.n_saves, known.costs.n_saves)
    for part in found.costs.parts:
        hours = [one.costs.hours_of(part) for one in (found, known)]
        np.testing.assert_allclose(*hours, rtol=1e-9, atol=1e-7)


def test_a_faster_save_gives_the_numbers_of_a_section_that_says_so(make: Make) -> None:
    both = make("recovery=[full, {strategy: full, name: faster, costs: {save: 5 s}}]")
    alone = rows(make("recovery=[full]", "costs.save=5 s"))
    full, faster = pipeline.simulate(both).strategies
    np.testing.assert_allclose(faster.costs.wall_h, alone.costs.wall_h, rtol=1e-9)
    assert faster.policy.interval_h == alone.policy.interval_h
    assert faster.costs.wall_h.mean() < full.costs.wall_h.mean()


def test_the_decision_of_cpr_is_priced_with_them(make: Make) -> None:
    entry = "{strategy: cpr, target_pls: 0.1%s}"
    dear = ", name: dear, costs: {load: 300 h}"
    cheap, own = make(f"recovery=[{entry % ''}, {entry % dear}]").policies
    (section,) = make(f"recovery=[{entry % ''}]", "costs.load=300 h").policies
    assert own.decision == section.decision
    assert own.decision != cheap.decision


def test_what_is_not_said_is_the_sections(make: Make) -> None:
    (policy,) = make("recovery=[{strategy: full, costs: {load: 1 min}}]").policies
    detect, _, reschedule, _ = policy.rules[0].stages
    assert detect.cost is None  # as the scope says
    assert reschedule.cost == Constant(9 / 60)
    assert policy.captures[0].background == Constant(4 / 60)
    (bare,) = make("recovery=[{strategy: full, costs: {save: 1 min}}]").policies
    assert bare.captures[0].background is None  # of a save that does not say one


def test_only_a_detection_without_a_cost_is_replaced(make: Make) -> None:
    (gemini,) = make("recovery=[gemini]").policies
    once = noticed_after(gemini, Constant(1.0))
    assert noticed_after(once, Constant(2.0)) == once
    costs = {s.kind: s.cost for rule in once.rules for s in rule.stages}
    assert costs[StageKind.DETECT] == Constant(1.0)
    assert costs[StageKind.WAIT] is None


def test_loads_that_share_a_bandwidth_go_with_own_costs(make: Make) -> None:
    shared = ("costs.load=transfer", "failures.mtbf=1 h", "failures.role=any")
    own = rows(make("recovery=[{strategy: partial, costs: {save: 5 s}}]", *shared))
    known = rows(make("recovery=[partial]", "costs.save=5 s", *shared))
    np.testing.assert_allclose(own.costs.wall_h, known.costs.wall_h, rtol=1e-9)
    assert own.costs.hours_of("load").min() > 0.0


def test_the_deeper_the_storage_the_less_corrupt_saves_cost(make: Make) -> None:
    """With q of the saves corrupt and k kept, q^k of the failures start the job again."""
    often = ("recovery=[full]", "costs.load=1 min", "failures.mtbf=5 h")
    lost_h, restarts = [], []
    for kept in (1, 2, 3):
        save = f"costs.save={{stall: 5 s, corrupt: 20 %, fails: 10 %, kept: {kept}}}"
        found = rows(make(*often, save))
        (policy,) = make(*often, save).policies
        lost_h.append(found.costs.hours_of("lost").mean())
        restarts.append(policy.interval_h)
    sound_h = rows(make(*often, "costs.save=5 s")).costs.hours_of("lost").mean()
    assert lost_h[0] > 2.0 * lost_h[1] > 2.0 * lost_h[2] > 2.0 * sound_h
    assert len(set(restarts)) == 1


def test_corrupt_saves_over_a_shared_bandwidth_are_refused(make: Make) -> None:
    with pytest.raises(ScenarioError, match="may find contents corrupt"):
        rows(
            make(
                "recovery=[partial]", "costs.save={stall: 5 s, corrupt: 1 %}", "costs.load=transfer"
            )
        )
