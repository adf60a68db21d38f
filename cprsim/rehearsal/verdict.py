"""What a run is held to: its prediction, its replay, and the rule of when a machine was too busy.

- Predicted beside measured, part by part, by tolerances fixed here. A wrong model may have the
  right total: the parts are what is judged.
- The state that a run left beside the kernel's replay of its log, bit by bit, and what the
  processes counted themselves beside the log.
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

from cprsim.kernel.clicks.records import Clicks
from cprsim.kernel.playing import play
from cprsim.kernel.saving import Saver
from cprsim.kernel.schedule import Rewind, SaveEvent, SaveStage, of_log
from cprsim.kernel.training import ProxyTrainer
from cprsim.records import Activity, EventKind, EventLog
from cprsim.rehearsal.material import Material
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
CLOCK_FRACTION = 0.01  # by which two accounts of worked time may differ ...
CLOCK_S = 0.1  # ... and so much besides, each time that the job stops
STOPS = (EventKind.FAILED, EventKind.SAVE_STARTED, EventKind.SUB_SAVE_STARTED)


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
    auc: float  # of the real run
    auc_of_replay: float
    bytes_saved: int
    bytes_of_replay: int
    accounts: tuple[str, ...]  # in which the processes' own accounts differ from the log's

    @property
    def agrees(self) -> bool:
        """Whether state, bytes and accounts are the same."""
        return self.equal_bits and self.bytes_saved == self.bytes_of_replay and not self.accounts


def check_replay(ran: FinishedRun, run: FoldedRun, material: Material, test: Clicks) -> ReplayCheck:
    """Replay the real run's log on the kernel, and compare."""
    trainer = material.trainer()
    useful_h = ran.orders.useful_s / SECONDS
    if ran.orders.behind:
        bytes_of_replay = replay_going_back(run.log, useful_h, trainer)
    else:
        saver = Saver(trainer, material.shards, ran.orders.sub_saves)
        servers, trainers = (
            range(ran.orders.n_servers),
            range(ran.orders.n_servers, ran.orders.n_slots),
        )
        play(trainer, saver, of_log(run.log, useful_h, servers, trainers))
        bytes_of_replay = saver.bytes_written
    auc_of_replay = trainer.evaluate(test).auc
    equal = _equal(ran, trainer)
    _adopt(ran, trainer)
    return ReplayCheck(
        equal,
        trainer.evaluate(test).auc,
        auc_of_replay,
        ran.bytes_saved,
        bytes_of_replay,
        tuple(account_differences(ran, run, material)),
    )


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


def _equal(ran: FinishedRun, trainer: ProxyTrainer) -> bool:
    state = ran.state
    pairs = (
        (state.table, trainer.model.table),
        (state.row_state, trainer.optimizer.row_state),
        (state.dense, trainer.model.dense),
        (state.dense_state, trainer.optimizer.dense_state),
    )
    return all(ours.tobytes() == theirs.tobytes() for ours, theirs in pairs)


def _adopt(ran: FinishedRun, trainer: ProxyTrainer) -> None:
    trainer.model.table[:] = ran.state.table
    trainer.model.dense[:] = ran.state.dense


def account_differences(ran: FinishedRun, run: FoldedRun, material: Material) -> list[str]:
    """Where the trainers' own counters say something else than the log, a line each.

    A trainer that was killed takes along what it has counted since its last heartbeat.
    """
    counted = [account for role, account in ran.accounts if role == "trainer" and account]
    n_trainers = ran.orders.n_trainers
    n_killed = len([1 for role, _ in ran.accounts if role == "trainer"]) - n_trainers
    per_s = material.n_samples / ran.orders.useful_s
    unheard_s = n_killed * ran.orders.speeds.heartbeat_s
    found = []
    worked_h = float(run.costs.useful_h[0] + run.costs.hours_of("lost")[0])
    trained = sum(account["samples"] for account in counted)
    expected = round(worked_h * SECONDS * per_s)
    most_unheard = (unheard_s * per_s + material.plan.batch) * (n_killed > 0)
    if not expected - 2 * most_unheard <= trained <= expected + most_unheard:
        found.append(f"trainers counted {trained:,.0f} samples, the log {expected:,}")
    worked_s = sum(account["worked_s"] for account in counted) / n_trainers
    log_s = (worked_h + float(run.costs.hours_of("degraded")[0])) * SECONDS
    n_stops = int(np.isin(run.log.kind, STOPS).sum()) + 1
    allowed_s = CLOCK_FRACTION * log_s + CLOCK_S * n_stops + 2 * unheard_s
    if n_killed == 0 and abs(worked_s - log_s) > allowed_s:
        found.append(f"trainers counted {worked_s:.2f} s of work, the log {log_s:.2f} s")
    return found
