"""A calibration: a scenario made of the logs of jobs, and how it predicts their later half."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from cprsim.backtesting.calibrating import FEW_TO_PREDICT, Calibration, HalfPrediction
from cprsim.present.answer import Answer
from cprsim.present.document import Document, ListingBlock, Section, Table, word_columns
from cprsim.results.words import significant, suited


def answer_of_calibrate(
    found: Calibration,
    one: HalfPrediction | None,
    why_not: str,
    notes: Sequence[str],
    files: Sequence[Path],
) -> Answer:
    """The scenario of some logs, and the later half predicted from the earlier one, or why not."""
    halves, prediction = [], {}
    if one is not None:
        expected = one.hours_after / one.mtbf_h
        halves = [  # the interval of what is predicted is of 90 %
            {"later_half": "predicted", **one.predicted.columns("ettr"), "n_failures": expected},
            {"later_half": "observed", **one.observed.columns("ettr"), "n_failures": one.n_after},
        ]
        prediction = {
            "cut_unix_ns": one.cut_ns,
            "n_failures_before": one.n_failures,
            "mtbf_h": one.mtbf_h,
            "hours_after": one.hours_after,
            "mean_within": one.mean_within,
            "n_failures_for_a_point": one.n_for_a_point,
            "is_inside": one.is_inside,
        }
    said = [f"The scenario is not compared with the logs: {why_not}."]
    document = Document(
        title="A scenario from the logs of jobs",
        question="Which scenario do these logs make, and does it predict them?",
        answer=said if one is None else _verdict(one),
        table=Table("Numbers of the scenario", word_columns("number", "value", "where from"),
                    found.origins),
        remarks=[*([] if one is None else [_open(one)]), *notes],
        sections=[Section("The scenario", [ListingBlock("For cprsim run", found.text)])],
    )  # fmt: skip
    return Answer(
        "calibrate",
        "calibrated",
        lambda: document,
        frames={
            "origins": pd.DataFrame(found.origins, columns=["number", "value", "where"]),
            "prediction": pd.DataFrame(halves),
        },
        values={
            "text": found.text,
            "no_prediction": why_not or None,
            "notes": list(notes),
            **prediction,
        },
        files=files,
    )


def _verdict(one: HalfPrediction) -> list[str]:
    predicted, low, high = suited(*one.predicted.triple)
    observed = suited(one.observed.mean, *one.predicted.triple[1:])[0]
    where = "inside the interval"
    if not one.is_inside:
        where = "outside the interval: failures or their costs changed"
    return [
        f"The earlier half of the hours predicts an ETTR of {predicted} ({low} to {high}, 90 %) "
        f"for the later half; {observed} was observed, {where}.",
        f"{significant(one.hours_after / one.mtbf_h)} failures were expected, {one.n_after} came.",
    ]


def _open(one: HalfPrediction) -> str:
    few = f": fewer than {FEW_TO_PREDICT} are a rough prediction"
    return (
        f"{one.n_failures} failures of the earlier half leave the predicted mean open by "
        f"{100 * one.mean_within:.2g} points in 9 of 10 cases; one point takes about "
        f"{one.n_for_a_point:,} failures{few if one.n_failures < FEW_TO_PREDICT else ''}."
    )
