"""A run: the costs of failures, their percentiles, and the timeline of one replication."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, isnan
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from cprsim.commands.run import figures, sentences
from cprsim.job.intervals import n_saves_due
from cprsim.job.losses import Metric
from cprsim.job.policy import RESTART, Policy
from cprsim.job.records import NO_NUMBER, Estimate
from cprsim.pages.answer import Answer
from cprsim.pages.document import Block, Document, Picture, Section, Table, Words
from cprsim.pages.money import bills_frame, cheapest, money_tables
from cprsim.pages.provenance import origin
from cprsim.pages.recommendation import maintained, recommendation, turns_on, waits_decide
from cprsim.results.folder import free_spares, stops_save, stored_scenario
from cprsim.results.metrics import (
    ALWAYS_NAMED,
    BESIDE_OVERHEAD,
    BEYOND,
    FINISHED,
    OVERHEAD,
    Quantities,
    further_losses,
    more_than,
    parts_among,
    percentiles,
    share_of,
)
from cprsim.results.money import cheapest_by_bill
from cprsim.results.run import Result, judged_by, worth_seeing
from cprsim.results.unknown import WAITING, shows_waits, waiting
from cprsim.results.words import (
    count,
    estimated,
    every,
    hours,
    part_label,
    percent,
    percent_number,
    portion,
    saves,
    significant,
    suited,
    writes_parts_only,
)

AS_RUN = "as it was run: overrides, seed and replications inside"
SHOWN_PERCENT = (10, 50, 90, 95, 99)
FAILURES_SHOWN = 40  # failures shown: more are a table that nobody reads
PLACED = frozenset({
    "failures", "saves", "pls", "pls_net", *ALWAYS_NAMED.values(), BEYOND, "ettr", "ettr_paid",
    "overhead_h", "overhead_node_h", "wall_h",
})  # fmt: skip
"""Metrics with a column of their own in a table, or in frames alone."""


def answer_of_run(result: Result, **about: Any) -> Answer:
    """The answer that a results folder of a run holds."""
    bills, price = result.bills, result.prices
    money = {"bills": bills_frame(bills)} if bills else {}
    return Answer(
        "run",
        result.name,
        lambda: document_of_run(result),
        frames={"strategies": strategies_frame(result), **money},
        values={
            "useful_h": result.useful_h,
            "n_nodes": result.n_nodes,
            "replay": result.replay,
            "warnings": result.warnings,
            "price": {"node_hour": price.node_hour, "currency": price.prices.label}
            if price and price.node_hour
            else None,
            "cheapest": cheapest_by_bill(bills) if bills else None,
            "curve": result.curve,
            "log_notes": result.log_notes,
            "worth_seeing": worth_seeing(result),
            "recommendation": recommended(result),
            "spares": result.spares,
        },
        rows={"replications": result.replications, "events": result.timeline},
        **about,
    )


def recommended(result: Result) -> dict[str, Any] | None:
    """The cheapest strategy compared with plain full recovery, or with the next one.

    None where none finishes, or where they are no entries of a scenario: those of a rehearsal.
    """
    best = result.cheapest
    entries = {entry["name"]: entry for entry in stored_scenario(result.path)["recovery"]}
    if best is None or best.name not in entries:
        return None
    more = more_than(best.name, result.replications, result.n_nodes)
    plain = sentences.plain_full([policy for policy in result.policies if policy.name in more])
    next_best = min(more, key=lambda name: more[name].mean, default=None)
    beats = next_best if plain is None else plain.name
    return recommendation(
        entries[best.name],
        result.summary[best.name]["overhead_fraction"],
        beats=beats,
        less=more[beats] if beats else None,
        turns_on=result.assumption,
    )


def strategies_frame(result: Result) -> pd.DataFrame:
    """A row per strategy: its policy, and each quantity with its interval."""
    price, rows = result.prices and result.prices.node_hour, []
    for policy in result.policies:
        summary, bill = result.summary[policy.name], result.bills.get(policy.name)
        row = {
            "strategy": policy.name,
            "interval_h": policy.interval_h,
            "interval_rule": policy.interval_rule,
            "on_failure": policy.on_failure,
            "decision": policy.decision and policy.decision.chosen,
            "extra_nodes": policy.tax.nodes,
            "extra_memory_fraction": policy.tax.memory,
            "replications": summary[FINISHED].n,
        }
        for name, of in summary.items():
            row |= of.columns(name)
        if price:
            row |= summary["overhead_node_h"].times(price).columns("overhead_cost")
        if bill is not None and bill.energy_kwh is not None:
            row["energy_kwh_per_month"] = bill.energy_kwh
            row["carbon_kg_per_month"] = bill.carbon_kg
        rows.append(row)
    return pd.DataFrame(rows)


def document_of_run(result: Result) -> Document:
    """Everything about one run. Raises ResultError for an unreadable file."""
    pictures, is_whole = pictures_of_run(result), result.replay is None
    course = [pictures["timeline"], *_course(result)] if "timeline" in pictures else []
    return replace(main_of_run(result), sections=[
        Section("Why", [*([pictures["overhead"]] if is_whole else []), parts_table(result)]),
        Section("What it costs in all", money_tables(result.bills)),
        Section("How bad a run can get", _badness(result, pictures) if is_whole else []),
        Section("One course of the job", course),
        *origin(result.manifest, result.path, AS_RUN),
    ])  # fmt: skip


def main_of_run(result: Result) -> Document:
    """Its question, answer, table and remarks."""
    is_whole = result.replay is None
    over = {name for name, held in result.limits.items() if any(one.is_over for one in held)}
    bills = {name: bill for name, bill in result.bills.items() if name not in over}
    said = sentences.answer(result, maintained(recommended(result)))
    best = result.cheapest.name if result.cheapest else None
    money = [cheapest(bills, best)] if bills else []
    by_bill = best in bills and cheapest_by_bill(bills) != best  # it decides, too
    return Document(
        title=f"What failures cost: {result.name}",
        question=sentences.question(result),
        answer=[
            *said[:1],
            *waits_decide(result.spares, result.n_nodes, result.prices),
            *(money if by_bill else []),
        ],
        table=costs_table(result),
        remarks=[
            *sentences.assumed_limits(result),
            *filter(None, [result.resources]),
            *sentences.verdicts(result),
            *said[1:],
            *([] if by_bill else money),
            *(f"Log: {note}." for note in result.log_notes),
            *sentences.decisions(result),
            *(sentences.savings(result) if is_whole else []),
            *sentences.accuracy_sentences(result),
            *(_replications_to_replay(result) if is_whole else []),
        ],
        turns_on=f"{turns_on(result.assumption)} {free_spares(result.path)}".strip(),
    )


def _replications_to_replay(result: Result) -> list[str]:
    """Which replications are worth looking at one by one."""
    numbers = worth_seeing(result)
    if not numbers or len(set(numbers.values())) < len(numbers):
        return []
    listed = ", ".join(f"{number} ({share})" for share, number in numbers.items())
    return [f"Worth a look with --replay N, by the overhead of {judged_by(result)}: {listed}."]


# ------------------------------------------------------------------------------ tables


def costs_table(result: Result) -> Table:
    """A row per strategy: overhead, failures, ETTR, PLS, cost; empty columns are left out."""
    policies, prices = result.policies, result.prices
    names, limits = [policy.name for policy in policies], result.limits
    summaries = [result.summary[name] for name in names]
    limited = {(name, one.column) for name, held in limits.items() for one in held}

    def means(name: str) -> list[float]:
        return [of[name].mean for of in summaries]

    columns = {
        "overhead, %": [_overhead(of) for of in summaries],
        "failures": [significant(mean) for mean in means("failures")],
        "ETTR": [_fixed(mean) for mean in means("ettr")],
    }
    if any(paid < ettr for paid, ettr in zip(means("ettr_paid"), means("ettr"), strict=True)):
        columns["ETTR paid"] = [_fixed(mean) for mean in means("ettr_paid")]
    if any(map(shows_waits, summaries)):
        columns[WAITING] = [
            NO_NUMBER if isnan(of[OVERHEAD].mean) else percent_number(waiting(of))
            for of in summaries
        ]
    if any(policy.tax.nodes for policy in policies):
        columns["extra nodes"] = [significant(policy.tax.nodes) for policy in policies]
    if any(policy.tax.memory for policy in policies):
        columns["memory, + % of state"] = [percent_number(policy.tax.memory) for policy in policies]
    if any(policy.leaves_stale for policy in policies):
        columns["PLS"] = [
            portion(mean) if policy.leaves_stale else NO_NUMBER
            for policy, mean in zip(policies, means("pls"), strict=True)
        ]
        for loss in ("auc_loss", *further_losses(result.replications)):
            if sentences.knows_loss(result, loss):
                columns[loss_heading(loss)] = [
                    estimated(Estimate(of[loss].mean) if (name, loss) in limited else of[loss], 1e4)
                    for name, of in zip(names, summaries, strict=True)
                ]
    if limits:
        bounds = dict.fromkeys(one.bound_words for held in limits.values() for one in held)
        columns[" or ".join(bounds)] = [
            "; ".join(one.cell for one in limits.get(name, ())) or NO_NUMBER for name in names
        ]
    columns["cost, node-h"] = [estimated(of["overhead_node_h"]) for of in summaries]
    for name in BESIDE_OVERHEAD:
        if name not in PLACED and all(name in of for of in summaries):
            columns[name.replace("_", " ")] = [significant(mean) for mean in means(name)]
    if prices is not None and prices.node_hour:
        costs = (of["overhead_node_h"].times(prices.node_hour) for of in summaries)
        columns[f"cost, {prices.prices.label or 'money'}"] = [estimated(cost) for cost in costs]
    intervals = [_every(policy, result) for policy in policies]
    return Table(
        _caption(result),
        ["strategy", "saves every", *columns],
        [*zip(names, intervals, *columns.values(), strict=True)],
        ["saves every"],
    )


def _caption(result: Result) -> str:
    n = max(of[FINISHED].n for of in result.summary.values())
    averaged = (
        f"this is replication {result.replay} alone"
        if result.replay is not None
        else f"means of {count(n, 'replication')}, ± half of the 95 % interval"
    )
    return (
        f"{result.name}: {hours(result.useful_h)} of useful work on "
        f"{count(result.n_nodes, 'node')}; {averaged}. Overhead is (wall - useful) / useful time."
    )


def parts_table(result: Result) -> Table:
    """A row per strategy: the parts of overhead that cost anything, in % of useful time."""
    summary = result.summary
    parts = [
        part
        for part in parts_among(next(iter(summary.values())))
        if any(of[share_of(part)].mean > 0 for of in summary.values())
    ]
    return Table(
        caption="The overhead in hours, and its parts in % of useful time",
        headings=["strategy", "overhead, h", *(f"{part_label(part)}, %" for part in parts)],
        rows=[
            [name, estimated(of["overhead_h"]), *(_share(of[share_of(part)]) for part in parts)]
            for name, of in summary.items()
        ],
    )


def _every(policy: Policy, result: Result) -> str:
    useful_h = result.useful_h
    none = "at planned stops" if stops_save(result.path, useful_h) else "no saves"
    if policy.interval_h == inf:
        never = policy.on_failure == RESTART
        return policy.interval_rule if never else f"{none}, {policy.interval_rule}"
    if n_saves_due(policy.interval_h, useful_h):
        return f"{every(policy)}, {policy.interval_rule}"
    saved = saves(policy, useful_h) if writes_parts_only(policy, useful_h) else none
    return f"{saved} ({hours(policy.interval_h)}, {policy.interval_rule})"


def _overhead(of: Quantities) -> str:
    overhead = of["overhead_fraction"]
    if isnan(overhead.mean):
        return f"{percent(of[FINISHED].mean)} finish"
    return estimated(overhead, 100)


def _share(estimate: Estimate) -> str:
    if 100 * estimate.half_width < 0.005:  # narrower than the digits that are shown
        return percent_number(estimate.mean)
    return estimated(estimate, 100)


def loss_heading(quantity: str) -> str:
    """Of the loss in one metric, in ten-thousandths."""
    metric = Metric.of_quantity(quantity)
    assert metric is not None, quantity
    return f"{metric.label} loss, ×10⁻⁴"


def _fixed(value: float) -> str:
    return NO_NUMBER if isnan(value) else f"{value:.3f}"


# ------------------------------------------------------------------------------ sections


def pictures_of_run(result: Result) -> dict[str, Picture]:
    """Its figures by name; one replication alone has no means and no percentiles."""
    pictures, by_strategy = list[Picture](), dict[str, pd.DataFrame]()
    if result.replay is None:
        pictures.append(overhead_picture(result))
        by_strategy |= overhead_percentiles(result)
    if by_strategy:
        pictures.append(Picture(
            "Overhead over the percentile of the runs",
            "A line per strategy: overhead in percent of useful time over the percentile of the "
            "runs, with bands of the 95 % intervals. The table below has the numbers.",
            lambda: figures.percentiles_figure(by_strategy, run_name=result.name),
            "percentiles",
        ))  # fmt: skip
    if len(result.timeline):  # a job that hardly gets on may have more events than memory holds
        pictures.append(Picture(
            f"Replication {result.timeline_replication} along its wall time, a lane per strategy",
            "A lane per strategy over wall time: useful work, saves, failures, recoveries and "
            "work done again; below, the first failure from close up. The table below has the "
            "numbers.",
            lambda: figures.timeline_figure(result),
            "timeline",
        ))  # fmt: skip
    return {picture.name: picture for picture in pictures}


def overhead_picture(result: Result, *more: Any) -> Picture:
    """Bars of the overhead; `more` as `overhead_figure` takes it."""
    return Picture(
        "Overhead by strategy and cause",
        "Stacked bars: mean overhead of each strategy in percent of useful time, by cause, "
        "with the 95 % interval of the total. The table below has the numbers.",
        lambda: figures.overhead_figure(result, *more),
        "overhead",
    )


def drawings_of_run(result: Result) -> dict[str, Callable[[], Figure]]:
    """What draws the figures of its folder."""
    return {name: picture.draw for name, picture in pictures_of_run(result).items()}


def _badness(result: Result, pictures: Mapping[str, Picture]) -> Sequence[Block]:
    by_strategy = overhead_percentiles(result)
    if not by_strategy:
        return [Words(["No strategy finished every replication: there is nothing to rank."])]

    def cell(of: pd.DataFrame, percent_of: int) -> str:
        ends = (float(100 * of[name][percent_of]) for name in ("value", "low", "high"))
        mean, low, high = suited(*ends)
        return mean if low == high else f"{mean} ({low} to {high})"

    n = max(of[FINISHED].n for of in result.summary.values())
    table = Table(
        caption=(
            f"Overhead in % of useful time by percentile of {count(n, 'run')}, with its 95 % "
            f"interval; {NO_NUMBER} where the runs are too few to bound it."
        ),
        headings=["strategy", *(f"P{percent_of}" for percent_of in SHOWN_PERCENT)],
        rows=[
            [name, *(cell(frame, percent_of) for percent_of in SHOWN_PERCENT)]
            for name, frame in by_strategy.items()
        ],
    )
    return [pictures["percentiles"], table]


def _course(result: Result) -> list[Block]:
    """A row per strategy and failure of the replication of the timeline."""
    rows = [row for name, lane in figures.lanes_of(result).items() for row in _failures(name, lane)]
    if not rows:
        return []
    left = len(rows) - FAILURES_SHOWN
    more = f"; {left:,} more are in timeline.parquet" if left > 0 else ""
    headings = [
        "strategy", "failure", "struck at, h", "who went back", "to the state of, h",
        "first new work after",
    ]  # fmt: skip
    caption = f"Effect of each failure: hours of wall time since the start of the job{more}"
    return [Table(caption, headings, rows[:FAILURES_SHOWN], ["who went back"])]


def _failures(name: str, lane: figures.Lane) -> Iterator[list[str]]:
    back = {setback.at_h: setback for setback in lane.setbacks}
    fresh = [span.start_h for span in lane.spans if span.activity == "useful"]
    for number, at_h in enumerate(lane.failed_at_h, start=1):
        setback = back.get(at_h)
        again_h = next((start_h for start_h in fresh if start_h > at_h), None)
        yield [
            name,
            str(number),
            f"{at_h:.2f}",
            "nobody" if setback is None else "failed shards" if setback.shards_only else "all",
            NO_NUMBER if setback is None else f"{setback.back_to_h:.2f}",
            NO_NUMBER if again_h is None else hours(again_h - at_h),
        ]


def overhead_percentiles(result: Result) -> dict[str, pd.DataFrame]:
    """Percentiles of the overhead by strategy, of those that finished every replication."""
    rows = result.replications
    overheads = rows.assign(overhead=(rows["wall_h"] - rows["useful_h"]) / rows["useful_h"])
    return {
        str(name): percentiles(mine["overhead"].to_numpy(np.float64))
        for name, mine in overheads.groupby("strategy", sort=False, observed=True)
        if mine["finished"].all()
    }
