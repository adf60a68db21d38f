"""A result of ``cprsim run``: what failures cost, how bad it gets, one replication along its time.

The terminal gets `run_blocks`, a page `document_of_run`, a script `run_as_json`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from cprsim.files import finite_or_none
from cprsim.present.document import (
    Block,
    Cell,
    Column,
    Document,
    ListingBlock,
    Picture,
    Section,
    Table,
    Words,
    row_columns,
)
from cprsim.present.money import bills_as_json, money_of, money_section
from cprsim.present.provenance import FOUND_AGAIN, origin, places
from cprsim.present.run_sentences import (
    accuracy_sentences,
    answer,
    assumed_limits,
    decisions,
    knows_loss,
    question,
    savings,
    verdicts,
)
from cprsim.present.run_timeline import timeline_section
from cprsim.records import NO_NUMBER, Estimate, interval
from cprsim.recovery.intervals import n_saves_due
from cprsim.recovery.policy import RESTART, Policy
from cprsim.results import FINISHED, Result
from cprsim.results.metrics import BESIDE, Percentiles, parts_among, percentiles
from cprsim.results.money import bills_in
from cprsim.results.rows import BEYOND, QUANTITIES, further_losses
from cprsim.results.run import judged_by, worth_seeing
from cprsim.results.words import (
    count,
    every,
    hours,
    part_label,
    percent,
    percent_number,
    portion,
    saves,
    significant,
    suited,
    ten_thousandths,
    with_interval,
    writes_parts_only,
)
from cprsim.staleness import Metric

if TYPE_CHECKING:
    pass

AS_RUN = "as it was run: overrides, seed and replications inside"
SHOWN_PERCENT = (10, 50, 90, 95, 99)
AUC_LOSS = "auc_loss"
# metrics that have a column of their own here, or stand in files and JSON alone
PLACED = frozenset({
    "failures", "saves", "pls", "pls_net", *QUANTITIES.values(), BEYOND, "ettr", "ettr_paid",
    "overhead_h", "overhead_node_h", "wall_h",
})  # fmt: skip
BRIEF = {  # headings on a terminal of parts of overhead that are not headed by their name
    "lost": "lost\nwork",
    "wait": "wait for\nspare",
    "reschedule": "re-\nschedule",
}


def run_blocks(result: Result, *, found_again: bool = False) -> list[Block]:
    """What a terminal shows."""
    return [
        *map(Words, [said] if (said := assumed_limits(result)) else []),
        Words([_heading(result)]),
        costs_table(result),
        *money_of(result),
        *map(Words, _remarks(result)),
        Words([_terms(result)]),
        places_of_run(result, found_again=found_again),
    ]


def document_of_run(result: Result) -> Document:
    """Everything about one result of ``cprsim run``. Raises ResultError for an unreadable file."""
    return Document(
        title=f"What failures cost: {result.name}",
        question=question(result),
        answer=[*assumed_limits(result), *answer(result)],
        sections=[
            Section("What failures cost, and why", _costs(result)),
            Section("What it costs in all", money_section(result)),
            Section("How bad a run can get", _badness(result) if result.replay is None else []),
            timeline_section(result),
            *origin(result.manifest, result.path, AS_RUN),
        ],
    )


def places_of_run(result: Result, *, found_again: bool) -> ListingBlock:
    """Where the results, the events and the figures are."""
    files = sorted(result.manifest.get("files", {}))
    shown = [name for name in files if name.endswith(".png") or name == "events.csv"]
    note = FOUND_AGAIN if found_again else ""
    return places(result.path, (result.path / name for name in shown), note)


def _heading(result: Result) -> str:
    n = max(spreads[FINISHED].n for spreads in result.spreads().values())
    overhead = "Overhead = (wall - useful) / useful"
    if result.replay is not None:
        meaning = f"{overhead}; this is replication {result.replay} alone."
    else:
        interval = ", ± the half-width of the 95 % interval" if n > 1 else ""
        meaning = f"{overhead}; means{interval}."
    return (
        f"{result.name}: {hours(result.useful_h)} of useful work on "
        f"{count(result.n_nodes, 'node')}, {count(n, 'replication')}. {meaning}"
    )


def _remarks(result: Result) -> list[list[str]]:
    """Sentences that belong to the table, by what they are about."""
    whole = result.replay is None
    return [
        [f"Log: {note}." for note in result.log_notes],
        accuracy_sentences(result),
        decisions(result),
        verdicts(result),
        savings(result) if whole else [],
        _replications_to_replay(result) if whole else [],
    ]


def _terms(result: Result) -> str:
    """What the table's terms mean, for readers who see them for the first time."""
    terms = ["ETTR is useful time over wall time"]
    if any(policy.leaves_stale for policy in result.policies):
        terms.append("PLS the portion of lost samples")
    if any(policy.interval_rule == "young" for policy in result.policies):
        terms.append("young an interval by Young's formula, from the cost of a save and the MTBF")
    return f"In the table {', '.join(terms)} (docs/concepts.md)."


def _replications_to_replay(result: Result) -> list[str]:
    """Which replications are worth looking at one by one."""
    numbers = worth_seeing(result)
    if len(set(numbers.values())) < len(numbers):
        return []
    named = ", ".join(f"{number} ({what})" for what, number in numbers.items())
    return [f"Worth a look with --replay N, by the overhead of {judged_by(result)}: {named}."]


# ------------------------------------------------------------------------------ the table of costs


@dataclass(frozen=True, slots=True)
class StrategyLine:
    """What is known of one strategy: its policy, and its summary by quantity."""

    policy: Policy
    spreads: Mapping[str, Estimate]
    useful_h: float

    def mean(self, quantity: str) -> float:
        return self.spreads[quantity].mean


ColumnOfLines = tuple[Column, Callable[[StrategyLine], str | Cell]]


def costs_table(result: Result) -> Table:
    """A row per strategy: overhead and its parts, failures, ETTR, PLS, cost."""
    spreads = result.spreads()
    lines = [
        StrategyLine(policy, spreads[policy.name], result.useful_h) for policy in result.policies
    ]
    columns: list[ColumnOfLines] = [
        (Column("strategy", is_number=False), lambda line: line.policy.name),
        (Column("saves every", is_number=False, brief="saves\nevery"), _every),
        (Column("overhead, %", brief="overhead\n% of useful"), _overhead),
        *_part_columns(result),
        *_other_columns(result, lines),
    ]
    return Table(
        caption=_caption(result, [column for column, _ in columns]),
        columns=[column for column, _ in columns],
        rows=[[cell(line) for _, cell in columns] for line in lines],
        apart="of which, in % of useful time",
    )


def _caption(result: Result, columns: Sequence[Column]) -> str:
    headings = [column.heading for column in columns]
    return (
        "Means per job; ± the half-width of the 95 % interval. Overhead and its causes in % of "
        "useful time; ETTR is useful over wall time; PLS is the portion of lost samples."
        + (
            f" {' and '.join(losses)} {'is' if len(losses) == 1 else 'are'} by the staleness "
            "curve, whose error is in it."
            if (losses := [h.partition(",")[0] for h in headings if " loss, " in h])
            else ""
        )
        + (" ETTR paid counts the nodes beside the job's own." if "ETTR paid" in headings else "")
    )


def parts_shown(result: Result) -> list[str]:
    """The parts of overhead that cost anything under any strategy."""
    spreads = result.spreads().values()
    return [part for part in result.parts if any(of[part].mean > 0 for of in spreads)]


def _part_columns(result: Result) -> list[ColumnOfLines]:
    return [
        (Column(f"{part_label(part)}, %", brief=BRIEF.get(part, part), apart=True), _share(part))
        for part in parts_shown(result)
    ]


def _other_columns(result: Result, lines: Sequence[StrategyLine]) -> list[ColumnOfLines]:
    """Columns after the parts; those that would say nothing are left out."""
    stale = any(line.policy.leaves_stale for line in lines)
    price = result.price
    columns: list[tuple[bool, ColumnOfLines]] = [
        (True, (Column("failures", brief="failures\nper job"), _failures)),
        (True, (Column("ETTR"), lambda line: _fixed(line.mean("ettr"), 3))),
        (
            any(line.mean("ettr_paid") < line.mean("ettr") for line in lines),
            (
                Column("ETTR paid", brief="ETTR\npaid"),
                lambda line: _fixed(line.mean("ettr_paid"), 3),
            ),
        ),
        (
            any(line.policy.tax.nodes for line in lines),
            (
                Column("extra nodes", brief="extra\nnodes"),
                lambda line: significant(line.policy.tax.nodes),
            ),
        ),
        (
            any(line.policy.tax.memory for line in lines),
            (
                Column("memory, + % of the state", brief="memory\n+ % state"),
                lambda line: percent_number(line.policy.tax.memory),
            ),
        ),
        (stale, (Column("PLS"), _pls)),
        *(
            (stale and knows_loss(result, quantity), (loss_column(quantity), _loss(quantity)))
            for quantity in (AUC_LOSS, *further_losses(result.replications))
        ),
        (True, (Column("cost, h", brief="cost\nh", dispensable=True), _cost("overhead_h"))),
        (True, (Column("cost, node-h", brief="cost\nnode-h"), _cost("overhead_node_h"))),
        *(
            (all(name in line.spreads for line in lines), _added(name))
            for name in BESIDE
            if name not in PLACED
        ),
    ]
    if price is not None:
        money = price.currency or "money"
        column = Column(f"cost, {money}", brief=f"cost\n{money}")
        columns.append((True, (column, _cost("overhead_node_h", price.of))))
    return [column for is_shown, column in columns if is_shown]


def _added(name: str) -> ColumnOfLines:
    """The column of a metric that this file says nothing of."""
    heading = name.replace("_", " ")
    return Column(heading), lambda line: significant(line.mean(name))


def _every(line: StrategyLine) -> str:
    policy, useful_h = line.policy, line.useful_h
    if policy.interval_h == inf:
        never = policy.on_failure == RESTART
        return policy.interval_rule if never else f"no saves, {policy.interval_rule}"
    if n_saves_due(policy.interval_h, useful_h):
        return f"{every(policy)}, {policy.interval_rule}"
    what = saves(policy, useful_h) if writes_parts_only(policy, useful_h) else "no saves"
    return f"{what} ({hours(policy.interval_h)}, {policy.interval_rule})"


def _overhead(line: StrategyLine) -> str:
    overhead = line.spreads["overhead_fraction"]
    if isnan(overhead.mean):
        return f"{percent(line.mean(FINISHED))} done"
    return with_interval(100 * overhead.mean, 100 * overhead.half_width)


def _share(part: str) -> Callable[[StrategyLine], Cell]:
    """A part of overhead in percent; on a page with its interval, where it has a width."""

    def cell(line: StrategyLine) -> Cell:
        spread = line.spreads[part]
        mean = percent_number(spread.mean)
        if percent_number(spread.half_width) == "0":
            return Cell(mean, mean)
        return Cell(with_interval(100 * spread.mean, 100 * spread.half_width), mean)

    return cell


def _failures(line: StrategyLine) -> str:
    return significant(line.mean("failures"))


def _pls(line: StrategyLine) -> str:
    return portion(line.mean("pls")) if line.policy.leaves_stale else NO_NUMBER


def loss_column(quantity: str) -> Column:
    """Of the loss in one metric, in ten-thousandths."""
    metric = Metric.of_quantity(quantity)
    assert metric is not None, quantity
    what = f"{metric.label} loss"
    return Column(f"{what}, ×10⁻⁴", brief=f"{what}\n×10⁻⁴")


def _loss(quantity: str) -> Callable[[StrategyLine], Cell | str]:
    def cell(line: StrategyLine) -> str:
        loss = line.spreads[quantity]
        return ten_thousandths(loss.mean, loss.half_width)

    return cell


def _cost(
    quantity: str, price_of: Callable[[float], float] = float
) -> Callable[[StrategyLine], Cell]:
    """Hours, node-hours or money; on a page with the interval."""

    def cell(line: StrategyLine) -> Cell:
        spread = line.spreads[quantity]
        mean, half_width = price_of(spread.mean), price_of(spread.half_width)
        return Cell(with_interval(mean, half_width), significant(mean))

    return cell


def _fixed(value: float, digits: int) -> str:
    return NO_NUMBER if isnan(value) else f"{value:.{digits}f}"


# ------------------------------------------------------------------------------ sections of a page


def _costs(result: Result) -> list[Block]:
    remarks = [sentence for group in _remarks(result) for sentence in group]
    return [
        *([] if result.replay is not None else [_overhead_picture(result)]),
        costs_table(result),
        Words(remarks),
    ]


def _overhead_picture(result: Result) -> Picture:
    from cprsim.plots.run import overhead_figure

    return Picture(
        caption="Overhead by strategy and cause",
        alternative=(
            "Stacked bars: mean overhead of each strategy in percent of useful time, by cause, "
            "with the 95 % interval of the total. The table below has the numbers."
        ),
        draw=lambda: overhead_figure(result),
    )


def _badness(result: Result) -> list[Block]:
    found = overhead_percentiles(result)
    if not found:
        return [Words(["No strategy finished every replication: there is nothing to rank."])]
    return [_percentile_picture(found, result.name), _badness_table(found)]


def _percentile_picture(found: dict[str, Percentiles], name: str) -> Picture:
    from cprsim.plots.run import percentiles_figure

    return Picture(
        caption="Overhead over the percentile of the runs",
        alternative=(
            "A line per strategy: overhead in percent of useful time over the percentile of the "
            "runs, with bands of the 95 % intervals. The table below has the numbers."
        ),
        draw=lambda: percentiles_figure(found, what=name),
    )


def overhead_percentiles(result: Result) -> dict[str, Percentiles]:
    """Percentiles of the overhead by strategy, of those that finished every replication."""
    found = {}
    for name, rows in result.replications.groupby("strategy", sort=False, observed=True):
        if rows["finished"].all():
            overhead = (rows["wall_h"] - rows["useful_h"]) / rows["useful_h"]
            found[str(name)] = percentiles(overhead.to_numpy(np.float64))
    return found


def _badness_table(found: dict[str, Percentiles]) -> Table:
    n = max(one.n for one in found.values())
    return Table(
        caption=(
            f"Overhead in % of useful time by percentile of {count(n, 'run')}, with its 95 % "
            f"interval; {NO_NUMBER} where the runs are too few to bound it."
        ),
        columns=row_columns("strategy", *(f"P{percent_of}" for percent_of in SHOWN_PERCENT)),
        rows=[
            [name, *(_percentile_cell(one.at(percent_of)) for percent_of in SHOWN_PERCENT)]
            for name, one in found.items()
        ],
    )


def _percentile_cell(spread: Estimate) -> str:
    mean, low, high = suited(*spread.times(100).triple)
    return f"{mean} ({low} to {high})"


# ------------------------------------------------------------------------------ for scripts


def run_as_json(result: Result) -> dict[str, Any]:
    """The object that ``cprsim run --json`` prints; docs/metrics.md says what each key means."""
    return {
        "name": result.name,
        "useful_h": result.useful_h,
        "n_nodes": result.n_nodes,
        "results": str(result.path),
        "verdicts": verdicts(result),
        "warnings": list(result.warnings),
        "price": result.price and asdict(result.price),
        "accuracy": accuracy_sentences(result),
        "curve": result.curve and asdict(result.curve),
        "log_notes": list(result.log_notes),
        "worth_seeing": worth_seeing(result),
        "strategies": [_strategy(policy, result) for policy in result.policies],
        **bills_as_json(bills_in(result)),
    }


def _strategy(policy: Policy, result: Result) -> dict[str, Any]:
    spreads = result.spreads()[policy.name]
    return {
        "name": policy.name,
        "interval_h": finite_or_none(policy.interval_h),
        "interval_rule": policy.interval_rule,
        "on_failure": policy.on_failure,
        "decision": policy.decision and policy.decision.chosen,
        "extra_nodes": policy.tax.nodes,
        "extra_memory_fraction": policy.tax.memory,
        "replications": spreads[FINISHED].n,
        FINISHED: finite_or_none(spreads[FINISHED].mean),
        "overhead_fraction": interval(spreads["overhead_fraction"]),
        **{part: interval(spreads[part]) for part in parts_among(spreads)},
        **{quantity: finite_or_none(spreads[quantity].mean) for quantity in BESIDE},
        "intervals": {quantity: interval(spreads[quantity]) for quantity in BESIDE},
        **_money(spreads["overhead_node_h"], result),
    }


def _money(node_h: Estimate, result: Result) -> dict[str, Any]:
    """What the overhead costs, with the interval of its node-hours."""
    if (price := result.price) is None:
        return {}
    return {"overhead_cost": interval(node_h, price.of)}
