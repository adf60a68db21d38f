"""The rules by which ours is judged beside a paper's number."""

from itertools import product
from math import exp, nan
from typing import Any

import pytest

from cprsim.commands.reproduce.estimates import StudyEstimate
from cprsim.commands.reproduce.systems import without_noise
from cprsim.commands.reproduce.verdicts import FITTED, SET_UP_RECALLED, Finding, Target
from cprsim.errors import ParameterError
from cprsim.job.records import Z_95

FREE = ["a", "b"]


def target(paper: str, mark: str, rests_on: str | list[str] = "", **more: Any) -> Target:
    return Target.of("what", rests_on, paper, mark, **more)


@pytest.mark.parametrize(
    ("paper", "within", "ours", "met"),
    [
        ("10 %", "", (10.0,), True),
        ("10 %", "", (10.9, 10.8, 11.0), True),  # 10 % to either side
        ("10 %", "", (10.9, 10.7, 11.1), None),  # across the end
        ("10 %", "", (12.0, 11.1, 12.9), False),
        ("10 %", "", (8.0,), False),
        ("10 %", "", (nan,), None),
        ("10 %", "± 1 %", (10.05, 9.95, 10.15), None),
        ("10 %", "± 0.1 points", (10.25, 10.2, 10.3), False),
        ("10 %", "± 0.3 points", (10.25, 10.2, 10.3), True),
        ("0.001", "± 5e-04", (0.0014,), True),
        ("10 %", "4 SE", (10.39, 10.39 - 0.1 * Z_95, 10.39 + 0.1 * Z_95), True),
        ("10 %", "4 SE", (10.41, 10.41 - 0.1 * Z_95, 10.41 + 0.1 * Z_95), False),
        ("1,156 machine-years", "", (1100.0,), True),
        ("14 to 30 h", "", (20.0, 13.0, 32.0), True),
        ("14 to 30 h", "", (34.0, 33.5, 34.5), False),
        ("over 91 %", "", (91.5, 91.01, 92.0), True),
        ("over 91 %", "", (91.5, 90.9, 92.0), None),
        ("over 91 %", "", (91.0,), False),  # bounds have no slack
        ("at most 4 %", "", (4.0,), True),
        ("at most 4 %", "a bound", (4.1,), False),
    ],
)
def test_a_number_is_met_missed_or_open(
    paper: str, within: str, ours: tuple[float, ...], met: bool | None
) -> None:
    reported = target(paper, "published", within=within)
    assert reported.met_by(StudyEstimate(*ours)) is met
    assert str(reported) == f"{paper} (published)"
    assert f"{paper} ".partition(" ")[2].strip().endswith(reported.unit)


def test_words_need_a_test_and_a_recalled_or_derived_number_is_never_reproduced() -> None:
    with pytest.raises(ParameterError, match="no number"):
        target("it grows", "recalled").met_by(StudyEstimate(1.0))
    for mark, rests_on, met in product(
        ("recalled", "derived"), ("", FREE, FITTED, SET_UP_RECALLED), (True, False, None)
    ):
        finding = target("1", mark, rests_on).judge(met).finding
        assert finding in {Finding.CONSISTENT, Finding.NOT_CONSISTENT, Finding.OPEN}


@pytest.mark.parametrize(
    ("met", "rests_on", "verdict"),
    [
        (True, "", "reproduced"),
        (False, "", "not reproduced"),
        (None, "", "open, interval across the end"),
        (True, FREE, "consistent, with 2 free inputs"),
        (False, FREE, "not consistent, with 2 free inputs"),
        (True, FITTED, "consistent, by construction"),
        (False, FITTED, "not consistent, though fitted to it"),
        (True, SET_UP_RECALLED, "consistent, set-up recalled"),
    ],
)
@pytest.mark.parametrize("mark", ["published", "secondary"])
def test_what_a_published_number_that_is_met_or_missed_is_worth(
    mark: str, met: bool | None, rests_on: str | list[str], verdict: str
) -> None:
    assert str(target("1", mark, rests_on).judge(met)) == verdict
    assert str(Target("what").judge(met)) == "nothing to compare with"


def test_over_free_inputs_one_case_that_meets_it_makes_it_consistent_and_all_are_counted() -> None:
    ten = target("10 %", "published", FREE)
    assert str(ten.judge_cases([True, False, None])) == (
        "consistent, in 1 of 3 cases, with 2 free inputs"
    )
    assert ten.judge_cases([False, None]).finding is Finding.OPEN
    assert ten.judge_cases([False, False]).finding is Finding.NOT_CONSISTENT
    row = ten.claim([StudyEstimate(8.0), StudyEstimate(10.0)])
    assert (row.ours, row.low, row.high, row.free) == ("8.00 to 10.0 %", 8.0, 10.0, ("a", "b"))


def test_a_target_shows_its_tolerance_and_what_is_undecided() -> None:
    near = target("10 %", "published", within="± 1 %", undecided=["a link"])
    row = near.claim(without_noise(near, StudyEstimate(10.0)))
    assert (row.quantity, row.ours, row.free) == ("what (± 1 %)", "10 %", ("a link",))
    assert str(row.verdict) == "open, can't be told: assumed a link"


@pytest.mark.parametrize(
    ("ours", "shown"),
    [
        (StudyEstimate(8.358, 8.308, 8.408), "8.36 ± 0.05 h"),
        (StudyEstimate(0.08461, 0.08333, 0.08589), "0.0846 ± 0.0013 h"),
        (StudyEstimate(0.0000433, -0.000042, 0.0001286), "0.000043 ± 0.000085 h"),
        (StudyEstimate(0.1006, 0.10019, 0.10101), "0.101 ± 0.0004 h"),
        (StudyEstimate(0.92, 0.68, 0.98), "0.92 (0.68 to 0.98) h"),
        (StudyEstimate(exp(1)), "2.72 h"),
    ],
)
def test_numbers_have_the_digits_that_their_interval_leaves(
    ours: StudyEstimate, shown: str
) -> None:
    assert ours.text("h") == shown
