"""The rules by which ours is judged beside a paper's number: written before the results, here only.

1. **Agreement.** A number, or a range, of the paper is met if the whole 95 % interval of ours lies
   within its tolerance (the paper gives no interval of its own); missed if the whole interval lies
   outside; open if it lies across an end. The tolerance is a tenth of the number unless the target
   says another one; where it is 4 standard errors, the number is met if it lies within as many of
   our mean. A bound (`over 91 %`) is met if the whole interval lies beyond it, without any
   tolerance. A statement in words is met or missed by a test that the row names.
2. **What agreement is worth.** A published or secondary number that is met is *reproduced*, unless
   - our side has free inputs (the paper does not say them, we assumed them): *consistent, with n
     free inputs*;
   - our inputs were chosen so that this very number comes out: *consistent by construction*;
   - the set-up that we simulate is itself known only as recalled: *consistent, set-up recalled*.
3. **Recalled and derived numbers** are never reproduced: *consistent* or *not consistent*.
4. **Several cases.** Where free inputs are run over a range, the number is consistent if some case
   meets it, and the verdict says how many do; open if none does but one is open. (That a case may
   be open was forgotten at first, and added when production-loss had such cases.)
5. **No number of the paper**: nothing is judged.
6. **An undecided input.** Where the comparison hangs on an input that nobody gives, nothing can be
   told, whatever comes out: *open*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf, isnan, nan

from cprsim.errors import ParameterError
from cprsim.files import Number
from cprsim.records import Z_95
from cprsim.reproduce.estimates import StudyEstimate
from cprsim.reproduce.paper import Mark, Reported

TOLERANCE = 0.10  # of the paper's number, to either side
STANDARD_ERRORS = 4.0
COULD_BE_REPRODUCED = (Mark.PUBLISHED, Mark.SECONDARY)


class Finding(StrEnum):
    """What a comparison comes to."""

    REPRODUCED = "reproduced"
    CONSISTENT = "consistent"
    OPEN = "open"
    NOT_CONSISTENT = "not consistent"
    NOT_REPRODUCED = "not reproduced"
    NOTHING = "nothing to compare with"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far from a paper's number ours may lie."""

    size: float | None = TOLERANCE  # None: 4 standard errors
    absolute: bool = False  # in the number's own unit; else a share of the number

    def ends(self, reported: Reported) -> tuple[float, float]:
        """The range of the paper's number, widened; a bound stays as it is."""
        if reported.is_bound or self.size is None:
            return reported.low, reported.high
        below, above = (
            self.size if self.absolute else self.size * abs(end)
            for end in (reported.low, reported.high)
        )
        return reported.low - below, reported.high + above

    def shown(self, reported: Reported) -> str:
        """As it stands behind a quantity."""
        if self.size is None:
            return f"{STANDARD_ERRORS:g} SE"
        if reported.is_bound:
            return "a bound"
        if self.absolute:
            unit = "points" if reported.unit == "%" else reported.unit
            return f"± {self.size:g} {unit}".rstrip()
        return f"± {100 * self.size:g} %"


A_TENTH = Tolerance()


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What our side rests on besides the paper's words."""

    free: tuple[str, ...] = ()  # inputs that we had to assume
    fitted: bool = False  # inputs were chosen so that the number comes out
    recalled: bool = False  # the set-up is known only as recalled
    undecided: tuple[str, ...] = ()  # inputs without which nothing can be told


NONE = Assumptions()
FITTED = Assumptions(fitted=True)
RECALLED = Assumptions(recalled=True)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A finding and what limits it."""

    finding: Finding
    limit: str = ""

    def __str__(self) -> str:
        return f"{self.finding}{self.limit and f', {self.limit}'}"


NO_ESTIMATE = StudyEstimate(nan)


@dataclass(frozen=True, slots=True)
class Tested:
    """Ours in words, judged by a test of its own; with the number behind it where there is one."""

    met: bool | None  # None: open
    shown: str
    estimate: StudyEstimate = NO_ESTIMATE


@dataclass(frozen=True, slots=True)
class Claim:
    """One comparison as it is kept: a quantity, the paper's word on it, ours, and the verdict."""

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


def alone(quantity: str, ours: StudyEstimate, unit: str = "") -> Claim:
    """A number of ours that no paper gives (rule 5)."""
    return Claim(quantity, "", "", ours.shown(unit), unit, *ours.triple, Verdict(Finding.NOTHING))


def compare(
    quantity: str,
    reported: Reported,
    ours: StudyEstimate | Tested | Sequence[StudyEstimate],
    rests_on: Assumptions = NONE,
    tolerance: Tolerance = A_TENTH,
) -> Claim:
    """Ours beside a paper's number, judged; several estimates: one per choice of free inputs."""
    unit = reported.unit
    if isinstance(ours, Tested):
        verdict, shown, estimate = judge(reported, ours.met, rests_on), ours.shown, ours.estimate
    elif isinstance(ours, StudyEstimate):
        verdict = judge(reported, agreement(reported, ours, tolerance), rests_on)
        shown, estimate = ours.shown(unit), ours
    else:
        met = [agreement(reported, one, tolerance) for one in ours]
        verdict = judge_cases(reported, met, rests_on)
        means = [one.mean for one in ours]
        estimate = StudyEstimate(nan, min(means), max(means))
        ends = (StudyEstimate(end).shown() for end in estimate.ends)
        shown = f"{' to '.join(ends)} {unit}".rstrip()
    return Claim(
        quantity, reported.text, str(reported.mark), shown, unit, *estimate.triple, verdict,
        rests_on.free or rests_on.undecided,
    )  # fmt: skip


def agreement(
    reported: Reported, ours: StudyEstimate, tolerance: Tolerance = A_TENTH
) -> bool | None:
    """Whether ours meets a paper's number, by rule 1; None where it is open.

    Raises ParameterError for a statement in words: it needs a test of its own.
    """
    if reported.is_words:
        raise ParameterError(f"{reported.text!r} has no number to compare with")
    low, high = ours.ends
    if isnan(low) or isnan(high):
        return None
    if tolerance.size is None:
        error = (high - low) / (2.0 * Z_95)
        return bool(abs(ours.mean - reported.low) <= STANDARD_ERRORS * error)
    least, most = tolerance.ends(reported)
    if reported.is_bound and least > -inf:  # `over` excludes the bound, `at most` includes it
        return True if low > least else False if high <= least else None
    inside, outside = least <= low and high <= most, high < least or low > most
    return True if inside else False if outside else None


def judge(reported: Reported, met: bool | None, assumptions: Assumptions) -> Verdict:
    """What it is worth that ours meets a paper's number, or misses it (rules 2, 3 and 6)."""
    if assumptions.undecided:
        inputs = ", ".join(assumptions.undecided)
        return Verdict(Finding.OPEN, f"can't be told: assumed {inputs}")
    limit = _limit(reported, assumptions)
    if met is None:
        return Verdict(Finding.OPEN, "interval across the end")
    strict = reported.mark in COULD_BE_REPRODUCED and not limit
    if met:
        return Verdict(Finding.REPRODUCED if strict else Finding.CONSISTENT, limit)
    if assumptions.fitted:
        return Verdict(Finding.NOT_CONSISTENT, "though fitted to it")
    return Verdict(Finding.NOT_REPRODUCED if strict else Finding.NOT_CONSISTENT, limit)


def judge_cases(
    reported: Reported, met: Sequence[bool | None], assumptions: Assumptions
) -> Verdict:
    """The verdict where free inputs are run over a range (rule 4)."""
    n = sum(case is True for case in met)
    undecided = Finding.OPEN if None in met else Finding.NOT_CONSISTENT
    finding = Finding.CONSISTENT if n else undecided
    limit = f"in {n} of {len(met)} cases, {_limit(reported, assumptions)}".rstrip(", ")
    return Verdict(finding, limit)


def _limit(reported: Reported, assumptions: Assumptions) -> str:
    if assumptions.fitted:
        return "by construction"
    if assumptions.free:
        n = len(assumptions.free)
        return f"with {n} free input{'s' if n > 1 else ''}"
    if assumptions.recalled and reported.mark in COULD_BE_REPRODUCED:
        return "set-up recalled"
    return ""
