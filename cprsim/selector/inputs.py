"""The inputs that a decision hangs on, each as something that can be set to another value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from cprsim.experiments.assemble import Experiment
from cprsim.failures.distributions import Constant
from cprsim.failures.injected import Injected
from cprsim.failures.several import Stretched
from cprsim.records import Costs, Duration, Floats, Transfer

SECOND_H = 1 / 3600.0
GBIT_S = 3600e9 / 8  # bytes per hour
MOST_TIMES = 30.0  # an input is varied up to so many times, and down to so many parts
RECOVERY_TIMES = 10.0  # and what a recovery costs: it costs partial and full recovery alike
MOST_FAILURES = 30.0  # per job: more often than that no input is tried


@dataclass(frozen=True, slots=True)
class Input:
    """An input of an experiment."""

    name: str  # name, unit: as shown; `h` is shown in the unit that suits it
    unit: str
    now: float  # its value
    lowest: float  # lowest, highest: how far it may be varied
    highest: float
    set_to: Callable[[float], Experiment]  # the experiment with another value
    # 1 where more of it takes partial recovery's advantage, -1 where less does, 0: not known
    sense: int
    whole: bool = False  # whether it counts something


@dataclass(frozen=True, slots=True)
class Paced:
    """A duration, times a factor; the same draws."""

    duration: Duration
    factor: float

    @property
    def mean_h(self) -> float:
        return self.duration.mean_h * self.factor

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return self.factor * self.duration.sample(rng, size)


def paced(duration: Duration, factor: float) -> Duration:
    """A duration, times a factor; a fixed one stays fixed."""
    if isinstance(duration, Constant):
        return Constant(duration.mean_h * factor)
    return Paced(duration, factor)


def inputs_of(experiment: Experiment) -> Iterator[Input]:
    """What can be varied, one at a time, from 1 / `MOST_TIMES` to `MOST_TIMES` of what it is."""
    costs, n = experiment.costs, experiment.cluster.n_emb_ps
    if isinstance(costs.save_stall, Transfer):
        yield _bandwidth(experiment)
    else:
        yield _save_cost(experiment)
    recovery_h = _detect_h(experiment) + costs.reschedule.mean_h + costs.mean_h(costs.load, n)
    if recovery_h > 0 and not isinstance(costs.load, Transfer):
        yield Input(
            "a cost of a recovery (detection, rescheduling, load)", "h", recovery_h,
            recovery_h / RECOVERY_TIMES, recovery_h * RECOVERY_TIMES,
            lambda value_h: _recovering(experiment, value_h / recovery_h), 0,
        )  # fmt: skip
    yield from _mtbf(experiment)


def _with_costs(experiment: Experiment, costs: Costs) -> Experiment:
    return replace(experiment, costs=costs)


def _save_cost(experiment: Experiment) -> Input:
    costs = experiment.costs
    assert not isinstance(costs.save_stall, Transfer)
    stall, now_h = costs.save_stall, costs.save_stall.mean_h
    around_h = now_h or SECOND_H  # what costs nothing may cost something

    def set_to(value_h: float) -> Experiment:
        saving = paced(stall, value_h / now_h) if now_h > 0 else Constant(value_h)
        return _with_costs(experiment, replace(costs, save_stall=saving))

    return Input(
        "a cost of a save", "h", now_h, around_h / MOST_TIMES, around_h * MOST_TIMES, set_to, 1
    )


def _detect_h(experiment: Experiment) -> float:
    """Expected hours until a failure is noticed, whatever its scope."""
    each = zip(experiment.expected_shares, experiment.scopes, strict=True)
    return sum(share * scope.detect.mean_h for share, scope in each)


def _recovering(experiment: Experiment, factor: float) -> Experiment:
    costs = experiment.costs
    assert not isinstance(costs.load, Transfer)
    slower = replace(
        costs,
        load=paced(costs.load, factor),
        detect=paced(costs.detect, factor),
        reschedule=paced(costs.reschedule, factor),
    )
    scopes = tuple(
        replace(scope, detect=paced(scope.detect, factor)) for scope in experiment.scopes
    )
    return replace(experiment, costs=slower, scopes=scopes)


def _bandwidth(experiment: Experiment) -> Input:
    storage = experiment.costs.storage
    assert storage is not None, "a transfer has a storage"
    now = storage.bandwidth_bytes_per_h / GBIT_S

    def set_to(value: float) -> Experiment:
        times = value / now
        faster = replace(
            storage,
            bandwidth_bytes_per_h=storage.bandwidth_bytes_per_h * times,
            server_bandwidth_bytes_per_h=storage.server_bandwidth_bytes_per_h * times,
        )
        return _with_costs(experiment, replace(experiment.costs, storage=faster))

    return Input(
        "a bandwidth of the storage", "Gbit/s", now, now / MOST_TIMES, now * MOST_TIMES, set_to, -1
    )


def _mtbf(experiment: Experiment) -> Iterator[Input]:
    failures, useful_h = experiment.failures, experiment.useful_h
    if isinstance(failures, Injected):
        if failures.at_h is None and failures.count > 0:
            most = min(failures.count * MOST_TIMES, max(MOST_FAILURES, failures.count))
            yield Input(
                "a number of failures per job", "", failures.count, 1, int(most),
                lambda n: replace(experiment, failures=replace(failures, count=round(n))),
                sense=1, whole=True,
            )  # fmt: skip
        return
    now_h = failures.expected(experiment.cluster, useful_h).mtbf_h
    if now_h == inf:
        return
    shortest_h = min(max(now_h / MOST_TIMES, useful_h / MOST_FAILURES), now_h)
    yield Input(
        "an MTBF of the job", "h", now_h, shortest_h, now_h * MOST_TIMES,
        lambda value_h: replace(experiment, failures=Stretched(failures, value_h / now_h)),
        -1,
    )  # fmt: skip
