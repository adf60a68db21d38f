"""A curve of the user's own: a CSV with a row per strategy and portion of lost samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.errors import CurveError, ParameterError, Place, Problem, TraceError, one_line
from cprsim.failures.traces.reading import FIRST_ROW, named_columns, read_csv
from cprsim.recovery.losses import STRATEGIES, Metric
from cprsim.recovery.systems import SYSTEMS
from cprsim.staleness.response import BY_PLS, COUNTED, Response

COLUMNS = ("strategy", "pls", "loss", "standard_error", "metric", "by")
OPTIONAL = {"metric", "by"}
LARGEST_LOSS = 10.0  # no AUC is above 1, no log-loss of a trained model far above ln 2
MAX_PROBLEMS = 20

Cells = dict[str, str]


def read_own(path: Path) -> tuple[Response, ...]:
    """The responses of a CSV: strategy, pls, loss, standard_error; metric, else AUC; by, else pls.

    Any number of points per strategy, in any order, each PLS once; the point 0 is added. All lost
    samples count alike, and the standard errors count as known. Of a recovery system whose loss
    nothing else prices, `by` says what the column `pls` counts: one of `COUNTED`.
    """
    try:
        table = named_columns(read_csv(path), {}, path, COLUMNS, OPTIONAL)
    except TraceError as error:
        raise CurveError(error.problems) from None
    if "metric" not in table:
        table["metric"] = Metric.AUC.value
    if "by" not in table:
        table["by"] = BY_PLS
    table["by"] = table["by"].fillna("").str.strip().replace("", BY_PLS)
    problems = [Problem(*found) for found in _problems(table.fillna(""), path)]
    if problems:
        raise CurveError(problems[:MAX_PROBLEMS])
    numbers = table.assign(
        strategy=table["strategy"].str.strip(),
        metric=[Metric(name.strip()) for name in table["metric"]],
        **{column: table[column].astype(float) for column in ("pls", "loss", "standard_error")},
    )
    groups = numbers.groupby(["strategy", "metric"], sort=False)
    return tuple(_response(str(key[0]), str(key[1]), rows) for key, rows in groups)


def _response(strategy: str, metric: str, rows: pd.DataFrame) -> Response:
    points, by = rows[rows["pls"] > 0].sort_values("pls"), str(rows["by"].iloc[0])
    pls, loss, error = (
        np.concatenate([[0.0], points[column].to_numpy(float)])
        for column in ("pls", "loss", "standard_error")
    )
    return Response(strategy, Metric(metric), pls, loss, error, by=by)


def _problems(table: pd.DataFrame, path: Path) -> Iterator[tuple[Place, str, str]]:
    seen: dict[tuple[str, Metric, float], int] = {}
    loss: dict[tuple[str, Metric, float], float] = {}
    for index, row in table.iterrows():
        line = int(str(index)) + FIRST_ROW
        cells = {str(column): str(cell).strip() for column, cell in row.items()}
        wrong = list(_wrong_cells(cells))
        for column, message in wrong:
            yield Place(path, line), column, f"`{one_line(cells[column])}` {message}"
        if not wrong:
            point = (cells["strategy"], Metric(cells["metric"]), float(cells["pls"]))
            if point in seen:
                yield (
                    Place(path, line),
                    "pls",
                    f"`{one_line(cells['pls'])}` stands in line {seen[point]} too",
                )
            seen.setdefault(point, line)
            loss[point] = float(cells["loss"])
    for strategy, found in table.groupby("strategy")["by"]:
        if found.nunique() > 1:
            yield Place(path), "by", f"{strategy} loses by {' and by '.join(found.unique())}: one"
    for strategy, metric in dict.fromkeys((point[0], point[1]) for point in seen):
        points = sorted(point for point in seen if point[:2] == (strategy, metric) and point[2] > 0)
        if not points:
            yield Place(path), "pls", f"{strategy} has no point beyond 0 in {metric}"
        for before, point in pairwise(points):
            if loss[point] < loss[before]:
                message = (
                    f"`{loss[point]:g}` at PLS {point[2]:g} is less than `{loss[before]:g}` at PLS "
                    f"{before[2]:g} in line {seen[before]}: a loss does not fall as more is lost"
                )
                yield Place(path, seen[point]), "loss", message


def _wrong_cells(cells: Cells) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of one row."""
    yield from _wrong_name(cells["strategy"], cells["by"])
    try:
        Metric(cells["metric"])
    except ParameterError as error:
        yield "metric", str(error).partition("` ")[2]
    in_range: dict[str, tuple[Callable[[float], bool], str]] = {
        "pls": (
            lambda pls: 0 <= pls <= 1 or (pls > 1 and cells["by"] in ("failures", "saves")),
            "is out of range: a portion lies between 0 and 1",
        ),
        "loss": (
            lambda loss: 0 <= loss <= LARGEST_LOSS,
            "is out of range: a loss is not negative, nor in per cent",
        ),
        "standard_error": (
            lambda error: 0 <= error <= LARGEST_LOSS,
            "is out of range: a standard error is not negative",
        ),
    }
    for column, (holds, message) in in_range.items():
        number = _number(cells[column])
        if number is None:
            yield column, "is not a finite number"
        elif not holds(number):
            yield column, message
    pls, *known = [_number(cells[column]) for column in ("pls", "loss", "standard_error")]
    if pls == 0 and known != [0, 0]:
        yield "loss", "is not 0 at PLS 0, where nothing is lost: leave this row out"
    if pls is not None and pls > 0 and known == [0, 0]:
        yield "standard_error", "is 0 with a loss of 0: nothing is known so well"


def _wrong_name(strategy: str, by: str) -> Iterator[tuple[str, str]]:
    """Whether a row's strategy is one that loses something, and by what."""
    systems = tuple(name for name, system in SYSTEMS.items() if system.not_counted)
    if strategy in systems:
        if by not in COUNTED:
            yield "by", f"does not say what {strategy} loses by: {_choices(by, tuple(COUNTED))}"
    elif strategy not in STRATEGIES:
        known = _choices(strategy.removeprefix("cpr-"), STRATEGIES)
        yield "strategy", f"{known}; and of recovery systems {', '.join(systems)}"
    elif by != BY_PLS:
        yield "by", f"goes with recovery systems; {strategy} loses by `{BY_PLS}`: leave it out"


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _choices(found: str, known: tuple[str, ...]) -> str:
    near = get_close_matches(found, known, n=1)
    hint = f"did you mean `{near[0]}`? " if near else ""
    return f"is not known: {hint}Known: {', '.join(known)}"
