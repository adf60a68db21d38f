"""What is legal in a scenario and still costs more than its author may think."""

from __future__ import annotations

from collections.abc import Iterator

from cprsim.experiments.assemble import Experiment
from cprsim.recovery.intervals import ROUNDING, n_saves_due
from cprsim.recovery.policy import Policy, WhenBusy
from cprsim.results.words import hours
from cprsim.scenario.cluster import ClusterSection
from cprsim.units import SIZE

MOST_ON_A_NODE = 2.5e12  # bytes: more than the GPUs of a node hold


def warnings(experiment: Experiment, section: ClusterSection | None = None) -> tuple[str, ...]:
    """A sentence for each tier to which a save goes on for longer than until the next."""
    said = [] if section is None else list(_more_than_a_node_holds(section))
    for policy in experiment.policies:
        said += _longer_than_intervals(policy, experiment.useful_h)
    return tuple(said)


def _more_than_a_node_holds(section: ClusterSection) -> Iterator[str]:
    if section.workers > 1 and (section.state_bytes or 0.0) > MOST_ON_A_NODE:
        whole = SIZE.format(section.state_bytes or 0.0)
        share = SIZE.format(float(f"{(section.state_bytes or 0.0) / section.workers:.4g}"))
        yield (
            f"{section.state_said}: is {whole} the state of all nodes? `cluster.state` is that of "
            f"one; then write {share}, or times `replicas` where replicas hold it."
        )


def _longer_than_intervals(policy: Policy, useful_h: float) -> Iterator[str]:
    """By the means of what varies."""
    for capture in policy.captures:
        if capture.every_h is None or capture.background is None:
            continue
        behind_h, most_h = capture.background.mean_h, capture.in_flight * capture.every_h
        waits = capture.when_busy is WhenBusy.WAIT and n_saves_due(capture.every_h, useful_h) > 1
        if not waits or behind_h <= most_h * (1.0 + ROUNDING):
            continue
        if policy.is_strategy:
            behind = hours(capture.parts * behind_h)
            yield (
                f"{policy.name}: a save goes on in the background for {behind}, longer than the "
                f"interval of {hours(policy.interval_h)}: each save waits for the one before it, "
                f"and the job with it. Take an interval of at least {behind}."
            )
        else:
            yield (
                f"{policy.name}: a save to `{capture.tier}` goes on in the background for "
                f"{hours(behind_h)}, longer than the {hours(most_h)} in which the next is due "
                f"with {capture.in_flight} in flight: saves wait for those before them, and the "
                "job with them."
            )
