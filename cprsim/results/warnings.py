"""What is legal in a scenario and still costs more than its author may think."""

from __future__ import annotations

from collections.abc import Iterator

from cprsim.experiments.assemble import Experiment
from cprsim.recovery.giving_up import ROUNDING, n_saves_due
from cprsim.recovery.policy import Policy, WhenBusy
from cprsim.results.words import hours
from cprsim.scenario.cluster import ClusterSection
from cprsim.units import SIZE

MOST_ON_A_NODE = 2.5e12  # bytes: more than the GPUs of a node hold


def warnings(experiment: Experiment, section: ClusterSection | None = None) -> tuple[str, ...]:
    """A sentence for each strategy whose saves go on for longer than its interval."""
    costs, n_servers = experiment.costs, experiment.cluster.n_emb_ps
    behind_h = costs.mean_h(costs.save_background, n_servers)
    said = [] if section is None else list(_more_than_a_node_holds(section))
    for policy in experiment.policies:
        if policy.system is not None:
            said += _of_system(policy.system)
            continue
        interval_h = policy.save_interval_h
        part = 1.0 if policy.sub_saves is None else policy.sub_saves.fraction
        n_writes = n_saves_due(part * interval_h, experiment.useful_h)
        if behind_h > interval_h and n_writes > 1:
            said.append(
                f"{policy.name}: a save goes on in the background for {hours(behind_h)}, longer "
                f"than the interval of {hours(interval_h)}: each save waits for the one before it, "
                f"and the job with it. Take an interval of at least {hours(behind_h)}."
            )
    return tuple(said)


def _more_than_a_node_holds(section: ClusterSection) -> Iterator[str]:
    if section.workers > 1 and (section.state_bytes or 0.0) > MOST_ON_A_NODE:
        whole = SIZE.format(section.state_bytes or 0.0)
        share = SIZE.format(float(f"{(section.state_bytes or 0.0) / section.workers:.4g}"))
        yield (
            f"{section.state_said}: is {whole} the state of all nodes? `cluster.state` is that of "
            f"one; then write {share}, or times `replicas` where replicas hold it."
        )


def _of_system(system: Policy) -> list[str]:
    """The same for each tier to which a recovery system saves, by the means of what varies."""
    said = []
    for capture in system.captures:
        if capture.every_h is None or capture.background is None:
            continue
        behind_h, most_h = capture.background.mean_h, capture.in_flight * capture.every_h
        if behind_h > most_h * (1.0 + ROUNDING) and capture.when_busy is WhenBusy.WAIT:
            said.append(
                f"{system.name}: a save to `{capture.tier}` goes on in the background for "
                f"{hours(behind_h)}, longer than the {hours(most_h)} in which the next is due "
                f"with {capture.in_flight} in flight: saves wait for those before them, and the "
                "job with them."
            )
    return said
