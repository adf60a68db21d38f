"""What a reproduced result says: comparisons with their verdicts, tables, a chart, notes.

This is all that is kept of a result besides its figure: written as JSON, read back by the
documents, the notebooks and the report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import floor, log10, nan
from typing import Any

from cprsim.codec import number_from, plain_number
from cprsim.plots.chart import Chart
from cprsim.reproduce.paper import Claim
from cprsim.reproduce.verdicts import (
    Basis,
    Finding,
    Ours,
    Verdict,
    agreement,
    judge,
    judge_cases,
)
from cprsim.results.words import significant, with_interval

ROUNDING = 1e-6  # of a value: an interval that is narrower is none
SMALL = 0.5  # values below it are shown with as many decimals as they deserve


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison: a quantity, the paper's word on it and its mark, ours, and the verdict."""

    quantity: str
    paper: str  # empty where the paper gives nothing
    mark: str  # published, secondary, derived, recalled; empty likewise
    ours: str  # as shown, with its interval
    unit: str
    value: float  # NaN where ours is no number
    low: float
    high: float
    verdict: Verdict
    free: tuple[str, ...] = ()  # inputs that we had to assume


@dataclass(frozen=True, slots=True)
class Listing:
    """A table beside the comparisons."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """One result: its question, its comparisons, and what they mean."""

    title: str
    question: str
    rows: tuple[Row, ...]
    listings: tuple[Listing, ...] = ()
    notes: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists, texts and numbers; as `plain_number` says."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    @classmethod
    def from_json(cls, read: dict[str, Any]) -> Summary:
        """The summary that `as_json` wrote."""
        return cls(
            read["title"],
            read["question"],
            tuple(map(_row, read["rows"])),
            tuple(map(_listing, read["listings"])),
            tuple(read["notes"]),
            tuple(map(Chart.from_json, read["charts"])),
        )


def compared(
    quantity: str, claim: Claim, ours: Ours, basis: Basis, shown: str | None = None
) -> Row:
    """A number of ours beside a number of the paper, judged."""
    verdict = judge(claim, agreement(claim, ours), basis)
    return _against(quantity, claim, ours, verdict, basis, shown)


def tested(quantity: str, claim: Claim, met: bool | None, shown: str, basis: Basis) -> Row:
    """A statement of the paper, judged by a test whose outcome `shown` tells."""
    verdict = judge(claim, met, basis)
    return _against(quantity, claim, Ours(nan), verdict, basis, shown)


def compared_over_cases(quantity: str, claim: Claim, cases: Sequence[Ours], basis: Basis) -> Row:
    """Several cases of ours, one per choice of the free inputs, beside a number of the paper."""
    verdict = judge_cases(claim, [agreement(claim, one) for one in cases], basis)
    least, most = min(one.value for one in cases), max(one.value for one in cases)
    ends = " to ".join(as_shown(Ours(end), "") for end in (least, most))
    span = f"{ends} {claim.unit}".rstrip()
    return _against(quantity, claim, Ours(nan, least, most), verdict, basis, span)


def alone(quantity: str, ours: Ours, unit: str, shown: str | None = None) -> Row:
    """A number of ours that no paper gives."""
    verdict = Verdict(Finding.NOTHING)
    text = shown if shown is not None else as_shown(ours, unit)
    return Row(quantity, "", "", text, unit, ours.value, ours.low, ours.high, verdict)


def _against(
    quantity: str, claim: Claim, ours: Ours, verdict: Verdict, basis: Basis, shown: str | None
) -> Row:
    text = shown if shown is not None else as_shown(ours, claim.unit)
    return Row(
        quantity, claim.text, str(claim.mark), text, claim.unit,
        ours.value, ours.low, ours.high, verdict, basis.free,
    )  # fmt: skip


def as_shown(ours: Ours, unit: str) -> str:
    """``8.36 ± 0.05 %``; the ends where the interval is not even."""
    value, (low, high) = ours.value, ours.ends
    if 0 < abs(value) < SMALL:
        return f"{_small(value, low, high)} {unit}".rstrip()
    if high - low <= ROUNDING * abs(value):
        return f"{significant(value)} {unit}".rstrip()
    if _is_even(value, low, high):
        return f"{with_interval(value, (high - low) / 2)} {unit}".rstrip()
    return f"{significant(value)} ({significant(low)} to {significant(high)}) {unit}".rstrip()


def _is_even(value: float, low: float, high: float) -> bool:
    return abs((high - value) - (value - low)) < 0.02 * (high - low)


def _small(value: float, low: float, high: float) -> str:
    """Two significant digits of the interval, at most three of the value: 0.0846 ± 0.0013."""
    half = (high - low) / 2
    digits = 2 - floor(log10(abs(value)))
    if half <= ROUNDING * abs(value):
        return f"{value:.{digits}f}"
    digits = max(min(digits, 1 - floor(log10(half))), 1)
    if _is_even(value, low, high):
        shown = f"{half:.{digits}f}"
        return f"{value:.{digits}f} ± {shown if shown.strip('0.') else f'{half:.1g}'}"
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return plain_number(value)
    return str(value) if isinstance(value, Finding) else value


def _row(read: dict[str, Any]) -> Row:
    numbers = {key: number_from(read[key]) for key in ("value", "low", "high")}
    verdict = Verdict(Finding(read["verdict"]["finding"]), read["verdict"]["limit"])
    return Row(**{**read, **numbers, "verdict": verdict, "free": tuple(read["free"])})


def _listing(read: dict[str, Any]) -> Listing:
    rows = tuple(tuple(row) for row in read["rows"])
    return Listing(read["title"], tuple(read["headings"]), rows)
