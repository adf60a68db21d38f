"""A calibration: a scenario made of the logs of jobs, and how it predicts their later half."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cprsim.backtesting.calibrating import FEW_TO_PREDICT, Calibration, HalfPrediction
from cprsim.present.as_json import interval
from cprsim.present.document import (
    Block,
    Document,
    ListingBlock,
    Section,
    Table,
    Words,
    row_columns,
)


def calibration_blocks(
    found: Calibration, predicted: HalfPrediction | None, why_not: str, notes: Sequence[str]
) -> list[Block]:
    """What a terminal shows: the numbers with their origins, the prediction, and the scenario."""
    remarks = [f"note: {note}" for note in (*notes, *found.notes)]
    return [
        _origins(found),
        *_prediction_blocks(predicted, why_not),
        Words(remarks),
        ListingBlock("The scenario", found.text),
    ]


def document_of_calibration(
    found: Calibration, predicted: HalfPrediction | None, why_not: str, notes: Sequence[str]
) -> Document:
    """Everything about a calibration."""
    prediction = _prediction_blocks(predicted, why_not)
    return Document(
        title="A scenario from the logs of jobs",
        question="Which scenario do these logs make, and does it predict them?",
        answer=_verdict(predicted, why_not),
        sections=[
            Section("Where each number is from", [_origins(found)]),
            Section("The later half, predicted from the earlier", prediction),
            Section("Notes", [Words([*notes, *found.notes])]),
            Section("The scenario", [ListingBlock("For cprsim run", found.text)]),
        ],
    )


def _origins(found: Calibration) -> Table:
    columns = row_columns("number", "value", "where")
    return Table("Numbers of the scenario", columns, found.origins)


def _prediction_blocks(predicted: HalfPrediction | None, why_not: str) -> list[Block]:
    verdict = Words(_verdict(predicted, why_not))
    return [verdict] if predicted is None else [_prediction_table(predicted), verdict]


def _prediction_table(one: HalfPrediction) -> Table:
    expected = one.hours_after / one.mtbf_h
    between = f"{one.predicted.low:.4f} to {one.predicted.high:.4f}"
    return Table(
        "Share of useful hours, and failures",
        row_columns("later half", "ETTR", "90 %", "failures"),
        [
            ["predicted", f"{one.predicted.mean:.4f}", between, f"{expected:.0f}"],
            ["observed", f"{one.observed.mean:.4f}", "", str(one.n_after)],
        ],
    )


def _verdict(one: HalfPrediction | None, why_not: str) -> list[str]:
    if one is None:
        return [f"not held to the logs: {why_not}"]
    where = "inside" if one.is_inside else "outside"
    changed = "" if one.is_inside else ": failures or their costs changed"
    sentences = [
        f"From {one.n_failures} failures of the earlier half; what was observed lies {where} the "
        f"interval{changed}.",
        f"So many failures leave the predicted mean open by {100 * one.mean_within:.2g} points, in "
        f"9 of 10 cases; to tell it to one point takes about {one.n_for_a_point:,} failures.",
    ]
    if one.n_failures < FEW_TO_PREDICT:
        sentences.append(f"note: fewer than {FEW_TO_PREDICT} failures: a rough prediction")
    return sentences


# ------------------------------------------------------------------------------ JSON


def calibration_as_json(
    found: Calibration, predicted: HalfPrediction | None, why_not: str, notes: Sequence[str]
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


def _prediction(one: HalfPrediction) -> dict[str, Any]:
    return {
        "cut_unix_nano": one.cut_ns,
        "n_failures_before": one.n_failures,
        "n_failures_after": one.n_after,
        "mtbf_h": one.mtbf_h,
        "hours_after": one.hours_after,
        "mean_within": one.mean_within,
        "n_failures_for_a_point": one.n_for_a_point,
        "predicted_ettr": interval(one.predicted),
        "observed_ettr": interval(one.observed),
        "is_inside": one.is_inside,
    }
