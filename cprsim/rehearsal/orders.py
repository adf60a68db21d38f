"""Orders of one run: written, with their digest, before its first process starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import floor, inf

from cprsim.errors import ParameterError
from cprsim.files import digest_of
from cprsim.job.intervals import ROUNDING
from cprsim.job.policy import Policy
from cprsim.job.records import S_PER_H, SubSaves


@dataclass(frozen=True, slots=True)
class Kill:
    """A failure to inject: these slots at this instant of wall time; `stops`: they hang instead."""

    at_s: float
    slots: tuple[int, ...]
    stops: bool = False


@dataclass(frozen=True, slots=True)
class SaveBehind:
    """Background saves: a copy in memory stalls the job, the rest is written during training."""

    stall_s: float
    behind_s: float
    to_peers: bool = False  # to the memory of other servers; else to files
    in_flight: int = 1
    skips: bool = False  # one that is due while as many are in flight; else the job waits


STALLING = -1  # the kind of a save that stalls the job until it is in files


@dataclass(frozen=True, slots=True)
class DueSave:
    """A save that is due at a progress."""

    position: int  # samples
    number: int  # of this run's grid, from 1
    ends_interval: bool = True
    kind: int = STALLING  # else a place in `Orders.behind`


@dataclass(frozen=True, slots=True)
class Speeds:
    """Settings of the runtime, in real seconds and bytes per second."""

    heartbeat_s: float
    timeout_s: float  # since the last heartbeat
    reschedule_s: float
    save_rate: float  # of each server
    load_together: float  # of all who load at once
    load_alone: float  # of each server

    @property
    def detect_s(self) -> float:
        """Mean time from a death to its detection: deaths fall anywhere between two heartbeats."""
        return self.timeout_s - self.heartbeat_s / 2


@dataclass(frozen=True, slots=True)
class Orders:
    """Everything that decides a run, apart from the material."""

    name: str
    rolls_back: bool  # full recovery; else the struck alone go back
    useful_s: float
    due: tuple[DueSave, ...]
    speeds: Speeds
    sub_saves: SubSaves | None = None
    behind: tuple[SaveBehind, ...] = ()
    holders: tuple[tuple[int, ...], ...] = ()  # of copies of each server's rows; () without peers
    fetch_s: float = 0.0  # what a shard takes from a peer
    kills: tuple[Kill, ...] = ()
    n_servers: int = 1
    n_trainers: int = 1
    n_spares: int = 2
    repair_s: float | None = None  # until who died is a spare; None: made again as they are taken
    until: int | None = None  # position at which the run ends; None: with the last sample
    limit_s: float = inf  # of wall time: a run that takes longer is given up

    @property
    def n_slots(self) -> int:
        return self.n_servers + self.n_trainers

    @property
    def n_warm(self) -> int:
        """Number of spares at the start: no more than can be needed."""
        n_killed = sum(len(kill.slots) for kill in self.kills)
        return self.n_spares if self.repair_s is None else min(self.n_spares, n_killed)

    @property
    def digest(self) -> str:
        """SHA-256 of the orders, in hex."""
        return digest_of(asdict(self))


def saves_due(
    policy: Policy, useful_h: float, n_samples: int, on_grid: Callable[[float], int]
) -> tuple[DueSave, ...]:
    """The saves of a run under a policy, in order.

    Raises ParameterError: two saves would fall between the same two batches.
    """

    def grid(every_h: float) -> list[DueSave]:
        """Saves after every `every_h` hours of progress."""
        saves = [
            DueSave(on_grid(min(number * every_h / useful_h, 1.0) * n_samples), number)
            for number in range(1, floor(useful_h / every_h + ROUNDING) + 1)
        ]
        positions = [save.position for save in saves]
        if len(set(positions)) < len(positions) or 0 in positions:
            raise ParameterError(
                f"`{policy.name}` saves every {every_h * S_PER_H:.3g} s, less than a training step "
                "takes: train on more samples (`kernel.samples`) or save less often"
            )
        return saves

    if not policy.from_cpr_paper:
        kinds = [grid(capture.every_h or inf) for capture in policy.captures]
        due = [replace(save, kind=kind) for kind, some in enumerate(kinds) for save in some]
        return tuple(sorted(due, key=lambda save: (save.position, save.kind)))
    parts = policy.sub_saves or SubSaves("none", fraction=1.0)
    every_h = parts.fraction * policy.interval_h
    if every_h >= useful_h * (1.0 - ROUNDING):
        return ()
    n = parts.n_per_interval
    return tuple(replace(save, ends_interval=save.number % n == 0) for save in grid(every_h))
