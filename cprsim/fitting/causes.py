"""Causes that compete: a fit for each, what each brings about, and which one to fix first."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np

from cprsim.errors import ParameterError, one_line
from cprsim.failures.outages import Outages
from cprsim.fitting.families import WEIBULL, Fit, fit
from cprsim.fitting.fragments import fragment
from cprsim.fitting.lifetimes import FirstUptime, Lifetimes, repair_times, uptimes
from cprsim.fitting.likelihood import NotConvergedError
from cprsim.fitting.observation import Observation
from cprsim.fitting.trace_fit import fit_trace, job_rate_per_h
from cprsim.records import Bools, Estimate, Floats, Ints

FEWEST = 5  # failures of a cause that is shown by itself
MOST_CAUSES = 12
OTHER = "(other causes)"
NAMELESS = "(none named)"
AGES_H = (24.0, 168.0, 720.0)  # at which the cumulative incidence is shown
SAVE_H = RESTART_H = 5 / 60  # assumed for the price of a failure; not of any log


@dataclass(frozen=True, slots=True)
class Incidence:
    """How many nodes a cause has struck first, by age since the last repair."""

    age_h: Floats  # (n_ages,) increasing
    share: Floats  # (n_ages,) just after each age

    def at(self, age_h: float) -> float:
        """The share by an age [h]."""
        place = int(np.searchsorted(self.age_h, age_h, side="right"))
        return float(self.share[place - 1]) if place else 0.0


@dataclass(frozen=True, slots=True)
class OfCause:
    """What one cause does."""

    name: str
    outages: Outages  # all, those of the cause `chosen`
    n_failures: int
    uptimes: Fit | None  # Weibull, other causes censoring; None where it can't be fitted
    why_not: str
    incidence: Incidence
    job_rate_per_h: Estimate  # of failures that strike the job
    mean_repair_h: float  # NaN where no end is known
    saved: float  # overhead of the job that would go with the cause, a share of useful time


def by_cause(
    outages: Outages, n_job: int, first: FirstUptime = FirstUptime.NEW
) -> tuple[OfCause, ...]:
    """The causes of a log, the one that costs a job most first.

    Causes with fewer than `FEWEST` failures, and those beyond `MOST_CAUSES`, are one together.
    Assumed is that causes do not depend on each other, and that every repair renews the node.

    Raises ParameterError where the log names no two causes with `FEWEST` failures.
    """
    grouped = _grouped(outages)
    chosen = [
        replace(grouped, chosen=grouped.cause_code == c) for c in range(len(grouped.cause_names))
    ]
    incidences = cumulative_incidence([uptimes(one, first) for one in chosen])
    rates = [job_rate_per_h(one, n_job) for one in chosen]
    found = [
        _of_cause(one, name, incidence, rate, sum(rates), first)
        for one, name, incidence, rate in zip(
            chosen, grouped.cause_names, incidences, rates, strict=True
        )
    ]
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


def cumulative_incidence(of_causes: list[Lifetimes]) -> list[Incidence]:
    """The share of nodes that each cause strikes first (Aalen & Johansen 1978), with late entry."""
    times = of_causes[0]
    ended: Bools = np.zeros(times.n, dtype=bool)
    of_cause: list[Bools] = []
    for one in of_causes:
        of_cause.append(one.observed & ~ended)
        ended = ended | one.observed
    ages, n_ended = np.unique(times.duration_h[ended], return_counts=True)
    at_risk = _at_risk(times, ages)
    survival = np.cumprod(1 - n_ended / at_risk)
    before = np.append(1.0, survival[:-1])
    return [
        Incidence(ages, np.cumsum(before * _counted(times.duration_h[of], ages) / at_risk))
        for of in of_cause
    ]


def _at_risk(times: Lifetimes, ages: Floats) -> Ints:
    left = np.searchsorted(np.sort(times.duration_h), ages, side="left")
    return np.searchsorted(np.sort(times.entry_h), ages, side="left") - left


def _counted(ended_h: Floats, ages: Floats) -> Ints:
    return np.bincount(np.searchsorted(ages, ended_h), minlength=len(ages))


def _of_cause(
    outages: Outages, name: str, incidence: Incidence, rate: float, all_rates: float,
    first: FirstUptime,
) -> OfCause:  # fmt: skip
    n = int((outages.in_window & outages.chosen).sum())
    seen = Estimate.of_count(n)
    fitted, why_not = None, ""
    try:
        fitted = fit(WEIBULL, uptimes(outages, first))
    except (ParameterError, NotConvergedError) as error:
        why_not = str(error)
    repairs = repair_times(outages)
    known = repairs.duration_h[repairs.observed]
    return OfCause(
        name, outages, n, fitted, why_not, incidence,
        Estimate(
            rate, rate * seen.low / n if n else 0.0, rate * seen.high / n if n else inf, n
        ),
        float(known.mean()) if len(known) else float("nan"),
        overhead(all_rates) - overhead(max(all_rates - rate, 0.0)),
    )  # fmt: skip


def overhead(rate_per_h: float) -> float:
    """Overhead of full recovery with saves at Young's interval, a share of useful time.

    Saves and lost work come to ``sqrt(2 save rate)``, restarts to ``restart rate`` (first order:
    exact where both are small).
    """
    return sqrt(2 * SAVE_H * rate_per_h) + RESTART_H * rate_per_h


# ------------------------------------------------------------------------------- fragments

INTERVALS = ("mtbf_95", "spread_95")
ONE_SOURCE = (
    "# a source of failures for each cause; they are independent, and a failure renews its own",
    "# source alone: each was fitted so, from one failure of the cause on a node to the next;",
    "# reach, what a failure kills, is process, gpu, node, rack or all: set it where you know it",
)


@dataclass(frozen=True, slots=True)
class ByCause:
    """The causes of a log, and the fragments of each alone and of all together."""

    causes: tuple[OfCause, ...]  # the one to fix first on top
    fragments: tuple[str | ParameterError, ...]  # of each alone, or why there is none
    fragment: str | None  # the sections `failures` and `scopes` with a source for each


def taken_apart(
    outages: Outages, n_job: int, first: FirstUptime, origin: str, observed: Observation
) -> ByCause:
    """The log by cause; parameters and errors as in `by_cause`."""
    causes = by_cause(outages, n_job, first)
    written = [_fragment_of(one, origin, n_job, observed) for one in causes]
    names = [one.name for one in causes]
    return ByCause(causes, tuple(written), _fragment_of_all(names, written))


def _fragment_of(
    one: OfCause, origin: str, n_job: int, observed: Observation
) -> str | ParameterError:
    """Fitted to the cause's failures alone, as its source is simulated: no other renews it."""
    try:
        alone = one.outages.where(one.outages.chosen)
        fitted = fit_trace(alone, n_bootstrap=0, observed=observed)
        return f"# cause: {one_line(one.name)}\n{fragment(fitted, origin, n_job)}"
    except ParameterError as error:
        return error


def _fragment_of_all(causes: list[str], written: list[str | ParameterError]) -> str | None:
    """The first stands under `failures`, the others under their scopes; None where none is."""
    pairs = list(zip(causes, written, strict=True))
    known = {cause: text.splitlines() for cause, text in pairs if isinstance(text, str)}
    if not known:
        return None
    lines = [*ONE_SOURCE, *next(iter(known.values())), "scopes:"]
    for its, name in zip(known.values(), _scope_names(list(known)), strict=True):
        if lines[-1] == "scopes:":
            scope = f"name: {name}, reach: node, share: 1.0"
            lines.append(f"  - {{{scope}}}  # all of the section failures")
        else:
            lines += [line for line in its if line.startswith("#")] + _as_scope(name, its)
    lines += [
        f"# {one_line(cause)}: no fragment: {why}" for cause, why in pairs if cause not in known
    ]
    return "\n".join(lines) + "\n"


def _as_scope(name: str, lines: list[str]) -> list[str]:
    """A fragment as an entry of `scopes`, which takes no intervals: they become comments."""
    begin = lines.index("failures:")
    section = [line for line in lines[begin:] if not line.startswith("#")]
    return [
        f"  - name: {name}",
        "    reach: node",
        *(f"    {'# ' if line.strip().startswith(INTERVALS) else ''}{line}" for line in section),
    ]


def _scope_names(causes: list[str]) -> list[str]:
    """Names that a scenario takes, one for each cause."""
    names: list[str] = []
    for number, cause in enumerate(causes, 1):
        name = re.sub(r"[^A-Za-z0-9]+", "-", cause).strip("-")[:30]
        name = name if name[:1].isalpha() else f"cause-{name}".rstrip("-")
        names.append(f"{name}-{number}" if name in names else name)
    return names
