"""A whole rehearsal: calibrate, predict and store that, then run, replay, judge, keep."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import count as numbers_from
from pathlib import Path
from typing import Any

import numpy as np

from cprsim.errors import ParameterError, counted, watch
from cprsim.files import decode, digest_of, write_whole
from cprsim.job.policy import Policy
from cprsim.job.records import S_PER_H, EventLog, stacked
from cprsim.rehearsal.calibration import (
    TOO_BUSY,
    RunCalibration,
    calibrated,
    calibrating,
    calibrating_sub_saves,
    extra,
)
from cprsim.rehearsal.log import event_log
from cprsim.rehearsal.material import Material
from cprsim.rehearsal.nodes import ForkServer, forking
from cprsim.rehearsal.orders import Orders
from cprsim.rehearsal.prediction import FoldedRun, bytes_share, folded, model_of, predict
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
    ComparedQuantity,
    MachineLoad,
    ReplayCheck,
    check_replay,
    compared,
    detection_within_s,
    mean_of,
    quantities,
    steal_fraction,
    ticks,
)
from cprsim.results.folder import ResultTarget
from cprsim.results.identity import Identity, identity_of
from cprsim.results.pipeline import Outcome, StrategyOutcome
from cprsim.results.run import Result, write_result
from cprsim.results.words import count, hours
from cprsim.scenario.assemble import Experiment
from cprsim.scenario.reading import LoadedScenario
from cprsim.simulation.blocks import with_parts
from cprsim.training.proxy_model import ProxyModel

ATTEMPTS = 2  # at one run each time, where the machine was too busy
BEFORE, KEPT = "before.json", "rehearsal.json"


@dataclass(frozen=True, slots=True)
class Planned:
    """One run to do, with its prediction."""

    policy: Policy
    trace: int
    orders: Orders
    predicted: FoldedRun


@dataclass(frozen=True, slots=True)
class Attempt:
    """One finished attempt at a run."""

    planned: Planned
    number: int  # from 1
    measured: FoldedRun
    load: MachineLoad
    replayed: ReplayCheck

    @property
    def is_valid(self) -> bool:
        return self.load.too_busy is None

    @property
    def lines(self) -> list[ComparedQuantity]:
        """Predicted and measured quantities."""
        return compared(quantities(self.planned.predicted), quantities(self.measured))

    def plain(self) -> dict[str, Any]:
        """Results of the attempt, as JSON has them."""
        return {
            "strategy": self.planned.policy.name,
            "trace": self.planned.trace,
            "attempt": self.number,
            "orders_sha256": self.planned.orders.digest,
            "too_busy": self.load.too_busy,
            "load": asdict(self.load),
            "replay": asdict(self.replayed),
            "quantities": [asdict(line) for line in self.lines],
        }


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """All results of `cprsim rehearse`."""

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

    def verdict(self, policy: Policy) -> list[ComparedQuantity]:
        """Means over the valid runs of a strategy; empty without a valid run."""
        runs = self.of(policy)
        if not runs:
            return []
        heartbeat_s = runs[0].planned.orders.speeds.heartbeat_s
        within_s = detection_within_s((attempt.measured.log for attempt in runs), heartbeat_s)
        return mean_of([attempt.lines for attempt in runs], within_s)

    @property
    def is_missing_runs(self) -> bool:
        """Whether a run has no valid attempt."""
        last = {
            (attempt.planned.policy.name, attempt.planned.trace): attempt
            for attempt in self.attempts
        }
        return not all(attempt.is_valid for attempt in last.values())

    @property
    def disagreeing(self) -> tuple[Attempt, ...]:
        """Attempts, valid or not, that differ from their replay."""
        return tuple(attempt for attempt in self.attempts if not attempt.replayed.agrees)

    @property
    def wrong(self) -> dict[str, tuple[str, ...]]:
        """Quantities outside their tolerance, by strategy."""
        off = {
            p.name: tuple(line.name for line in self.verdict(p) if line.off) for p in self.policies
        }
        return {name: some for name, some in off.items() if some}

    @property
    def exit_code(self) -> int:
        """0 within tolerance, 1 a quantity is out of tolerance, 3 the machine was too busy."""
        if self.disagreeing:
            return 1
        if self.is_missing_runs:
            return TOO_BUSY
        return 1 if self.wrong else 0


def rehearse(
    experiment: Experiment,
    model: ProxyModel,
    names: tuple[str, ...],
    n_traces: int,
    journal: Path,
) -> Rehearsal:
    """Rehearse an experiment.

    Raises ParameterError: the runtime can't run the scenario. Raises WorkerError: a process failed
    otherwise than as ordered.
    """
    require_rehearsable(experiment)
    policies = policies_to_rehearse(experiment, names)
    with ExitStack() as stack:
        session = _Session(experiment, model, journal, stack)
        before = journal / BEFORE
        if before.exists():
            earlier = json.loads(before.read_bytes())["calibration"]
            calibration = decode(RunCalibration, earlier)
        else:
            calibration = session.calibration(policies, n_traces)
        planned, n_left_out = session.plan(policies, n_traces, calibration)
        digest = _write_before(journal, calibration, planned)
        takes = hours(sum(float(one.predicted.costs.wall_h[0]) for one in planned))
        runs = counted(f"{count(len(planned), 'run')}, predicted to take {takes}", planned)
        attempts = [
            attempt
            for number, plan in enumerate(runs, 1)
            for attempt in session.attempts(plan, f"run {number} of {len(planned)}")
        ]
        return Rehearsal(experiment, calibration, policies, digest, n_left_out, tuple(attempts))


class _Session:
    """Runs the processes of a rehearsal; the first run starts the fork server."""

    def __init__(
        self, experiment: Experiment, model: ProxyModel, journal: Path, stack: ExitStack
    ) -> None:
        self._experiment, self._journal, self._stack = experiment, journal, stack
        self._material: Material = material_of(model, len(experiment.cluster.replica_slots))
        self._numbers = numbers_from(1)

    @cached_property
    def _fork_server(self) -> ForkServer:
        return self._stack.enter_context(forking(self._material))

    def _run(self, orders: Orders) -> FinishedRun:
        folder = self._fork_server.folder / f"run-{next(self._numbers)}"
        return Supervisor(self._fork_server, self._material, orders, folder).run()

    def calibration(self, policies: tuple[Policy, ...], n_traces: int) -> RunCalibration:
        """Calibrate by runs without failures; says how long these and those that follow take."""
        material, useful_h = self._material, self._experiment.useful_h
        orders = [orders_of(self._experiment, policy, material) for policy in policies]
        whole = calibrating(orders[0], material)
        parts = [
            (policy, policy.sub_saves, calibrating_sub_saves(of, material))
            for policy, of in zip(policies, orders, strict=True)
            if policy.sub_saves is not None
        ]
        n_samples = sum(short.until or 0 for short in (whole, *(part[-1] for part in parts)))
        takes, runs = hours(useful_h * n_samples / material.n_samples), n_traces * len(policies)
        then = f"{count(runs, 'run')} of {hours(useful_h)} or more"
        watch.doing(f"calibrating for {takes}, then {then}")
        calibration = calibrated(self._run(whole), material)
        for policy, sub_saves, short in parts:
            share = sub_saves.fraction * bytes_share(policy, short, material)
            calibration.extra_s[policy.name] = extra(self._run(short), share, calibration.stall_s)
        return calibration

    def plan(
        self, policies: tuple[Policy, ...], n_traces: int, calibration: RunCalibration
    ) -> tuple[list[Planned], int]:
        """Orders and predictions of all runs, and the number of kills left out."""
        job, material, planned, n_left_out = self._experiment, self._material, [], 0
        for trace in range(n_traces):
            kills, n = kills_of(job, trace, speeds_of(job, material))
            n_left_out += n
            for policy in policies:
                orders = orders_of(job, policy, material, kills)
                model = model_of(job, policy, orders, calibration, material)
                planned.append(Planned(policy, trace, orders, predict(model, trace)))
                require_in_time(planned[-1])
        return planned, n_left_out

    def attempts(self, planned: Planned, progress: str) -> Iterator[Attempt]:
        """Attempts at one run, those in the journal first, until one is valid."""
        attempt, n_new = None, 0
        for number in numbers_from(1):
            name = f"{planned.policy.name}, trace {planned.trace}, attempt {number}"
            path = self._journal / f"{planned.policy.name}-{planned.trace}-{number}.json"
            if path.exists():
                attempt = self._kept(json.loads(path.read_bytes()), planned)
            elif n_new == ATTEMPTS or (attempt is not None and attempt.is_valid):
                return
            else:
                watch.doing(f"{progress}: {name}")
                attempt, n_new = self._attempt(planned, number), n_new + 1
                _write(path, attempt.plain() | {"log": _log_as_plain(attempt.measured.log)})
                if not attempt.is_valid:
                    watch.doing(f"{name} is not valid: {attempt.load.too_busy}")
            yield attempt

    def _attempt(self, planned: Planned, number: int) -> Attempt:
        """Do one run, and compare it with its replay."""
        before = ticks()
        ran = self._run(planned.orders)
        log = event_log(ran.facts, ran.orders, self._material.n_samples, planned.trace)
        measured = self._folded(log)
        drift_s = float(measured.costs.hours_of("degraded")[0]) * S_PER_H
        steal, waiting = steal_fraction(before, ticks()), os.getloadavg()[0]
        load = MachineLoad(drift_s, ran.orders.useful_s, steal, ran.n_false_alarms, waiting)
        return Attempt(planned, number, measured, load, check_replay(ran, log, self._material))

    def _kept(self, plain: dict[str, Any], planned: Planned) -> Attempt:
        """An attempt stored in the journal."""
        return Attempt(
            planned,
            int(plain["attempt"]),
            self._folded(log_from(plain["log"])),
            decode(MachineLoad, plain["load"]),
            decode(ReplayCheck, plain["replay"]),
        )

    def _folded(self, log: EventLog) -> FoldedRun:
        return folded(log, self._experiment.useful_h, self._experiment.cluster.n_emb_ps)


def require_in_time(planned: Planned) -> None:
    """Raise ParameterError for a run that would exceed its time limit, by the simulator."""
    costs, limit_s = planned.predicted.costs, planned.orders.limit_s
    ends, took_s = bool(costs.finished[0]), float(costs.wall_h[0]) * S_PER_H
    if ends and took_s < limit_s:
        return
    raise ParameterError(
        f"`{planned.policy.name}`, trace {planned.trace}, is predicted to take "
        f"{'' if ends else 'more than '}{took_s:,.0f} s; a run is given up after {limit_s:,.0f} s: "
        "let less fail, or come back sooner"
    )


# --------------------------------------------------------------------------- the journal


def _write_before(journal: Path, calibration: RunCalibration, planned: list[Planned]) -> str:
    """Write calibration, orders and predictions; returns their digest."""
    files: dict[str, Any] = {BEFORE: {"calibration": asdict(calibration)}}
    for plan in planned:
        run = {
            "orders": asdict(plan.orders),
            "predicted": _log_as_plain(plan.predicted.log),
        }
        files.setdefault(f"trace-{plan.trace}.json", {})[plan.policy.name] = run
    for name, plain in files.items():
        if not (journal / name).exists():
            _write(journal / name, plain)
    return digest_of(files)


def _write(path: Path, plain: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(plain, sort_keys=True) + "\n")


def _log_as_plain(log: EventLog) -> dict[str, list[float]]:
    return {column.name: getattr(log, column.name).tolist() for column in fields(EventLog)}


def log_from(plain: dict[str, Any]) -> EventLog:
    """The log that was written as JSON."""
    return EventLog(**{name: np.array(values) for name, values in plain.items()})


# --------------------------------------------------------------------------- the results folder


def keep(target: ResultTarget, rehearsal: Rehearsal, draw: Callable[[Result], object]) -> Result:
    """Write the results folder of a rehearsal with valid runs, or raise ResultError.

    It has each strategy twice, predicted and measured, so that figures show them side by side.
    """
    strategies, logs, traces = [], {}, []
    for policy in rehearsal.policies:
        attempts = rehearsal.of(policy)
        predicted = [attempt.planned.predicted for attempt in attempts]
        measured = [attempt.measured for attempt in attempts]
        traces += [attempt.planned.trace for attempt in attempts]
        for how, runs in (("predicted", predicted), ("measured", measured)):
            if runs:
                labelled = replace(policy, name=f"{policy.name}, {how}")
                costs = stacked([with_parts(run.costs, runs[0].costs.parts) for run in runs])
                losses = stacked([run.losses for run in runs])
                strategies.append(StrategyOutcome(labelled, costs, losses))
                logs[labelled.name] = runs[0].log
    experiment = rehearsal.experiment
    outcome = Outcome(experiment.useful_h, experiment.cluster, tuple(strategies))
    text = json.dumps(as_plain(rehearsal), indent=1, sort_keys=True) + "\n"

    def draw_and_add(result: Result) -> None:
        (result.path / KEPT).write_text(text, "utf-8")
        draw(result)

    return write_result(
        target, outcome, logs, traces[0], draw_and_add, failures_digest=rehearsal.digest
    )


def identity(rehearsal: Rehearsal, loaded: LoadedScenario) -> Identity:
    """Identity of the results folder: the scenario, and the results."""
    return replace(identity_of(loaded), inputs={KEPT: digest_of(as_plain(rehearsal))})


def as_plain(rehearsal: Rehearsal) -> dict[str, Any]:
    """Results of a rehearsal, as JSON has them."""
    return {
        "written_before_sha256": rehearsal.digest,
        "calibrated": asdict(rehearsal.calibration),
        "strikes_left_out": rehearsal.n_left_out,
        "strategies": {
            policy.name: {
                "valid_runs": len(rehearsal.of(policy)),
                "quantities": [asdict(line) for line in rehearsal.verdict(policy)],
            }
            for policy in rehearsal.policies
        },
        "attempts": [attempt.plain() for attempt in rehearsal.attempts],
        "exit_code": rehearsal.exit_code,
    }
