"""The results folder of a comparison: that of a run of all systems, and what else is known.

So what reads runs reads comparisons too. `systems.json` has what no run knows: how intervals came
about, what each system survives and moves, and who is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cprsim.codec import FieldMark, Key
from cprsim.records import Cluster
from cprsim.recovery.policy import Groups, Outside, Policy, Ring
from cprsim.results.folder import read_record
from cprsim.results.run import Result, load_result
from cprsim.results.sensitivity import Sensitivity
from cprsim.scenario.recovery import known as known_system
from cprsim.scenario.schema import Scenario
from cprsim.systems_compared.after import Fate, content_every_h, fates, strikes_of
from cprsim.systems_compared.best import Found
from cprsim.systems_compared.lineup import Lineup

BESIDE = "systems.json"


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes per hour of progress, if each save moves whole states.

    A system that saves parts or deltas moves less. None: the job does not say how large a state is,
    or a tier is written on notice alone.
    """

    storage_bytes_per_h: float | None  # of all nodes together
    peers_bytes_per_h: float | None  # that one node sends to others


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known of one system besides its run."""

    strategy: str
    how: str  # its interval came about: see `Found`
    text: Annotated[str, Key("entry")]  # its entry of `recovery`
    stale: bool  # some shards may go back while the job goes on
    not_counted: str  # what it loses that no number shows; empty: nothing
    fates: Annotated[Mapping[str, Fate], Key("after")]
    traffic: Traffic
    unknown: tuple[str, ...] = ()  # its options that no source has a figure for: see `option`
    runs_as: str = ""  # what a job can run today; empty: a paper only


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of systems; `systems.json` holds what the run does not."""

    name: str  # of the scenario
    fixed: bool
    limit: Mapping[str, Any] | None  # of accuracy: quantity and most; None: none was said
    beside: Annotated[Mapping[str, Beside], Key("systems")]  # by the system's name
    left_out: Mapping[str, str]  # why, by name
    assumed: tuple[str, ...]  # of the job, where the scenario does not say, in sentences
    result: Annotated[Result, FieldMark.NOT_STORED]
    today: str = ""  # how the job runs now, at its own interval; empty: it is not compared
    # what would make another system the cheapest; None: no input is said to be unknown
    sensitivity: Annotated[Sensitivity | None, FieldMark.OMIT_NONE] = None

    @property
    def path(self) -> Path:
        """The results folder, which is that of the run."""
        return self.result.path


def compared(
    result: Result,
    scenario: Scenario,
    lineup: Lineup,
    found: Sequence[Found],
    left_out: Mapping[str, str],
) -> Comparison:
    """The comparison whose run is `result`."""
    limit = None
    if lineup.limit is not None:
        limit = {"quantity": lineup.limit.quantity.value, "most": lineup.limit.most}
    beside = {one.name: _beside(one, lineup, scenario.cluster.shard_bytes) for one in found}
    reasons = {**lineup.left_out, **left_out}
    assumed = tuple(assumptions(scenario))
    return Comparison(
        scenario.name, lineup.fixed, limit, beside, reasons, assumed, result, lineup.today
    )


def assumptions(scenario: Scenario) -> Iterator[str]:
    """What the comparison assumes of the job where the scenario does not say."""
    cluster = scenario.cluster
    if cluster.workers and cluster.replicas == 1:
        yield "Each part of the state lies on one worker (`cluster.replicas: 1`)."
    elif cluster.workers:
        nodes = cluster.workers // cluster.replicas
        yield f"{cluster.replicas} replicas of the state, each on {nodes} workers."
    failures = scenario.failures
    alone = getattr(failures, "n_together", None) or getattr(failures, "together", 1)
    if not scenario.scopes and alone == 1 and failures.kind != "trace":
        yield "Each failure takes one node (no `scopes`): no failure strikes all copies at once."
    if cluster.spares is None:
        yield "A spare node is always free (no `cluster.spares`)."


def _beside(one: Found, lineup: Lineup, state_bytes: float | None) -> Beside:
    """What is known of one system besides its run."""
    experiment, policy, known = lineup.experiment, one.policy, known_system(one.strategy)
    strikes = list(strikes_of(experiment.cluster, experiment.scopes, lineup.rack))
    return Beside(
        strategy=one.strategy,
        how=one.how,
        text=one.text,
        stale=one.policy.leaves_stale,
        not_counted=known.not_counted,
        fates=fates(policy, experiment.cluster, strikes, experiment.useful_h),
        traffic=traffic_of(policy, experiment.cluster, state_bytes, experiment.useful_h),
        unknown=lineup.unknown(one.name),
        runs_as=known.runs_as,
    )


def load_comparison(folder: Path | str) -> Comparison:
    """Read a finished comparison. Raises ResultError where it is none, or is damaged."""
    return comparison_of(load_result(folder))


def comparison_of(result: Result) -> Comparison:
    """The comparison whose run this is. Raises ResultError where there is none."""
    path = result.path / BESIDE
    return read_record(Comparison, path, "a comparison of systems", result=result)


# --------------------------------------------------------------------------- traffic


def traffic_of(
    policy: Policy, cluster: Cluster, state_bytes: float | None, useful_h: float
) -> Traffic:
    """The bytes that the saves of a policy move."""
    if state_bytes is None:
        return Traffic(None, None)
    storage = peers = 0.0
    for capture in policy.captures:
        per_h = state_bytes / content_every_h(policy, capture, useful_h)
        tier = policy.tier(capture.tier)
        if isinstance(tier.placement, Outside):
            storage += per_h * len(cluster.slots(tier.role))
        else:
            peers += per_h * _sent(tier.placement)
    return Traffic(storage, peers)


def _sent(place: Ring | Groups) -> float:
    """States' worth that a node sends to others with each save.

    Copies on all others of its group, or as parity ``tolerates`` of the others' places.
    """
    return float(place.copies - 1 if isinstance(place, Ring) else place.tolerates)
