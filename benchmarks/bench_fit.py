"""How fast censored lifetimes are fitted: ours, and surpyval's and lifelines' where installed.

10,000 up-times of which about half are censored, a Weibull and a gamma; one process, taking turns,
the best of several rounds in CPU time. Ours includes standard errors and intervals. lifelines has
no plain gamma: its generalised gamma has one parameter more, and is shown for what it is. With
CPRSIM_DATA set, also LANL's system 2: gaps, up-times and repairs, five families, 199 bootstrap
samples each. Last, ``cprsim fit --bootstrap 0`` of made-up logs, start of the program included.

    python benchmarks/bench_fit.py
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from cprsim.logs.fit.families import FAMILIES, fit
from cprsim.logs.fit.lifetimes import Lifetimes, lifetimes_of
from cprsim.logs.fit.report import fit_failures
from tests.failures.tidy import read_lanl

N_TIMES, ROUNDS = 10_000, 3
WITHIN_S = 20.0  # what the whole fit of LANL's system 2 may take
LOGS = ((300_000, 2_000, 5.0, 400.0), (5_000_000, 30_000, 60.0, 1000.0))  # and wanted [s], [MB]
LANL = "failures/lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz"


def times(family: str) -> Lifetimes:
    """Times with shape 0.7 and scale 1000 h, each watched for 200 to 2000 h."""
    rng = np.random.default_rng(1)
    drawn_h = 1000 * (
        rng.weibull(0.7, N_TIMES) if family == "weibull" else rng.gamma(0.7, size=N_TIMES)
    )
    limit_h = rng.uniform(200.0, 2000.0, N_TIMES)
    return lifetimes_of(np.minimum(drawn_h, limit_h), drawn_h <= limit_h)


def surpyval_fit(family: str, lifetimes: Lifetimes) -> None:
    import surpyval

    model = surpyval.Weibull if family == "weibull" else surpyval.Gamma
    model.fit(lifetimes.duration_h, c=(~lifetimes.observed).astype(int))


def lifelines_fit(family: str, lifetimes: Lifetimes) -> None:
    import lifelines

    weibull = family == "weibull"
    model = lifelines.WeibullFitter() if weibull else lifelines.GeneralizedGammaFitter()
    model.fit(lifetimes.duration_h, lifetimes.observed)


def seconds(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Least CPU time of several calls [s]."""
    taken = []
    for _ in range(rounds):
        begin = time.process_time()
        call()
        taken.append(time.process_time() - begin)
    return min(taken)


def write_log(path: Path, n_outages: int, n_nodes: int) -> None:
    """Outages with Weibull up-times of shape 0.7 and lognormal repairs, in order of time."""
    rng = np.random.default_rng(1)
    each = n_outages // n_nodes
    repair_s = 3600 * rng.lognormal(0.0, 1.0, (n_nodes, each))
    end_s = 8e8 + np.cumsum(3600 * 800 * rng.weibull(0.7, (n_nodes, each)) + repair_s, axis=1)
    start_s, end_s = (end_s - repair_s).ravel(), end_s.ravel()
    with path.open("w") as file:
        file.write("node,start,end\n")
        for i in np.argsort(start_s):
            file.write(f"n{i // each:05d},{start_s[i]:.0f},{end_s[i]:.0f}\n")


def whole_logs() -> None:
    """One process after the other, so that the largest memory of all so far is the last one's."""
    for n_outages, n_nodes, wanted_s, wanted_mb in LOGS:
        with tempfile.TemporaryDirectory() as folder:
            write_log(log := Path(folder) / "log.csv", n_outages, n_nodes)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            command = [sys.executable, "-m", "cprsim", "fit", str(log), "--bootstrap", "0"]
            subprocess.run([*command, "--time-unit", "s"], check=True, capture_output=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        print(
            f"cprsim fit of {n_outages:,} outages: {taken:.1f} s, {used.ru_maxrss / 1e3:.0f} MB "
            f"(wanted: {wanted_s:g} s, {wanted_mb:g} MB)",
            flush=True,
        )


def main() -> None:
    whole_logs()
    print(f"one censored fit of {N_TIMES:,} up-times, CPU seconds")
    fitters: dict[str, Callable[[str, Lifetimes], object]] = {
        "cprsim": lambda family, lifetimes: fit(FAMILIES[family], lifetimes),
        "surpyval": surpyval_fit,
        "lifelines": lifelines_fit,
    }
    for family in ("weibull", "gamma"):
        lifetimes = times(family)
        for name, fitter in fitters.items():
            if find_spec(name) is None:
                print(f"  {family:8} {name:10} not installed")
                continue
            slow = name == "lifelines" and family == "gamma"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of their own doing
                taken = seconds(
                    lambda f=fitter, n=family, t=lifetimes: f(n, t), 1 if slow else ROUNDS
                )
            note = "  (generalised gamma)" if slow else ""
            print(f"  {family:8} {name:10} {taken:8.3f}{note}", flush=True)
    if "CPRSIM_DATA" not in os.environ:
        print("LANL: CPRSIM_DATA is not set")
        return
    outages = read_lanl(Path(os.environ["CPRSIM_DATA"]) / LANL, system=2)
    taken = seconds(lambda: fit_failures(outages), 1)
    print(f"LANL system 2, everything, 199 bootstrap samples: {taken:.1f} s (wanted: {WITHIN_S:g})")


if __name__ == "__main__":
    main()
