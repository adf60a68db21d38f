"""Who can run a job: what the scenario lists, and every other strategy and system that there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cprsim.errors import ParameterError
from cprsim.experiments.assemble import Experiment, policies_of, policy_of
from cprsim.recovery.paper import NEVER, STRATEGIES
from cprsim.recovery.policy import Policy
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario.failures import EMB_PS
from cprsim.scenario.reading import LoadedScenario
from cprsim.scenario.recovery import NEEDS_TARGET, RecoverySection
from cprsim.scenario.schema import dump_entry
from cprsim.selector.limit import Limit
from cprsim.selector.option import RELOADING, PricedEntry

FOUND, LISTED, DEFAULT = "found", "listed", "default"  # how an interval came about
WITHOUT_SHARDS = ("none", "full")  # strategies that need no embedding servers
NO_SERVERS = "no embedding servers whose shards could go back alone: `cluster.emb_ps`"
PAPER = "a paper only: nothing that is maintained runs it (`--available`)"
TODAY = "today"  # the name of how the job runs now
NO_TARGET = "needs `target_pls`, the portion of lost samples that you accept: list it with one"


@dataclass(frozen=True, slots=True)
class Entrant:
    """A strategy or a system that can run the job.

    Parameters
    ----------
    policy : what it does, at its interval
    how : whether its interval was found here, is the scenario's, or its default
    is_today : whether it is how the job runs now
    """

    entry: RecoverySection
    policy: Policy
    how: str
    is_today: bool = False

    @property
    def name(self) -> str:
        return self.entry.name

    def text(self, useful_h: float) -> str:
        """The entry of `recovery` that runs it as it is compared."""
        if self.how != FOUND:
            return dump_entry(self.entry)
        return PricedEntry(self.entry).entry_at(self.policy.interval_h, useful_h)


def entrants_of(
    loaded: LoadedScenario,
    experiment: Experiment,
    limit: Limit | None = None,
    *,
    only: Sequence[str] = (),
    available: bool = False,
    fixed: bool = False,
) -> tuple[list[Entrant], dict[str, str]]:
    """All that can run a job, or the `only` ones of them, and why others can't, by name.

    Unless intervals are fixed, how the job runs now (`today`, else the first entry) is compared as
    it is, and at its best interval. `available`: without what a job can't run today.
    """

    def entrant_of(entry: RecoverySection, how: str, *, is_today: bool = False) -> Entrant:
        return Entrant(entry, policy_of(entry, experiment), how, is_today)

    policies_of(loaded, experiment)  # says where an entry stands that can't run the job
    listed = list(loaded.scenario.recovery)
    first = next((entry for entry in listed if entry.name == TODAY), listed[0])
    entrants = [entrant_of(entry, LISTED, is_today=fixed and entry is first) for entry in listed]
    if not fixed:
        now = entrant_of(first.model_copy(update={"name": TODAY}), LISTED, is_today=True)
        entrants = [now, *(entrant for entrant in entrants if entrant.name != TODAY)]
        if first.name == TODAY and all(entrant.name != first.strategy for entrant in entrants):
            at_best = first.model_copy(update={"name": first.strategy})
            entrants.insert(1, entrant_of(at_best, LISTED))
    names, left_out = {entrant.name for entrant in entrants}, dict[str, str]()
    has_servers = any(role.name == EMB_PS for role in experiment.cluster.roles)
    others = SYSTEMS.keys() - {entry.strategy for entry in listed}
    for name in sorted(others, key=lambda name: (_rank(name), name)):
        searched = name in RELOADING and has_servers and limit is not None and not fixed
        fields = {"strategy": name} | ({"interval": NEVER} if searched else {})
        try:
            _require_able(name, names, has_servers=has_servers, searched=searched)
            entrants.append(entrant_of(RecoverySection.model_validate(fields), DEFAULT))
        except ParameterError as error:
            left_out[name] = str(error).removeprefix(name).lstrip(": ")
    if only:
        _require_known(only, {entrant.name for entrant in entrants}, left_out)
        left_out = {}
        asked_for = {*only, TODAY} if first.name in only else set(only)
        entrants = [entrant for entrant in entrants if entrant.name in asked_for]
    if available:
        runs = [
            entrant
            for entrant in entrants
            if entrant.is_today or SYSTEMS[entrant.entry.strategy].runs_as
        ]
        left_out |= {entrant.name: PAPER for entrant in entrants if entrant not in runs}
        left_out |= {name: PAPER for name in left_out if not SYSTEMS[name].runs_as}
        entrants = runs
    return sorted(entrants, key=lambda entrant: _rank(entrant.entry.strategy)), left_out


def _require_able(name: str, names: set[str], *, has_servers: bool, searched: bool) -> None:
    """Raise ParameterError for a strategy that, without options, can't run the job."""
    if name in names:
        raise ParameterError("another entry of the scenario has its name")
    if name not in STRATEGIES or name in WITHOUT_SHARDS:
        return
    if not has_servers:
        raise ParameterError(NO_SERVERS)
    if not searched and SYSTEMS[name].default("interval") in NEEDS_TARGET:
        raise ParameterError(NO_TARGET)


def _require_known(only: Sequence[str], comparable: set[str], left_out: Mapping[str, str]) -> None:
    for name in only:
        if name in left_out:
            raise ParameterError(f"--only: `{name}` can't run this job: {left_out[name]}")
        if name not in comparable:
            names = ", ".join([*sorted(comparable), *sorted(left_out)])
            raise ParameterError(f"--only: there is no `{name}`; there are: {names}")


def _rank(name: str) -> int:
    """The paper's strategies first, then the systems alike."""
    return (*STRATEGIES, name).index(name)
