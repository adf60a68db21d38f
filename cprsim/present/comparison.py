"""Several results of ``cprsim run`` side by side, each against the first; in what inputs differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError
from cprsim.files import finite_or_none
from cprsim.present.document import (
    Block,
    Column,
    Document,
    Section,
    Table,
    Words,
    word_columns,
)
from cprsim.present.money import money_differences
from cprsim.present.run_sentences import spread_in_percent
from cprsim.records import NO_NUMBER, Estimate
from cprsim.results import (
    FINISHED,
    Differing,
    Result,
    compare,
    different,
    inputs_of,
    records_of,
    same_failures,
    shared_errors,
)
from cprsim.results.metrics import parts_among
from cprsim.results.rows import further_losses, has_measured_error
from cprsim.results.words import (
    count,
    hours,
    part_label,
    percent,
    portion,
    saves,
    suited,
)
from cprsim.staleness import Metric

INPUTS = "In what the inputs differ"
SAME_INPUTS = "All inputs are the same: scenario, seed, replications, files and versions."
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


# ------------------------------------------------------------------------------ two results


def comparison_of_two(a: Result, b: Result) -> list[Block]:
    """What changes from result A to result B. Raises ParameterError where nothing can be compared.

    The two are named as the folders that they were read from.
    """
    how = (
        "Both met the same failures: replications are paired."
        if same_failures(a, b)
        else "They met different failures: independent samples, Welch's intervals."
    )
    names = [{policy.name for policy in result.policies} for result in (a, b)]
    alone = [
        f"only in {result.path}: {', '.join(sorted(only))}"
        for result, only in ((a, names[0] - names[1]), (b, names[1] - names[0]))
        if only
    ]
    return [
        Words([f"A  {a.path}", f"B  {b.path}", how]),
        inputs_block([inputs_of(result.path, result.manifest) for result in (a, b)]),
        differences_table(compare(a, b)),
        *money_differences(a, b),
        Words([*shared_errors(a, b), *alone]),
    ]


def document_of_two(a: Result, b: Result, names: tuple[str, str] = ("A", "B")) -> Document:
    """What changes from result A to result B. Raises ParameterError where nothing is in both."""
    words, inputs, *blocks = comparison_of_two(a, b)
    assert isinstance(words, Words)
    return Document(
        title=f"From {names[0]} to {names[1]}",
        question="What changes from the one result to the other?",
        answer=[words.paragraphs[-1]],
        sections=[
            Section("What changes", blocks),
            Section(INPUTS, [Words(words.paragraphs[:-1]), inputs]),
        ],
    )


def inputs_block(inputs: Sequence[Mapping[str, str]]) -> Table | Words:
    """In what several results differ that went into them: a column per result."""
    return table_of_inputs(different(inputs), len(inputs))


def table_of_inputs(found: Sequence[Differing], n_results: int = 2) -> Table | Words:
    """The inputs that differ, or that none does."""
    if not found:
        return Words([SAME_INPUTS])
    return Table(
        caption=f"What went into them and is not the same in all; {NO_NUMBER} where there is none",
        columns=[
            Column("input", is_number=False, brief="inputs that differ"),
            *word_columns(*LETTERS[:n_results]),
        ],
        rows=[[one.key, *one.values] for one in found],
    )


def differences_table(
    table: pd.DataFrame, letters: Sequence[str] = "AB", caption: str = ""
) -> Table:
    """The differences B - A with their 95 % intervals (`cprsim.results.compare`).

    Quantities that are zero in both are left out, losses that no curve priced, and the ETTR of all
    paid nodes where only the job's are paid.
    """
    first, second = letters
    parts = parts_among(table["quantity"])
    return Table(
        caption=caption,
        columns=[
            *word_columns("strategy", "quantity"),
            *map(Column, (first, second, f"{second} - {first}", "95 % interval")),
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
    label = LABELS.get(quantity) or _label(quantity)
    return [label, *means, shown, _from_to(shown, least, most)]


def _label(quantity: str) -> str:
    metric = Metric.of_quantity(quantity)
    return f"  {part_label(quantity)}" if metric is None else f"{metric.label} loss, ×10⁻⁴"


def _from_to(*estimate_and_ends: str) -> str:
    """``8.37 to 9.05``; no number where there is no estimate, or no interval."""
    _, least, most = estimate_and_ends
    return NO_NUMBER if NO_NUMBER in estimate_and_ends else f"{least} to {most}"


def comparison_as_json(
    table: pd.DataFrame, paired: bool, inputs: Sequence[Differing], errors: Sequence[str]
) -> dict[str, Any]:
    """The object that ``cprsim compare --json`` prints, from `cprsim.results.compare`."""
    numbers = ("a", "b", "difference", "low", "high")
    return {
        "method": "paired" if paired else "welch",
        "inputs": [{"key": one.key, "a": one.values[0], "b": one.values[1]} for one in inputs],
        "curve_errors": list(errors),
        "differences": [
            {
                "strategy": row["strategy"],
                "quantity": row["quantity"],
                **{name: finite_or_none(row[name]) for name in numbers},
                "n": int(row["n"]),
            }
            for row in records_of(table)
        ],
    }


# ------------------------------------------------------------------------------ several on a page


def overview_of_runs(results: Sequence[Result]) -> Document:
    """What several results say together: at most as many as there are letters."""
    names = [f"{letter}, {result.name}" for letter, result in zip(LETTERS, results, strict=False)]
    return Document(
        title=f"What failures cost: {count(len(results), 'result')} compared",
        question="Which of these results costs least, and by how much do they differ?",
        answer=[_cheapest(results, names)],
        sections=[
            Section("Side by side", [_table(results, names)]),
            Section("Differences from the first", _differences(results, names)),
        ],
    )


def different_inputs(inputs: Sequence[Mapping[str, str]]) -> Section:
    """The section that says in what several results differ that went into them."""
    return Section(INPUTS, [inputs_block(inputs)])


def _cheapest(results: Sequence[Result], names: Sequence[str]) -> str:
    finished = [
        (spreads["overhead_fraction"], policy.name, name)
        for result, name in zip(results, names, strict=True)
        for policy in result.policies
        for spreads in [result.spreads()[policy.name]]
        if spreads[FINISHED].mean == 1
    ]
    if not finished:
        return "No strategy of any result reliably gets its job done."
    spread, strategy, name = min(finished, key=lambda found: found[0].mean)
    return (
        f"{strategy} of result {name} has the smallest overhead: {spread_in_percent(spread)} of "
        "useful time."
    )


def _table(results: Sequence[Result], names: Sequence[str]) -> Table:
    return Table(
        caption="Mean overhead of every strategy of every result",
        columns=[
            *word_columns("result", "strategy", "useful work", "saves"),
            *map(Column, ("overhead, % of useful time", "95 % interval", "PLS")),
        ],
        rows=[
            [name, *row]
            for result, name in zip(results, names, strict=True)
            for row in _rows(result)
        ],
    )


def _rows(result: Result) -> list[list[str]]:
    spreads = result.spreads()
    return [
        [
            policy.name,
            hours(result.useful_h),
            saves(policy, result.useful_h),
            *_overhead(spreads[policy.name][OVERHEAD], spreads[policy.name][FINISHED].mean),
            portion(spreads[policy.name]["pls"].mean),
        ]
        for policy in result.policies
    ]


def _overhead(spread: Estimate, finished: float) -> tuple[str, str]:
    """Mean and interval in per cent, or that the jobs do not finish."""
    if isnan(spread.mean):
        return f"only {percent(finished)} finished", NO_NUMBER
    shown = suited(*spread.times(100).triple)
    return shown[0], _from_to(*shown)


def _differences(results: Sequence[Result], names: Sequence[str]) -> list[Block]:
    return [
        _difference_from(results[0], result, names[0], name)
        for result, name in zip(results[1:], names[1:], strict=True)
    ]


def _difference_from(first: Result, result: Result, its_name: str, name: str) -> Block:
    """What changes from the first result to another; why it can't be told where it can't."""
    try:
        table = compare(first, result)
    except ParameterError as error:
        return Words([f"{name}: {error}"])
    paired = same_failures(first, result)
    how = "paired by replication" if paired else "independent samples, Welch's intervals"
    return differences_table(table, (its_name[0], name[0]), f"{name}, less {its_name}: {how}")
