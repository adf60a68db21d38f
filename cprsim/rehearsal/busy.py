"""Whether a machine was too busy for a run to say anything: a rule fixed before any comparison.

A run is not valid where its work drifted from its pace, where others took processor time that it
waited for (steal, as Linux counts it), or where a living process was taken for dead.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

MOST_DRIFT = 0.01  # of the useful time ...
LEAST_DRIFT_S = 0.1  # ... but for short runs so much
MOST_STEAL = 0.05  # of the machine's processor time
STAT = Path("/proc/stat")
STEAL_COLUMN = 7  # user nice system idle iowait irq softirq steal


@dataclass(frozen=True, slots=True)
class Load:
    """What kept a run from its pace."""

    drift_s: float  # wall time of work beyond what its pace gives it
    useful_s: float
    steal_fraction: float
    n_false_alarms: int
    others: float  # processes that wanted to run at the end, as a mean over the last minute

    @property
    def too_busy(self) -> str | None:
        """What made the run worth nothing, in a clause; None where it is valid."""
        most_s = max(LEAST_DRIFT_S, MOST_DRIFT * self.useful_s)
        if abs(self.drift_s) > most_s:
            return (
                f"its work took {self.drift_s:+.2f} s beyond its pace, and {most_s:.2f} s is the "
                f"most (load average {self.others:.1f})"
            )
        if self.steal_fraction > MOST_STEAL:
            return f"{100 * self.steal_fraction:.0f} % of the processor time went to other guests"
        if self.n_false_alarms:
            return f"{self.n_false_alarms} living processes sent no heartbeat in time"
        return None


@dataclass(frozen=True, slots=True)
class Ticks:
    """Processor time of the machine so far."""

    all: int
    stolen: int

    @classmethod
    def now(cls) -> Ticks:
        """As Linux counts; nothing where it does not."""
        try:
            first = STAT.read_text().splitlines()[0].split()[1:]
        except OSError:
            return cls(0, 0)
        counted = [int(word) for word in first[: STEAL_COLUMN + 1]]
        return cls(sum(counted), counted[STEAL_COLUMN] if len(counted) > STEAL_COLUMN else 0)

    def stolen_since(self, before: Ticks) -> float:
        """Share that went to other guests of the host."""
        return (self.stolen - before.stolen) / max(self.all - before.all, 1)


def load_of(drift_s: float, useful_s: float, before: Ticks, n_false_alarms: int) -> Load:
    """How it was since `before`."""
    steal = Ticks.now().stolen_since(before)
    return Load(drift_s, useful_s, steal, n_false_alarms, os.getloadavg()[0])
