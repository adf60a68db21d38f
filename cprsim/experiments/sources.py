"""From the sections of failures to the sources that engines draw from."""

from __future__ import annotations

from pathlib import Path

from cprsim.errors import ParameterError
from cprsim.failures.clocks import JobClock, NodeClocks
from cprsim.failures.correlated import CorrelatedNodes
from cprsim.failures.distributions import Weibull
from cprsim.failures.frailty import ALIKE, Lemons, Shocks
from cprsim.failures.injected import Injected
from cprsim.failures.replay import Replay
from cprsim.failures.sources import FailureSource
from cprsim.records import Cluster
from cprsim.scenario.failures import (
    ANY,
    MAX_FAILURES,
    CorrelatedFailures,
    Failures,
    InjectedFailures,
    JobFailures,
    NodeFailures,
    TraceFailures,
    too_many,
)

FEWEST_OUTAGES = 2  # that can be replayed


def source_of(
    section: Failures, cluster: Cluster, useful_h: float, trace: Path | None
) -> FailureSource:
    """The failures of a section in a job; `trace` is the file of one that is replayed.

    Raises ParameterError where they are too many, or too few to replay; TraceError where the file
    can't be read.
    """
    clock, repair = section.clock, cluster.repair
    match section:
        case JobFailures(role=role, together=together, start=start):
            slots = _slots(cluster, role)
            return JobClock(section.distribution, slots, together, clock, start, repair)
        case NodeFailures(start=start):
            lifetimes = {role: lifetime.distribution for role, lifetime in section.roles.items()}
            return NodeClocks(lifetimes, clock, start, repair)
        case CorrelatedFailures():
            return _correlated(section, cluster, useful_h)
        case InjectedFailures():
            return _injected(section, cluster, useful_h)
    assert trace is not None, "loading sees to it that a trace has a file"
    return replay_of(section, trace)


def _slots(cluster: Cluster, role: str) -> range:
    return range(cluster.n_nodes) if role == ANY else cluster.slots(role)


def _correlated(section: CorrelatedFailures, cluster: Cluster, useful_h: float) -> CorrelatedNodes:
    lemons, seen, shocks = section.lemons, section.shocks, None
    others = section.frailty or ALIKE
    if seen is not None:
        total = sum(seen.sizes.values())
        shares = tuple(weight / total for weight in seen.sizes.values())
        shocks = Shocks(1 / seen.every_h, tuple(seen.sizes), shares, seen.nodes)
    nodes = CorrelatedNodes(
        lifetime=Weibull.from_mean(section.mtbf_h, section.shape),
        frailty=Lemons(lemons.share_fraction, lemons.factor, others) if lemons else others,
        shocks=shocks,
        clock=section.clock,
        start=section.start,
        watched_h=section.watched_h,
        repair=cluster.repair,
    )
    # how often nodes that differ fail does not follow from `mtbf` alone
    n_failures = useful_h / nodes.expected(cluster, useful_h).mtbf_h
    if n_failures > MAX_FAILURES:
        raise ParameterError(too_many(n_failures))
    return nodes


def _injected(section: InjectedFailures, cluster: Cluster, useful_h: float) -> Injected:
    slots = _slots(cluster, section.role)
    named = [tuple(slots[n] for n in servers) for servers in section.named_servers.values()]
    return Injected(
        useful_h=useful_h,
        slots=named[0] if named and not section.servers_at else slots,
        together=section.n_together,
        at_h=section.at_h,
        count=section.count or 0,
        repair=cluster.repair,
        clock=section.clock,
        slots_at=tuple(named) if section.servers_at else None,
    )


def replay_of(section: TraceFailures, path: Path) -> Replay:
    """The outages of a file. Raises as `source_of` does."""
    from cprsim.failures.traces.formats import read_log

    try:
        outages = read_log(path, section.spec)
        outages = outages.where(outages.chosen)
    except ParameterError as error:
        raise ParameterError(str(error).replace("--", "")) from None  # keys have no dashes
    if section.begins == "random" and outages.n_outages < FEWEST_OUTAGES:
        raise ParameterError(
            f"the trace has {outages.n_outages} outage: what lies between outages can't be "
            f"told; replay needs {FEWEST_OUTAGES} at least"
        )
    return Replay(outages, from_first=section.begins == "first")
