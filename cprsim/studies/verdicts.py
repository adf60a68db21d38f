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
from typing import NamedTuple

from cprsim.errors import ParameterError
from cprsim.files import Number
from cprsim.records import Z_95
from cprsim.results.words import count
from cprsim.studies.estimates import StudyEstimate

TOLERANCE = 0.10  # of the paper's number, to either side
STANDARD_ERRORS = 4.0


class Mark(StrEnum):
    """How a number of a paper is known; a recalled one is never shown as the paper's word."""

    PUBLISHED = "published"  # in the paper's abstract or the authors' poster
    SECONDARY = "secondary"  # in a text that quotes the paper
    DERIVED = "derived"  # by arithmetic from the numbers named
    RECALLED = "recalled"  # remembered from the paper's body, not checked against its text


PUBLISHED, SECONDARY, DERIVED, RECALLED = Mark


class Tolerance(NamedTuple):
    """How far from a paper's number ours may lie."""

    size: float | None = TOLERANCE  # None: 4 standard errors
    absolute: bool = False  # in the number's own unit; else a share of the number


A_TENTH = Tolerance()


@dataclass(frozen=True, slots=True)
class Reported:
    """A number, range, bound or statement of a paper, and the tolerance by which it is judged.

    A number has equal ends, a bound an infinite one; a statement in words has two.
    """

    text: str  # as it is shown
    mark: Mark
    unit: str = ""
    low: float = -inf
    high: float = inf
    tolerance: Tolerance = A_TENTH

    @property
    def n_bounds(self) -> int:
        """How many of its ends are numbers: 0 of a statement in words, 1 of a bound."""
        return (self.low > -inf) + (self.high < inf)

    @property
    def ends(self) -> tuple[float, float]:
        """The range of the paper's number, widened; a bound stays as it is."""
        size, absolute = self.tolerance
        if self.n_bounds < 2 or size is None:
            return self.low, self.high
        below, above = (size * (1 if absolute else abs(end)) for end in (self.low, self.high))
        return self.low - below, self.high + above

    def __str__(self) -> str:
        return f"{self.text} ({self.mark})"


def about(
    value: float, unit: str, mark: Mark, tolerance: Tolerance = A_TENTH, *, text: str = ""
) -> Reported:
    """One number."""
    text = text or f"{value:,g} {unit}".rstrip()
    return Reported(text, mark, unit, value, value, tolerance)


def between(low: float, high: float, unit: str, mark: Mark) -> Reported:
    """A range."""
    return Reported(f"{low:,g} to {high:,g} {unit}".rstrip(), mark, unit, low, high)


def over(bound: float, unit: str, mark: Mark) -> Reported:
    """A lower bound, which is excluded."""
    return Reported(f"over {bound:,g} {unit}".rstrip(), mark, unit, low=bound)


def at_most(bound: float, unit: str, mark: Mark, *, text: str = "") -> Reported:
    """An upper bound, which is included."""
    return Reported(text or f"at most {bound:,g} {unit}".rstrip(), mark, unit, high=bound)


class Basis(NamedTuple):
    """What our side rests on besides the paper's words."""

    limit: str = ""  # of what agreement is worth
    inputs: tuple[str, ...] = ()  # that we had to assume
    decides: bool = True  # False: nothing can be told without them


SOLID = Basis()
FITTED = Basis("by construction")  # inputs were chosen so that the number comes out
SET_UP_RECALLED = Basis("set-up recalled")


def free(*inputs: str) -> Basis:
    """Inputs that we had to assume."""
    return Basis(f"with {count(len(inputs), 'free input')}", inputs)


class Finding(StrEnum):
    """What a comparison comes to."""

    REPRODUCED = "reproduced"
    CONSISTENT = "consistent"
    OPEN = "open"
    NOT_CONSISTENT = "not consistent"
    NOT_REPRODUCED = "not reproduced"
    NOTHING = "nothing to compare with"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A finding and what limits it."""

    finding: Finding
    limit: str = ""

    def __str__(self) -> str:
        return f"{self.finding}{self.limit and f', {self.limit}'}"


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


class Tested(NamedTuple):
    """Ours in words, judged by a test of its own; with the number behind it where there is one."""

    met: bool | None  # None: open
    shown: str
    estimate: StudyEstimate = StudyEstimate(nan)


def alone(quantity: str, ours: StudyEstimate, unit: str = "") -> Claim:
    """A number of ours that no paper gives (rule 5)."""
    return Claim(quantity, "", "", ours.shown(unit), unit, *ours.triple, Verdict(Finding.NOTHING))


def compare(
    quantity: str,
    reported: Reported | str,
    ours: StudyEstimate | Tested | Sequence[StudyEstimate],
    basis: Basis = SOLID,
) -> Claim:
    """Ours beside a paper's number, judged; several estimates: one per choice of free inputs.

    Plain text is a statement that is recalled.
    """
    if isinstance(reported, str):
        reported = Reported(reported, RECALLED)
    if isinstance(ours, Tested):
        tested, verdict = ours, judge(reported, ours.met, basis)
    elif isinstance(ours, StudyEstimate):
        tested = Tested(agreement(reported, ours), ours.shown(reported.unit), ours)
        verdict = judge(reported, tested.met, basis)
    else:
        verdict = judge_cases(reported, [agreement(reported, one) for one in ours], basis)
        means = [one.mean for one in ours]
        both = StudyEstimate(nan, min(means), max(means))
        shown = " to ".join(StudyEstimate(end).shown() for end in both.ends)
        tested = Tested(None, f"{shown} {reported.unit}".rstrip(), both)
    return Claim(
        quantity, reported.text, reported.mark.value, tested.shown, reported.unit,
        *tested.estimate.triple, verdict, basis.inputs,
    )  # fmt: skip


def agreement(reported: Reported, ours: StudyEstimate) -> bool | None:
    """Whether ours meets a paper's number, by rule 1; None where it is open.

    Raises ParameterError for a statement in words: it needs a test of its own.
    """
    if not reported.n_bounds:
        raise ParameterError(f"{reported.text!r} has no number to compare with")
    low, high = ours.ends
    if isnan(low) or isnan(high):
        return None
    if reported.tolerance.size is None:
        error = (high - low) / (2.0 * Z_95)
        return bool(abs(ours.mean - reported.low) <= STANDARD_ERRORS * error)
    least, most = reported.ends
    if most == inf:  # `over` excludes the bound, `at most` includes it
        return True if low > least else False if high <= least else None
    inside, outside = least <= low and high <= most, high < least or low > most
    return True if inside else False if outside else None


def judge(reported: Reported, met: bool | None, basis: Basis = SOLID) -> Verdict:
    """What it is worth that ours meets a paper's number, or misses it (rules 2, 3 and 6)."""
    if not basis.decides:
        return Verdict(Finding.OPEN, f"can't be told: assumed {', '.join(basis.inputs)}")
    if met is None:
        return Verdict(Finding.OPEN, "interval across the end")
    is_known = reported.mark in (PUBLISHED, SECONDARY)
    limit = "" if basis is SET_UP_RECALLED and not is_known else basis.limit
    strict = is_known and not limit
    if met:
        return Verdict(Finding.REPRODUCED if strict else Finding.CONSISTENT, limit)
    missed = Finding.NOT_REPRODUCED if strict else Finding.NOT_CONSISTENT
    return Verdict(missed, "though fitted to it" if basis is FITTED else limit)


def judge_cases(reported: Reported, met: Sequence[bool | None], basis: Basis) -> Verdict:
    """The verdict where free inputs are run over a range (rule 4)."""
    n = sum(case is True for case in met)
    missed = Finding.OPEN if None in met else Finding.NOT_CONSISTENT
    limit = f"in {n} of {len(met)} cases, {basis.limit}".rstrip(", ")
    return Verdict(Finding.CONSISTENT if n else missed, limit)
