"""The table of a run: one row per strategy, split in two where the terminal is too narrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isnan
from textwrap import fill
from typing import Literal

from rich.console import Console
from rich.table import Table

from cprsim.present.terminal import full_width, plain_table, print_whole
from cprsim.records import OnFailure, RecoveryPolicy
from cprsim.results import FINISHED, Result, Spread
from cprsim.results.metrics import parts_among
from cprsim.results.words import (
    NO_NUMBER,
    hours,
    percent,
    percent_number,
    portion,
    saves,
    significant,
    ten_thousandths,
    with_interval,
    writes_parts_only,
)
from cprsim.setting import n_saves_due

WORDS_WIDTHS = (
    24,
    16,
    12,
    10,
)  # characters at which names and rules are folded, if they have to be
UNFOLDED = 1000
COST_H = "cost\nh"
AUC_LOSS = "AUC loss\n×10⁻⁴"
PAID, EXTRA_NODES, EXTRA_MEMORY = "ETTR\npaid", "extra\nnodes", "memory\n+ % state"
HEADINGS = {  # of parts of overhead that are not headed by their name
    "lost": "lost\nwork",
    "wait": "wait for\nspare",
    "reschedule": "re-\nschedule",
}


@dataclass(frozen=True, slots=True)
class Line:
    """What is known of one strategy: its policy, and its summary by quantity."""

    policy: RecoveryPolicy
    summary: Mapping[str, Spread]  # by quantity
    useful_h: float

    def mean(self, quantity: str) -> float:
        return self.summary[quantity].mean


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading, and the cell of a line."""

    heading: str
    cell: Callable[[Line], str]
    align: Literal["left", "right"] = "right"


def lines(result: Result) -> list[Line]:
    """One line per strategy, in the scenario's order."""
    of = result.spreads()
    return [Line(policy, of[policy.name], result.useful_h) for policy in result.policies]


def print_run_table(console: Console, result: Result) -> None:
    """Print the table of a run; as two tables of the same rows where one would be cut."""
    rows = lines(result)
    parts, tail = _part_columns(rows), [*_tail_columns(rows), *_money_columns(result)]
    whole = _fitting(console, lambda width: [*_head_columns(width), *parts, *tail], rows)
    if whole is not None:
        print_whole(console, whole)
        return
    tail = [column for column in tail if column.heading != COST_H]  # per cent say the same
    narrow = _fitting(console, lambda width: [*_head_columns(width), *tail], rows)
    print_whole(console, narrow or _table([*_head_columns(WORDS_WIDTHS[-1]), *tail], rows))
    console.print("\nof which, in % of useful time:\n")
    print_whole(console, _table([_head_columns(WORDS_WIDTHS[1])[0], *parts], rows))


def _fitting(
    console: Console, columns: Callable[[int], list[Column]], rows: list[Line]
) -> Table | None:
    """The table with its words folded no more than has to be; None where it does not fit.

    Parameters
    ----------
    columns : makes the columns, with words folded at a number of characters
    """
    if not console.is_terminal:
        return _table(columns(UNFOLDED), rows)
    tables = (_table(columns(width), rows) for width in WORDS_WIDTHS)
    return next((table for table in tables if full_width(console, table) <= console.width), None)


def _head_columns(words_width: int) -> list[Column]:
    def saves_every(line: Line) -> str:
        hyphens = words_width == WORDS_WIDTHS[-1]
        return fill(_every(line.policy, line.useful_h), words_width + 1, break_on_hyphens=hyphens)

    return [
        Column("strategy", lambda line: fill(line.policy.name, words_width), "left"),
        Column("saves\nevery", saves_every, "left"),
        Column("overhead\n% of useful", _overhead),
    ]


def _part_columns(rows: list[Line]) -> list[Column]:
    """The parts of overhead that cost anything under any strategy."""
    parts = parts_among(quantity for line in rows for quantity in line.summary)
    shown = [part for part in parts if any(line.mean(part) > 0 for line in rows)]
    return [Column(HEADINGS.get(part, part), _percent_of(part)) for part in shown]


def _tail_columns(rows: list[Line]) -> list[Column]:
    columns = [
        Column("failures\nper job", lambda line: significant(line.mean("failures"))),
        Column("ETTR", lambda line: _fixed(line.mean("ettr"), 3)),
        Column(PAID, lambda line: _fixed(line.mean("ettr_paid"), 3)),
        Column(EXTRA_NODES, lambda line: significant(line.policy.extra_nodes)),
        Column(EXTRA_MEMORY, lambda line: percent_number(line.policy.extra_memory_fraction)),
        Column("PLS", _pls),
        Column(AUC_LOSS, _auc_loss),
        Column(COST_H, lambda line: significant(line.mean("overhead_h"))),
        Column("cost\nnode-h", lambda line: significant(line.mean("overhead_node_h"))),
    ]
    partial = any(line.policy.leaves_stale for line in rows)
    known = any(line.policy.leaves_stale and not isnan(line.mean("auc_loss")) for line in rows)
    shown = {
        "PLS": partial,
        AUC_LOSS: known,
        PAID: any(line.mean("ettr_paid") < line.mean("ettr") for line in rows),
        EXTRA_NODES: any(line.policy.extra_nodes for line in rows),
        EXTRA_MEMORY: any(line.policy.extra_memory_fraction for line in rows),
    }
    return [column for column in columns if shown.get(column.heading, True)]


def _money_columns(result: Result) -> list[Column]:
    """What the node-hours cost, where the scenario says a price."""
    price = result.price
    if price is None:
        return []
    heading = f"cost\n{price.currency or 'money'}"
    return [Column(heading, lambda line: significant(price.of(line.mean("overhead_node_h"))))]


def _every(policy: RecoveryPolicy, useful_h: float) -> str:
    if policy.save_interval_h == inf:
        never = policy.on_failure is OnFailure.RESTART
        return policy.interval_rule if never else f"no saves, {policy.interval_rule}"
    if n_saves_due(policy.save_interval_h, useful_h):
        return f"{hours(policy.save_interval_h)}, {policy.interval_rule}"
    what = saves(policy, useful_h) if writes_parts_only(policy, useful_h) else "no saves"
    return f"{what} ({hours(policy.save_interval_h)}, {policy.interval_rule})"


def _overhead(line: Line) -> str:
    overhead = line.summary["overhead_fraction"]
    if isnan(overhead.mean):
        return f"{percent(line.mean(FINISHED))} done"
    return with_interval(100 * overhead.mean, 100 * overhead.half_width)


def _percent_of(part: str) -> Callable[[Line], str]:
    return lambda line: percent_number(line.mean(part))


def _pls(line: Line) -> str:
    partial = line.policy.leaves_stale
    return portion(line.mean("pls")) if partial else NO_NUMBER


def _auc_loss(line: Line) -> str:
    loss = line.summary["auc_loss"]
    return ten_thousandths(loss.mean, loss.half_width)


def _fixed(value: float, digits: int) -> str:
    return NO_NUMBER if isnan(value) else f"{value:.{digits}f}"


def _table(columns: list[Column], rows: list[Line]) -> Table:
    table = plain_table()
    for column in columns:
        table.add_column(column.heading, justify=column.align, no_wrap=True, vertical="top")
    for line in rows:
        table.add_row(*(column.cell(line) for column in columns))
    return table
