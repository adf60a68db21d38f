import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.errors import ParameterError
from cprsim.job.model_shape import CRITEO_KAGGLE, TableLayout
from cprsim.job.records import ShardBy
from cprsim.training.kernel.shards import Shards

layouts = st.lists(st.integers(1, 30), min_size=1, max_size=6).map(
    lambda rows: TableLayout(tuple(rows))
)


@given(layouts, st.integers(1, 9), st.sampled_from(ShardBy))
def test_every_row_is_held_once_and_within_its_table(layout, n_servers, by):
    shards = Shards(layout, n_servers, by)
    held = np.zeros(layout.n_rows, int)
    for segment in shards.segments:
        rows = np.arange(layout.n_rows)[segment.rows]
        held[rows] += 1
        assert len(rows) == segment.n_rows
        assert (segment.ids(np.arange(segment.n_rows)) == rows).all()
        assert layout.first_row[segment.table] <= rows.min()
        assert rows.max() < layout.first_row[segment.table + 1]
    assert (held == 1).all()
    assert shards.share.sum() == pytest.approx(1)


def test_whole_tables_make_failures_uneven():
    shards = Shards(CRITEO_KAGGLE.tables, 8, ShardBy.TABLES)
    assert len(shards.segments) == 26
    assert shards.share.max() == pytest.approx(10131227 / 33762577)
    assert shards.share.min() < 0.02


def test_servers_that_do_not_exist_cannot_fail():
    with pytest.raises(ParameterError, match="servers are 0 to 1"):
        Shards(TableLayout((4,)), 2).of_servers([2])
