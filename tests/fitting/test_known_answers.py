"""Fits of real logs, to the digits that two independent computations printed (docs/fitting.md)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cprsim.failures.outages import Outages
from cprsim.fitting.families import FAMILIES, fit
from cprsim.fitting.lifetimes import Lifetimes, gaps, repair_times, uptimes
from cprsim.fitting.likelihood import Fit
from cprsim.fitting.observation import togetherness
from tests.failures.tidy import read_infinitehbd, read_lanl
from tests.fitting.posterior_check import portrait_of

LANL_FILE = "lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz"
HBD_FILE = "infinitehbd/fault_trace.json"
DAY, MINUTE = 24.0, 1 / 60
DOCUMENT = Path(__file__).parents[2] / "docs" / "fitting.md"
YEARS_2000 = ("2000-01-01", "2006-01-01")


def documented() -> dict[str, str]:
    """Answers by command, as the document has them."""
    section = DOCUMENT.read_text("utf-8").split("## Known answers")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", section, re.MULTILINE)
    return dict(rows)


def fits(lifetimes: Lifetimes) -> dict[str, Fit]:
    return {name: fit(family, lifetimes) for name, family in FAMILIES.items()}


def log_likelihood(fitted: Fit, unit_h: float = 1.0) -> str:
    """With times in another unit, the density of each observed time changes by it."""
    return f"{fitted.log_likelihood + fitted.n_observed * math.log(unit_h):.1f}"


def short(value: float, digits: int = 3) -> str:
    """``.738``."""
    return f"{value:.{digits}f}".removeprefix("0")


def shape(fitted: Fit) -> str:
    estimate = fitted.by_name["shape"]
    return f"{short(estimate.mean)} +- {short(estimate.standard_error)}"


def zero_gaps(lifetimes: Lifetimes, share: str | None = None) -> str:
    n = lifetimes.n + lifetimes.n_zero
    return f"{n:,} gaps, {share or f'{100 * lifetimes.n_zero / n:.1f} %'} zero"


def lanl(logs: Path, period: tuple[str | None, str | None] = (None, None)) -> Outages:
    return read_lanl(logs / LANL_FILE, system=2, period=period)


def all_years(logs: Path) -> str:
    lifetimes = gaps(lanl(logs))
    found = fits(lifetimes)
    likelihoods = {name: log_likelihood(one) for name, one in found.items()}
    return (
        f"{zero_gaps(lifetimes)}; log-likelihood Weibull {likelihoods['weibull']} (shape "
        f"{shape(found['weibull'])}), gamma {likelihoods['gamma']} ({shape(found['gamma'])}), "
        f"lognormal {likelihoods['lognormal']}, exponential {likelihoods['exponential']}"
    )


def from_2000(logs: Path) -> str:
    outages = lanl(logs, YEARS_2000)
    lifetimes = gaps(outages)
    return (
        f"{zero_gaps(lifetimes)}; Weibull {shape(fit(FAMILIES['weibull'], lifetimes))} (the other "
        "computation prints .012, which expected information gives); per week "
        f"{portrait_of(outages).weekly_dispersion:.2f}"
    )


def to_2000(logs: Path) -> str:
    lifetimes = gaps(lanl(logs, (None, "2000-01-01")))
    return f"{zero_gaps(lifetimes)}; Weibull {shape(fit(FAMILIES['weibull'], lifetimes))}"


def node_22(logs: Path) -> str:
    outages = lanl(logs, YEARS_2000)
    lifetimes = gaps(outages.where(outages.node == outages.node_names.index("2/22")))
    found = fits(lifetimes)
    gain = found["weibull"].log_likelihood - found["exponential"].log_likelihood
    assert 2 * gain > 30  # likelihood ratio of one parameter: 3.84 would do
    none = {0: "none"}.get(lifetimes.n_zero, str(lifetimes.n_zero))
    return f"{zero_gaps(lifetimes, none)}; Weibull {shape(found['weibull'])}"


def all_repairs(logs: Path) -> str:
    lifetimes = repair_times(read_lanl(logs / LANL_FILE))
    found = fits(lifetimes)
    best = max(found, key=lambda name: found[name].log_likelihood)
    minutes = float(log_likelihood(found[best], MINUTE))
    times = lifetimes.duration_h[lifetimes.observed] / MINUTE
    return (
        f"{best} best of {lifetimes.n_observed:,} above zero: {log_likelihood(found[best])}, in "
        f"minutes {minutes:,.0f}; mean {times.mean():.0f} min, median {np.median(times):.0f}"
    )


def hbd(logs: Path) -> Outages:
    return read_infinitehbd(logs / HBD_FILE, n_nodes=400)


def hbd_gaps(logs: Path) -> str:
    lifetimes = gaps(hbd(logs))
    found = fits(lifetimes)
    likelihoods = {name: log_likelihood(one) for name, one in found.items()}
    return (
        f"{zero_gaps(lifetimes)}; gamma {shape(found['gamma'])}, scale "
        f"{found['gamma'].by_name['scale_h'].mean:.1f} h, {likelihoods['gamma']}; Weibull "
        f"{likelihoods['weibull']}; lognormal {likelihoods['lognormal']}; exponential "
        f"{likelihoods['exponential']}"
    )


def hbd_uptimes(logs: Path) -> str:
    lifetimes = uptimes(hbd(logs))
    assert f"{lifetimes.total_h / DAY:.0f}" == "136361"
    found = fits(lifetimes)
    days = [log_likelihood(found[n], DAY) for n in ("gamma", "weibull", "lognormal", "exponential")]
    weibull, gamma = found["weibull"], found["gamma"]
    scales = [one.by_name["scale_h"].mean / DAY for one in (weibull, gamma)]
    return (
        f"{lifetimes.n_observed} ended, {lifetimes.n - lifetimes.n_observed} censored; Weibull "
        f"{shape(weibull)} (clustered {short(weibull.by_name['shape'].clustered_error)}), scale "
        f"{scales[0]:,.0f} days; gamma {shape(gamma)}, {scales[1]:,.0f} days; in days {days[0]} "
        f"(gamma), {', '.join(days[1:])}"
    )


def hbd_groups(logs: Path) -> str:
    outages = hbd(logs)
    drawn, sizes = portrait_of(outages), Counter(togetherness(outages).larger.tolist())
    (first, n), *rest = sorted(sizes.items())
    groups = ", ".join([f"groups of {first}: {n}", *(f"{size}: {n}" for size, n in rest)])
    return (
        f"worst 40 servers: {100 * drawn.concentration:.1f} % of the {outages.n_outages} faults; "
        f"per week {drawn.weekly_dispersion:.2f}; {groups}"
    )


ANSWERS: dict[str, Callable[[Path], str]] = {
    "`LANL --system 2`": all_years,
    "`LANL --system 2 --period 2000-01-01..2006-01-01`": from_2000,
    "`LANL --system 2 --period ..2000-01-01`": to_2000,
    "`LANL --system 2 --period 2000-01-01..2006-01-01 --node 2/22`": node_22,
    "`LANL --format lanl` (repairs)": all_repairs,
    "`InfiniteHBD --nodes 400` (gaps)": hbd_gaps,
    "`InfiniteHBD --nodes 400` (up-times)": hbd_uptimes,
    "`InfiniteHBD --nodes 400`": hbd_groups,
}


def test_every_row_of_the_document_has_a_rerun() -> None:
    assert list(documented()) == list(ANSWERS)


@pytest.mark.parametrize("command", ANSWERS)
def test_a_row_says_what_a_rerun_gives(failure_logs: Path, command: str) -> None:
    assert ANSWERS[command](failure_logs) == documented()[command]
