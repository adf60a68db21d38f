"""Who can run a job: what the scenario lists, and every other strategy and system that there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cprsim.errors import ParameterError
from cprsim.experiments.assemble import Experiment, facts_of, policies_of, policy_of
from cprsim.recovery.paper import NEVER, STRATEGIES
from cprsim.recovery.policy import Policy
from cprsim.recovery.system import JobFacts
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario import LoadedScenario
from cprsim.scenario.failures import EMB_PS
from cprsim.scenario.recovery import NEEDS_TARGET, RecoverySection, known
from cprsim.selector.deciding import WAYS
from cprsim.selector.limit import Limit
from cprsim.staleness import StalenessCurve

WITHOUT_SHARDS = ("none", "full")  # strategies that need no embedding servers
NO_SERVERS = "no embedding servers whose shards could go back alone: `cluster.emb_ps`"
PAPER = "a paper only: nothing that is maintained runs it (`--available`)"
TODAY = "today"  # the name of how the job runs now
NO_TARGET = "needs `target_pls`, the portion of lost samples that you accept: list it with one"


@dataclass(frozen=True, slots=True)
class Entrant:
    """A strategy or a system that can run the job, and what it does as its entry says.

    The policy is None where the entry alone says no interval, and a limit decides it.
    """

    entry: RecoverySection
    policy: Policy | None
    is_listed: bool  # by the scenario
    keeps: bool = False  # its interval: it is how the job runs now

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def is_system(self) -> bool:
        return self.entry.strategy in SYSTEMS


@dataclass(frozen=True, slots=True)
class Lineup:
    """Everything that is compared, and within what.

    Parameters
    ----------
    experiment : the job; its systems are all that can run it, its policies none
    left_out : why not, by the name of what can't run the job
    limit : what may be lost of accuracy; None: the scenario says none
    fixed : whether each keeps the interval of its entry, or its default
    today : the name of how the job runs now; empty: it is not compared
    """

    experiment: Experiment
    entrants: tuple[Entrant, ...]
    left_out: Mapping[str, str]
    limit: Limit | None = None
    curve: StalenessCurve | None = None
    fixed: bool = False
    rack: int | None = None
    today: str = ""

    def unknown(self, name: str) -> tuple[str, ...]:
        """Options of a system that neither the scenario nor a source has a figure for."""
        entry = next(one.entry for one in self.entrants if one.name == name)
        system = SYSTEMS.get(entry.strategy)
        return () if system is None else system.unknown(entry.options or {})


def lineup_of(
    loaded: LoadedScenario,
    experiment: Experiment,
    limit: Limit | None = None,
    curve: StalenessCurve | None = None,
    *,
    fixed: bool = False,
    only: Sequence[str] = (),
    available: bool = False,
    today: bool = True,
) -> Lineup:
    """Who can run a job."""
    facts = facts_of(experiment)
    listed = zip(loaded.scenario.recovery, policies_of(loaded, experiment), strict=True)
    entrants = [Entrant(entry, policy, is_listed=True) for entry, policy in listed]
    now = first = next((one for one in entrants if one.name == TODAY), entrants[0]).name
    if today and not fixed:
        entrants, now = _with_today(entrants, first, experiment, facts), TODAY
    names = {entrant.name for entrant in entrants}
    left_out: dict[str, str] = {}
    has_servers = any(role.name == EMB_PS for role in experiment.cluster.roles)
    for name in _others(loaded):
        if name in names:
            left_out[name] = "another entry of the scenario has its name"
        elif name in WAYS and limit is not None and has_servers and not fixed:
            entrants.append(Entrant(_entry(name, interval=NEVER), None, is_listed=False))
        elif (why := _why_not(name, has_servers)) is not None:
            left_out[name] = why
        else:
            try:
                entry = _entry(name)
                policy = policy_of(entry, experiment, facts)
                entrants.append(Entrant(entry, policy, is_listed=False))
            except ParameterError as error:
                left_out[name] = str(error)
    if only:
        left_out = _named(only, {one.name for one in entrants}, left_out)
        entrants = [one for one in entrants if (first if one.keeps else one.name) in only]
    if available:
        runs = {one.name for one in entrants if known(one.entry.strategy).runs_as}
        papers = [one.name for one in entrants if one.name not in (now, *runs)]
        left_out |= dict.fromkeys(papers, PAPER)
        entrants = [one for one in entrants if one.name not in papers]
    systems = tuple(one.entry for one in entrants if one.is_system)
    experiment = replace(experiment, systems=systems)
    return Lineup(
        experiment, tuple(_in_order(entrants)), left_out, limit, curve, fixed,
        loaded.scenario.cluster.rack, now if any(one.name == now for one in entrants) else "",
    )  # fmt: skip


def _with_today(
    entrants: Sequence[Entrant], now: str, experiment: Experiment, facts: JobFacts
) -> list[Entrant]:
    """The entries, and before them how the job runs now, as it is.

    An entry that is called so is one of its strategy at the best interval besides.
    """
    its = next(one for one in entrants if one.name == now).entry
    strategy = its.model_copy(update={"name": its.strategy})
    kept = its.model_copy(update={"name": TODAY})
    others = [one for one in entrants if one.name != TODAY]
    if now == TODAY and all(one.name != its.strategy for one in others):
        others.insert(0, Entrant(strategy, policy_of(strategy, experiment, facts), is_listed=True))
    return [Entrant(kept, policy_of(kept, experiment, facts), is_listed=True, keeps=True), *others]


def _named(only: Sequence[str], there: set[str], left_out: Mapping[str, str]) -> dict[str, str]:
    """Nobody is left out of those that are named. Raises ParameterError for others."""
    for name in only:
        if name in left_out:
            raise ParameterError(f"--only: `{name}` can't run this job: {left_out[name]}")
        if name not in there:
            known = ", ".join([*sorted(there), *sorted(left_out)])
            raise ParameterError(f"--only: there is no `{name}`; there are: {known}")
    return {}


def _others(loaded: LoadedScenario) -> Iterator[str]:
    """The strategies and systems that the scenario does not list."""
    listed = {entry.strategy for entry in loaded.scenario.recovery}
    yield from (name for name in (*STRATEGIES, *sorted(SYSTEMS)) if name not in listed)


def _entry(strategy: str, **fields: str) -> RecoverySection:
    return RecoverySection.model_validate({"strategy": strategy, **fields})


def _why_not(name: str, has_servers: bool) -> str | None:
    """Why a strategy, as it is without options, is not compared; None: nothing is known."""
    if name in SYSTEMS or name in WITHOUT_SHARDS:
        return None
    if not has_servers:
        return NO_SERVERS
    return NO_TARGET if STRATEGIES[name].default_interval in NEEDS_TARGET else None


def _in_order(entrants: list[Entrant]) -> Iterator[Entrant]:
    """Full recovery first, then the paper's strategies, then the systems; each as it comes."""
    ranks = {name: rank for rank, name in enumerate(("full", "none", *STRATEGIES))}
    return iter(sorted(entrants, key=lambda one: ranks.get(one.entry.strategy, len(ranks))))
