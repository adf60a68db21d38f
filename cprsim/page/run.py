"""A result of ``cprsim run`` as a document: what failures cost, how bad it gets, one course."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan

import numpy as np

from cprsim.page.answer import answer, question, spread_in_percent
from cprsim.page.course import course_section
from cprsim.plots import overhead_figure, percentiles_figure
from cprsim.plots.overhead import mark
from cprsim.plots.percentiles import POINTED_AT
from cprsim.plots.style import look_of
from cprsim.present.document import (
    Block,
    Column,
    Document,
    Mark,
    Picture,
    Price,
    Scale,
    Section,
    Table,
    Words,
)
from cprsim.present.provenance import file_listing, provenance
from cprsim.records import RecoveryPolicy
from cprsim.report.accuracy_sentences import accuracy_sentences, knows_loss
from cprsim.report.as_json import number
from cprsim.report.sentences import decisions, savings, verdicts
from cprsim.results import FINISHED, Result, Spread
from cprsim.results.percentiles import PERCENT, Percentiles, percentiles
from cprsim.results.words import (
    NO_NUMBER,
    count,
    hours,
    percent,
    percent_number,
    portion,
    saves,
    significant,
    suited,
    ten_thousandths,
    with_interval,
)

AS_RUN = "as it was run: overrides, seed and replications inside"
SHOWN_PERCENT = (10, 50, 90, 95, 99)
PAID = "ETTR paid"

Beside = Callable[[RecoveryPolicy, Mapping[str, Spread]], str]  # a cell of a strategy


def document_of_run(result: Result) -> Document:
    """Everything about one result of ``cprsim run``. Raises ResultError for an unreadable file."""
    whole = result.replay is None
    return Document(
        title=f"What failures cost: {result.name}",
        question=question(result),
        answer=answer(result),
        sections=[
            Section("What failures cost, and why", _costs(result)),
            *([Section("How bad a run can get", _badness(result))] if whole else []),
            course_section(result),
            Section("The scenario", [file_listing(result.path / "scenario.yaml", AS_RUN)]),
            Section("Where these numbers come from", provenance(result.manifest, result.path)),
        ],
    )


def _costs(result: Result) -> list[Block]:
    priced = accuracy_sentences(result) if result.curve is not None else []
    said = [*priced, *decisions(result), *verdicts(result), *savings(result)]
    blocks: list[Block] = [] if result.replay is not None else [_overhead_picture(result)]
    blocks.append(_overhead_table(result))
    if said:
        blocks.append(Words(said))
    blocks.append(_price(result))
    return blocks


def _price(result: Result) -> Price:
    spreads = {name: of["overhead_node_h"] for name, of in result.spreads().items()}
    node_h = {
        name: (one.mean, number(one.low), number(one.high))
        for name, one in spreads.items()
        if not isnan(one.mean)
    }
    said = result.price
    return Price(node_h) if said is None else Price(node_h, said.node_hour, said.currency)


def _parts(result: Result) -> list[str]:
    """The parts of overhead that cost anything under any strategy."""
    spreads = result.spreads().values()
    return [part for part in result.parts if any(mine[part].mean > 0 for mine in spreads)]


def _overhead_picture(result: Result) -> Picture:
    parts, spreads = _parts(result), result.spreads()
    marks = {
        mark(i, part): Mark(_piece(policy.name, part, spreads[policy.name], result), part)
        for i, policy in enumerate(result.policies)
        for part in parts
        if spreads[policy.name][part].mean > 0
    }
    return Picture(
        caption="Overhead by strategy and cause",
        alternative=(
            "Stacked bars: mean overhead of each strategy in percent of useful time, by cause, "
            "with the 95 % interval of the total. The table below has the numbers."
        ),
        draw=lambda narrow: overhead_figure(result, narrow=narrow),
        marks=marks,
        groups={part: look_of(part).label for part in parts},
    )


def _piece(strategy: str, part: str, mine: dict[str, Spread], result: Result) -> str:
    cost_h = mine[part].mean * result.useful_h
    return (
        f"{strategy}, {look_of(part).label}: {spread_in_percent(mine[part])} of useful time, "
        f"{hours(cost_h)} per job"
    )


def _overhead_table(result: Result) -> Table:
    parts, beside, price = _parts(result), _beside(result), result.price
    partial = any(policy.leaves_stale for policy in result.policies)
    priced = partial and result.curve is not None and knows_loss(result)
    return Table(
        caption=(
            "Means per job; ± the half-width of the 95 % interval. Overhead and its causes in % of "
            "useful time; ETTR is useful over wall time; PLS is the portion of lost samples."
            + (" AUC loss is by the staleness curve, whose error is in it." if priced else "")
            + (" ETTR paid counts the nodes beside the job's own." if PAID in beside else "")
        ),
        columns=[
            Column("strategy", is_number=False),
            Column("saves", is_number=False),
            Column("overhead, %"),
            *(Column(f"{look_of(part).label}, %") for part in parts),
            Column("failures"),
            Column("ETTR"),
            *map(Column, beside),
            *([Column("PLS")] if partial else []),
            *([Column("AUC loss, ×10⁻⁴")] if priced else []),
            Column("cost, h"),
            Column("cost, node-h"),
            *([Column(f"cost, {price.currency or 'money'}")] if price else []),
        ],
        rows=[
            _overhead_row(result, number, parts, beside, partial, priced)
            for number in range(len(result.policies))
        ],
    )


def _beside(result: Result) -> dict[str, Beside]:
    """Columns of what is paid beside the nodes of the job, where there is anything."""
    found: dict[str, Beside] = {}
    if any(mine["ettr_paid"].mean < mine["ettr"].mean for mine in result.spreads().values()):
        found[PAID] = lambda policy, mine: _fixed(mine["ettr_paid"].mean, 3)
    if any(policy.extra_nodes for policy in result.policies):
        found["extra nodes"] = lambda policy, mine: significant(policy.extra_nodes)
    if any(policy.extra_memory_fraction for policy in result.policies):
        found["memory, + % of the state"] = lambda policy, mine: percent_number(
            policy.extra_memory_fraction
        )
    return found


def _overhead_row(
    result: Result,
    number: int,
    parts: Sequence[str],
    beside: Mapping[str, Beside],
    partial: bool,
    priced: bool,
) -> list[str]:
    policy = result.policies[number]
    mine = result.spreads()[policy.name]
    stale, lost = policy.leaves_stale, mine["auc_loss"]
    return [
        policy.name,
        saves(policy, result.useful_h),
        _share(mine["overhead_fraction"], mine[FINISHED]),
        *(_share(mine[part]) for part in parts),
        significant(mine["failures"].mean),
        _fixed(mine["ettr"].mean, 3),
        *(cell(policy, mine) for cell in beside.values()),
        *([portion(mine["pls"].mean) if stale else NO_NUMBER] if partial else []),
        *([ten_thousandths(lost.mean, lost.half_width)] if priced else []),
        with_interval(mine["overhead_h"].mean, mine["overhead_h"].half_width),
        with_interval(mine["overhead_node_h"].mean, mine["overhead_node_h"].half_width),
        *_money(mine["overhead_node_h"], result),
    ]


def _money(node_h: Spread, result: Result) -> list[str]:
    """What node-hours cost, where the scenario says a price."""
    if (price := result.price) is None:
        return []
    return [with_interval(price.of(node_h.mean), price.of(node_h.half_width))]


def _share(spread: Spread, finished: Spread | None = None) -> str:
    if isnan(spread.mean) and finished is not None:
        return f"only {percent(finished.mean)} finished"
    if percent_number(spread.half_width) == "0":
        return percent_number(spread.mean)
    return with_interval(100 * spread.mean, 100 * spread.half_width)


def _fixed(value: float, digits: int) -> str:
    return NO_NUMBER if isnan(value) else f"{value:.{digits}f}"


def _badness(result: Result) -> list[Block]:
    found = overhead_percentiles(result)
    if not found:
        return [Words(["No strategy finished every replication: there is nothing to rank."])]
    picture = Picture(
        caption="Overhead over the percentile of the runs",
        alternative=(
            "A line per strategy: overhead in percent of useful time over the percentile of the "
            "runs, with bands of the 95 % intervals. The table below has the numbers."
        ),
        draw=lambda narrow: percentiles_figure(found, what=result.name, narrow=narrow),
    )
    readings = {
        name: [_reading(one.at(int(percent_of))) for percent_of in PERCENT]
        for name, one in found.items()
    }
    label = "Percentile of the runs"
    scale = Scale(picture, label, [int(p) for p in PERCENT], POINTED_AT, readings)
    return [scale, _badness_table(found)]


def overhead_percentiles(result: Result) -> dict[str, Percentiles]:
    """Percentiles of the overhead by strategy, of those that finished every replication."""
    found = {}
    for name, mine in result.replications.groupby("strategy", sort=False, observed=True):
        if mine["finished"].all():
            overhead = (mine["wall_h"] - mine["useful_h"]) / mine["useful_h"]
            found[str(name)] = percentiles(overhead.to_numpy(np.float64))
    return found


def _reading(spread: Spread) -> str:
    mean, low, high = _in_percent(spread)
    return f"{mean} % of useful time (95 % interval {low} to {high})"


def _badness_table(found: dict[str, Percentiles]) -> Table:
    n = max(one.n for one in found.values())
    return Table(
        caption=(
            f"Overhead in % of useful time by percentile of {count(n, 'run')}, with its 95 % "
            f"interval; {NO_NUMBER} where the runs are too few to bound it."
        ),
        columns=[
            Column("strategy", is_number=False),
            *(Column(f"P{percent_of}") for percent_of in SHOWN_PERCENT),
        ],
        rows=[
            [name, *(_percentile_cell(one.at(percent_of)) for percent_of in SHOWN_PERCENT)]
            for name, one in found.items()
        ],
    )


def _percentile_cell(spread: Spread) -> str:
    mean, low, high = _in_percent(spread)
    return f"{mean} ({low} to {high})"


def _in_percent(spread: Spread) -> tuple[str, str, str]:
    return suited(100 * spread.mean, 100 * spread.low, 100 * spread.high)
