"""A whole rehearsal: calibrate, predict and write that down, then run, replay, judge, keep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from cprsim.errors import ParameterError, watch
from cprsim.experiments.assemble import Experiment
from cprsim.experiments.proxy_model import ProxyModel
from cprsim.files import decode, digest_of, write_whole
from cprsim.records import EventLog
from cprsim.recovery.policy import Policy
from cprsim.rehearsal.calibration import (
    RunCalibration,
    calibrated,
    calibrating,
    calibrating_sub_saves,
    extra,
)
from cprsim.rehearsal.log import event_log
from cprsim.rehearsal.material import Material, image_bytes
from cprsim.rehearsal.nodes import ForkServer
from cprsim.rehearsal.orders import SECONDS, Kill, Orders
from cprsim.rehearsal.prediction import FoldedRun, bytes_share, folded, predict
from cprsim.rehearsal.setting import (
    kills_of,
    material_of,
    orders_of,
    policies_to_rehearse,
    require_rehearsable,
    speeds_of,
)
from cprsim.rehearsal.supervisor import FinishedRun, Supervisor
from cprsim.rehearsal.verdict import (
    JudgedRun,
    MachineLoad,
    ReplayCheck,
    Ticks,
    check_replay,
    judge,
    load_of,
    mean_of,
)

ATTEMPTS = 2  # at one run each time, where the machine was too busy
BEFORE = "before.json"


@dataclass(frozen=True, slots=True)
class Planned:
    """One run to do, with what is predicted of it."""

    policy: Policy
    trace: int
    orders: Orders
    predicted: FoldedRun


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run as it was done."""

    planned: Planned
    number: int  # from 1
    measured: FoldedRun
    load: MachineLoad
    replayed: ReplayCheck

    @property
    def is_valid(self) -> bool:
        return self.load.too_busy is None

    @property
    def judged(self) -> JudgedRun:
        heartbeat_s = self.planned.orders.speeds.heartbeat_s
        return judge(self.planned.predicted, self.measured, heartbeat_s)

    def plain(self) -> dict[str, Any]:
        """What is said of it, as JSON has it."""
        return {
            "strategy": self.planned.policy.name,
            "trace": self.planned.trace,
            "attempt": self.number,
            "orders_sha256": self.planned.orders.digest,
            "too_busy": self.load.too_busy,
            "load": asdict(self.load),
            "replay": asdict(self.replayed),
        }


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Everything that `cprsim rehearse` shows."""

    experiment: Experiment
    calibration: RunCalibration
    policies: tuple[Policy, ...]
    digest: str  # of what was written before the first judged run
    n_left_out: int  # strikes on processes that were dead and not noticed
    attempts: tuple[Attempt, ...]

    def of(self, policy: Policy) -> tuple[Attempt, ...]:
        """The valid attempts of one strategy, in order of the traces."""
        return tuple(
            attempt
            for attempt in self.attempts
            if attempt.is_valid and attempt.planned.policy.name == policy.name
        )

    def verdict(self, policy: Policy) -> JudgedRun | None:
        """Means over the valid runs of a strategy; None where there is none."""
        runs = self.of(policy)
        return mean_of([one.judged for one in runs]) if runs else None

    @property
    def is_missing_runs(self) -> bool:
        """Whether no attempt at a run was valid."""
        last = {(one.planned.policy.name, one.planned.trace): one for one in self.attempts}
        return not all(one.is_valid for one in last.values())

    @property
    def disagreeing(self) -> tuple[Attempt, ...]:
        """Attempts, valid or not, that differ from their replay."""
        return tuple(one for one in self.attempts if not one.replayed.agrees)

    @property
    def wrong(self) -> dict[str, tuple[str, ...]]:
        """What is off, by strategy."""
        judged = {policy.name: self.verdict(policy) for policy in self.policies}
        return {name: one.wrong for name, one in judged.items() if one is not None and one.wrong}

    @property
    def exit_code(self) -> int:
        """0 within tolerance, 1 something is off, 3 the machine was too busy to tell."""
        if self.disagreeing:
            return 1
        if self.is_missing_runs:
            return 3
        return 1 if self.wrong else 0


def rehearse(
    experiment: Experiment,
    what: ProxyModel,
    names: tuple[str, ...],
    n_traces: int,
    journal: Path,
) -> Rehearsal:
    """Rehearse an experiment.

    Raises ParameterError: the runtime can't do what the scenario says. Raises WorkerError: a
    process failed otherwise than as ordered.
    """
    require_rehearsable(experiment)
    policies = policies_to_rehearse(experiment, names)
    with ExitStack() as stack:
        session = _Session(experiment, what, stack)
        calibration = _calibration_in(journal) or session.calibration(policies)
        planned, n_left_out = session.plan(policies, n_traces, calibration)
        digest = _write_before(journal, calibration, planned)
        minutes = 60 * sum(float(one.predicted.costs.wall_h[0]) for one in planned)
        watch.doing(f"{len(planned)} runs, predicted to take {minutes:.3g} min")
        attempts: list[Attempt] = []
        for number, plan in enumerate(planned, 1):
            which = f"run {number} of {len(planned)}"
            attempts += _attempts(session, plan, journal, which)
        return Rehearsal(experiment, calibration, policies, digest, n_left_out, tuple(attempts))


class _Session:
    """Where runs take place: what forks their processes starts with the first."""

    def __init__(self, experiment: Experiment, what: ProxyModel, stack: ExitStack) -> None:
        self.experiment = experiment
        self.material: Material = material_of(what, len(experiment.cluster.replica_slots))
        self.speeds = speeds_of(experiment, self.material)
        self._stack = stack
        self._placement: ForkServer | None = None
        self._n_runs = 0

    def run(self, orders: Orders) -> FinishedRun:
        """Run orders on real processes."""
        if self._placement is None:
            self._placement = self._stack.enter_context(ForkServer(self.material))
        self._n_runs += 1
        folder = self._placement.folder / f"run-{self._n_runs}"
        return Supervisor(self._placement, self.material, orders, folder).run()

    def calibration(self, policies: tuple[Policy, ...]) -> RunCalibration:
        """Measure what is measured without failures."""
        watch.doing("calibrating without failures")
        orders = self._orders(replace(policies[0], sub_saves=None))
        ran = self.run(calibrating(orders, self.material))
        found = calibrated(ran, self.material, image_bytes(self.material))
        extra_s = {
            policy.name: self._extra_s(policy, found.stall_s)
            for policy in policies
            if policy.sub_saves is not None
        }
        return replace(found, extra_s=extra_s)

    def _extra_s(self, policy: Policy, stall_s: float) -> float:
        """What a sub-save takes beside its bytes."""
        assert policy.sub_saves is not None
        orders = calibrating_sub_saves(self._orders(policy), self.material)
        share = policy.sub_saves.fraction * bytes_share(policy, orders, self.material)
        return extra(self.run(orders), share, stall_s)

    def _orders(self, policy: Policy, kills: tuple[Kill, ...] = ()) -> Orders:
        return orders_of(self.experiment, policy, self.material, self.speeds, kills)

    def plan(
        self, policies: tuple[Policy, ...], n_traces: int, calibration: RunCalibration
    ) -> tuple[list[Planned], int]:
        """Orders and predictions of all runs, and how many strikes were left out."""
        planned, n_left_out = [], 0
        for trace in range(n_traces):
            kills, n = kills_of(self.experiment, trace, self.speeds)
            n_left_out += n
            for policy in policies:
                orders = self._orders(policy, kills)
                predicted = predict(
                    self.experiment, policy, orders, calibration, self.material, trace
                )
                planned.append(Planned(policy, trace, orders, predicted))
                require_in_time(planned[-1])
        return planned, n_left_out

    def attempt(self, planned: Planned, number: int) -> Attempt:
        """Do one run, and set it beside its replay."""
        useful_h, n_servers = self.experiment.useful_h, self.experiment.cluster.n_emb_ps
        before = Ticks.now()
        ran = self.run(planned.orders)
        log = event_log(ran.facts, ran.orders, self.material.n_samples, planned.trace)
        measured = folded(log, useful_h, n_servers)
        drift_s = float(measured.costs.hours_of("degraded")[0]) * SECONDS
        load = load_of(drift_s, ran.orders.useful_s, before, ran.n_false_alarms)
        return Attempt(planned, number, measured, load, check_replay(ran, log, self.material))


def require_in_time(planned: Planned) -> None:
    """Raise ParameterError for a run that its limit would end, as the simulator has it."""
    costs, limit_s = planned.predicted.costs, planned.orders.limit_s
    ends, took_s = bool(costs.finished[0]), float(costs.wall_h[0]) * SECONDS
    if ends and took_s < limit_s:
        return
    raise ParameterError(
        f"`{planned.policy.name}`, trace {planned.trace}, is predicted to take "
        f"{'' if ends else 'more than '}{took_s:,.0f} s; a run is given up after {limit_s:,.0f} s: "
        "let less fail, or come back sooner"
    )


def _attempts(session: _Session, planned: Planned, journal: Path, which: str) -> Iterator[Attempt]:
    """Attempts at one run, those in the journal first, until one is valid."""
    attempt, n_kept = None, 0
    while (path := _path_of(journal, planned, n_kept + 1)).exists():
        attempt = _attempt_from(json.loads(path.read_bytes()), planned, session.experiment)
        yield attempt
        n_kept += 1
    for number in range(n_kept + 1, n_kept + 1 + ATTEMPTS):
        if attempt is not None and attempt.is_valid:
            return
        name = f"{planned.policy.name}, trace {planned.trace}, attempt {number}"
        watch.doing(f"{which}: {name}")
        attempt = session.attempt(planned, number)
        log = _log_as_plain(attempt.measured.log)
        _write(_path_of(journal, planned, number), attempt.plain() | {"log": log})
        if not attempt.is_valid:
            watch.doing(f"{name} is not valid: {attempt.load.too_busy}")
        yield attempt


def _path_of(journal: Path, planned: Planned, number: int) -> Path:
    return journal / f"{planned.policy.name}-{planned.trace}-{number}.json"


# --------------------------------------------------------------------------- the journal


def _calibration_in(journal: Path) -> RunCalibration | None:
    path = journal / BEFORE
    if not path.exists():
        return None
    return decode(RunCalibration, json.loads(path.read_bytes())["calibration"])


def _write_before(journal: Path, calibration: RunCalibration, planned: list[Planned]) -> str:
    """Write calibration, orders and predictions; a digest of them all."""
    files: dict[str, Any] = {BEFORE: {"calibration": asdict(calibration)}}
    for one in planned:
        run = {"orders": one.orders.plain(), "predicted": _log_as_plain(one.predicted.log)}
        files.setdefault(f"trace-{one.trace}.json", {})[one.policy.name] = run
    for name, plain in files.items():
        if not (journal / name).exists():
            _write(journal / name, plain)
    return digest_of(files)


def _write(path: Path, plain: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(plain, sort_keys=True) + "\n")


def _attempt_from(plain: dict[str, Any], planned: Planned, experiment: Experiment) -> Attempt:
    n_servers, log = experiment.cluster.n_emb_ps, log_from(plain["log"])
    return Attempt(
        planned,
        int(plain["attempt"]),
        folded(log, experiment.useful_h, n_servers),
        decode(MachineLoad, plain["load"]),
        decode(ReplayCheck, plain["replay"]),
    )


def _log_as_plain(log: EventLog) -> dict[str, list[float]]:
    return {column.name: getattr(log, column.name).tolist() for column in fields(EventLog)}


def log_from(plain: dict[str, Any]) -> EventLog:
    """The log that was written as JSON."""
    columns = {
        column.name: np.array(
            plain[column.name], float if column.name in ("at_h", "progress_h") else np.int64
        )
        for column in fields(EventLog)
    }
    return EventLog(**columns)
