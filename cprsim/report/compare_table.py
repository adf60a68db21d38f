"""The table of a comparison: what changes from result A to result B, strategy by strategy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape

from cprsim.present.terminal import plain_table, print_whole
from cprsim.results import Differing, records_of
from cprsim.results.metrics import parts_among
from cprsim.results.words import NO_NUMBER, suited

_OVERHEAD = "overhead_fraction"
PAID = "ettr_paid"
_PARTS = {"lost": "lost work", "wait": "wait for spare"}  # that are not called by their name
_LABELS = {
    _OVERHEAD: "overhead, % of useful time",
    "failures": "failures per job",
    "pls": "PLS",
    "auc_loss": "AUC loss, ×10⁻⁴",
    "log_loss_rise": "log-loss rise, ×10⁻⁴",
    "ettr": "ETTR",
    PAID: "ETTR of all paid nodes",
    "overhead_h": "overhead, h",
    "overhead_node_h": "overhead, node-h",
}
_LOSSES = ("auc_loss", "log_loss_rise")  # shown in ten-thousandths; not known without a curve
SAME_INPUTS = "All inputs are the same: scenario, seed, replications, files and versions."
_FINE = ("pls", "ettr", PAID)  # shares that need four decimals


def print_comparison(console: Console, table: pd.DataFrame) -> None:
    """Print the differences B - A with their 95 % intervals (`cprsim.results.compare`).

    Quantities that are zero in both are left out, losses that no curve priced, and the ETTR of all
    paid nodes where only the job's are paid.
    """
    parts = parts_among(table["quantity"])
    shown = table[table["quantity"].isin([*_LABELS, *parts])]
    ettr, paid = (shown[shown["quantity"] == name][["a", "b"]] for name in ("ettr", PAID))
    if np.allclose(ettr, paid, rtol=1e-12, equal_nan=True):
        shown = shown[shown["quantity"] != PAID]
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
        cells = _cells(row, in_percent=row["quantity"] in (_OVERHEAD, *parts))
        out.add_row(row["strategy"] if row["strategy"] != previous else "", *cells)
        previous = row["strategy"]
    print_whole(console, out)


def print_inputs(console: Console, inputs: Sequence[Differing]) -> None:
    """Print in what the inputs of two results differ, with both values."""
    if not inputs:
        console.print(SAME_INPUTS, highlight=False)
        return
    out = plain_table()
    for heading in ("inputs that differ", "A", "B"):
        out.add_column(heading, overflow="fold")
    for one in inputs:
        out.add_row(*(escape(text) for text in (one.key, *one.values)))
    print_whole(console, out)


def _cells(row: dict[str, Any], *, in_percent: bool) -> list[str]:
    quantity = row["quantity"]
    scale = 100 if in_percent else 1e4 if quantity in _LOSSES else 1
    a, b, difference, low, high = (
        scale * float(row[name]) for name in ("a", "b", "difference", "low", "high")
    )
    at_least = 4 if quantity in _FINE else 0
    shown = suited(difference, low, high, at_least=at_least)
    means = [suited(mean, mean + low - difference, mean + high - difference, at_least=at_least)[0]
             for mean in (a, b)]  # fmt: skip
    interval = NO_NUMBER if NO_NUMBER in shown else f"{shown[1]} to {shown[2]}"
    label = _LABELS.get(quantity, f"  {_PARTS.get(quantity, quantity)}")
    return [label, *means, shown[0], interval]
