"""Causes that compete: a fit for each, what each brings about, and which one to fix first."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any

import numpy as np

from cprsim.errors import ParameterError, one_line
from cprsim.failures.outages import Outages
from cprsim.fitting.correlation import job_rate_per_h
from cprsim.fitting.families import WEIBULL, fit
from cprsim.fitting.fragments import Fragment
from cprsim.fitting.goodness import survival_curve
from cprsim.fitting.lifetimes import FirstUptime, Lifetimes, repair_times, uptimes
from cprsim.fitting.likelihood import Fit, NotConvergedError
from cprsim.records import Bools, Estimate

FEWEST = 5  # failures of a cause that is shown by itself
MOST_CAUSES = 12
OTHER = "(other causes)"
NAMELESS = "(none named)"
AGES_H = (24.0, 168.0, 720.0)  # at which the cumulative incidence is shown
SAVE_H = RESTART_H = 5 / 60  # assumed for the price of a failure; not of any log
ONE_SOURCE = (
    "a source of failures for each cause; they are independent, and a failure renews its own",
    "source alone: each was fitted so, from one failure of the cause on a node to the next;",
    "reach, what a failure kills, is process, gpu, node, rack or all: set it where you know it",
)


@dataclass(frozen=True, slots=True)
class OfCause:
    """What one cause does."""

    name: str
    n_failures: int
    uptimes: Fit | None  # Weibull, other causes censoring; None where it can't be fitted
    why_not: str
    struck: tuple[
        float, ...
    ]  # share of the nodes that it strikes first, by `AGES_H` since a repair
    job_rate_per_h: Estimate  # of failures that strike the job
    mean_repair_h: float  # NaN where no end is known
    saved: float  # overhead of the job that would go with the cause, a share of useful time
    fragment: Fragment | str  # of the cause alone, as its source is simulated, or why there is none

    @property
    def row(self) -> dict[str, Any]:
        """As a row of a table."""
        row = {
            "cause": self.name,
            "n_failures": self.n_failures,
            **self.job_rate_per_h.columns("job_rate_per_h"),
            "mean_repair_h": self.mean_repair_h,
            "overhead_saved_fraction": self.saved,
            **{f"struck_within_{age:g}_h": p for age, p in zip(AGES_H, self.struck, strict=True)},
        }
        for number in (*self.uptimes.parameters, self.uptimes.mean) if self.uptimes else ():
            row |= number.columns(f"uptime_{number.name}")
        none = f"# no fragment: {self.fragment}\n"
        written = none if isinstance(self.fragment, str) else str(self.fragment)
        return row | {"not_fitted": self.why_not, "fragment": written}


def by_cause(
    outages: Outages, n_job: int, first: FirstUptime = FirstUptime.NEW,
    write: Callable[[Outages], Fragment] = lambda _: Fragment({}),
) -> tuple[OfCause, ...]:  # fmt: skip
    """The causes of a log, the one that costs a job most first; `write` makes each one's fragment.

    Raises ParameterError where the log names no two causes with `FEWEST` failures.
    """
    grouped = _grouped(outages)
    names = grouped.cause_names
    chosen = [replace(grouped, chosen=grouped.cause_code == code) for code in range(len(names))]
    times = [uptimes(one, first) for one in chosen]
    rates = [job_rate_per_h(one, n_job) for one in chosen]
    found = []
    for name, one, its, struck, rate in zip(
        names, chosen, times, cumulative_incidence(times, AGES_H), rates, strict=True
    ):
        fitted, why_not = None, ""
        try:
            fitted = fit(WEIBULL, its)
        except (ParameterError, NotConvergedError) as error:
            why_not = str(error)
        try:
            its_own = write(one.where(one.chosen))
            written: Fragment | str = replace(
                its_own, above=[f"cause: {one_line(name)}", *its_own.above]
            )
        except ParameterError as error:
            written = str(error)
        n, repairs = len(one.failed_at_h), repair_times(one)
        seen, known_h = Estimate.of_count(n), repairs.duration_h[repairs.observed]
        low, high = (rate * seen.low / n, rate * seen.high / n) if n else (0.0, inf)
        saved = overhead(sum(rates)) - overhead(max(sum(rates) - rate, 0.0))
        found.append(OfCause(
            name, n, fitted, why_not, struck, Estimate(rate, low, high, n),
            float(known_h.mean()) if len(known_h) else float("nan"), saved, written,
        ))  # fmt: skip
    return tuple(sorted(found, key=lambda one: (-one.saved, one.name)))


def _grouped(outages: Outages) -> Outages:
    """The log with rare causes as one."""
    counts = np.bincount(outages.cause_code[outages.in_window], minlength=len(outages.cause_names))
    order = np.argsort(-counts, kind="stable")[:MOST_CAUSES]
    kept = [code for code in order.tolist() if counts[code] >= FEWEST]
    if len(kept) < 2:
        raise ParameterError(
            f"--causes: the log names {len(kept)} cause(s) with {FEWEST} failures; two are needed"
        )
    names = [outages.cause_names[code] or NAMELESS for code in kept]
    code = np.full(len(outages.cause_names), len(kept), dtype=np.int64)
    code[kept] = np.arange(len(kept))
    if (code == len(kept)).any():
        names.append(OTHER)
    return replace(outages, cause_code=code[outages.cause_code], cause_names=tuple(names))


def cumulative_incidence(
    of_causes: list[Lifetimes], ages_h: Sequence[float]
) -> list[tuple[float, ...]]:
    """Share of nodes that each cause strikes first by some ages (Aalen & Johansen 1978)."""
    times = of_causes[0]
    ended: Bools = np.zeros(times.n, dtype=bool)
    of_cause: list[Bools] = []
    for one in of_causes:
        of_cause.append(one.observed & ~ended)
        ended = ended | one.observed
    curve = survival_curve(replace(times, observed=ended))
    each = curve.before / times.n_at_risk(curve.age_h)
    places = np.searchsorted(curve.age_h, ages_h, side="right")
    struck = [np.searchsorted(curve.age_h, times.duration_h[of]) for of in of_cause]
    shares = [np.cumsum(each * np.bincount(one, minlength=len(each))) for one in struck]
    return [tuple(np.append(0.0, share)[places].tolist()) for share in shares]


def overhead(rate_per_h: float) -> float:
    """Overhead of full recovery with saves at Young's interval, a share of useful time."""
    return sqrt(2 * SAVE_H * rate_per_h) + RESTART_H * rate_per_h


def fragment_of_all(causes: Sequence[OfCause]) -> Fragment:
    """A source for each cause: the first under `failures`, the others under `scopes`."""
    written = {one.name: one.fragment for one in causes if isinstance(one.fragment, Fragment)}
    if not written:
        raise ParameterError(f"no cause can be written: {causes[0].fragment}")
    first = next(iter(written.values()))
    scopes: list[dict[str, object]] = []
    below = list(first.below)
    for name, one in zip(_scope_names(list(written)), written.values(), strict=True):
        if not scopes:
            scopes.append({"name": name, "reach": "node", "share": 1.0})  # of all in `failures`
            continue
        section = one.sections["failures"].items()  # a scope takes no intervals
        source = {key: value for key, value in section if not key.endswith("_95")}
        scopes.append({"name": name, "reach": "node", "failures": source})
        below += [f"{name}: {line}" for line in one.above if line not in first.above]
        below.append(f"{name}: {one.below[0]}")
    below += [
        f"{one_line(one.name)}: no fragment: {one.fragment}"
        for one in causes if isinstance(one.fragment, str)
    ]  # fmt: skip
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
