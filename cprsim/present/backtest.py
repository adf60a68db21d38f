"""A backtest: jobs that have run, with their own failures, under other recovery systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from typing import Any

import pandas as pd

from cprsim.backtesting.facts import AS_IT_RAN
from cprsim.backtesting.replaying import (
    Advice,
    Backtest,
    BacktestedLogs,
    MoneyDraws,
    Replayed,
    bills,
    money_draws,
)
from cprsim.present.answer import Answer
from cprsim.present.document import Cell, Document, Section, Table, row_columns
from cprsim.present.ledger import MOST_JOBS
from cprsim.present.money import bills_frame, cheapest, money_table, unit_of
from cprsim.records import NO_NUMBER, Estimate
from cprsim.results.words import count, ends, hours, portion, significant, suited, with_ends

NEVER_ENDS = "never ends"
MOST_JOBS_WHOLE = 20  # with a table of their own
UNKNOWN = Estimate(nan)
Row = Mapping[str, Any]


def answer_of_backtest(made: BacktestedLogs) -> Answer:
    """What jobs would have cost under other systems, and what to run."""
    found, advised = made.found, made.advised
    jobs = [_job(one) for one in found]
    systems = [[_system(job, one) for one in job.systems] for job in found]
    costs, drawn = bills(found), money_draws(found)
    return Answer(
        "backtest",
        count(len(found), "job"),
        lambda: _document(made, jobs, systems, drawn),
        frames={
            "systems": pd.DataFrame([row for rows in systems for row in rows]),
            "jobs": pd.DataFrame(jobs),
            **({"bills": bills_frame(costs)} if costs else {}),
        },
        values={
            "recommended": advised.system,
            **advised.saved_h.columns("saved_h"),
            "of_h": advised.of_h,
            "runner_up": advised.runner_up,
            "reversed_by": advised.reversed_by,
            "left_out": list(made.left_out),
            **({} if drawn is None else _money(drawn)),
            "energy_kwh_per_month": {name: one.energy_kwh for name, one in costs.items()},
            "carbon_kg_per_month": {name: one.carbon_kg for name, one in costs.items()},
        },
    )


def _money(drawn: MoneyDraws) -> dict[str, Any]:
    saved = UNKNOWN if drawn.saved is None else drawn.saved.times(0.01)
    return {
        "cheapest": drawn.best,
        "cheapest_in_draws": drawn.cheapest_in,
        "n_draws": drawn.n_draws,
        **saved.columns("saved_cost"),
    }


def _system(job: Backtest, one: Replayed) -> Row:
    overhead = saved = UNKNOWN
    if one.finished:
        overhead, saved = map(Estimate.of_draws, (one.overhead_h, job.saved_h(one.system)))
    return {
        "job": job.job,
        "system": one.system,
        "interval_h": one.interval_h,
        "finished": one.finished,
        **overhead.columns("overhead_h"),
        **saved.columns("saved_h"),
        "pls": float(one.pls.mean()),
        "auc_loss": float(one.auc_loss.mean()),
        **{f"{part}_h": part_h if one.finished else nan for part, part_h in one.parts_h.items()},
    }


def _job(one: Backtest) -> Row:
    facts = one.facts
    return {
        "job": one.job,
        "n_failures": facts.n_failures,
        "clock": facts.clock.value,
        "why_clock": facts.why_clock,
        "useful_h": facts.useful_h,
        **{f"cost_of_{name}_h": mean_h for name, mean_h in facts.costs_h.items()},
        **one.observed_h.columns("observed_h"),
        **{f"observed_{name}_h": of.mean for name, of in one.ledger.parts.items()},
    }


# ------------------------------------------------------------------------------ the document


def _document(
    made: BacktestedLogs,
    jobs: Sequence[Row],
    systems: Sequence[Sequence[Row]],
    drawn: MoneyDraws | None,
) -> Document:
    advised, costs = made.advised, bills(made.found)
    tables = [_one_job(*one) for one in zip(jobs[:MOST_JOBS_WHOLE], systems, strict=False)]
    several, of = len(jobs) > 1, "all jobs" if len(jobs) > 1 else "the job"
    money = [cheapest(costs, advised.system), _in_draws(drawn, unit_of(costs))] if drawn else []
    return Document(
        title=f"{count(len(jobs), 'job')} under other recovery systems",
        question="What would these jobs have cost under another recovery system?",
        answer=[_advice(advised), f"What would change that: {advised.reversed_by}."],
        table=_many_jobs(jobs, systems) if several else tables[0],
        remarks=[*money, *(f"Left out: {why}." for why in made.left_out), *_assumed(made.found)],
        sections=[
            Section("Job by job", tables if several else []),
            Section("What it costs in all", [money_table(costs, of)] if costs else []),
        ],
    )


def _advice(advised: Advice) -> str:
    """What to run, and what it saves."""
    if advised.system == AS_IT_RAN:
        return f"Run it as it ran: nothing else is cheaper (next: {advised.runner_up})."
    if not isfinite(advised.saved_h.mean):
        return f"Run {advised.system}: replayed {AS_IT_RAN}, some jobs never end."
    return (
        f"Run {advised.system}: it would have saved {with_ends(*advised.saved_h.triple, 'h')} of "
        f"{significant(advised.of_h)} h, {100 * advised.saved_h.mean / advised.of_h:.2g} %."
    )


def _in_draws(drawn: MoneyDraws, unit: str) -> str:
    """In how many draws the cheapest in all is so, and what it saves."""
    others = ", ".join(f"{name} {n}" for name, n in drawn.cheapest_in.items() if name != drawn.best)
    sentence = (
        f"{drawn.best} is the cheapest in {drawn.cheapest_in.get(drawn.best, 0)} of "
        f"{drawn.n_draws} joint draws of values missing from the logs"
        f"{f' (others: {others})' if others else ''}"
    )
    if drawn.saved is None or drawn.best == AS_IT_RAN:
        return f"{sentence}."
    saved = with_ends(*drawn.saved.times(0.01).triple, unit)
    return f"{sentence}; compared with {AS_IT_RAN} it saves {saved}."


def _assumed(found: Sequence[Backtest]) -> list[str]:
    clocks = sorted({one.facts.clock.value for one in found})
    inferred = "; ".join(
        f"{one.job} every {hours(one.facts.interval_h)} of work "
        f"({' to '.join(dict.fromkeys(map(hours, one.facts.fits_h)))} fits)"
        for one in found[:MOST_JOBS_WHOLE]
        if one.facts.fits_h
    )
    return [
        *(
            [f"Saves are inferred from the steps at which jobs resumed: {inferred}."]
            if inferred
            else []
        ),
        "Assumed: each failure strikes one of the nodes that hold the state; costs are the log's.",
        f"Failures are on the clock: {' and '.join(clocks)}; {found[0].facts.why_clock}.",
        f"{AS_IT_RAN} replays the log's interval: its difference from the observed overhead is "
        "the error of the replay.",
    ]


def _one_job(job: Row, systems: Sequence[Row]) -> Table:
    """Columns that say nothing of this job go."""
    columns = row_columns(
        "system", "saves every", "overhead, h", "95 %", "saved, h", "95 %", "PLS", "AUC loss"
    )
    rows = [["observed", NO_NUMBER, *_cells(job, "observed_h"), *[NO_NUMBER] * 4]]
    for one in systems:
        every = hours(one["interval_h"]) if isfinite(one["interval_h"]) else "never"
        overhead = _cells(one, "overhead_h") if one["finished"] else [NEVER_ENDS, NO_NUMBER]
        losses = [
            portion(one[name]) if one["pls"] > 0 else NO_NUMBER for name in ("pls", "auc_loss")
        ]
        rows.append([one["system"], every, *overhead, *_cells(one, "saved_h"), *losses])
    shown = [place for place in range(len(columns)) if {row[place] for row in rows} != {NO_NUMBER}]
    return Table(
        f"{job['job']}: {count(job['n_failures'], 'failure')}; hours beyond useful work, intervals "
        "are of values missing from the log",
        [columns[place] for place in shown],
        [[row[place] for place in shown] for row in rows],
    )


def _cells(row: Row, name: str) -> list[str]:
    """An estimate and its interval; a dash where the log says all."""
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    return [suited(value, low, high)[0], ends(low, high)]


def _many_jobs(jobs: Sequence[Row], systems: Sequence[Sequence[Row]]) -> Table:
    left = f"; {len(jobs) - MOST_JOBS} more are in the JSON" if len(jobs) > MOST_JOBS else ""
    rows: list[list[str | Cell]] = []
    for job, each in zip(jobs[:MOST_JOBS], systems, strict=False):
        overheads = [
            significant(one["overhead_h"]) if one["finished"] else NEVER_ENDS for one in each
        ]
        name = Cell(job["job"], job["job"][:20])
        rows.append([name, str(job["n_failures"]), significant(job["observed_h"]), *overheads])
    return Table(
        f"Overhead beyond useful work [h], most saved first{left}",
        row_columns("job", "failures", "observed", *(one["system"] for one in systems[0])),
        rows,
    )
