"""What the CPR paper reports (Maeng et al., MLSys 2021, arXiv 2011.02999), with provenance.

The full text was not available when these were written down, so each number carries its mark. A
recalled number is shown as recalled, never as the paper's word.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import inf


class Mark(StrEnum):
    """How a number is known."""

    PUBLISHED = "published"  # in the paper's abstract or the authors' poster
    SECONDARY = "secondary"  # in a text that quotes the paper
    DERIVED = "derived"  # by arithmetic from the numbers named
    RECALLED = "recalled"  # remembered from the paper's body, not checked against its text


@dataclass(frozen=True, slots=True)
class Reported:
    """A number, range, bound or statement of a paper.

    A number has equal ends, a bound an infinite one; a statement in words has two.
    """

    text: str  # as it is shown
    mark: Mark
    unit: str = ""
    low: float = -inf
    high: float = inf

    @property
    def is_words(self) -> bool:
        """Whether there is no number in it."""
        return self.low == -inf and self.high == inf

    @property
    def is_bound(self) -> bool:
        """Whether it is an upper or a lower bound."""
        return not self.is_words and (self.low == -inf or self.high == inf)

    def __str__(self) -> str:
        return f"{self.text} ({self.mark})"


def about(value: float, unit: str, mark: Mark, *, text: str = "") -> Reported:
    """One number."""
    return Reported(text or f"{value:,g} {unit}".rstrip(), mark, unit, value, value)


def between(low: float, high: float, unit: str, mark: Mark) -> Reported:
    """A range."""
    return Reported(f"{low:,g} to {high:,g} {unit}".rstrip(), mark, unit, low, high)


def over(bound: float, unit: str, mark: Mark) -> Reported:
    """A lower bound, which is excluded."""
    return Reported(f"over {bound:,g} {unit}".rstrip(), mark, unit, low=bound)


def at_most(bound: float, unit: str, mark: Mark, *, text: str = "") -> Reported:
    """An upper bound, which is included."""
    return Reported(text or f"at most {bound:,g} {unit}".rstrip(), mark, unit, high=bound)


def words(text: str, mark: Mark) -> Reported:
    """A statement without a number."""
    return Reported(text, mark)


# The ends of the published ranges, of full recovery and of CPR-MFU and CPR-SSU; which end is which
# data set is recalled.
OVERHEADS: dict[str, dict[str, Reported]] = {
    "criteo-kaggle": {
        "full": about(8.5, "%", Mark.PUBLISHED),
        "partial": about(4.4, "%", Mark.RECALLED),
        "cpr-mfu": about(0.53, "%", Mark.PUBLISHED),
        "cpr-ssu": about(0.53, "%", Mark.PUBLISHED),
    },
    "criteo-terabyte": {
        "full": about(8.2, "%", Mark.PUBLISHED),
        "partial": about(4.4, "%", Mark.RECALLED),
        "cpr-mfu": about(0.68, "%", Mark.PUBLISHED),
        "cpr-ssu": about(0.68, "%", Mark.PUBLISHED),
    },
}
REDUCTIONS = {
    "criteo-kaggle": about(93.7, "%", Mark.RECALLED),
    "criteo-terabyte": about(91.7, "%", Mark.RECALLED),
}

PRODUCTION_REMOVED = over(91.0, "%", Mark.PUBLISHED)  # of the overhead of full recovery
PRODUCTION_LOSS = about(0.0008, "", Mark.PUBLISHED)  # added to the training loss

# 13 % stands on the poster (published), 12 % in a text that quotes the paper
FLEET_MEAN = between(12.0, 13.0, "%", Mark.SECONDARY)
FLEET_P90 = over(30.0, "%", Mark.PUBLISHED)
FLEET_WORST = about(43.0, "%", Mark.SECONDARY, text="43 % for the worst 5 %")
FLEET_MACHINE_YEARS = about(1156.0, "machine-years", Mark.SECONDARY)

MTBF = between(14.0, 30.0, "h", Mark.SECONDARY)
MEDIAN_TTF = between(8.0, 17.0, "h", Mark.RECALLED)
GAMMA_RMSE = about(4.4, "%", Mark.RECALLED)
GAMMA_SHAPE = about(0.67, "", Mark.DERIVED)
