"""Judgement of a run: its prediction, its replay, and the rule for a machine that was too busy.

- Predicted and measured times are compared part by part, by tolerances fixed here. A wrong model
  may have the right total: the parts are judged.
- The state left by a run is compared with the kernel's replay of its log, bit by bit.
- A run is not valid where its work drifted from its pace, where other guests of the host took
  processor time (steal, as Linux counts it), or where a living process was taken for dead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from pathlib import Path

import numpy as np

from cprsim.job.records import S_PER_H, Activity, EventKind, EventLog
from cprsim.rehearsal.material import Material, rows_of
from cprsim.rehearsal.prediction import FoldedRun
from cprsim.rehearsal.supervisor import FinishedRun
from cprsim.training.kernel.playing import play
from cprsim.training.kernel.saving import Saver
from cprsim.training.kernel.schedule import of_log

OVERHEAD_FRACTION = 0.05  # of the predicted
PART_FRACTION = 0.10
LEAST_DIFFERENCE_S = 0.2  # a smaller difference in seconds is none
PLS_ABSOLUTE = 0.01
SHARE_WITHIN = 0.95  # of the runs of a strategy, their overhead
OVERHEAD, PLS = "overhead", "PLS"
DETECT = "detect"
LATE_S = 0.01  # that a silence is noticed late, per failure
SIGMAS = 3.0  # of the mean over deaths that fall anywhere between two heartbeats
UNJUDGED = ("degraded",)  # of pacing, which `MachineLoad` judges
MOST_DRIFT = 0.01  # of the useful time ...
LEAST_DRIFT_S = 0.1  # ... but for short runs so much
MOST_STEAL = 0.05  # of the machine's processor time
STAT = Path("/proc/stat")
STEAL_COLUMN = 7  # user nice system idle iowait irq softirq steal


@dataclass(frozen=True, slots=True)
class ComparedQuantity:
    """One quantity of a run or of several: seconds, or PLS."""

    name: str
    predicted: float
    measured: float
    off: bool

    @property
    def error_fraction(self) -> float | None:
        """Relative error of the prediction; None where nothing was predicted."""
        return self.measured / self.predicted - 1.0 if self.predicted else None


def quantities(run: FoldedRun) -> dict[str, float]:
    """Judged quantities of a run: seconds of each part and of all overhead, and PLS."""
    parts = {part: _seconds(run, part) for part in run.costs.parts if part not in UNJUDGED}
    return parts | {OVERHEAD: overhead_s(run), PLS: run.pls}


def compared(
    predicted: Mapping[str, float], measured: Mapping[str, float]
) -> list[ComparedQuantity]:
    """Predicted and measured quantities of a run in pairs, without those that are 0 in both."""
    return [
        ComparedQuantity(name, expected, seconds, _is_off(name, expected, seconds))
        for name, seconds in measured.items()
        if (expected := predicted.get(name, 0.0)) or seconds or name in (OVERHEAD, PLS)
    ]


def _is_off(name: str, predicted: float, measured: float) -> bool:
    if name == PLS:
        return abs(predicted - measured) > PLS_ABSOLUTE
    fraction = OVERHEAD_FRACTION if name == OVERHEAD else PART_FRACTION
    return abs(measured - predicted) > max(LEAST_DIFFERENCE_S, fraction * predicted)


def mean_of(
    runs: Sequence[Sequence[ComparedQuantity]], detection_within_s: float = inf
) -> list[ComparedQuantity]:
    """Means over several runs of a strategy; a quantity is off by the same tolerances.

    PLS is off where it is in any run, the overhead besides where fewer than 95 % of the runs are
    within, and detection where its sum differs by more than heartbeats can explain.
    """
    lines = []
    for name in dict.fromkeys(line.name for run in runs for line in run):
        none = ComparedQuantity(name, 0.0, 0.0, off=False)
        of_name = [next((line for line in run if line.name == name), none) for run in runs]
        mean_predicted = float(np.mean([line.predicted for line in of_name]))
        mean_measured = float(np.mean([line.measured for line in of_name]))
        n_off = sum(line.off for line in of_name)
        off = n_off > 0 if name == PLS else _is_off(name, mean_predicted, mean_measured)
        off |= name == OVERHEAD and len(runs) - n_off < SHARE_WITHIN * len(runs)
        off |= (
            name == DETECT and abs(mean_measured - mean_predicted) * len(runs) > detection_within_s
        )
        lines.append(ComparedQuantity(name, mean_predicted, mean_measured, off))
    return lines


def detection_within_s(logs: Iterable[EventLog], heartbeat_s: float) -> float:
    """By how much the hours in `detect` of these logs may differ from their mean.

    Deaths fall anywhere between two heartbeats. Where several processes die together, or one with
    others before it unnoticed, the job is in `detect` until the last of them is noticed.
    """
    n = n_alone = 0
    for log in logs:
        at_h = log.at_h[log.kind == EventKind.FAILED]
        for when_h in np.unique(at_h):
            before = log.activity[np.searchsorted(log.at_h, when_h) - 1]
            n_alone += (at_h == when_h).sum() == 1 and before != Activity.DETECT
            n += 1
    return SIGMAS * heartbeat_s * sqrt(n / 12) + LATE_S * n + heartbeat_s / 2 * (n - int(n_alone))


def _seconds(run: FoldedRun, part: str) -> float:
    return float(run.costs.hours_of(part)[0]) * S_PER_H


def overhead_s(run: FoldedRun) -> float:
    """Wall time beyond the useful work, without the time that the pace alone took."""
    costs = run.costs
    return float(costs.wall_h[0] - costs.useful_h[0]) * S_PER_H - _seconds(run, "degraded")


# --------------------------------------------------------------------------- a busy machine


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """Load of the machine that may have delayed a run."""

    drift_s: float  # wall time of work beyond what its pace gives it
    useful_s: float
    steal_fraction: float
    n_false_alarms: int
    others: float  # processes that wanted to run at the end, as a mean over the last minute

    @property
    def too_busy(self) -> str | None:
        """Why the run is invalid, in a clause; None for a valid run."""
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


def ticks() -> tuple[int, int]:
    """Processor time of the machine so far, in all and stolen, in clock ticks as Linux counts."""
    try:
        first = STAT.read_text().splitlines()[0].split()[1:]
    except OSError:
        return 0, 0
    counted = [int(word) for word in first[: STEAL_COLUMN + 1]]
    return sum(counted), counted[STEAL_COLUMN] if len(counted) > STEAL_COLUMN else 0


def steal_fraction(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Share of the processor time that went to other guests of the host."""
    return (after[1] - before[1]) / max(after[0] - before[0], 1)


# --------------------------------------------------------------------------- the replay


@dataclass(frozen=True, slots=True)
class ReplayCheck:
    """State and bytes of a run compared with the kernel's replay of its log."""

    equal_bits: bool
    bytes_saved: int
    bytes_of_replay: int

    @property
    def agrees(self) -> bool:
        """Whether state and bytes are the same."""
        return self.equal_bits and self.bytes_saved == self.bytes_of_replay


def check_replay(ran: FinishedRun, log: EventLog, material: Material) -> ReplayCheck:
    """Replay the real run's log on the kernel, and compare."""
    trainer, orders = material.trainer(), ran.orders
    useful_h, slots = orders.useful_s / S_PER_H, range(orders.n_slots)
    servers, trainers = slots[: orders.n_servers], slots[orders.n_servers :]
    # saves behind the job overlap: all are whole
    saver = None if orders.behind else Saver(trainer, material.shards, orders.sub_saves)
    schedule = of_log(log, useful_h, servers, trainers)
    play(trainer, saver, schedule)
    n_commits = sum(event.kind is EventKind.SAVE_COMMITTED for event in schedule)
    whole = trainer.weights.bytes_of(slice(0, len(trainer.changed))) + trainer.weights.dense_bytes
    n_bytes = n_commits * whole if saver is None else saver.bytes_written
    expected = [trainer.weights.read(rows_of(material.shards, server)) for server in servers]
    expected += [(trainer.model.dense, trainer.optimizer.dense_state)] * orders.n_trainers
    equal = all(
        ours[: len(theirs)].tobytes() == theirs.tobytes()
        for pair in zip(ran.states, expected, strict=True)
        for ours, theirs in zip(*pair, strict=True)
    )
    return ReplayCheck(equal, ran.bytes_saved, n_bytes)
