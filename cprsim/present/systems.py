"""A comparison of recovery systems: what each costs and takes, which is cheapest, how to run it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

import pandas as pd

from cprsim.plots.run import systems_figure
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
from cprsim.present.run import costs_table, parts_table, strategies_frame
from cprsim.present.sensitivity import sensitivity_sentences
from cprsim.records import NO_NUMBER, Estimate
from cprsim.recovery.paper import NEVER
from cprsim.results.metrics import FINISHED
from cprsim.results.money import Bills, bills_in, cheapest_of
from cprsim.results.words import count, hours, percent_number, ten_thousandths, with_interval
from cprsim.scenario.prices import shown
from cprsim.systems_compared.after import Fate, LossKind
from cprsim.systems_compared.comparison import (
    BEST,
    ELIGIBLE,
    OVERHEAD,
    PRICED,
    TIED,
    WITHIN,
    Comparison,
    Standing,
    in_percent,
    verdict_of,
)
from cprsim.systems_compared.lineup import FOUND, NO_SERVERS, PAPER

WORDS = ("system", "saves every", "runs as")  # columns that hold no numbers
MOST_NAMES = 5  # of systems, in a sentence
LOST = {LossKind.START: "all", LossKind.NOTHING: "0", LossKind.SHARDS: "stale"}
NONE = Estimate(float("nan"))
Cells = Mapping[str, Callable[[Standing], str]]  # of a row, by the heading of the column


def answer_of_systems(comparison: Comparison, **about: Any) -> Answer:
    """The answer that a results folder of a comparison holds."""
    result, runs = comparison.result, comparison.cheapest_that_runs
    bills, found = bills_in(result), comparison.standings
    systems = [
        {"system": one.name, "strategy": one.facts.strategy, "verdict": one.verdict,
         "accuracy": one.accuracy, **(one.more or NONE).columns("more_than_best"),
         **(one.than_today or NONE).columns("more_than_today"), "runs_as": one.facts.runs_as,
         "entry": one.facts.text, "interval": one.facts.how,
         "unknown": ", ".join(one.facts.unknown), "not_counted": one.facts.not_counted,
         "storage_bytes_per_h": one.facts.storage_bytes_per_h,
         "peers_bytes_per_h": one.facts.peers_bytes_per_h}
        for one in found
    ]  # fmt: skip
    after = [
        {"system": one.name, "failure": failure, "takes": fate.kind.name.lower(),
         "up_to_h": fate.up_to_h, "from": fate.tier}
        for one in found
        for failure, fate in one.facts.fates.items()
    ]  # fmt: skip
    contents = [
        {"n_kept": one.n_kept, **one.overhead.columns(OVERHEAD), "costs_more": one.costs_more,
         "none_clean_fraction": one.none_clean}
        for one in comparison.contents
    ]  # fmt: skip
    of_run = strategies_frame(result).rename(columns={"strategy": "system"})
    return Answer(
        "comparison of systems",
        comparison.name,
        lambda: document_of_systems(comparison),
        frames={
            "systems": pd.DataFrame(systems).merge(of_run, on="system", how="left"),
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
            "recovery": _entries_text(found),
        },
        rows={"replications": result.replications, "events": result.timeline},
        **about,
    )


def document_of_systems(comparison: Comparison) -> Document:
    """Everything about one comparison. Raises ResultError for an unreadable file."""
    found, result = comparison.standings, comparison.result
    picture = Picture(
        caption="Overhead by system and cause",
        alternative=(
            "A bar per system, the cheapest on top: mean overhead in percent of useful time, by "
            "cause, with the 95 % interval of the total. The tables have the numbers."
        ),
        draw=lambda: systems_figure(comparison),
        name="systems",
    )
    places = [one.name for one in found]
    costs = replace(costs_table(result), caption="The quantities of a run")
    of_run = [
        replace(table, rows=sorted(table.rows, key=lambda row: places.index(str(row[0]))))
        for table in (parts_table(result), costs)
    ]
    left_out = [*comparison.left_out.items()]
    needed = Table("What each needs", word_columns("system", "why"), left_out)
    return Document(
        title=f"Which recovery system: {comparison.name}",
        question=(
            f"Which recovery system costs a job of {hours(result.useful_h)} of useful work on "
            f"{result.n_nodes} nodes least, {comparison.intervals}?"
        ),
        answer=[*_answer(comparison)],
        table=_costs(found, bills_in(result)),
        remarks=[one for one in _remarks(comparison) if one],
        sections=[
            Section("Why", [picture, *of_run, _survived(found)]),
            Section("What it costs in all", money_section(result)),
            Section("What can't run it", [needed] if left_out else []),
            Section("How to run them", [ListingBlock("For the scenario", _entries_text(found))]),
            *origin(result.manifest, result.path),
        ],
    )


def _entries_text(found: Sequence[Standing]) -> str:
    """The section `recovery` of a scenario that runs every system as compared."""
    return "\n".join(["recovery:", *(f"  - {one.facts.text}" for one in found)])


# ------------------------------------------------------------------------------ tables


def _table(caption: str, found: Sequence[Standing], cells: Cells) -> Table:
    """A row per system, or several with the same cells."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for one in found:
        rows.setdefault(tuple(cell(one) for cell in cells.values()), []).append(one.label)
    columns = [Column(heading, heading not in WORDS) for heading in ("system", *cells)]
    return Table(caption, columns, [(", ".join(names), *row) for row, names in rows.items()])


def _costs(found: Sequence[Standing], bills: Bills) -> Table:
    def accuracy_lost(one: Standing) -> str:
        return ten_thousandths(one.summary["auc_loss"].mean, one.summary["auc_loss"].half_width)

    def month(one: Standing) -> str:
        return shown(bills[one.name].month.total_cents, "") if one.name in bills else NO_NUMBER

    cells: dict[str, Callable[[Standing], str]] = {
        "saves every": attrgetter("every"),
        "overhead, %": attrgetter("percent"),
        "more than the best": _difference,
    }
    if any(one.accuracy in (WITHIN, PRICED) for one in found):
        cells["AUC lost, ×10⁻⁴"] = accuracy_lost
    if bills:
        cells[f"{next(iter(bills.values())).job.currency or 'cost'} for {WORK}"] = month
    cells["runs as"] = lambda one: one.facts.runs_as or NO_NUMBER
    caption = (
        f"What each costs: means of {count(found[0].summary[FINISHED].n, 'replication')} on the "
        "same failures, in % of useful time, ± half of the 95 % interval (of paired differences to "
        "the best)"
    )
    return _table(caption, found, cells)


def _difference(one: Standing) -> str:
    """What it costs more than the best, or that they are not distinguished."""
    if one.facts.unknown or one.more is None:
        return BEST if one.verdict == BEST else NO_NUMBER
    if one.more.low == one.more.high == 0:
        return BEST  # the same in each job
    return one.verdict if one.verdict == TIED else in_percent(one.more)


def _survived(found: Sequence[Standing]) -> Table:
    """What each failure takes; kinds in which all systems lose the same are one column."""

    def lost(one: Standing, kind: str) -> str:
        fate = one.facts.fates[kind]
        return LOST.get(fate.kind) or hours(fate.up_to_h)

    together: dict[tuple[Fate, ...], list[str]] = {}
    for kind in found[0].facts.fates:
        together.setdefault(tuple(one.facts.fates[kind] for one in found), []).append(kind)
    cells = {", ".join(kinds): partial(lost, kind=kinds[0]) for kinds in together.values()}
    return _table("Progress lost at most by a failure of each kind", found, cells)


# ------------------------------------------------------------------------------ sentences


def _picks(comparison: Comparison) -> list[Standing]:
    """The best, and the cheapest that runs today where that is another."""
    best, runs = comparison.cheapest, comparison.cheapest_that_runs
    return [one for one in (best, None if runs is best else runs) if one is not None]


def _answer(comparison: Comparison) -> Iterator[str]:
    """Which system costs least, which that runs today, and what they save against today."""
    picks = _picks(comparison)
    if not picks:
        yield "No system that keeps the job's accuracy lets all jobs finish."
        return
    sentences = []
    for label, one in zip(("Cheapest", "Cheapest that runs today"), picks, strict=False):
        runs_as = one.facts.runs_as and f" (runs as {one.facts.runs_as})"
        paper = "" if runs_as else ", a paper only: nothing that is maintained runs it"
        sentences.append(f"{label}: {one.name}{runs_as}, {one.percent} % of useful time{paper}.")
    yield " ".join(sentences)
    now = next((one for one in comparison.standings if one.name == comparison.today), None)
    if now is None:
        return
    saving = "never saving" if now.every == NEVER else f"every {now.every}"
    how = f"today ({now.facts.strategy}, {saving}: {now.percent} %)"
    if now.verdict == BEST:
        yield f"Nothing costs less than {how}."
        return
    saved = [words for one in picks if (words := _saved(one, now, comparison))]
    if saved:
        yield f"Against {how}: {'; '.join(saved)}."


def _saved(one: Standing, now: Standing, comparison: Comparison) -> str:
    """What a system saves against how the job runs now; nothing where either does not finish."""
    if one.than_today is None:
        return ""
    if verdict_of(one.than_today) == TIED:
        return f"{one.name} is not distinguished from it"
    less, bills = one.than_today.times(-comparison.result.useful_h), bills_in(comparison.result)
    words = f"{one.name} saves {with_interval(less.mean, abs(less.half_width))} h a job"
    if one.name in bills and now.name in bills:
        then, month = bills[now.name].month, bills[one.name].month
        cents = then.total_cents - month.total_cents
        words += f" and {shown(cents, month.currency)} per {WORK}"
    return words


def _remarks(comparison: Comparison) -> Iterator[str]:
    """What could reverse the answer, how to run it, what is lost of accuracy, what is assumed."""
    found, best, today = comparison.standings, comparison.best, comparison.today
    yield from (f"Warning: {one}" for one in comparison.result.warnings)
    tied = [name for name in comparison.tied if name != today]
    lower = [
        f"{one.name} {one.percent} % ({', '.join(one.facts.unknown)})"
        for one in found
        if one.facts.unknown and one.more and one.more.mean < 0
    ]
    doubts = [
        f"Not distinguished from {best}: {_few(tied)} (the 95 % interval of the paired difference "
        "contains 0)." * bool(tied),
        f"May cost less, no source has a figure: {_few(lower)}. Give it in the 'options' of the "
        "entry." * bool(lower),
    ]
    yield " ".join(filter(None, doubts))

    bills = comparison.bills_that_count(bills_in(comparison.result))
    if bills and cheapest_of(bills) != today:  # the answer has today
        bills = {name: bill for name, bill in bills.items() if name != today}
    unsure = sensitivity_sentences(comparison.sensitivity) if comparison.sensitivity else []
    yield " ".join([*([cheapest(bills, best)] if bills else []), *unsure])

    if entries := [one.facts.text for one in _picks(comparison) if one.name != today]:
        yield f"To run it, put into 'recovery': {' or '.join(entries)}."
    enough = next((one for one in comparison.contents if not one.costs_more), None)
    if enough is not None:
        yield (
            f"Keep {count(enough.n_kept, 'content')} ('costs.save.kept'): with more, {best} does "
            f"not surely cost less. {percent_number(enough.none_clean)} % of silent errors are "
            "then noticed with no clean content left (derived)."
        )

    lossy = [one for one in found if one.accuracy not in ELIGIBLE]
    for why, some in groupby(sorted(lossy, key=_why_not_the_best), _why_not_the_best):
        yield f"{', '.join(one.label for one in some)}: {why}; not taken as the cheapest."
    known = (PAPER, NO_SERVERS)
    lacking = [name for name, why in comparison.left_out.items() if why not in known]
    assumed = [f"Assumed: {' '.join(comparison.assumed)}"] if comparison.assumed else []
    if lacking:
        assumed.append(
            f"Not compared: {_few(lacking)}. This job can't run them, or the scenario lacks an "
            "input of theirs: 'What can't run it' (-v) says which."
        )
    yield " ".join(assumed)

    bare = [one.name for one in found if one.facts.how == FOUND and one.every == NEVER]
    if bare:
        n = count(found[0].summary[FINISHED].n, "simulated job")
        yield (
            f"For {', '.join(bare)}, never saving is cheapest: the failures that their saves "
            f"protect against hardly occurred in {n}."
        )


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _why_not_the_best(one: Standing) -> str:
    """Of a system that loses accuracy."""
    if one.accuracy == PRICED:
        return "loses AUC that no limit (section 'accuracy') allows"
    return one.facts.not_counted or "what stale shards cost in accuracy is not priced"
