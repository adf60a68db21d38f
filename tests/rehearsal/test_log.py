"""The log says what the job did, by conventions, whatever order facts were learned in."""

from __future__ import annotations

import pytest

from cprsim.kernel.schedule import Lose, of_log
from cprsim.records import EventKind, EventLog
from cprsim.rehearsal.log import FactKind, RunFact, event_log
from cprsim.rehearsal.orders import Orders, Speeds
from cprsim.simulate.folding import cost_breakdown, shard_loss

SPEEDS = Speeds(0.1, 0.5, 1.0, 1.0, 1.0, 1.0)
N = 100  # samples, and seconds of useful work
W = FactKind
K = EventKind


def log_of(
    *facts: RunFact,
    rolls_back: bool = False,
    n_servers: int = 2,
    n_trainers: int = 1,
    repair_s: float | None = None,
) -> EventLog:
    orders = Orders(
        "x", rolls_back, float(N), (), SPEEDS, n_servers=n_servers, n_trainers=n_trainers,
        repair_s=repair_s,
    )  # fmt: skip
    return event_log(sorted(facts, key=lambda fact: fact.at_s), orders, N, 0)


def hours(log: EventLog) -> dict[str, float]:
    columns = cost_breakdown(log, N / 3600).columns()
    return {
        name[:-2]: round(float(column[0]) * 3600, 6)
        for name, column in columns.items()
        if name.endswith("_h") and abs(column[0]) > 1e-9
    }


def kinds(log: EventLog) -> list[EventKind]:
    return [EventKind(kind) for kind in log.kind]


def struck(at: float, slot: int, detected: float, loading: float, back: float) -> list[RunFact]:
    return [
        RunFact(at, W.STRUCK, slot),
        RunFact(detected, W.DETECTED, slot),
        RunFact(loading, W.LOADING, slot),
        RunFact(back, W.BACK, slot),
    ]


START = RunFact(0.0, W.RUNNING, position=0)


def end(at: float) -> list[RunFact]:
    return [RunFact(at, W.STOOD, position=N), RunFact(at, W.FINISHED, position=N)]


def test_one_failure_under_partial_recovery() -> None:
    log = log_of(
        START, *struck(30, 1, 31, 33, 36), RunFact(31.5, W.STOOD, position=30),
        RunFact(36, W.RUNNING, position=30), *end(106),
    )  # fmt: skip
    assert hours(log) == {"wall": 106, "useful": 100, "detect": 1, "reschedule": 2, "load": 3}
    loss = shard_loss(log, 2)
    assert loss.slot.tolist() == [1]
    assert loss.since_save_h[0] * 3600 == pytest.approx(30)


def test_one_failure_under_full_recovery_loses_what_was_not_saved() -> None:
    log = log_of(
        START, RunFact(20, W.STOOD, position=20),
        RunFact(20, W.SAVE_STARTED, number=1), RunFact(22, W.SAVE_COMMITTED, number=1),
        RunFact(22, W.RUNNING, position=20),
        *struck(32, 0, 33, 34, 35), RunFact(33, W.STOOD, position=30),
        RunFact(35, W.RUNNING, position=20), RunFact(45, W.PASSED, position=30), *end(115),
        rolls_back=True,
    )  # fmt: skip
    assert hours(log) == {
        "wall": 115, "useful": 100, "lost": 10, "save": 2, "detect": 1, "reschedule": 1, "load": 1,
    }  # fmt: skip
    assert K.CAUGHT_UP in kinds(log)


@pytest.mark.parametrize("passed_at", [32.5, 33.5], ids=["unnoticed", "noticed"])
def test_work_that_catches_up_in_a_batch_that_outlasts_a_death(passed_at: float) -> None:
    """The trainer waits for the ack of a dead server before it says that it has caught up."""
    log = log_of(
        START, *struck(30, 0, 31, 33, 34), RunFact(31, W.STOOD, position=30),
        RunFact(34, W.RUNNING, position=0), *struck(63.5, 1, 64, 65, 66),
        RunFact(31 + passed_at, W.PASSED, position=30), RunFact(65, W.STOOD, position=30),
        RunFact(66, W.RUNNING, position=0), RunFact(96, W.PASSED, position=30), *end(166),
        rolls_back=True,
    )  # fmt: skip
    assert hours(log)["lost"] == 60
    assert kinds(log).count(K.CAUGHT_UP) == 1


def test_a_commit_that_overtook_a_death_counts_and_comes_before_it() -> None:
    log = log_of(
        START, RunFact(20, W.STOOD, position=20), RunFact(20, W.SAVE_STARTED, number=1),
        *struck(21, 0, 23, 24, 25), RunFact(21.5, W.SAVE_COMMITTED, number=1),
        RunFact(23, W.STOOD, position=20), RunFact(25, W.RUNNING, position=20), *end(105),
    )  # fmt: skip
    at = kinds(log).index(K.SAVE_COMMITTED)
    assert kinds(log)[at + 1] is K.FAILED
    assert log.at_h[at] == log.at_h[at + 1]
    assert shard_loss(log, 2).since_save_h.tolist() == [0.0]
    assert hours(log)["save"] == 1


def test_a_save_that_began_after_a_death_nobody_had_noticed_is_not_in_the_log() -> None:
    log = log_of(
        START, RunFact(20, W.STOOD, position=20), *struck(19.9, 0, 23, 24, 25),
        RunFact(20, W.SAVE_STARTED, number=1), RunFact(23, W.SAVE_ABANDONED, number=1),
        RunFact(23.1, W.STOOD, position=20),
        RunFact(25, W.RUNNING, position=20), *end(105),
    )  # fmt: skip
    assert not {K.SAVE_STARTED, K.SAVE_ABANDONED} & set(kinds(log))
    assert log.progress_h[kinds(log).index(K.FAILED)] * 3600 == pytest.approx(20)


def test_a_save_that_is_struck_is_abandoned_at_the_death() -> None:
    log = log_of(
        START, RunFact(20, W.STOOD, position=20), RunFact(20, W.SAVE_STARTED, number=1),
        *struck(21, 0, 23, 24, 25), RunFact(23, W.SAVE_ABANDONED, number=1),
        RunFact(23.1, W.STOOD, position=20), RunFact(25, W.RUNNING, position=20), *end(105),
    )  # fmt: skip
    at = kinds(log).index(K.SAVE_ABANDONED)
    assert log.at_h[at] * 3600 == pytest.approx(21)
    assert kinds(log)[at + 1] is K.FAILED
    assert shard_loss(log, 2).since_save_h[0] * 3600 == pytest.approx(20)


def test_a_recovery_that_ends_before_the_next_death_is_noticed_is_none() -> None:
    log = log_of(
        START, *struck(30, 0, 31, 32, 33), RunFact(31, W.STOOD, position=30),
        *struck(32.5, 1, 34, 35, 36), RunFact(33, W.RUNNING, position=30),
        RunFact(34.1, W.STOOD, position=30), RunFact(36, W.RUNNING, position=30), *end(106),
    )  # fmt: skip
    assert kinds(log).count(K.RESUMED) == 1
    assert hours(log) == {"wall": 106, "useful": 100, "detect": 2.5, "reschedule": 2, "load": 1.5}


def test_full_recovery_begins_again_for_all_where_one_fails_meanwhile() -> None:
    log = log_of(
        START, *struck(30, 0, 31, 33, 38), RunFact(31, W.STOOD, position=30),
        *struck(34, 1, 35, 37, 38), RunFact(37, W.LOADING, 0), RunFact(38, W.RUNNING, position=0),
        RunFact(68, W.PASSED, position=30), *end(138), rolls_back=True,
    )  # fmt: skip
    found = hours(log)
    assert (found["lost"], found["detect"], found["reschedule"], found["load"]) == (30, 2, 4, 2)


@pytest.mark.parametrize("rolls_back", [True, False])
def test_where_spares_are_finite_the_job_waits_for_the_last(rolls_back: bool) -> None:
    """The other has its spare at once; who waits is struck in vain."""
    back = 0 if rolls_back else 30
    again = [RunFact(71, W.PASSED, position=30)] if rolls_back else []
    log = log_of(
        START, *struck(30, 0, 31, 37, 40), *struck(30, 1, 32, 38, 41),
        RunFact(31, W.GRANTED, 0), RunFact(36, W.GRANTED, 1), RunFact(33, W.MISSED, 1),
        RunFact(32, W.STOOD, position=30), RunFact(41, W.RUNNING, position=back), *again,
        *end(141 - back), rolls_back=rolls_back, repair_s=6.0,
    )  # fmt: skip
    found = hours(log)
    assert (found["detect"], found["wait"], found["reschedule"], found["load"]) == (2, 4, 2, 3)
    assert kinds(log).count(K.MISSED) == 1


def test_the_death_of_the_only_trainer_takes_all_shards_back() -> None:
    log = log_of(
        START, *struck(30, 2, 31, 32, 33), RunFact(31, W.LAYERS_LOST, 2),
        RunFact(31, W.STOOD, position=30), RunFact(33, W.RUNNING, position=30), *end(103),
    )  # fmt: skip
    assert shard_loss(log, 2).slot.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("slots", "trainers", "trainer_lives"),
    [
        ((0, 1), range(2, 3), True),
        ((0, 1, 2), range(2, 3), False),
        ((0, 1, 3), range(2, 4), True),
        ((0, 1, 2, 3), range(2, 4), False),
    ],
)
def test_all_servers_at_once_leave_the_layers_where_the_trainer_lives(
    slots: tuple[int, ...], trainers: range, trainer_lives: bool
) -> None:
    deaths = [fact for slot in slots for fact in struck(30, slot, 31, 32, 33)]
    deaths += [] if trainer_lives else [RunFact(31, W.LAYERS_LOST, 2)]
    log = log_of(
        START, *deaths, RunFact(31, W.STOOD, position=30), RunFact(33, W.RUNNING, position=30),
        *end(103),
    )  # fmt: skip
    (back,) = losses_in(log, trainers)
    assert set(back.servers) == {0, 1}
    assert back.keeps_layers == trainer_lives


def losses_in(log: EventLog, trainers: range) -> list[Lose]:
    """Shards that went back; of two servers."""
    return [one for one in of_log(log, 1.0, range(2), trainers) if isinstance(one, Lose)]


def reverted(*facts: RunFact, n_trainers: int) -> Lose:
    """The last time that shards went back; of two servers."""
    log = log_of(START, *facts, *end(106), n_trainers=n_trainers)
    return losses_in(log, range(2, 2 + n_trainers))[-1]


ALL_BUT_ONE = [fact for slot in (0, 1, 3) for fact in struck(34, slot, 35, 35.5, 36)]


@pytest.mark.parametrize(("back", "keeps_layers"), [(33.5, True), (34.1, True), (35.2, False)])
def test_a_trainer_that_is_back_before_the_job_goes_on_has_the_layers(
    back: float, keeps_layers: bool
) -> None:
    """It was given them before the other died, which may have been found out later."""
    lost = [] if keeps_layers else [RunFact(35, W.LAYERS_LOST, 3)]
    back_to_save = reverted(
        *struck(30, 2, 31, 33, back), RunFact(31, W.STOOD, position=30), *ALL_BUT_ONE, *lost,
        RunFact(36, W.RUNNING, position=30), n_trainers=2,
    )  # fmt: skip
    assert set(back_to_save.servers) == {0, 1}
    assert back_to_save.keeps_layers == keeps_layers


def test_a_trainer_that_loads_after_a_death_is_back_when_it_says_so() -> None:
    """From a third trainer, who lives; else the job would stand still to the end of the log."""
    log = log_of(
        START, *struck(30, 2, 31, 34.1, 34.2), *struck(34, 3, 35, 35.5, 36),
        RunFact(31, W.STOOD, position=30), RunFact(36, W.RUNNING, position=30), *end(106),
        n_trainers=3,
    )  # fmt: skip
    assert hours(log)["useful"] == 100
    at = kinds(log).index(K.REPLACED)
    assert log.at_h[at] * 3600 == pytest.approx(34.2)


def test_a_server_that_dies_with_the_only_trainer_goes_back_once() -> None:
    log = log_of(
        START, *struck(30, 0, 31, 32, 33), *struck(30, 2, 31, 32, 33),
        RunFact(31, W.LAYERS_LOST, 2), RunFact(31, W.STOOD, position=30),
        RunFact(33, W.RUNNING, position=30), *end(103),
    )  # fmt: skip
    assert shard_loss(log, 2).slot.tolist() == [0, 1]


def behind(*facts: RunFact) -> EventLog:
    return log_of(
        START, RunFact(20, W.STOOD, position=20), RunFact(20, W.SAVE_STARTED, number=1),
        RunFact(21, W.SAVE_RESUMED, number=1), RunFact(21, W.RUNNING, position=20), *facts,
        rolls_back=True,
    )  # fmt: skip


def test_the_job_goes_on_beside_a_save_behind_it() -> None:
    log = behind(RunFact(31, W.SAVE_COMMITTED, number=1, position=30), *end(101))
    assert hours(log) == {"wall": 101, "useful": 100, "save": 1}
    at = kinds(log).index(K.SAVE_COMMITTED)
    assert log.progress_h[at] * 3600 == pytest.approx(30)


def test_a_save_behind_the_job_is_abandoned_at_a_death() -> None:
    log = behind(
        *struck(25, 0, 27, 28, 29), RunFact(27, W.ROLLED_BACK, 0, position=0),
        RunFact(27, W.STOOD, position=24), RunFact(29, W.RUNNING, position=0),
        RunFact(53, W.PASSED, position=24), *end(129),
    )  # fmt: skip
    assert kinds(log)[kinds(log).index(K.SAVE_ABANDONED) + 1] is K.FAILED
    assert hours(log)["lost"] == 24


def test_of_two_who_die_at_once_the_first_noticed_takes_nobody_forward() -> None:
    """Copies of a shard were left when the second was noticed dead, and none when the first was."""
    log = behind(
        RunFact(26, W.SAVE_COMMITTED, number=1, position=25),
        *struck(30, 0, 32, 33, 34), *struck(30, 1, 31, 33, 34),
        RunFact(31, W.ROLLED_BACK, 1, position=20), RunFact(32, W.ROLLED_BACK, 0, position=0),
        RunFact(32, W.STOOD, position=29), RunFact(34, W.RUNNING, position=0),
        RunFact(63, W.PASSED, position=29), *end(134),
    )  # fmt: skip
    back = log.progress_h[[kind is K.ROLLED_BACK for kind in kinds(log)]]
    assert (back == 0).all()
    assert hours(log)["lost"] == 29


def test_what_strikes_after_the_end_is_not_in_the_log() -> None:
    log = log_of(START, *end(100), RunFact(100.1, W.STRUCK, 0))
    assert kinds(log)[-1] is K.FINISHED
    assert K.FAILED not in kinds(log)
