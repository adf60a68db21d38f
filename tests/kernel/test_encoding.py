import numpy as np
import pytest

from cprsim.errors import ParameterError
from cprsim.job.model_shape import CRITEO_KAGGLE, TableLayout
from cprsim.training.kernel.clicks.encoding import (
    encode,
    rows_of,
    scale_of,
    standardised,
    tables_of,
    vocabulary_of,
)
from cprsim.training.kernel.clicks.generated import generate
from cprsim.training.kernel.clicks.records import (
    MISSING_CATEGORY,
    Clicks,
    RawClicks,
    n_train,
    split,
)


def column(*values: int) -> np.ndarray:
    return np.array(values, np.int64)[:, None]


def test_frequent_values_get_rows_by_falling_count_and_the_rest_share_one():
    """A missing category is a value like any other."""
    gap = MISSING_CATEGORY
    vocabulary = vocabulary_of(column(9, 7, 7, 7, gap, gap, gap, gap, 3, 3, 5, 5, 1), 2)
    assert tables_of(vocabulary).rows == (5,)
    seen = rows_of(vocabulary, column(gap, 7, 3, 5, 9, 1, 12345))[:, 0]
    assert seen.tolist() == [1, 2, 3, 4, 0, 0, 0]  # of equals the lower value first


def test_integers_are_standardised_logarithms_and_missing_is_average():
    raw = np.array([[0.0, 5.0], [np.e - 1, 5.0], [np.nan, np.nan], [-3.0, 5.0]], np.float32)
    scaled = standardised(raw, *scale_of(raw))
    logs = np.array([0.0, 1.0, 0.0])
    expected = (logs - logs.mean()) / logs.std()
    np.testing.assert_allclose(scaled[[0, 1, 3], 0], expected, rtol=1e-5)
    assert scaled[2].tolist() == [0, 0]
    assert scaled[:, 1].tolist() == [0, 0, 0, 0]  # never varies


def test_what_an_encoding_learns_it_learns_from_the_training_part_alone():
    rng = np.random.default_rng(1)

    def raw(last: int) -> RawClicks:
        categories = np.full((7, 26), 5, np.int64)
        categories[-1] = last
        return RawClicks(np.zeros(7, np.float32), integers, categories)

    integers = rng.integers(0, 9, (7, 13)).astype(np.float32)
    for last, row in ((5, 1), (6, 0)):
        train, test = encode(raw(last)[: n_train(7)], raw(last)[n_train(7) :], 1)
        assert train.tables.rows == test.tables.rows == (2,) * 26
        assert (test.rows == train.tables.first_row[:-1] + row).all()


def test_the_test_share_is_the_end_of_the_log():
    clicks = generate(TableLayout((10, 4)), 137, seed=1)[0]
    train, test = split(clicks)
    assert len(train) == int(137 * 6 / 7)
    assert (np.concatenate([train.label, test.label]) == clicks.label).all()
    assert n_train(137_139) == 117_547


@pytest.mark.parametrize("row", [-1, 10, 9_999_999])
def test_rows_outside_their_table_never_reach_the_compiled_loops(row):
    rows = np.array([[row, 10]], np.int32)
    with pytest.raises(ParameterError, match="outside its table"):
        Clicks(TableLayout((10, 4)), np.zeros(1, np.float32), np.zeros((1, 13), np.float32), rows)


def test_generated_clicks_do_not_depend_on_how_many_are_drawn():
    tables = CRITEO_KAGGLE.tables.capped(1000)
    few, many = generate(tables, 1000, seed=3)[0], generate(tables, 70_000, seed=3)[0]
    for name in ("label", "integers", "rows"):
        assert (getattr(few, name) == getattr(many, name)[:1000]).all()
