"""The rules by which ours is judged beside a paper's number."""

from __future__ import annotations

from math import inf, nan

import pytest

from cprsim.errors import ParameterError
from cprsim.reproduce.estimates import StudyEstimate
from cprsim.reproduce.paper import Mark, Reported, about, at_most, between, over, words
from cprsim.reproduce.verdicts import (
    Assumptions,
    Finding,
    agreement,
    judge,
    judge_cases,
)

PUBLISHED = about(10.0, "%", Mark.PUBLISHED)
SURE, FREE = Assumptions(), Assumptions(free=("a", "b"))


@pytest.mark.parametrize(
    ("claim", "ours", "met"),
    [
        (PUBLISHED, StudyEstimate(10.0), True),
        (PUBLISHED, StudyEstimate(10.9, 10.8, 11.0), True),  # 10 % to either side
        (PUBLISHED, StudyEstimate(10.9, 10.7, 11.1), None),  # across the end
        (PUBLISHED, StudyEstimate(12.0, 11.1, 12.9), False),
        (PUBLISHED, StudyEstimate(8.0), False),
        (PUBLISHED, StudyEstimate(10.0, 5.0, 15.0), None),  # too noisy to tell
        (between(14, 30, "h", Mark.SECONDARY), StudyEstimate(20.0, 13.0, 32.0), True),
        (between(14, 30, "h", Mark.SECONDARY), StudyEstimate(34.0, 33.5, 34.5), False),
        (over(91, "%", Mark.PUBLISHED), StudyEstimate(91.5, 91.01, 92.0), True),
        (over(91, "%", Mark.PUBLISHED), StudyEstimate(91.5, 90.9, 92.0), None),
        (over(91, "%", Mark.PUBLISHED), StudyEstimate(91.0), False),  # bounds have no slack
        (over(91, "%", Mark.PUBLISHED), StudyEstimate(90.0), False),
        (at_most(4, "%", Mark.RECALLED), StudyEstimate(4.0), True),
        (at_most(4, "%", Mark.RECALLED), StudyEstimate(4.1), False),
        (at_most(4, "%", Mark.RECALLED), StudyEstimate(3.9, 3.7, 4.1), None),
        (about(-10.0, "%", Mark.RECALLED), StudyEstimate(-10.9), True),
        (PUBLISHED, StudyEstimate(nan), None),
    ],
)  # fmt: skip
def test_a_number_is_met_missed_or_open(
    claim: Reported, ours: StudyEstimate, met: bool | None
) -> None:
    assert agreement(claim, ours) is met


def test_words_are_judged_by_a_test_of_their_own() -> None:
    claim = words("it grows", Mark.RECALLED)
    assert claim.low == -inf
    assert claim.high == inf
    with pytest.raises(ParameterError, match="no number"):
        agreement(claim, StudyEstimate(1.0))


@pytest.mark.parametrize("mark", [Mark.RECALLED, Mark.DERIVED])
@pytest.mark.parametrize(
    "basis", [SURE, FREE, Assumptions(fitted=True), Assumptions(recalled=True)]
)
@pytest.mark.parametrize("met", [True, False, None])
def test_a_recalled_or_derived_number_is_never_reproduced(
    mark: Mark, basis: Assumptions, met: bool | None
) -> None:
    finding = judge(about(1.0, "", mark), met, basis).finding
    assert finding in {Finding.CONSISTENT, Finding.NOT_CONSISTENT, Finding.OPEN}


@pytest.mark.parametrize("mark", [Mark.PUBLISHED, Mark.SECONDARY])
def test_a_published_number_is_reproduced_only_without_free_fitted_or_recalled_inputs(
    mark: Mark,
) -> None:
    claim = about(1.0, "", mark)
    assert str(judge(claim, True, SURE)) == "reproduced"
    assert str(judge(claim, False, SURE)) == "not reproduced"
    assert str(judge(claim, True, FREE)) == "consistent, with 2 free inputs"
    assert str(judge(claim, False, FREE)) == "not consistent, with 2 free inputs"
    assert str(judge(claim, True, Assumptions(free=("a",)))) == "consistent, with 1 free input"
    assert str(judge(claim, True, Assumptions(fitted=True))) == "consistent, by construction"
    assert (
        str(judge(claim, False, Assumptions(fitted=True))) == "not consistent, though fitted to it"
    )
    assert str(judge(claim, True, Assumptions(recalled=True))) == "consistent, set-up recalled"
    assert judge(claim, None, SURE).finding is Finding.OPEN


def test_over_free_inputs_one_case_that_meets_it_makes_it_consistent_and_all_are_counted() -> None:
    some = judge_cases(PUBLISHED, [True, False, None], FREE)
    assert str(some) == "consistent, in 1 of 3 cases, with 2 free inputs"
    assert judge_cases(PUBLISHED, [False, None], FREE).finding is Finding.OPEN
    assert judge_cases(PUBLISHED, [False, False], FREE).finding is Finding.NOT_CONSISTENT
