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
from cprsim.records import NO_NUMBER
from cprsim.results.words import ends, significant, suited


def answer_of_calibrate(made: CalibratedLogs, **about: Any) -> Answer:
    """The scenario of some logs, and the later half predicted from the earlier one."""
    found, one = made.found, made.predicted
    prediction = [] if one is None else [
        {"later_half": "predicted", **one.predicted.columns("ettr"),
         "n_failures": one.hours_after / one.mtbf_h},
        {"later_half": "observed", **one.observed.columns("ettr"), "n_failures": one.n_after},
    ]  # fmt: skip
    return Answer(
        "calibrate",
        "calibrated",
        lambda: _document(made),
        frames={
            "origins": pd.DataFrame(found.origins, columns=["number", "value", "where"]),
            "prediction": pd.DataFrame(prediction),
        },
        values={
            "text": found.text,
            "no_prediction": made.why_not or None,
            "notes": list(made.notes),
            **({} if one is None else _prediction(one)),
        },
        **about,
    )


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
    found, one = made.found, made.predicted
    columns = [*row_columns("number", "value"), *word_columns("where from")]
    return Document(
        title="A scenario from the logs of jobs",
        question="Which scenario do these logs make, and does it predict them?",
        answer=_answer(made),
        table=Table("Numbers of the scenario", columns, found.origins),
        remarks=[*([] if one is None else _careful(one)), *made.notes],
        sections=[
            Section("The later half", [] if one is None else [_half(one)]),
            Section("The scenario", [ListingBlock("For cprsim run", found.text)]),
        ],
    )


def _answer(made: CalibratedLogs) -> list[str]:
    one = made.predicted
    if one is None:
        return [f"The scenario is not compared with the logs: {made.why_not}."]
    predicted, low, high = suited(*one.predicted.triple)
    observed = suited(one.observed.mean, *one.predicted.triple[1:])[0]
    where = "inside" if one.is_inside else "outside"
    changed = "" if one.is_inside else ": failures or their costs changed"
    return [
        f"The earlier half of the hours predicts an ETTR of {predicted} ({low} to {high}, 90 %) "
        f"for the later half; {observed} was observed, {where} the interval{changed}."
    ]


def _careful(one: HalfPrediction) -> list[str]:
    few = f": fewer than {FEW_TO_PREDICT} are a rough prediction"
    return [
        f"{one.n_failures} failures of the earlier half leave the predicted mean open by "
        f"{100 * one.mean_within:.2g} points in 9 of 10 cases; one point takes about "
        f"{one.n_for_a_point:,} failures{few if one.n_failures < FEW_TO_PREDICT else ''}."
    ]


def _half(one: HalfPrediction) -> Table:
    predicted, low, high = suited(*one.predicted.triple)
    observed, interval = suited(*one.observed.triple)[0], ends(*one.observed.triple[1:])
    if one.observed.high - one.observed.low < 1e-6:
        interval = NO_NUMBER
    expected = significant(one.hours_after / one.mtbf_h)
    return Table(
        "Share of useful hours (predicted: 90 % interval; observed: 95 %), and failures",
        row_columns("later half", "ETTR", "interval", "failures"),
        [
            ["predicted", predicted, f"{low} to {high}", expected],
            ["observed", observed, interval, str(one.n_after)],
        ],
    )
