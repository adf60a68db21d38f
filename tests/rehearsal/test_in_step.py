"""Whether a batch counts in which a halt has found trainers in step."""

from __future__ import annotations

import pytest

from cprsim.rehearsal.in_step import counts


def halted(position: int) -> dict[str, int]:
    return {"position": position}


def undecided(whole: bool) -> dict[str, int]:
    return {"position": 128, "whole": whole}


@pytest.mark.parametrize(
    ("answers", "count"),
    [
        ([undecided(True), undecided(True)], True),  # one who is dead may have counted it
        ([undecided(True)], True),
        ([undecided(True), halted(256)], True),
        ([undecided(True), undecided(False)], False),  # then nobody has
        ([undecided(False)], False),
        ([undecided(True), halted(128)], False),  # that one had not begun it
    ],
)
def test_a_batch_counts_where_all_who_live_have_all_of_it(
    answers: list[dict[str, int]], count: bool
) -> None:
    assert counts(answers) == count
