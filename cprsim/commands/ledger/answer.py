"""A ledger of jobs: where the hours went, and the worst incidents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, isnan
from typing import Any

import pandas as pd

from cprsim.logs.jobs.ledger import INFERRED, LEDGER_PARTS, Charged, JobLedger, total_hours
from cprsim.pages.answer import Answer
from cprsim.pages.document import Document, Section, Table
from cprsim.results.metrics import records_of
from cprsim.results.words import count, ends, percent, percent_number, significant, suited

MOST_INCIDENTS, MOST_JOBS = 20, 200  # on a page; JSON has all
PART_TITLES = {"useful": "useful work", "lost": "lost work", "wait": "wait for a node"}


def answer_of_ledger(jobs: Sequence[JobLedger], notes: Sequence[str]) -> Answer:
    """The answer of a ledger of some jobs; `notes` name the skipped parts of their logs."""
    hours = [{"part": name, **total.columns("hours")} for name, total in total_hours(jobs).items()]
    charged = sorted(
        (incident for job in jobs for incident in job.incidents),
        key=lambda incident: -incident.hours.mean,
    )
    frames = {
        "hours": pd.DataFrame(hours),
        "jobs": pd.DataFrame([_job(job) for job in jobs]),
        "incidents": pd.DataFrame([_incident(incident) for incident in charged]),
    }
    values = {
        "n_jobs": len(jobs),
        "wall_h": sum(job.wall_h for job in jobs),
        "n_failures": sum(job.n_failures for job in jobs),
        "n_saves": sum(job.n_saves for job in jobs),
        "inferred": {name: sum(job.inferred[name] for job in jobs) for name in INFERRED},
        "notes": list(notes),
    }
    name = count(len(jobs), "job")
    return Answer("ledger", name, lambda: _document(jobs, frames, values), frames, values)


def _job(job: JobLedger) -> dict[str, Any]:
    hours = {"useful": job.useful_h, **job.parts}
    return {
        "job": job.job,
        "begins_unix_ns": job.begins_ns,
        "ended": job.ended,
        "finished": job.finished,
        "wall_h": job.wall_h,
        **job.ettr.columns("ettr"),
        **{k: v for name, h in hours.items() for k, v in h.columns(f"{name}_h").items()},
        "n_failures": job.n_failures,
        "n_saves": job.n_saves,
        "n_steps": job.n_steps,
        "step_s": job.step_s,
        **{f"inferred_{name}": job.inferred[name] for name in INFERRED},
    }


def _incident(incident: Charged) -> dict[str, Any]:
    return {
        "job": incident.job,
        "at_h": incident.at_h,
        **incident.hours.columns("hours"),
        "n_failures": incident.n_failures,
        "node": incident.node,
        "cause": incident.cause,
        **{f"{part}_h": hours for part, hours in incident.parts_h.items()},
    }


# ------------------------------------------------------------------------------ the document


def _document(
    jobs: Sequence[JobLedger], frames: dict[str, pd.DataFrame], values: dict[str, Any]
) -> Document:
    hours, wall_h, name = records_of(frames["hours"]), values["wall_h"], count(len(jobs), "job")
    useful, *others = hours
    most = max(others, key=lambda row: float(row["hours"]) if isfinite(row["hours"]) else 0.0)
    (save,) = (row for row in others if row["part"] == "save")
    share = percent(useful["hours"] / wall_h if wall_h else 0.0)
    share = f"At most {share}" if isnan(save["hours"]) else share  # saves count as work
    inferred = [f"Inferred: {n:,} {INFERRED[key]}." for key, n in values["inferred"].items() if n]
    inferred = inferred or ["Nothing had to be inferred."]
    n_first = bool(values["inferred"]["leaps"])  # attempts are missing
    return Document(
        title=f"Where the hours of {name} went",
        question="What did failures and saves cost these jobs?",
        answer=[
            f"{share} of {significant(wall_h)} h were useful work; the largest other part "
            f"({significant(most['hours'])} h) was {PART_TITLES.get(most['part'], most['part'])}.",
            f"{name}, {values['n_failures']:,} failures, {values['n_saves']:,} saves. "
            "95 % intervals: uncertainty from values missing in the logs.",
        ],
        table=_parts(hours, wall_h),
        remarks=[*inferred[:n_first], *values["notes"], *inferred[n_first:]],
        sections=[
            Section("The worst incidents", [_incidents(frames["incidents"], frames["jobs"])]),
            Section("Job by job", [_jobs(frames["jobs"])]),
        ],
    )


def _parts(hours: Sequence[dict[str, Any]], wall_h: float) -> Table:
    rows = [
        [PART_TITLES.get(row["part"], row["part"]), *cells(row, "hours"),
         percent_number(row["hours"] / wall_h if wall_h else 0.0)]
        if isfinite(row["hours"])
        else [row["part"], "unknown", "–", "–"]
        for row in hours
        if not row["hours_high"] <= 0 or row["part"] == "useful"
    ]  # fmt: skip
    return Table("Hours of all jobs", ["", "hours", "95 %", "% of all"], rows)


def _jobs(jobs: pd.DataFrame) -> Table:
    order = jobs.loc[(jobs["useful_h"] - jobs["wall_h"]).sort_values(kind="stable").index]
    rows = [
        [row["job"], significant(row["wall_h"]), *cells(row, "ettr", 100.0),
         str(row["n_failures"]), str(row["n_saves"]),
         *(significant(row[part]) for part in ("lost_h", "save_h"))]
        for row in records_of(order[:MOST_JOBS])
    ]  # fmt: skip
    left = f"; {len(order) - MOST_JOBS} more are in the JSON" if len(order) > MOST_JOBS else ""
    names = ("wall h", "ETTR, %", "95 %", "failures", "saves", "lost h", "save h")
    return Table(f"By hours that were not useful{left}", ["job", *names], rows)


def _incidents(incidents: pd.DataFrame, jobs: pd.DataFrame) -> Table:
    begins_ns = dict(zip(jobs["job"], jobs["begins_unix_ns"], strict=True))
    parts = [f"{part}_h" for part in LEDGER_PARTS if f"{part}_h" in incidents]
    rows = []
    for row in records_of(incidents[:MOST_INCIDENTS]):
        at = pd.Timestamp(begins_ns[row["job"]] + round(row["at_h"] * 3600e9))
        spent = {part.removesuffix("_h"): row[part] for part in parts if row[part] > 0}
        rows.append(
            [f"{at:%Y-%m-%d %H:%M}", row["job"],
             *cells(row, "hours"),
             ", ".join(f"{part} {significant(spent_h)}" for part, spent_h in spent.items()),
             f"{row['node']} {row['cause']}".strip()]
        )  # fmt: skip
    return Table(
        "Cost of the worst incidents, lost work included",
        ["when (UTC)", "job", "hours", "95 %", "of which [h]", "where"],
        rows,
        ["job", "of which [h]", "where"],
    )


def cells(row: Mapping[str, Any], name: str, scale: float = 1.0) -> list[str]:
    """An estimate of a frame and its interval; a dash where the log says all."""
    value, low, high = (scale * row[f"{name}{end}"] for end in ("", "_low", "_high"))
    return [suited(value, low, high)[0], ends(low, high)]
