"""What a study says: targets judged as rows, tables, charts, notes.

A `Summary` is all that is kept of a study besides its figures: written as JSON by `cprsim.files`,
read back by the documents, the notebooks and the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import nan
from typing import Generic, TypeVar

from cprsim.files import Number
from cprsim.plots.chart import Chart
from cprsim.reproduce.estimates import StudyEstimate
from cprsim.reproduce.paper import Claim
from cprsim.reproduce.verdicts import (
    A_TENTH,
    NONE,
    NOTHING,
    Assumptions,
    Tolerance,
    Verdict,
    agreement,
    judge,
    judge_cases,
)

N = TypeVar("N")  # the numbers of a study
T = TypeVar("T")
NO_ESTIMATE = StudyEstimate(nan)


@dataclass(frozen=True, slots=True)
class TargetRow:
    """One comparison: a quantity, the paper's word on it and its mark, ours, and the verdict."""

    quantity: str
    paper: str  # empty where the paper gives nothing
    mark: str  # published, secondary, derived, recalled; empty likewise
    ours: str  # as shown, with its interval
    unit: str
    value: Number  # NaN where ours is no number
    low: Number
    high: Number
    verdict: Verdict
    free: tuple[str, ...] = ()  # inputs that we had to assume


@dataclass(frozen=True, slots=True)
class Tested:
    """Ours in words, judged by a test of its own; with the number behind it where there is one."""

    met: bool | None  # None: open
    shown: str
    estimate: StudyEstimate = NO_ESTIMATE


Cases = tuple[StudyEstimate, ...]  # one per choice of the free inputs


@dataclass(frozen=True, slots=True)
class Target(Generic[N]):
    """A quantity that ours is compared in: all that decides its row, but ours."""

    quantity: str
    claim: Claim | None  # None: ours stands alone
    ours: Callable[[N], StudyEstimate | Tested | Cases | None]  # None: it is not there
    assumptions: Assumptions | Callable[[N], Assumptions] = NONE  # what our side rests on
    tolerance: Tolerance = A_TENTH
    unit: str = ""  # of ours where it stands alone

    def row(self, numbers: N) -> TargetRow | None:
        """Ours beside the paper's, judged; None where ours is not there."""
        ours, rests_on = self.ours(numbers), self.assumptions
        if ours is None:
            return None
        if not isinstance(rests_on, Assumptions):
            rests_on = rests_on(numbers)
        if self.claim is None:
            assert isinstance(ours, StudyEstimate), "what stands alone is an estimate"
            return TargetRow(self.quantity, "", "", ours.shown(self.unit), self.unit,
                       ours.mean, ours.low, ours.high, NOTHING)  # fmt: skip
        verdict, shown, estimate = self._judged(self.claim, ours, rests_on)
        return TargetRow(
            self.quantity, self.claim.text, str(self.claim.mark), shown, self.claim.unit,
            estimate.mean, estimate.low, estimate.high, verdict,
            rests_on.free or rests_on.undecided,
        )  # fmt: skip

    def _judged(
        self, claim: Claim, ours: StudyEstimate | Tested | Cases, rests_on: Assumptions
    ) -> tuple[Verdict, str, StudyEstimate]:
        if isinstance(ours, Tested):
            return judge(claim, ours.met, rests_on), ours.shown, ours.estimate
        if isinstance(ours, StudyEstimate):
            met = agreement(claim, ours, self.tolerance)
            return judge(claim, met, rests_on), ours.shown(claim.unit), ours
        met_by_case = [agreement(claim, one, self.tolerance) for one in ours]
        span = StudyEstimate(nan, min(one.mean for one in ours), max(one.mean for one in ours))
        ends = " to ".join(StudyEstimate(end).shown() for end in span.ends)
        shown = f"{ends} {claim.unit}".rstrip()
        return judge_cases(claim, met_by_case, rests_on), shown, span


def alone(quantity: str, ours: Callable[[N], StudyEstimate | None], unit: str = "") -> Target[N]:
    """A number of ours that no paper gives."""
    return Target(quantity, None, ours, unit=unit)


@dataclass(frozen=True, slots=True)
class Listing:
    """A table beside the comparisons."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(
        cls, title: str, lines: Iterable[T], *columns: tuple[str, Callable[[T], str]]
    ) -> Listing:
        """A row per line; each column has its heading and what it says of a line."""
        rows = (tuple(cell(line) for _, cell in columns) for line in lines)
        return cls(title, tuple(heading for heading, _ in columns), tuple(rows))


@dataclass(frozen=True, slots=True)
class Summary:
    """One result: its question, its comparisons, and what they mean."""

    title: str
    question: str
    rows: tuple[TargetRow, ...]
    listings: tuple[Listing, ...] = ()
    notes: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
