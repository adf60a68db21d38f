"""A backtest: jobs that have run, with their own failures, under other recovery systems."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from cprsim.backtesting.facts import AS_IT_RAN
from cprsim.backtesting.replaying import (
    Advice,
    Backtest,
    BacktestedLogs,
    MoneyDraws,
    Replayed,
    bills,
    interval_words,
    money_draws,
)
from cprsim.files import finite_or_none as plain
from cprsim.present.document import (
    Block,
    Cell,
    Document,
    Section,
    Table,
    Words,
    row_columns,
)
from cprsim.present.ledger import MOST_JOBS, ends, hours_text
from cprsim.present.money import bills_as_json, cheapest, money_table
from cprsim.records import NO_NUMBER, Estimate, interval
from cprsim.results.words import count
from cprsim.scenario.prices import shown

NEVER = "never ends"

MOST_JOBS_BRIEF = 20  # on a terminal


def backtest_blocks(made: BacktestedLogs) -> list[Block]:
    """What a terminal shows: each job under each system, and the advice."""
    found, advised = made.found, made.advised
    table = _one_job(found[0]) if len(found) == 1 else _many_jobs(found, MOST_JOBS_BRIEF)
    remarks = [*_assumptions(found), *(f"note: left out: {why}" for why in made.left_out)]
    return [
        Words([_subject(found)]),
        table,
        *_money(found),
        Words(remarks),
        Words([advice_words(advised), *_in_money(found, advised)]),
    ]


def document_of_backtest(made: BacktestedLogs) -> Document:
    """Everything about a backtest."""
    found, advised = made.found, made.advised
    tables = [_many_jobs(found, MOST_JOBS)] if len(found) > 1 else []
    return Document(
        title=f"{count(len(found), 'job')} under other recovery systems",
        question="What would these jobs have cost under another recovery system?",
        answer=[advice_words(advised), *_in_money(found, advised), _subject(found)],
        sections=[
            Section("Hours beyond useful work", [*tables, *map(_one_job, found[:MOST_JOBS_BRIEF])]),
            Section("What all jobs cost", _money(found)),
            Section("What is assumed", [Words(_assumptions(found))]),
            Section("Left out", [Words(made.left_out)]),
        ],
    )


def advice_words(advised: Advice) -> str:
    """What to run, what it saves, and what would make that wrong."""
    if advised.system == AS_IT_RAN:
        return (
            "Run it as it ran: nothing else that was tried costs less (next: "
            f"{advised.runner_up}). What would change that: {advised.reversed_by}."
        )
    saved = advised.saved_h
    between = f" (95 %: {ends(saved)})" if ends(saved) != NO_NUMBER else ""
    share = 100 * saved.mean / advised.of_h
    return (
        f"Run {advised.system}: it would have saved {hours_text(saved.mean)} h{between} of "
        f"{hours_text(advised.of_h)} h, {share:.2g} %. What would change that: "
        f"{advised.reversed_by}."
    )


def _money(found: Sequence[Backtest]) -> list[Block]:
    """What all jobs cost under each system, where there are prices."""
    costs = bills(found)
    return [money_table(costs, "all jobs" if len(found) > 1 else "the job")] if costs else []


def _in_money(found: Sequence[Backtest], advised: Advice) -> list[str]:
    draws = money_draws(found)
    return [] if draws is None else [cheapest(bills(found), advised.system), _in_draws(draws)]


def _in_draws(draws: MoneyDraws) -> str:
    """In how many draws the cheapest in all is so, and what it saves."""
    others = ", ".join(f"{name} {n}" for name, n in draws.cheapest_in.items() if name != draws.best)
    sentence = (
        f"It is the cheapest in {draws.cheapest_in.get(draws.best, 0)} of {draws.n_draws} joint "
        f"draws of what the logs do not say{f' (others: {others})' if others else ''}"
    )
    if draws.saved is None or draws.best == AS_IT_RAN:
        return f"{sentence}."
    mean, low, high = (
        shown(round(end), "") if isfinite(end) else NO_NUMBER
        for end in (draws.saved.mean, draws.saved.low, draws.saved.high)
    )
    between = "" if NO_NUMBER in (low, high) else f" (95 %: {low} to {high})"
    return f"{sentence}; beside {AS_IT_RAN} it saves {mean}{between} in all."


def _subject(found: Sequence[Backtest]) -> str:
    return (
        f"{count(len(found), 'job')} with their own failures. Hours beyond useful work; 95 % "
        "intervals are of what the logs do not say."
    )


def _assumptions(found: Sequence[Backtest]) -> list[str]:
    clocks = sorted({one.facts.clock.value for one in found})
    inferred = [one.facts for one in found if one.facts.fits_h]
    every = "; ".join(
        f"{one.job} every {interval_words(one.interval_h)} of work "
        f"({' to '.join(dict.fromkeys(map(interval_words, one.fits_h)))} fits)"
        for one in inferred[:MOST_JOBS_BRIEF]
    )
    return [
        f"failures on the clock: {' and '.join(clocks)}; {found[0].facts.why_clock}",
        "assumed: each failure strikes one node of those that hold the state; costs are the log's "
        f"own; {AS_IT_RAN} replays the log's interval, so that what it differs from the observed "
        "is the error of the replay",
        *([f"saves inferred from the steps at which jobs went on: {every}"] if inferred else []),
    ]


def _one_job(one: Backtest) -> Table:
    observed = [
        "observed", "", hours_text(one.observed_h.mean), ends(one.observed_h), "", "", NO_NUMBER,
        NO_NUMBER,
    ]  # fmt: skip
    return Table(
        f"{one.job}: {one.facts.n_failures} failures",
        row_columns("system", "saves every", "overhead h", "95 %", "saved h", "95 %", "PLS", "AUC"),
        [observed, *(_cells(one, system) for system in one.systems)],
    )


def _cells(one: Backtest, system: Replayed) -> list[str]:
    every = interval_words(system.interval_h)
    if not system.finished:
        return [system.system, every, NEVER, "", "", "", NO_NUMBER, NO_NUMBER]
    overhead, saved = (
        Estimate.of_draws(system.overhead_h),
        Estimate.of_draws(one.saved_h(system.system)),
    )
    pls, auc_loss = float(system.pls.mean()), float(system.auc_loss.mean())
    return [
        system.system, every, hours_text(overhead.mean), ends(overhead), hours_text(saved.mean),
        ends(saved), f"{pls:.4f}" if pls else NO_NUMBER,
        f"{-auc_loss:.4f}" if isfinite(auc_loss) and pls else NO_NUMBER,
    ]  # fmt: skip


def _many_jobs(found: Sequence[Backtest], most: int) -> Table:
    names = [one.system for one in found[0].systems]
    rows: list[Sequence[str | Cell]] = [_job_row(one) for one in found[:most]]
    if len(found) > most:
        rows.append([f"{len(found) - most} more", *[""] * (2 + len(names))])
    return Table(
        "Overhead of each job under each system [h]",
        row_columns("job", "failures", "observed h", *names),
        rows,
    )


def _job_row(one: Backtest) -> list[str | Cell]:
    overheads = [
        hours_text(float(each.overhead_h.mean())) if each.finished else NEVER
        for each in one.systems
    ]
    observed = hours_text(one.observed_h.mean)
    return [Cell(one.job, one.job[:20]), str(one.facts.n_failures), observed, *overheads]


# ------------------------------------------------------------------------------ JSON


def backtest_as_json(made: BacktestedLogs) -> dict[str, Any]:
    """All as one object."""
    found, advised = made.found, made.advised
    return {
        "jobs": [_job(one) for one in found],
        "left_out": list(made.left_out),
        "advice": {
            "system": advised.system,
            "saved_h": interval(advised.saved_h),
            "of_h": advised.of_h,
            "runner_up": advised.runner_up,
            "reversed_by": advised.reversed_by,
        },
        **_money_as_json(found),
    }


def _money_as_json(found: Sequence[Backtest]) -> dict[str, Any]:
    draws = money_draws(found)
    if draws is None:
        return {}
    saved = None if draws.saved is None else interval(draws.saved)
    drawn = {"cheapest_in": draws.cheapest_in, "n_draws": draws.n_draws, "saved_cents": saved}
    return {"money": {**bills_as_json(bills(found))["money"], **drawn}}


def _job(one: Backtest) -> dict[str, Any]:
    facts = one.facts
    return {
        "job": one.job,
        "n_failures": facts.n_failures,
        "clock": facts.clock.value,
        "why_clock": facts.why_clock,
        "useful_h": facts.useful_h,
        "costs_h": facts.costs_h,
        "observed_h": interval(one.observed_h),
        "observed_parts_h": {name: of.mean for name, of in one.ledger.parts.items() if of.mean > 0},
        "systems": [
            {
                "name": each.system,
                "interval_h": plain(each.interval_h),
                "finished": each.finished,
                "overhead_h": interval(Estimate.of_draws(each.overhead_h))
                if each.finished
                else None,
                "saved_h": interval(Estimate.of_draws(one.saved_h(each.system)))
                if each.finished
                else None,
                "parts_h": each.parts_h if each.finished else None,
                "auc_loss": plain(float(each.auc_loss.mean())),
                "pls": plain(float(each.pls.mean())) if isfinite(each.pls.mean()) else None,
            }
            for each in one.systems
        ],
    }
