"""Each tracker's choice, what a commit does to it, and what it loses with its server."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.errors import ParameterError
from cprsim.job.model_shape import TableLayout
from cprsim.job.records import ShardBy
from cprsim.training.kernel.shards import Shards
from cprsim.training.kernel.trackers import TRACKER_CLASSES, Tracked, Tracker, most_urgent
from cprsim.training.kernel.weights import momentum_of

LAYOUT = TableLayout((12, 3, 16))
LARGE = (0, 2)  # rows 0 to 11, and 15 to 30


def tracked(fraction: float = 0.25, n_servers: int = 1, period: int = 1) -> Tracked:
    segments = Shards(LAYOUT, n_servers).of_tables(LARGE)
    table = np.zeros((LAYOUT.n_rows, 4), np.float32)
    return Tracked(LAYOUT, segments, fraction, table, table.copy(), seed=1, sample_period=period)


def seen(tracker: Tracker, *pairs: tuple[int, int]) -> None:
    """A batch: each sample one row of the first large table, one of the second."""
    tracker.observe(np.array([(a, 12, 15 + b) for a, b in pairs], np.int32))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 30))
def test_urgent_rows_are_those_that_sorting_finds(scores, k):
    by_sorting = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:k]
    expected = sorted(i for i in by_sorting if scores[i] > 0)
    assert most_urgent(np.array(scores), k).tolist() == expected


def test_mfu_clears_what_a_commit_saved_and_keeps_what_came_after():
    tracker = TRACKER_CLASSES["mfu"](tracked(1 / 16))
    seen(tracker, (7, 1), (7, 1), (3, 1))
    assert tracker.choose().tolist() == [7, 16]
    seen(tracker, (7, 5))  # while the save is being written
    tracker.committed()
    assert tracker.choose().tolist() == [3, 15 + 5]  # 7 has one left, as 3: the lower id
    tracker.committed()
    assert tracker.choose().tolist() == [7]


@pytest.mark.parametrize("optimizer", ["adagrad", "adam"])
def test_momentum_chooses_the_used_rows_with_most_of_it(optimizer):
    what = tracked(1 / 8)
    state = np.zeros(len(what.table) if optimizer == "adagrad" else (len(what.table), 8))
    state[[1, 2, 3, 4]] = np.reshape([1.0, 5.0, 3.0, 9.0], (4, *[1] * (state.ndim - 1)))
    if optimizer == "adam":
        state[1, 4:] = 100.0  # means of squares: no momentum
    tracker = TRACKER_CLASSES["momentum"](replace(what, momentum=momentum_of(state, what.table)))
    seen(tracker, (1, 0), (1, 0), (2, 0), (3, 0))
    assert tracker.choose().tolist() == [2, 3]  # 4 was not used; of the other table none has any
    tracker.abandoned()
    assert tracker.choose().tolist() == [2, 3]
    tracker.committed()
    assert tracker.choose().tolist() == [1]


def test_momentum_needs_an_optimizer_that_keeps_some():
    with pytest.raises(ParameterError, match="sgd keeps nothing"):
        TRACKER_CLASSES["momentum"](tracked(1 / 8))


def test_scar_chooses_by_distance_from_the_saved_copy():
    what = tracked(0.125)
    what.table[[1, 2, 3]] = [[3, 0, 0, 0], [0, 1, 1, 0], [2, 2, 2, 0]]
    what.saved_table[1] = [2.9, 0, 0, 0]
    tracker = TRACKER_CLASSES["scar"](what)
    assert tracker.choose().tolist() == [2, 3]
    what.saved_table[[2, 3]] = what.table[[2, 3]]
    assert tracker.choose().tolist() == [1]


def test_ssu_lists_every_second_sample_across_batches():
    tracker = TRACKER_CLASSES["ssu"](tracked(1.0, period=2))
    seen(tracker, (0, 0), (1, 1), (2, 2))
    seen(tracker, (3, 3), (4, 4))
    assert tracker.choose().tolist() == [0, 2, 4, 15, 17, 19]


def test_ssu_begins_anew_with_a_save_and_takes_an_abandoned_one_back():
    tracker = TRACKER_CLASSES["ssu"](tracked(1.0))
    seen(tracker, (1, 1), (5, 5))
    tracker.choose()
    seen(tracker, (1, 9))
    tracker.abandoned()
    assert tracker.choose().tolist() == [1, 5, 16, 20, 24]
    tracker.committed()
    assert tracker.choose().tolist() == []


def test_round_robin_covers_every_row_once_per_interval_and_abandoned_parts_again():
    tracker = TRACKER_CLASSES["round-robin"](tracked(0.25, n_servers=2))
    chosen = []
    for _ in range(4):
        part = tracker.choose().tolist()
        tracker.abandoned()
        assert tracker.choose().tolist() == part
        tracker.committed()
        chosen += part
    assert sorted(chosen) == [*range(12), *range(15, 31)]


@pytest.mark.parametrize("name", ["mfu", "ssu"])
def test_what_a_tracker_knows_is_lost_with_the_server(name):
    tracker = TRACKER_CLASSES[name](tracked(1.0, n_servers=2))
    seen(tracker, (2, 0), (3, 1), (4, 2), (5, 3))  # rows 2 to 5 and 15 to 18
    tracker.forget(1)
    assert tracker.choose().tolist() == [2, 4, 16, 18]


@pytest.mark.parametrize("name", TRACKER_CLASSES)
@pytest.mark.parametrize("by", ShardBy)
def test_choices_stay_within_the_budget_of_each_segment(name, by):
    layout = TableLayout((200, 3, 90))
    segments = Shards(layout, 3, by).of_tables((0, 2))
    rng = np.random.default_rng(0)
    table = rng.standard_normal((layout.n_rows, 4)).astype(np.float32)
    what = Tracked(
        layout, segments, 0.125, table, 0 * table, seed=1, sample_period=2, momentum=table
    )
    tracker = TRACKER_CLASSES[name](what)
    for _ in range(20):
        tracker.observe(
            np.stack([rng.integers(a, b, 64) for a, b in ((0, 200), (200, 203), (203, 293))], 1)
        )
    chosen = np.zeros(layout.n_rows, bool)
    chosen[tracker.choose()] = True
    for segment, budget in zip(segments, tracker.budgets, strict=True):
        assert 0 < chosen[segment.rows].sum() <= budget
    assert not chosen[200:203].any()


@pytest.mark.parametrize(
    ("name", "dimension", "paper_percent", "tolerance"),
    [
        ("scar", 16, 100, 0.5),  # recalled, as the others; the large tables only
        ("mfu", 16, 6.25, 0.01),
        ("ssu", 16, 0.78, 0.01),
        ("ssu", 128, 0.097, 0.001),
    ],
)
def test_memory_is_what_the_paper_says(name, dimension, paper_percent, tolerance):
    layout = TableLayout((100, 200_000, 30_000, 7))
    table = np.zeros((layout.n_rows, dimension), np.float32)
    segments = Shards(layout, 8).of_tables(layout.largest(2))
    tracker = TRACKER_CLASSES[name](
        Tracked(layout, segments, 0.125, table, table, seed=1, sample_period=2)
    )
    percent = 100 * tracker.memory_bytes / table.nbytes
    assert percent == pytest.approx(paper_percent, abs=tolerance)
