"""Fits of real logs, to the digits that two independent computations printed (docs/fitting.md)."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from cprsim.failures.outages import Outages
from cprsim.logs.fit.families import FAMILIES, fit
from cprsim.logs.fit.lifetimes import Lifetimes, gaps, repair_times, uptimes
from cprsim.logs.fit.likelihood import Fit
from cprsim.logs.fit.observation import failure_groups
from tests.failures.tidy import read_infinitehbd, read_lanl
from tests.fitting.posterior_check import portrait_of

DOCUMENT = Path(__file__).parents[2] / "docs" / "fitting.md"


def log_likelihood(fitted: Fit, unit_h: float = 1.0) -> float:
    """With times in another unit, the density of each observed time changes by it."""
    return fitted.log_likelihood + fitted.n_observed * np.log(unit_h)


def shape(fitted: Fit) -> str:
    """The shape, such as ``.738 +- .008``."""
    number = fitted.by_name["shape"]
    return f"{number.mean:.3f} +- {number.standard_error:.3f}".replace("0.", ".")


def fits_of(times: Lifetimes) -> list[Fit]:
    """Exponential, Weibull, gamma, lognormal."""
    return [fit(family, times) for family in FAMILIES.values()]


def of_gaps(log: Outages) -> list[str]:
    times = gaps(log)
    n = times.n + times.n_zero
    share = f"{100 * times.n_zero / n:.1f} %" if times.n_zero else "none"
    return [f"{n:,} gaps, {share} zero", f"weibull {shape(fit(FAMILIES['weibull'], times))}"]


def likelihoods(fits: Iterable[Fit]) -> list[str]:
    return [f"{one.family} {log_likelihood(one):.1f}" for one in fits]


def answers(logs: Path) -> Iterator[tuple[str, list[str]]]:
    """Each command of the document, and what a rerun gives."""
    lanl = partial(read_lanl, logs / "lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz")
    log = lanl(system=2)
    exponential, weibull, gamma, lognormal = fits_of(gaps(log))
    yield "`LANL --system 2`", [
        of_gaps(log)[0], f"weibull {log_likelihood(weibull):.1f} (shape {shape(weibull)})",
        f"gamma {log_likelihood(gamma):.1f} ({shape(gamma)})",
        *likelihoods([lognormal, exponential]),
    ]  # fmt: skip
    log = lanl(system=2, period=("2000-01-01", "2006-01-01"))
    per_week = f"per week {portrait_of(log).weekly_dispersion:.2f}"
    yield "`LANL --system 2 --period 2000-01-01..2006-01-01`", [*of_gaps(log), per_week]
    before = lanl(system=2, period=(None, "2000-01-01"))
    yield "`LANL --system 2 --period ..2000-01-01`", of_gaps(before)
    of_node = log.where(log.node == log.node_names.index("2/22"))
    yield "`LANL --system 2 --period 2000-01-01..2006-01-01 --node 2/22`", of_gaps(of_node)
    times = repair_times(lanl())
    best = max(fits_of(times), key=lambda one: one.log_likelihood)
    minutes = 60 * times.duration_h[times.observed]
    yield (
        "`LANL --format lanl` (repairs)",
        [
            f"{best.family} best of {times.n_observed:,} above zero: {log_likelihood(best):.1f}",
            f"in minutes {log_likelihood(best, 1 / 60):,.0f}",
            f"mean {minutes.mean():.0f} min, median {np.median(minutes):.0f}",
        ],
    )
    log = read_infinitehbd(logs / "infinitehbd/fault_trace.json", n_nodes=400)
    exponential, weibull, gamma, lognormal = fits_of(gaps(log))
    scale = f"scale {gamma.by_name['scale_h'].mean:.1f} h, {log_likelihood(gamma):.1f}"
    yield "`InfiniteHBD --nodes 400` (gaps)", [
        of_gaps(log)[0], f"gamma {shape(gamma)}, {scale}",
        *likelihoods([weibull, lognormal, exponential]),
    ]  # fmt: skip
    times = uptimes(log)
    exponential, weibull, gamma, lognormal = fits_of(times)
    in_days = [f"{log_likelihood(one, 24):.1f}" for one in (weibull, lognormal, exponential)]
    days = [f"{one.by_name['scale_h'].mean / 24:,.0f} days" for one in (weibull, gamma)]
    yield (
        "`InfiniteHBD --nodes 400` (up-times)",
        [
            f"{times.n_observed} ended, {times.n - times.n_observed} censored",
            f"weibull {shape(weibull)}, scale {days[0]}",
            f"gamma {shape(gamma)}, {days[1]}",
            f"in days {log_likelihood(gamma, 24):.1f} (gamma), {', '.join(in_days)}",
        ],
    )
    portrait, sizes = portrait_of(log), Counter(failure_groups(log).tolist())
    yield (
        "`InfiniteHBD --nodes 400`",
        [
            f"worst 40 servers: {100 * portrait.concentration:.1f} % of the {log.n_outages} faults",
            f"per week {portrait.weekly_dispersion:.2f}",
            "groups of "
            + ", ".join(f"{size}: {n}" for size, n in sorted(sizes.items()) if size > 1),
        ],
    )


def test_rows_of_the_document_say_what_reruns_give(failure_logs: Path) -> None:
    section = DOCUMENT.read_text("utf-8").split("## Known answers")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| (`.*?) \| (.*) \|$", section, re.MULTILINE))
    for command, given in answers(failure_logs):
        row = rows.pop(command).lower()
        assert [text for text in given if text.lower() not in row] == [], row
    assert not rows
