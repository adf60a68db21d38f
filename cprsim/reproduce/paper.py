"""What the CPR paper reports (Maeng et al., MLSys 2021, arXiv 2011.02999), with provenance.

The full text was not available when these were written down, so each number carries its mark. A
recalled number is shown as recalled, never as the paper's word.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Mark(StrEnum):
    """How a number is known."""

    PUBLISHED = "published"  # in the paper's abstract or the authors' poster
    SECONDARY = "secondary"  # in a text that quotes the paper
    DERIVED = "derived"  # by arithmetic from the numbers named
    RECALLED = "recalled"  # remembered from the paper's body, not checked against its text


@dataclass(frozen=True, slots=True)
class Claim:
    """One number of the paper, in percent."""

    percent: float
    mark: Mark

    def __str__(self) -> str:
        return f"{self.percent:g} % ({self.mark})"


# The ends of the published ranges; which end is which data set is recalled.
OVERHEADS: dict[str, dict[str, Claim]] = {
    "criteo-kaggle": {
        "full": Claim(8.5, Mark.PUBLISHED),
        "partial": Claim(4.4, Mark.RECALLED),
        "cpr": Claim(0.53, Mark.PUBLISHED),
    },
    "criteo-terabyte": {
        "full": Claim(8.2, Mark.PUBLISHED),
        "partial": Claim(4.4, Mark.RECALLED),
        "cpr": Claim(0.68, Mark.PUBLISHED),
    },
}

PRODUCTION_REMOVED = Claim(91.0, Mark.PUBLISHED)  # "over 91 %" of the overhead of full recovery
