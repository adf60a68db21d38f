"""What readers make: a frame with a row per outage, and of that the outages of a period."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError
from cprsim.failures.limits import MOST_NODES
from cprsim.failures.outages import (
    FEW_FAILURES,
    Counted,
    Note,
    Outages,
    brought_together,
    by_node,
    coalesced,
    most_by_chance,
    n_repeats,
    n_rows,
    notes_of,
    outages_of,
    spread,
    with_lives,
)
from cprsim.job.records import Floats, Ints
from cprsim.logs.files import trace_error
from cprsim.logs.names import spellings
from cprsim.logs.node_file import lives_of, read_nodes
from cprsim.logs.reading import FIRST_ROW, no_row_where
from cprsim.logs.spec import A_LOG, TABLE_OPTIONS, LogSpec
from cprsim.logs.states import BETWEEN_LOOKS
from cprsim.logs.times import DAY_H, Times, date_h, read_times, written

LONGEST_WINDOW_H = 2e6  # over two hundred years: no cluster lasts that long
MINUTE_H = 1 / 60
STAMPS = Times(np.zeros(0))  # without a zone
MOST_UNSEEN = 0.1  # share of the time
APART_H = 1e-5  # of failures on one date, of which `spread` spreads all
MOSTLY, ENOUGH_GAPS, GAPS_ALIKE = 0.5, 100, 0.1
UNNAMED = "those that the file names; nodes that never failed are missing, see --nodes"
TOMORROW_H = 24.0  # clocks and zones may differ by that much


@dataclass(frozen=True, slots=True)
class Log:
    """Outages as a file says them."""

    # node and cause (texts, or categories of them), start and end [h of the file's clock], NaN for
    # no end; perhaps lasted [h], exactly; open (it was under way when the file ended), planned (no
    # failure), placed (not where one of several nodes failed: node is any of them); its index is
    # the line less `FIRST_ROW`
    rows: pd.DataFrame
    counted: Counted
    points: bool  # no end: the outage is an instant; else it lasts to the node's next failure
    times: Times = STAMPS  # how instants are written
    watched: tuple[float | None, float | None] = (None, None)  # begin and end [h], where they are
    nodes: frozenset[str] = frozenset()  # all names, also of nodes that never failed; empty: unsaid
    n_nodes: int | None = None  # where the file says that alone
    dates: pd.DataFrame | None = None  # of nodes: node, installed, entry, exit [h], NaN: unknown
    notes: tuple[Note, ...] = ()
    n_read: int | None = None  # rows of the file, lists of nodes once for each; None: those of it
    step_h: float = 0.0  # between looks at the nodes
    # (n, 2) from when to when nobody looked at a node [h]
    holes_h: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    evidence: Mapping[str, str] = field(default_factory=dict)  # for n_nodes, begins and ends
    resolution_h: float = 0.0  # what begins are only known to, if that is a day or more
    states_unsaid: bool = False  # each row is a span of a node, of which nothing says its state
    records_alone: bool = False  # what was watched is not known: no period is longer than the file


@dataclass(frozen=True, slots=True)
class LogFormat:
    """One way to write a log of failures."""

    looks_like: Callable[[str], str]  # by what its head is recognised; empty where it is not
    read: Callable[[Path, LogSpec], Log]
    options: frozenset[str] = TABLE_OPTIONS  # of `FORMAT_OPTIONS` that it takes
    order: int = 50  # smaller ones are tried first; special formats before general ones
    source: str = A_LOG  # what its file is, and where it comes from


def outages_of_log(path: PathLike[str], log: Log, spec: LogSpec) -> Outages:
    """Return the outages that a user asks for, with counts of those left out, assumed or merged."""
    dates = log.dates
    if spec.nodes_file is not None:
        dates, notes = read_nodes(spec.nodes_file, log.times, spec)
        log = replace(log, notes=(*log.notes, *notes))
    log, same = _of_one_name_each(log, () if dates is None else dates["node"])
    if dates is not None and same:
        of_each = dates.assign(node=dates["node"].replace(same)).groupby("node", as_index=False)
        dates = of_each.agg({"installed": "min", "entry": "min", "exit": "max"})
    if spec.has_dates and dates is None:
        raise ParameterError("the log has no column installed, entry or exit", "--nodes dates")
    of = f"the nodes' own dates ({spec.nodes_file or '--nodes dates'})"
    own = spec.nodes_file is not None or spec.has_dates
    if dates is not None and own:
        log = _watched_by(dates, log, of)
    outages, from_h = _in_period(path, log, spec)
    facts = dict(outages.facts)
    if dates is not None and not own:
        dates = _stays(dates, from_h, outages.window_h, log.step_h)
    if dates is not None:
        silent = spec.nodes_file is None
        lives = lives_of(dates, from_h, outages.n_nodes if silent else 0)
        window_h, outages = outages.window_h, with_lives(outages, *lives)
        if own:
            facts |= dict.fromkeys(("n_nodes", "ages"), ("read", of))
        if outages.window_h < window_h:
            facts["ends"] = "read", "the last of the nodes leaves"
        _require_failures(path, outages)
    outages = _without_holes(path, outages, log.holes_h - from_h)
    outages = _merged(path, outages, log, spec)
    if spec.cause is not None or spec.not_cause is not None:
        outages = outages.choosing(spec.cause or "", spec.not_cause)
    if spec.node is not None:
        outages = outages.of_node(same.get(spec.node, spec.node))
        facts["n_nodes"] = "given", "--node"
    if within_h := spec.hours("together"):
        outages = brought_together(outages, within_h)
    elif log.resolution_h:
        outages = spread(outages, log.resolution_h)
    elif known_to_h := _known_to_h(outages.start_h, log.step_h):
        most = most_by_chance(outages.start_h, known_to_h, outages.window_h)
        outages = spread(outages, known_to_h, most)
    return replace(outages, facts=facts)


def _of_one_name_each(log: Log, more: Iterable[str]) -> tuple[Log, dict[str, str]]:
    """The log with one name for each node, and this by each other spelling, also of `more`."""
    same = spellings(log.rows, {*log.nodes, *more}, log.counted)
    if not same:
        return log, same
    rows = log.rows.assign(node=log.rows["node"].astype(object).replace(same))
    names = frozenset(same.get(name, name) for name in log.nodes)
    return replace(log, rows=rows, nodes=names), same


def _watched_by(dates: pd.DataFrame, log: Log, of: str) -> Log:
    """The log, watched from the first entry of its nodes to their last exit, where all have one."""
    watched, evidence = list(log.watched), dict(log.evidence)
    for side, (fact, name, end) in enumerate((("begins", "entry", "min"), ("ends", "exit", "max"))):
        if watched[side] is None and dates[name].notna().all():
            watched[side], evidence[fact] = float(getattr(dates[name], end)()), of
    return replace(log, watched=(watched[0], watched[1]), evidence=evidence)


def _stays(
    dates: pd.DataFrame, from_h: float, window_h: float, step_h: float
) -> pd.DataFrame | None:
    """Entries and exits of nodes that were looked at in a part of the window alone, if any."""
    entry, leaves = dates["entry"], dates["exit"]
    dates = dates.assign(
        entry=entry.where(entry - from_h > BETWEEN_LOOKS * step_h),
        exit=leaves.where(from_h + window_h - leaves > BETWEEN_LOOKS * step_h),
    )
    return dates if dates[["entry", "exit"]].notna().any(axis=None) else None


def _without_holes(path: PathLike[str], outages: Outages, holes_h: Floats) -> Outages:
    """With the hours without samples; raises TraceError for more than a tenth."""
    unseen_h = float(np.diff(np.clip(holes_h, 0.0, outages.window_h)).sum())
    if (share := unseen_h / max(outages.node_hours, unseen_h, 1.0)) > MOST_UNSEEN:
        message = (
            f"the samples have {len(holes_h)} holes, {share:.0%} of the time: nothing is known of "
            "the nodes there; --period FROM..TO names a time in which there are none"
        )
        raise trace_error(path, None, message, "period")
    if not unseen_h:
        return outages
    words = f"hole(s) in the samples, {share:.1%} of the time: the rate leaves them out, gaps and "
    words += "up-times do not; nodes that give no samples while they are down fail more often"
    note = Note("dropped", None, str(Note("dropped", len(holes_h), words)))
    return replace(outages, unseen_h=unseen_h, notes=(*outages.notes, note))


def _in_period(path: PathLike[str], log: Log, spec: LogSpec) -> tuple[Outages, float]:
    """The outages of the period, and its begin [h of the file's clock]."""
    rows = log.rows
    n_read = len(rows) + n_rows(notes_of(log.counted)) if log.n_read is None else log.n_read
    if rows.empty:
        why = "; ".join(["holds no failure of a node", *map(str, notes_of(log.counted))])
        raise trace_error(path, None, why)
    complaint = "the outage of {value} ends before it begins (on the next day? Write its date)"
    no_row_where(rows["end"] < rows["start"], rows["node"], path, "end", complaint)
    (from_h, to_h), facts = _window(path, log, spec)
    if log.states_unsaid or (log.step_h and not spec.down):
        _require_outages(path, rows, to_h - from_h, log)
    if log.times.since_1970:
        _require_past(path, rows, to_h if spec.ends[1] is not None else -np.inf)
    rows = _apart(path, rows, spec) if log.resolution_h else rows
    in_time = np.ones(len(rows), dtype=bool)
    if spec.ends[1] is not None and not (log.records_alone and to_h == log.watched[1]):
        in_time = (rows["start"] < to_h).to_numpy(dtype=bool)
        late = "outage(s) from the end of the period on left out"
        log.counted["dropped", late] += int((~in_time).sum())
    if log.records_alone:
        rows, in_time = rows[in_time], in_time[in_time]
    if rows["end"].isna().any() and not log.points:  # another row may say it
        known_h = rows["end"].where(rows["end"] > rows["start"])
        alike = known_h.groupby([rows[name] for name in ("node", "start", "cause")], observed=True)
        rows = rows.assign(end=rows["end"].fillna(alike.transform("max")))
    node, names = numbered(rows.pop("node"), log.nodes)
    if not in_time.all():
        rows, node = rows[in_time], node[in_time]
    n_nodes = max(len(names), log.n_nodes or 0)
    if spec.n_nodes is not None:
        n_nodes, facts["n_nodes"] = spec.n_nodes, ("given", "--nodes")
        if not 1 <= n_nodes <= MOST_NODES:
            raise trace_error(path, None, f"{n_nodes:,} nodes can't be observed", "nodes")
        if n_nodes < len(names):
            message = f"{n_nodes} nodes given, but the file names {len(names)}"
            raise trace_error(path, None, message, "nodes")
    repair_h = spec.hours("repair")
    is_given = facts["begins"][0] != "inferred", facts["ends"][0] != "inferred"
    cause, cause_names = numbered(rows.pop("cause"))
    hours = [rows.pop(name).to_numpy() - from_h for name in ("end", "start")]
    if "lasted" in rows:
        hours[0] = hours[1] + rows["lasted"].to_numpy()
    marks = {
        mark: rows.pop(name).to_numpy(bool) for name, mark in ROW_MARKS.items() if name in rows
    }
    del rows, in_time
    outages = outages_of(
        node, hours.pop(), hours.pop(), cause,  # each column is in memory once
        unended_h=0.0 if log.points and repair_h is None else repair_h, **marks,
        cause_names=cause_names, n_nodes=n_nodes, node_names=names, n_read=n_read, facts=facts,
        window_h=to_h - from_h, origin=_origin(from_h, log, spec),
        window_given=(False, False) if log.records_alone else is_given,
        notes=(*log.notes, *notes_of(log.counted)),
    )  # fmt: skip
    _require_failures(path, outages)
    return outages, from_h


def _apart(path: PathLike[str], rows: pd.DataFrame, spec: LogSpec) -> pd.DataFrame:
    """Rows whose begins are dates or months: failures of a node on one come after each other.

    Raises TraceError where many may be repeats of one, unless ``--coalesce`` decides.
    """
    alike = rows.duplicated(["node", "start", "end"]) & ~(rows["end"] > rows["start"])
    within_h, n_alike = spec.hours("coalesce"), int(alike.sum())
    if within_h is None and n_alike > FEW_FAILURES:
        message = (
            f"{n_alike} of {len(rows)} rows repeat a node and its date: are they repeats of one "
            "failure? --coalesce '1 min' makes one of them, --coalesce '0 s' keeps them"
        )
        raise trace_error(path, None, message, "coalesce")
    if within_h != 0:
        return rows
    rows = rows.sort_values(["node", "start", "end"], kind="stable")
    start_h = rows["start"] + APART_H * rows.groupby(["node", "start"], observed=True).cumcount()
    end_h = rows["end"].mask(rows["end"] < start_h, start_h)
    return rows.assign(start=start_h, end=end_h)


# columns of `Log.rows` that a reader may add, and what `outages_of` calls them
ROW_MARKS = {"open": "seen_open", "planned": "planned", "placed": "placed"}


def _require_past(path: PathLike[str], rows: pd.DataFrame, to_h: float) -> None:
    """Raise TraceError for an instant after today, unless the observation ends after it."""
    latest_h = max(datetime.now(UTC).timestamp() / 3600 + TOMORROW_H, to_h)
    for name in ("start", "end"):
        late = (rows[name] > latest_h).to_numpy(dtype=bool)
        if late.any():
            at = written(float(rows[name].to_numpy()[late][0]))
            complaint = f"of {{value}} lies in the future ({at}): leave unknown ends empty"
            no_row_where(late, rows["node"], path, name, complaint)


def _require_outages(path: PathLike[str], rows: pd.DataFrame, window_h: float, log: Log) -> None:
    """Raise TraceError where the rows of nodes fill most of their time: these are no outages."""
    rows = rows.assign(end=rows["end"].fillna(log.watched[1]) if log.step_h else rows["end"])
    n_of_each = rows["node"].value_counts()
    n_several = int((n_of_each > 1).sum())  # nodes that failed once may be gone
    if len(rows) <= FEW_FAILURES and (log.nodes or not n_several):
        return
    if (rows["end"] - rows["start"]).sum() <= MOSTLY * window_h * (n_several or len(n_of_each)):
        return
    rows = rows[["node", "start", "end"]].dropna().sort_values(["node", "start", "end"])
    rows = rows[rows["node"].duplicated(keep=False) | (n_several == 0)]
    up_to_h = rows["end"].groupby(rows["node"], observed=True).cummax()
    before_h = up_to_h.groupby(rows["node"], observed=True).shift()
    new_h = rows["end"] - np.fmax(rows["start"], before_h)  # overlaps count once
    filled_h = float(new_h.clip(lower=0).sum()) / max(rows["node"].nunique(), 1)
    if filled_h > MOSTLY * max(window_h, float(up_to_h.max() - rows["start"].min())):
        message = (
            f"the rows fill {filled_h:,.4g} h of each node: they are stays in any state, or "
            "up-times: --column state=NAME --down WORDS reads a column that tells the state; else "
            "keep the rows of outages. If all are, --period says how long nodes were watched"
        )
        if log.step_h or log.nodes:
            message = f"nodes are down for {filled_h:,.4g} h each, most of the time: --down WORDS "
            message += "names the words or values that say so, if the others say it, or if none "
            message += "that say that a node is up again are missing"
        raise trace_error(path, None, message, "end")


def _require_failures(path: PathLike[str], outages: Outages) -> None:
    """Raise TraceError if no outage is left, with the reasons."""
    if not (outages.in_window & outages.chosen).any():
        why = "; ".join(["no outage begins within the period", *outages.dropped])
        raise trace_error(path, None, why, "period")


def _known_to_h(start_h: Floats, step_h: float) -> float:
    """The coarsest grid of which most begins are [h]: a day, an hour, a step of looks; or 0."""
    for grid_h in sorted({DAY_H, 1.0, step_h} - {0.0}, reverse=True):
        offset_h = np.round(start_h, 6) % grid_h
        if np.unique(np.round(offset_h, 5), return_counts=True)[1].max() > MOSTLY * len(start_h):
            return grid_h
    return 0.0


def _merged(path: PathLike[str], outages: Outages, log: Log, spec: LogSpec) -> Outages:
    """With repeats of a node merged, as asked for; in a log of instants those within a minute.

    Raises TraceError where many instants come again within an hour (one failure, or several?), or
    regularly, as failures do not.
    """
    order, within_h = by_node(outages), spec.hours("coalesce")
    gaps_h = np.diff(outages.start_h[order])[np.diff(outages.node[order]) == 0]
    usual_h = float(np.median(gaps_h)) if log.points and len(gaps_h) > ENOUGH_GAPS else 0.0
    regular_h = gaps_h[np.abs(gaps_h - usual_h) <= GAPS_ALIKE * usual_h]
    if len(regular_h) > ENOUGH_GAPS and regular_h.sum() > MOSTLY * outages.node_hours:
        message = f"a node has a row every {usual_h:.3g} h for most of the time, as of looks at it "
        message += "or its signs of life: keep rows of failures, or name the column that tells them"
        raise trace_error(path, None, message, "start")
    merged = coalesced(outages, MINUTE_H if within_h is None else within_h)
    if log.points and within_h is None and (n_again := n_repeats(merged)):
        message = (
            f"{n_again} of {merged.n_outages} failures are within an hour of another of the "
            "same node: are they repeats of one? --coalesce '1 h' makes one of them, "
            "--coalesce '1 min' keeps them"
        )
        raise trace_error(path, None, message, "coalesce")
    if within_h is not None:
        return merged if within_h > 0 else outages
    if not (n_near := outages.n_outages - merged.n_outages):
        return outages
    words = f"of {outages.n_outages} begin within a minute of another on the same node: "
    note = Note("assumed", n_near, f"{words}--coalesce '1 min' merges them")
    if log.points:
        note = Note("merged", n_near, f"{words}merged into one (--coalesce '0 s' keeps them)")
    return replace(merged if log.points else outages, notes=(*outages.notes, note))


def numbered(
    texts: pd.Series[str], more: frozenset[str] = frozenset()
) -> tuple[Ints, tuple[str, ...]]:
    """Each text (n,) as its place in all of them in order, and these; `more` are among them."""
    categories = texts.astype("category").cat.remove_unused_categories()
    names = list(categories.cat.categories)
    if not categories.cat.ordered:
        names = sorted({*names, *more})
    codes = categories.cat.set_categories(names).cat.codes
    return np.asarray(codes, dtype=np.int32), tuple(names)  # logs of millions of rows are long


# -------------------------------------------------------------------------------------- the window


def _window(
    path: PathLike[str], log: Log, spec: LogSpec
) -> tuple[tuple[float, float], dict[str, tuple[str, str]]]:
    """Begin and end of the observation [h of the file's clock], and from where all is known."""
    start_h, end_h = log.rows["start"], log.rows["end"]
    own_ends = float(start_h.min()), float(np.fmax(start_h.max(), end_h.max()))
    facts = {"n_nodes": ("inferred", UNNAMED)}
    facts |= {name: ("read", how) for name, how in log.evidence.items()}
    window = []
    sides = ("begins", "the first failure", "from"), ("ends", "the last instant", "to")
    for side, (name, event, sign) in enumerate(sides):
        period_end, of_file = spec.ends[side], log.watched[side]
        at_h = own_ends[side] if of_file is None else of_file
        facts.setdefault(name, ("inferred", f"{event} in the file, see --period"))
        if period_end is not None:
            given_h = _instant_h(period_end, log, spec, path)
            beyond = log.records_alone and (given_h < at_h if side == 0 else given_h > at_h)
            how = f"what the file holds {sign} {period_end}, see --period"
            facts[name] = ("inferred", how) if beyond else ("given", "--period")
            at_h = at_h if beyond else given_h
        window.append(at_h)
    from_h, to_h = window
    if from_h > to_h or (from_h == to_h and spec.period is not None):
        message = "the period ends before it begins, or before the log"
        raise trace_error(path, None, message, "period")
    if to_h - from_h > LONGEST_WINDOW_H:
        message = f"the log spans {to_h - from_h:.3g} h: are its times in another unit?"
        raise trace_error(path, None, f"{message} Or is one of them far off?", "time_unit")
    return (from_h, to_h), facts


def _instant_h(text: str, log: Log, spec: LogSpec, path: PathLike[str]) -> float:
    """One end of the period: a number or a date as the file has them, or an ISO 8601 date."""
    times = log.times
    is_date = re.match(r"\d{4}-\d\d-\d\d", text) is not None
    if times.dated or (times.since_1970 and is_date):
        return date_h(text, path, spec.tz, spec.date_format)
    if is_date:
        message = f"{text} is no number: write one as the file has them, in {times.unit}"
        raise trace_error(path, None, message, "period")
    cell = pd.Series([text], name="period", index=[-FIRST_ROW])
    return float(read_times(cell, spec.time_unit, path, times).hours[0])


def _origin(from_h: float, log: Log, spec: LogSpec) -> str:
    """The begin of the observation as the log writes instants, with the zone."""
    if not log.times.since_1970:
        return f"{from_h:g} h"
    return written(from_h, spec.tz or log.times.zone or (None if log.times.dated else "UTC"))
