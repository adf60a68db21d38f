"""The file of a curve: JSON as `cprsim measure` writes it, or a CSV written by the user.

The JSON ends in a digest of its contents, so that a damaged file is refused. A CSV has a row per
strategy and portion of lost samples.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np

from cprsim.accuracy.curve import BY_PLS, COUNTED, Response, StalenessCurve
from cprsim.errors import (
    UNUSABLE,
    CurveError,
    ParameterError,
    Place,
    Problem,
    TraceError,
    choices,
    one_line,
)
from cprsim.files import decode, digest_of, encode, json_text, write_whole
from cprsim.job.losses import RESPONSE_KEYS, Metric
from cprsim.logs.reading import FIRST_ROW, named_columns, read_csv
from cprsim.recovery.systems import SYSTEMS

KIND = "cprsim staleness curve"
CURVE_FORMAT = 3


def read_curve(path: Path | str) -> StalenessCurve:
    """Read the file of a curve: ours where it ends in .json, else a CSV of the user's own."""
    path = Path(path)
    if path.suffix.lower() != ".json":
        return StalenessCurve(path.stem, read_own(path))
    plain = _checked(_parsed(path), path)
    try:
        return decode(StalenessCurve, plain)
    except UNUSABLE as error:  # also ParameterError
        reason = one_line(str(error), 200)
        raise _error(path, f"can't be used as a staleness curve: {reason}") from error


def write_curve(path: Path, curve: StalenessCurve) -> None:
    """Write the file whole or not at all, on the disk when this returns."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json_text(as_json(curve), indent=1))
    except OSError as error:
        raise _error(path, f"can't be written: {error.strerror or error}") from error


def as_json(curve: StalenessCurve) -> dict[str, Any]:
    """The object that the file holds, its digest last."""
    plain = {"kind": KIND, "format": CURVE_FORMAT, "identity": curve.identity, **encode(curve)}
    for response in plain["responses"]:
        (response["settings"] or {}).pop("bytes_share", None)  # what it wrote stands in the checks
    return {**plain, "digest": digest_of(plain)}


def _parsed(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise _error(path, f"can't be read: {error.strerror or error}") from None
    except (RecursionError, ValueError) as error:
        message = f"is damaged, or no JSON: {one_line(str(error), 200)}"
        raise _error(path, message, getattr(error, "lineno", None)) from None


def _checked(plain: Any, path: Path) -> dict[str, Any]:
    """The object, if it is a curve of this version and undamaged."""
    if not isinstance(plain, dict) or plain.get("kind") != KIND:
        raise _error(path, f"is no staleness curve: `cprsim measure` writes `kind: {KIND}` in it")
    if plain.get("format") != CURVE_FORMAT:
        message = (
            f"has format {one_line(str(plain.get('format')))}, and this cprsim reads format "
            f"{CURVE_FORMAT}: it comes from another version; measure again"
        )
        raise _error(path, message)
    content = {key: value for key, value in plain.items() if key != "digest"}
    if digest_of(content) != plain.get("digest"):
        raise _error(path, "is damaged or was changed by hand: it differs from its digest")
    return plain


def _error(path: Path, message: str, line: int | None = None) -> CurveError:
    return CurveError.at(Place(path, line), message)


# --------------------------------------------------------------------------- a user's own

# of the numbers of a row: the most that each can be, and why. No AUC is above 1, no log-loss of a
# trained model far above ln 2
RANGES = {
    "pls": (1.0, "a portion lies between 0 and 1"),
    "loss": (10.0, "a loss is not negative, nor in per cent"),
    "standard_error": (10.0, "a standard error is not negative"),
}
CURVE_COLUMNS = ("strategy", *RANGES, "metric", "by")
DEFAULTS = {"metric": Metric.AUC.value, "by": BY_PLS}
MAX_PROBLEMS = 20

Row = dict[str, Any]  # texts by column, numbers of the same name in `numbers`, and the line


def read_own(path: Path) -> tuple[Response, ...]:
    """Read a CSV of responses: strategy, pls, loss, standard_error; optional metric (AUC) and by.

    Any number of points per strategy, in any order, each PLS once; the point 0 is added. All lost
    samples have the same weight, and the standard errors count as known. For a recovery system
    without another model of its loss, `by` names the unit of the column `pls`: one of `COUNTED`.
    """
    try:
        table = named_columns(read_csv(path), {}, path, CURVE_COLUMNS, DEFAULTS)
    except TraceError as error:
        raise CurveError(error.problems) from None
    table = table.assign(**{c: word for c, word in DEFAULTS.items() if c not in table}).fillna("")
    table = table.apply(lambda column: column.str.strip())
    table["by"] = table["by"].replace("", BY_PLS)
    table["line"] = table.index.astype(int) + FIRST_ROW
    rows: list[Row] = table.to_dict("records")
    for row in rows:
        row["numbers"] = {column: _number(row[column]) for column in RANGES}
    problems = [
        Problem(Place(path, row["line"]), column, f"`{one_line(row[column])}` {message}")
        for row in rows
        for column, message in _wrong_cells(row)
    ]
    wrong = {problem.place.line for problem in problems}
    responses: dict[tuple[str, Metric], list[Row]] = {}
    for row in rows:
        if row["line"] not in wrong:
            responses.setdefault((row["strategy"], Metric(row["metric"])), []).append(row)
    for key, points in responses.items():
        points.sort(key=lambda point: float(point["numbers"]["pls"]))
        problems += _wrong_points(*key, points, path)
    if problems:
        raise CurveError(problems[:MAX_PROBLEMS])
    return tuple(_response(*key, points) for key, points in responses.items())


def _response(strategy: str, metric: Metric, points: list[Row]) -> Response:
    beyond = [point["numbers"] for point in points if point["numbers"]["pls"] > 0]
    pls, loss, error = (np.array([0.0, *(point[column] for point in beyond)]) for column in RANGES)
    return Response(strategy, metric, pls, loss, error, by=points[0]["by"])


def _wrong_cells(row: Row) -> Iterator[tuple[str, str]]:
    """Yield (column, message) for each invalid cell of a row."""
    yield from _wrong_name(row["strategy"], row["by"])
    try:
        Metric(row["metric"])
    except ParameterError as error:
        yield "metric", str(error).partition("` ")[2]
    numbers = row["numbers"]
    for column, (most, rule) in RANGES.items():
        is_count = column == "pls" and row["by"] in ("failures", "saves")
        if not isfinite(numbers[column]):
            yield column, "is not a finite number"
        elif not 0 <= numbers[column] <= (inf if is_count else most):
            yield column, f"is out of range: {rule}"
    estimate = numbers["loss"], numbers["standard_error"]
    if numbers["pls"] == 0 and estimate != (0, 0):
        yield "loss", "is not 0 at PLS 0, where nothing is lost: leave this row out"
    if numbers["pls"] > 0 and estimate == (0, 0):
        yield "standard_error", "is 0 with a loss of 0: nothing is known so well"


def _wrong_name(strategy: str, by: str) -> Iterator[tuple[str, str]]:
    """Yield (column, message) if the strategy of a row, or its `by`, is invalid."""
    systems = tuple(name for name, system in SYSTEMS.items() if system.not_counted)
    if strategy in systems:
        if by not in COUNTED:
            suggestion = f"is not known: {choices(by, tuple(COUNTED))}"
            yield "by", f"does not say what {strategy} loses by: {suggestion}"
    elif strategy not in RESPONSE_KEYS:
        names = choices(strategy.removeprefix("cpr-"), RESPONSE_KEYS)
        yield "strategy", f"is not known: {names}; and of recovery systems {', '.join(systems)}"
    elif by != BY_PLS:
        yield "by", f"goes with recovery systems; {strategy} loses by `{BY_PLS}`: leave it out"


def _wrong_points(
    strategy: str, metric: Metric, points: list[Row], path: Path
) -> Iterator[Problem]:
    """Yield the problems between the rows of one response, given in the order of their PLS."""
    if len(words := dict.fromkeys(row["by"] for row in points)) > 1:
        yield Problem(Place(path), "by", f"{strategy} loses by {' and by '.join(words)}: one")
    if points[-1]["numbers"]["pls"] == 0:
        yield Problem(Place(path), "pls", f"{strategy} has no point beyond 0 in {metric}")
    for before, point in pairwise(points):
        place, was, now = Place(path, point["line"]), before["numbers"], point["numbers"]
        if now["pls"] == was["pls"]:
            message = f"`{one_line(point['pls'])}` stands in line {before['line']} too"
            yield Problem(place, "pls", message)
        elif now["loss"] < was["loss"]:
            message = (
                f"`{now['loss']:g}` at PLS {now['pls']:g} is less than `{was['loss']:g}` at PLS "
                f"{was['pls']:g} in line {before['line']}: a loss does not fall as more is lost"
            )
            yield Problem(place, "loss", message)


def _number(text: str) -> float:
    """Parse a number; NaN if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        return nan
