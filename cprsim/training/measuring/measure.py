"""Run seeds until the slopes are precise enough, or the time is up; finished work is kept.

A measurement is a folder of journals and a file with the identity of the measurement. The same
command continues it: trials in a journal are not run again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import time
from typing import Any

from cprsim.accuracy.curve import FEWEST_SEEDS_TO_USE
from cprsim.errors import ParameterError, ResultError, one_line, watch
from cprsim.files import write_whole, writes
from cprsim.job.losses import ALWAYS, WHOLE, Metric
from cprsim.results.folder import exclusive_lock, readable
from cprsim.results.identity import file_digest
from cprsim.scenario.curves import kernel_block
from cprsim.scenario.kernel import ClickFile, Kernel
from cprsim.scenario.reading import LoadedScenario
from cprsim.training.kernel.blas import one_thread
from cprsim.training.measuring.design import Design
from cprsim.training.measuring.expectation import Expected
from cprsim.training.measuring.fit import FittedCurve, fit
from cprsim.training.measuring.observed import Observed, observed
from cprsim.training.measuring.runs import SeedResult, SeedRuns, read_seed, require_seen, run_seed
from cprsim.training.proxy_model import CLICKS_SOURCE
from cprsim.version import __version__
from cprsim.workers import Workers, run_each

WHOSE = "measurement.json"
MOST_SEEDS = 1000
DEFAULT_PRECISION = 0.2
DEFAULT_BUDGET_S = 600.0


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """The request of a measurement."""

    loaded: LoadedScenario  # the scenario; its section `kernel` is what is measured
    folder: Path  # of the journals
    # stop where the standard error of every slope is no larger than this share of plain partial
    # recovery's slope, in AUC and in log-loss, and the seeds suffice for use
    precision: float = DEFAULT_PRECISION
    budget_s: float = DEFAULT_BUDGET_S  # stop after this time [s]
    n_seeds: int | None = None  # run exactly so many seeds instead, whatever the precision
    workers: Workers = field(default_factory=Workers)
    design: Design = field(default_factory=Design)
    # what a trainer of one's own says of itself; empty for the built-in model
    described: Mapping[str, Any] = field(default_factory=dict)
    # further metrics that are fitted; None: of a trainer of one's own all that there are, of the
    # built-in model none
    metrics: tuple[Metric, ...] | None = None
    n_samples: int | None = None  # of a run, all epochs; None: not known

    @property
    def kernel(self) -> Kernel:
        return self.loaded.scenario.kernel or Kernel.model_validate({})

    def further_metrics(self, observed: Observed) -> tuple[Metric, ...]:
        """Metrics that are fitted besides AUC and log-loss."""
        available = tuple(metric for metric in observed.loss if metric not in ALWAYS)
        if self.metrics is None:
            return available if self.kernel.trainer is not None else ()
        chosen = tuple(metric for metric in self.metrics if metric not in ALWAYS)
        for metric in chosen:
            if metric not in available:
                has = ", ".join(observed.loss)
                message = f"not all runs report `{metric}`; they have {has}"
                raise ParameterError(message, option="--metric")
        return chosen

    @property
    def n_servers(self) -> int:
        return self.loaded.scenario.cluster.emb_ps

    @property
    def seeds(self) -> range:
        first = self.kernel.seed
        return range(first, first + (self.n_seeds or MOST_SEEDS))


@dataclass(frozen=True, slots=True)
class Measured:
    """Results after some seeds."""

    results: tuple[SeedResult, ...]
    observed: Observed
    fitted: dict[Metric, FittedCurve]
    expected: Expected | None = None  # what was expected beforehand, where it was asked

    @property
    def widest(self) -> float:
        """The largest standard error of a slope in AUC or log-loss, over partial's slope."""
        return max(
            fitted.slope(strategy).standard_error / abs(fitted.slope(WHOLE).mean)
            for metric, fitted in self.fitted.items()
            if metric in ALWAYS
            for strategy in fitted.strategies
        )


def measure(request: MeasureRequest) -> Measured:
    """Run seeds until the precision or the budget is reached."""
    until = time() + request.budget_s if request.n_seeds is None else float("inf")
    tasks = [
        SeedRuns(
            request.loaded, seed, tuple(request.design.trials(seed, request.n_servers)),
            request.folder, until, here=Path.cwd(),
        )
        for seed in request.seeds
    ]  # fmt: skip
    with exclusive_lock(request.folder):
        _require_same(request)
        running = run_each(run_seed, tasks, request.workers, "seed {}".format)
        for number, n_run in running:
            require_seen(tasks[number], n_run)
            if time() >= until or (request.n_seeds is None and _is_enough(request)):
                break
        running.close()  # a generator: ends the workers
        return with_further(fitted(read(request), request.n_servers), request)


def _is_enough(request: MeasureRequest) -> bool:
    """Whether the finished seeds suffice for use, and tell every slope well enough."""
    results = read(request)
    if sum(seed.twin is not None for seed in results) < FEWEST_SEEDS_TO_USE:
        return False
    return fitted(results, request.n_servers).widest <= request.precision


def read(request: MeasureRequest) -> list[SeedResult]:
    """Results in the journals, seed by seed, up to the first seed that was not begun."""
    results = []
    for seed in request.seeds:
        result = read_seed(request.folder, seed)
        if result.twin is None and not result.quality:
            break
        results.append(result)
    return results


def fitted(results: Iterable[SeedResult], n_servers: int) -> Measured:
    """Fits of AUC and log-loss to complete seeds. Raises ParameterError for too few of them."""
    complete = tuple(result for result in results if result.twin is not None)
    trials = observed(complete, n_servers)
    with one_thread():  # else the last digits would depend on the number of cores
        curves = {metric: fit(trials, metric) for metric in trials.loss if metric in ALWAYS}
    return Measured(complete, trials, curves)


def with_further(measured: Measured, request: MeasureRequest) -> Measured:
    """With the further metrics that were asked for; warns of those that can't be fitted."""
    curves = dict(measured.fitted)
    for metric in request.further_metrics(measured.observed):
        try:
            with one_thread():
                curves[metric] = fit(measured.observed, metric)
        except ParameterError as error:
            watch.warn(f"{metric.label} is not in the curve: {error}")
    return replace(measured, fitted=curves)


# --------------------------------------------------------------------------- identity


def identity(request: MeasureRequest) -> dict[str, Any]:
    """Inputs of every run of a measurement, except its seed."""
    kernel = kernel_block(request.kernel)
    clicks = request.kernel.clicks
    described = {"trainer": dict(request.described)} if request.described else {}
    if isinstance(clicks, ClickFile):  # by what is in it too, so that another file is another
        path = request.loaded.input_file(clicks.file, "kernel.clicks.file", CLICKS_SOURCE)
        kernel["clicks"]["sha256"] = file_digest(path)
    return {
        "kernel": kernel,
        **described,
        "first_seed": request.kernel.seed,
        "n_emb_ps": request.n_servers,
        "design": asdict(request.design),
        "cprsim": __version__,
    }


def _require_same(request: MeasureRequest) -> None:
    """Write the identity of the measurement, or compare it. Raises ResultError for another's."""
    path, folder = request.folder / WHOSE, request.folder
    expected = json.loads(json.dumps(identity(request)))
    if not path.exists():
        with writes(path):
            folder.mkdir(exist_ok=True)
            write_whole(path, json.dumps(expected, indent=2) + "\n")
    with readable(folder, "a measurement"):
        stored = dict(json.loads(path.read_bytes()))
    for key in expected:
        if stored.get(key) != expected[key]:
            value = one_line(json.dumps(stored.get(key)), 200)
            raise ResultError(
                f"{folder} holds runs of another measurement: its {key} is {value}, here "
                f"{json.dumps(expected[key])}; name another file"
            )
