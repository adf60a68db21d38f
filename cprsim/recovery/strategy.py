"""The interface of a recovery strategy, and the interval rules that several of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cprsim.errors import ParameterError
from cprsim.intervals import cpr_h, daly_h, young_h
from cprsim.records import ExpectedFailures, RecoveryPolicy, SubSaves


@dataclass(frozen=True, slots=True)
class Planning:
    """What a strategy may know before the job runs: mean costs and expected failures.

    `full_recovery_h` and `partial_recovery_h` are detection, rescheduling and loading by everybody
    and by the servers that fail together.
    """

    useful_h: float
    n_emb_ps: int
    save_cost_h: float  # the stall of one save
    full_recovery_h: float
    partial_recovery_h: float
    failures: ExpectedFailures
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


INTERVAL_RULES: dict[str, Callable[[Planning], float]] = {
    "young": Planning.full_interval_h,
    "daly": lambda job: daly_h(job.save_cost_h, job.failures.mtbf_h),
    "cpr": lambda job: job.partial_interval_h(divided=True),
    "cpr-undivided": lambda job: job.partial_interval_h(divided=False),
}


def save_interval(job: Planning) -> tuple[float, str]:
    """Hours between saves, and in words how they came about.

    Raises ParameterError where the rule gives no positive interval (a free save, a target of 0).
    """
    if isinstance(job.interval, str):
        interval_h = INTERVAL_RULES[job.interval](job)
        if not interval_h > 0:
            raise ParameterError(
                f"the interval rule `{job.interval}` gives {interval_h:g} h between saves; "
                "name the interval as a time"
            )
        return interval_h, job.interval
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
