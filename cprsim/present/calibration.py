"""A calibration: a scenario made of the logs of jobs, and how it predicts their later half."""

from __future__ import annotations

from typing import Any

from cprsim.backtesting.calibrating import (
    FEW_TO_PREDICT,
    CalibratedLogs,
    Calibration,
    HalfPrediction,
)
from cprsim.present.document import (
    Block,
    Document,
    ListingBlock,
    Section,
    Table,
    Words,
    row_columns,
    word_columns,
)
from cprsim.records import interval


def calibration_blocks(made: CalibratedLogs) -> list[Block]:
    """What a terminal shows: the numbers with their origins, the prediction, and the scenario."""
    return [
        _origins(made.found),
        *_prediction_blocks(made),
        Words([f"note: {note}" for note in made.notes]),
        ListingBlock("The scenario", made.found.text),
    ]


def document_of_calibration(made: CalibratedLogs) -> Document:
    """Everything about a calibration."""
    return Document(
        title="A scenario from the logs of jobs",
        question="Which scenario do these logs make, and does it predict them?",
        answer=_verdict(made),
        sections=[
            Section("Where each number is from", [_origins(made.found)]),
            Section("The later half, predicted from the earlier", _prediction_blocks(made)),
            Section("Notes", [Words(made.notes)]),
            Section("The scenario", [ListingBlock("For cprsim run", made.found.text)]),
        ],
    )


def _origins(found: Calibration) -> Table:
    columns = [*row_columns("number", "value"), *word_columns("where from")]
    return Table("Numbers of the scenario", columns, found.origins)


def _prediction_blocks(made: CalibratedLogs) -> list[Block]:
    verdict = Words(_verdict(made))
    return [verdict] if made.predicted is None else [_prediction_table(made.predicted), verdict]


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


def _verdict(made: CalibratedLogs) -> list[str]:
    one = made.predicted
    if one is None:
        return [f"not held to the logs: {made.why_not}"]
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


def calibration_as_json(made: CalibratedLogs) -> dict[str, Any]:
    """All as one object."""
    found, predicted = made.found, made.predicted
    return {
        "scenario": found.text,
        "origins": [
            {"number": name, "value": value, "where": where} for name, value, where in found.origins
        ],
        "prediction": None if predicted is None else _prediction(predicted),
        "no_prediction": made.why_not or None,
        "notes": list(made.notes),
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
