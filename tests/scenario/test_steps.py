"""Intervals are times, or so many training steps."""

import pytest

from cprsim.errors import ScenarioError
from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import load_scenario

TEXT = """
name: steps
job: {useful: 10 h, step: 36 s}
cluster: {workers: 8, link: 100 Gbit/s, state: 10 GB}
failures: {kind: job, family: exponential, mtbf: 5 h, role: worker}
costs: {save: {stall: 1 s, background: 10 s}, load: 0 s, detect: 0 s, reschedule: 6 min}
recovery:
  - {strategy: full, interval: 100 steps}
  - {strategy: async, options: {every: 1.5 steps}}
  - strategy: policy
    name: written
    options:
      tiers: [{name: far, medium: remote, load: 3 min}]
      captures: [{tier: far, every: 1 step, stall: 2 s}]
      rules: [{reverts: all, sources: [far], stages: [detect, load]}]
"""
EVERY_300 = "recovery.full.interval=300 steps"


@pytest.mark.parametrize(
    ("sets", "expected_h"),
    [([], [1.0, 0.015, 0.01]), (["job.step=18 s", EVERY_300], [1.5, 0.0075, 0.005])],
)
def test_intervals_are_written_in_steps(sets: list[str], expected_h: list[float]) -> None:
    experiment = assemble(load_scenario("steps.yaml", sets, text=TEXT))
    assert [policy.interval_h for policy in experiment.policies] == pytest.approx(expected_h)


def test_where_the_job_says_no_step_each_of_them_is_told_so() -> None:
    text = TEXT.replace(", step: 36 s", "")
    with pytest.raises(ScenarioError) as caught:
        load_scenario("steps.yaml", text=text)
    told = [f"{problem.place.line} {problem.key}" for problem in caught.value.problems]
    assert told == [
        "8 recovery.0.interval",
        "9 recovery.1.options.every",
        "14 recovery.2.options.captures.0.every",
    ]
    assert str(caught.value).count("give `job.step`") == 3


def test_a_name_may_count_steps() -> None:
    text = TEXT.replace("interval: 100 steps", "interval: 100 steps, name: 100 steps")
    entry = load_scenario("steps.yaml", text=text).scenario.recovery[0]
    assert (entry.name, entry.interval) == ("100 steps", pytest.approx(1.0))
