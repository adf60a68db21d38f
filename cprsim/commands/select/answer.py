"""The answer of a selection: the recommendation, its limit, and its assumptions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from cprsim.commands.select.decision import EQUAL_BELOW
from cprsim.commands.select.evaluation import RELOADING
from cprsim.commands.select.figures import selection_figure
from cprsim.commands.select.record import CandidateSummary, Selection, candidate_rows
from cprsim.job.records import NO_NUMBER, Estimate
from cprsim.pages.answer import Answer
from cprsim.pages.document import Document, ListingBlock, Picture, Section, Table
from cprsim.pages.money import bills_frame, cheapest, money_tables
from cprsim.pages.provenance import origin
from cprsim.pages.recommendation import (
    back_to_start,
    break_even_sentences,
    entry_from,
    maintained,
    never_saves,
    others_do_not_wait,
    recommendation,
    turns_on,
    waits_decide,
)
from cprsim.results.folder import free_spares, stops_save
from cprsim.results.money import Bills, cheapest_by_bill, prices_in
from cprsim.results.unknown import WAITING, shows_waits
from cprsim.results.words import (
    ends,
    estimated,
    hours,
    percent,
    percent_number,
    portion,
    significant,
    with_ends,
)

MAX_EXTRAPOLATED = 0.01  # share of replications; above it, warn of extrapolated losses
OVER_LIMIT = " (over the limit)"  # marks a bound
VALUES = (
    "fell_back", "useful_h", "n_replications", "curve", "accuracy", "left_out", "notes", "stand_in",
)  # fmt: skip


def answer_of_select(selection: Selection, **about: Any) -> Answer:
    """The answer that a results folder of a selection holds."""
    bills = selection.bills(prices_in(selection.path))
    rows = candidate_rows(selection)
    at_best = rows["part"].isin(["full", "best"])
    strategies = rows[at_best].drop(columns="part").reset_index(drop=True)
    strategies.insert(1, "recommended", strategies["strategy"] == selection.recommended)
    strategies["entry"] = strategies["strategy"].map(selection.entries)
    frames = {
        "strategies": strategies,
        "candidates": rows[~at_best].reset_index(drop=True),
    }
    if bills:
        frames["bills"] = bills_frame(bills)
    if any(bill.energy_kwh is not None for bill in bills.values()):
        for quantity in ("energy_kwh", "carbon_kg"):
            of = {name: getattr(bill, quantity) for name, bill in bills.items()}
            strategies[f"{quantity}_per_month"] = strategies["strategy"].map(of)
    if selection.break_evens:
        frames["unknown"] = pd.DataFrame(selection.break_evens)
    return Answer(
        "selection",
        selection.name,
        lambda: document_of_select(selection),
        frames=frames,
        values={
            "recommended": selection.recommended,
            "recovery": recovery_of(selection),
            "recommendation": _recommended(selection),
            "spares": selection.spares,
            "alike": selection.equivalent,
            **{name: getattr(selection, name) for name in VALUES},
            "limit": selection.limit if selection.limited else None,
            "none_within_limit": [name for name, best in selection.best.items() if best is None],
            "cheapest": cheapest_by_bill(bills) if bills else None,
        },
        **about,
    )


def _recommended(selection: Selection) -> dict[str, Any] | None:
    """The choice, compared with full recovery or the cheapest other; None: it may not finish."""
    chosen, full = selection.chosen, selection.full
    if chosen.finished_fraction < 1:
        return None
    other, less = full, chosen.benefit
    others = [one for one in selection.finishing.values() if one is not full]
    if selection.fell_back and others:
        other = min(others, key=lambda one: one.overhead.mean)
        less = Estimate(-other.benefit.mean, -other.benefit.high, -other.benefit.low)
    return recommendation(
        entry_from(chosen.entry), chosen.overhead, beats=other.strategy, less=less,
        turns_on=selection.assumption,
    )  # fmt: skip


def recovery_of(selection: Selection) -> str:
    """The section `recovery` of a scenario that runs every strategy as selected."""
    lines = [
        f"  - {text}{'  # recommended' if strategy == selection.recommended else ''}"
        for strategy, text in selection.entries.items()
    ]
    return "\n".join(["recovery:", *lines])


def document_of_select(selection: Selection) -> Document:
    """The document of a selection. Raises ResultError: its scenario can't be read."""
    bills = selection.bills(prices_in(selection.path))
    against = selection.limit.words if selection.limited else "the number of saves"
    picture = Picture(
        f"Overhead against {against}",
        "A point per strategy and interval, the choice marked. The table has the best of each.",
        lambda: selection_figure(selection, selection.name),
        "pareto",
    )
    sections = f"{selection.accuracy}\n{recovery_of(selection)}".strip()
    prices = prices_in(selection.path) if selection.spares else None
    first, *more = _decision(selection)
    if _contradicts(bills, selection):
        more = [cheapest(bills, selection.recommended), *more]
    return Document(
        title=f"Which strategy costs least, and how often it saves: {selection.name}",
        question=(
            f"How should a job of {hours(selection.useful_h)} of useful work recover from "
            "failures, and how often save?"
        ),
        answer=[first, *waits_decide(selection.spares, selection.n_nodes, prices), *more],
        table=_table(selection, selection.name),
        remarks=[*_remarks(selection, bills)],
        turns_on=f"{turns_on(selection.assumption)} {free_spares(selection.path)}".strip(),
        sections=[
            Section("How to run it", [ListingBlock("For the scenario", sections)]),
            Section("All candidates", [picture, *money_tables(bills)]),
            *origin(selection.manifest, selection.path),
        ],
    )


def _table(selection: Selection, name: str) -> Table:
    """Full recovery, each strategy at its best interval, and CPR's formulas; equal rows merge."""
    quantity, of_pls = selection.limit.words, selection.limit.metric is None
    headings = ["overhead, %", "less than full recovery, % points"]
    if selection.limited:
        unit = "" if of_pls else ", ×10⁻⁴"
        bound = f"{selection.limit.bound_words}{unit}"
        headings += [f"{quantity}{unit}", bound] if of_pls else ["PLS", f"{quantity}{unit}", bound]
    waits = any(shows_waits(each.summary) for each in selection.finishing.values())
    if waits:
        headings.insert(1, WAITING)
    candidates = {"full": selection.full, **selection.best}
    for by_formula in selection.formula:
        candidates[f"{by_formula.strategy}, {by_formula.formula} formula"] = by_formula
    names: dict[tuple[str, ...], list[str]] = {}
    for strategy, candidate in candidates.items():
        cells = ["no interval within the limit"]
        if candidate is not None:
            cells = _cells(selection, candidate, waits=waits)
        cells = [*cells, *[NO_NUMBER] * len(headings)][: len(headings) + 1]
        label = f"{strategy} (recommended)" if strategy == selection.recommended else strategy
        names.setdefault(tuple(cells), []).append(label)
    return Table(
        f"{name}: {selection.n_replications:,} replications, each strategy at its best interval; "
        f"± half of the 95 % interval. {_limit(selection)}",
        ["strategy", "saves every", *headings],
        [[", ".join(equal), *cells] for cells, equal in names.items()],
        ["saves every"],
    )


def _limit(selection: Selection) -> str:
    limit = selection.limit
    if not selection.limited:
        return "No compared option leaves shards stale, so no limit is needed."
    expected = "expected " if limit.risk is None else ""
    return f"Limit of the {expected}{limit.words}: {limit.most:g} ({limit.bound_words})."


def _cells(selection: Selection, candidate: CandidateSummary, *, waits: bool) -> list[str]:
    every = "never saves" if candidate.n_saves == 0 else hours(candidate.policy.interval_h)
    every += f" ({candidate.interval_option})" if candidate.interval_option else ""
    if candidate.finished_fraction < 1:
        return [every, f"{percent(candidate.finished_fraction)} finish"]
    costs = [every, estimated(candidate.overhead, 100)]
    if waits:
        costs.append(percent_number(candidate.waiting))
    if candidate is selection.full:
        return costs
    loss = [portion(candidate.loss.mean), portion(candidate.upper_bound)]
    if selection.limit.metric is not None:
        in_units = [
            significant(1e4 * value) for value in (candidate.loss.mean, candidate.upper_bound)
        ]
        loss = [portion(candidate.pls.mean), *in_units]
    if selection.limited and not candidate.within_limit:
        loss[-1] += OVER_LIMIT
    return [*costs, estimated(candidate.benefit, 100), *loss]


# ------------------------------------------------------------------------------ sentences


def _contradicts(bills: Bills, selection: Selection) -> bool:
    """Whether neither the choice nor its equivalents cost least in all."""
    alike = {selection.recommended, *selection.equivalent}
    return selection.recommended in bills and cheapest_by_bill(bills) not in alike


def _decision(selection: Selection) -> list[str]:
    """The recommendation, its reason, and its entry in a scenario."""
    chosen, full = selection.chosen, selection.full
    if selection.recommended is None:
        return [
            f"Use none of these: full recovery finishes {percent(full.finished_fraction)} of the "
            "jobs, and no other option of known, allowed loss finishes all."
        ]
    costs = f"{percent(chosen.overhead.mean)} of useful time"
    entry = f"In the scenario: recovery: [{selection.entries[chosen.strategy]}]"
    if chosen.loses and selection.accuracy:
        entry += f", and on the next line {selection.accuracy}"
    if selection.fell_back:
        run = f"Use full recovery, {full.interval_words}: it costs {costs}."
        return [f"{run} {_why_full(selection)}", entry]
    less = with_ends(*chosen.benefit.times(100).triple)
    against = f", {less} percentage points less than full recovery ({full.interval_words})"
    if full.finished_fraction < 1:
        against = f"; under full recovery only {percent(full.finished_fraction)} of the jobs finish"
    loses = "It loses no samples."
    if chosen.loses:
        loses = selection.limit.held(chosen.loss.mean, chosen.upper_bound).sentence
    words = maintained(_recommended(selection))
    name = f"{chosen.strategy} ({words})" if words else chosen.strategy
    run = f"Use {name}, {chosen.interval_words}: it costs {costs}"
    return [f"{run}{against}. {loses}", entry]


def _why_full(selection: Selection) -> str:
    finishing = [
        candidate
        for candidate in selection.best.values()
        if candidate and candidate.finished_fraction == 1
    ]
    if not selection.best:
        return "Nothing else is compared: list recovery systems under 'recovery' in the scenario."
    if not finishing:
        condition = "finishes within the limit" if selection.limited else "lets all jobs finish"
        return f"No other option {condition}."
    nearest = max(finishing, key=lambda candidate: candidate.benefit.mean)
    nearest_words = f"The cheapest of the others, {nearest.strategy}, {nearest.interval_words},"
    costs = percent(nearest.overhead.mean)
    if nearest.benefit.high < 0:
        return f"{nearest_words} costs more: {costs}."
    if nearest.benefit.low == nearest.benefit.high == 0:
        return f"{nearest_words} costs equally much."
    if nearest.is_cheaper:
        return f"{nearest_words} costs {costs}, and its accuracy loss is unknown."
    less = ends(100 * nearest.benefit.low, 100 * nearest.benefit.high)
    how_much = f"by {less} percentage points, 95 % interval"
    return f"{nearest_words} is not significantly cheaper ({how_much})."


def _remarks(selection: Selection, bills: Bills) -> Iterator[str]:
    """Reasons, warnings, costs, and inputs that could reverse the decision."""
    chosen, at_stops = selection.chosen, stops_save(selection.path, selection.useful_h)
    yield from _why_not(selection)
    yield from filter(None, (selection.resources, others_do_not_wait(chosen.summary), at_stops))
    yield from (f"Warning: {note}" for note in selection.notes)
    for candidate in selection.best.values():
        if candidate and candidate.beyond_fraction > MAX_EXTRAPOLATED:
            beyond = percent(candidate.beyond_fraction)
            yield (
                f"Warning: at {candidate.strategy}'s interval {beyond} of the jobs "
                "lose more than the curve was measured for; their loss is extrapolated."
            )
        if candidate and candidate.n_saves == 0 and candidate.policy.leaves_stale:
            yield f"{candidate.strategy} never saves. {back_to_start(candidate.stale_fraction)}"
    unprotected = [
        candidate
        for candidate in selection.finishing.values()
        if candidate.policy.risks_all(selection.useful_h)
        and not (candidate.policy.leaves_stale or (at_stops and candidate.policy.tiers))
    ]
    if unprotected:
        worst = max(candidate.worst for candidate in unprotected)
        yield never_saves([one.strategy for one in unprotected], worst, selection.n_replications)
    if selection.stand_in:
        yield (
            "The curve was measured on a small model, not on yours: measure yours with "
            "`cprsim measure`."
        )
    if bills and not _contradicts(bills, selection):
        yield cheapest(bills, chosen.strategy)
    if unsure := break_even_sentences(selection.break_evens):
        yield f"With these saves{', by total cost' if bills else ''}: {' '.join(unsure)}"
    if selection.curve is not None and selection.limited:
        yield f"Staleness curve: {selection.curve}."


def _why_not(selection: Selection) -> Iterator[str]:
    """Why CPR's other strategies, and cheaper systems of known loss, are not recommended."""
    chosen, why = selection.chosen, dict[str, list[str]]()
    for name, candidate in selection.best.items():
        loss_known = candidate is not None and candidate.policy.accuracy_model is None
        costs_less = candidate and candidate.overhead.mean < chosen.overhead.mean
        if name != chosen.strategy and (name in RELOADING or (loss_known and costs_less)):
            why.setdefault(_why_not_this(selection, name, candidate), []).append(name)
    unknown = f"the curve does not predict the {selection.limit.words}"
    why |= {unknown: list(selection.left_out)} if selection.left_out else {}
    clauses = [f"{', '.join(names)}: {reason}" for reason, names in why.items()]
    if clauses:
        yield f"Why not another? {'. '.join(clauses)}."


def _why_not_this(selection: Selection, name: str, candidate: CandidateSummary | None) -> str:
    chosen = selection.chosen
    if candidate is None:
        return "no interval is within the limit"
    if name in selection.equivalent:
        return f"equivalent to {chosen.strategy}, which is simpler"
    if candidate.finished_fraction < 1:
        return f"only {percent(candidate.finished_fraction)} of the jobs finish"
    more = 100 * (candidate.overhead.mean - chosen.overhead.mean)
    if abs(more) < 100 * EQUAL_BELOW:
        return "equal overhead"
    if more <= 0:
        return f"{significant(-more)} points cheaper, but not significantly"
    return f"{significant(more)} points more overhead"
