"""A selection: what to run, within which limit, and the assumptions of that."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

import pandas as pd

from cprsim.plots.selection import selection_figure
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
from cprsim.present.money import bills_frame, cheapest, money_table
from cprsim.present.provenance import origin
from cprsim.present.sensitivity import sensitivity_sentences
from cprsim.records import NO_NUMBER, Estimate
from cprsim.results.money import Bills, cheapest_of, prices_in
from cprsim.results.words import (
    ends,
    hours,
    percent,
    portion,
    significant,
    with_ends,
    with_interval,
)
from cprsim.selector.choice import Candidate, Selection, candidate_rows

BEYOND_FRACTION = 0.01  # of the replications: when to warn of extrapolated losses
SURE_FRACTION = 0.95  # of the draws of parameters
VALUES = (
    "fell_back", "useful_h", "n_replications", "curve", "accuracy", "left_out", "alike", "drawn",
    "notes",
)  # fmt: skip


def answer_of_select(selection: Selection, **about: Any) -> Answer:
    """The answer that a results folder of a selection holds."""
    found = selection.sensitivity
    bills = selection.bills(prices_in(selection.path))
    rows = candidate_rows(selection)
    at_best = rows["part"].isin(["full", "best"])
    strategies = rows[at_best].drop(columns="part").reset_index(drop=True)
    strategies.insert(1, "recommended", strategies["strategy"] == selection.chosen.strategy)
    strategies["entry"] = strategies["strategy"].map(selection.entries)
    frames = {
        "strategies": strategies,
        "candidates": rows[~at_best].reset_index(drop=True),
        "flips": pd.DataFrame(selection.flips),
    }
    if bills:
        frames["bills"] = bills_frame(bills)
    if any(one.energy_kwh is not None for one in bills.values()):
        for what in ("energy_kwh", "carbon_kg"):
            of = {name: getattr(one, what) for name, one in bills.items()}
            strategies[f"{what}_per_month"] = strategies["strategy"].map(of)
    if found is not None:
        frames["unknown"] = pd.DataFrame(found.flips)
    return Answer(
        "selection",
        selection.name,
        lambda: document_of_select(selection),
        frames=frames,
        values={
            "recommended": selection.chosen.strategy,
            "recovery": recovery_of(selection),
            **{name: getattr(selection, name) for name in VALUES},
            "limit": selection.limit if selection.limited else None,
            "none_within_limit": [name for name, one in selection.best.items() if one is None],
            "stand_ins_h": selection.stand_ins,
            "cheapest": cheapest_of(bills) if bills else None,
            "share_of_draws": found and found.share,
            "n_draws": found and found.n_draws,
            "others_of_draws": found and found.others,
        },
        **about,
    )


def recovery_of(selection: Selection) -> str:
    """The section `recovery` of a scenario that runs every strategy as selected."""
    lines = [
        f"  - {text}{'  # recommended' if strategy == selection.chosen.strategy else ''}"
        for strategy, text in selection.entries.items()
    ]
    return "\n".join(["recovery:", *lines])


def document_of_select(selection: Selection) -> Document:
    """Everything about one selection. Raises ResultError for an unreadable file."""
    bills = selection.bills(prices_in(selection.path))
    over = selection.limit.words if selection.limited else "the number of saves"
    picture = Picture(
        f"Overhead over {over}",
        "A point per strategy and interval, the choice marked. The table has the best of each.",
        lambda: selection_figure(selection, selection.name),
        "pareto",
    )
    entry = f"{selection.accuracy}\n{recovery_of(selection)}".strip()
    return Document(
        title=f"What to run: {selection.name}",
        question=(
            f"How should a job of {hours(selection.useful_h)} of useful work recover from "
            "failures, and how often save?"
        ),
        answer=_decision(selection),
        table=_table(selection, selection.name),
        remarks=[*_remarks(selection, bills)],
        sections=[
            Section("How to run it", [ListingBlock("For the scenario", entry)]),
            Section("All candidates", [picture, *([money_table(bills)] if bills else [])]),
            *origin(selection.manifest, selection.path),
        ],
    )


def _table(selection: Selection, name: str) -> Table:
    """Full recovery at its best, the strategies, the paper's formula; equal ones in one row."""
    what, of_pls = selection.limit.words, selection.limit.metric is None
    headings = ["overhead, %", "less than full recovery, % points"]
    if selection.limited:
        unit = "" if of_pls else ", ×10⁻⁴"
        bound = f"{100 * selection.limit.confidence:g} % upper bound{unit}"
        headings += [*["PLS"] * (not of_pls), f"{what}{unit}", bound]
    found = {"full": selection.full, **selection.best}
    found |= {f"{one.strategy}, {one.rule} formula": one for one in selection.formula}
    names: dict[tuple[str, ...], list[str]] = {}
    for one_name, one in found.items():
        cells = ["none keeps the limit"] if one is None else _cells(selection, one)
        cells = [*cells, *[NO_NUMBER] * len(headings)][: len(headings) + 1]
        said = f"{one_name} (recommended)" if one is selection.chosen else one_name
        names.setdefault(tuple(cells), []).append(said)
    return Table(
        f"{name}: {selection.n_replications:,} replications, each strategy at its best; ± half of "
        f"the 95 % interval. {_limit(selection)}",
        [*word_columns("strategy", "saves every"), *map(Column, headings)],
        [[", ".join(alike), *cells] for cells, alike in names.items()],
    )


def _limit(selection: Selection) -> str:
    limit, of = selection.limit, "expected "
    if not selection.limited:
        return "Nothing that is compared loses samples, so that no limit is needed."
    if limit.risk is not None:
        of = f"for {100 * limit.risk:g} % of the jobs, "
    bound = f"{100 * limit.confidence:g} % upper bound"
    return f"Limit: {of}{limit.words} at most {limit.most:g} at its {bound}."


def _cells(selection: Selection, one: Candidate) -> list[str]:
    every = "never saves" if one.n_saves == 0 else hours(one.policy.interval_h)
    every += f" ({one.option})" if one.option else ""
    if one.finished_fraction < 1:
        return [every, f"{percent(one.finished_fraction)} done"]
    overhead = _times(100, one.overhead)
    if one is selection.full:
        return [every, overhead]
    loss = [_times(1, one.loss), portion(one.held)]
    if selection.limit.metric is not None:
        loss = [portion(one.pls.mean), _times(1e4, one.loss), significant(1e4 * one.held)]
    return [every, overhead, _times(100, one.benefit), *loss]


def _times(scale: float, one: Estimate) -> str:
    return with_interval(scale * one.mean, scale * one.half_width)


# ------------------------------------------------------------------------------ sentences


def _decision(selection: Selection) -> list[str]:
    """What is recommended and why, and its entry in a scenario."""
    chosen, full = selection.chosen, selection.full
    if selection.fell_back and full.finished_fraction < 1:
        return [
            f"Recommended: nothing. Under full recovery {percent(full.finished_fraction)} of the "
            "jobs finish, and no strategy within the limit does better."
        ]
    costs = f"{percent(chosen.overhead.mean)} of useful time"
    entry = f"In the scenario: recovery: [{selection.entries[chosen.strategy]}]"
    if selection.fell_back:
        run = f"Recommended: full recovery, {full.saving}, at {costs}."
        return [f"{run} {_why_full(selection)}", entry]
    less = with_ends(*chosen.benefit.times(100).triple)
    against = f"{less} percentage points less than full recovery at its best, {full.saving}"
    if full.finished_fraction < 1:
        against = f"under full recovery only {percent(full.finished_fraction)} of the jobs finish"
    loses = "It loses no samples."
    if chosen.policy.leaves_stale:
        loses = f"Expected {selection.limit.words}: {with_ends(*chosen.loss.triple)}."
    run = f"Recommended: {chosen.strategy}, {chosen.saving}, at {costs}"
    return [f"{run}: {against}. {loses}", entry]


def _why_full(selection: Selection) -> str:
    there = [one for one in selection.best.values() if one and one.finished_fraction == 1]
    if not selection.best:
        return "Nothing else is compared: list recovery systems under 'recovery' in the scenario."
    if not there:
        what = "keeps the limit" if selection.limited else "lets all jobs finish"
        return f"Nothing else that is compared {what}."
    nearest = max(there, key=lambda one: one.benefit.mean)
    said = f"The cheapest of the others, {nearest.strategy}, {nearest.saving},"
    costs = percent(nearest.overhead.mean)
    if nearest.benefit.high < 0:
        return f"{said} costs more: {costs}."
    if nearest.pays:
        return f"{said} takes {costs}, and costs accuracy that nothing here prices."
    less = ends(100 * nearest.benefit.low, 100 * nearest.benefit.high)
    return f"{said} does not surely cost less: by {less} percentage points (95 % interval)."


def _remarks(selection: Selection, bills: Bills) -> Iterator[str]:
    """Warnings and what could reverse the decision, then its assumptions."""
    chosen, unsure = selection.chosen, selection.sensitivity
    yield from (f"Warning: {note}" for note in selection.notes)
    for one in selection.best.values():
        if one and one.beyond_fraction > BEYOND_FRACTION:
            yield (
                f"Warning: at {one.strategy}'s interval {percent(one.beyond_fraction)} of the jobs "
                "lose more than the curve was measured for; their loss is extrapolated."
            )
        if one and one.n_saves == 0 and one.option:
            yield (
                f"Warning: for {one.strategy} never saving is cheapest: the failures that its "
                f"saves protect against hardly occurred in {selection.n_replications:,} "
                "simulated jobs."
            )
    if selection.stand_ins:
        found = sorted({*selection.stand_ins, chosen.policy.interval_h})
        over = " to ".join(dict.fromkeys(_interval(end) for end in (found[0], found[-1])))
        yield (
            "The curve is a stand-in, measured on a small model and not on yours. Over the "
            f"{len(selection.stand_ins) + 1} shipped curves the interval of {chosen.strategy} is "
            f"{over}. cprsim measure makes one of your model."
        )
    yield from _drawn(selection)
    if bills:
        yield cheapest(bills, chosen.strategy)
    yield from _flips(selection)
    if unsure:
        yield f"At these intervals, by cost in all: {' '.join(sensitivity_sentences(unsure))}"
    others = [name for name in selection.alike if name != chosen.strategy]
    if others:
        yield (
            f"As good as {chosen.strategy}, the simplest, within the curve's 95 % intervals: "
            f"{', '.join(others)}."
        )
    if selection.left_out:
        yield (
            f"Not compared: {', '.join(selection.left_out)}. The curve does not say what they lose "
            f"in {selection.limit.words}, as they save."
        )
    if selection.curve is not None and selection.limited:
        yield f"Staleness curve: {selection.curve}."


def _drawn(selection: Selection) -> Iterator[str]:
    """How much of the decision is left as the parameters of the failures are drawn."""
    seen, chosen = selection.drawn, selection.chosen
    if seen is None:
        return
    said = []
    if selection.best:
        same = percent(seen.same_fraction)
        said.append(f"the decision for or against full recovery is the same in {same}")
    if chosen.option or not chosen.is_system:
        what = f"the best {chosen.option or 'interval'} of {chosen.strategy}"
        said.append(f"{what} is {_interval(seen.low_h)} to {_interval(seen.high_h)} (5 to 95 %)")
    if chosen.policy.leaves_stale and seen.kept_fraction < SURE_FRACTION:
        kept = percent(seen.kept_fraction)
        said.append(f"the one above keeps the limit in {kept}; {_interval(seen.low_h)} in 95 %")
    yield f"The failures' parameters have intervals. In {seen.n} draws of them {', '.join(said)}."


def _interval(interval_h: float) -> str:
    if interval_h == 0:
        return "none that keeps the limit"
    return "no saves" if interval_h == inf else hours(interval_h)


def _flips(selection: Selection) -> Iterator[str]:
    """Which input would have to change, and to what, for the decision to be another."""
    other = "full"
    if selection.fell_back:
        other = "another than full" if selection.has_systems else "partial"
    said: dict[bool, list[str]] = {True: [], False: []}
    for one in selection.flips:
        *tried, now = (
            hours(value) if one.unit == "h" else f"{value:.3g} {one.unit}".rstrip()
            for value in (*(one.furthest if one.at is None else [one.at]), one.now)
        )
        at = " or ".join(tried) or "any size"
        said[one.at is not None].append(f"{one.name} of {at} (now {now})")
    if said[True]:
        found = "; ".join(said[True])
        yield f"The decision would be {other} recovery with, one at a time: {found}."
    if said[False]:
        yield f"It would stay the same with: {'; '.join(said[False])}."
