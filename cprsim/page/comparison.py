"""Several results of ``cprsim run`` side by side, each against the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan

from cprsim.errors import ParameterError
from cprsim.page.answer import spread_in_percent
from cprsim.present.document import Block, Column, Document, Section, Table, Words
from cprsim.report.compare_table import SAME_INPUTS
from cprsim.results import (
    FINISHED,
    Result,
    Spread,
    compare,
    different,
    records_of,
    same_failures,
)
from cprsim.results.words import NO_NUMBER, count, hours, percent, portion, saves, suited

INPUTS = "In what the inputs differ"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


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
    """In what several results differ that went into them: a column per result."""
    found = different(inputs)
    if not found:
        return Section(INPUTS, [Words([SAME_INPUTS])])
    letters = LETTERS[: len(inputs)]
    table = Table(
        caption=f"What went into them and is not the same in all; {NO_NUMBER} where there is none",
        columns=[Column(heading, is_number=False) for heading in ("input", *letters)],
        rows=[[one.key, *one.values] for one in found],
    )
    return Section(INPUTS, [table])


def _cheapest(results: Sequence[Result], names: Sequence[str]) -> str:
    finished = [
        (mine["overhead_fraction"], policy.name, name)
        for result, name in zip(results, names, strict=True)
        for policy in result.policies
        for mine in [result.spreads()[policy.name]]
        if mine[FINISHED].mean == 1
    ]
    if not finished:
        return "No strategy of any result reliably gets its job done."
    spread, strategy, name = min(finished, key=lambda found: found[0].mean)
    return (
        f"{strategy} of result {name} has the smallest overhead: {spread_in_percent(spread)} of "
        "useful time."
    )


def _table(results: Sequence[Result], names: Sequence[str]) -> Table:
    rows = []
    for result, name in zip(results, names, strict=True):
        for policy in result.policies:
            mine = result.spreads()[policy.name]
            rows.append(
                [
                    name,
                    policy.name,
                    hours(result.useful_h),
                    saves(policy, result.useful_h),
                    *_overhead(mine["overhead_fraction"], mine[FINISHED].mean),
                    portion(mine["pls"].mean),
                ]
            )
    headings = ("overhead, % of useful time", "95 % interval", "PLS")
    words = ("result", "strategy", "useful work", "saves")
    return Table(
        caption="Mean overhead of every strategy of every result",
        columns=[*(Column(one, is_number=False) for one in words), *map(Column, headings)],
        rows=rows,
    )


def _overhead(spread: Spread, finished: float) -> tuple[str, str]:
    """Mean and interval in per cent, or that the jobs do not finish."""
    if isnan(spread.mean):
        return f"only {percent(finished)} finished", NO_NUMBER
    return _in_percent(spread.mean, spread.low, spread.high)


def _in_percent(mean: float, low: float, high: float) -> tuple[str, str]:
    """``8.71`` and ``8.37 to 9.05``."""
    shown, least, most = suited(100 * mean, 100 * low, 100 * high)
    return shown, NO_NUMBER if NO_NUMBER in (least, most) else f"{least} to {most}"


def _differences(results: Sequence[Result], names: Sequence[str]) -> list[Block]:
    blocks: list[Block] = []
    first = results[0]
    for result, name in zip(results[1:], names[1:], strict=True):
        paired = same_failures(first, result)
        try:
            table = compare(first, result)
        except ParameterError as error:
            blocks.append(Words([f"{name}: {error}"]))
            continue
        rows = records_of(table[table["quantity"] == "overhead_fraction"])
        how = "paired by replication" if paired else "independent samples, Welch's intervals"
        blocks.append(
            Table(
                caption=f"{name}, less {names[0]}: overhead in percentage points; {how}",
                columns=[
                    Column("strategy", is_number=False),
                    Column("difference"),
                    Column("95 % interval"),
                ],
                rows=[
                    [
                        str(row["strategy"]),
                        *_in_percent(row["difference"], row["low"], row["high"]),
                    ]
                    for row in rows
                ],
            )
        )
    return blocks
