"""The table of a comparison: what changes from result A to result B, strategy by strategy."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import Any

import pandas as pd
from rich.console import Console

from cprsim.records import OVERHEAD_PARTS
from cprsim.report.run_table import plain_table, print_whole
from cprsim.results import records_of
from cprsim.results.words import NO_NUMBER, significant

_SHARES = ("overhead_fraction", *OVERHEAD_PARTS)  # shown in percent of useful time
_LABELS = {
    "overhead_fraction": "overhead, % of useful time",
    **{part: f"  {part}" for part in OVERHEAD_PARTS},
    "lost": "  lost work",
    "wait": "  wait for spare",
    "failures": "failures per job",
    "pls": "PLS",
    "auc_loss": "AUC loss, ×10⁻⁴",
    "log_loss_rise": "log-loss rise, ×10⁻⁴",
    "ettr": "ETTR",
    "overhead_h": "overhead, h",
    "overhead_node_h": "overhead, node-h",
}
_LOSSES = ("auc_loss", "log_loss_rise")  # shown in ten-thousandths; not known without a curve
_FINE = ("pls", "ettr")  # shares that need four decimals


def print_comparison(console: Console, table: pd.DataFrame) -> None:
    """Print the differences B - A with their 95 % intervals (`cprsim.results.compare`).

    Quantities that are zero in both are left out, and losses that no curve priced.
    """
    shown = table[table["quantity"].isin(list(_LABELS))]
    zero = (shown[["a", "b"]].fillna(1) == 0).all(axis=1)
    unknown = shown["quantity"].isin(_LOSSES) & shown[["a", "b"]].isna().all(axis=1)
    out = plain_table()
    for heading in ("strategy", "quantity"):
        out.add_column(heading, no_wrap=True)
    for heading in ("A", "B", "B - A", "95 % interval"):
        out.add_column(heading, no_wrap=True, justify="right")
    previous = None
    for row in records_of(shown[~(zero | unknown)]):
        if previous not in (None, row["strategy"]):
            out.add_section()
        out.add_row(row["strategy"] if row["strategy"] != previous else "", *_cells(row))
        previous = row["strategy"]
    print_whole(console, out)


def _cells(row: dict[str, Any]) -> list[str]:
    quantity = row["quantity"]
    show = _formatter(quantity)
    low, high = show(row["low"]), show(row["high"])
    interval = NO_NUMBER if NO_NUMBER in (low, high) else f"{low} to {high}"
    return [_LABELS[quantity], show(row["a"]), show(row["b"]), show(row["difference"]), interval]


def _formatter(quantity: str) -> Callable[[float], str]:
    if quantity in _FINE:
        return lambda value: NO_NUMBER if isnan(value) else f"{value:.4f}"
    scale = 100 if quantity in _SHARES else 1e4 if quantity in _LOSSES else 1
    return lambda value: significant(scale * value)
