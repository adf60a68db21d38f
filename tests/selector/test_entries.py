"""What a selection says to put into a scenario gives the policies that were selected."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cprsim.errors import ScenarioError
from cprsim.experiments.assemble import assemble
from cprsim.recovery.intervals import n_saves_due
from cprsim.recovery.losses import TRACKERS
from cprsim.recovery.policy import RELOAD, Policy
from cprsim.scenario.reading import load_scenario
from cprsim.scenario.recovery import SubSavesSection
from cprsim.selector.option import strategy
from tests.generated import sub_saves
from tests.making import small_scenario
from tests.selector.conftest import same

USEFUL_H = 20.0  # of the small scenario


def planned(folder: Path, said: str) -> Policy:
    """The policy that one entry of `recovery` gives."""
    path = folder / "pasted.yaml"
    path.write_text(small_scenario(said), "utf-8")
    (policy,) = assemble(load_scenario(path)).policies
    return policy


@settings(max_examples=40)
@given(
    name=st.sampled_from(["full", "partial", *(f"cpr-{tracker}" for tracker in TRACKERS)]),
    parts=sub_saves,
    interval_h=st.floats(0.05, 100) | st.just(inf),
)
def test_an_entry_makes_the_policy_that_it_was_made_from(
    tmp_path_factory, name, parts, interval_h
) -> None:
    cut = {"large_tables": parts.n_large_tables, "latency_h": parts.extra_h}
    cut |= {key: getattr(parts, key) for key in ("fraction", "small_tables", "sample_period")}
    section = SubSavesSection().model_copy(update=cut) if name.startswith("cpr-") else None
    option, experiment = (
        strategy(name, section),
        assemble(load_scenario("x", text=small_scenario())),
    )
    said = option.entry_at(interval_h, USEFUL_H)
    again, policy = (
        planned(tmp_path_factory.mktemp("entry"), said),
        option.policy_at(experiment, interval_h),
    )
    assert same(again, policy), said
    assert n_saves_due(again.interval_h, USEFUL_H) == n_saves_due(policy.interval_h, USEFUL_H)
    assert ("sub_saves" in said) == (section not in (None, SubSavesSection())), said


def test_a_priority_strategy_with_a_time_needs_no_target(tmp_path) -> None:
    policy = planned(tmp_path, "{strategy: cpr-scar, interval: 53.2 min}")
    assert policy.on_failure == RELOAD
    assert policy.decision is None
    assert policy.sub_saves is not None
    with pytest.raises(ScenarioError, match="target_pls"):
        planned(tmp_path, "{strategy: cpr-scar, interval: young}")
    decided = planned(tmp_path, "{strategy: cpr-scar, interval: 53.2 min, target_pls: 0.1}")
    assert decided.decision is not None
