"""Policies written in scenarios: the section is the record, for every policy that there is."""

import json
import re
from dataclasses import MISSING, asdict, fields, is_dataclass, replace
from enum import Enum
from math import inf
from pathlib import Path
from typing import Any

import pytest

from cprsim.errors import ScenarioError
from cprsim.files import decode, encode
from cprsim.job.distributions import Constant
from cprsim.job.policy import Groups, Outside, Policy, Ring, SaveSchedule
from cprsim.job.records import Duration, Storage
from cprsim.recovery.systems import SYSTEMS, written
from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import load_scenario
from cprsim.scenario.recovery import options_of
from tests.recovery.systems.by_hand import OF_LITERATURE, every_system_s_job

SECONDS = 3600.0


def as_written(value: Any, name: str = "") -> Any:
    """A record, or the value of its field, as a scenario writes it."""
    match value:
        case Constant(mean_h=mean_h):
            return f"{mean_h!r} h"
        case Outside():
            return "outside"
        case Ring(copies=copies):
            return {"ring": copies}
        case Groups():
            return {"groups": asdict(value)}
        case tuple():
            return [as_written(entry, name) for entry in value]
        case Enum():
            return value.value
        case float() if name.endswith("_h"):
            return "next loss" if value == inf else f"{value!r} h"
    if not is_dataclass(value):
        return value
    given = {field.name: (getattr(value, field.name), field.default) for field in fields(value)}
    return {
        key.removesuffix("_h"): as_written(it, key)
        for key, (it, default) in given.items()
        if default is MISSING or it != default
    }


@pytest.mark.parametrize("name", OF_LITERATURE)
def test_every_policy_can_be_written_and_is_read_as_it_was(name: str) -> None:
    system, facts = SYSTEMS[name], every_system_s_job()
    policy = system.plan(facts, options_of(name, dict(system.needs)), name)
    keys = ("tiers", "captures", "rules", "elastic", "tax")
    options = {key: as_written(getattr(policy, key)) for key in keys}
    facts = replace(facts, step_h=policy.step_h or facts.step_h)
    given = {key: value for key, value in options.items() if value is not None}
    again = written.WRITTEN_POLICY.plan(facts, options_of("policy", given), name)
    assert replace(again, step_h=policy.step_h) == policy
    assert decode(Policy, json.loads(json.dumps(encode(policy)))) == policy  # as results have it


SCENARIO = """
name: two-level
job: {useful: 100 h, step: 10 s}
cluster: {workers: 32, state: 50 GB, link: 400 Gbit/s, links: {pcie: 25 GB/s}}
failures: {kind: job, family: exponential, mtbf: 8 h, role: worker}
scopes:
  - {name: process, share: 60 %, reach: process, detect: 1 min}
  - {name: node, share: 0.4, detect: 3 min}
storage: {bandwidth: 800 Gbit/s}
costs: {save: {stall: 10 s, background: transfer}, load: transfer, reschedule: 4 min}
recovery:
  - strategy: policy
    name: mine
    options:
      tiers:
        - {name: host, medium: host, placement: {ring: 2}, load: 3 s}
        - {name: remote, medium: remote}
      captures:
        - {tier: host, every: young, stall: {link: pcie}}
        - {tier: remote, after: host, every_nth: 4}
      rules:
        - {reverts: all, sources: [host, remote], stages: [detect, reschedule, load]}
"""
WRONG = [  # what stands in the scenario, what instead, and what is said
    ("medium: host,", "medium: hots,", "tiers.0.medium: `hots` should be 'device', 'host'"),
    ("sources: [host,", "sources: [hst,",
     "rule 1: names the tier `hst`, which the policy does not have"),
    ("stall: {link: pcie}", "stall: {link: pcie, lnk: nic}", "captures.0.stall.lnk: unknown key"),
    ("stall: {link: pcie}", "stall: {link: nic}",
     "mine: there is no link `nic`; `cluster.links`: pcie"),
    ("stall: {link: pcie}", "background: {link: pcie}",
     "mine: saves to `host` do not stall the job: give `every` as a time"),
    ("rules:", "every: 0 h\n      rules:", "mine: `every` is 0.0; it must be positive"),
    ("tier: remote, after", "after", "captures.1.tier: is missing"),
    ("{ring: 2}", "ring", "tiers.0.placement: `ring` should be 'outside' or 'own'"),
    ("{ring: 2}", "{}", "tiers.0.placement: is no placement: write outside, own, {ring: 2}"),
    ("rules:", "rulez:", "recovery.0.options.rulez: unknown key; did you mean `rules`?"),
]  # fmt: skip


def policy_of(tmp_path: Path, text: str = SCENARIO) -> Policy:
    path = tmp_path / "two-level.yaml"
    path.write_text(text, encoding="utf-8")
    return assemble(load_scenario(path)).policies[0]


def mean_h(cost: Duration | Storage | None) -> float:
    assert isinstance(cost, Constant)
    return cost.mean_h


def test_what_is_left_out_follows_from_the_job(tmp_path: Path) -> None:
    policy = policy_of(tmp_path)
    host, remote = policy.tiers
    to_host, to_remote = policy.captures
    whole_h = 32 * 50e9 / (800e9 / 8) / SECONDS
    assert (host.role, remote.role) == ("worker", "worker")
    assert mean_h(host.load) == pytest.approx(3 / SECONDS)
    assert mean_h(remote.load) == pytest.approx(whole_h)
    assert mean_h(to_host.stall) == pytest.approx(2 / SECONDS)  # 50 GB at 25 GB/s
    assert to_host.every_h == pytest.approx(
        (2 * 2 / SECONDS * 8) ** 0.5, rel=1e-3
    )  # few failures strike while the neighbour is down, and need the remote tier
    assert replace(to_remote, background=None) == SaveSchedule("remote", after="host", every_nth=4)
    assert mean_h(to_remote.background) == pytest.approx(whole_h)
    assert mean_h(policy.rules[0].stages[1].cost) == pytest.approx(4 / 60)


def test_a_tier_may_be_called_as_an_interval_is(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, SCENARIO.replace("host,", "young,").replace("m: young", "m: host"))
    assert policy.tiers[0].name == policy.captures[0].tier == policy.rules[0].sources[0] == "young"


@pytest.mark.parametrize(("right", "wrong", "said"), WRONG, ids=[one[1] for one in WRONG])
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    assert SCENARIO.count(right) == 1
    with pytest.raises(ScenarioError) as error:
        policy_of(tmp_path, SCENARIO.replace(right, wrong))
    assert said in str(error.value)
    assert re.search(r"two-level\.yaml:(1[0-9]|2[0-9]): recovery\.0", str(error.value))
