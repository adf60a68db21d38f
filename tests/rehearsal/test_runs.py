"""Real processes: whatever strikes them, what they end with is what the kernel makes of the log."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cprsim.kernel.trackers import TRACKERS
from cprsim.records import EventKind, ShardBy, SubSaves
from cprsim.rehearsal.behind import SavedContent, SavesBehind
from cprsim.rehearsal.log import FactKind
from cprsim.rehearsal.material import Material
from cprsim.rehearsal.nodes import ForkServer, JobProcess
from cprsim.rehearsal.orders import SECONDS, DueSave, Kill, Orders, SaveBehind
from cprsim.rehearsal.prediction import FoldedRun
from cprsim.rehearsal.store import UNFINISHED
from cprsim.rehearsal.supervisor import FinishedRun, RunError, Supervisor
from tests.rehearsal import making

pytestmark = pytest.mark.long
TRAINER = making.N_SERVERS  # its slot


def staged(**how: Any) -> Callable[[], Iterator[tuple[ForkServer, Material]]]:
    @pytest.fixture(scope="module")
    def there() -> Iterator[tuple[ForkServer, Material]]:
        what = making.material(**how)
        with ForkServer(what) as fork_server:
            yield fork_server, what

    return there


stage = staged(optimizer="adagrad")
of_tables = staged(by=ShardBy.TABLES)
in_step = staged(optimizer="adam", n_trainers=2)
three_in_step = staged(n_trainers=3)
_number = 0


def rehearsed(stage: tuple[ForkServer, Material], todo: Orders) -> tuple[FinishedRun, FoldedRun]:
    """Run it, and hold it to its replay."""
    global _number
    _number += 1
    fork_server, what = stage
    ran = making.run(fork_server, what, todo, f"t{_number}")
    measured, beside = making.beside_replay(ran, what)
    assert beside.equal_bits
    assert beside.bytes_saved == beside.bytes_of_replay
    assert left_of(fork_server) == []
    return ran, measured


def left_of(fork_server: ForkServer) -> list[int]:
    """Processes of the fork_server that are still there."""
    assert fork_server._process is not None
    return children_of(fork_server._process.pid)


def children_of(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def struck(run: FoldedRun) -> int:
    return int((run.log.kind == EventKind.FAILED).sum())


BOTH = (TRAINER, TRAINER + 1)
SERVERS = (0, 1, 2)
STRUCK = {
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


@pytest.mark.parametrize("rolls_back", [True, False], ids=["full", "partial"])
@pytest.mark.parametrize("name", STRUCK)
def test_whoever_dies_the_job_comes_back(
    request: pytest.FixtureRequest, name: str, rolls_back: bool
) -> None:
    fixture, kills, how = STRUCK[name]
    there = request.getfixturevalue(fixture)
    some = [Kill(at_s, slots) for at_s, slots in kills]
    ran, run = rehearsed(there, making.orders(there[1], *some, rolls_back=rolls_back, **how))
    assert struck(run) == sum(len(slots) for _, slots in kills)
    assert ran.n_false_alarms == 0


@pytest.mark.parametrize("tracker", TRACKERS)
def test_priority_saving(stage: tuple[ForkServer, Material], tracker: str) -> None:
    how = SubSaves(tracker, 0.25, n_large_tables=5)
    todo = making.orders(
        stage[1], Kill(0.45, (1,)), Kill(1.4, (0,)), Kill(2.4, (TRAINER,)),
        sub_saves=how, saves=2.2,
    )  # fmt: skip
    _, run = rehearsed(stage, todo)
    assert (run.log.kind == EventKind.SUB_SAVE_COMMITTED).any()


@pytest.mark.parametrize("late_s", [None, 0.01], ids=["before it is asked for", "while it writes"])
def test_the_trainer_dies_as_a_sub_save_begins(
    stage: tuple[ForkServer, Material],
    monkeypatch: pytest.MonkeyPatch,
    late_s: float | None,
) -> None:
    """It has reported the save's position; its death is not noticed before the servers vote."""
    save = Supervisor._save
    left = [Kill(0.0, (TRAINER,))]

    async def with_strike(self: Supervisor, due: DueSave) -> None:
        if due.number == 3 and left:
            strike = left.pop()
            if late_s is None:
                self._strike_slots(strike)
            else:
                asyncio.get_running_loop().call_later(late_s, self._strike_slots, strike)
        await save(self, due)

    monkeypatch.setattr(Supervisor, "_save", with_strike)
    how = SubSaves("mfu", 0.25, n_large_tables=5)
    ran, run = rehearsed(stage, making.orders(stage[1], sub_saves=how, saves=2.2))
    assert struck(run) == 1
    abandoned = [fact.number for fact in ran.facts if fact.what is FactKind.SAVE_ABANDONED]
    assert abandoned == ([3] if late_s is None else [])


TO_FILES = SaveBehind(stall_s=0.05, behind_s=0.3)
TO_PEERS = SaveBehind(stall_s=0.0, behind_s=0.1, to_peers=True, in_flight=2)


def test_saves_behind_the_job(stage: tuple[ForkServer, Material]) -> None:
    """A server dies while one is on its way, then the trainer, then one during a recovery."""
    todo = making.orders(
        stage[1], Kill(0.8, (1,)), Kill(2.0, (TRAINER,)), Kill(3.2, (0,)), Kill(3.55, (2,)),
        rolls_back=True, behind=(TO_FILES,),
    )  # fmt: skip
    ran, run = rehearsed(stage, todo)
    assert struck(run) == 4
    kinds = [fact.what for fact in ran.facts]
    assert FactKind.SAVE_RESUMED in kinds
    assert FactKind.SAVE_ABANDONED in kinds
    assert run.costs.hours_of("lost")[0] > 0


@pytest.mark.parametrize(
    ("last", "from_files"), [((2,), False), ((0, 1), True)], ids=["one", "neighbours"]
)
def test_copies_in_the_memory_of_peers(
    stage: tuple[ForkServer, Material],
    monkeypatch: pytest.MonkeyPatch,
    last: tuple[int, ...],
    from_files: bool,
) -> None:
    """They serve while one of two holders is left; else the job goes back to older files."""
    recall, recalled = SavesBehind.recall, []

    async def noted(self: SavesBehind, content: SavedContent) -> None:
        recalled.append(content)
        await recall(self, content)

    monkeypatch.setattr(SavesBehind, "recall", noted)
    todo = making.orders(
        stage[1], Kill(1.3, (1,)), Kill(2.3, (TRAINER,)), Kill(3.6, last),
        rolls_back=True, saves=9.1, behind=(TO_PEERS, replace(TO_FILES, stall_s=0.0)),
    )  # fmt: skip
    ran, run = rehearsed(stage, todo)
    assert struck(run) == 2 + len(last)
    back = [fact.position for fact in ran.facts if fact.what is FactKind.ROLLED_BACK]
    assert 0 < back[0] <= back[1]
    assert len(recalled) == (2 if from_files else 3)


def test_of_three_trainers_in_step_two_die_at_once_with_servers(
    three_in_step: tuple[ForkServer, Material],
) -> None:
    """Who is left has all of every batch that counts, and gives both replacements its layers."""
    todo = making.orders(
        three_in_step[1], Kill(0.5, (TRAINER, TRAINER + 2)), Kill(2.8, (0, 1, 2, TRAINER + 1)),
        Kill(5.4, (TRAINER, TRAINER + 1, TRAINER + 2)),
    )  # fmt: skip
    ran, run = rehearsed(three_in_step, patient(replace(todo, useful_s=4.0)))
    assert struck(run) == 9
    lost = [
        fact.slot in range(TRAINER, TRAINER + 3)
        for fact in ran.facts
        if fact.what is FactKind.LAYERS_LOST
    ]
    assert lost == [True]


def test_of_two_trainers_in_step_one_keeps_the_layers(
    in_step: tuple[ForkServer, Material],
) -> None:
    """Each dies once, then one with a server: nothing goes back but that server's rows."""
    todo = making.orders(
        in_step[1], Kill(0.4, (TRAINER,)), Kill(1.3, (TRAINER + 1,)), Kill(2.2, (0, TRAINER)),
    )  # fmt: skip
    _, run = rehearsed(in_step, todo)
    assert struck(run) == 4
    assert run.log.slot[run.log.kind == EventKind.REVERTED].tolist() == [0]


def test_all_servers_and_one_of_two_trainers_die_at_once(
    in_step: tuple[ForkServer, Material],
) -> None:
    """The other keeps the layers: they do not go back with the shards."""
    todo = making.orders(in_step[1], Kill(1.0, (0, 1, 2, TRAINER)), Kill(2.4, (0, 1, 2)))
    ran, run = rehearsed(in_step, todo)
    assert struck(run) == 7
    assert FactKind.LAYERS_LOST not in [fact.what for fact in ran.facts]


def test_of_two_trainers_the_one_without_a_part_is_left_alone(
    in_step: tuple[ForkServer, Material], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server dies while one has both parts of a batch; as all stand, it dies with all servers."""
    tell, halt = Supervisor._registered, Supervisor._halt
    gates: list[Gate] = []
    left = [Kill(0.0, (0, 1, 2, TRAINER))]

    def through_a_gate(self: Supervisor) -> list[Any]:
        node = self._node[TRAINER + 1]
        address = node.address
        if not gates:
            gates.append(Gate(address))
            gates[0].closes_at = time.monotonic() + 0.5
            node.address = gates[0].address
        asked = tell(self)
        node.address = address
        return asked

    async def then_struck(self: Supervisor) -> None:
        await halt(self)
        while left:
            self._strike_slots(left.pop())

    monkeypatch.setattr(Supervisor, "_registered", through_a_gate)
    monkeypatch.setattr(Supervisor, "_halt", then_struck)
    ran, run = rehearsed(in_step, patient(making.orders(in_step[1], Kill(0.6, (0,)))))
    gates[0].join(10)
    assert struck(run) == 5
    assert FactKind.LAYERS_LOST not in [fact.what for fact in ran.facts]


def patient(todo: Orders) -> Orders:
    """The same with heartbeats that a busy machine does not miss."""
    return replace(todo, speeds=replace(todo.speeds, heartbeat_s=0.2, timeout_s=1.5))


class Gate(threading.Thread):
    """Forwards what one process sends another, until nothing comes through any more."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._listener, self._to = socket.socket(socket.AF_UNIX), address
        self._listener.bind(f"{address}.gate")
        self._listener.listen()
        self.address, self.closes_at = f"{address}.gate", inf
        self.start()

    def run(self) -> None:
        with (
            self._listener,
            self._listener.accept()[0] as sender,
            socket.socket(socket.AF_UNIX) as on,
        ):
            on.connect(self._to)
            while data := sender.recv(1 << 16):
                if time.monotonic() < self.closes_at:
                    on.sendall(data)


@pytest.mark.parametrize("rolls_back", [True, False], ids=["full", "partial"])
def test_the_job_waits_where_no_spare_is_left(
    stage: tuple[ForkServer, Material], rolls_back: bool
) -> None:
    """Of two who die at once one waits for a repair, and is struck in vain meanwhile."""
    todo = making.orders(
        stage[1], Kill(0.5, (0, 2)), Kill(3.0, (2,)), Kill(6.0, (1,)), rolls_back=rolls_back
    )
    scarce = patient(replace(todo, useful_s=4.0, n_spares=1, repair_s=4.0))
    ran, run = rehearsed(stage, scarce)
    given = [fact.at_s for fact in ran.facts if fact.what is FactKind.GRANTED]
    noticed = [fact.at_s for fact in ran.facts if fact.what is FactKind.DETECTED]
    assert [kind for kind in run.log.kind if kind == EventKind.MISSED] == [EventKind.MISSED]
    assert given[0] == noticed[1]  # who died at once ask at once
    assert given[1] == pytest.approx(4.5, abs=0.2)
    waited_s = float(run.costs.hours_of("wait")[0]) * SECONDS
    assert waited_s == pytest.approx(given[1] - max(noticed[:2]))
    assert struck(run) == 3


def test_a_server_that_hangs_is_noticed_and_fenced(
    stage: tuple[ForkServer, Material],
) -> None:
    ran, run = rehearsed(stage, making.orders(stage[1], Kill(0.5, (1,), stops=True)))
    assert struck(run) == 1
    assert ran.n_false_alarms == 0


def test_who_is_struck_while_it_is_fenced_is_struck_in_vain(
    stage: tuple[ForkServer, Material], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes its time to die; its death is known, and will not be noticed once more."""
    detect = Supervisor._detect

    def then_struck(self: Supervisor, slot: int, node: JobProcess) -> None:
        node.signal = lambda number: None  # type: ignore[method-assign]
        detect(self, slot, node)
        self._strike_slots(Kill(0.0, (slot,)))
        del node.signal
        node.signal(signal.SIGKILL)

    monkeypatch.setattr(Supervisor, "_detect", then_struck)
    todo = patient(making.orders(stage[1], Kill(0.5, (1,), stops=True)))
    _, run = rehearsed(stage, replace(todo, limit_s=20.0))
    assert struck(run) == 1
    assert (run.log.kind == EventKind.MISSED).sum() == 1


def test_a_false_alarm_is_fenced_by_a_kill(
    stage: tuple[ForkServer, Material], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A living server whose heartbeats get lost."""
    watch = Supervisor._watch

    async def deaf(self: Supervisor) -> None:
        node = self._node[1]
        take = node.take

        def lossy(message: object) -> None:
            if getattr(message, "kind", "") != "beat":
                take(message)  # type: ignore[arg-type]

        node.take = lossy  # type: ignore[method-assign]
        await watch(self)

    monkeypatch.setattr(Supervisor, "_watch", deaf)
    ran, run = rehearsed(stage, making.orders(stage[1]))
    assert ran.n_false_alarms == 1
    assert struck(run) == 1


def test_a_child_that_is_killed_from_outside_is_recovered_from(
    stage: tuple[ForkServer, Material], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def strike(self: Supervisor) -> None:
        await asyncio.sleep(0.5)
        os.kill(self._node[1].pid, signal.SIGKILL)

    monkeypatch.setattr(Supervisor, "_strike", strike)
    ran, run = rehearsed(stage, making.orders(stage[1]))
    assert (struck(run), ran.n_false_alarms) == (1, 0)


def test_a_false_alarm_waits_for_none_of_an_earlier_strike(
    stage: tuple[ForkServer, Material], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers 1 and 2 die together; later 2 dies alone, and 1 is taken for dead at that instant."""
    strike = Supervisor._strike_slots

    def with_false_alarm(self: Supervisor, kill: Kill) -> None:
        strike(self, kill)
        if kill.slots == (2,):
            self._detect(1, self._node[1])

    monkeypatch.setattr(Supervisor, "_strike_slots", with_false_alarm)
    kills = Kill(0.3, (1, 2)), Kill(3.2, (2,))
    todo = patient(making.orders(stage[1], *kills))
    ran, run = rehearsed(stage, replace(todo, n_spares=2, repair_s=0.3, limit_s=12.0))
    assert ran.n_false_alarms == 1
    assert struck(run) == 4


def test_a_full_disk_costs_a_save_and_nothing_else(
    stage: tuple[ForkServer, Material], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Supervisor._write_first_images

    def with_full_disk(self: Supervisor) -> None:
        write(self)
        path = self._store.part("1", 1)
        path.with_name(path.name + UNFINISHED).symlink_to("/dev/full")

    monkeypatch.setattr(Supervisor, "_write_first_images", with_full_disk)
    ran, run = rehearsed(stage, making.orders(stage[1], Kill(1.9, (1,))))
    abandoned = [fact.number for fact in ran.facts if fact.what is FactKind.SAVE_ABANDONED]
    assert 1 in abandoned
    assert struck(run) == 1


def test_a_torn_image_ends_the_run_and_names_the_file(
    stage: tuple[ForkServer, Material], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Supervisor._write_first_images

    def torn(self: Supervisor) -> None:
        write(self)
        path = self._store.image("1")
        path.write_bytes(path.read_bytes()[:-100])

    monkeypatch.setattr(Supervisor, "_write_first_images", torn)
    todo = making.orders(stage[1], Kill(0.3, (1,)), saves=0.5)
    with pytest.raises(RunError, match="image-1 is torn or damaged"):
        making.run(stage[0], stage[1], todo, "torn")
    assert left_of(stage[0]) == []


def test_a_process_that_ends_before_the_run_begins_is_not_waited_for(
    stage: tuple[ForkServer, Material], monkeypatch: pytest.MonkeyPatch
) -> None:
    assign = Supervisor._assign

    async def struck_first(self: Supervisor, slot: int) -> None:
        if slot == 1:
            self._node[slot].signal(signal.SIGKILL)
        await assign(self, slot)

    monkeypatch.setattr(Supervisor, "_assign", struck_first)
    with pytest.raises(RunError, match="ended before the run began"):
        making.run(stage[0], stage[1], making.orders(stage[1]), "never-begun")
    assert left_of(stage[0]) == []


RANDOM_RUNS = int(os.environ.get("CPRSIM_RANDOM_RUNS", "3"))  # a hundred take six minutes


RANDOM = {
    "stage": (None, SubSaves("mfu", 0.25, n_large_tables=5), None),
    "in_step": (None, SubSaves("ssu", 0.25, n_large_tables=5)),
    "three_in_step": (None,),
}


@pytest.mark.parametrize("number", range(RANDOM_RUNS))
@pytest.mark.parametrize("name", RANDOM)
def test_random_kills(request: pytest.FixtureRequest, name: str, number: int) -> None:
    how = RANDOM[name][number % len(RANDOM[name])]
    behind = (TO_PEERS, TO_FILES) if name == "stage" and number % 3 == 2 else ()
    seed = 1000 * [*RANDOM].index(name) + number
    struck_at_random(request.getfixturevalue(name), seed, how, behind)


@pytest.mark.parametrize("number", range(RANDOM_RUNS))
def test_random_kills_where_spares_are_finite(
    in_step: tuple[ForkServer, Material], number: int
) -> None:
    struck_at_random(in_step, 3000 + number, None, n_spares=number % 3, repair_s=0.8)


def struck_at_random(
    stage: tuple[ForkServer, Material],
    seed: int,
    how: SubSaves | None,
    behind: tuple[SaveBehind, ...] = (),
    **spares: Any,
) -> None:
    rng, n_slots = np.random.default_rng(seed), TRAINER + stage[1].n_trainers
    kills = []
    for at_s in np.sort(rng.uniform(0, 3.0, rng.integers(1, 7))):
        n = 1 if rng.random() < 0.7 else int(rng.integers(2, n_slots + 1))
        slots = rng.permutation(n_slots)[:n]
        kills.append(Kill(float(at_s), tuple(map(int, slots)), stops=bool(rng.random() < 0.2)))
    rolls_back = bool(behind) or (how is None and bool(rng.random() < 0.5))
    todo = making.orders(
        stage[1], *kills, rolls_back=rolls_back, sub_saves=how, saves=2.2, behind=behind
    )
    rehearsed(stage, replace(todo, **spares))


# --------------------------------------------------------------------------- the supervisor's end

ENDLESS = """
import sys
from tests.rehearsal import making
what = making.material()
from cprsim.rehearsal.nodes import ForkServer
with ForkServer(what) as fork_server:
    print(fork_server.folder, fork_server._process.pid, flush=True)
    making.run(fork_server, what, making.orders(what, useful_s=100.0), "endless")
"""


@pytest.fixture
def endless() -> Iterator[tuple[subprocess.Popen[str], Path, list[int]]]:
    """A supervisor that works on, its folder, and all processes under it."""
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, cwd=root, env=os.environ | {"PYTHONPATH": str(root)},
    )  # fmt: skip
    assert process.stdout is not None
    folder, pid = process.stdout.readline().split()
    deadline = time.monotonic() + 60
    while len(children_of(int(pid))) < TRAINER + 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    yield process, Path(folder), [int(pid), *children_of(int(pid))]
    process.kill()
    process.wait()
    process.stdout.close()


def gone(pids: list[int]) -> bool:
    return not any(is_there(pid) for pid in pids)


def is_there(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_process_survives_the_supervisor(
    endless: tuple[subprocess.Popen[str], Path, list[int]], number: int
) -> None:
    process, folder, pids = endless
    assert len(pids) > TRAINER + 1
    process.send_signal(number)
    process.wait(timeout=30)
    deadline = time.monotonic() + 10
    while not gone(pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert gone(pids)
    if number == signal.SIGINT:  # it was asked, and tidies up
        assert not folder.exists()
    else:  # it could not: the next one does
        assert folder.exists()
        with ForkServer(making.material()):
            assert not folder.exists()
