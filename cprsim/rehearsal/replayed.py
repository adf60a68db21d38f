"""A real run beside the kernel's replay of its log: bit by bit, and by what processes counted."""

from __future__ import annotations

from dataclasses import dataclass

from cprsim.kernel.clicks.records import Clicks
from cprsim.kernel.replay import Course, replay
from cprsim.kernel.saving import Saver
from cprsim.kernel.training import Trainer
from cprsim.records import EventKind
from cprsim.rehearsal.material import Material
from cprsim.rehearsal.prediction import Run
from cprsim.rehearsal.setting import SECONDS
from cprsim.rehearsal.supervisor import Ran

CLOCK_FRACTION = 0.01  # by which two accounts of worked time may differ ...
CLOCK_S = 0.1  # ... and so much besides, per failure


@dataclass(frozen=True, slots=True)
class Replayed:
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


def replayed(ran: Ran, run: Run, material: Material, test: Clicks) -> Replayed:
    """Replay the real run's log on the kernel, and compare."""
    trainer = Trainer(material.shape, material.clicks, material.plan)
    trainer.initialise()
    saver = Saver(trainer, material.shards, ran.orders.sub_saves)
    useful_h = ran.orders.useful_s / SECONDS
    slots = range(ran.orders.n_servers)
    replay(run.log, useful_h, slots, Course(trainer), saver)
    auc_of_replay = trainer.evaluate(test).auc
    equal = _equal(ran, trainer)
    _adopt(ran, trainer)
    return Replayed(
        equal,
        trainer.evaluate(test).auc,
        auc_of_replay,
        ran.bytes_saved,
        saver.bytes_written,
        tuple(account_differences(ran, run, material)),
    )


def _equal(ran: Ran, trainer: Trainer) -> bool:
    state = ran.state
    pairs = (
        (state.table, trainer.model.table),
        (state.row_state, trainer.optimizer.row_state),
        (state.dense, trainer.model.dense),
        (state.dense_state, trainer.optimizer.dense_state),
    )
    return all(ours.tobytes() == theirs.tobytes() for ours, theirs in pairs)


def _adopt(ran: Ran, trainer: Trainer) -> None:
    trainer.model.table[:] = ran.state.table
    trainer.model.dense[:] = ran.state.dense


def account_differences(ran: Ran, run: Run, material: Material) -> list[str]:
    """Where the trainers' own counters say something else than the log, a line each.

    A trainer that was killed takes along what it has counted since its last heartbeat.
    """
    counted = [account for role, account in ran.accounts if role == "trainer" and account]
    n_killed = len([1 for role, _ in ran.accounts if role == "trainer"]) - 1
    per_s = material.n_samples / ran.orders.useful_s
    unheard_s = n_killed * ran.orders.speeds.heartbeat_s
    found = []
    worked_h = float(run.costs.useful_h[0] + run.costs.hours_of("lost")[0])
    trained = sum(account["samples"] for account in counted)
    expected = round(worked_h * SECONDS * per_s)
    most_unheard = (unheard_s * per_s + material.plan.batch) * (n_killed > 0)
    if not expected - 2 * most_unheard <= trained <= expected + most_unheard:
        found.append(f"trainers counted {trained:,.0f} samples, the log {expected:,}")
    worked_s = sum(account["worked_s"] for account in counted)
    log_s = (worked_h + float(run.costs.hours_of("degraded")[0])) * SECONDS
    n_stops = int((run.log.kind == EventKind.FAILED).sum()) + 1
    allowed_s = CLOCK_FRACTION * log_s + CLOCK_S * n_stops + 2 * unheard_s
    if n_killed == 0 and abs(worked_s - log_s) > allowed_s:
        found.append(f"trainers counted {worked_s:.2f} s of work, the log {log_s:.2f} s")
    return found
