"""A backtest: jobs that have run, with their own failures, under other recovery systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd

from cprsim.commands.backtest.replaying import Backtest, Replayed, bills, totals_h
from cprsim.commands.ledger.answer import cells
from cprsim.job.records import NO_NUMBER, Z_95, Estimate, Floats
from cprsim.logs.jobs.facts import crash_loops
from cprsim.logs.jobs.ledger import notes_on_ends
from cprsim.pages.answer import Answer
from cprsim.pages.document import Document, Section, Table
from cprsim.pages.money import bills_frame, cheapest, money_tables
from cprsim.results.metrics import records_of
from cprsim.results.money import Bills, cheapest_by_bill
from cprsim.results.words import count, hours, percent, portion, significant, with_ends
from cprsim.scenario.logged import AS_IT_RAN

JOBS_SHOWN = 20  # that are shown
MUCH_MORE = 1.5  # times the hours lost: a replay that is said to lose more


def answer_of_backtest(
    jobs: Sequence[Backtest], left_out: Sequence[str], notes: Sequence[str] = ()
) -> Answer:
    """The answer of a backtest: costs under each system, advice, and reasons for skipped jobs.

    `notes` name the skipped parts of the logs.
    """
    costs, totals = bills(jobs), totals_h(jobs)
    best, second, *_ = totals
    saved = _estimate(np.sum([job.saved_h(best) for job in jobs], axis=0))
    more, of_h = _estimate(totals[second] - totals[best]), sum(job.facts.wall_h for job in jobs)
    frames = {
        "systems": pd.DataFrame([_system(job, system) for job in jobs for system in job.systems]),
        "jobs": pd.DataFrame(map(_job, jobs)),
        **({"bills": bills_frame(costs)} if costs else {}),
    }
    values = {
        "recommended": best,
        **saved.columns("saved_h"),
        "of_h": of_h,
        "runner_up": second,
        **more.columns("runner_up_more_h"),
        "left_out": list(left_out),
        "notes": list(notes),
        **({"cheapest": cheapest_by_bill(costs)} if costs else {}),
        "energy_kwh_per_month": {name: bill.energy_kwh for name, bill in costs.items()},
        "carbon_kg_per_month": {name: bill.carbon_kg for name, bill in costs.items()},
    }
    limited = [
        f"{job.job}: the replay of the system that ran loses more than the observed "
        f"{significant(job.facts.observed_h.mean)} h, which is the most that a system can save"
        for job in jobs
        if float(job.systems[0].overhead_h.mean()) > MUCH_MORE * job.facts.observed_h.mean
    ]
    ledgers = [job.facts.ledger for job in jobs]
    loops, ends = crash_loops(ledgers), notes_on_ends(ledgers)
    money = [cheapest(costs, best)] if costs else []
    remarks = [*money, *(f"Left out: {why}." for why in left_out), *notes, *loops, *limited, *ends]
    return Answer(
        "backtest",
        count(len(jobs), "job"),
        lambda: _document(jobs, _advice(best, saved, of_h, second, more), frames, remarks, costs),
        frames,
        values,
    )


def _system(job: Backtest, replayed: Replayed) -> dict[str, Any]:
    return {
        "job": job.job,
        "system": replayed.system,
        "interval_h": replayed.policy.interval_h,
        "finished": replayed.finished,
        **_estimate(replayed.overhead_h).columns("overhead_h"),
        **_estimate(job.saved_h(replayed.system)).columns("saved_h"),
        "pls": replayed.pls,
        "auc_loss": nan if replayed.use.auc_loss is None else replayed.use.auc_loss,
        **{
            f"{part}_h": part_h if replayed.finished else nan
            for part, part_h in replayed.use.overhead.items()
        },
    }


def _job(job: Backtest) -> dict[str, Any]:
    facts = job.facts
    return {
        "job": job.job,
        "n_failures": facts.ledger.n_failures,
        "clock": facts.clock.value,
        "why_clock": facts.why_clock,
        "useful_h": facts.useful_h,
        **{f"cost_of_{name}_h": mean_h for name, mean_h in facts.costs_h.items()},
        **facts.observed_h.columns("observed_h"),
        **{f"observed_{name}_h": of.mean for name, of in facts.ledger.parts.items()},
    }


# ------------------------------------------------------------------------------ the document


def _document(
    jobs: Sequence[Backtest],
    advice: str,
    frames: Mapping[str, pd.DataFrame],
    remarks: Sequence[str],
    costs: Bills,
) -> Document:
    clocks, name = frames["jobs"].drop_duplicates("clock"), count(len(jobs), "job")
    n = sum(len(job.facts.failed_h) for job in jobs)
    return Document(
        title=f"What another recovery system would have cost: {name}",
        question="What would these jobs have cost under another recovery system?",
        answer=[advice],
        table=_systems(frames["systems"], frames["jobs"]),
        remarks=[
            *remarks,
            "Assumed: each failure strikes one of the nodes that hold the state, at the log's rate "
            "and costs; where nodes fail together or the rate changes, intervals are too narrow. "
            f"They leave out chance: a job like these, with {count(n, 'failure')} here, may have "
            f"{max(0.0, n - Z_95 * sqrt(n)):,.0f} to {n + Z_95 * sqrt(n):,.0f}.",
            *(f"Failures are on the clock: {row.clock}; {row.why_clock}."
              for row in clocks.itertuples()),
            f"{AS_IT_RAN} replays the log's interval: its difference from the observed overhead is "
            "the error of the replay.",
        ],
        sections=[Section("What it costs in all", money_tables(costs, name))],
    )  # fmt: skip


def _estimate(draws_h: Floats) -> Estimate:
    """The mean of hours, unknown where some jobs never end."""
    return Estimate.of_draws(draws_h) if np.isfinite(draws_h).all() else Estimate(nan)


def _advice(best: str, saved: Estimate, of_h: float, second: str, more: Estimate) -> str:
    """The recommended system, the hours that it saves, and the extra cost of the next one."""
    costs_more = f"costs {with_ends(*more.triple, 'h')} more"
    next_one = costs_more if isfinite(more.mean) else "does not always end"
    next_one = f" The next, {second}, {next_one}."
    if best == AS_IT_RAN:
        return f"Run it as it ran: nothing else is cheaper.{next_one}"
    if not isfinite(saved.mean):
        return f"Run {best}: replayed {AS_IT_RAN}, some jobs never end.{next_one}"
    hours_saved = f"{with_ends(*saved.triple, 'h')} of {significant(of_h)} h"
    share = percent(saved.mean / of_h)
    return f"Run {best}: it would have saved {hours_saved}, {share}.{next_one}"


def _systems(systems: pd.DataFrame, jobs: pd.DataFrame) -> Table:
    """A row per job, as observed, and a row per system; empty columns are left out."""
    headings = [
        "job", "system", "saves every", "overhead, h", "95 %", "saved, h", "95 %", "PLS", "AUC loss"
    ]  # fmt: skip
    rows = []
    for job in records_of(jobs[:JOBS_SHOWN]):
        observed = f"observed, {count(job['n_failures'], 'failure')}"
        rows.append([job["job"], observed, NO_NUMBER, *cells(job, "observed_h"), *[NO_NUMBER] * 4])
        for row in records_of(systems[systems["job"] == job["job"]]):
            every = hours(row["interval_h"]) if isfinite(row["interval_h"]) else "never"
            overhead = cells(row, "overhead_h") if row["finished"] else ["never ends", NO_NUMBER]
            losses = [row[name] if row["pls"] > 0 else nan for name in ("pls", "auc_loss")]
            rows.append(
                [job["job"], row["system"], every, *overhead, *cells(row, "saved_h"),
                 *map(portion, losses)]
            )  # fmt: skip
    left = f"; {len(jobs) - JOBS_SHOWN} more are in the JSON" if len(jobs) > JOBS_SHOWN else ""
    shown_places = [
        place for place in range(len(headings)) if {row[place] for row in rows} != {NO_NUMBER}
    ]
    return Table(
        f"Hours beyond useful work, most saved first{left}; intervals are of values missing from "
        "the logs",
        [headings[place] for place in shown_places],
        [[row[place] for place in shown_places] for row in rows],
        ["system"],
        grouped=True,
    )
