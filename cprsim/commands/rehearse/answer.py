"""A rehearsal on real processes: predicted and measured quantities, and valid attempts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pandas as pd

from cprsim.commands.run.answer import answer_of_run, document_of_run
from cprsim.job.records import NO_NUMBER
from cprsim.pages.answer import Answer
from cprsim.pages.document import Document, Table
from cprsim.rehearsal.rehearsing import Attempt, Rehearsal
from cprsim.rehearsal.verdict import OVERHEAD, PLS
from cprsim.results.run import Result
from cprsim.results.words import count, portion, significant

ATTEMPT = ("strategy", "trace", "attempt", "orders_sha256", "too_busy")


def answer_of_rehearse(rehearsal: Rehearsal, result: Result | None = None, **about: Any) -> Answer:
    """A rehearsal, and its valid runs as a result; None: no run was valid."""
    attempts = [attempt.plain() for attempt in rehearsal.attempts]
    return Answer(
        "rehearse",
        rehearsal.experiment.scenario.name,
        lambda: _document(rehearsal, result),
        frames={
            "quantities": pd.DataFrame(list(_quantities(rehearsal))),
            "attempts": pd.DataFrame(
                [
                    {key: row[key] for key in ATTEMPT}
                    | {"valid": row["too_busy"] is None, **row["load"], **row["replay"]}
                    for row in attempts
                ]
            ),
        },
        values={
            "written_before_sha256": rehearsal.digest,
            "calibrated": asdict(rehearsal.calibration),
            "n_strikes_left_out": rehearsal.n_left_out,
        },
        rows={} if result is None else answer_of_run(result).rows,
        exit_code=rehearsal.exit_code,
        **about,
    )


def _quantities(rehearsal: Rehearsal) -> Iterator[dict[str, Any]]:
    """A row per strategy and compared quantity."""
    for policy in rehearsal.policies:
        for line in rehearsal.verdict(policy):
            values = asdict(line)
            named = {"strategy": policy.name, "quantity": values.pop("name"), **values}
            unit = "fraction" if line.name == PLS else "s"
            yield {**named, "unit": unit, "error_fraction": line.error_fraction}


# ------------------------------------------------------------------------------ the document


def _document(rehearsal: Rehearsal, result: Result | None) -> Document:
    name = rehearsal.experiment.scenario.name
    errors = [
        f"{policy.name} {100 * line.error_fraction:+.1f} %"
        for policy in rehearsal.policies
        for line in rehearsal.verdict(policy)
        if line.name == OVERHEAD and line.error_fraction is not None
    ]
    beside = [f"Overhead, measured against predicted: {', '.join(errors)}."] if errors else []
    return Document(
        title=f"Whether real processes behave as predicted: {name}",
        question="Do real processes behave as predicted?",
        answer=[_verdict(rehearsal), *beside],
        table=_table(rehearsal),
        remarks=list(_remarks(rehearsal)),
        sections=[] if result is None else document_of_run(result).sections,
    )


def _verdict(rehearsal: Rehearsal) -> str:
    if rehearsal.disagreeing:
        return f"{count(len(rehearsal.disagreeing), 'run')} did not equal the replay of the log."
    if rehearsal.is_missing_runs:
        return (
            "The machine was too busy to tell: run the same command again when it is idle (a load "
            "average below 1); valid runs are kept."
        )
    if rehearsal.wrong:
        off = (f"{', '.join(wrong)} of {name}" for name, wrong in rehearsal.wrong.items())
        return f"Off: {'; '.join(off)}. Every run equals the replay of its log bit by bit."
    return "All is within tolerance, and every run equals the replay of its log bit by bit."


def _table(rehearsal: Rehearsal) -> Table:
    rows: list[list[str]] = []
    for policy in rehearsal.policies:
        lines = rehearsal.verdict(policy)
        for line in lines:
            form = portion if line.name == PLS else significant
            error = line.error_fraction
            percent = NO_NUMBER if error is None else f"{100 * error:+.1f}"
            numbers = form(line.predicted), form(line.measured), percent
            rows.append([policy.name, line.name, *numbers, "off" if line.off else "within"])
        if not lines:
            rows.append([policy.name, "no valid run", *[""] * 4])
    n_valid = sum(attempt.is_valid for attempt in rehearsal.attempts)
    return Table(
        f"Seconds in each part, and PLS: predicted, and measured in {count(n_valid, 'valid run')}",
        ["strategy", "quantity", "predicted", "measured", "error, %", "verdict"],
        rows,
        ["quantity", "verdict"],
        grouped=True,
    )


def _remarks(rehearsal: Rehearsal) -> Iterator[str]:
    """Remarks beyond the table, the most important first."""
    for attempt in rehearsal.disagreeing:
        yield f"{_label(attempt)} differs from its replay: {_differences(attempt)}."
    for attempt in rehearsal.attempts:
        if not attempt.is_valid:
            yield f"{_label(attempt)} is not valid: {attempt.load.too_busy}."
    costs = rehearsal.calibration
    yield (
        f"Calibrated without failures: a whole save stalls {costs.stall_s:.3f} s (its bytes alone "
        f"{costs.nominal_stall_s:.3f} s), a spare is ready after {costs.activation_s * 1e3:.0f} "
        f"ms, a step computes {costs.step_s * 1e3:.1f} of its {costs.pace_s * 1e3:.1f} ms. "
        "Detection, rescheduling and bandwidths are the scenario's; all else is predicted."
    )
    yield f"SHA-256 of the prediction, written before the first run: {rehearsal.digest}."


def _differences(attempt: Attempt) -> str:
    of = attempt.replayed
    differences = [] if of.equal_bits else ["not the same bits"]
    if of.bytes_saved != of.bytes_of_replay:
        differences.append(f"{of.bytes_saved:,} bytes saved and {of.bytes_of_replay:,}")
    return "; ".join(differences)


def _label(attempt: Attempt) -> str:
    return f"{attempt.planned.policy.name}, trace {attempt.planned.trace}, attempt {attempt.number}"
