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

import re
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
# How a number of a paper is known: in its abstract or the authors' poster (published), in a text
# that quotes it (secondary); else `derived`, by arithmetic from the numbers named, or `recalled`,
# remembered from the paper's body and not checked against its text.
KNOWN = ("published", "secondary")
NUMBER = r"(\d[\d.,]*)"
SAID = re.compile(rf"(over |at most )?{NUMBER}(?: to {NUMBER})?(?: (.*))?")
WITHIN = re.compile(r"± ([\d.e-]+)")


@dataclass(frozen=True, slots=True)
class Reported:
    """A number, range, bound or statement of a paper, and the ends within which it is met.

    A number has equal ends, a bound an infinite one; a statement in words has two.
    """

    text: str  # as it is shown
    mark: str
    unit: str = ""
    low: float = -inf
    high: float = inf
    least: float = -inf  # by which ours meets it
    most: float = inf
    in_errors: bool = False  # met within 4 standard errors instead

    @classmethod
    def of(cls, paper: str, mark: str, says: str = "", within: str = "") -> Reported:
        """``14 to 30 h``, ``over 91 %``, ``at most 4.4 %``, ``8.5 %``, or a statement in words.

        `says`: the text, where it says more; `within`: ``± 1 %``, ``± 0.25 points``, ``4 SE``.
        """
        found = SAID.fullmatch(paper)
        if found is None:
            return cls(says or paper, mark)
        bound, first, last, unit = found.groups(default="")
        low, high = (float(end.replace(",", "")) for end in (first, last or first))
        if bound:
            low, high = (low, inf) if bound == "over " else (-inf, high)
            return cls(says or paper, mark, unit, low, high, low, high)
        size = float(tolerance[1]) if (tolerance := WITHIN.match(within)) else 100 * TOLERANCE
        of_end = tolerance is None or within.endswith(" %")
        below, above = (size * abs(end) / 100 if of_end else size for end in (low, high))
        ends = low, high, low - below, high + above
        return cls(says or paper, mark, unit, *ends, in_errors=within == "4 SE")

    def __str__(self) -> str:
        return f"{self.text} ({self.mark})"


NOTHING = Reported("", "")  # no word of a paper (rule 5)


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


Ours = StudyEstimate | Tested | Sequence[StudyEstimate]  # several: one per choice of free inputs


@dataclass(frozen=True, slots=True)
class Target:
    """A quantity, what a paper says of it, if it does, and what our side rests on."""

    quantity: str
    reported: Reported = NOTHING
    unit: str = ""
    basis: Basis = SOLID

    @classmethod
    def of(
        cls, name: str, rests_on: str | Sequence[str], paper: str = "", mark: str = "",
        says: str = "", within: str = "", undecided: Sequence[str] = (), quantity: str = "",
        unit: str = "",
    ) -> Target:  # fmt: skip
        """As `studies.yaml` has it; `undecided`: inputs without which nothing can be told."""
        quantity = quantity or name
        if not paper:
            return cls(quantity, unit=unit)
        reported = Reported.of(paper, mark, says, within)
        if undecided:
            basis = Basis("", tuple(undecided), decides=False)
        elif isinstance(rests_on, str):
            basis = {one.limit: one for one in (SOLID, FITTED, SET_UP_RECALLED)}[rests_on]
        else:
            basis = free(*rests_on)
        shown = f"{quantity} ({within})" if within else quantity
        return cls(shown, reported, reported.unit, basis)

    def claim(self, ours: Ours) -> Claim:
        """Ours beside it, judged."""
        reported, basis = self.reported, self.basis
        if isinstance(ours, StudyEstimate):
            ours = Tested(agreement(reported, ours), ours.shown(self.unit), ours)
        if isinstance(ours, Tested):
            tested, verdict = ours, judge(reported, ours.met, basis)
        else:
            verdict = judge_cases([agreement(reported, one) for one in ours], basis)
            means = [one.mean for one in ours]
            both = StudyEstimate(nan, min(means), max(means))
            shown = " to ".join(StudyEstimate(end).shown() for end in both.ends)
            tested = Tested(None, f"{shown} {self.unit}".rstrip(), both)
        return Claim(
            self.quantity, reported.text, reported.mark, tested.shown, self.unit,
            *tested.estimate.triple, verdict, basis.inputs,
        )  # fmt: skip


def agreement(reported: Reported, ours: StudyEstimate) -> bool | None:
    """Whether ours meets a paper's number, by rule 1; None where it is open, or there is none.

    Raises ParameterError for a statement in words: it needs a test of its own.
    """
    low, high = ours.ends
    if reported is NOTHING or isnan(low) or isnan(high):
        return None
    if (reported.low, reported.high) == (-inf, inf):
        raise ParameterError(f"{reported.text!r} has no number to compare with")
    if reported.in_errors:
        error = (high - low) / (2.0 * Z_95)
        return bool(abs(ours.mean - reported.low) <= STANDARD_ERRORS * error)
    least, most = reported.least, reported.most
    if most == inf:  # `over` excludes the bound, `at most` includes it
        return True if low > least else False if high <= least else None
    inside, outside = least <= low and high <= most, high < least or low > most
    return True if inside else False if outside else None


def judge(reported: Reported, met: bool | None, basis: Basis = SOLID) -> Verdict:
    """What it is worth that ours meets a paper's number, or misses it (rules 2, 3, 5 and 6)."""
    if reported is NOTHING:
        return Verdict(Finding.NOTHING)
    if not basis.decides:
        return Verdict(Finding.OPEN, f"can't be told: assumed {', '.join(basis.inputs)}")
    if met is None:
        return Verdict(Finding.OPEN, "interval across the end")
    is_known = reported.mark in KNOWN
    limit = "" if basis is SET_UP_RECALLED and not is_known else basis.limit
    strict = is_known and not limit
    if met:
        return Verdict(Finding.REPRODUCED if strict else Finding.CONSISTENT, limit)
    missed = Finding.NOT_REPRODUCED if strict else Finding.NOT_CONSISTENT
    return Verdict(missed, "though fitted to it" if basis is FITTED else limit)


def judge_cases(met: Sequence[bool | None], basis: Basis) -> Verdict:
    """The verdict where free inputs are run over a range (rule 4)."""
    n = sum(case is True for case in met)
    missed = Finding.OPEN if None in met else Finding.NOT_CONSISTENT
    limit = f"in {n} of {len(met)} cases, {basis.limit}".rstrip(", ")
    return Verdict(Finding.CONSISTENT if n else missed, limit)
