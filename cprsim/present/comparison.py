"""Several results side by side: runs each against the first, and in what inputs all differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError
from cprsim.present.answer import Answer
from cprsim.present.document import Block, Column, Document, Section, Table, Words, word_columns
from cprsim.present.money import money_differences
from cprsim.present.run_sentences import spread_in_percent
from cprsim.records import NO_NUMBER, Estimate
from cprsim.results import (
    FINISHED,
    Differing,
    Result,
    compare,
    different,
    records_of,
    same_failures,
    shared_errors,
)
from cprsim.results.metrics import parts_among
from cprsim.results.rows import further_losses, has_measured_error
from cprsim.results.words import count, part_label, percent, portion, saves, suited, with_interval
from cprsim.staleness import Metric

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
OVERHEAD, PAID = "overhead_fraction", "ettr_paid"
LABELS = {
    OVERHEAD: "overhead, % of useful time",
    "failures": "failures per job",
    "pls": "PLS",
    "auc_loss": "AUC loss, ×10⁻⁴",
    "log_loss_rise": "log-loss rise, ×10⁻⁴",
    "ettr": "ETTR",
    PAID: "ETTR of all paid nodes",
    "overhead_h": "overhead, h",
    "overhead_node_h": "overhead, node-h",
}
FINE = ("pls", "ettr", PAID)  # shares that need four decimals
MOST_INPUTS = 3  # named among the remarks; a table has all


def answer_of_several(
    answers: Sequence[Answer], inputs: Sequence[Mapping[str, str]], runs: Sequence[Result]
) -> Answer:
    """What several results say together.

    Parameters
    ----------
    answers : of each result
    inputs : what went into each, by key
    runs : the runs in them; empty where any is no run

    Raises ParameterError: there are more than letters, or two runs have no strategy in common.
    """
    if len(answers) > len(LETTERS):
        raise ParameterError(f"a report compares at most {len(LETTERS)} results")
    found = different(inputs)
    columns = {
        letter: [one.values[at] for one in found]
        for at, letter in enumerate(LETTERS[: len(answers)])
    }
    frames = {"inputs": pd.DataFrame({"key": [one.key for one in found], **columns})}
    others = list(zip(LETTERS[1:], runs[1:], strict=False))
    differences = {letter: compare(runs[0], run) for letter, run in others}
    if differences:
        frames["differences"] = pd.concat(
            [frame.assign(result=letter) for letter, frame in differences.items()]
        ).rename(columns={"low": "difference_low", "high": "difference_high"})
    tell = _of_runs if runs else _of_any
    return Answer(
        "comparison",
        ", ".join(answer.name for answer in answers),
        lambda: tell(answers, found, runs, differences),
        frames=frames,
        values={
            "results": {
                letter: str(one.folder) for letter, one in zip(LETTERS, answers, strict=False)
            },
            "paired": {letter: same_failures(runs[0], run) for letter, run in others},
            "curve_errors": {letter: shared_errors(runs[0], run) for letter, run in others},
        },
    )


def _of_any(answers: Sequence[Answer], found: Sequence[Differing], *_: Any) -> Document:
    return Document(
        title=count(len(answers), "result"),
        question="What do these results say?",
        answer=[
            f"{letter}: {one.document.answer[0]}"
            for letter, one in zip(LETTERS, answers, strict=False)
        ],
        sections=[_inputs(found, len(answers))],
        parts=_parts(answers),
    )


def _parts(answers: Sequence[Answer]) -> list[Document]:
    return [
        replace(one.document, title=f"{letter}: {one.document.title}")
        for letter, one in zip(LETTERS, answers, strict=False)
    ]


def _inputs(found: Sequence[Differing], n_results: int) -> Section:
    if not found:
        same = "All inputs are the same: scenario, seed, replications, files and versions."
        return Section("In what the inputs differ", [Words([same])])
    table = Table(
        caption=f"What went into them and is not the same in all; {NO_NUMBER} where there is none",
        columns=word_columns("input", *LETTERS[:n_results]),
        rows=[[one.key, *one.values] for one in found],
    )
    return Section("In what the inputs differ", [table])


# ------------------------------------------------------------------------------ runs


def _of_runs(
    answers: Sequence[Answer],
    found: Sequence[Differing],
    runs: Sequence[Result],
    differences: Mapping[str, pd.DataFrame],
) -> Document:
    first, money = runs[0], [money_differences(runs[0], run) for run in runs[1:]]
    tables: list[Block] = [
        differences_table(frame, letter, _how(first, run, letter))
        for (letter, frame), run in zip(differences.items(), runs[1:], strict=True)
    ]
    return Document(
        title=f"What failures cost: {count(len(runs), 'result')} compared",
        question="Which of these results costs least, and by how much do they differ?",
        answer=[_cheapest(runs)],
        table=_side_by_side(runs, differences),
        remarks=[
            *(_how(first, run, letter) for letter, run in zip(LETTERS[1:], runs[1:], strict=False)),
            *_differing_inputs(found),
            *(said for run in runs[1:] for said in shared_errors(first, run)),
            *_alone(runs),
            ", ".join(
                f"{letter} is {one.holds.path}"
                for letter, one in zip(LETTERS, answers, strict=False)
            ),
        ],
        sections=[
            Section("Differences from A", [*tables, *(one for each in money for one in each)]),
            _inputs(found, len(runs)),
        ],
        parts=_parts(answers),
    )


def _how(first: Result, run: Result, letter: str) -> str:
    if same_failures(first, run):
        return f"{letter} - A: both met the same failures, replications are paired."
    return f"{letter} - A: they met different failures, independent samples (Welch's intervals)."


def _differing_inputs(found: Sequence[Differing]) -> list[str]:
    if not found:
        return ["All inputs are the same: scenario, seed, replications, files and versions."]
    named = "; ".join(f"{one.key}: {', '.join(one.values)}" for one in found[:MOST_INPUTS])
    more = len(found) - MOST_INPUTS
    return [f"Inputs that differ: {named}{f'; and {more} more' if more > 0 else ''}."]


def _alone(runs: Sequence[Result]) -> list[str]:
    """Strategies that are not in all results."""
    names = [{policy.name for policy in run.policies} for run in runs]
    common = set.intersection(*names)
    return [
        f"Not in all results: {', '.join(sorted(mine - common))} of {letter}."
        for letter, mine in zip(LETTERS, names, strict=False)
        if mine - common
    ]


def _cheapest(runs: Sequence[Result]) -> str:
    finished = [
        (spreads[OVERHEAD], policy.name, letter)
        for letter, run in zip(LETTERS, runs, strict=False)
        for policy in run.policies
        for spreads in [run.spreads()[policy.name]]
        if spreads[FINISHED].mean == 1
    ]
    if not finished:
        return "No strategy of any result reliably gets its job done."
    spread, strategy, letter = min(finished, key=lambda one: one[0].mean)
    name = runs[LETTERS.index(letter)].name
    return (
        f"{strategy} of {letter} ({name}) has the smallest overhead: {spread_in_percent(spread)} "
        "of useful time."
    )


def _side_by_side(runs: Sequence[Result], differences: Mapping[str, pd.DataFrame]) -> Table:
    rows = []
    for letter, run in zip(LETTERS, runs, strict=False):
        less = {}
        if letter in differences:
            frame = differences[letter]
            less = {row["strategy"]: row for row in records_of(frame[frame.quantity == OVERHEAD])}
        rows += [
            [letter, policy.name, saves(policy, run.useful_h), _overhead(spreads),
             _less(less.get(policy.name)),
             portion(spreads["pls"].mean) if policy.leaves_stale else NO_NUMBER]
            for policy in run.policies
            for spreads in [run.spreads()[policy.name]]
        ]  # fmt: skip
    return Table(
        caption="Overhead in % of useful time, and how much more that is than in A; ± half of the "
        "95 % interval",
        columns=[
            *word_columns("result", "strategy", "saves"),
            *map(Column, ("overhead, %", "more than A", "PLS")),
        ],
        rows=rows,
        grouped=True,
    )


def _overhead(spreads: Mapping[str, Estimate]) -> str:
    """Mean and interval in per cent, or that the jobs do not finish."""
    one = spreads[OVERHEAD]
    if isnan(one.mean):
        return f"only {percent(spreads[FINISHED].mean)} finished"
    return with_interval(100 * one.mean, 100 * one.half_width)


def _less(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return NO_NUMBER
    return with_interval(100 * row["difference"], 50 * (row["high"] - row["low"]))


# ------------------------------------------------------------------------------ all differences


def differences_table(table: pd.DataFrame, letter: str = "B", caption: str = "") -> Table:
    """The differences from A with their 95 % intervals (`cprsim.results.compare`).

    Quantities that are zero in both are left out, losses that no curve priced, and the ETTR of all
    paid nodes where only the job's are paid.
    """
    parts = parts_among(table["quantity"])
    return Table(
        caption=caption,
        columns=[
            *word_columns("strategy", "quantity"),
            *map(Column, ("A", letter, f"{letter} - A", "95 % interval")),
        ],
        rows=[
            [row["strategy"], *_difference(row, in_percent=row["quantity"] in (OVERHEAD, *parts))]
            for row in records_of(_worth_showing(table, parts))
        ],
        grouped=True,
    )


def _worth_showing(table: pd.DataFrame, parts: Sequence[str]) -> pd.DataFrame:
    further = further_losses(table["quantity"].unique())
    shown = table[table["quantity"].isin([*LABELS, *parts, *further])]
    ettr, paid = (shown[shown["quantity"] == name][["a", "b"]] for name in ("ettr", PAID))
    if np.allclose(ettr, paid, rtol=1e-12, equal_nan=True):
        shown = shown[shown["quantity"] != PAID]
    zero = (shown[["a", "b"]].fillna(1) == 0).all(axis=1)
    unknown = shown["quantity"].map(has_measured_error) & shown[["a", "b"]].isna().all(axis=1)
    return shown[~(zero | unknown)]


def _difference(row: dict[str, Any], *, in_percent: bool) -> list[str]:
    """The quantity, both means, their difference and its interval."""
    quantity = row["quantity"]
    scale = 100 if in_percent else 1e4 if has_measured_error(quantity) else 1
    a, b, difference, low, high = (
        scale * float(row[name]) for name in ("a", "b", "difference", "low", "high")
    )
    at_least = 4 if quantity in FINE else 0
    shown, least, most = suited(difference, low, high, at_least=at_least)
    means = [
        suited(mean, mean + low - difference, mean + high - difference, at_least=at_least)[0]
        for mean in (a, b)
    ]
    interval = NO_NUMBER if NO_NUMBER in (shown, least, most) else f"{least} to {most}"
    return [LABELS.get(quantity) or _label(quantity), *means, shown, interval]


def _label(quantity: str) -> str:
    metric = Metric.of_quantity(quantity)
    return f"  {part_label(quantity)}" if metric is None else f"{metric.label} loss, ×10⁻⁴"
