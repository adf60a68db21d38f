"""Which replications a block holds."""

from __future__ import annotations

import pytest

from cprsim.failures.block import FIRST_REPLICATIONS, block_of, replications_of
from cprsim.failures.sources import MOST_REPLICATIONS


@pytest.mark.parametrize("most", [1, 7, FIRST_REPLICATIONS, 5000, MOST_REPLICATIONS])
def test_blocks_follow_each_other_and_each_replication_is_in_one(most: int) -> None:
    blocks = [replications_of(most, number) for number in range(4)]
    assert blocks[0].start == 0
    for number, block in enumerate(blocks):
        assert 1 <= len(block) <= most
        assert number == 0 or block.start == blocks[number - 1].stop
        for replication in (block.start, block[len(block) // 2], block[-1]):
            assert block_of(most, replication) == number


def test_a_run_of_the_usual_size_draws_no_more_than_it_needs() -> None:
    assert len(replications_of(MOST_REPLICATIONS, 0)) == FIRST_REPLICATIONS
    assert len(replications_of(MOST_REPLICATIONS, 1)) == MOST_REPLICATIONS
