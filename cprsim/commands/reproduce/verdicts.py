"""The rules that compare ours with a paper's number: written before the results, here only.

1. **Agreement.** A number, or a range, of the paper is met if the whole 95 % interval of ours lies
   within its tolerance (the paper gives no interval); missed if the whole interval lies
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
6. **An undecided input.** Where the comparison depends on an input that no source gives, it is
   *open*, whatever the result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf, isnan, nan
from typing import NamedTuple

from cprsim.commands.reproduce.estimates import StudyEstimate
from cprsim.errors import ParameterError
from cprsim.files import Number
from cprsim.job.records import Z_95
from cprsim.results.words import count

TOLERANCE = 0.10  # of the paper's number, to either side
STANDARD_ERRORS = 4.0
# How a number of a paper is known: in its abstract or the authors' poster (published), in a text
# that quotes it (secondary); else `derived`, by arithmetic from the numbers named, or `recalled`,
# remembered from the paper's body and not checked against its text.
KNOWN = ("published", "secondary")
NUMBER_OF_PAPER = r"(\d[\d.,]*)"
SAID = re.compile(rf"(over |at most )?{NUMBER_OF_PAPER}(?: to {NUMBER_OF_PAPER})?(?: (.*))?")
WITHIN = re.compile(r"± ([\d.e-]+)")
FITTED, SET_UP_RECALLED = "by construction", "set-up recalled"


class Finding(StrEnum):
    """The outcome of a comparison."""

    REPRODUCED = "reproduced"
    CONSISTENT = "consistent"
    OPEN = "open"
    NOT_CONSISTENT = "not consistent"
    NOT_REPRODUCED = "not reproduced"
    NOTHING = "nothing to compare with"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A finding and its limits."""

    finding: Finding
    limit: str = ""

    def __str__(self) -> str:
        return f"{self.finding}{self.limit and f', {self.limit}'}"


@dataclass(frozen=True, slots=True)
class Claim:
    """One comparison as stored: a quantity, the paper's value, ours, and the verdict."""

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

    @property
    def cells(self) -> tuple[str, ...]:
        """A row of the table of comparisons."""
        return self.quantity, self.paper, self.mark, self.ours, str(self.verdict)


class Tested(NamedTuple):
    """Our result in words, judged by a separate test; with its number if it has one."""

    met: bool | None  # None: open
    text: str
    estimate: StudyEstimate = StudyEstimate(nan)


Ours = StudyEstimate | Tested | Sequence[StudyEstimate]  # several: one per choice of free inputs


@dataclass(frozen=True, slots=True)
class Target:
    """A quantity, the paper's value of it if any, and the inputs of our value.

    A number has equal ends, a bound an infinite one; a statement in words has two.
    """

    quantity: str
    text: str = ""  # the paper's word, as it is shown; empty: it says nothing (rule 5)
    mark: str = ""
    unit: str = ""
    low: float = -inf
    high: float = inf
    least: float = -inf  # by which ours meets it
    most: float = inf
    in_errors: bool = False  # met within 4 standard errors instead
    limit: str = ""  # of what agreement is worth
    free: tuple[str, ...] = ()  # inputs that we had to assume
    decides: bool = True  # False: nothing can be told without them

    @classmethod
    def of(
        cls, name: str, rests_on: str | Sequence[str], paper: str = "", mark: str = "",
        says: str = "", within: str = "", undecided: Sequence[str] = (), quantity: str = "",
        unit: str = "",
    ) -> Target:  # fmt: skip
        """As `studies.yaml` has it.

        `rests_on`: by construction, set-up recalled, nothing, or inputs that we had to assume;
        `paper`: ``14 to 30 h``, ``over 91 %``, ``at most 4.4 %``, ``8.5 %``, a statement in words;
        `says`: the same as it is shown, where that says more; `within`: ``± 1 %``, ``± 0.25
        points``, ``4 SE``, ``a bound``; `undecided`: inputs without which nothing can be told.
        """
        quantity = quantity or name
        if not paper:
            return cls(quantity, unit=unit)
        free, limit = tuple(undecided), ""
        if not free and isinstance(rests_on, str):
            limit = rests_on
        elif not free:
            free, limit = tuple(rests_on), f"with {count(len(rests_on), 'free input')}"
        quantity = f"{quantity} ({within})" if within else quantity
        target = cls(quantity, says or paper, mark, limit=limit, free=free, decides=not undecided)
        match = SAID.fullmatch(paper)
        if match is None:
            return target
        bound, first, last, unit = match.groups(default="")
        low, high = (float(end.replace(",", "")) for end in (first, last or first))
        if bound:
            low, high = (low, inf) if bound == "over " else (-inf, high)
            return replace(target, unit=unit, low=low, high=high, least=low, most=high)
        size = float(tolerance[1]) if (tolerance := WITHIN.match(within)) else 100 * TOLERANCE
        is_share = tolerance is None or within.endswith(" %")
        below, above = (size * abs(end) / 100 if is_share else size for end in (low, high))
        return replace(
            target, unit=unit, low=low, high=high, least=low - below, most=high + above,
            in_errors=within == "4 SE",
        )  # fmt: skip

    def __str__(self) -> str:
        return f"{self.text} ({self.mark})"

    def claim(self, estimate: Ours) -> Claim:
        """Compare ours with the target, and judge it."""
        if isinstance(estimate, StudyEstimate):
            estimate = Tested(self.met_by(estimate), estimate.text(self.unit), estimate)
        if isinstance(estimate, Tested):
            tested, verdict = estimate, self.judge(estimate.met)
        else:
            verdict = self.judge_cases([self.met_by(case) for case in estimate])
            means = [case.mean for case in estimate]
            extremes = StudyEstimate(nan, min(means), max(means))
            span = " to ".join(StudyEstimate(end).text() for end in extremes.ends)
            tested = Tested(None, f"{span} {self.unit}".rstrip(), extremes)
        return Claim(
            self.quantity, self.text, self.mark, tested.text, self.unit,
            *tested.estimate.triple, verdict, self.free,
        )  # fmt: skip

    def met_by(self, estimate: StudyEstimate) -> bool | None:
        """Whether ours meets the number, by rule 1; None if that is open, or without a number.

        Raises ParameterError for a statement in words, which needs a separate test.
        """
        low, high = estimate.ends
        if not self.text or isnan(low) or isnan(high):
            return None
        if (self.low, self.high) == (-inf, inf):
            raise ParameterError(f"{self.text!r} has no number to compare with")
        if self.in_errors:
            error = (high - low) / (2.0 * Z_95)
            return bool(abs(estimate.mean - self.low) <= STANDARD_ERRORS * error)
        least, most = self.least, self.most
        if most == inf:  # `over` excludes the bound, `at most` includes it
            return True if low > least else False if high <= least else None
        inside, outside = least <= low and high <= most, high < least or low > most
        return True if inside else False if outside else None

    def judge(self, is_met: bool | None) -> Verdict:
        """The verdict on a target that ours meets or misses (rules 2, 3, 5 and 6)."""
        if not self.text:
            return Verdict(Finding.NOTHING)
        if not self.decides:
            return Verdict(Finding.OPEN, f"can't be told: assumed {', '.join(self.free)}")
        if is_met is None:
            return Verdict(Finding.OPEN, "interval across the end")
        is_known = self.mark in KNOWN
        limit = "" if self.limit == SET_UP_RECALLED and not is_known else self.limit
        strict = is_known and not limit
        if is_met:
            return Verdict(Finding.REPRODUCED if strict else Finding.CONSISTENT, limit)
        missed = Finding.NOT_REPRODUCED if strict else Finding.NOT_CONSISTENT
        return Verdict(missed, "though fitted to it" if limit == FITTED else limit)

    def judge_cases(self, cases: Sequence[bool | None]) -> Verdict:
        """The verdict where free inputs are run over a range (rule 4)."""
        n = sum(case is True for case in cases)
        missed = Finding.OPEN if None in cases else Finding.NOT_CONSISTENT
        limit = f"in {n} of {len(cases)} cases, {self.limit}".rstrip(", ")
        return Verdict(Finding.CONSISTENT if n else missed, limit)
