"""Instants in logs: numbers with a unit, dates in many forms, and time stamps in a zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cprsim.errors import ParameterError
from cprsim.failures.traces.reading import FIRST_ROW, no_row_where, trace_error
from cprsim.foreign import one_line
from cprsim.records import Bools, Floats

# -------------------------------------------------------------------------------------------- zones


class Local(NamedTuple):
    """Local time stamps as instants."""

    first: pd.Series[pd.Timestamp]  # the earlier instant where there are two
    later: pd.Series[pd.Timestamp] | None  # the other one, NaT where there is one alone
    n_skipped: int  # no such local time: taken as the instant at which it was skipped


def require_zone(name: str) -> str:
    """The name. Raises ParameterError where no zone of the IANA database has it."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message = f"--tz: there is no time zone '{one_line(name)}'; one is Europe/Berlin, or UTC"
        raise ParameterError(message) from None
    return name


def in_zone(stamps: pd.Series[pd.Timestamp], tz: str) -> Local:
    """Time stamps that were read as UTC, taken as local time of a zone.

    Parameters
    ----------
    stamps : (n,), NaT where there is none
    tz : name of the zone

    Raises
    ------
    ParameterError
        where there is no such zone.
    """
    local = stamps.dt.tz_localize(None) if stamps.dt.tz is not None else stamps
    summer = np.ones(len(local), dtype=bool)
    zone = require_zone(tz)
    first = local.dt.tz_localize(zone, ambiguous=summer, nonexistent="shift_forward")
    strict = local.dt.tz_localize(zone, ambiguous="NaT", nonexistent="shift_forward")
    twice = strict.isna() & local.notna()
    later = None
    if twice.any():
        second = local.dt.tz_localize(zone, ambiguous=~summer, nonexistent="shift_forward")
        later = second.where(twice).dt.tz_convert("UTC")
    n_skipped = int(((first.dt.tz_localize(None) != local) & local.notna()).sum())
    return Local(first.dt.tz_convert("UTC"), later, n_skipped)


# ------------------------------------------------------------------------------------------ numbers

PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
EARLIEST_S, LATEST_S = 788_918_400.0, 2_208_988_800.0  # 1995 and 2040: between are the logs


def epoch_unit(numbers: Floats) -> str | None:
    """The unit in which all numbers (n,) lie between 1995 and 2040; None if there is none."""
    if len(numbers) == 0:
        return None
    low, high = float(numbers.min()), float(numbers.max())
    fitting = (
        unit for unit, per_s in PER_SECOND.items() if EARLIEST_S * per_s <= low
        and high <= LATEST_S * per_s
    )  # fmt: skip
    return next(fitting, None)


def require_plausible(numbers: Floats, unit: str, path: Path) -> None:
    """Raise TraceError for numbers (n,) that are plainly times since 1970 in another unit."""
    likely = epoch_unit(numbers)
    if likely is None or likely == unit:
        return
    first, last = (_day(float(n) / PER_SECOND[likely]) for n in (numbers.min(), numbers.max()))
    message = (
        f"the times look like {likely} since 1970 ({first} to {last}), not like {unit}: say "
        f"--time-unit {likely}"
        if likely in ("s", "ms")
        else f"the times look like {likely} since 1970 ({first} to {last}): leave --time-unit out"
    )
    more = f"; if they are {unit} since another instant, subtract the first from all"
    raise trace_error(path, FIRST_ROW, message + more, "time_unit")


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


# ----------------------------------------------------------------------------------- forms of dates

DateForm = str | None  # as strptime has it; None: ISO 8601
DAYS = (
    "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y", "%d-%b-%Y",
    "%d %b %Y", "%b %d %Y", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d/%b/%Y", "%d/%b/%y",
    "%b %d, %Y", "%B %d, %Y", "%d %B %Y", "%d. %B %Y",
)  # fmt: skip
TIMES_OF_DAY = (
    " %H:%M:%S", " %H:%M", "", " %H:%M:%S.%f", " %I:%M:%S %p", " %I:%M %p", "T%H:%M:%S", ", %H:%M",
    " at %I:%M:%S %p", " at %I:%M %p",
)  # fmt: skip
OTHER_FORMS = (  # of C, mail, web servers
    "%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S", "%a, %d %b %Y %H:%M:%S%z",
    "%a, %d %b %Y %H:%M:%S %z", "%d/%b/%Y:%H:%M:%S %z",
)  # fmt: skip
FORMS = (*(day + time for day, time in product(DAYS, TIMES_OF_DAY)), *OTHER_FORMS)
TRIED_FIRST = 20  # cells


def parsed_dates(text: pd.Series[str], form: DateForm) -> pd.Series[pd.Timestamp]:
    """Time stamps in UTC, as written where they name no zone; NaT for what is none."""
    dates = pd.to_datetime(text, format=form or "ISO8601", errors="coerce", utc=True)
    return dates.mask(text.str.lower().isin(NOT_DATES))


def form_of(text: pd.Series[str], path: Path, key: str) -> DateForm:
    """The form in which all cells are dates; ISO 8601 (None) where there is no other.

    Parameters
    ----------
    text : cells that are not empty
    path, key : for messages

    Raises
    ------
    TraceError
        where the cells are dates both as day/month and as month/day.
    """
    if parsed_dates(text, None).notna().all():
        return None
    fitting = [form for form in FORMS if _all_are(text.iloc[:TRIED_FIRST], form)]
    fitting = [form for form in fitting if _all_are(text, form)]
    fitting = [
        form for form in fitting if form.replace("%B", "%b") not in fitting or "%B" not in form
    ]
    if len(fitting) > 1:
        line = int(text.index[0]) + FIRST_ROW
        either = " or ".join(f"--date-format '{form}'" for form in fitting[:2])
        message = f"'{one_line(text.iloc[0])}' may be day/month or month/day: say {either}"
        raise trace_error(path, line, message, key)
    return fitting[0] if fitting else None


def _all_are(text: pd.Series[str], form: str) -> bool:
    return bool(parsed_dates(text, form).notna().all())


# ------------------------------------------------------------------------------------------ columns

HOURS = {"ms": 1 / 3.6e6, "s": 1 / 3600, "min": 1 / 60, "h": 1.0, "d": 24.0}
FINER = {"us": 1 / 3.6e9, "ns": 1 / 3.6e12}  # in which nobody writes but since 1970
ZONE = r"^[^:]*:.*(?:[zZ]|[+-]\d\d:?(?:\d\d)?)$"  # after a time of day
IN_UTC = (" UTC", " GMT", " Z")
LETTERED = r"\d [A-Z]{3,5}$"  # CET, PDT: of which there are several
MICROSECONDS_PER_HOUR = 3.6e9
NEVER_H = 70_380_768.0  # the year 9999: what many systems write where there is no end
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
WITH_COMMAS = r"[+-]?[1-9]\d{0,2}(?:,\d{3})+"  # before thousands, it may be
WITH_POINTS = r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+"
FEW_POINTS = 3  # cells like 1.250: fewer may well be decimals
NARROW_BLANK = "\u202f"
COMPACT = {
    "%Y%m%d": 1,
    "%Y%m%d%H%M": 10**4,
    "%Y%m%d%H%M%S": 10**6,
}  # dates as one number; how often it counts each day
TIME_OF_DAY = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?"
YEAR, MINUTE = r"\d{4}", r"\d:\d\d"
DAYS_AND_TIME = r"^(\d+)-(\d\d?:\d\d)(:\d\d)?$"  # as Slurm writes 1-02:03:04
UNIT_BY_LETTER = r"(?<=\d) ?([dHSw])\b"  # which pandas will take no more
LETTERS = {"d": " days", "H": " h", "S": " s", "w": " W"}
COMMA_WITHIN = r"(?<=\d),(?=\d)"
NO_LENGTH = r".-|^-?P|\d,\d{3}(?:\D|$)"  # pandas would read 1,500 s, and P1M as a minute
ISO_LENGTH = (
    r"^P(?:(\d+)W)?(?:(\d+)D)?"
    r"(?:T(?:(\d+(?:[.,]\d+)?)H)?(?:(\d+(?:[.,]\d+)?)M)?(?:(\d+(?:[.,]\d+)?)S)?)?$"
)
ISO_HOURS = (168.0, 24.0, 1.0, 1 / 60, 1 / 3600)
NOT_DATES = ("now", "today")  # which pandas would read as this instant


class Style(NamedTuple):
    """What the user says of how times are written."""

    date_form: DateForm = None  # as strptime has it; None: found
    tz: str | None = None  # of time stamps that name no zone; None: UTC


class Times(NamedTuple):
    """A column of instants in hours (of 1970, or of the file's own zero), NaN where empty."""

    hours: Floats
    dated: bool  # time stamps; otherwise plain numbers
    zoned: bool = False
    unit: str | None = None  # of numbers
    guessed: bool = False  # nobody said the unit: the numbers look like it, since 1970
    since_1970: bool = False  # numbers that count from there
    comma: bool = False  # numbers with a decimal comma
    form: DateForm = None  # of time stamps that are not ISO 8601
    later_h: Floats | None = None  # the second instant of an hour that occurs twice; else NaN
    n_skipped: int = 0  # local times that summer time skips

    @property
    def n_twice(self) -> int:
        """Local times that stand for two instants."""
        return 0 if self.later_h is None else int(np.isfinite(self.later_h).sum())

    def like(self) -> Times:
        """The same kind of column, without its instants."""
        return self._replace(hours=np.zeros(0), later_h=None, n_skipped=0)


def read_times(
    column: pd.Series[str],
    time_unit: str | None,
    path: Path,
    like: Times | None = None,
    style: Style = Style(),  # noqa: B008 - a constant
) -> Times:
    """Hours of a text column: all of it numbers, or all of it time stamps of one kind.

    Parameters
    ----------
    column : the cells, with the index that `reading.read_csv` gave them
    time_unit : ms, s, min, h or d, for numbers; None: numbers have to look like a time since 1970
    path : for messages
    like : a column that decides what this one has to be; default: what most cells are
    style : date format and zone

    Raises
    ------
    TraceError
        at the first cell that is something else, for numbers that look like another unit, and for
        dates that may be day/month or month/day.
    """
    text = column.fillna("").str.strip()
    empty = (text == "").to_numpy(dtype=bool)
    first = text.iloc[int(np.argmin(empty))] if len(text) else ""
    if NARROW_BLANK in first:  # as macOS writes before AM and PM
        text = text.str.replace(NARROW_BLANK, " ", regex=False)
    if first.endswith(IN_UTC):
        text = text.str.replace(rf"(?:{'|'.join(IN_UTC)})$", "Z", regex=True)
    if like.dated if like is not None else style.date_form is not None:
        return _stamps(text, empty, path, like, style)
    comma = _has_decimal_comma(text, path) if like is None else like.comma
    if like is None and not comma:
        _require_no_points(text, path)
    plain = text.str.replace(",", ".", regex=False) if comma else text
    numbers = _numbers(plain)
    numeric = np.isfinite(numbers)
    if like is None and (~numeric & ~empty).sum() > numeric.sum():
        return _stamps(text, empty, path, like, style)
    no_row_where(~numeric & ~empty, text, path, str(column.name), "{value} is no finite number")
    if like is None:
        _require_no_dates(numbers[numeric], path)
    unit = (like.unit if like is not None else None) or _unit(numbers[numeric], time_unit, path)
    return Times(
        np.asarray(numbers * {**HOURS, **FINER}[unit], dtype=np.float64),
        dated=False,
        unit=unit,
        guessed=time_unit is None,
        since_1970=like.since_1970 if like else epoch_unit(numbers[numeric]) == unit,
        comma=comma,
    )


def _numbers(text: pd.Series[str]) -> Floats:
    """Cells as numbers, NaN for what is none; at once where all are plain ones."""
    try:
        cast = pc.cast(pa.array(text, type=pa.large_string()), pa.float64())
    except pa.ArrowInvalid:
        return pd.to_numeric(text, errors="coerce").to_numpy(dtype=float)
    return np.asarray(cast.to_numpy(zero_copy_only=False), dtype=np.float64)


def _has_decimal_comma(text: pd.Series[str], path: Path) -> bool:
    """Whether the first cell with a comma is a number with a decimal comma.

    Raises TraceError where all such cells may as well have a comma before the thousands.
    """
    with_comma = text[text.str.contains(",", regex=False)]
    if not len(with_comma) or DECIMAL_COMMA.fullmatch(str(with_comma.iloc[0])) is None:
        return False
    either = with_comma.str.fullmatch(WITH_COMMAS).to_numpy(dtype=bool)
    no_row_where(
        either & either.all(), with_comma, path, str(text.name),
        "{value} may have a decimal comma or one before the thousands: write it without",
    )  # fmt: skip
    return True


def _require_no_points(text: pd.Series[str], path: Path) -> None:
    """Raise TraceError where points stand before thousands: 950 and 1.250, 2.475, 12.000."""
    with_point = text[text.str.contains(".", regex=False)]
    if FEW_POINTS <= len(with_point) < (text != "").sum():
        points = with_point.str.fullmatch(WITH_POINTS).to_numpy(dtype=bool)
        no_row_where(
            points & points.all(), with_point, path, str(text.name),
            "{value} seems to have a point before the thousands: write it without",
        )  # fmt: skip


def _require_no_dates(numbers: Floats, path: Path) -> None:
    """Raise TraceError for numbers (n,) that are plainly dates without signs: 20240501."""
    for form, per_day in COMPACT.items():
        day = numbers // per_day
        month = day // 100 % 100
        of_year = (month >= 1) & (month <= 12) & (day % 100 >= 1) & (day % 100 <= 31)
        if len(day) and (of_year & (day >= 1995_01_01) & (day < 2040_01_01)).all():
            message = f"the times look like dates ({numbers[0]:.0f}): say --date-format '{form}'"
            raise trace_error(path, FIRST_ROW, message, "date_format")


def _unit(numbers: Floats, time_unit: str | None, path: Path) -> str:
    if time_unit in HOURS:
        require_plausible(numbers, str(time_unit), path)
        return str(time_unit)
    since_1970 = epoch_unit(numbers)
    if time_unit is None and since_1970 is not None:
        return since_1970
    known = ", ".join(HOURS)
    message = f"the times are numbers: say in which unit ({known})"
    message += "" if time_unit is None else f", not {time_unit!r}"
    raise trace_error(path, FIRST_ROW, message, "time_unit")


def _stamps(
    text: pd.Series[str], empty: Bools, path: Path, like: Times | None, style: Style
) -> Times:
    """Time stamps as hours since 1970; as `style.tz` where none has a zone, else as UTC."""
    key = str(text.name)
    form = style.date_form or (form_of(text[~empty], path, key) if like is None else like.form)
    stamps = parsed_dates(text, form)
    hours = hours_since_1970(stamps)
    no_row_where(
        np.isnan(hours) & text.str.contains(LETTERED).to_numpy(dtype=bool), text, path, key,
        "{value} names its zone by letters: write an offset such as +01:00, or none and say --tz",
    )  # fmt: skip
    no_row_where(
        np.isnan(hours) & text.str.fullmatch(TIME_OF_DAY).to_numpy(dtype=bool), text, path, key,
        "{value} is a time of day: join it with its date in one column, 2024-05-01 {value}",
    )  # fmt: skip
    no_row_where(
        np.isnan(hours) & _hold_two(text, YEAR) & _hold_two(text, MINUTE), text, path, key,
        "{value} holds two times: make a column start and a column end of it",
    )  # fmt: skip
    right = f"in the form {form}" if form else "such as 2024-05-01T13:30:00Z"
    right += "" if style.date_form or like else ", nor a date known here: say --date-format"
    what = "no time stamp" if form else "no ISO 8601 time stamp,"
    no_row_where(np.isnan(hours) & ~empty, text, path, key, f"{{value}} is {what} {right}")
    zones = have_zones(text)
    zoned = bool(zones[~empty][:1].any()) if like is None else like.zoned
    odd = (zones != zoned) & ~empty
    no_row_where(odd, text, path, key, "{value}: either all time stamps have a zone or none")
    times = Times(hours, dated=True, zoned=zoned, form=form)
    if zoned or style.tz is None:
        return times
    local = in_zone(stamps, style.tz)
    later_h = None if local.later is None else hours_since_1970(local.later)
    return times._replace(
        hours=hours_since_1970(local.first), later_h=later_h, n_skipped=local.n_skipped
    )


def _hold_two(text: pd.Series[str], pattern: str) -> Bools:
    """Which cells match a pattern twice or more, (n,)."""
    return np.asarray((text.str.count(pattern) >= 2).to_numpy(dtype=bool))


def have_zones(text: pd.Series[str]) -> Bools:
    """Which time stamps name their zone, (n,)."""
    found = pc.match_substring_regex(pa.array(text, type=pa.large_string()), ZONE)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)


def hours_since_1970(stamps: pd.Series[pd.Timestamp]) -> Floats:
    """Time stamps, in UTC or without a zone, as hours; NaN where there is none."""
    instants = stamps.dt.tz_localize(None) if stamps.dt.tz is not None else stamps
    microseconds = instants.to_numpy(dtype="datetime64[us]")
    hours = microseconds.astype(np.int64) / MICROSECONDS_PER_HOUR
    return np.asarray(np.where(np.isnat(microseconds), np.nan, hours), dtype=np.float64)


def written(hours: float) -> str:
    """Hours since 1970 as a time stamp, to the second."""
    return str(np.datetime64(round(hours * 3600), "s"))


# ------------------------------------------------------------------------------------------ lengths


def read_lengths(column: pd.Series[str], unit: str | None, path: Path) -> Floats:
    """Lengths of time [h] of a text column, NaN where empty: ``35 min``, ``1:20:00``, numbers.

    Parameters
    ----------
    column : the cells, with the index that `reading.read_csv` gave them
    unit : ms, s, min, h or d, for numbers

    Raises
    ------
    TraceError
        at the first cell that is no length, or a number without a unit.
    """
    text = column.fillna("").str.strip()
    comma = _has_decimal_comma(text, path)
    plain = text.str.replace(",", ".", regex=False) if comma else text
    numbers = _numbers(plain)
    number = np.isfinite(numbers)
    if unit is None:
        no_row_where(
            number, text, path, str(column.name),
            "{value}: in which unit? Say --time-unit, or name the column so: "
            f"{column.name}_min, _h, _s",
        )  # fmt: skip
    plain = plain.str.replace(DAYS_AND_TIME, _days_and_time, regex=True)
    plain = plain.str.replace(UNIT_BY_LETTER, lambda found: LETTERS[found[1]], regex=True)
    wrong = number | plain.str.contains(NO_LENGTH).to_numpy(dtype=bool)
    plain = plain.str.replace(COMMA_WITHIN, ".", regex=True)
    spans = pd.to_timedelta(plain.mask(wrong | (text == ""), None), errors="coerce")
    hours = (spans / pd.Timedelta(1, "h")).to_numpy(dtype=float)
    hours = np.where(number, numbers * HOURS[unit or "h"], hours)
    if text.str.startswith("P").any():
        hours = np.fmax(hours, _iso_hours(text))
    wrong = np.isnan(hours) & (text != "").to_numpy(dtype=bool)
    what = "{value} is no length of time such as 35 min or 0:35:00"
    no_row_where(wrong, text, path, str(column.name), what)
    return np.asarray(hours, dtype=np.float64)


def _iso_hours(text: pd.Series[str]) -> Floats:
    """Lengths in the form of ISO 8601 [h], (n,): PT1.5H; NaN for others, years and months."""
    parts = text.str.extract(ISO_LENGTH)
    numbers = [parts[each].str.replace(",", ".", regex=False).astype(float) for each in parts]
    hours = np.array(numbers) * np.array(ISO_HOURS)[:, None]
    return np.asarray(np.where(np.isnan(hours).all(axis=0), np.nan, np.nansum(hours, axis=0)))


def _days_and_time(found: re.Match[str]) -> str:
    return f"{found[1]} days {found[2]}{found[3] or ':00'}"


# -------------------------------------------------------------------------------------- one instant


def date_h(text: str, path: Path, tz: str | None) -> float:
    """Hours since 1970; in `tz`, else UTC, where the text names no zone.

    Raises
    ------
    TraceError
        for what is no ISO 8601 date or time stamp.
    """
    stamp = pd.Series(pd.to_datetime([text], format="ISO8601", errors="coerce", utc=True))
    if tz is not None and re.search(ZONE, text) is None:
        stamp = in_zone(stamp, tz).first
    hours = float(hours_since_1970(stamp)[0])
    if np.isnan(hours):
        message = f"'{one_line(text)}' is no ISO 8601 time stamp, such as 2024-05-01T13:30:00Z"
        raise trace_error(path, None, message, "period")
    return hours
