"""Competing causes: a fit for each, the effect of each, and which one to fix first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import inf, nan, sqrt
from typing import Any

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages
from cprsim.job.records import Estimate
from cprsim.logs.fit.families import WEIBULL, fit
from cprsim.logs.fit.fragments import Fragment, failures_fragment
from cprsim.logs.fit.lifetimes import Age, repair_times, uptimes
from cprsim.logs.fit.likelihood import NotConvergedError
from cprsim.logs.fit.observation import job_rate_per_h
from cprsim.logs.fit.report import Fitted, fit_failures

FEWEST = 5  # failures of a cause that is shown by itself
MOST_CAUSES = 12
OTHER = "(other causes)"
NAMELESS = "(none named)"
SAVE_H = RESTART_H = 5 / 60  # assumed for the price of a failure; not of any log
ONE_SOURCE = (
    "a source of failures for each cause; they are independent, and a failure renews its own",
    "source alone: each was fitted so, from one failure of the cause on a node to the next;",
    "reach, the extent of a failure, is process, gpu, node, rack or all: set it where you know it",
)


OfCause = tuple[dict[str, Any], Fragment | str]
"""A row of numbers, and the fragment of the cause alone, as its source is simulated, or why not."""


def by_cause(fitted: Fitted, age: Age | None = None) -> list[OfCause]:
    """The causes of a log, the one that costs a job most first.

    Raises ParameterError where the log names no two causes with `FEWEST` failures.
    """
    grouped, n_job = _grouped(fitted.outages), fitted.n_job_nodes
    names = grouped.cause_names
    chosen = [
        replace(grouped, chosen=grouped.chosen & (grouped.cause_code == code))
        for code in range(len(names))
    ]
    rates = [job_rate_per_h(outages, n_job) for outages in chosen]
    causes: list[OfCause] = []
    for name, outages, rate in zip(names, chosen, rates, strict=True):
        n, repairs = len(outages.failed_at_h), repair_times(outages)
        n_events, known_h = Estimate.of_count(n), repairs.duration_h[repairs.observed]
        low, high = (rate * n_events.low / n, rate * n_events.high / n) if n else (0.0, inf)
        row: dict[str, Any] = {
            "cause": name,
            "n_failures": n,
            **Estimate(rate, low, high, n).columns("job_rate_per_h"),
            "mean_repair_h": float(known_h.mean()) if len(known_h) else nan,
            "overhead_saved_fraction": overhead(sum(rates)) - overhead(max(sum(rates) - rate, 0)),
        }
        not_fitted = ""
        try:
            weibull = fit(WEIBULL, uptimes(outages, age))
            for number in (*weibull.parameters, weibull.mean):
                row |= number.columns(f"uptime_{number.name}")
        except (ParameterError, NotConvergedError) as error:
            not_fitted = str(error)
        try:
            fitted_alone = fit_failures(
                outages.where(outages.chosen), fitted.origin, n_job_nodes=n_job, age=age,
                n_bootstrap=0,
            )  # fmt: skip
            fragment = failures_fragment(fitted_alone)
            written: Fragment | str = replace(fragment, above=[f"cause: {name}", *fragment.above])
            text = str(written)
        except ParameterError as error:
            written, text = str(error), f"# no fragment: {error}\n"
        causes.append((row | {"not_fitted": not_fitted, "fragment": text}, written))
    return sorted(causes, key=lambda of: (-of[0]["overhead_saved_fraction"], of[0]["cause"]))


def _grouped(outages: Outages) -> Outages:
    """The log with rare causes as one."""
    counts = np.bincount(outages.cause_code[outages.in_window], minlength=len(outages.cause_names))
    order = np.argsort(-counts, kind="stable")[:MOST_CAUSES]
    frequent = [code for code in order.tolist() if counts[code] >= FEWEST]
    if len(frequent) < 2:
        raise ParameterError(
            f"the log names {len(frequent)} cause(s) with {FEWEST} failures; two are needed",
            option="--causes",
        )
    names = [outages.cause_names[code] or NAMELESS for code in frequent]
    code = np.full(len(outages.cause_names), len(frequent), dtype=np.int64)
    code[frequent] = np.arange(len(frequent))
    if (code == len(frequent)).any():
        names.append(OTHER)
    return replace(outages, cause_code=code[outages.cause_code], cause_names=tuple(names))


def overhead(rate_per_h: float) -> float:
    """Overhead of full recovery with saves at Young's interval, a share of useful time."""
    return sqrt(2 * SAVE_H * rate_per_h) + RESTART_H * rate_per_h


def fragment_of_all(causes: Sequence[OfCause]) -> Fragment | str:
    """A source for each cause, the first under `failures`, others under `scopes`; or why not."""
    written = {row["cause"]: fragment for row, fragment in causes if isinstance(fragment, Fragment)}
    if not written:
        return f"no cause can be written: {causes[0][1]}"
    first, *others = written.values()
    name, *names = _scope_names(list(written))
    # the first has all of the section failures
    scopes: list[dict[str, Any]] = [{"name": name, "reach": "node", "share": 1.0}]
    below = list(first.below)
    for name, fragment in zip(names, others, strict=True):
        section = fragment.sections["failures"].items()  # a scope takes no intervals
        source = {key: value for key, value in section if not key.endswith("_95")}
        scopes.append({"name": name, "reach": "node", "failures": source})
        new_lines = [line for line in fragment.above if line not in first.above]
        below += [f"{name}: {line}" for line in (*new_lines, *fragment.below)]
    below += [f"{row['cause']}: no fragment: {why}" for row, why in causes if isinstance(why, str)]
    sections = {**first.sections, "scopes": scopes}
    return Fragment(sections, [*ONE_SOURCE, *first.above], first.remarks, below)


def _scope_names(causes: list[str]) -> list[str]:
    """Names that a scenario takes, one for each cause."""
    names: list[str] = []
    for number, cause in enumerate(causes, 1):
        name = re.sub(r"[^A-Za-z0-9]+", "-", cause).strip("-")[:30]
        name = name if name[:1].isalpha() else f"cause-{name}".rstrip("-")
        names.append(f"{name}-{number}" if name in names else name)
    return names
