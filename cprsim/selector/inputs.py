"""The inputs that a decision hangs on, each as something that can be set to another value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf

from cprsim.experiments.assemble import Experiment
from cprsim.failures.distributions import Constant
from cprsim.failures.injected import Injected
from cprsim.failures.several import Stretched
from cprsim.records import Duration, Transfer
from cprsim.recovery.policy import PartOf

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


def inputs_of(experiment: Experiment) -> Iterator[Input]:
    """What can be varied, one at a time, from 1 / `MOST_TIMES` to `MOST_TIMES` of what it is."""
    yield _saving(experiment)
    yield from _recovery(experiment)
    yield from _failures(experiment)


def _times(duration: Duration, factor: float) -> Duration:
    """A duration times a factor, of the same draws; a fixed one stays fixed."""
    if isinstance(duration, Constant):
        return Constant(duration.mean_h * factor)
    return PartOf(duration, factor, 0.0)


def _saving(experiment: Experiment) -> Input:
    """The bandwidth of the storage, where saves go over it; else the cost of a save."""
    costs, stall, storage = experiment.costs, experiment.costs.save_stall, experiment.costs.storage
    if isinstance(stall, Transfer):
        assert storage is not None, "a transfer has a storage"
        rate, own = storage.bandwidth_bytes_per_h, storage.server_bandwidth_bytes_per_h
        now = rate / GBIT_S

        def faster(value: float) -> Experiment:
            by = value / now
            changed = replace(
                storage, bandwidth_bytes_per_h=rate * by, server_bandwidth_bytes_per_h=own * by
            )
            return replace(experiment, costs=replace(costs, storage=changed))

        ends = now / MOST_TIMES, now * MOST_TIMES
        return Input("a bandwidth of the storage", "Gbit/s", now, *ends, faster, -1)

    def costlier(value_h: float) -> Experiment:
        saving = _times(stall, value_h / now_h) if now_h > 0 else Constant(value_h)
        return replace(experiment, costs=replace(costs, save_stall=saving))

    now_h = stall.mean_h
    around_h = now_h or SECOND_H  # what costs nothing may cost something
    ends_h = around_h / MOST_TIMES, around_h * MOST_TIMES
    return Input("a cost of a save", "h", now_h, *ends_h, costlier, 1)


def _recovery(experiment: Experiment) -> Iterator[Input]:
    costs, scopes, load = experiment.costs, experiment.scopes, experiment.costs.load
    each = zip(experiment.expected_shares, scopes, strict=True)
    detect_h = sum(share * scope.detect.mean_h for share, scope in each)  # whatever its scope
    load_h = costs.mean_h(load, experiment.cluster.n_emb_ps)
    now_h = detect_h + costs.reschedule.mean_h + load_h
    if now_h == 0 or isinstance(load, Transfer):
        return

    def set_to(value_h: float) -> Experiment:
        by = value_h / now_h
        slower = replace(
            costs,
            load=_times(load, by),
            detect=_times(costs.detect, by),
            reschedule=_times(costs.reschedule, by),
        )
        noticed = tuple(replace(scope, detect=_times(scope.detect, by)) for scope in scopes)
        return replace(experiment, costs=slower, scopes=noticed)

    name = "a cost of a recovery (detection, rescheduling, load)"
    yield Input(name, "h", now_h, now_h / RECOVERY_TIMES, now_h * RECOVERY_TIMES, set_to, 0)


def _failures(experiment: Experiment) -> Iterator[Input]:
    """Their number, where so many are injected at random; else how far they lie apart."""
    failures, useful_h = experiment.failures, experiment.useful_h
    if isinstance(failures, Injected):
        now = failures.count
        if failures.at_h is None and now > 0:
            yield Input(
                "a number of failures per job", "", now, 1,
                int(min(now * MOST_TIMES, max(MOST_FAILURES, now))),
                lambda n: replace(experiment, failures=replace(failures, count=round(n))),
                sense=1, whole=True,
            )  # fmt: skip
        return
    now_h = failures.expected(experiment.cluster, useful_h).mtbf_h
    if now_h < inf:
        shortest_h = min(max(now_h / MOST_TIMES, useful_h / MOST_FAILURES), now_h)
        yield Input(
            "an MTBF of the job", "h", now_h, shortest_h, now_h * MOST_TIMES,
            lambda value_h: replace(experiment, failures=Stretched(failures, value_h / now_h)),
            -1,
        )  # fmt: skip
