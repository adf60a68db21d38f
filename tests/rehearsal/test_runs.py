"""Real processes: whatever strikes them, what they end with is what the kernel makes of the log."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from cprsim.errors import WorkerError
from cprsim.job.records import S_PER_H, EventKind, ShardBy, SubSaves
from cprsim.rehearsal.log import FactKind, event_log
from cprsim.rehearsal.material import Material
from cprsim.rehearsal.nodes import ForkServer, JobProcess, forking
from cprsim.rehearsal.orders import Kill, Orders, SaveBehind
from cprsim.rehearsal.prediction import FoldedRun, folded
from cprsim.rehearsal.saves import JobSaves
from cprsim.rehearsal.store import UNFINISHED
from cprsim.rehearsal.supervisor import FinishedRun, Supervisor
from cprsim.rehearsal.verdict import check_replay
from cprsim.training.kernel.trackers import TRACKER_CLASSES
from tests.rehearsal import making
from tests.rehearsal.making import descendants

pytestmark = pytest.mark.long
TRAINER = making.N_SERVERS  # its slot
SERVERS, BOTH, THREE = (0, 1, 2), (3, 4), (3, 4, 5)
MFU = SubSaves("mfu", 0.25, n_large_tables=5)
TO_FILES = SaveBehind(stall_s=0.05, behind_s=0.3)
TO_PEERS = SaveBehind(stall_s=0.0, behind_s=0.1, to_peers=True, in_flight=2)
Stage = tuple[ForkServer, Material]
Struck = list[tuple[float, tuple[int, ...]]]


def staged(**how: Any) -> Callable[[], Iterator[Stage]]:
    @pytest.fixture(scope="module")
    def there() -> Iterator[Stage]:
        what = making.material(**how)
        with forking(what) as fork_server:
            yield fork_server, what

    return there


stage = staged(optimizer="adagrad")
of_tables = staged(by=ShardBy.TABLES)
in_step = staged(optimizer="adam", n_trainers=2)
three_in_step = staged(n_trainers=3)


def ordered(stage: Stage, struck: Struck, patient: bool = False, **how: Any) -> Orders:
    """Orders; to be patient is to send heartbeats that a busy machine does not miss."""
    fields = {name: how.pop(name) for name in ("n_spares", "repair_s", "limit_s") if name in how}
    kills = [Kill(at_s, slots) for at_s, slots in struck]
    todo = replace(making.orders(stage[1], *kills, **how), **fields)
    slow = replace(todo.speeds, heartbeat_s=0.2, timeout_s=1.5)
    return replace(todo, speeds=slow) if patient else todo


def rehearsed(stage: Stage, todo: Orders) -> tuple[FinishedRun, FoldedRun]:
    """Run it, and hold it to its replay."""
    ran = making.run(*stage, todo)
    log = event_log(ran.facts, todo, stage[1].n_samples, 0)
    assert check_replay(ran, log, stage[1]).agrees
    assert descendants(stage[0].process.pid) == []
    return ran, folded(log, todo.useful_s / S_PER_H, making.N_SERVERS)


def n_failed(run: FoldedRun) -> int:
    return int((run.log.kind == EventKind.FAILED).sum())


def layers_lost(ran: FinishedRun) -> list[int]:
    return [fact.slot for fact in ran.facts if fact.layers_lost]


def abandoned(ran: FinishedRun) -> list[int]:
    return [fact.number for fact in ran.facts if fact.what is FactKind.SAVE_ABANDONED]


STRUCK: dict[str, tuple[str, Struck, dict[str, Any]]] = {
    "servers, one while saving": (
        "stage", [(0.3, (1,)), (0.65, (0,)), (1.5, (0, 2)), (2.6, (1,))], {"stall_s": 0.3},
    ),
    "the trainer alone and with a server": ("stage", [(0.5, (TRAINER,)), (1.6, (0, TRAINER))], {}),
    "everybody": ("stage", [(1.0, (*SERVERS, TRAINER))], {}),
    "shards of whole tables": ("of_tables", [(0.5, (1,))], {}),
    "of two trainers both, then one after the other": (
        "in_step", [(0.5, BOTH), (1.5, (TRAINER,)), (1.6, (1, TRAINER + 1))], {},
    ),
}  # fmt: skip
IN_STEP: dict[str, tuple[str, Struck, dict[str, Any]]] = {
    "one of two keeps the layers: only a server's rows go back": (
        "in_step", [(0.4, (TRAINER,)), (1.3, (TRAINER + 1,)), (2.2, (0, TRAINER))], {},
    ),
    "with all servers one of two: the layers do not go back with the shards": (
        "in_step", [(1.0, (*SERVERS, TRAINER)), (2.4, SERVERS)], {},
    ),
    "two of three, one with all servers, all": (
        "three_in_step",
        [(0.5, (TRAINER, TRAINER + 2)), (2.8, (*SERVERS, TRAINER + 1)), (5.4, THREE)],
        {"patient": True, "useful_s": 4.0},
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "rolls_back"), [*product(STRUCK, (True, False)), *product(IN_STEP, (False,))]
)
def test_whoever_dies_the_job_comes_back(
    request: pytest.FixtureRequest, name: str, rolls_back: bool
) -> None:
    """Trainers in step keep the layers while one of them lives."""
    fixture, struck, how = (STRUCK | IN_STEP)[name]
    stage = request.getfixturevalue(fixture)
    ran, run = rehearsed(stage, ordered(stage, struck, rolls_back=rolls_back, **how))
    assert n_failed(run) == sum(len(slots) for _, slots in struck)
    if name in STRUCK:
        assert ran.n_false_alarms == 0
    else:
        lost_with_all = [True] if struck[-1][1] == THREE else []
        assert [slot >= TRAINER for slot in layers_lost(ran)] == lost_with_all
    if "only a server" in name:
        assert run.log.slot[run.log.kind == EventKind.REVERTED].tolist() == [0]


@pytest.mark.parametrize("tracker", TRACKER_CLASSES)
def test_priority_saving(stage: Stage, tracker: str) -> None:
    struck = [(0.45, (1,)), (1.4, (0,)), (2.4, (TRAINER,))]
    how = replace(MFU, tracker=tracker)
    _, run = rehearsed(stage, ordered(stage, struck, sub_saves=how, saves=2.2))
    assert (run.log.kind == EventKind.SUB_SAVE_COMMITTED).any()


def test_saves_behind_the_job(stage: Stage) -> None:
    """A server dies while one is on its way, then the trainer, then one during a recovery."""
    struck = [(0.8, (1,)), (2.0, (TRAINER,)), (3.2, (0,)), (3.55, (2,))]
    ran, run = rehearsed(stage, ordered(stage, struck, rolls_back=True, behind=(TO_FILES,)))
    assert n_failed(run) == 4
    assert {FactKind.SAVE_RESUMED, FactKind.SAVE_ABANDONED} <= {fact.what for fact in ran.facts}
    assert run.costs.hours_of("lost")[0] > 0


@pytest.mark.parametrize(
    ("last", "from_files"), [((2,), False), ((0, 1), True)], ids=["one", "neighbours"]
)
def test_copies_in_the_memory_of_peers(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, last: tuple[int, ...], from_files: bool
) -> None:
    """They serve while one of two holders is left; else the job goes back to older files."""
    recall, recalled = JobSaves.recall, []

    async def noted(self: JobSaves) -> bool:
        recalled.append(await recall(self))
        return recalled[-1]

    monkeypatch.setattr(JobSaves, "recall", noted)
    behind = TO_PEERS, replace(TO_FILES, stall_s=0.0)
    struck = [(1.3, (1,)), (2.3, (TRAINER,)), (3.6, last)]
    ran, run = rehearsed(stage, ordered(stage, struck, rolls_back=True, saves=9.1, behind=behind))
    assert n_failed(run) == 2 + len(last)
    back = [fact.position for fact in ran.facts if fact.what is FactKind.DETECTED]
    assert 0 < back[0] <= back[1]
    assert recalled == [True, True, not from_files]


@pytest.mark.parametrize("rolls_back", [True, False], ids=["full", "partial"])
def test_the_job_waits_where_no_spare_is_left(stage: Stage, rolls_back: bool) -> None:
    """Of two who die at once one waits for a repair, and is struck in vain meanwhile."""
    struck = [(0.5, (0, 2)), (3.0, (2,)), (6.0, (1,))]
    scarce = {"n_spares": 1, "repair_s": 4.0, "useful_s": 4.0}
    ran, run = rehearsed(stage, ordered(stage, struck, True, rolls_back=rolls_back, **scarce))
    given = [fact.at_s for fact in ran.facts if fact.what is FactKind.GRANTED]
    noticed = [fact.at_s for fact in ran.facts if fact.what is FactKind.DETECTED]
    assert (run.log.kind == EventKind.MISSED).sum() == 1
    assert given[0] == noticed[1]  # who died at once ask at once
    assert given[1] == pytest.approx(4.5, abs=0.2)
    waited_s = float(run.costs.hours_of("wait")[0]) * S_PER_H
    assert waited_s == pytest.approx(given[1] - max(noticed[:2]))
    assert n_failed(run) == 3


def instead(patch: pytest.MonkeyPatch, method: str, other: Callable[..., Any]) -> None:
    """Have the supervisor do something else; it is given the method, and what that is called on."""
    original = getattr(Supervisor, method)

    def called(self: Supervisor, *args: Any) -> Any:
        return other(partial(original, self), self, *args)

    patch.setattr(Supervisor, method, called)


@pytest.mark.parametrize("late_s", [None, 0.01], ids=["before it is asked for", "while it writes"])
def test_the_trainer_dies_as_a_sub_save_begins(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, late_s: float | None
) -> None:
    """It has reported the save's position, and its death is not noticed before the servers vote."""
    left = [Kill(0.0, (TRAINER,))]

    async def with_strike(save: Any, self: Supervisor, due: Any) -> None:
        if due.number == 3 and left:
            strike = partial(self._strike_slots, left.pop())
            if late_s is None:
                strike()
            else:
                asyncio.get_running_loop().call_later(late_s, strike)
        await save(due)

    instead(monkeypatch, "_save", with_strike)
    ran, run = rehearsed(stage, ordered(stage, [], True, sub_saves=MFU, saves=2.2))
    assert n_failed(run) == 1
    assert abandoned(ran) == [3]


def test_of_two_trainers_the_one_without_a_part_is_left_alone(
    in_step: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server dies while one has both parts of a batch; as all stand, it dies with all servers."""
    gates: list[asyncio.Server] = []
    left = [Kill(0.0, (*SERVERS, TRAINER))]

    async def through_a_gate(tell: Any, self: Supervisor) -> None:
        node = self._node[TRAINER + 1]
        address = node.address
        if not gates:
            node.address = f"{address}.gate"
            through = partial(gate, address, time.monotonic() + 0.5, gates)
            gates.append(await asyncio.start_unix_server(through, node.address))
        await tell()
        node.address = address

    async def then_struck(halt: Any, self: Supervisor) -> None:
        await halt()
        while left:
            self._strike_slots(left.pop())

    instead(monkeypatch, "_register", through_a_gate)
    instead(monkeypatch, "_halt", then_struck)
    ran, run = rehearsed(in_step, ordered(in_step, [(0.6, (0,))], patient=True))
    assert n_failed(run) == 5
    assert layers_lost(ran) == []


async def gate(
    address: str, closes_at: float, gates: list[asyncio.Server], sender: Any, back: Any
) -> None:
    """Forward what one process sends another, until nothing comes through any more."""
    gates[0].close()  # one is enough
    _, receiver = await asyncio.open_unix_connection(address)
    with closing(receiver), closing(back):
        while data := await sender.read(1 << 16):
            if time.monotonic() < closes_at:
                receiver.write(data)


def struck_while_fenced(detect: Any, self: Supervisor, slot: int, node: JobProcess) -> None:
    """It takes its time to die; its death is known, and will not be noticed once more."""
    node.signal = lambda number: None  # type: ignore[method-assign]
    detect(slot, node)
    self._strike_slots(Kill(0.0, (slot,)))
    del node.signal
    node.signal(signal.SIGKILL)


async def deaf(watch: Any, self: Supervisor) -> None:
    """A living server whose heartbeats get lost: a false alarm."""
    node = self._node[1]
    take = node.take
    node.take = lambda number, kind, *what: (  # type: ignore[method-assign]
        kind == "beat" or take(number, kind, *what)
    )
    await watch()


def with_false_alarm(strike: Any, self: Supervisor, kill: Kill) -> None:
    """Servers 1 and 2 die together; later 2 dies alone, and 1 is taken for dead at that instant."""
    strike(kill)
    if kill.slots == (2,):
        self._detect(1, self._node[1])


async def from_outside(_: Any, self: Supervisor) -> None:
    await asyncio.sleep(0.5)
    self._node[1].signal(signal.SIGKILL)


def with_full_disk(write: Any, self: Supervisor) -> None:
    write()
    path = self._store.part("1", 1)
    path.with_name(path.name + UNFINISHED).symlink_to("/dev/full")


HANGS = Kill(0.5, (1,), stops=True)
UNFORESEEN: dict[str, tuple[Any, list[Kill], dict[str, Any], list[int]]] = {
    "": (None, [HANGS], {}, [1, 0, 0]),
    "_detect": (struck_while_fenced, [HANGS], {"patient": True, "limit_s": 20.0}, [1, 0, 1]),
    "_watch": (deaf, [], {}, [1, 1, 0]),
    "_strike_slots": (
        with_false_alarm,
        [Kill(0.3, (1, 2)), Kill(3.2, (2,))],
        {"n_spares": 2, "repair_s": 0.3, "patient": True, "limit_s": 12.0},
        [4, 1, 0],
    ),
    "_strike": (from_outside, [], {}, [1, 0, 0]),
    "_write_first_images": (with_full_disk, [Kill(1.9, (1,))], {"patient": True}, [1, 0, 0]),
}


@pytest.mark.parametrize("method", UNFORESEEN)
def test_what_no_plan_foresaw_is_recovered_from(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    other, kills, how, expected = UNFORESEEN[method]
    if method:
        instead(monkeypatch, method, other)
    ran, run = rehearsed(stage, replace(ordered(stage, [], **how), kills=tuple(kills)))
    n_missed = int((run.log.kind == EventKind.MISSED).sum())
    assert [n_failed(run), ran.n_false_alarms, n_missed] == expected
    if other is with_full_disk:
        assert 1 in abandoned(ran)


def torn_image(write: Any, self: Supervisor) -> None:
    write()
    path = self._store.image("1")
    path.write_bytes(path.read_bytes()[:-100])


async def struck_first(assign: Any, self: Supervisor, slot: int) -> None:
    if slot == 1:
        self._node[slot].signal(signal.SIGKILL)
    await assign(slot)


@pytest.mark.parametrize(
    ("method", "other", "said"),
    [
        ("_write_first_images", torn_image, "image-1 is torn or damaged"),
        ("_assign", struck_first, "ended before the run began"),
    ],
)
def test_what_can_not_be_recovered_from_ends_the_run_with_one_sentence(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, method: str, other: Callable[..., Any], said: str
) -> None:
    instead(monkeypatch, method, other)
    with pytest.raises(WorkerError, match=said):
        making.run(*stage, ordered(stage, [(0.3, (1,))], saves=0.5))
    assert descendants(stage[0].process.pid) == []


RANDOM_RUNS = int(os.environ.get("CPRSIM_RANDOM_RUNS", "3"))  # a hundred take six minutes
RANDOM: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "one trainer": ("stage", [{}, {"sub_saves": MFU}, {"behind": (TO_PEERS, TO_FILES)}]),
    "two in step": ("in_step", [{}, {"sub_saves": replace(MFU, tracker="ssu")}]),
    "three in step": ("three_in_step", [{}]),
    "finite spares": ("in_step", [{"n_spares": n, "repair_s": 0.8} for n in range(3)]),
}


@pytest.mark.parametrize("number", range(RANDOM_RUNS))
@pytest.mark.parametrize("name", RANDOM)
def test_random_kills(request: pytest.FixtureRequest, name: str, number: int) -> None:
    fixture, hows = RANDOM[name]
    stage, how = request.getfixturevalue(fixture), hows[number % len(hows)]
    rng = np.random.default_rng(1000 * [*RANDOM].index(name) + number)
    n_slots = TRAINER + stage[1].n_trainers
    kills = []
    for at_s in np.sort(rng.uniform(0, 3.0, rng.integers(1, 7))):
        n = 1 if rng.random() < 0.7 else int(rng.integers(2, n_slots + 1))
        slots = rng.permutation(n_slots)[:n]
        kills.append(Kill(float(at_s), tuple(map(int, slots)), stops=bool(rng.random() < 0.2)))
    rolls_back = "behind" in how or ("sub_saves" not in how and bool(rng.random() < 0.5))
    todo = ordered(stage, [], rolls_back=rolls_back, saves=2.2, **how)
    rehearsed(stage, replace(todo, kills=tuple(kills)))
