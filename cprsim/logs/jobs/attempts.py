"""Tables with a row per attempt of a job, as events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cprsim.errors import one_line
from cprsim.failures.outages import PLANNED_WORK, Note
from cprsim.job.records import Floats
from cprsim.logs.columns import FLAGS, NEARLY_ALL, words_in
from cprsim.logs.files import trace_error
from cprsim.logs.jobs.causes import DONE, is_planned, word_of
from cprsim.logs.reading import header_line, named_columns, no_row_where, read_csv, separator_of
from cprsim.logs.times import read_times, require_decimals

NEEDED_OF_ATTEMPTS = {"start", "end", "last_step"}
TEXTS = ("job", "node", "cause")
STEPS = ("first_step", "resumed_step", "last_step", "last_saved_step")
OPTIONAL = {"first_step", "resumed_step", "last_saved_step", "step_seconds", *TEXTS}
OF_STEPS = re.compile("step|iter|ckpt|checkpoint|resum|restor|roll", re.IGNORECASE)  # by its name
BARE_DATE = r"\d{4}(-\d\d){1,2}"  # without a time
DATE = r"(\d+[-/.]){2}\d+([T ].*)?"
TOO_FAST = 1.2  # times faster than a step is said to be: it is another
LIKE_STEPS = 0.1  # of the largest last_step, which numbers of steps reach
FEWEST_TEXTS = 4  # of which each is another: remarks
COULD_MATTER = (
    "is not read, but could change the answer: call it cause (of the end: 'planned ...' if so), "
    "node, job, first_step (at which an attempt began) or last_saved_step, or take it out"
)
ANEW = "if each attempt counts its own steps, add those before; if these are jobs, name each"
NS_PER_H = 3600 * 10**9
LAST_H = 2**62 / NS_PER_H
NOTE = Note(
    "assumed",
    None,
    "a table of attempts has no saves, loads and detections: their hours within an attempt count "
    "as work (unless the column step_seconds gives the time of a step), and hours between attempts "
    "as rescheduling",
)


def is_header(line: str) -> bool:
    """Whether a table of attempts begins with it."""
    return {cell.strip() for cell in line.split(separator_of(line))} >= NEEDED_OF_ATTEMPTS


def attempt_events(
    path: Path, time_unit: str | None, notes: list[Note]
) -> Iterator[dict[str, Any]]:
    """The events that a table of attempts amounts to. Raises TraceError, with file and line."""
    read = _attempts(path, time_unit, notes)
    for job, mine in read.groupby("job", sort=False):
        tells = mine[["first_step", "last_saved_step", "step_seconds"]].notna().to_numpy().any()
        saved, n = nan if tells else 0.0, len(mine)
        # tables that overlap may number attempts differently: numbers only where instants are equal
        takes_no_time = (mine["start_h"] == mine["end_h"]).any()
        rows: Any = mine.itertuples()
        for attempt, row in enumerate(rows):
            about = {"attempt": attempt if takes_no_time else None, "job": job or None}
            first = {"time_unix_nano": round(row.start_h * NS_PER_H), **about}
            began = row.first_step if isfinite(row.first_step) else saved
            if isfinite(began):
                yield {**first, "event": "rollback", "step": began}
            yield {**first, "event": "job.start", "step_seconds": row.step_seconds}
            steps = row.last_step - began
            work_h = inf if isnan(row.step_seconds + row.last_step) else steps * row.step_seconds
            if not isnan(work_h):
                begins_h = max(row.start_h, row.end_h - work_h / 3600)
                begin = {**first, "time_unix_nano": round(begins_h * NS_PER_H)}
                yield {**begin, "event": "train.resume", "step": began}
            if isfinite(row.end_h):
                yield from _end(about, row, is_last=attempt == n - 1)
            saved = row.last_saved_step


def _end(about: dict[str, Any], row: Any, *, is_last: bool) -> Iterator[dict[str, Any]]:
    instant = {"time_unix_nano": round(row.end_h * NS_PER_H), **about}
    at = {**instant, "step": row.last_step}
    finished = is_last and word_of(row.cause) in DONE
    if isfinite(row.last_step):
        yield {**at, "event": "progress"}
    if not finished:
        yield {**at, "event": "failure", "node": row.node, "cause": row.cause}
        yield {**instant, "event": "failure.detected"}
        if is_last and isfinite(row.last_saved_step):
            yield {**instant, "event": "rollback", "step": row.last_saved_step}
    if is_last:
        outcome = "finished" if finished else "failed"
        yield {**(at if finished else instant), "event": "job.end", "outcome": outcome}


def _attempts(path: Path, time_unit: str | None, notes: list[Note]) -> pd.DataFrame:
    """Attempts in order of time, checked."""
    table = read_csv(path)
    columns = (*TEXTS, "start", "end", *STEPS, "step_seconds")
    rows = named_columns(table.drop_duplicates(), {}, path, columns, OPTIONAL)
    rows = rows.reindex(columns=list(columns)).astype(object).fillna("")
    rows = rows.apply(lambda cells: cells.str.strip())
    notes.append(NOTE)
    if (rows["cause"] == "").all() and rows["job"].duplicated().any():
        words = f"no row of {path.name} has a cause: all ends but a job's last count as failures"
        notes.append(Note("assumed", None, words))
    if n_twice := len(table) - len(rows):
        notes.append(Note("merged", n_twice, f"row(s) of {path.name} said twice, counted once"))
    start = read_times(rows["start"], time_unit, path)
    end = read_times(rows["end"], time_unit, path, start)
    no_row_where(np.isnan(start.hours), rows, path, "start", "the row has no start")
    for name, times in (("start", start), ("end", end)):
        far = np.abs(times.hours) > LAST_H
        no_row_where(far, rows, path, name, "{value} lies hundreds of years off")
        message = "{value} is a date: write its time of day, too, as in 2026-01-05T07:14"
        no_row_where(rows[name].str.fullmatch(BARE_DATE), rows, path, name, message)
    open_ = np.isnan(end.hours) & np.isfinite(_steps(rows, "last_step", path))
    message = "the row has no end: write the instant of its last_step"
    no_row_where(open_, rows, path, "end", message)
    no_row_where(end.hours < start.hours, rows, path, "end", "{value} lies before the start")
    read = pd.DataFrame(
        {"start_h": start.hours, "end_h": end.hours}
        | {name: _steps(rows, name, path) for name in STEPS}
        | {"step_seconds": _steps(rows, "step_seconds", path, above=0.0)}
    ).set_index(rows.index)
    read[[*TEXTS]] = rows[[*TEXTS]]
    read["first_step"] = read["first_step"].fillna(read["resumed_step"])
    for name in ("first_step", "resumed_step", "last_saved_step"):
        is_beyond = read[name] > read["last_step"]
        no_row_where(is_beyond, rows, path, name, "{value} lies beyond the row's last_step")
    read = read.assign(place=np.arange(len(read))).sort_values("start_h", kind="stable")
    ended_h = read.groupby("job")["end_h"].transform(lambda ends: ends.cummax().shift())
    message = "{value} lies before the end of an attempt that began before; two jobs: column job"
    in_order = rows.iloc[read["place"]]
    no_row_where(read["start_h"] < ended_h, in_order, path, "start", message)
    _require_one_count(read, in_order, path)
    saved = read.groupby("job")["last_saved_step"].shift()
    back = read["first_step"].isna() & (read["last_step"] < saved)
    message = (
        f"{{value}} lies before the last_saved_step of the attempt before: give first_step; {ANEW}"
    )
    no_row_where(back, in_order, path, "last_step", message)
    began = read["first_step"].fillna(saved)
    message = "{value} lies before the step at which its attempt began: give the save that is left"
    no_row_where(read["last_saved_step"] < began, in_order, path, "last_saved_step", message)
    began = began.fillna(read.groupby("job")["last_step"].shift())
    took_s = 3600 * (read["end_h"] - read["start_h"])
    per_s = (read["last_step"] - began) / took_s
    message = "{value}: over twice the steps an hour of the job: from where? Give first_step"
    leaps = read["first_step"].isna() & (per_s > 2 * _usual(per_s, took_s, read["job"]))
    no_row_where(leaps, in_order, path, "last_step", message)
    is_new = began.isna() & (read["last_step"] * read["step_seconds"] <= TOO_FAST * took_s)
    read.loc[is_new & ~read["job"].duplicated(), "first_step"] = 0.0
    share = (read["last_step"] - began) * read["step_seconds"] / took_s
    message = "{value} s for each of the row's steps are longer than the attempt"
    no_row_where(share > TOO_FAST, in_order, path, "step_seconds", message)
    least, most = share.min(), share.max()
    is_same = most < min(1 / TOO_FAST, TOO_FAST * least) and took_s.max() > 2 * took_s.min()
    message = "{value} s for each step fill a third of none, or one share of all: leave it out"
    no_row_where(share.notna() & (is_same or most < 1 / 3), in_order, path, "step_seconds", message)
    again = (read["first_step"] == 0.0) & (saved > 0.0)
    words = f"row(s) of {path.name} with step 0 after saves, whose work counts as lost: {ANEW}"
    notes += [Note("assumed", int(again.sum()), words)] * bool(again.any())
    order = {job: place for place, job in enumerate(dict.fromkeys(rows["job"]))}
    read = read.sort_values("job", key=lambda jobs: jobs.map(order), kind="stable")
    others = table[[name for name in table if str(name).strip() not in columns]].reindex(read.index)
    cells = others.fillna("").apply(lambda column: column.str.strip())
    if found := [str(name) for name in cells if _could_matter(cells[name], read)]:
        listed = "; ".join(f"{one_line(name)!r} ({words_in(others[name])})" for name in found)
        raise trace_error(path, header_line(read), f"{listed} {COULD_MATTER}", "columns")
    if len(others.columns):
        words = f"column(s) of {path.name} that were not read: {', '.join(map(str, others))}"
        notes.append(Note("dropped", None, words))
    return read


def _usual(per_s: pd.Series[float], took_s: pd.Series[float], job: pd.Series) -> pd.Series[float]:
    """Steps a second of each attempt's job: the median, weighted by the lengths of attempts.

    The many short attempts of a crash loop, which make few steps, do not count for more.
    """
    paces = pd.DataFrame({"job": job, "per_s": per_s, "took_s": took_s}).dropna()
    paces = paces.sort_values("per_s")
    until = paces.groupby("job")["took_s"].transform(
        lambda lengths: lengths.cumsum() / lengths.sum()
    )
    return job.map(paces[until >= 0.5].groupby("job")["per_s"].first())


def _require_one_count(read: pd.DataFrame, rows: pd.DataFrame, path: Path) -> None:
    """Raise TraceError where each attempt may, by its pace, have begun at step 0."""
    tells = ["first_step", "last_saved_step"]
    untold = read[tells].isna().all(axis=1).groupby(read["job"]).transform("all")
    per_h = (read["last_step"] / (read["end_h"] - read["start_h"])).groupby(read["job"])
    is_later = untold & read["job"].duplicated()
    may_be_new = per_h.transform(lambda of: of.iloc[1:].max() <= TOO_FAST * of.iloc[0])
    message = (
        "{value}: counted from step 0 again in each attempt, or from a save? Write the column "
        f"first_step (0, where an attempt began anew); {ANEW}"
    )
    no_row_where(is_later & may_be_new, rows, path, "last_step", message)


def _could_matter(cells: pd.Series[str], read: pd.DataFrame) -> bool:
    """Whether a column may tell a step, or that an attempt ended by plan, against the others.

    A word can't that is the same for each job, cause or node, nor texts of which each is another;
    nor a number that is the same for each job or counts the rows, nor a date.
    """
    is_done = read["cause"].map(word_of).isin(DONE) & ~read["job"].duplicated(keep="last")
    is_over = is_done | read["cause"].map(is_planned)
    words, n = cells.unique(), (cells != "").sum()
    if any(map(is_planned, words)):
        return bool((cells.map(is_planned) != is_over).any())
    flags = cells.str.casefold().map(FLAGS)
    if flags.notna().all() and re.search(PLANNED_WORK, str(cells.name)):
        return bool((flags & ~is_over).any())  # its cause says that it failed
    varies = bool((cells.groupby(read["job"]).nunique() > 1).any())
    if not varies or OF_STEPS.search(str(cells.name)):
        return varies
    numbers = pd.to_numeric(cells.where(cells != "", "nan"), errors="coerce")
    if numbers.notna().sum() == n:
        most = LIKE_STEPS * read["last_step"].max()
        are_low = not (numbers > read["last_step"]).any() and numbers.max() >= most
        is_step = bool(are_low and (numbers.diff()[1:] != 1.0).any())
        if is_step or not (numbers == 0).any():
            return is_step
    of = [read[name] for name in ("cause", "node") if read[name].duplicated().any()]
    told = any((cells.groupby(one).nunique() == 1).all() for one in of)
    told = told or bool(cells[cells != ""].str.fullmatch(DATE).all())
    return not told and len(words) < max(NEARLY_ALL * n, FEWEST_TEXTS)


def _steps(rows: pd.DataFrame, name: str, path: Path, above: float = -1e-300) -> Floats:
    """A column of numbers, NaN where it is empty or absent."""
    require_decimals(rows[name], path)
    numbers = pd.to_numeric(rows[name], errors="coerce").to_numpy(dtype=np.float64)
    bad = (rows[name] != "").to_numpy(dtype=bool) & ~(np.isfinite(numbers) & (numbers > above))
    right = "above 0" if above == 0 else "from 0 on"
    no_row_where(bad, rows, path, name, "{value} is no number " + right)
    return numbers
