"""The rules by which ours is judged beside a paper's number: written before the results, here only.

1. **Agreement.** A number, or a range, of the paper is met if the whole 95 % interval of ours lies
   within it widened by `TOLERANCE` (the paper gives no interval of its own); missed if the whole
   interval lies outside; open if it lies across an end. A bound (`over 91 %`) is met if the whole
   interval lies beyond it, without any tolerance. A statement in words is met or missed by a test
   that the row names.
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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf, isnan, nan

from cprsim.errors import ParameterError
from cprsim.reproduce.paper import Claim, Mark

TOLERANCE = 0.10  # of the paper's number, to either side
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
class Ours:
    """Our side: a value, with the ends of its 95 % interval where it has noise."""

    value: float
    low: float = nan
    high: float = nan

    @property
    def ends(self) -> tuple[float, float]:
        """The interval; the value itself where there is no noise."""
        return (self.value, self.value) if isnan(self.low) else (self.low, self.high)


@dataclass(frozen=True, slots=True)
class Basis:
    """What our side rests on besides the paper's words.

    `free` names the inputs that we had to assume, `fitted` says that inputs were chosen so that the
    number comes out, `recalled` that the set-up is known only as recalled.
    """

    free: tuple[str, ...] = ()
    fitted: bool = False
    recalled: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """A finding and what limits it."""

    finding: Finding
    limit: str = ""

    def __str__(self) -> str:
        return f"{self.finding}{self.limit and f', {self.limit}'}"


NOTHING = Verdict(Finding.NOTHING)


def agreement(claim: Claim, ours: Ours) -> bool | None:
    """Whether ours meets a paper's number, by rule 1; None where it is open.

    Raises ParameterError for a statement in words: it needs a test of its own.
    """
    if claim.is_words:
        raise ParameterError(f"{claim.text!r} has no number to compare with")
    low, high = ours.ends
    if isnan(low) or isnan(high):
        return None
    if claim.is_bound:
        return _beyond(claim, low, high)
    least = claim.low - TOLERANCE * abs(claim.low)
    most = claim.high + TOLERANCE * abs(claim.high)
    inside, outside = least <= low and high <= most, high < least or low > most
    return True if inside else False if outside else None


def _beyond(claim: Claim, low: float, high: float) -> bool | None:
    """Whether an interval lies beyond a bound: `over` excludes the bound, `at most` includes it."""
    if claim.low > -inf:
        return True if low > claim.low else False if high <= claim.low else None
    return True if high <= claim.high else False if low > claim.high else None


def judge(claim: Claim | None, met: bool | None, basis: Basis) -> Verdict:
    """What it is worth that ours meets a claim, or misses it (rules 2, 3 and 5)."""
    if claim is None:
        return NOTHING
    limit = _limit(claim, basis)
    if met is None:
        return Verdict(Finding.OPEN, "interval across the end")
    strict = claim.mark in COULD_BE_REPRODUCED and not limit
    if met:
        return Verdict(Finding.REPRODUCED if strict else Finding.CONSISTENT, limit)
    if basis.fitted:
        return Verdict(Finding.NOT_CONSISTENT, "though fitted to it")
    return Verdict(Finding.NOT_REPRODUCED if strict else Finding.NOT_CONSISTENT, limit)


def judge_cases(claim: Claim, met: Sequence[bool | None], basis: Basis) -> Verdict:
    """The verdict where free inputs are run over a range (rule 4)."""
    n = sum(case is True for case in met)
    undecided = Finding.OPEN if None in met else Finding.NOT_CONSISTENT
    finding = Finding.CONSISTENT if n else undecided
    return Verdict(finding, f"in {n} of {len(met)} cases, {_limit(claim, basis)}".rstrip(", "))


def _limit(claim: Claim, basis: Basis) -> str:
    if basis.fitted:
        return "by construction"
    if basis.free:
        n = len(basis.free)
        return f"with {n} free input{'s' if n > 1 else ''}"
    if basis.recalled and claim.mark in COULD_BE_REPRODUCED:
        return "set-up recalled"
    return ""
