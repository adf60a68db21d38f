"""A calibration: a scenario made of the logs of jobs, and how it predicts their later half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.commands.calibrate.calibrating import FEW_TO_PREDICT, Calibration
from cprsim.pages.answer import Answer
from cprsim.pages.document import Document, ListingBlock, Section, Table
from cprsim.results.words import significant, suited

MOVED_MOST = {
    "failures": "the failures a day",
    "lost": "the work lost at each failure [h]",
    "other": "the share of time that no failure explains (saves, slow work)",
}  # fmt: skip


def answer_of_calibrate(
    calibration: Calibration,
    half: Mapping[str, Any] | None,
    why_not: str,
    notes: Sequence[str],
    files: Sequence[Path],
) -> Answer:
    """The scenario of some logs, and the later half predicted from the earlier one, or why not."""
    halves, prediction, text = [], dict(half or {}), str(calibration.scenario)
    if half is not None:
        expected = half["hours_after"] / half["mtbf_h"]
        n_after = prediction.pop("n_failures_after")
        halves = [  # the interval of what is predicted is of 90 %
            {"later_half": name, **prediction.pop(name).columns("ettr"), "n_failures": n}
            for name, n in (("predicted", expected), ("observed", n_after))
        ]
    not_compared = [f"The scenario is not compared with the logs: {why_not}."]
    document = Document(
        title="Which scenario the logs of jobs make",
        question="Which scenario do these logs make, and does it predict them?",
        answer=not_compared if half is None else _verdict(half),
        table=Table("Numbers of the scenario", ["number", "value", "where from"],
                    calibration.origins, ["value", "where from"]),
        remarks=notes,
        sections=[Section("The scenario", [ListingBlock("For cprsim run", text)])],
    )  # fmt: skip
    return Answer(
        "calibrate",
        "calibrated",
        lambda: document,
        frames={
            "origins": pd.DataFrame(calibration.origins, columns=["number", "value", "where"]),
            "prediction": pd.DataFrame(halves),
        },
        values={"text": text, "no_prediction": why_not or None, "notes": list(notes), **prediction},
        files=files,
    )


def _verdict(half: Mapping[str, Any]) -> list[str]:
    triple, n = half["predicted"].triple, half["n_failures_before"]
    predicted, low, high = suited(*triple)
    observed = suited(half["observed"].mean, *triple[1:])[0]
    where = "inside the interval"
    if not half["is_inside"]:
        what, early, late = half["moved"]
        where = (
            "outside the interval: what moved most is "
            f"{MOVED_MOST.get(what, f'the {what} after each failure [h]')}, {significant(early)} "
            f"before and {significant(late)} after"
        )
    rough = f" (a rough prediction: the earlier half has under {FEW_TO_PREDICT})"
    return [
        f"The earlier half of the hours predicts an ETTR of {predicted} ({low} to {high}, 90 %) "
        f"for the later half; {observed} was observed, {where}.",
        f"{significant(half['hours_after'] / half['mtbf_h'])} failures were expected, "
        f"{half['n_failures_after']} came{rough if n < FEW_TO_PREDICT else ''}.",
    ]
