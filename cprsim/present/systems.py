"""A comparison of recovery systems: what each costs and takes, which is cheapest, how to run it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from cprsim.plots.systems import systems_figure
from cprsim.present.answer import Answer
from cprsim.present.document import (
    Column,
    Document,
    ListingBlock,
    Picture,
    Section,
    Table,
    word_columns,
)
from cprsim.present.money import WORK, bills_frame, cheapest, money_section
from cprsim.present.provenance import origin
from cprsim.present.run import parts_table, strategies_frame
from cprsim.present.sensitivity import sensitivity_sentences
from cprsim.records import NO_NUMBER, Estimate
from cprsim.results import FINISHED
from cprsim.results.money import Bills, bills_in, cheapest_of
from cprsim.results.words import (
    count,
    hours,
    percent_number,
    ten_thousandths,
    with_interval,
)
from cprsim.scenario.prices import shown
from cprsim.systems_compared.comparison import (
    BEST,
    KEPT,
    OVERHEAD,
    PRICED,
    TIED,
    UNPRICED,
    WITHIN,
    Comparison,
    Standing,
    verdict_of,
)
from cprsim.systems_compared.lineup import FOUND
from cprsim.systems_compared.words import (
    columns_of_fates,
    difference,
    in_percent,
    interval_of,
    intervals_in_words,
    lost_at_most,
    name_of,
    overhead,
)

EVERY, RUNS_AS = "saves every", "runs as"
WORDS = (EVERY, RUNS_AS)  # columns that hold no numbers
MOST_NAMES = 5  # of systems, in a sentence
NONE = Estimate(float("nan"))
Cell = Callable[[Standing], str]
Cells = Mapping[str, Cell]  # of a row, by the heading of the column


def answer_of_systems(comparison: Comparison, **about: Any) -> Answer:
    """The answer that a results folder of a comparison holds."""
    result, runs = comparison.result, comparison.cheapest_that_runs
    bills = bills_in(result)
    after = [
        {"system": one.name, "failure": failure, "takes": fate.kind.name.lower(),
         "up_to_h": fate.up_to_h, "from": fate.tier}
        for one in comparison.standings
        for failure, fate in one.facts.fates.items()
    ]  # fmt: skip
    contents = [
        {"n_kept": one.n_kept, **one.overhead.columns(OVERHEAD), "costs_more": one.costs_more,
         "none_clean_fraction": one.none_clean}
        for one in comparison.contents
    ]  # fmt: skip
    return Answer(
        "comparison of systems",
        comparison.name,
        lambda: document_of_systems(comparison),
        frames={
            "systems": _systems_frame(comparison),
            "after": pd.DataFrame(after),
            **({"bills": bills_frame(bills)} if bills else {}),
            **({"contents": pd.DataFrame(contents)} if contents else {}),
        },
        values={
            "useful_h": result.useful_h,
            "n_nodes": result.n_nodes,
            "fixed": comparison.fixed,
            "limit": comparison.limit,
            "best": comparison.best,
            "best_that_runs": runs and runs.name,
            "today": comparison.today or None,
            "not_distinguished": comparison.tied,
            "cheapest": cheapest_of(bills) if bills else None,
            "left_out": comparison.left_out,
            "assumed": comparison.assumed,
            "warnings": result.warnings,
            "sensitivity": comparison.sensitivity,
            "recovery": _entries_text(comparison.standings),
        },
        rows={"replications": result.replications, "events": result.timeline},
        **about,
    )


def _systems_frame(comparison: Comparison) -> pd.DataFrame:
    """A row per system, the cheapest first; beside how it stands, what a run says of it."""
    rows = [
        {
            "system": one.name,
            "strategy": one.facts.strategy,
            "verdict": one.verdict,
            "accuracy": one.accuracy,
            **(one.more or NONE).columns("more_than_best"),
            **(one.than_today or NONE).columns("more_than_today"),
            "runs_as": one.facts.runs_as,
            "entry": one.facts.text,
            "interval": one.facts.how,
            "unknown": ", ".join(one.facts.unknown),
            "not_counted": one.facts.not_counted,
            "storage_bytes_per_h": one.facts.storage_bytes_per_h,
            "peers_bytes_per_h": one.facts.peers_bytes_per_h,
        }
        for one in comparison.standings
    ]
    of_run = strategies_frame(comparison.result).rename(columns={"strategy": "system"})
    return pd.DataFrame(rows).merge(of_run, on="system", how="left")


# ------------------------------------------------------------------------------ the document


def document_of_systems(comparison: Comparison) -> Document:
    """Everything about one comparison. Raises ResultError for an unreadable file."""
    found, result = comparison.standings, comparison.result
    picture = Picture(
        caption="Overhead by system and cause",
        alternative=(
            "A bar per system, the cheapest on top: mean overhead in percent of useful time, by "
            "cause, with the 95 % interval of the total. The tables below have the numbers."
        ),
        draw=lambda: systems_figure(comparison),
        name="systems",
    )
    left_out = Table(
        "What each needs", word_columns("system", "why"), [*comparison.left_out.items()]
    )
    parts, places = parts_table(result), [one.name for one in found]
    parts = replace(parts, rows=sorted(parts.rows, key=lambda row: places.index(str(row[0]))))
    return Document(
        title=f"Which recovery system: {comparison.name}",
        question=(
            f"Which recovery system costs a job of {hours(result.useful_h)} of useful work on "
            f"{result.n_nodes} nodes least, {intervals_in_words(comparison)}?"
        ),
        answer=_answer(comparison),
        table=_costs(found, bills_in(result)),
        remarks=_remarks(comparison),
        sections=[
            Section("Why", [picture, parts, _survived(found), *_contents(comparison)]),
            Section("What it costs in all", money_section(result)),
            Section("What can't run it", [left_out] if left_out.rows else []),
            Section("How to run them", [ListingBlock("For the scenario", _entries_text(found))]),
            *origin(result.manifest, result.path),
        ],
    )


def _entries_text(found: Sequence[Standing]) -> str:
    """The section `recovery` of a scenario that runs every system as compared."""
    return "\n".join(["recovery:", *(f"  - {one.facts.text}" for one in found)])


# ------------------------------------------------------------------------------ tables


def _table(caption: str, first: str, found: Sequence[Standing], cells: Cells) -> Table:
    """A row per system, or several with the same cells."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for one in found:
        rows.setdefault(tuple(cell(one) for cell in cells.values()), []).append(name_of(one))
    columns = [Column(heading, heading not in (first, *WORDS)) for heading in (first, *cells)]
    return Table(caption, columns, [(", ".join(names), *row) for row, names in rows.items()])


def _costs(found: Sequence[Standing], bills: Bills) -> Table:
    def month(one: Standing) -> str:
        if one.name not in bills:
            return NO_NUMBER
        amount = f"{bills[one.name].month.total_cents / 100:,.0f}"
        return f"≥ {amount}" if one.facts.unknown else amount

    cells: dict[str, Cell] = {
        EVERY: interval_of, "overhead, %": overhead, "more than the best": difference,
    }  # fmt: skip
    if any(one.accuracy not in (KEPT, UNPRICED) for one in found):
        cells["AUC lost, ×10⁻⁴"] = _accuracy_lost
    if bills:
        unit = next(iter(bills.values())).job.currency or "cost"
        cells[f"{unit} for {WORK}"] = month
    cells[RUNS_AS] = lambda one: one.facts.runs_as or NO_NUMBER
    n = max(one.summary[FINISHED].n for one in found)
    caption = (
        f"What each costs: means of {count(n, 'replication')} on the same failures, in % of useful "
        "time, ± half of the 95 % interval (of paired differences to the best)"
    )
    return _table(caption, "system", found, cells)


def _accuracy_lost(one: Standing) -> str:
    if one.accuracy in (KEPT, UNPRICED):
        return "0" if one.accuracy == KEPT else UNPRICED
    return ten_thousandths(one.summary["auc_loss"].mean, one.summary["auc_loss"].half_width)


def _survived(found: Sequence[Standing]) -> Table:
    cells: Cells = {
        ", ".join(names): partial(lost_at_most, names[0]) for names in columns_of_fates(found)
    }
    caption = "Progress lost at most by a failure of each kind"
    return _table(caption, "lost at most by", found, cells)


def _contents(comparison: Comparison) -> list[Table]:
    """The cheapest system with each number of contents; nothing without silent errors."""
    caption = f"{comparison.best} by contents kept, and silent errors that are noticed too late"
    columns = [*map(Column, ("contents kept", "overhead %", "no clean one left, %"))]
    rows = [
        [str(one.n_kept), in_percent(one.overhead), percent_number(one.none_clean)]
        for one in comparison.contents
    ]
    return [Table(caption, columns, rows)] if rows else []


# ------------------------------------------------------------------------------ sentences


def _picks(comparison: Comparison) -> list[Standing]:
    """The best, and the cheapest that runs today where that is another."""
    best, runs = comparison.cheapest, comparison.cheapest_that_runs
    return [one for one in (best, None if runs is best else runs) if one is not None]


def _answer(comparison: Comparison) -> list[str]:
    """Which system costs least, which that runs today, and what they save against today."""
    picks = _picks(comparison)
    if not picks:
        return ["No system that keeps the job's accuracy lets all jobs finish."]
    best, *others = picks
    sentence = f"Cheapest: {best.name}{_as(best)}, {overhead(best)} % of useful time"
    if not best.facts.runs_as:
        sentence += ", a paper only: nothing that is maintained runs it"
    runs = [
        f" Cheapest that runs today: {one.name}{_as(one)}, {overhead(one)} %." for one in others
    ]
    return [f"{sentence}.{''.join(runs)}", *_against_today(comparison, picks)]


def _as(one: Standing) -> str:
    return f" (runs as {one.facts.runs_as})" if one.facts.runs_as else ""


def _against_today(comparison: Comparison, picks: Sequence[Standing]) -> list[str]:
    """What systems save against how the job runs now."""
    now = next((one for one in comparison.standings if one.name == comparison.today), None)
    if now is None:
        return []
    how = f"today ({now.facts.strategy}, every {interval_of(now)}: {overhead(now)} %)"
    if now.verdict == BEST:
        return [f"Nothing costs less than {how}."]
    bills, useful_h = bills_in(comparison.result), comparison.result.useful_h
    saved = []
    for one in picks:
        if one.than_today is None:
            continue
        less = one.than_today.times(-useful_h)
        words = f"saves {with_interval(less.mean, abs(less.half_width))} h a job"
        if {one.name, now.name} <= set(bills):
            months = [bills[name].month for name in (now.name, one.name)]
            cents = months[0].total_cents - months[1].total_cents
            words += f" and {shown(cents, months[0].currency)} per {WORK}"
        tied = verdict_of(one.than_today) == TIED
        saved.append(f"{one.name} {'is not distinguished from it' if tied else words}")
    return [f"Against {how}: {'; '.join(saved)}."] if saved else []


def _remarks(comparison: Comparison) -> list[str]:
    """What could reverse the answer, how to run it, what is lost of accuracy, what is assumed."""
    assumed, n_left_out = comparison.assumed, len(comparison.left_out)
    paragraphs = [
        " ".join(_doubts(comparison)),
        " ".join(_in_money(comparison)),
        " ".join(_how_to_run(comparison)),
        *_accuracy(comparison),
        *([f"Assumed: {' '.join(assumed)}"] if assumed else []),
        *comparison.result.warnings,
        *_never_saving(comparison.standings),
        *([f"Not compared, as they can't run the job: {count(n_left_out, 'system')}."]
          if n_left_out else []),
    ]  # fmt: skip
    return [one for one in paragraphs if one]


def _doubts(comparison: Comparison) -> Iterator[str]:
    """Which systems may cost as little as the best, or less."""
    if comparison.best is None:
        return
    if tied := [name for name in comparison.tied if name != comparison.today]:
        yield (
            f"Not distinguished from {comparison.best}: {_few(tied)} (the 95 % interval of the "
            "paired difference contains 0)."
        )
    lower = [
        f"{one.name} {overhead(one)} % ({', '.join(one.facts.unknown)})"
        for one in comparison.standings
        if one.facts.unknown and one.more and one.more.mean < 0
    ]
    if lower:
        yield (
            f"May cost less, no source has a figure: {_few(lower)}. Give it in the `options` of "
            "the entry."
        )


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _in_money(comparison: Comparison) -> list[str]:
    """Which system of those that may be the best is the cheapest in all; what would change that."""
    bills = comparison.bills_that_count(bills_in(comparison.result))
    if bills and cheapest_of(bills) != comparison.today:  # `_against_today` has that
        bills = {name: bill for name, bill in bills.items() if name != comparison.today}
    sentences = [cheapest(bills, comparison.best)] if bills else []
    unsure = comparison.sensitivity
    return sentences if unsure is None else [*sentences, *sensitivity_sentences(unsure)]


def _how_to_run(comparison: Comparison) -> Iterator[str]:
    entries = [one.facts.text for one in _picks(comparison) if one.name != comparison.today]
    if entries:
        yield f"To run it, put into `recovery`: {' or '.join(entries)}."
    enough = next((one for one in comparison.contents if not one.costs_more), None)
    if enough is not None:
        yield (
            f"Keep {count(enough.n_kept, 'content')} (`costs.save.kept`): with more, "
            f"{comparison.best} does not surely cost less. {percent_number(enough.none_clean)} % "
            "of silent errors are then noticed with no clean content left (derived)."
        )


def _accuracy(comparison: Comparison) -> Iterator[str]:
    by_words: dict[str, list[str]] = {}
    for one in comparison.standings:
        if one.accuracy == UNPRICED:
            words = one.facts.not_counted or "what stale shards cost in accuracy is not priced"
            by_words.setdefault(words, []).append(one.name)
        elif one.accuracy == PRICED:
            loss = one.summary["auc_loss"]
            yield (
                f"{one.name} loses {with_interval(loss.mean, loss.half_width)} of AUC; without a "
                "limit in the section `accuracy` it is not taken for the best."
            )
    for words, names in by_words.items():
        yield f"* {', '.join(names)}: {words}; not taken as the cheapest."
    within = [one.name for one in comparison.standings if one.accuracy == WITHIN]
    if within and comparison.limit is not None:
        limit = comparison.limit
        yield f"{', '.join(within)} keep the limit: {limit['quantity']} at most {limit['most']:g}."


def _never_saving(found: Sequence[Standing]) -> Iterator[str]:
    bare = [one.name for one in found if one.facts.how == FOUND and interval_of(one) == "never"]
    if bare:
        n = max(one.summary[FINISHED].n for one in found)
        yield (
            f"For {', '.join(bare)}, never saving is cheapest: the failures that their saves "
            f"protect against hardly occurred in {n:,} simulated jobs. Such a failure takes all "
            "that was done."
        )
