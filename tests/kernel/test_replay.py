"""A log written by hand, and the run by hand that it has to give."""

from dataclasses import asdict
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest

from cprsim.job.records import Activity, EventKind, EventLog, SubSaves
from cprsim.training.kernel.playing import Course, play
from cprsim.training.kernel.saving import Saver
from cprsim.training.kernel.schedule import of_log
from cprsim.training.kernel.shards import Shards
from cprsim.training.kernel.trackers import TRACKER_CLASSES
from tests.simulators import FULL, failures, job_of, logged
from tests.simulators import PARTIAL as PARTIALLY

USEFUL_H = 30.0  # 3000 samples: 100 in an hour
SLOTS = range(2, 6)  # the embedding servers stand behind two other nodes
TRAINERS = range(2)


def log_of(*events: tuple[EventKind, float] | tuple[EventKind, float, int]) -> EventLog:
    """Events by kind, progress [h] and slot; wall time does not matter, but has to differ."""
    n, progress_h = len(events), np.array([event[1] for event in events], float)
    same_instant = [b[:2] == a[:2] for a, b in pairwise(events)]
    return EventLog(
        replication=np.zeros(n, np.int64),
        at_h=np.cumsum([0, *(0 if same else 1 for same in same_instant)]).astype(float),
        kind=np.array([event[0] for event in events], np.int64),
        activity=np.full(n, Activity.USEFUL, np.int64),
        progress_h=progress_h,
        slot=np.array([event[2] if len(event) == 3 else -1 for event in events], np.int64),
    )


def replay(
    log: EventLog, trainer, saver, slots=SLOTS, trainers=TRAINERS
) -> tuple[np.ndarray, np.ndarray]:
    course = Course(trainer)
    play(trainer, saver, of_log(log, USEFUL_H, slots, trainers), course.go_to)
    return course.curve()


@pytest.fixture
def new_run(new_trainer):
    def new(how: SubSaves | None = None, optimizer: str = "adagrad"):
        trainer = new_trainer(optimizer, schedule="linear")
        return trainer, Saver(trainer, Shards(trainer.shape.tables, len(SLOTS)), how)

    return new


def bits_of(trainer, saver) -> list[object]:
    """All that decides how a run goes on, with its saves."""
    tracked = saver.tracker.state()
    arrays = (trainer.arrays(), asdict(saver.stored), tracked)
    return [saver.bytes_written, *(one.tobytes() for some in arrays for one in some.values())]


K = EventKind
PARTIAL = log_of(
    (K.STARTED, 0.0),
    (K.SUB_SAVE_STARTED, 10.0),
    (K.SAVE_RESUMED, 10.0),
    (K.SUB_SAVE_COMMITTED, 11.0),  # written while the job went on
    (K.FAILED, 16.004, 3),
    (K.REVERTED, 16.004, 3),
    (K.RESUMED, 16.004),
    (K.SAVE_STARTED, 20.0),
    (K.SAVE_ABANDONED, 20.0),
    (K.FAILED, 20.0, 2),
    (K.FAILED, 20.0, 5),
    (K.REVERTED, 20.0, 2),
    (K.REVERTED, 20.0, 5),
    (K.SAVE_STARTED, 20.0),
    (K.SAVE_COMMITTED, 20.0),
    (K.FINISHED, 30.0),
)


@pytest.mark.parametrize("tracker", [None, *TRACKER_CLASSES])
def test_a_log_is_replayed_event_by_event(new_run, tracker):
    how = tracker and SubSaves(tracker, 0.5, n_large_tables=3)
    replayed, by_hand = new_run(how), new_run(how)
    replay(PARTIAL, *replayed)

    trainer, saver = by_hand
    trainer.run(1000)
    saver.start(ends_interval=False)
    trainer.run(1100)
    saver.commit()
    trainer.run(1600)
    saver.lose([1])
    trainer.run(2000)
    saver.start()
    saver.abandon()
    saver.lose([0, 3])
    saver.save()
    trainer.observe = None
    trainer.run(3000)
    assert bits_of(*replayed) == bits_of(*by_hand)


@pytest.mark.parametrize(
    ("before", "resumed", "at_once", "keeps_layers"),
    [
        ((), False, (0,), True),
        ((), False, (0, 1), False),
        ((0,), False, (1,), False),
        ((0,), True, (1,), True),
    ],
)
def test_all_servers_at_once_leave_the_layers_to_a_trainer_that_is_left(
    new_run, before, resumed, at_once, keeps_layers
):
    log = log_of(
        (K.SAVE_STARTED, 10.0),
        (K.SAVE_COMMITTED, 10.0),
        *((K.FAILED, 15.0, slot) for slot in before),
        *[(K.RESUMED, 15.5)][: int(resumed)],
        *((K.FAILED, 16.0, slot) for slot in (*SLOTS, *at_once)),
        *((K.REVERTED, 16.0, slot) for slot in SLOTS),
        (K.FINISHED, 16.0),
    )
    log.at_h[:] = log.progress_h  # what fails at 16 h does so at one instant
    (trainer, saver), whole = new_run(), new_run()[0]
    replay(log, trainer, saver)
    whole.run(1600 if keeps_layers else 1000)
    assert trainer.model.dense.tobytes() == whole.model.dense.tobytes()
    assert trainer.optimizer.dense_state.tobytes() == whole.optimizer.dense_state.tobytes()
    assert trainer.model.table.tobytes() == saver.stored.table.tobytes()


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam"])
def test_full_recovery_ends_bitwise_as_the_run_without_failures(new_run, optimizer):
    log = log_of(
        (K.SAVE_STARTED, 10.0),
        (K.SAVE_COMMITTED, 10.0),
        (K.FAILED, 16.3, 3),
        (K.ROLLED_BACK, 10.0),
        (K.CAUGHT_UP, 16.3),
        (K.SAVE_STARTED, 20.0),
        (K.SAVE_ABANDONED, 20.0),
        (K.ROLLED_BACK, 10.0),
        (K.SAVE_STARTED, 20.0),
        (K.SAVE_COMMITTED, 20.0),
        (K.FINISHED, 30.0),
    )
    (failed, saver), (whole, _) = (new_run(optimizer=optimizer) for _ in range(2))
    (_, loss), course = replay(log, failed, saver), Course(whole)
    course.go_to(3000)
    assert failed.model.table.tobytes() == whole.model.table.tobytes()
    assert failed.model.dense.tobytes() == whole.model.dense.tobytes()
    assert (loss == course.curve()[1]).all()


@pytest.mark.parametrize("tracker", [None, *TRACKER_CLASSES])
@pytest.mark.parametrize("background_h", [None, 1.0])
def test_what_a_simulated_job_logs_can_be_replayed(new_run, tracker, background_h):
    """Saves are struck in their stall and after it, and one may be on its way at the end."""
    how = tracker and SubSaves(tracker, 0.5, n_large_tables=3)
    strikes = failures("9.95 node 1, 10.25 node 1, 11 node 2, 22.1 node 0 3")
    costs = {"useful_h": USEFUL_H, "save_h": 0.5, "background_h": background_h}
    for on_failure in (PARTIALLY, FULL) if how is None else (PARTIALLY,):
        trainer, saver = new_run(how)
        log = logged(job_of(on_failure, 9.8, how, **costs), strikes)
        abandoned = (log.kind == K.SAVE_ABANDONED).sum()
        assert abandoned >= 1
        with patch.object(saver, "abandon", wraps=saver.abandon) as abandon:
            replay(log, trainer, saver, range(4), range(0))
        assert abandon.call_count == abandoned
        assert trainer.position == 3000
        saver.fork()  # raises where a save is under way


def test_the_curve_is_the_mean_loss_between_marks(new_run):
    """Of a job that was given up, too: it stops where it stood."""
    (trainer, saver), (straight, _) = new_run(), new_run()
    positions, loss = replay(
        log_of((K.SAVE_STARTED, 2.5), (K.SAVE_COMMITTED, 2.5), (K.STOPPED, 12.0)), trainer, saver
    )
    assert trainer.position == 1200
    assert 1100 < positions[-1] <= 1200
    expected = [straight.run(int(position)) for position in positions]
    np.testing.assert_allclose(loss, expected, rtol=1e-9)


def test_saves_come_one_at_a_time(new_run):
    _, saver = new_run()
    saver.start()
    for forbidden in (saver.start, lambda: saver.lose([0]), saver.fork):
        with pytest.raises(RuntimeError, match="a save is under way"):
            forbidden()
    saver.commit()
    with pytest.raises(RuntimeError, match="no save"):
        saver.commit()
