"""Whether a batch counts in which a halt has found trainers in step."""

from __future__ import annotations

import pytest

from cprsim.rehearsal.in_step import counts

WHOLE, PART = (128, True), (128, False)  # what who has a batch in hand answers to a halt


@pytest.mark.parametrize(
    ("stand", "count"),
    [
        ([WHOLE, WHOLE], True),  # one who is dead may have counted it
        ([WHOLE], True),
        ([WHOLE, (256, None)], True),
        ([WHOLE, PART], False),  # then nobody has
        ([PART], False),
        ([WHOLE, (128, None)], False),  # that one had not begun it
    ],
)
def test_a_batch_counts_where_all_who_live_have_all_of_it(
    stand: list[tuple[int, bool | None]], count: bool
) -> None:
    assert counts(stand) == count
