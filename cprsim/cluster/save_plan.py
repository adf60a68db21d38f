"""When a policy's saves are due, and what share of a whole save each of them is."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from math import floor, inf

from cprsim.records import RecoveryPolicy, SubSaves

ROUNDING = 1e-9  # how far from a whole number of intervals a job may be and still count as one


@dataclass(frozen=True, slots=True)
class SavePlan:
    """The saves of a job: due at the whole multiples of an interval of progress.

    An interval as long as the job or longer means no save; a save at the very end counts. Those of
    a priority strategy are its sub-saves, of which the last of an interval ends it: it is whole.
    """

    due_h: list[float]  # of progress; the last is infinite: no more
    whole: list[bool]  # whether the save that is due then ends an interval
    fraction: float = 1.0  # of a whole save, that each of these costs
    extra_h: float = 0.0  # that each stalls the job on top

    @classmethod
    def of(cls, policy: RecoveryPolicy, useful_h: float) -> SavePlan:
        """The saves of a policy in a job of `useful_h` hours."""
        parts = policy.sub_saves or SubSaves("none", fraction=1.0)
        interval_h = parts.fraction * policy.save_interval_h
        never = interval_h >= useful_h * (1.0 - ROUNDING)
        n_saves = 0 if never else floor(useful_h / interval_h + ROUNDING)
        due_h = [min(n * interval_h, useful_h) for n in range(1, n_saves + 1)]
        whole = [n % parts.n_per_interval == 0 for n in range(1, n_saves + 1)]
        return cls([*due_h, inf], [*whole, True], parts.fraction, parts.extra_h)

    def due_after(self, progress_h: float) -> tuple[float, bool]:
        """At which progress [h] the next save beyond `progress_h` is due, and if it is whole."""
        number = bisect_right(self.due_h, progress_h * (1.0 + ROUNDING))
        return self.due_h[number], self.whole[number]
