"""What short runs without failures measure: the stall of a save, the activation of a spare.

Everything else in a prediction comes from the scenario or from the simulator.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import mean, median

from cprsim.errors import ParameterError, WorkerError
from cprsim.rehearsal.log import FactKind, RunFact
from cprsim.rehearsal.material import Material, image_bytes
from cprsim.rehearsal.orders import DueSave, Orders, SaveBehind
from cprsim.rehearsal.supervisor import FinishedRun

N_STALLING_SAVES = 3  # whole ones that stall the job ...
N_PAUSES = 4  # ... and so many as often behind it: the first ones touch memory that is new
N_SUB_SAVES = 8
WORK_S = 3.0  # of the calibrating run: so much work with the saves in it
PAUSING = SaveBehind(stall_s=0.0, behind_s=0.0)
TOO_BUSY = 3  # exit code: the machine is too busy to rehearse anything
LEAST_PACE = 3.0  # times an unpaced step: a step may come late by twice its length


@dataclass(frozen=True, slots=True)
class RunCalibration:
    """Times measured without failures."""

    stall_s: float  # of a whole save
    nominal_stall_s: float  # that the throttle alone would take
    activation_s: float  # of a warm spare
    step_s: float  # of a batch, unpaced
    pace_s: float  # that each batch is given
    pause_s: float = 0.0  # of a save behind the job, beside the copying of its content
    extra_s: dict[str, float] = field(default_factory=dict)  # of a sub-save, by strategy (`extra`)

    @property
    def slower(self) -> float:
        """Time of a throttled save over its nominal time."""
        return self.stall_s / self.nominal_stall_s

    @property
    def overhead_s(self) -> float:
        """Stall of each save beyond its bytes over the bandwidth [s]."""
        return max(0.0, self.stall_s - self.nominal_stall_s)


def calibrating(orders: Orders, material: Material) -> Orders:
    """A short run with whole saves and without failures."""
    positions = _positions(orders, material, N_STALLING_SAVES * N_PAUSES)
    stalling = [DueSave(at, i + 1) for i, at in enumerate(positions) if i % N_PAUSES == 0]
    pausing = [DueSave(at, i + 1, kind=0) for i, at in enumerate(positions)]
    return replace(
        orders,
        name="calibration",
        due=tuple(sorted([*stalling, *pausing], key=lambda save: (save.position, save.kind))),
        kills=(),
        sub_saves=None,
        behind=(PAUSING,),
        holders=(),
        until=positions[-1],
    )


def calibrating_sub_saves(orders: Orders, material: Material) -> Orders:
    """A short run with sub-saves and without failures; the orders have saves of a priority."""
    assert orders.sub_saves is not None
    n = orders.sub_saves.n_per_interval
    positions = _positions(orders, material, N_SUB_SAVES)
    due = (DueSave(at, i + 1, ends_interval=(i + 1) % n == 0) for i, at in enumerate(positions))
    return replace(orders, name="calibration", due=tuple(due), kills=(), until=positions[-1])


def _positions(orders: Orders, material: Material, n: int) -> list[int]:
    """Positions of the saves in a calibrating run."""
    n_samples, batch = material.n_samples, min(material.plan.batch, len(material.clicks))
    apart = max(min(1.0, WORK_S / orders.useful_s) * n_samples / n, float(batch))
    at = {material.on_grid((i + 1) * apart) for i in range(n) if (i + 1) * apart <= n_samples}
    return sorted(at - {0})


def extra(ran: FinishedRun, share_of_whole: float, stall_s: float) -> float:
    """Time of a sub-save besides its bytes [s]: choosing rows, waiting for all writers."""
    return max(0.0, mean(_stalls_s(ran.facts)) - min(share_of_whole, 1.0) * stall_s)


def calibrated(ran: FinishedRun, material: Material) -> RunCalibration:
    """Times measured by the calibrating run.

    Raises ParameterError where a step takes too long for the pace that the scenario asks for, and
    WorkerError where other users of the machine may be the cause.
    """
    calibration = RunCalibration(
        stall_s=median(_stalls_s(ran.facts)),
        nominal_stall_s=image_bytes(material) / ran.orders.speeds.save_rate,
        activation_s=median(ran.activation_s),
        step_s=ran.step_s,
        pace_s=ran.orders.useful_s * material.plan.batch / material.n_samples,
        pause_s=median(_took_s(ran.facts, FactKind.SAVE_RESUMED).values()),
    )
    if calibration.pace_s >= LEAST_PACE * calibration.step_s:
        return calibration
    step_ms, pace_ms = calibration.step_s * 1e3, calibration.pace_s * 1e3
    too_slow = (
        f"a training step takes {step_ms:.1f} ms of the {pace_ms:.1f} ms "
        f"that `job.useful` leaves for it; a rehearsal needs {LEAST_PACE:g} times a step"
    )
    waiting, n_cores = os.getloadavg()[0], os.cpu_count() or 1
    if waiting > n_cores:
        error = WorkerError(f"the machine is busy (load average {waiting:.1f}): {too_slow}")
        error.exit_code = TOO_BUSY
        raise error
    raise ParameterError(f"{too_slow}: train on fewer samples (`kernel.samples`), or longer")


def _stalls_s(facts: Sequence[RunFact]) -> list[float]:
    """Stall of each save [s]."""
    took_s, paused = _took_s(facts, FactKind.SAVE_COMMITTED), _took_s(facts, FactKind.SAVE_RESUMED)
    return [took_s[number] for number in took_s if number not in paused]


def _took_s(facts: Sequence[RunFact], until: FactKind) -> dict[int, float]:
    """Time from the start of each save to a fact of this kind [s], by number."""
    began = {fact.number: fact.at_s for fact in facts if fact.what is FactKind.SAVE_STARTED}
    ends = (fact for fact in facts if fact.what is until)
    return {fact.number: fact.at_s - began[fact.number] for fact in ends}
