"""A ledger of jobs: where the hours went, and the worst incidents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any

from cprsim.files import finite_or_none as plain
from cprsim.history.ledger import INFERRED, LEDGER_PARTS, Charged, JobLedger
from cprsim.history.summing import of_all, worst
from cprsim.present.document import (
    Block,
    Cell,
    Column,
    Document,
    Section,
    Table,
    Words,
    row_columns,
)
from cprsim.records import NO_NUMBER, Estimate, interval
from cprsim.results.words import count

MOST_JOBS_BRIEF, MOST_JOBS = 20, 200  # on a terminal, on a page; JSON has all
TITLES = {"useful": "useful work", "lost": "work done again", "wait": "wait for a node"}


def ledger_blocks(jobs: Sequence[JobLedger], notes: Sequence[str]) -> list[Block]:
    """What a terminal shows: the hours, job by job, the worst incidents, and what was inferred."""
    total = of_all(jobs)
    blocks: list[Block] = [
        Words(
            [
                f"{count(len(jobs), 'job')}, {total.wall_h:,.6g} h, {total.n_failures:,} failures, "
                f"{total.n_saves:,} saves. Means; 95 % intervals are of what the logs do not say."
            ]
        ),
        _parts(jobs),
    ]
    if len(jobs) > 1:
        blocks.append(_jobs(jobs, MOST_JOBS_BRIEF))
    if incidents := worst(jobs):
        blocks.append(_incidents(incidents, jobs))
    return [*blocks, Words(inferred_lines(jobs, notes))]


def document_of_ledger(jobs: Sequence[JobLedger], notes: Sequence[str]) -> Document:
    """Everything about the hours of some jobs."""
    total = of_all(jobs)
    useful = total.hours["useful"]
    share = useful.mean / total.wall_h if total.wall_h else 0.0
    lost = {name: one for name, one in total.hours.items() if name != "useful"}
    most = max(lost, key=lambda name: lost[name].mean)
    return Document(
        title=f"Where the hours of {count(len(jobs), 'job')} went",
        question="What did failures and saves cost these jobs?",
        answer=[
            f"{100 * share:.1f} % of {hours_text(total.wall_h)} h were useful work; most of the "
            f"rest ({hours_text(lost[most].mean)} h) was {TITLES.get(most, most)}.",
            *inferred_lines(jobs, notes),
        ],
        sections=[
            Section("All hours", [_parts(jobs)]),
            Section("The worst incidents", [_incidents(worst(jobs), jobs)]),
            Section("Job by job", [_jobs(jobs, MOST_JOBS)]),
        ],
    )


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


# ------------------------------------------------------------------------------ tables


def _parts(jobs: Sequence[JobLedger]) -> Table:
    total = of_all(jobs)
    rows = [
        [
            TITLES.get(name, name),
            hours_text(one.mean),
            ends(one),
            f"{100 * one.mean / total.wall_h if total.wall_h else 0.0:.2f}",
        ]
        for name, one in total.hours.items()
        if one.high > 0 or name == "useful"
    ]
    return Table(
        "Hours by what they went into",
        row_columns("", "hours", "95 %", "% of all"),
        rows,
    )


def _jobs(jobs: Sequence[JobLedger], most: int) -> Table:
    order = sorted(jobs, key=lambda job: job.wall_h - job.useful_h.mean, reverse=True)
    columns = [
        *row_columns("job", "wall h", "ETTR", "95 %", "failures"),
        Column("saves", in_full=True),
        *map(Column, ("lost h", "save h", "down h")),
    ]
    rows: list[Sequence[str | Cell]] = [_job_row(job) for job in order[:most]]
    if len(order) > most:
        rows.append([f"{len(order) - most} more", *[""] * (len(columns) - 1)])
    return Table("By hours that were not useful", columns, rows)


def _job_row(job: JobLedger) -> list[str | Cell]:
    down_h = sum(
        one.mean for name, one in job.parts.items() if name not in ("lost", "save", "degraded")
    )
    return [
        Cell(job.job, job.job[:24]),
        hours_text(job.wall_h),
        Cell(f"{job.ettr.mean:.4f}", f"{job.ettr.mean:.3f}"),
        Cell(ends(job.ettr), ends(job.ettr, 3)),
        str(job.n_failures),
        str(job.n_saves),
        hours_text(job.parts["lost"].mean),
        hours_text(job.parts["save"].mean),
        hours_text(down_h),
    ]


def _incidents(incidents: Sequence[Charged], jobs: Sequence[JobLedger]) -> Table:
    begins_ns = {job.job: job.begins_ns for job in jobs}
    return Table(
        "What they cost, the work done again after them included",
        [
            Column("when (UTC)", is_number=False, brief="worst incidents"),
            Column("job", is_number=False),
            Column("after h", in_full=True),
            Column("hours"),
            Column("95 %"),
            Column("of which [h]", is_number=False, brief="mostly"),
            Column("where", is_number=False),
        ],
        [_incident_row(one, begins_ns[one.job]) for one in incidents],
    )


def _incident_row(one: Charged, begins_ns: int) -> list[str | Cell]:
    parts = ", ".join(f"{name} {hours_text(h)}" for name, h in one.parts_h.items())
    where = " ".join(word for word in (one.node, one.cause) if word)
    return [
        _date(begins_ns + round(one.at_h * 3600e9)),
        Cell(one.job, one.job[:14]),
        f"{one.at_h:.2f}",
        hours_text(one.hours.mean),
        ends(one.hours),
        Cell(parts, max(one.parts_h, key=lambda name: one.parts_h[name], default="")),
        Cell(where, where[:18]),
    ]


def hours_text(value: float) -> str:
    """Hours with four digits."""
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def ends(one: Estimate, digits: int = 4) -> str:
    """The interval; a dash where the log says all."""
    if one.high - one.low <= 1e-6:
        return NO_NUMBER
    return f"{one.low:.{digits}g} to {one.high:.{digits}g}"


def _date(at_ns: int) -> str:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_ns // 1000)
    return at.strftime("%Y-%m-%d %H:%M")


# ------------------------------------------------------------------------------ JSON


def ledger_as_json(jobs: Sequence[JobLedger], notes: Sequence[str]) -> dict[str, Any]:
    """All as one object; numbers that there are not are null."""
    total = of_all(jobs)
    return {
        "n_jobs": len(jobs),
        "wall_h": total.wall_h,
        "n_failures": total.n_failures,
        "n_saves": total.n_saves,
        "hours": {name: interval(one) for name, one in total.hours.items()},
        "jobs": [_job(job) for job in jobs],
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
        "ettr": interval(job.ettr),
        "useful_h": interval(job.useful_h),
        **{f"{name}_h": interval(job.parts[name]) for name in LEDGER_PARTS},
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
        "hours": interval(one.hours),
        "parts_h": one.parts_h,
        "n_failures": one.n_failures,
        "node": one.node,
        "cause": one.cause,
    }
