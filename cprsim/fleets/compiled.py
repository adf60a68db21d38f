"""The jobs of a large fleet on one clock, by the compiled loop, which takes what it can.

`refusal` is the list of what it can't. SimPy (`events`) runs those fleets, decides what is right
(the tests hold both to each other), and takes small ones sooner than a compiler would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cprsim.fleets.events import RemoteSaves
from cprsim.fleets.records import Arrival, Ran, Shared
from cprsim.records import Floats, Ints
from cprsim.simulate.blocks import FIRST_DRAWS, BlockDraws, ScopedFailures
from cprsim.simulate.job import SimulatedJob
from cprsim.simulate.numbers import (
    FINISHED,
    LEFT,
    MOST_CAPTURES,
    NONE,
    WANTS_COSTS,
    WANTS_FAILURES,
    WANTS_ROOM,
    WANTS_SAVES,
    link_of,
    numbers_of,
)

MANY_STEPS = (
    100_000  # saves and failures of all jobs, which SimPy takes about as long as a compiler
)
FIRST_PLACES = 256  # for jobs that run at once
MOST_DRAWN = 2**25  # draws of costs for all jobs


class KindToRun(NamedTuple):
    """What the jobs of a kind are, and what they meet."""

    job: SimulatedJob
    n_nodes: int
    blocks: Sequence[tuple[ScopedFailures, BlockDraws]]  # of its replications, in order
    remote: dict[int, RemoteSaves]  # by capture
    n_failures: float  # of one job, roughly


def refusal(
    kinds: Sequence[KindToRun], n_jobs: Sequence[int], shared: Shared, *, few: bool = False
) -> str | None:
    """Why SimPy runs the jobs of a fleet; None where the compiled loop does."""
    if shared.n_savers is not None:
        return "jobs take turns to save"
    if any(link_of(kind.job.policy).bytes_of_shards for kind in kinds):
        return "shards of one job differ, so that one load is several flows"
    if (
        not few
        and sum(n * _steps_of(kind) for kind, n in zip(kinds, n_jobs, strict=True)) < MANY_STEPS
    ):
        return "SimPy takes so few events sooner than the compiler would"
    return None


def _steps_of(kind: KindToRun) -> float:
    """Roughly how many saves and failures a job has."""
    captures = kind.job.policy.captures
    n_saves = sum(kind.job.useful_h / one.every_h for one in captures if one.every_h is not None)
    return n_saves + kind.n_failures


def run_compiled(
    arrivals: Sequence[Arrival],
    shared: Shared,
    kinds: Sequence[KindToRun],
    on_end: Callable[[int], None] | None = None,
) -> list[Ran] | None:
    """What `events.run_jobs` makes of the jobs; None where they turn out to be SimPy's.

    They are where a failure falls within a billionth of a job of another instant, so that rounding
    decides which comes first, and where one job has very many recoveries or draws.
    """
    return _Compiled(arrivals, shared, kinds).run(on_end)


class _Failures:
    """The failures of all jobs, as far as they are drawn."""

    def __init__(self, n_jobs: int, fast: Any) -> None:
        self._fast = fast
        self.until_h = np.zeros(n_jobs)
        self.spans = np.zeros((0, n_jobs), fast.SPAN)
        self._failures = [np.zeros(0, fast.FAILURE)]
        self._slot, self._repair_h = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        self._n = self._n_slots = 0

    def add(self, failures: ScopedFailures, columns: Ints, chunk: int) -> None:
        """Those of one more chunk, of the jobs in these columns."""
        strikes = failures.strikes(chunk + 1)
        self.until_h[columns] = strikes.until_h
        if chunk >= len(self.spans):
            self.spans = np.vstack([self.spans, np.zeros((1, len(self.until_h)), self._fast.SPAN)])
        if chunk >= len(strikes.first):
            return
        first = strikes.first[chunk]
        found = np.zeros(int(first[-1] - first[0]), self._fast.FAILURE)
        some, slots = slice(first[0], first[-1]), strikes.first_slot[first[0] : first[-1] + 1]
        struck = slice(slots[0], slots[-1])
        found["at_h"], found["scope"] = strikes.at_h[some], strikes.scope[some]
        found["first_slot"] = slots[:-1] - slots[0] + self._n_slots
        found["end_slot"] = slots[1:] - slots[0] + self._n_slots
        self.spans["first"][chunk, columns] = first[:-1] - first[0] + self._n
        self.spans["end"][chunk, columns] = first[1:] - first[0] + self._n
        self._failures.append(found)
        self._slot.append(strikes.slot[struck])
        self._repair_h.append(strikes.repair_h[struck])
        self._n += len(found)
        self._n_slots += int(slots[-1] - slots[0])

    def flat(self) -> tuple[Any, Any, Ints, Floats]:
        """As in `together.Jobs`: spans, failures, slots and their repair."""
        for parts in (self._failures, self._slot, self._repair_h):
            parts[:] = [np.concatenate(parts)]
        return self.spans, self._failures[0], self._slot[0], self._repair_h[0]


class _Compiled:
    """A fleet, as far as the compiled loop has run it."""

    def __init__(
        self, arrivals: Sequence[Arrival], shared: Shared, kinds: Sequence[KindToRun]
    ) -> None:
        # numba takes a third of a second to import
        from cprsim.fleets.fast import together
        from cprsim.simulate.fast import state

        self._fast, self._state, self._of_kinds = together, state, kinds
        self._numbers = np.concatenate([numbers_of(kind.job)[0] for kind in kinds])
        self._columns = _columns(arrivals, kinds)
        self._planned = self._plan(arrivals)
        self._kinds = np.zeros(len(kinds), together.KIND)
        for row, kind in zip(self._kinds, kinds, strict=True):
            for capture, remote in kind.remote.items():
                row["n_flows"][capture] = remote.n_flows
                row["cap"][capture] = remote.cap_bytes_per_h
        self._failures = _Failures(len(arrivals), together)
        for number in range(len(kinds)):
            self._draw_failures(number)
        self._n_drawn = {WANTS_SAVES: 2 * FIRST_DRAWS, WANTS_COSTS: FIRST_DRAWS}
        self._on = self._start(shared)

    def _plan(self, arrivals: Sequence[Arrival]) -> Any:
        planned = np.zeros(len(arrivals), self._fast.PLANNED)
        planned["kind"] = [one.kind for one in arrivals]
        planned["arrive_h"] = [one.at_h for one in arrivals]
        planned["n_nodes"] = np.array([kind.n_nodes for kind in self._of_kinds])[planned["kind"]]
        planned["first_node"] = np.cumsum(planned["n_nodes"]) - planned["n_nodes"]
        planned["place"] = NONE
        return planned

    def _start(self, shared: Shared) -> Any:
        slots = np.zeros(int(self._planned["n_nodes"].sum()), self._state.SLOTS)
        slots["recovery"] = NONE
        bandwidth = shared.storage_bytes_per_h
        on = self._fast.running(FIRST_PLACES, slots, np.inf if bandwidth is None else bandwidth)
        capacity, pool = shared.capacity, on.pool[0]
        pool["n_nodes"] = NONE if capacity.n_nodes is None else capacity.n_nodes
        pool["n_crews"] = NONE if capacity.n_crews is None else capacity.n_crews
        pool["backfill"] = capacity.backfill
        pool["n_free"] = (capacity.n_spares or 0) + (capacity.n_nodes or 0)
        return on

    def _draw_failures(self, number: int) -> None:
        """One more chunk of the failures of a kind's jobs."""
        chunk = int(self._kinds["n_chunks"][number])
        self._kinds["n_chunks"][number] += 1
        for (failures, _), columns in zip(
            self._of_kinds[number].blocks, self._columns[number], strict=True
        ):
            self._failures.add(failures, columns, chunk)

    def run(self, on_end: Callable[[int], None] | None) -> list[Ran] | None:
        """What became of the jobs; None where SimPy has to say it."""
        jobs = self._jobs(self._drawn())
        while True:
            status, of = self._fast.run_together(jobs, self._on)
            if status == FINISHED:
                return self._ran()
            if status == LEFT or not self._get(status, of):
                return None
            jobs = self._jobs(self._drawn() if status in self._n_drawn else jobs.drawn)
            if on_end is not None:
                on_end(int(self._on.pool[0]["n_ended"]))

    def _get(self, status: int, of: int) -> bool:
        """Get what the loop wants; whether there is room for it."""
        if status == WANTS_FAILURES:
            self._draw_failures(int(self._planned["kind"][of]))
        elif status == WANTS_ROOM:
            self._on = _grown(self._on, self._fast.N_PLACES, len(self._on.places))
        else:
            self._n_drawn[status] *= 2
            n_tables = max(len(_draws(kind, status)) for kind in self._of_kinds)
            return self._n_drawn[status] * n_tables * len(self._planned) <= MOST_DRAWN
        return True

    def _jobs(self, drawn: Any) -> Any:
        spans, failures, slot, repair_h = self._failures.flat()
        self._planned["until_h"] = self._failures.until_h
        if len(slot) > len(self._on.to_repair):
            self._on = self._on._replace(
                repairs=_longer(self._on.repairs, 2 * len(slot)),
                to_repair=_longer(self._on.to_repair, 2 * len(slot)),
            )
        return self._fast.Jobs(
            self._numbers, self._kinds, self._planned, spans, failures, slot, repair_h, drawn
        )

    def _drawn(self) -> Any:
        """Draws of all costs that vary, a column for each job."""
        n_jobs = len(self._planned)
        tables = {wanted: self._table(wanted, n_jobs) for wanted in self._n_drawn}
        keys = np.zeros((MOST_CAPTURES, n_jobs), dtype=np.int64)
        for _, draws, columns in self._blocks():
            for wanted, table in tables.items():
                of = draws.of_saves if wanted == WANTS_SAVES else draws.of_failures
                if of:
                    table[: len(of), :, columns] = draws.tables(of, self._n_drawn[wanted])
            keys[: len(draws.keys), columns] = draws.keys
        return self._state.Drawn(tables[WANTS_SAVES], tables[WANTS_COSTS], keys)

    def _table(self, wanted: int, n_jobs: int) -> Floats:
        n_tables = max(len(_draws(kind, wanted)) for kind in self._of_kinds)
        return np.zeros((n_tables, self._n_drawn[wanted] if n_tables else 0, n_jobs))

    def _blocks(self) -> Iterable[tuple[ScopedFailures, BlockDraws, Ints]]:
        """The blocks of all kinds, with the columns of their jobs."""
        for kind, of_kind in zip(self._of_kinds, self._columns, strict=True):
            for (failures, draws), columns in zip(kind.blocks, of_kind, strict=True):
                yield failures, draws, columns

    def _ran(self) -> list[Ran]:
        n_parts = self._numbers["n_parts"][self._planned["kind"]].tolist()
        names = ("start_h", "wall_h", "status", "useful_h", "hours", "n_failures", "n_saves",
                 "stale_h")  # fmt: skip
        columns = [self._planned[name].tolist() for name in names]
        return [
            Ran(start_h, wall_h, status == FINISHED, useful_h, tuple(hours[:n]), *rest)
            for n, start_h, wall_h, status, useful_h, hours, *rest in zip(
                n_parts, *columns, strict=True
            )
        ]


def _draws(kind: KindToRun, wanted: int) -> Sequence[Any]:
    """What of a kind's costs varies, of saves or of failures."""
    tables = numbers_of(kind.job)[1]
    return tables.of_saves if wanted == WANTS_SAVES else tables.of_failures


def _columns(arrivals: Iterable[Arrival], kinds: Sequence[KindToRun]) -> list[list[Ints]]:
    """Where the jobs of each kind stand in the order of arrival, block by block."""
    found = [
        [np.zeros(failures.n_replications, dtype=np.int64) for failures, _ in kind.blocks]
        for kind in kinds
    ]
    places = [
        [(of_block, n) for of_block in of_kind for n in range(len(of_block))] for of_kind in found
    ]
    for column, one in enumerate(arrivals):
        of_block, n = places[one.kind][one.replication]
        of_block[n] = column
    return found


def _longer(array: Any, n: int) -> Any:
    """The same with zeros behind it, n in all."""
    longer = np.zeros(n, array.dtype)
    longer[: len(array)] = array
    return longer


def _grown(on: Any, n_alarms_each: int, n_more: int) -> Any:
    """What goes on, with places for so many more jobs."""
    n_places = len(on.places) + n_more
    n_alarms = 1 + n_places * n_alarms_each
    of_all, *flows = on.storage
    return on._replace(
        places=_longer(on.places, n_places),
        jobs=_longer(on.jobs, n_places),
        storage=type(on.storage)(of_all, *(_longer(one, n_alarms) for one in flows)),
        timers=_longer(on.timers, n_alarms),
    )
