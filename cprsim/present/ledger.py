"""A ledger of jobs: where the hours went, and the worst incidents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any

import pandas as pd

from cprsim.history.ledger import INFERRED, LEDGER_PARTS, Charged, JobLedger
from cprsim.history.summing import of_all, worst
from cprsim.present.answer import Answer
from cprsim.present.document import Document, Section, Table, row_columns, word_columns
from cprsim.records import NO_NUMBER, Estimate
from cprsim.results.words import count

MOST_INCIDENTS, MOST_JOBS = 20, 200  # on a page; JSON has all
TITLES = {"useful": "useful work", "lost": "work done again", "wait": "wait for a node"}


def answer_of_ledger(jobs: Sequence[JobLedger], notes: Sequence[str]) -> Answer:
    """The hours of some jobs; notes are of what was left out of their logs."""
    total, name = of_all(jobs), count(len(jobs), "job")
    inferred = {name: sum(job.inferred[name] for job in jobs) for name in INFERRED}
    incidents = worst(jobs, sum(len(job.incidents) for job in jobs))
    return Answer(
        "ledger",
        name,
        lambda: _document(jobs, [*_careful(jobs), *notes], inferred, incidents),
        frames={
            "hours": pd.DataFrame(
                [{"part": part, **one.columns("hours")} for part, one in total.hours.items()]
            ),
            "jobs": pd.DataFrame([_job(job) for job in jobs]),
            "incidents": pd.DataFrame([_incident(one) for one in incidents]),
        },
        values={
            "n_jobs": len(jobs),
            "wall_h": total.wall_h,
            "n_failures": total.n_failures,
            "n_saves": total.n_saves,
            "inferred": inferred,
            "notes": list(notes),
        },
    )


def _job(job: JobLedger) -> dict[str, Any]:
    hours = {"useful": job.useful_h, **{part: job.parts[part] for part in LEDGER_PARTS}}
    return {
        "job": job.job,
        "begins_unix_ns": job.begins_ns,
        "ended": job.ended,
        "finished": job.finished,
        "wall_h": job.wall_h,
        **job.ettr.columns("ettr"),
        **{k: v for part, one in hours.items() for k, v in one.columns(f"{part}_h").items()},
        "n_failures": job.n_failures,
        "n_saves": job.n_saves,
        "n_steps": job.n_steps,
        "step_s": job.step_s,
        **{f"inferred_{name}": job.inferred[name] for name in INFERRED},
    }


def _incident(one: Charged) -> dict[str, Any]:
    return {
        "job": one.job,
        "at_h": one.at_h,
        **one.hours.columns("hours"),
        "n_failures": one.n_failures,
        "node": one.node,
        "cause": one.cause,
        **{f"{part}_h": hours for part, hours in one.parts_h.items()},
    }


# ------------------------------------------------------------------------------ the document


def _document(
    jobs: Sequence[JobLedger],
    notes: Sequence[str],
    inferred: dict[str, int],
    incidents: Sequence[Charged],
) -> Document:
    total = of_all(jobs)
    useful = total.hours["useful"]
    share = useful.mean / total.wall_h if total.wall_h else 0.0
    most = max(
        (part for part in total.hours if part != "useful"), key=lambda p: total.hours[p].mean
    )
    said = [f"Inferred: {n:,} {INFERRED[name]}." for name, n in inferred.items() if n]
    return Document(
        title=f"Where the hours of {count(len(jobs), 'job')} went",
        question="What did failures and saves cost these jobs?",
        answer=[
            f"{100 * share:.1f} % of {hours_text(total.wall_h)} h were useful work; most of the "
            f"rest ({hours_text(total.hours[most].mean)} h) was {TITLES.get(most, most)}.",
            f"{count(len(jobs), 'job')}, {total.n_failures:,} failures, {total.n_saves:,} saves. "
            "95 % intervals are of what the logs do not say.",
        ],
        table=_parts(total.hours, total.wall_h),
        remarks=[*notes, *(said or ["Nothing had to be inferred."])],
        sections=[
            Section("The worst incidents", [_incidents(incidents[:MOST_INCIDENTS], jobs)]),
            Section("Job by job", [_jobs(jobs)]),
        ],
    )


def _careful(jobs: Sequence[JobLedger]) -> list[str]:
    without = [job.job for job in jobs if not isfinite(job.step_s)]
    if not without:
        return []
    return [
        f"{count(len(without), 'job')} without steps to tell the pace by: work done again is not "
        f"known ({', '.join(without[:3])})."
    ]


def _parts(hours: dict[str, Estimate], wall_h: float) -> Table:
    rows = [
        [TITLES.get(part, part), hours_text(one.mean), ends(one),
         f"{100 * one.mean / wall_h if wall_h else 0.0:.2f}"]
        for part, one in hours.items()
        if one.high > 0 or part == "useful"
    ]  # fmt: skip
    return Table("Hours of all jobs", row_columns("", "hours", "95 %", "% of all"), rows)


def _jobs(jobs: Sequence[JobLedger]) -> Table:
    order = sorted(jobs, key=lambda job: job.wall_h - job.useful_h.mean, reverse=True)
    rows = [
        [
            job.job,
            hours_text(job.wall_h),
            f"{job.ettr.mean:.4f}",
            ends(job.ettr),
            str(job.n_failures),
            str(job.n_saves),
            hours_text(job.parts["lost"].mean),
            hours_text(job.parts["save"].mean),
            hours_text(_down_h(job)),
        ]
        for job in order[:MOST_JOBS]
    ]
    left = f"; {len(order) - MOST_JOBS} more are in the JSON" if len(order) > MOST_JOBS else ""
    names = ("wall h", "ETTR", "95 %", "failures", "saves", "lost h", "save h", "down h")
    return Table(f"By hours that were not useful{left}", row_columns("job", *names), rows)


def _down_h(job: JobLedger) -> float:
    beside = ("lost", "save", "degraded")
    return sum(one.mean for part, one in job.parts.items() if part not in beside)


def _incidents(incidents: Sequence[Charged], jobs: Sequence[JobLedger]) -> Table:
    begins_ns = {job.job: job.begins_ns for job in jobs}
    rows = [
        [
            _date(begins_ns[one.job] + round(one.at_h * 3600e9)),
            one.job,
            hours_text(one.hours.mean),
            ends(one.hours),
            ", ".join(f"{part} {hours_text(h)}" for part, h in one.parts_h.items()),
            " ".join(word for word in (one.node, one.cause) if word),
        ]
        for one in incidents
    ]
    columns = [*word_columns("when (UTC)", "job"), *row_columns("", "hours", "95 %")[1:]]
    return Table(
        "What they cost, the work done again after them included",
        [*columns, *word_columns("of which [h]", "where")],
        rows,
    )


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
