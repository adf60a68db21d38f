"""The log says what the job did, by conventions, whatever order facts were learned in."""

import pytest

from cprsim.job.records import EventKind, EventLog
from cprsim.rehearsal.log import FactKind, RunFact, event_log
from cprsim.rehearsal.orders import Orders, Speeds
from cprsim.simulation.folding import cost_breakdown, shard_loss
from cprsim.training.kernel.schedule import of_log

SPEEDS = Speeds(0.1, 0.5, 1.0, 1.0, 1.0, 1.0)
N = 100  # samples, and seconds of useful work
W = FactKind
K = EventKind


def log_of(*facts: RunFact, rolls_back: bool = False, **how) -> EventLog:
    orders = Orders("x", rolls_back, float(N), (), SPEEDS, **{"n_servers": 2, **how})
    return event_log(sorted((START, *facts), key=lambda fact: fact.at_s), orders, N, 0)


def hours(log: EventLog) -> dict[str, float]:
    columns = cost_breakdown(log, N / 3600).columns()
    return {
        name[:-2]: round(float(column[0]) * 3600, 6)
        for name, column in columns.items()
        if name.endswith("_h") and abs(column[0]) > 1e-9
    }


def kinds(log: EventLog) -> list[EventKind]:
    return [EventKind(kind) for kind in log.kind]


def struck(
    at: float, slot: int, detected: float, loading: float, back: float, back_to: int = 0,
    layers_lost: bool = False,
) -> list[RunFact]:  # fmt: skip
    whats = {W.STRUCK: at, W.LOADING: loading, W.BACK: back}
    known = RunFact(detected, W.DETECTED, slot, back_to, layers_lost=layers_lost)
    return [known, *(RunFact(at_s, what, slot) for what, at_s in whats.items())]


def at(what: FactKind, at_s: float, position: int) -> RunFact:
    return RunFact(at_s, what, position=position)


def save(begins: float, ends: float, how: FactKind = W.SAVE_COMMITTED) -> list[RunFact]:
    return [RunFact(begins, W.SAVE_STARTED, number=1), RunFact(ends, how, number=1)]


START = at(W.RUNNING, 0.0, 0)


def end(at_s: float) -> list[RunFact]:
    return [at(W.STOOD, at_s, N), at(W.FINISHED, at_s, N)]


BEHIND = [at(W.STOOD, 20, 20), *save(20, 21, W.SAVE_RESUMED), at(W.RUNNING, 21, 20)]
SPARES = [
    *struck(30, 0, 31, 37, 40), *struck(30, 1, 32, 38, 41), RunFact(31, W.GRANTED, 0),
    RunFact(36, W.GRANTED, 1), RunFact(33, W.MISSED, 1), at(W.STOOD, 32, 30),
]  # fmt: skip
CATCHES_UP = [
    *struck(30, 0, 31, 33, 34), at(W.STOOD, 31, 30), at(W.RUNNING, 34, 0),
    *struck(63.5, 1, 64, 65, 66), at(W.STOOD, 65, 30), at(W.RUNNING, 66, 0),
    at(W.PASSED, 96, 30), *end(166),
]  # fmt: skip
PARTIAL, FULL = {}, {"rolls_back": True}
COURSES = {
    "one failure under partial recovery": (
        PARTIAL,
        [
            *struck(30, 1, 31, 33, 36), at(W.STOOD, 31.5, 30), at(W.RUNNING, 36, 30), *end(106),
        ],
        {"wall": 106, "useful": 100, "detect": 1, "reschedule": 2, "load": 3},
    ),
    "one failure under full recovery loses what was not saved": (
        FULL,
        [
            at(W.STOOD, 20, 20), *save(20, 22), at(W.RUNNING, 22, 20),
            *struck(32, 0, 33, 34, 35, 20), at(W.STOOD, 33, 30), at(W.RUNNING, 35, 20),
            at(W.PASSED, 45, 30), *end(115),
        ],
        {"lost": 10, "save": 2, "detect": 1, "reschedule": 1, "load": 1},
    ),
    "work catches up in a batch that outlasts a death nobody has noticed": (
        FULL, [*CATCHES_UP, at(W.PASSED, 63.5, 30)], {"lost": 60},
    ),
    "work catches up in a batch that outlasts a death that was noticed": (
        FULL, [*CATCHES_UP, at(W.PASSED, 64.5, 30)], {"lost": 60},
    ),
    "a recovery that ends before the next death is noticed is none": (
        PARTIAL,
        [
            *struck(30, 0, 31, 32, 33), at(W.STOOD, 31, 30), *struck(32.5, 1, 34, 35, 36),
            at(W.RUNNING, 33, 30), at(W.STOOD, 34.1, 30), at(W.RUNNING, 36, 30), *end(106),
        ],
        {"wall": 106, "useful": 100, "detect": 2.5, "reschedule": 2, "load": 1.5},
    ),
    "full recovery begins again for all where one fails meanwhile": (
        FULL,
        [
            *struck(30, 0, 31, 33, 38), at(W.STOOD, 31, 30), *struck(34, 1, 35, 37, 38),
            RunFact(37, W.LOADING, 0), at(W.RUNNING, 38, 0), at(W.PASSED, 68, 30), *end(138),
        ],
        {"lost": 30, "detect": 2, "reschedule": 4, "load": 2},
    ),
    "full recovery waits for the last spare": (
        {**FULL, "repair_s": 6.0},
        [*SPARES, at(W.RUNNING, 41, 0), at(W.PASSED, 71, 30), *end(141)],
        {"lost": 30, "detect": 2, "wait": 4, "reschedule": 2, "load": 3},
    ),
    "partial recovery waits for the last spare": (
        {"repair_s": 6.0}, [*SPARES, at(W.RUNNING, 41, 30), *end(111)],
        {"detect": 2, "wait": 4, "reschedule": 2, "load": 3},
    ),
    "the job goes on beside a save behind it": (
        FULL, [*BEHIND, RunFact(31, W.SAVE_COMMITTED, number=1, position=30), *end(101)],
        {"wall": 101, "useful": 100, "save": 1},
    ),
    "what strikes after the end is not in the log": (
        PARTIAL, [*end(100), RunFact(100.1, W.STRUCK, 0)], {"wall": 100, "useful": 100},
    ),
    "a save behind the job is abandoned at a death": (
        FULL,
        [
            *BEHIND, *struck(25, 0, 27, 28, 29),
            at(W.STOOD, 27, 24), at(W.RUNNING, 29, 0), at(W.PASSED, 53, 24), *end(129),
        ],
        {"lost": 24},
    ),
    "of two who die at once the first noticed takes nobody forward": (
        FULL,  # copies of a shard were left when the second was noticed, and none with the first
        [
            *BEHIND, RunFact(26, W.SAVE_COMMITTED, number=1, position=25),
            *struck(30, 0, 32, 33, 34), *struck(30, 1, 31, 33, 34, 20),
            at(W.STOOD, 32, 29), at(W.RUNNING, 34, 0), at(W.PASSED, 63, 29), *end(134),
        ],
        {"lost": 29},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COURSES)
def test_the_parts_of_a_course_add_up(name: str) -> None:
    how, facts, parts = COURSES[name]
    log = log_of(*facts, **how)
    found = hours(log)
    assert {part: found[part] for part in parts} == parts
    assert sum(found.values()) == pytest.approx(2 * found["wall"])
    assert kinds(log)[-1] is K.FINISHED
    n_missed = sum(fact.what is W.MISSED for fact in facts)
    assert kinds(log).count(K.MISSED) == n_missed
    assert kinds(log).count(K.CAUGHT_UP) == ("lost" in parts)


@pytest.mark.parametrize(
    ("begins", "ends", "how", "before_failure", "lost_s"),
    [
        pytest.param(20, 21.5, W.SAVE_COMMITTED, K.SAVE_COMMITTED, 0, id="a commit overtook it"),
        pytest.param(20, 23, W.SAVE_ABANDONED, K.SAVE_ABANDONED, 20, id="it is abandoned"),
        pytest.param(21.5, 23, W.SAVE_ABANDONED, K.STARTED, 20, id="it began unnoticed: none"),
    ],
)
def test_a_save_that_a_death_meets_ends_with_it(
    begins: float, ends: float, how: FactKind, before_failure: EventKind, lost_s: float
) -> None:
    log = log_of(
        at(W.STOOD, 20, 20), *save(begins, ends, how), *struck(21, 0, 23, 24, 25),
        at(W.STOOD, 23.1, 20), at(W.RUNNING, 25, 20), *end(105),
    )  # fmt: skip
    place = kinds(log).index(K.FAILED)
    assert kinds(log)[place - 1] is before_failure
    assert log.at_h[place] * 3600 == pytest.approx(21)
    assert shard_loss(log, 2).since_save_h * 3600 == pytest.approx(lost_s)
    assert hours(log).get("save", 0) == (0 if begins > 21 else 1)


def require_back(keeps_layers: bool, *facts: RunFact, n_trainers: int) -> None:
    """Both servers go back once, with the layers or without."""
    log = log_of(*facts, *end(106), n_trainers=n_trainers)
    schedule = of_log(log, 1.0, range(2), range(2, 2 + n_trainers))
    back = [one for one in schedule if one.kind is EventKind.REVERTED][-1]
    assert sorted(back.servers) == shard_loss(log, 2).slot.tolist() == [0, 1]
    assert back.keeps_layers == keeps_layers


@pytest.mark.parametrize(
    ("slots", "n_trainers", "trainer_lives"),
    [
        ((2,), 1, False), ((0, 2), 1, False), ((0, 1), 1, True), ((0, 1, 2), 1, False),
        ((0, 1, 3), 2, True), ((0, 1, 2, 3), 2, False),
    ],
)  # fmt: skip
def test_all_servers_at_once_leave_the_layers_where_a_trainer_lives(
    slots: tuple[int, ...], n_trainers: int, trainer_lives: bool
) -> None:
    lost = {max(slots): not trainer_lives}
    deaths = [f for s in slots for f in struck(30, s, 31, 32, 33, 0, lost.get(s, False))]
    stands = at(W.STOOD, 31, 30), at(W.RUNNING, 33, 30)
    require_back(trainer_lives, *deaths, *stands, n_trainers=n_trainers)


@pytest.mark.parametrize(("back", "keeps_layers"), [(33.5, True), (34.1, True), (35.2, False)])
def test_a_trainer_that_is_back_before_the_job_goes_on_has_the_layers(
    back: float, keeps_layers: bool
) -> None:
    """It was given them before the other died, which may have been found out later."""
    lost = {3: not keeps_layers}
    others = [f for s in (0, 1, 3) for f in struck(34, s, 35, 35.5, 36, 0, lost.get(s, False))]
    first = *struck(30, 2, 31, 33, back), at(W.STOOD, 31, 30)
    require_back(keeps_layers, *first, *others, at(W.RUNNING, 36, 30), n_trainers=2)


def test_a_trainer_that_loads_after_a_death_is_back_when_it_says_so() -> None:
    """From a third trainer, who lives; else the job would stand still to the end of the log."""
    log = log_of(
        *struck(30, 2, 31, 34.1, 34.2), *struck(34, 3, 35, 35.5, 36), at(W.STOOD, 31, 30),
        at(W.RUNNING, 36, 30), *end(106), n_trainers=3,
    )  # fmt: skip
    assert hours(log)["useful"] == 100
    assert log.at_h[kinds(log).index(K.REPLACED)] * 3600 == pytest.approx(34.2)
