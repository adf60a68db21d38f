"""A ledger as tables for the terminal, and as one object for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from cprsim.estimate import Estimate
from cprsim.history.ledger import INFERRED, LEDGER_PARTS, Charged, JobLedger
from cprsim.history.summing import Period, of_all, over_time, worst

NO_NUMBER = "–"
MOST_JOBS = 20  # that the terminal shows; JSON has all
TITLES = {"useful": "useful work", "lost": "work done again", "wait": "wait for a node"}


def print_ledger(console: Console, jobs: Sequence[JobLedger], notes: Sequence[str]) -> None:
    """Print where the hours went, job by job, the worst incidents, and what was inferred."""
    total = of_all(jobs)
    _say(
        console,
        f"{len(jobs)} job{'' if len(jobs) == 1 else 's'}, {total.wall_h:,.6g} h, "
        f"{total.n_failures:,} failures, {total.n_saves:,} saves. Means; 95 % intervals are of "
        "what the logs do not say.",
    )
    console.print(_parts_table(total.hours, total.wall_h))
    if len(jobs) > 1:
        console.print(_jobs_table(jobs))
    periods = over_time(jobs)
    if len(periods) > 1:
        console.print(_periods_table(periods))
    incidents = worst(jobs)
    if incidents:
        console.print(_incidents_table(incidents, jobs))
    for line in inferred_lines(jobs, notes):
        _say(console, line)


def inferred_lines(jobs: Sequence[JobLedger], notes: Sequence[str]) -> list[str]:
    """What was left out, and what was inferred, each with its number."""
    counts = {name: sum(job.inferred[name] for job in jobs) for name in INFERRED}
    lines = [f"inferred: {n:,} {INFERRED[name]}" for name, n in counts.items() if n]
    without = [job.job for job in jobs if not isfinite(job.step_s)]
    if without:
        lines.append(
            f"note: {len(without)} job(s) without steps to tell the pace by: work done again is "
            f"not known ({', '.join(without[:3])})"
        )
    return [*(f"note: {one}" for one in notes), *(lines or ["nothing had to be inferred"])]


def _parts_table(hours: dict[str, Estimate], wall_h: float) -> Table:
    table = _table("", "hours", "95 %", "% of all")
    for name, one in hours.items():
        if one.high > 0 or name == "useful":
            share = 100 * one.mean / wall_h if wall_h else 0.0
            table.add_row(TITLES.get(name, name), number(one.mean), ends(one), f"{share:.2f}")
    return table


def _jobs_table(jobs: Sequence[JobLedger]) -> Table:
    table = _table("job", "wall h", "ETTR", "95 %", "failures", "lost h", "save h", "down h")
    order = sorted(jobs, key=lambda job: job.wall_h - job.useful_h.mean, reverse=True)
    for job in order[:MOST_JOBS]:
        ettr, parts = job.ettr, job.parts
        down = sum(
            one.mean for name, one in parts.items() if name not in ("lost", "save", "degraded")
        )
        table.add_row(
            job.job[:24], number(job.wall_h), f"{ettr.mean:.3f}", ends(ettr, 3),
            str(job.n_failures), number(parts["lost"].mean), number(parts["save"].mean),
            number(down),
        )  # fmt: skip
    if len(order) > MOST_JOBS:
        table.add_row(f"{len(order) - MOST_JOBS} more", *[""] * 7)
    return table


def _periods_table(periods: Sequence[Period]) -> Table:
    table = _table("from", "wall h", "ETTR", "steps/h", "failures")
    for one in periods:
        pace = NO_NUMBER if not isfinite(one.steps_per_h) else f"{one.steps_per_h:,.5g}"
        table.add_row(
            _date(one.from_ns), number(one.wall_h), f"{one.ettr:.3f}", pace, str(one.n_failures)
        )
    return table


def _incidents_table(incidents: Sequence[Charged], jobs: Sequence[JobLedger]) -> Table:
    begins = {job.job: job.begins_ns for job in jobs}
    table = _table("worst incidents", "job", "hours", "95 %", "mostly", "where")
    for one in incidents:
        at_ns = begins[one.job] + round(one.at_h * 3600e9)
        part = max(one.parts_h, key=lambda name: one.parts_h[name], default="")
        where = " ".join(word for word in (one.node, one.cause) if word)
        table.add_row(
            _date(at_ns), one.job[:14], number(one.hours.mean), ends(one.hours), part, where[:18]
        )
    return table


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(headings):
        words = place == 0 or heading in ("job", "mostly", "where")
        table.add_column(heading, justify="left" if words else "right")
    return table


def number(value: float) -> str:
    """Four digits."""
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def ends(one: Estimate, digits: int = 4) -> str:
    """The interval; a dash where the log says all."""
    if one.high - one.low <= 1e-6:
        return NO_NUMBER
    return f"{one.low:.{digits}g} to {one.high:.{digits}g}"


def _date(at_ns: int) -> str:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_ns // 1000)
    return at.strftime("%Y-%m-%d %H:%M")


def ledger_as_json(jobs: Sequence[JobLedger], notes: Sequence[str]) -> dict[str, Any]:
    """All as one object; numbers that there are not are null."""
    total = of_all(jobs)
    return {
        "n_jobs": len(jobs),
        "wall_h": total.wall_h,
        "n_failures": total.n_failures,
        "n_saves": total.n_saves,
        "hours": {name: triple(one) for name, one in total.hours.items()},
        "jobs": [_job(job) for job in jobs],
        "over_time": [
            {
                "from_unix_nano": one.from_ns,
                "wall_h": one.wall_h,
                "ettr": plain(one.ettr),
                "steps_per_h": plain(one.steps_per_h),
                "n_failures": one.n_failures,
            }
            for one in over_time(jobs)
        ],
        "worst_incidents": [_incident(one) for one in worst(jobs)],
        "inferred": {name: sum(job.inferred[name] for job in jobs) for name in INFERRED},
        "notes": list(notes),
    }


def _job(job: JobLedger) -> dict[str, Any]:
    return {
        "job": job.job,
        "begins_unix_nano": job.begins_ns,
        "ended": job.ended,
        "finished": job.finished,
        "wall_h": job.wall_h,
        "ettr": triple(job.ettr),
        "useful_h": triple(job.useful_h),
        **{f"{name}_h": triple(job.parts[name]) for name in LEDGER_PARTS},
        "n_failures": job.n_failures,
        "n_saves": job.n_saves,
        "n_steps": job.n_steps,
        "step_seconds": plain(job.step_s),
        "inferred": job.inferred,
    }


def _incident(one: Charged) -> dict[str, Any]:
    return {
        "job": one.job,
        "at_h": one.at_h,
        "hours": triple(one.hours),
        "parts_h": one.parts_h,
        "n_failures": one.n_failures,
        "node": one.node,
        "cause": one.cause,
    }


def triple(one: Estimate) -> dict[str, float | None]:
    """Mean and interval."""
    return {"mean": plain(one.mean), "low": plain(one.low), "high": plain(one.high)}


def plain(value: float) -> float | None:
    """A number, or null where there is none."""
    return float(value) if isfinite(value) else None


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
