"""A backtest: jobs that have run, with their own failures, under other recovery systems."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
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
from cprsim.results.words import ROUNDING, count, ends, hours, significant, suited

NEVER_ENDS = "never ends"
MOST_JOBS_WHOLE = 20  # with a table of their own
UNKNOWN = Estimate(float("nan"))


def answer_of_backtest(made: BacktestedLogs) -> Answer:
    """What jobs would have cost under other systems, and what to run."""
    found, advised, drawn = made.found, made.advised, money_draws(made.found)
    costs = bills(found)
    return Answer(
        "backtest",
        count(len(found), "job"),
        lambda: _document(made, drawn),
        frames={
            "systems": pd.DataFrame([_row(job, one) for job in found for one in job.systems]),
            "jobs": pd.DataFrame([_job(one) for one in found]),
            **({"bills": bills_frame(costs)} if costs else {}),
        },
        values={
            "recommended": advised.system,
            **advised.saved_h.columns("saved_h"),
            "of_h": advised.of_h,
            "runner_up": advised.runner_up,
            "reversed_by": advised.reversed_by,
            "left_out": list(made.left_out),
            **({} if drawn is None else _money_values(drawn)),
            **({"energy_kwh_per_month": {name: one.energy_kwh for name, one in costs.items()},
                "carbon_kg_per_month": {name: one.carbon_kg for name, one in costs.items()}}
               if any(one.energy_kwh is not None for one in costs.values()) else {}),
        },
    )  # fmt: skip


def _money_values(drawn: MoneyDraws) -> dict[str, Any]:
    saved = UNKNOWN if drawn.saved is None else drawn.saved.times(0.01)
    return {
        "cheapest": drawn.best,
        "cheapest_in_draws": drawn.cheapest_in,
        "n_draws": drawn.n_draws,
        **saved.columns("saved_cost"),
    }


def _row(job: Backtest, one: Replayed) -> dict[str, Any]:
    overhead, saved = _hours(job, one)
    return {
        "job": job.job,
        "system": one.system,
        "interval_h": one.interval_h,
        "finished": one.finished,
        **overhead.columns("overhead_h"),
        **saved.columns("saved_h"),
        "pls": float(one.pls.mean()),
        "auc_loss": float(one.auc_loss.mean()),
        **{f"{part}_h": h if one.finished else None for part, h in one.parts_h.items()},
    }


def _hours(job: Backtest, one: Replayed) -> tuple[Estimate, Estimate]:
    """Overhead, and what is saved beside what ran."""
    if not one.finished:
        return UNKNOWN, UNKNOWN
    return Estimate.of_draws(one.overhead_h), Estimate.of_draws(job.saved_h(one.system))


def _job(one: Backtest) -> dict[str, Any]:
    facts, parts = one.facts, one.ledger.parts
    return {
        "job": one.job,
        "n_failures": facts.n_failures,
        "clock": facts.clock.value,
        "why_clock": facts.why_clock,
        "useful_h": facts.useful_h,
        **{f"cost_of_{name}_h": hours_each for name, hours_each in facts.costs_h.items()},
        **one.observed_h.columns("observed_h"),
        **{f"observed_{name}_h": of.mean for name, of in parts.items()},
    }


# ------------------------------------------------------------------------------ the document


def _document(made: BacktestedLogs, drawn: MoneyDraws | None) -> Document:
    found, advised = made.found, made.advised
    costs, several = bills(found), len(found) > 1
    tables = [_one_job(one) for one in found[:MOST_JOBS_WHOLE]]
    return Document(
        title=f"{count(len(found), 'job')} under other recovery systems",
        question="What would these jobs have cost under another recovery system?",
        answer=[_advice(advised), f"What would change that: {advised.reversed_by}."],
        table=_many_jobs(found) if several else tables[0],
        remarks=[
            *(
                []
                if drawn is None
                else [cheapest(costs, advised.system), _in_draws(drawn, unit_of(costs))]
            ),
            *(f"Left out: {why}." for why in made.left_out),
            *_assumptions(found),
        ],
        sections=[
            Section("Job by job", tables if several else []),
            Section(
                "What all jobs cost",
                [money_table(costs, "all jobs" if several else "the job")] if costs else [],
            ),
        ],
    )


def _advice(advised: Advice) -> str:
    """What to run, and what it saves."""
    if advised.system == AS_IT_RAN:
        return f"Run it as it ran: nothing else is cheaper (next: {advised.runner_up})."
    if not isfinite(advised.saved_h.mean):
        return f"Run {advised.system}: replayed {AS_IT_RAN}, some jobs never end."
    saved, between = _cells_of(advised.saved_h)
    interval = "" if between == NO_NUMBER else f" (95 %: {between})"
    share = 100 * advised.saved_h.mean / advised.of_h
    return (
        f"Run {advised.system}: it would have saved {saved} h{interval} of "
        f"{significant(advised.of_h)} h, {share:.2g} %."
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
    saved, between = _cells_of(drawn.saved.times(0.01))
    return (
        f"{sentence}; compared with {AS_IT_RAN} it saves {saved} {unit} (95 %: {between}) in all."
    )


def _assumptions(found: Sequence[Backtest]) -> list[str]:
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
            * bool(inferred)
        ),
        "Assumed: each failure strikes one of the nodes that hold the state; costs are the log's.",
        f"Failures are on the clock: {' and '.join(clocks)}; {found[0].facts.why_clock}.",
        f"{AS_IT_RAN} replays the log's interval: its difference from the observed overhead is "
        "the error of the replay.",
    ]


def _one_job(one: Backtest) -> Table:
    """Columns that say nothing of this job go."""
    dashes = [NO_NUMBER] * 4
    rows = [["observed", NO_NUMBER, *_cells_of(one.observed_h), *dashes]]
    rows += [_system(one, system) for system in one.systems]
    columns = row_columns(
        "system", "saves every", "overhead, h", "95 %", "saved, h", "95 %", "PLS", "AUC loss"
    )
    shown = [place for place in range(len(columns)) if {row[place] for row in rows} != {NO_NUMBER}]
    return Table(
        f"{one.job}: {count(one.facts.n_failures, 'failure')}; hours beyond useful work, intervals "
        "are of values missing from the log",
        [columns[place] for place in shown],
        [[row[place] for place in shown] for row in rows],
    )


def _system(job: Backtest, one: Replayed) -> list[str]:
    overhead, saved = _hours(job, one)
    pls, auc_loss = float(one.pls.mean()), float(one.auc_loss.mean())
    return [
        one.system,
        hours(one.interval_h) if isfinite(one.interval_h) else "never",
        *(_cells_of(overhead) if one.finished else [NEVER_ENDS, NO_NUMBER]),
        *_cells_of(saved),
        f"{pls:.4f}" if one.finished and pls else NO_NUMBER,
        f"{auc_loss:.4f}" if isfinite(auc_loss) and pls else NO_NUMBER,
    ]


def _cells_of(one: Estimate) -> list[str]:
    """An estimate and its interval; a dash where the log says all."""
    known = one.half_width > ROUNDING * abs(one.mean)
    return [suited(*one.triple)[0], ends(one.low, one.high) if known else NO_NUMBER]


def _many_jobs(found: Sequence[Backtest]) -> Table:
    rows = [
        [
            Cell(one.job, one.job[:20]),
            str(one.facts.n_failures),
            significant(one.observed_h.mean),
            *(
                significant(float(each.overhead_h.mean())) if each.finished else NEVER_ENDS
                for each in one.systems
            ),
        ]
        for one in found[:MOST_JOBS]
    ]
    left = f"; {len(found) - MOST_JOBS} more are in the JSON" if len(found) > MOST_JOBS else ""
    return Table(
        f"Overhead beyond useful work [h], most saved first{left}",
        row_columns("job", "failures", "observed", *(one.system for one in found[0].systems)),
        rows,
    )
