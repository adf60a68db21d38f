"""What a run is held to: its prediction, its replay, and the rule of when a machine was too busy.

- Predicted beside measured, part by part, by tolerances fixed here. A wrong model may have the
  right total: the parts are what is judged.
- The state that a run left beside the kernel's replay of its log, bit by bit.
- A run is not valid where its work drifted from its pace, where other guests of the host took
  processor time (steal, as Linux counts it), or where a living process was taken for dead.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np

from cprsim.kernel.playing import play
from cprsim.kernel.saving import Saver
from cprsim.kernel.schedule import Rewind, SaveEvent, SaveStage, of_log
from cprsim.kernel.training import ProxyTrainer
from cprsim.records import Activity, EventKind, EventLog
from cprsim.rehearsal.material import Material, rows_of
from cprsim.rehearsal.orders import SECONDS
from cprsim.rehearsal.prediction import FoldedRun
from cprsim.rehearsal.supervisor import FinishedRun

OVERHEAD_FRACTION = 0.05  # of the predicted
PART_FRACTION = 0.10
LEAST_S = 0.2  # a smaller difference in seconds is none
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
        """Measured beside predicted; None where nothing was predicted."""
        return self.measured / self.predicted - 1.0 if self.predicted else None


@dataclass(frozen=True, slots=True)
class Silence:
    """How sharply detection can be predicted: deaths fall anywhere between two heartbeats."""

    heartbeat_s: float
    n_alone: int  # failures of one process, with none before it unnoticed
    n_others: int  # the job is in `detect` until the last of several is noticed

    @property
    def allowed_s(self) -> float:
        """By how much the hours of all these detections may differ from their mean."""
        n = self.n_alone + self.n_others
        spread_s = SIGMAS * self.heartbeat_s * sqrt(n / 12)
        return spread_s + LATE_S * n + self.heartbeat_s / 2 * self.n_others


def silence_in(log: EventLog, heartbeat_s: float) -> Silence:
    """The failures of a log, as detection sees them."""
    struck = np.flatnonzero(log.kind == EventKind.FAILED)
    at_h, n_alone = log.at_h[struck], 0
    for when_h in at_h:
        before = log.activity[np.searchsorted(log.at_h, when_h) - 1]
        n_alone += (at_h == when_h).sum() == 1 and before != Activity.DETECT
    return Silence(heartbeat_s, int(n_alone), len(np.unique(at_h)) - int(n_alone))


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """One run beside its prediction."""

    lines: tuple[ComparedQuantity, ...]
    silence: Silence | None = None  # None: detection is judged like any other part

    @property
    def wrong(self) -> tuple[str, ...]:
        """Names of what is off."""
        return tuple(line.name for line in self.lines if line.off)


def judge(predicted: FoldedRun, measured: FoldedRun, heartbeat_s: float | None = None) -> JudgedRun:
    """One run beside its prediction; its heartbeats make detection be judged sharply."""
    silence = None if heartbeat_s is None else silence_in(measured.log, heartbeat_s)
    return JudgedRun(compared(quantities(predicted), quantities(measured)), silence)


def quantities(run: FoldedRun) -> dict[str, float]:
    """What a run is judged by: seconds of each part and of all overhead, and PLS."""
    parts = {part: _seconds(run, part) for part in run.costs.parts if part not in UNJUDGED}
    return parts | {OVERHEAD: overhead_s(run), PLS: run.pls}


def compared(
    predicted: Mapping[str, float], measured: Mapping[str, float]
) -> tuple[ComparedQuantity, ...]:
    """Quantities beside each other; those that neither has are left out."""
    return tuple(
        ComparedQuantity(name, ours, theirs, _quantity_is_off(name, ours, theirs))
        for name, theirs in measured.items()
        if (ours := predicted.get(name, 0.0)) or theirs or name in (OVERHEAD, PLS)
    )


def _quantity_is_off(name: str, predicted: float, measured: float) -> bool:
    if name == PLS:
        return abs(predicted - measured) > PLS_ABSOLUTE
    fraction = OVERHEAD_FRACTION if name == OVERHEAD else PART_FRACTION
    return _is_off(predicted, measured, fraction)


def mean_of(judged: Sequence[JudgedRun]) -> JudgedRun:
    """Means over several runs of a strategy; a quantity is off by the same tolerances.

    The overhead is off besides where fewer than 95 % of the runs are within, and detection where
    it differs by more than heartbeats can explain.
    """
    silence = _all_silence(judged)
    names = list(dict.fromkeys(line.name for one in judged for line in one.lines))
    lines = []
    for name in names:
        found = [next((ln for ln in one.lines if ln.name == name), None) for one in judged]
        ours = float(np.mean([0.0 if line is None else line.predicted for line in found]))
        theirs = float(np.mean([0.0 if line is None else line.measured for line in found]))
        off = _mean_is_off(name, ours, theirs, found)
        if name == DETECT and silence is not None:
            off |= abs(theirs - ours) * len(judged) > silence.allowed_s
        lines.append(ComparedQuantity(name, ours, theirs, off))
    return JudgedRun(tuple(lines), silence)


def _all_silence(judged: Sequence[JudgedRun]) -> Silence | None:
    known = [one.silence for one in judged if one.silence is not None]
    if not known:
        return None
    n_alone, n_others = sum(one.n_alone for one in known), sum(one.n_others for one in known)
    return Silence(known[0].heartbeat_s, n_alone, n_others)


def _mean_is_off(
    name: str, ours: float, theirs: float, found: Sequence[ComparedQuantity | None]
) -> bool:
    if name == PLS:
        return any(line is not None and line.off for line in found)
    if name != OVERHEAD:
        return _is_off(ours, theirs, PART_FRACTION)
    n_within = sum(line is None or not line.off for line in found)
    return n_within < SHARE_WITHIN * len(found) or _is_off(ours, theirs, OVERHEAD_FRACTION)


def _is_off(predicted_s: float, measured_s: float, fraction: float) -> bool:
    return abs(measured_s - predicted_s) > max(LEAST_S, fraction * predicted_s)


def _seconds(run: FoldedRun, part: str) -> float:
    return float(run.costs.hours_of(part)[0]) * SECONDS


def overhead_s(run: FoldedRun) -> float:
    """Wall time beyond the useful work, without what the pace alone took."""
    costs = run.costs
    return float(costs.wall_h[0] - costs.useful_h[0]) * SECONDS - _seconds(run, "degraded")


# --------------------------------------------------------------------------- a busy machine


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """What may have kept a run from its pace."""

    drift_s: float  # wall time of work beyond what its pace gives it
    useful_s: float
    steal_fraction: float
    n_false_alarms: int
    others: float  # processes that wanted to run at the end, as a mean over the last minute

    @property
    def too_busy(self) -> str | None:
        """Why the run is not valid, in a clause; None where it is."""
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
    """Processor time of the machine so far, in clock ticks."""

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


def load_of(drift_s: float, useful_s: float, before: Ticks, n_false_alarms: int) -> MachineLoad:
    """How it was since `before`."""
    steal = Ticks.now().stolen_since(before)
    return MachineLoad(drift_s, useful_s, steal, n_false_alarms, os.getloadavg()[0])


# --------------------------------------------------------------------------- the replay


@dataclass(frozen=True, slots=True)
class ReplayCheck:
    """What a run left beside what the kernel makes of its log."""

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
    useful_h, slots = orders.useful_s / SECONDS, range(orders.n_slots)
    servers, trainers = slots[: orders.n_servers], slots[orders.n_servers :]
    if orders.behind:
        n_bytes = replay_going_back(log, useful_h, trainer)
    else:
        saver = Saver(trainer, material.shards, orders.sub_saves)
        play(trainer, saver, of_log(log, useful_h, servers, trainers))
        n_bytes = saver.bytes_written
    table, row_state = trainer.model.table, trainer.optimizer.row_state
    of_rows = [rows_of(material.shards, server) for server in servers]
    expected = [(table[rows], row_state[rows] if len(row_state) else row_state) for rows in of_rows]
    expected += [(trainer.model.dense, trainer.optimizer.dense_state)] * orders.n_trainers
    equal = all(
        ours[: len(theirs)].tobytes() == theirs.tobytes()
        for pair in zip(ran.states, expected, strict=True)
        for ours, theirs in zip(*pair, strict=True)
    )
    return ReplayCheck(equal, ran.bytes_saved, n_bytes)


def replay_going_back(log: EventLog, useful_h: float, trainer: ProxyTrainer) -> int:
    """Train as the log says of a job whose saves overlap and that goes back as a whole.

    Returns the bytes that its saves wrote.
    """
    kept = {0: trainer.state()}
    n_bytes = 0
    for event in of_log(log, useful_h, range(0), range(0)):
        at = trainer.on_grid(event.at * trainer.n_samples)
        if isinstance(event, Rewind):
            trainer.restore(kept[at])
            continue
        trainer.run(max(at, trainer.position))
        if isinstance(event, SaveEvent) and event.stage is SaveStage.STARTS:
            kept[at] = trainer.state()
        elif isinstance(event, SaveEvent) and event.stage is SaveStage.COMMITS:
            weights = trainer.weights
            n_bytes += weights.bytes_of(slice(0, len(trainer.changed))) + weights.dense_bytes
    return n_bytes
