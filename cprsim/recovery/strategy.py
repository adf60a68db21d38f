"""The interface of a recovery strategy, and the interval rules that several of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

from cprsim.errors import ParameterError
from cprsim.records import ExpectedFailures, RecoveryPolicy, SubSaves
from cprsim.recovery.intervals import cpr_h, daly_h, young_h

MOST_SAVES = 1_000_000  # in a job


@dataclass(frozen=True, slots=True)
class Planning:
    """What a strategy may know before the job runs: mean costs and expected failures.

    A failure that strikes no embedding server loads nothing under partial recovery.
    """

    useful_h: float
    n_emb_ps: int
    save_cost_h: float  # the stall of one whole save
    restart_h: float  # detection and rescheduling
    full_load_h: float  # by all embedding servers at once
    partial_load_h: float  # by those that fail together
    failures: ExpectedFailures
    beside_fraction: float = 0.0  # of detection and rescheduling, that partial recovery works on
    target_pls: float | None = None
    interval: float | str | None = None  # hours, or a rule's name; None: the strategy's default
    sub_saves: SubSaves | None = None  # settings of priority saving; None: the paper's

    def with_options(
        self,
        interval: float | str | None,
        target_pls: float | None,
        sub_saves: SubSaves | None = None,
    ) -> Planning:
        """The same, with what the scenario says of one strategy."""
        return replace(self, interval=interval, target_pls=target_pls, sub_saves=sub_saves)

    def with_interval(self, default: str) -> Planning:
        """The same, with the strategy's default where the user named no interval."""
        return self if self.interval is not None else replace(self, interval=default)

    @property
    def full_recovery_h(self) -> float:
        """What a failure costs full recovery beside the work that is lost [h]."""
        return self.restart_h + self.full_load_h

    @property
    def partial_recovery_h(self) -> float:
        """What a failure of any role costs partial recovery on average [h]."""
        restart_h = self.restart_h * (1.0 - self.beside_fraction)
        if self.failures.mtbf_shard_h == inf:
            return restart_h
        share_that_loads = self.failures.mtbf_h / self.failures.mtbf_shard_h
        return restart_h + share_that_loads * self.partial_load_h

    @property
    def partial_save_cost_h(self) -> float:
        """Stall of all saves of one interval [h]: a priority strategy's sub-saves together."""
        if self.sub_saves is None:
            return self.save_cost_h
        parts = self.sub_saves
        return parts.bytes_share * self.save_cost_h + parts.n_per_interval * parts.extra_h

    @property
    def leaves_nothing_to_decide(self) -> bool:
        """Whether the interval is settled and no target PLS is named: nothing follows from one."""
        settled = isinstance(self.interval, float) or self.interval == NEVER
        return settled and self.target_pls is None

    def full_interval_h(self) -> float:
        """Young's interval: what full recovery at its best would use."""
        return young_h(self.save_cost_h, self.failures.mtbf_h)

    def require_target_pls(self) -> float:
        """The target, or ParameterError where the scenario names none."""
        if self.target_pls is None:
            raise ParameterError("needs a `target_pls`, the portion of lost samples you accept")
        return self.target_pls

    def partial_interval_h(self, divided: bool) -> float:
        """CPR's interval for the target PLS; infinite where no failure can lose a shard."""
        if self.failures.n_shards_together == 0:
            return float("inf") if self.require_target_pls() > 0 else 0.0
        together = self.failures.n_shards_together if divided else 1.0
        target_pls = self.require_target_pls()
        return cpr_h(target_pls, self.n_emb_ps, self.failures.mtbf_shard_h, together)


NEVER = "never"  # the rule of a strategy that saves nothing
INTERVAL_RULES: dict[str, Callable[[Planning], float]] = {
    "young": Planning.full_interval_h,
    "daly": lambda job: daly_h(job.save_cost_h, job.failures.mtbf_h),
    "cpr": lambda job: job.partial_interval_h(divided=True),
    "cpr-undivided": lambda job: job.partial_interval_h(divided=False),
    NEVER: lambda job: inf,
}


def save_interval(job: Planning) -> tuple[float, str]:
    """Hours between saves, and in words how they came about.

    Raises ParameterError where the rule gives no positive interval (a free save, a target of 0),
    or one so short that the job would do little else than save.
    """
    interval_h, rule = _interval(job)
    require_sense(interval_h, rule, job)
    return interval_h, rule


def require_sense(interval_h: float, rule: str, job: Planning) -> None:
    """Raise ParameterError for an interval at which the job would do little else than save."""
    n_saves = job.useful_h / interval_h if interval_h > 0 else inf
    if job.sub_saves is not None:
        n_saves *= job.sub_saves.n_per_interval
    if n_saves > MOST_SAVES:
        raise ParameterError(
            f"the interval rule `{rule}` gives {interval_h:.3g} h between saves, {n_saves:.3g} "
            f"saves in {job.useful_h:g} h; at most {MOST_SAVES:,} make sense: "
            "name the interval as a time"
        )


def _interval(job: Planning) -> tuple[float, str]:
    if isinstance(job.interval, str):
        return INTERVAL_RULES[job.interval](job), job.interval
    if job.interval is None:
        raise ParameterError("needs an `interval`")
    return job.interval, "given"


@dataclass(frozen=True, slots=True)
class Strategy:
    """One recovery system, as the scenario names it."""

    name: str
    summary: str  # one line for `cprsim schema` and the docs
    default_interval: str | None  # None: it never saves
    takes_target_pls: bool
    plan: Callable[[str, Planning], RecoveryPolicy]  # (name in the scenario, what is known)
    takes_sub_saves: bool = False
    runs_as: str = ""  # what a job can run today; empty: nothing that is maintained
