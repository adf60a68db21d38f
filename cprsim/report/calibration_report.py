"""A calibration as tables for the terminal, and as one object for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from cprsim.backtest.calibrating import FEW_TO_PREDICT, Calibration, Prediction
from cprsim.report.ledger_report import _say, _table, triple


def print_calibration(
    console: Console,
    found: Calibration,
    predicted: Prediction | None,
    why_not: str,
    notes: Sequence[str],
) -> None:
    """Print the numbers with their origins, the prediction, and the scenario."""
    table = _table("number", "value", "where")
    for row in found.origins:
        table.add_row(*row)
    console.print(table)
    if predicted is None:
        _say(console, f"not held to the logs: {why_not}")
    else:
        _print_prediction(console, predicted)
    for note in (*notes, *found.notes):
        _say(console, f"note: {note}")
    _say(console, "\n" + found.text)


def _print_prediction(console: Console, one: Prediction) -> None:
    table = _table("later half", "ETTR", "90 %", "failures")
    expected = one.hours_after / one.mtbf_h
    table.add_row(
        "predicted", f"{one.predicted.mean:.4f}",
        f"{one.predicted.low:.4f} to {one.predicted.high:.4f}", f"{expected:.0f}",
    )  # fmt: skip
    table.add_row("observed", f"{one.observed.mean:.4f}", "", str(one.n_after))
    console.print(table)
    verdict = "inside" if one.is_inside else "outside"
    _say(
        console,
        f"From {one.n_failures} failures of the earlier half; what was observed lies {verdict} the "
        f"interval{'' if one.is_inside else ': failures or their costs changed'}.",
    )
    if one.n_failures < FEW_TO_PREDICT:
        _say(console, f"note: fewer than {FEW_TO_PREDICT} failures: a rough prediction")


def calibration_as_json(
    found: Calibration, predicted: Prediction | None, why_not: str, notes: Sequence[str]
) -> dict[str, Any]:
    """All as one object."""
    return {
        "scenario": found.text,
        "origins": [
            {"number": name, "value": value, "where": where} for name, value, where in found.origins
        ],
        "prediction": None if predicted is None else _prediction(predicted),
        "no_prediction": why_not or None,
        "notes": [*notes, *found.notes],
    }


def _prediction(one: Prediction) -> dict[str, Any]:
    return {
        "cut_unix_nano": one.cut_ns,
        "n_failures_before": one.n_failures,
        "n_failures_after": one.n_after,
        "mtbf_h": one.mtbf_h,
        "hours_after": one.hours_after,
        "predicted_ettr": triple(one.predicted),
        "observed_ettr": triple(one.observed),
        "is_inside": one.is_inside,
    }
