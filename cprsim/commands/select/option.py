"""Compared options: entries of `recovery`, strategies and systems alike, at any interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from cprsim.errors import ParameterError
from cprsim.job.losses import WHOLE
from cprsim.job.policy import Policy
from cprsim.recovery.paper import NEVER, STRATEGIES
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario.assemble import Experiment, policy_of
from cprsim.scenario.failures import EMB_PS
from cprsim.scenario.recovery import RecoverySection, SubSavesSection
from cprsim.scenario.schema import dump_entry

FULL = "full"
SIMPLE_FIRST = ("mfu", "ssu", "momentum", "scar", "round-robin")
"""Trackers, in order: row counters, sampled rows, optimizer state, second copy; the control."""
RELOADING = (WHOLE, *(f"cpr-{tracker}" for tracker in SIMPLE_FIRST))
"""The strategies that reload struck servers, the simplest first."""


@dataclass(frozen=True, slots=True)
class PricedEntry:
    """An entry of `recovery`; its interval is chosen."""

    entry: RecoverySection

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def from_cpr_paper(self) -> bool:
        """Whether it is one of the paper's; else it is a recovery system."""
        return self.entry.strategy in STRATEGIES

    @property
    def reloads(self) -> bool:
        """Whether fewer saves always cost less, and lose more."""
        return self.entry.strategy in RELOADING

    @property
    def interval(self) -> str | None:
        """The option that sets its interval; None: no interval to choose."""
        return SYSTEMS[self.entry.strategy].interval

    @property
    def part(self) -> float:
        """A write's share of a whole save, and of the interval between whole saves."""
        saving = self.entry.priority_saving
        return 1.0 if saving is None else saving.fraction

    @property
    def n_fewest(self) -> int:
        """The fewest writes that it may have."""
        saving = self.entry.priority_saving
        return 0 if saving is None else saving.n_per_interval

    @property
    def not_counted(self) -> str:
        """Its losses that no number includes; empty if none."""
        return SYSTEMS[self.entry.strategy].not_counted

    def policy_at(self, experiment: Experiment, interval_h: float | None = None) -> Policy:
        """Its policy in a job, at an interval; None: at its entry's."""
        return policy_of(self.entry, experiment, interval_h)

    def loses(self, experiment: Experiment) -> bool:
        """Whether it leaves stale shards."""
        return self.policy_at(experiment, experiment.useful_h).leaves_stale

    def entry_at(self, interval_h: float, useful_h: float) -> str:
        """The entry of a scenario that runs it at an interval."""
        at = NEVER if interval_h == inf else typed(interval_h)
        if self.from_cpr_paper:
            return dump_entry(self.entry, interval=at, target_pls=None, assumed=None)
        if self.interval is None:
            return dump_entry(self.entry)
        at = typed(min(interval_h, useful_h))  # never: an interval as long as the job
        return dump_entry(self.entry, options={**(self.entry.options or {}), self.interval: at})


def typed(interval_h: float) -> str:
    """An interval with all the digits that it has, so that it can be typed."""
    per_hour, unit = (1.0, "h") if interval_h >= 1 else (60.0, "min")
    if interval_h < 1 / 60:
        per_hour, unit = 3600.0, "s"
    return f"{interval_h * per_hour:.10g} {unit}"


def strategy(name: str, sub_saves: SubSavesSection | None = None) -> PricedEntry:
    """One of the paper's strategies."""
    entry = RecoverySection.model_validate({"strategy": name, "interval": NEVER})
    return PricedEntry(entry.model_copy(update={"sub_saves": sub_saves}))


def options_of(
    experiment: Experiment, strategies: tuple[str, ...] = RELOADING
) -> dict[str, PricedEntry]:
    """Options to compare with full recovery, by name; reloading needs embedding servers.

    Raises ParameterError where a system has the name of a strategy.
    """
    listed = experiment.scenario.recovery
    cut = {
        entry.strategy: entry.sub_saves for entry in reversed(listed) if entry.sub_saves is not None
    }
    has_servers = any(role.name == EMB_PS for role in experiment.cluster.roles)
    options = {name: strategy(name, cut.get(name)) for name in strategies if has_servers}
    for entry in listed:
        if entry.strategy in STRATEGIES:
            continue
        if entry.name == FULL or entry.name in options:
            raise ParameterError(
                f"`{entry.name}` is compared as the strategy of that name: give the recovery "
                f"system `{entry.strategy}` another `name`"
            )
        options[entry.name] = PricedEntry(entry)
    return options
