"""Several results compared: each run with the first, and the inputs that differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan, nan
from typing import Any

import numpy as np
import pandas as pd

from cprsim.commands.run.answer import loss_heading
from cprsim.commands.run.sentences import spread_in_percent
from cprsim.errors import ParameterError
from cprsim.job.records import NO_NUMBER, Estimate
from cprsim.pages.answer import Answer
from cprsim.pages.document import Document, Section, Table
from cprsim.pages.figures import OVERHEAD_LABEL
from cprsim.pages.money import WORK, bills_frame
from cprsim.results.metrics import (
    FINISHED,
    OVERHEAD,
    Sample,
    difference_of,
    further_losses,
    has_measured_error,
    parts_among,
    records_of,
    samples_of,
    share_of,
)
from cprsim.results.money import AUC_LOSS
from cprsim.results.run import Result
from cprsim.results.words import count, estimated, part_label, percent, saves, suited

RESULT_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LABELS = {
    OVERHEAD: OVERHEAD_LABEL,
    "failures": "failures per job",
    "pls": "PLS",
    "auc_loss": "AUC loss, ×10⁻⁴",
    "log_loss_rise": "log-loss rise, ×10⁻⁴",
    "ettr": "ETTR",
    "overhead_h": "overhead, h",
    "overhead_node_h": "overhead, node-h",
}
HOW_PAIRED = {
    True: "both met the same failures, replications are paired",
    False: "they met different failures, independent samples (Welch's intervals)",
}  # whether paired
MOST_INPUTS = 3  # named among the remarks; a table has all


def answer_of_several(
    answers: Sequence[Answer], inputs: Sequence[Mapping[str, str]], results: Sequence[Result]
) -> Answer:
    """What several results say together.

    Parameters
    ----------
    answers : of each result
    inputs : what went into each, by key
    results : the runs in them; empty where any is no run

    Raises ParameterError: there are more than letters, or two runs have no strategy in common.
    """
    if len(answers) > len(RESULT_LETTERS):
        raise ParameterError(f"a report compares at most {len(RESULT_LETTERS)} results")
    by_letter = dict(zip(RESULT_LETTERS, answers, strict=False))
    runs = dict(zip(RESULT_LETTERS, results, strict=False))
    others = {letter: run for letter, run in runs.items() if letter != "A"}
    frames = {"inputs": different(dict(zip(by_letter, inputs, strict=True)))}
    errors = {letter: independent_errors(runs["A"], run) for letter, run in others.items()}
    values = {
        "results": {letter: str(answer.folder) for letter, answer in by_letter.items()},
        "paired": {letter: same_failures(runs["A"], run) for letter, run in others.items()},
        "curve_errors": errors,
    }
    if runs:
        frames["differences"] = _concat({x: compare(runs["A"], run) for x, run in others.items()})
        bills = {letter: bills_frame(run.bills) for letter, run in runs.items()}
        if any(map(len, bills.values())):
            frames["bills"] = _concat(bills)
    return Answer(
        "comparison",
        ", ".join(answer.name for answer in answers),
        lambda: _document(by_letter, runs, frames, values),
        frames=frames,
        values=values,
    )


def _concat(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    return pd.concat([frame.assign(result=letter) for letter, frame in frames.items()])


def different(inputs: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    """The inputs that differ, a row each: key, its value in each result, or a dash.

    The seed is listed once. If a result has no scenario, a dash does not count as a difference.
    """
    left_out = set() if all("name" in values for values in inputs.values()) else {NO_NUMBER}
    rows = {
        key: [values.get(key, NO_NUMBER) for values in inputs.values()]
        for key in dict.fromkeys(key for values in inputs.values() for key in values)
    }
    differ = {key for key, row in rows.items() if len({*row} - left_out) > 1}
    if "simulation.seed" in differ:
        differ.discard("seed")
    differing = [[key, *row] for key, row in rows.items() if key in differ]
    return pd.DataFrame(differing, columns=["key", *inputs])


def _document(
    answers: Mapping[str, Answer],
    runs: Mapping[str, Result],
    frames: Mapping[str, pd.DataFrame],
    values: Mapping[str, Any],
) -> Document:
    rows: list[list[str]] = frames["inputs"].to_numpy().tolist()
    unchanged = "All inputs are the same: scenario, seed, replications, files and versions."
    listed = "; ".join(f"{key}: {', '.join(values)}" for key, *values in rows[:MOST_INPUTS])
    more = f"; and {len(rows) - MOST_INPUTS} more" if len(rows) > MOST_INPUTS else ""
    caption = f"Inputs that differ; {NO_NUMBER} where a result has none"
    document = Document(
        title=f"{count(len(answers), 'result')} compared",
        question="What do these results say?",
        answer=[f"{letter}: {answer.document.answer[0]}" for letter, answer in answers.items()],
        remarks=[f"Inputs that differ: {listed}{more}." if rows else unchanged],
        sections=[
            Section(
                "In what the inputs differ",
                [Table(caption, ["input", *answers], rows, [*answers])] if rows else [],
            )
        ],
        parts=[
            replace(answer.document, title=f"{letter}: {answer.document.title}")
            for letter, answer in answers.items()
        ],
    )
    if not runs:
        return document
    by_result = frames["differences"].groupby("result", sort=False)
    return replace(
        document,
        question="Which of these results costs least, and by how much do they differ?",
        answer=[_cheapest(runs)],
        table=_side_by_side(runs, frames["differences"]),
        remarks=[
            *(f"{letter} - A: {HOW_PAIRED[is_so]}." for letter, is_so in values["paired"].items()),
            *document.remarks,
            *(sentence for errors in values["curve_errors"].values() for sentence in errors),
            ", ".join(f"{letter} is {answer.stored.path}" for letter, answer in answers.items()),
        ],
        sections=[
            Section(
                "Differences from A",
                [differences_table(table, str(letter)) for letter, table in by_result],
            ),
            Section(
                "What it costs in all",
                [_money_table(frames["bills"])] if "bills" in frames else [],
            ),
            *document.sections,
        ],
    )


def _cheapest(runs: Mapping[str, Result]) -> str:
    finished = [
        (of[OVERHEAD], name, letter)
        for letter, run in runs.items()
        for name, of in run.summary.items()
        if of[FINISHED].mean == 1
    ]
    if not finished:
        return "No strategy of any result reliably gets its job done."
    spread, strategy, letter = min(finished, key=lambda one: one[0].mean)
    policy = next(one for one in runs[letter].policies if one.name == strategy)
    return (
        f"{strategy} of {letter} ({runs[letter].name}) has the smallest overhead: "
        f"{spread_in_percent(spread)} of useful time"
        f"{', accuracy not counted' if policy.leaves_stale else ''}."
    )


# ------------------------------------------------------------------------------ tables


def _side_by_side(runs: Mapping[str, Result], differences: pd.DataFrame) -> Table:
    of_overhead = differences[differences["quantity"] == OVERHEAD]
    more = {(row["result"], row["strategy"]): _of(row) for row in records_of(of_overhead)}
    rows = []
    for letter, run in runs.items():
        for policy in run.policies:
            of = run.summary[policy.name]
            unfinished = f"only {percent(of[FINISHED].mean)} finished"
            overhead = unfinished if isnan(of[OVERHEAD].mean) else estimated(of[OVERHEAD], 100)
            less = estimated(more.get((letter, policy.name), Estimate(nan)), 100)
            rows.append([letter, policy.name, saves(policy, run.useful_h), overhead, less])
    headings = ["result", "strategy", "saves", "overhead, %", "more than A, points"]
    caption = "Overhead in % of useful time, ± half of the 95 % interval"
    return Table(caption, headings, rows, ["strategy", "saves"], grouped=True)


def _of(row: Mapping[str, Any]) -> Estimate:
    return Estimate(row["difference"], row["difference_low"], row["difference_high"])


def _money_table(bills: pd.DataFrame) -> Table:
    totals = bills[bills["part"] == "total"].sort_values("strategy", kind="stable")
    costs = totals[["job_cost", "month_cost"]].map("{:,.2f}".format)
    headings = ["strategy", "result", "a job", f"per {WORK}", "in"]
    rows = pd.concat([totals[["strategy", "result"]], costs, totals["currency"]], axis=1)
    return Table("", headings, rows.to_numpy().tolist(), ["result"], grouped=True)


def differences_table(table: pd.DataFrame, letter: str = "B") -> Table:
    """The differences from A with half of their 95 % intervals (`cprsim.commands.comparison`).

    Quantities that are zero in both are left out.
    """
    parts = {share_of(part): f"  {part_label(part)}" for part in parts_among(table["quantity"])}
    labels = {**LABELS, **parts, **{n: loss_heading(n) for n in further_losses(table["quantity"])}}
    rows = []
    for row in records_of(table):
        quantity, a, b = row["quantity"], row["a"], row["b"]
        if quantity not in labels or a == b == 0:
            continue
        in_percent = quantity in (OVERHEAD, *parts)
        scale = 100 if in_percent else 1e4 if has_measured_error(quantity) else 1
        half = scale * _of(row).half_width
        means = [suited(x, x - half, x + half)[0] for x in (scale * a, scale * b)]
        rows.append([row["strategy"], labels[quantity], *means, estimated(_of(row), scale)])
    headings = ["strategy", "quantity", "A", letter, f"{letter} - A"]
    return Table("", headings, rows, ["quantity"], grouped=True)


# --------------------------------------------------------------------------- of two results


def same_failures(a: Result, b: Result) -> bool:
    """Whether replication i of both results met the same failures: same seed, job and source."""
    mine = a.manifest.get("failures_digest")
    return mine is not None and bool(mine == b.manifest.get("failures_digest"))


def compare(a: Result, b: Result) -> pd.DataFrame:
    """Differences B - A of the strategies that both results have.

    Paired by replication where both met the same failures, else two independent samples (Welch).
    The error of the staleness curves counts in losses of accuracy.

    Tidy frame: strategy, quantity, a, b (means), difference, difference_low, difference_high
    (95 %), n (of the smaller sample). NaN where replications did not finish.
    """
    paired, one_curve, records = same_failures(a, b), _one_curve(a, b), []
    for name, of_a, of_b in _in_both(a, b):
        differences = difference_of(of_a, of_b, one_curve=one_curve, paired=paired)
        for quantity, difference in differences.items():
            if _unknown(quantity, of_a) and _unknown(quantity, of_b):
                continue  # no curve tells what the failures cost in accuracy
            means = (of_a.mean(quantity), of_b.mean(quantity))
            records.append((name, quantity, *means, *difference.triple, difference.n))
    if not records:
        names = [", ".join(p.name for p in result.policies) for result in (a, b)]
        message = f"no strategy is in both results: A has {names[0]}; B has {names[1]}"
        raise ParameterError(message)
    columns = ["strategy", "quantity", "a", "b", *Estimate(0).columns("difference"), "n"]
    return pd.DataFrame(records, columns=columns)


def independent_errors(a: Result, b: Result) -> list[str]:
    """Note on differences between two curves, whose errors count as independent; else empty."""
    losing = [
        name
        for name, *samples in _in_both(a, b)
        if all(not _unknown(AUC_LOSS, s) and s.measured(AUC_LOSS)[0][0] > 0 for s in samples)
    ]
    if not losing or _one_curve(a, b):
        return []
    curves = "the errors of the staleness curves of A and B"
    return [f"{', '.join(losing)}: {curves} count as independent."]


def _in_both(a: Result, b: Result) -> Iterator[tuple[str, Sample, Sample]]:
    parts = parts_among([*a.replications, *b.replications])
    of_a, of_b = (samples_of(result.replications, result.n_nodes, parts) for result in (a, b))
    return ((name, of_a[name], of_b[name]) for name in of_a if name in of_b)


def _one_curve(a: Result, b: Result) -> bool:
    """Whether one staleness curve prices the losses of both."""
    return a.curve is not None and b.curve is not None and a.curve.sha256 == b.curve.sha256


def _unknown(quantity: str, sample: Sample) -> bool:
    return bool(np.isnan(sample.value(quantity)).all())
