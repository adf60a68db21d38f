"""Fits of real logs, to the digits that two independent computations printed (docs/fitting.md)."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cprsim.fitting.families import FAMILIES, fit
from cprsim.fitting.lifetimes import Lifetimes, gaps, repair_times, uptimes
from cprsim.fitting.likelihood import Fit
from cprsim.fitting.observation import togetherness
from tests.failures.tidy import read_infinitehbd, read_lanl
from tests.fitting.posterior_check import portrait_of

DAY, MINUTE = 24.0, 1 / 60
DOCUMENT = Path(__file__).parents[2] / "docs" / "fitting.md"
FROM_2000 = {"system": 2, "period": ("2000-01-01", "2006-01-01")}


def documented() -> dict[str, str]:
    """Answers by command, as the document has them."""
    section = DOCUMENT.read_text("utf-8").split("## Known answers")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| (`.*?) \| (.*) \|$", section, re.MULTILINE))


def log_likelihood(fitted: Fit, unit_h: float = 1.0) -> str:
    """With times in another unit, the density of each observed time changes by it."""
    return f"{fitted.log_likelihood + fitted.n_observed * math.log(unit_h):.1f}"


def with_error(fitted: Fit) -> str:
    """The shape, such as ``.738 +- .008``."""
    shape = fitted.by_name["shape"]
    numbers = (f"{one:.3f}".removeprefix("0") for one in (shape.mean, shape.standard_error))
    return " +- ".join(numbers)


def n_gaps(lifetimes: Lifetimes) -> str:
    n = lifetimes.n + lifetimes.n_zero
    share = f"{100 * lifetimes.n_zero / n:.1f} %" if lifetimes.n_zero else "none"
    return f"{n:,} gaps, {share} zero"


def of_lanl(logs: Path, node: str | None = None, **asked: Any) -> list[str]:
    log = read_lanl(logs / "lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz", **asked)
    if not asked:
        times = repair_times(log)
        found = {name: fit(family, times) for name, family in FAMILIES.items()}
        best = max(found, key=lambda name: found[name].log_likelihood)
        minutes = times.duration_h[times.observed] / MINUTE
        return [
            f"{best} best of {times.n_observed:,} above zero: {log_likelihood(found[best])}",
            f"in minutes {float(log_likelihood(found[best], MINUTE)):,.0f}",
            f"mean {minutes.mean():.0f} min, median {np.median(minutes):.0f}",
        ]
    if node is not None:
        log = log.where(log.node == log.node_names.index(node))
    times = gaps(log)
    found = {name: fit(family, times) for name, family in FAMILIES.items()}
    said = [n_gaps(times), with_error(found["weibull"])]
    if asked == {"system": 2}:
        said.append(with_error(found["gamma"]))
        said += [f"{name} {log_likelihood(one)}" for name, one in found.items()]
    if node is not None:  # likelihood ratio of one parameter: 3.84 would do
        assert 2 * (found["weibull"].log_likelihood - found["exponential"].log_likelihood) > 30
    elif asked == FROM_2000:
        said.append(f"per week {portrait_of(log).weekly_dispersion:.2f}")
    return said


def of_infinitehbd(logs: Path, what: str) -> list[str]:
    log = read_infinitehbd(logs / "infinitehbd/fault_trace.json", n_nodes=400)
    if what == "groups":
        drawn, sizes = portrait_of(log), Counter(togetherness(log).larger.tolist())
        return [
            f"worst 40 servers: {100 * drawn.concentration:.1f} % of the {log.n_outages} faults",
            f"per week {drawn.weekly_dispersion:.2f}",
            "groups of " + ", ".join(f"{size}: {n}" for size, n in sorted(sizes.items())),
        ]
    times, unit_h = (gaps(log), 1.0) if what == "gaps" else (uptimes(log), DAY)
    found = {name: fit(family, times) for name, family in FAMILIES.items()}
    weibull, gamma = found["weibull"], found["gamma"]
    likelihood = {name: log_likelihood(one, unit_h) for name, one in found.items()}
    said = [with_error(gamma)]
    if what == "gaps":
        said.append(f"scale {gamma.by_name['scale_h'].mean:.1f} h, {likelihood.pop('gamma')}")
        return [*said, n_gaps(times), *(f"{name} {one}" for name, one in likelihood.items())]
    order = (f"{likelihood['gamma']} (gamma)", *(likelihood[n] for n in ("weibull", "lognormal")))
    assert f"{times.total_h / DAY:.0f}" == "136361"
    return [
        *said, ", ".join([*order, likelihood["exponential"]]),
        f"{times.n_observed} ended, {times.n - times.n_observed} censored",
        f"{with_error(weibull)} (clustered .{weibull.by_name['shape'].clustered_error * 1e3:03.0f}",
        *(f"{one.by_name['scale_h'].mean / DAY:,.0f} days" for one in (weibull, gamma)),
    ]  # fmt: skip


ANSWERS: dict[str, Any] = {
    "`LANL --system 2`": lambda logs: of_lanl(logs, system=2),
    "`LANL --system 2 --period 2000-01-01..2006-01-01`": lambda logs: of_lanl(logs, **FROM_2000),
    "`LANL --system 2 --period ..2000-01-01`": lambda logs: of_lanl(
        logs, system=2, period=(None, "2000-01-01")
    ),
    "`LANL --system 2 --period 2000-01-01..2006-01-01 --node 2/22`": lambda logs: of_lanl(
        logs, "2/22", **FROM_2000
    ),
    "`LANL --format lanl` (repairs)": of_lanl,
    "`InfiniteHBD --nodes 400` (gaps)": lambda logs: of_infinitehbd(logs, "gaps"),
    "`InfiniteHBD --nodes 400` (up-times)": lambda logs: of_infinitehbd(logs, "uptimes"),
    "`InfiniteHBD --nodes 400`": lambda logs: of_infinitehbd(logs, "groups"),
}


def test_every_row_of_the_document_has_a_rerun() -> None:
    assert list(documented()) == list(ANSWERS)


@pytest.mark.parametrize("command", ANSWERS)
def test_a_row_says_what_a_rerun_gives(failure_logs: Path, command: str) -> None:
    row = documented()[command].lower()
    assert [said for said in ANSWERS[command](failure_logs) if said.lower() not in row] == []
