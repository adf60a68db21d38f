"""The rules by which ours is judged beside a paper's number."""

from __future__ import annotations

from itertools import product
from math import nan

import pytest

from cprsim.errors import ParameterError
from cprsim.records import Z_95
from cprsim.studies.estimates import StudyEstimate
from cprsim.studies.systems import claim
from cprsim.studies.verdicts import (
    FITTED,
    SET_UP_RECALLED,
    SOLID,
    Basis,
    Finding,
    Mark,
    Reported,
    Tolerance,
    about,
    agreement,
    at_most,
    between,
    compare,
    free,
    judge,
    judge_cases,
    over,
)


def ten(*tolerance: float | bool | None) -> Reported:
    return about(10.0, "%", Mark.PUBLISHED, Tolerance(*tolerance))


PUBLISHED, HUNDREDTH, ERRORS = ten(), ten(0.01), ten(None)
FREE, UNDECIDED = free("a", "b"), Basis("", ("a link",), decides=False)


@pytest.mark.parametrize(
    ("reported", "ours", "met"),
    [
        (PUBLISHED, (10.0,), True),
        (PUBLISHED, (10.9, 10.8, 11.0), True),  # 10 % to either side
        (PUBLISHED, (10.9, 10.7, 11.1), None),  # across the end
        (PUBLISHED, (12.0, 11.1, 12.9), False),
        (PUBLISHED, (8.0,), False),
        (PUBLISHED, (10.0, 5.0, 15.0), None),  # too noisy to tell
        (PUBLISHED, (nan,), None),
        (HUNDREDTH, (10.0, 9.95, 10.05), True),
        (HUNDREDTH, (10.05, 9.95, 10.15), None),
        (ten(0.1, True), (10.25, 10.2, 10.3), False),
        (ERRORS, (10.39, 10.39 - 0.1 * Z_95, 10.39 + 0.1 * Z_95), True),
        (ERRORS, (10.41, 10.41 - 0.1 * Z_95, 10.41 + 0.1 * Z_95), False),
        (about(-10.0, "%", Mark.RECALLED), (-10.9,), True),
        (between(14, 30, "h", Mark.SECONDARY), (20.0, 13.0, 32.0), True),
        (between(14, 30, "h", Mark.SECONDARY), (34.0, 33.5, 34.5), False),
        (over(91, "%", Mark.PUBLISHED), (91.5, 91.01, 92.0), True),
        (over(91, "%", Mark.PUBLISHED), (91.5, 90.9, 92.0), None),
        (over(91, "%", Mark.PUBLISHED), (91.0,), False),  # bounds have no slack
        (over(91, "%", Mark.PUBLISHED), (90.0,), False),
        (at_most(4, "%", Mark.RECALLED), (4.0,), True),
        (at_most(4, "%", Mark.RECALLED), (4.1,), False),
        (at_most(4, "%", Mark.RECALLED), (3.9, 3.7, 4.1), None),
    ],
)  # fmt: skip
def test_a_number_is_met_missed_or_open(
    reported: Reported, ours: tuple[float, ...], met: bool | None
) -> None:
    assert agreement(reported, StudyEstimate(*ours)) is met


def test_words_are_judged_by_a_test_of_their_own() -> None:
    with pytest.raises(ParameterError, match="no number"):
        agreement(Reported("it grows", Mark.RECALLED), StudyEstimate(1.0))


def test_a_recalled_or_derived_number_is_never_reproduced() -> None:
    for mark, basis, met in product(
        (Mark.RECALLED, Mark.DERIVED), (SOLID, FREE, FITTED, SET_UP_RECALLED), (True, False, None)
    ):
        finding = judge(about(1.0, "", mark), met, basis).finding
        assert finding in {Finding.CONSISTENT, Finding.NOT_CONSISTENT, Finding.OPEN}


@pytest.mark.parametrize(
    ("met", "basis", "verdict"),
    [
        (True, SOLID, "reproduced"),
        (False, SOLID, "not reproduced"),
        (None, SOLID, "open, interval across the end"),
        (True, FREE, "consistent, with 2 free inputs"),
        (False, FREE, "not consistent, with 2 free inputs"),
        (True, free("a"), "consistent, with 1 free input"),
        (True, FITTED, "consistent, by construction"),
        (False, FITTED, "not consistent, though fitted to it"),
        (True, SET_UP_RECALLED, "consistent, set-up recalled"),
        (True, UNDECIDED, "open, can't be told: assumed a link"),
    ],
)
@pytest.mark.parametrize("mark", [Mark.PUBLISHED, Mark.SECONDARY])
def test_what_a_published_number_that_is_met_or_missed_is_worth(
    mark: Mark, met: bool | None, basis: Basis, verdict: str
) -> None:
    assert str(judge(about(1.0, "", mark), met, basis)) == verdict


def test_over_free_inputs_one_case_that_meets_it_makes_it_consistent_and_all_are_counted() -> None:
    some = judge_cases(PUBLISHED, [True, False, None], FREE)
    assert str(some) == "consistent, in 1 of 3 cases, with 2 free inputs"
    assert judge_cases(PUBLISHED, [False, None], FREE).finding is Finding.OPEN
    assert judge_cases(PUBLISHED, [False, False], FREE).finding is Finding.NOT_CONSISTENT
    row = compare("what", PUBLISHED, [StudyEstimate(8.0), StudyEstimate(10.0)], FREE)
    assert (row.ours, row.low, row.high, row.free) == ("8.00 to 10.0 %", 8.0, 10.0, ("a", "b"))


@pytest.mark.parametrize(
    ("within", "ours", "finding"),
    [
        ("± 1 %", (10.05,), Finding.REPRODUCED),
        ("± 1 %", (10.2,), Finding.NOT_REPRODUCED),
        ("± 0.25 points", (10.2,), Finding.REPRODUCED),
        ("4 SE", (10.2, 10.0, 10.4), Finding.REPRODUCED),
        ("a bound", (9.0,), Finding.REPRODUCED),
    ],
)
def test_a_target_of_the_catalogue_names_its_tolerance(
    within: str, ours: tuple[float, ...], finding: Finding
) -> None:
    row = claim([10, "%", "published", within, "what"], StudyEstimate(*ours))
    assert row.quantity == f"what ({within})"
    assert row.verdict.finding is finding


def test_a_target_shows_what_is_undecided() -> None:
    target = [10, "%", "published", "± 1 %", "what", "", ["a link"]]
    row = claim(target, StudyEstimate(10.0))
    assert (row.ours, row.free, row.verdict.finding) == ("10 %", ("a link",), Finding.OPEN)
