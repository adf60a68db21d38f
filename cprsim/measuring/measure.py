"""Seeds run until the slopes are known well enough, or the time is up; what is finished is kept.

A measurement is a folder of journals and a file with the identity of the measurement. The same
command again goes on where it was: what a journal holds is not run twice.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import time
from typing import Any

from cprsim import watch
from cprsim.curves.trained_on import kernel_block
from cprsim.errors import ParameterError, ResultError, one_line
from cprsim.experiments.proxy_model import SOURCE
from cprsim.files import write_whole
from cprsim.kernel.blas import one_thread
from cprsim.measuring.checks import Checks, check
from cprsim.measuring.design import Design
from cprsim.measuring.expectation import Expected
from cprsim.measuring.fit import FEWEST_SEEDS, FittedCurve, fit, weighted
from cprsim.measuring.observed import Observed, observed
from cprsim.measuring.runs import (
    SeedResult,
    SeedRuns,
    read_seed,
    require_seen,
    run_seed,
)
from cprsim.records import Floats
from cprsim.results.identity import file_digest
from cprsim.scenario.kernel import ClickFile, Kernel
from cprsim.scenario.reading import LoadedScenario
from cprsim.staleness.curve import FEWEST_SEEDS_TO_USE
from cprsim.staleness.names import ALWAYS, WHOLE, Metric
from cprsim.version import __version__
from cprsim.workers import Workers, run_each

WHOSE = "measurement.json"
MOST_SEEDS = 1000
DEFAULT_PRECISION = 0.2
DEFAULT_BUDGET_S = 600.0


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """What is asked for."""

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
    # name and digest of a table of runs made elsewhere; empty where they are our own
    elsewhere: Mapping[str, Any] = field(default_factory=dict)
    # further metrics that are fitted; None: of a trainer of one's own all that there are, of the
    # built-in model none
    metrics: tuple[Metric, ...] | None = None
    n_samples: int | None = None  # of a run, all epochs; None: not known

    @property
    def kernel(self) -> Kernel:
        return self.loaded.scenario.kernel or Kernel.model_validate({})

    def further(self, seen: Observed) -> tuple[Metric, ...]:
        """Metrics that are fitted beside AUC and log-loss."""
        there = tuple(metric for metric in seen.loss if metric not in ALWAYS)
        if self.metrics is None:
            return there if self.kernel.trainer is not None or self.elsewhere else ()
        asked = tuple(metric for metric in self.metrics if metric not in ALWAYS)
        for metric in asked:
            if metric not in there:
                has = ", ".join(seen.loss)
                raise ParameterError(f"--metric: not all runs report `{metric}`; they have {has}")
        return asked

    @property
    def n_servers(self) -> int:
        return self.loaded.scenario.cluster.emb_ps

    @property
    def seeds(self) -> range:
        first = self.kernel.seed
        return range(first, first + (self.n_seeds or MOST_SEEDS))


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known after some seeds."""

    results: tuple[SeedResult, ...]
    seen: Observed
    fitted: dict[Metric, FittedCurve]
    expected: Expected | None = None  # what was expected beforehand, where it was asked

    def relative_error(self, metric: Metric, strategy: str) -> float:
        """Standard error of a slope, as a share of plain partial recovery's slope."""
        slopes = self.fitted[metric].slopes
        return slopes.standard_error(strategy) / abs(slopes.mean(WHOLE))

    @property
    def widest(self) -> float:
        """The relative error of the least well known slope, in AUC or log-loss."""
        return max(
            self.relative_error(metric, strategy)
            for metric, fitted in self.fitted.items()
            if metric in ALWAYS
            for strategy in fitted.slopes.strategies
        )

    def points(self, metric: Metric, strategy: str) -> tuple[Floats, Floats]:
        """Weighted PLS and loss of the trials that were fitted."""
        some = self.seen.strategy(strategy) & ~self.seen.held_out
        return weighted(self.seen, self.fitted[metric].parts)[some], self.seen.loss[metric][some]

    def checks(self, metric: Metric) -> Checks:
        return check(self.seen, self.fitted[metric])


def measure(request: MeasureRequest) -> Measured:
    """Run seeds until the precision or the budget is reached."""
    with _claimed(request):
        return _measure(request)


def _measure(request: MeasureRequest) -> Measured:
    until = time() + request.budget_s if request.n_seeds is None else float("inf")
    tasks = [_task(request, seed, until) for seed in request.seeds]
    known = None
    running = run_each(run_seed, tasks, request.workers, "seed {}".format)
    for number, n_run in running:
        require_seen(tasks[number], n_run)
        known = known_so_far(request) if request.n_seeds is None else None
        if time() >= until or _is_enough(request, known):
            break
    running.close()  # a generator: ends the workers
    return with_further(known or _fitted(read(request), request), request)


def read(request: MeasureRequest) -> list[SeedResult]:
    """What the journals hold, seed by seed, up to the first seed that was not begun."""
    results = []
    for seed in request.seeds:
        one = read_seed(request.folder, seed)
        if one.twin is None and not one.quality:
            break
        results.append(one)
    return results


def known_so_far(request: MeasureRequest) -> Measured | None:
    """What the finished seeds say; None where they say nothing yet, being too few or too noisy."""
    results = read(request)
    if sum(one.twin is not None for one in results) < FEWEST_SEEDS:
        return None
    with suppress(ParameterError):
        return _fitted(results, request)
    return None


def _fitted(results: Iterable[SeedResult], request: MeasureRequest) -> Measured:
    complete = [one for one in results if one.twin is not None]
    return fitted_to(complete, observed(complete, request.n_servers))


def fitted_to(complete: Sequence[SeedResult], seen: Observed) -> Measured:
    """What observed runs say, wherever they were made. Raises ParameterError for too few seeds."""
    with one_thread():  # else the last digits would depend on the number of cores
        fitted = {metric: fit(seen, metric) for metric in seen.loss if metric in ALWAYS}
    return Measured(tuple(complete), seen, fitted)


def with_further(measured: Measured, request: MeasureRequest) -> Measured:
    """With the further metrics that were asked for; warns of those that can't be fitted."""
    fitted = dict(measured.fitted)
    for metric in request.further(measured.seen):
        try:
            with one_thread():
                fitted[metric] = fit(measured.seen, metric)
        except ParameterError as error:
            watch.warn(f"{metric.label} is not in the curve: {error}")
    return replace(measured, fitted=fitted)


def _is_enough(request: MeasureRequest, known: Measured | None) -> bool:
    if request.n_seeds is not None or known is None:
        return False
    return len(known.results) >= FEWEST_SEEDS_TO_USE and known.widest <= request.precision


def _task(request: MeasureRequest, seed: int, until: float) -> SeedRuns:
    design, n_servers = request.design, request.n_servers
    trials = tuple(design.trials(seed, n_servers))
    n_beside = request.workers.n_local if request.workers.backend == "local" else 1
    return SeedRuns(
        request.loaded, seed, trials, request.folder, until, here=Path.cwd(), n_beside=n_beside
    )


# --------------------------------------------------------------------------- identity


def identity(request: MeasureRequest) -> dict[str, Any]:
    """What decides every run of a measurement, but for its seed."""
    kernel = kernel_block(request.kernel)
    clicks = request.kernel.clicks
    described = {"trainer": dict(request.described)} if request.described else {}
    if isinstance(clicks, ClickFile):  # by what is in it too, so that another file is another
        path = request.loaded.input_file(clicks.file, "kernel.clicks.file", SOURCE)
        kernel["clicks"]["sha256"] = file_digest(path)
    return {
        "kernel": kernel,
        **described,
        "first_seed": request.kernel.seed,
        "n_emb_ps": request.n_servers,
        "design": asdict(request.design),
        "cprsim": __version__,
    }


@contextmanager
def _claimed(request: MeasureRequest) -> Iterator[None]:
    """The folder is this measurement's, and this process's, inside the block."""
    path = request.folder / WHOSE
    try:
        request.folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(request.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise ResultError(f"{path} can't be written: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _require_ours(path, json.loads(json.dumps(identity(request))))
        yield
    except BlockingIOError:
        raise ResultError(f"{request.folder}: another process is measuring here") from None
    finally:
        os.close(lock)


def _require_ours(path: Path, ours: dict[str, Any]) -> None:
    """Write the identity of the measurement, or compare it. Raises ResultError for another's."""
    try:
        if not path.exists():
            write_whole(path, json.dumps(ours, indent=2) + "\n")
        theirs = dict(json.loads(path.read_bytes()))
    except OSError as error:
        raise ResultError(f"{path} can't be written: {error.strerror}") from error
    except (TypeError, ValueError) as error:
        raise ResultError(f"{path} is damaged: {one_line(str(error), 200)}") from None
    different = [key for key in ours if theirs.get(key) != ours[key]]
    if different:
        key = different[0]
        found = one_line(json.dumps(theirs.get(key)), 200)
        raise ResultError(
            f"{path.parent} holds runs of another measurement: its {key} is "
            f"{found}, here {json.dumps(ours[key])}; name another file"
        )
