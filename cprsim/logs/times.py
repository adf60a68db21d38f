"""Instants in logs: ISO 8601 time stamps, in a zone or not, and numbers with a unit."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from os import PathLike
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cprsim.errors import TraceError, one_line
from cprsim.job.records import Bools, Floats
from cprsim.logs.files import trace_error
from cprsim.logs.reading import FIRST_ROW, POINTS_ARE_OPEN, no_row_where

HOURS = {
    "ns": 1 / 3.6e12, "us": 1 / 3.6e9, "ms": 1 / 3.6e6, "s": 1 / 3600, "min": 1 / 60, "h": 1.0,
    "d": 24.0,
}  # fmt: skip
EPOCH = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # units since 1970, per second
DAYS_1995, DAYS_2040 = 34_700, 51_136  # as spreadsheets count them, since 1899
EARLIEST_S, LATEST_S = 788_918_400.0, 2_208_988_800.0  # 1995 and 2040: between are the logs
FEW_DATES = 3
DAY_H, MONTH_H = 24.0, 672.0  # the shortest ones
EARLIEST_H = 8760.0  # the end of 1970
DAY = r"\d{4}-?\d\d(?:-?\d\d)?(?:[T ]00:00(?::00(?:[.,]0+)?)?(?:[zZ]|[+-]\d\d:?\d\d)?)?"
ZONE = r"^[^:]*:.*(?:[zZ]|[+-]\d\d:?(?:\d\d)?)$"  # after a time of day
PROBE = pd.Timestamp(2034, 11, 28, 23, 47, 58, tz="UTC")  # which a form of dates has to read
HALF_DAY, TELLING = 12, 9  # hours of a clock with AM and PM; days that do not show one
NO_STAMPS = ("now", "today")  # which pandas would read as this instant
MICROSECONDS_PER_HOUR = 3.6e9


class Times(NamedTuple):
    """A column of instants in hours, NaN where empty, and how the column writes them."""

    hours: Floats
    since_1970: bool = True  # else since the file's own zero
    unit: str | None = None  # of numbers; None: time stamps
    zone: tzinfo | None = None  # of the first time stamp; None: they have none
    n_moved: int = 0  # local times that summer time skips or repeats

    @property
    def dated(self) -> bool:
        """Whether they are time stamps."""
        return self.unit is None

    @property
    def zoned(self) -> bool:
        """Whether they are time stamps with a zone."""
        return self.zone is not None


def read_times(
    column: pd.Series[str],
    time_unit: str | None,
    path: PathLike[str],
    like: Times | None = None,
    form: str | None = None,
    tz: str | None = None,
) -> Times:
    """Hours of a text column: all of it numbers, or all of it time stamps of one kind."""
    text = column.fillna("").str.strip()
    empty = (text == "").to_numpy(dtype=bool)
    if like.dated if like is not None else form is not None:
        return _stamps(text, empty, path, like, form, tz)
    _require_plain(text, path)
    numbers = _numbers(text)
    numeric = np.isfinite(numbers)
    if like is None and (~numeric & ~empty).sum() > numeric.sum():
        return _stamps(text, empty, path, None, form, tz)
    no_row_where(~numeric & ~empty, text, path, str(column.name), "{value} is no finite number")
    no_row_where(_rounded(text), text, path, str(column.name), ROUNDED)
    if like is None and numeric.any() and text[numeric].str.fullmatch(COMPACT).all():
        message = f"{text[numeric].iloc[0]!r} is a date: say --date-format %Y%m%d, "
        raise trace_error(path, FIRST_ROW, f"{message}%Y%m%d%H%M or %Y%m%d%H%M%S", "date_format")
    if like is None or (np.diff(numbers[numeric]) < 0).any():
        require_decimals(text, path)
    looks_like = epoch_unit(numbers[numeric & (numbers > 0)])
    if like is None:
        if time_unit is not None and (numbers == 0).any() and looks_like != time_unit:
            looks_like = None  # of its own zero
        for unit, n in EPOCH.items():
            if time_unit not in (None, unit):
                continue
            odd = numeric & ~((numbers >= EARLIEST_S * n) & (numbers <= LATEST_S * n))
            complaint = f"{{value}} is no instant: most are {unit} since 1970"
            is_rare = 2 * odd.sum() < numeric.sum()
            no_row_where(odd & is_rare, text, path, str(text.name), complaint)
        unit = _unit(numbers[numeric], looks_like, time_unit, path)
        since_1970 = looks_like == unit
    else:
        unit, since_1970 = str(like.unit), like.since_1970
        if since_1970 and looks_like not in (None, unit):
            message = f"looks like {looks_like} since 1970, the starts like {unit}: write alike"
            raise trace_error(path, None, message, str(column.name))
    return Times(np.asarray(numbers * HOURS[unit], dtype=np.float64), since_1970, unit)


# ------------------------------------------------------------------------------------------ numbers


def _numbers(text: pd.Series[str]) -> Floats:
    """Return cells as numbers, NaN for others; without a loop if all are plain numbers."""
    try:
        cast = pc.cast(pa.array(text, type=pa.large_string()), pa.float64())
    except pa.ArrowInvalid:
        return pd.to_numeric(text, errors="coerce").to_numpy(dtype=float)
    return np.asarray(cast.to_numpy(zero_copy_only=False), dtype=np.float64)


ROUNDED = "{value} is rounded, as spreadsheets write long numbers: write all its digits"
GROUPED = r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+"  # 1.050
COMPACT = r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[0-5]\d){0,3}"
PLAIN = r"[+-]?\d{1,3}"
WITH_COMMAS = r"[+-]?(?:\d+,\d+|\d{1,3}(?:[.,'’\s]\d{3})+[.,]\d+|\d{1,3}(?:[,'’\s]\d{3})+)"
MANY = 0.2  # share of dates: of whole hours a 24th is at midnight


def _rounded(text: pd.Series[str]) -> Bools:
    """Whether cells are like 1.70796E+12, with too few digits for the seconds of an instant."""
    return text.str.fullmatch(r"\d(?:[.,]\d{0,8})?[eE]\+?(?:0?9|1\d)").to_numpy(dtype=bool)


def _require_plain(text: pd.Series[str], path: PathLike[str]) -> None:
    """Raise TraceError for numbers with a decimal comma, or signs between thousands."""
    complaint = "{value}: write numbers with a decimal point, and nothing between thousands"
    no_row_where(text.str.fullmatch(WITH_COMMAS), text, path, str(text.name), complaint)


def require_decimals(text: pd.Series[str], path: PathLike[str]) -> None:
    """Raise TraceError where the points of a column may stand between thousands: 950, 1.050.

    They do not if the column is in order with decimal points alone, nor if all cells have one and
    the table is of JSON, or between commas.
    """
    if not text.str.fullmatch(rf"(?:{GROUPED}|{PLAIN})?").all():
        return
    grouped, filled = text.str.fullmatch(GROUPED), text[text != ""]
    ways = filled, filled.str.replace(".", "", regex=False)
    decimal, thousand = ((np.diff(_numbers(way)) >= 0).all() for way in ways)
    is_said = not text.attrs.get(POINTS_ARE_OPEN, False) and (filled.str.count(r"\.") == 1).all()
    if not (is_said or (decimal and not thousand)):
        complaint = "{value}: a decimal point, or one between thousands? Write 1050 or 1.0500"
        no_row_where(grouped, text, path, str(text.name), complaint)


def epoch_unit(numbers: Floats) -> str | None:
    """Return the unit in which all numbers (n,) lie between 1995 and 2040, or None."""
    low, high = numbers.min(initial=np.inf), numbers.max(initial=-np.inf)
    within = (u for u, n in EPOCH.items() if EARLIEST_S * n <= low <= high <= LATEST_S * n)
    return next(within, None)


def _unit(
    numbers: Floats, looks_like: str | None, time_unit: str | None, path: PathLike[str]
) -> str:
    """The unit of numbers (n,); raises TraceError where it is not known, or plainly another."""
    if time_unit is None and looks_like is not None:
        return looks_like
    if time_unit not in HOURS:
        not_this = "" if time_unit is None else f", not {time_unit!r}"
        message = f"the times are numbers: say in which unit ({', '.join(HOURS)}){not_this}"
        raise trace_error(path, FIRST_ROW, message, "time_unit")
    is_of_spreadsheet = (numbers > DAYS_1995).all() and (numbers < DAYS_2040).all()
    if time_unit != "d" and is_of_spreadsheet and len(numbers):
        message = "the times look like days of a spreadsheet: say --time-unit d; if they are "
        message += f"{time_unit}, subtract the first from all"
        raise trace_error(path, FIRST_ROW, message, "time_unit")
    if looks_like not in (None, time_unit):
        ends = (float(end) / EPOCH[looks_like] for end in (numbers.min(), numbers.max()))
        first, last = (datetime.fromtimestamp(end, UTC).date().isoformat() for end in ends)
        message = (
            f"the times look like {looks_like} since 1970 ({first} to {last}), not like "
            f"{time_unit}: say --time-unit {looks_like}; if they are {time_unit} since another "
            "instant, subtract the first from all"
        )
        raise trace_error(path, FIRST_ROW, message, "time_unit")
    return time_unit


# -------------------------------------------------------------------------------------- time stamps


def _stamps(
    text: pd.Series[str],
    empty: Bools,
    path: PathLike[str],
    like: Times | None,
    form: str | None,
    tz: str | None,
) -> Times:
    """Time stamps as hours since 1970; as of `tz` where none has a zone, else as UTC."""
    key = str(text.name)
    if form is not None and (wrong := _wrong_form(form)):
        raise trace_error(path, None, wrong, "date_format")
    stamps = pd.to_datetime(text, format=form or "ISO8601", errors="coerce", utc=True)
    stamps = stamps.mask(text.isin(NO_STAMPS))
    hours = hours_since_1970(stamps)
    right = f"time stamp in the form {form}" if form else (
        "ISO 8601 time stamp, such as 2024-05-01T13:30:00Z: write it so (`cprsim fit` reads other "
        "forms, too: --date-format '%d/%m/%Y %H:%M')"
    )  # fmt: skip
    no_row_where(np.isnan(hours) & ~empty, text, path, key, f"{{value}} is no {right}")
    if like is None:
        complaint = "{value} is before 1971, where clocks begin that are not set"
        no_row_where(hours < EARLIEST_H, text, path, key, complaint)
        hour = stamps.dt.hour
        n_days = stamps.dt.floor("D").nunique()
        if form is None and n_days > TELLING and hour.min() > 0 and hour.max() == HALF_DAY:
            message = "hours are 1 to 12 alone, without AM and PM: write 0 to 23; if they are, "
            raise trace_error(path, None, f"{message}--date-format of `cprsim fit` says so", key)
    zones = text.str.contains(ZONE).to_numpy(dtype=bool)
    zone, zoned = None, bool(2 * zones.sum() >= (~empty).sum() > 0)
    if like is not None:
        zone, zoned = like.zone, like.zoned
    elif zoned:
        zone = pd.to_datetime(text[zones].iloc[0], format=form or "ISO8601").tzinfo
    odd = (zones != zoned) & ~empty
    no_row_where(odd, text, path, key, "{value}: either all time stamps have a zone or none")
    if zoned or tz is None:
        return Times(hours, zone=zone)
    stamps, n_moved = in_zone(stamps, tz)
    return Times(hours_since_1970(stamps), n_moved=n_moved)


def _wrong_form(form: str) -> str:
    """Return why a format of dates can't be read, or loses information; empty if it does not."""
    of = set(re.findall(r"%-?(.)", form))
    if "H" in of and "p" in of:
        return "%H ignores AM and PM: write %I for hours with %p"
    try:
        read = pd.to_datetime(PROBE.strftime(form), format=form, errors="coerce", utc=True)
    except (ValueError, KeyError, re.error) as error:
        reason = "one of its letters stands twice" if isinstance(error, re.error) else error
        return f"{form!r} is no form of dates such as '%d/%m/%Y %H:%M:%S': {reason}"
    if read.hour not in (0, PROBE.hour):
        return "%I does not say whether hours are before noon: write AM and PM (%p), or %H"
    if read.year != PROBE.year:
        return "names no year (%Y), without which instants are of 1900"
    return ""


def resolution_h(column: pd.Series[str], form: str | None, hours: Floats) -> float:
    """How exactly time stamps are known [h]: to a month or a day; 0 for those with a time.

    If all are the first of a month, and more than a few, they stand for it.
    """
    text = column.dropna().str.strip()
    if form is not None:
        of = set(re.findall(r"%-?(.)", form))
        has_time, has_day = bool(of & set("HIScsXfTR")), bool(of & set("djxDUWuw"))
    else:
        has_time = text.str.fullmatch(DAY).mean() < MANY
        has_day = not bool(text.str.fullmatch(r"\d{4}-\d\d").all())
    days = np.floor(hours / DAY_H).astype("datetime64[D]")
    has_day &= len(days) <= FEW_DATES or bool((days > days.astype("datetime64[M]")).any())
    return 0.0 if has_time else DAY_H if has_day else MONTH_H


Stamps = pd.Series  # of time stamps


def in_zone(stamps: Stamps, tz: str) -> tuple[Stamps, int]:
    """Time stamps that were read as UTC, taken as local time of a zone.

    Returns the instants, the earlier one where there are two, that of the skip where summer time
    skips them; and how many these are.
    """
    local = stamps.dt.tz_localize(None)
    is_once = local.dt.tz_localize(tz, ambiguous="NaT", nonexistent="NaT").notna()
    summer = np.ones(len(local), dtype=bool)
    first = local.dt.tz_localize(tz, ambiguous=summer, nonexistent="shift_forward")
    return pd.Series(first.dt.tz_convert("UTC")), int((~is_once & local.notna()).sum())


def hours_since_1970(stamps: Stamps) -> Floats:
    """Time stamps, in UTC or without a zone, as hours; NaN if missing."""
    instants = stamps.dt.tz_localize(None) if stamps.dt.tz is not None else stamps
    microseconds = instants.to_numpy(dtype="datetime64[us]")
    hours = microseconds.astype(np.int64) / MICROSECONDS_PER_HOUR
    return np.asarray(np.where(np.isnat(microseconds), np.nan, hours), dtype=np.float64)


def written(hours: float, tz: str | tzinfo | None = None) -> str:
    """Hours since 1970 as a time stamp, to the second, with the zone where it is known."""
    stamp = str(np.datetime64(round(hours * 3600), "s"))
    if tz is None:
        return stamp
    return pd.Timestamp(stamp, tz="UTC").tz_convert(tz).isoformat()


def date_h(text: str, path: PathLike[str], tz: str | None, form: str | None = None) -> float:
    """Hours since 1970; in `tz`, else UTC, where the text names no zone."""
    cell, none = pd.Series([text], name="period", index=[-FIRST_ROW]), np.zeros(1, dtype=bool)
    for pattern in (None, *([form, form.partition(" ")[0]] if form else [])):
        with suppress(TraceError):
            return float(_stamps(cell, none, path, None, pattern, tz).hours[0])
    message = f"'{one_line(text)}' is no ISO 8601 time stamp, such as 2024-05-01T13:30:00Z"
    message += f", nor of the form {form}" if form else ""
    raise trace_error(path, None, message, "period")


# ------------------------------------------------------------------------------------------ lengths

DAYS_AND_TIME = r"^(\d+)-(\d+:\d\d:\d\d)$"  # as Slurm writes 1-02:03:04
UNIT_BY_LETTER = r"(?<=\d) ?([dHSw])\b"  # which pandas will take no more
LETTERS = {"d": " days", "H": " h", "S": " s", "w": " W"}
# pandas reads 1,500 s as 1500 s, PT1.5H as 5 h, and P1M as a minute
NO_LENGTH = r",\d|^-?P(?:[^T]*[YM]|.*[.]\d+[DHM])"


def read_lengths(column: pd.Series[str], unit: str | None, path: PathLike[str]) -> Floats:
    """Lengths of time [h] of a text column, NaN where empty: ``35 min``, ``1:20:00``, numbers."""
    text = column.fillna("").str.strip()
    key = str(column.name)
    numbers = _numbers(text)
    number = np.isfinite(numbers)
    _require_plain(text, path)
    require_decimals(text, path)
    if unit is None:
        message = "{value}: in which unit? Say --time-unit (beside time stamps), or name the column"
        no_row_where(number, text, path, key, f"{message} so: {key}_min, _h, _s")
    plain = text.str.replace(DAYS_AND_TIME, r"\1 days \2", regex=True)
    lettered = plain.str.replace(UNIT_BY_LETTER, lambda found: LETTERS[found[1]], regex=True)
    plain = plain.where(plain.str.startswith("P"), lettered)
    wrong = number | plain.str.contains(NO_LENGTH).to_numpy(dtype=bool)
    spans = pd.to_timedelta(plain.mask(wrong | (text == ""), None), errors="coerce")
    lasted_h = (spans / pd.Timedelta(1, "h")).to_numpy(dtype=float)
    hours = np.where(number, numbers * HOURS[unit or "h"], lasted_h)
    wrong = np.isnan(hours) & (text != "").to_numpy(dtype=bool)
    complaint = "{value} is no length of time such as 35 min or 0:35:00"
    no_row_where(wrong, text, path, key, complaint)
    return np.asarray(hours, dtype=np.float64)
