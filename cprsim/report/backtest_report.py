"""A backtest as tables for the terminal, and as one object for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from rich.console import Console

from cprsim.backtest.facts import AS_IT_RAN
from cprsim.backtest.replaying import Advice, Backtest, Replayed, interval_words
from cprsim.estimate import Estimate
from cprsim.report.ledger_report import (
    MOST_JOBS,
    NO_NUMBER,
    _say,
    _table,
    ends,
    number,
    plain,
    triple,
)


def print_backtest(
    console: Console, found: Sequence[Backtest], advised: Advice, left_out: Sequence[str]
) -> None:
    """Print each job under each system, sorted by hours saved, and the advice."""
    _say(
        console,
        f"{len(found)} job{'' if len(found) == 1 else 's'} with their own failures. Hours beyond "
        "useful work; 95 % intervals are of what the logs do not say.",
    )
    if len(found) == 1:
        _print_one(console, found[0])
    else:
        _print_many(console, found)
    clocks = sorted({one.facts.clock.value for one in found})
    _say(console, f"failures on the clock: {' and '.join(clocks)}; {found[0].facts.why_clock}")
    _say(
        console,
        "assumed: each failure strikes one node of those that hold the state; costs are the log's "
        f"own; {AS_IT_RAN} replays the log's interval, so that what it differs from the observed "
        "is the error of the replay",
    )
    for why in left_out:
        _say(console, f"note: left out: {why}")
    _say(console, "\n" + advice_words(advised))


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
        f"Run {advised.system}: it would have saved {number(saved.mean)} h{between} of "
        f"{number(advised.of_h)} h, {share:.2g} %. What would change that: {advised.reversed_by}."
    )


def _print_one(console: Console, one: Backtest) -> None:
    table = _table("system", "saves every", "overhead h", "95 %", "saved h", "95 %", "PLS")
    table.add_row(
        "observed", "", number(one.observed_h.mean), ends(one.observed_h), "", "", NO_NUMBER
    )
    for system in one.systems:
        table.add_row(*_cells(one, system))
    console.print(table)


def _cells(one: Backtest, system: Replayed) -> list[str]:
    every = interval_words(system.interval_h)
    if not system.finished:
        return [system.system, every, "never ends", "", "", "", NO_NUMBER]
    overhead, saved = (
        Estimate.of_draws(system.overhead_h),
        Estimate.of_draws(one.saved_h(system.system)),
    )
    pls = float(system.pls.mean())
    return [
        system.system, every, number(overhead.mean), ends(overhead), number(saved.mean),
        ends(saved), f"{pls:.4f}" if pls else NO_NUMBER,
    ]  # fmt: skip


def _print_many(console: Console, found: Sequence[Backtest]) -> None:
    names = [one.system for one in found[0].systems]
    table = _table("job", "failures", "observed h", *names)
    for one in found[:MOST_JOBS]:
        overheads = [
            number(float(each.overhead_h.mean())) if each.finished else "never ends"
            for each in one.systems
        ]
        table.add_row(
            one.job[:20], str(one.facts.n_failures), number(one.observed_h.mean), *overheads
        )
    if len(found) > MOST_JOBS:
        table.add_row(f"{len(found) - MOST_JOBS} more", *[""] * (2 + len(names)))
    console.print(table)


def backtest_as_json(
    found: Sequence[Backtest], advised: Advice, left_out: Sequence[str]
) -> dict[str, Any]:
    """All as one object."""
    return {
        "jobs": [_job(one) for one in found],
        "left_out": list(left_out),
        "advice": {
            "system": advised.system,
            "saved_h": triple(advised.saved_h),
            "of_h": advised.of_h,
            "runner_up": advised.runner_up,
            "reversed_by": advised.reversed_by,
        },
    }


def _job(one: Backtest) -> dict[str, Any]:
    facts = one.facts
    return {
        "job": one.job,
        "n_failures": facts.n_failures,
        "clock": facts.clock.value,
        "why_clock": facts.why_clock,
        "useful_h": facts.useful_h,
        "costs_h": {
            "save": facts.save_h,
            "load": facts.load_h,
            "detect": facts.detect_h,
            "reschedule": facts.reschedule_h,
        },
        "observed_h": triple(one.observed_h),
        "observed_parts_h": one.observed_parts_h,
        "systems": [
            {
                "name": each.system,
                "interval_h": plain(each.interval_h),
                "finished": each.finished,
                "overhead_h": triple(Estimate.of_draws(each.overhead_h)) if each.finished else None,
                "saved_h": triple(Estimate.of_draws(one.saved_h(each.system)))
                if each.finished
                else None,
                "parts_h": each.parts_h if each.finished else None,
                "pls": plain(float(each.pls.mean())) if isfinite(each.pls.mean()) else None,
            }
            for each in one.systems
        ],
    }
