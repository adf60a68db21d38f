"""A calibration: a scenario made of the logs of jobs, and how it predicts their later half."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cprsim.backtesting.calibrating import FEW_TO_PREDICT, CalibratedLogs, HalfPrediction
from cprsim.present.answer import Answer
from cprsim.present.document import (
    Document,
    ListingBlock,
    Section,
    Table,
    row_columns,
    word_columns,
)
from cprsim.results.words import significant, suited


def answer_of_calibrate(made: CalibratedLogs, **about: Any) -> Answer:
    """The scenario of some logs, and the later half predicted from the earlier one."""
    found, one = made.found, made.predicted
    return Answer(
        "calibrate",
        "calibrated",
        lambda: _document(made),
        frames={
            "origins": pd.DataFrame(found.origins, columns=["number", "value", "where"]),
            "prediction": pd.DataFrame([] if one is None else _halves(one)),
        },
        values={
            "text": found.text,
            "no_prediction": made.why_not or None,
            "notes": list(made.notes),
            **({} if one is None else _prediction(one)),
        },
        **about,
    )


def _halves(one: HalfPrediction) -> list[dict[str, Any]]:
    """The later half; ends of what is predicted are of a 90 % interval."""
    expected = one.hours_after / one.mtbf_h
    return [
        {"later_half": "predicted", **one.predicted.columns("ettr"), "n_failures": expected},
        {"later_half": "observed", **one.observed.columns("ettr"), "n_failures": one.n_after},
    ]


def _prediction(one: HalfPrediction) -> dict[str, Any]:
    return {
        "cut_unix_ns": one.cut_ns,
        "n_failures_before": one.n_failures,
        "mtbf_h": one.mtbf_h,
        "hours_after": one.hours_after,
        "mean_within": one.mean_within,
        "n_failures_for_a_point": one.n_for_a_point,
        "is_inside": one.is_inside,
    }


def _document(made: CalibratedLogs) -> Document:
    columns = [*row_columns("number", "value"), *word_columns("where from")]
    one = made.predicted
    compared = [f"The scenario is not compared with the logs: {made.why_not}."]
    return Document(
        title="A scenario from the logs of jobs",
        question="Which scenario do these logs make, and does it predict them?",
        answer=compared if one is None else _verdict(one),
        table=Table("Numbers of the scenario", columns, made.found.origins),
        remarks=[*([] if one is None else [_open(one)]), *made.notes],
        sections=[Section("The scenario", [ListingBlock("For cprsim run", made.found.text)])],
    )


def _verdict(one: HalfPrediction) -> list[str]:
    predicted, low, high = suited(*one.predicted.triple)
    observed = suited(one.observed.mean, *one.predicted.triple[1:])[0]
    where = "inside" if one.is_inside else "outside"
    changed = "" if one.is_inside else ": failures or their costs changed"
    return [
        f"The earlier half of the hours predicts an ETTR of {predicted} ({low} to {high}, 90 %) "
        f"for the later half; {observed} was observed, {where} the interval{changed}.",
        f"{significant(one.hours_after / one.mtbf_h)} failures were expected, {one.n_after} came.",
    ]


def _open(one: HalfPrediction) -> str:
    few = f": fewer than {FEW_TO_PREDICT} are a rough prediction"
    return (
        f"{one.n_failures} failures of the earlier half leave the predicted mean open by "
        f"{100 * one.mean_within:.2g} points in 9 of 10 cases; one point takes about "
        f"{one.n_for_a_point:,} failures{few if one.n_failures < FEW_TO_PREDICT else ''}."
    )
