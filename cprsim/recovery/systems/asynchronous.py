"""Saves that are written behind the job: rows of one table, for they differ by little.

A save is first a snapshot in host memory, then it is persisted on a storage that outlives the
nodes, while the job goes on. After a failure the whole job goes back to the newest save that is
persisted, which is as old as both took, and half an interval on average. The systems differ in how
much of a snapshot training hides, in how many saves are on their way at once, in what is written,
and over which links.

Assumptions: a disk that a system writes to is attached to the node that replaces a lost one.
Several saves on their way at once are persisted as fast as one alone. A snapshot that training
hides ends within a step. Writing behind the job slows it by nothing.

Not modelled: what writing behind the job takes of its speed and of its network; ByteCheckpoint's
loads that read each part once and share it; saves that adapt to the storage's load.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.policy import Capture, Policy, Tax
from cprsim.recovery.system import Family, JobFacts, Provenance, System, option

BUDGET = 0.05  # of the time, that CheckFreq's saves may stall: its code (published); .035 the paper
MORE_STEPS = 2  # between saves, while they stall more than that (code, published)


@dataclass(frozen=True, slots=True)
class AsynchronousOptions:
    """How often it saves, and what of a snapshot training hides."""

    every: float | None = option(
        None, "time", "progress between saves; default: Young's, no shorter than one is written"
    )
    window: float | None = option(
        None, "time", "of training that hides a snapshot; default: a step, where any does"
    )


@dataclass(frozen=True, slots=True)
class WholeSaveOptions(AsynchronousOptions):
    """And what a whole save takes."""

    snapshot: float | None = option(
        None, "time", "of a copy to host memory; default: the stall of the job's saves"
    )
    persist: float | None = option(
        None, "time", "of writing a whole save; default: the background of the job's saves"
    )


@dataclass(frozen=True, slots=True)
class InFlight(WholeSaveOptions):
    """And how many are on their way at once."""

    in_flight: int = option(2, "count", "saves on their way at once; 2 to 4 (published)")


@dataclass(frozen=True, slots=True)
class Smaller(WholeSaveOptions):
    """And how small saves are."""

    size: float = option(1.0, "share", "bytes of a save, as a share of the state's")


@dataclass(frozen=True, slots=True)
class ByThirty(Smaller):
    """Of the state's bytes 70 % less."""

    size: float = option(0.3, "share", "bytes of a save, as a share of the state's (published)")


@dataclass(frozen=True, slots=True)
class ByTwentyEight(Smaller):
    """A 28th of the state's bytes."""

    size: float = option(1 / 28, "share", "bytes of a save, as a share of the state's (published)")


@dataclass(frozen=True, slots=True)
class Paths(AsynchronousOptions):
    """And over what saves are written."""

    snapshot: float | None = option(
        None, "time", "of a copy to host memory; default: the stall of the job's saves"
    )
    other_paths: float | None = option(
        None, "bandwidth", "of all paths together besides the remote storage's; needed"
    )


@dataclass(frozen=True, slots=True)
class Direct(AsynchronousOptions):
    """And what a transfer takes."""

    transfer: float | None = option(
        None, "time", "of a node's state to the server; default: by the node's own link"
    )


@dataclass(frozen=True, slots=True)
class AsynchronousPreset:
    """What tells one of them from another.

    Parameters
    ----------
    hidden_steps : of training, that hide a snapshot if the user says nothing
    """

    hidden_steps: float = 0.0
    tuned: bool = False  # the interval is CheckFreq's


def planned(preset: AsynchronousPreset) -> Callable[[JobFacts, AsynchronousOptions, str], Policy]:
    """What a system of this table does in a job."""

    def plan(facts: JobFacts, options: AsynchronousOptions, name: str) -> Policy:
        return _policy(preset, facts, options, name)

    plan.__module__ = __name__
    return plan


def _policy(
    preset: AsynchronousPreset, facts: JobFacts, options: AsynchronousOptions, name: str
) -> Policy:
    copy_h, write_h = times_h(facts, options, name)
    stall_h = max(0.0, copy_h - _window_h(preset, facts, options))
    size, n = getattr(options, "size", 1.0), getattr(options, "in_flight", 1)
    pieces.require_positive(name, size=size, in_flight=n)
    behind_h = copy_h - stall_h + size * write_h
    if preset.tuned and options.every is None:
        step_h = facts.needed("step_h", f"{name} without `every`")
        every_h = step_h * checkfreq_steps(step_h, stall_h + behind_h, stall_h)
    else:
        every_h = pieces.interval_h(facts, options.every, stall_h, behind_h / n, name)
    direct = isinstance(options, Direct)
    load = Constant(copy_h) if direct else facts.load
    capture = Capture(
        pieces.REMOTE, every_h, stall=Constant(stall_h), background=Constant(behind_h), in_flight=n
    )
    return Policy(
        name,
        rules=(pieces.back_to_remote(facts),),
        tiers=(pieces.remote_tier(facts, load if size == 1.0 else Constant(size * load.mean_h)),),
        captures=(capture,),
        tax=Tax(memory=0.0 if direct else float(n)),
    )


def times_h(facts: JobFacts, options: AsynchronousOptions, name: str) -> tuple[float, float]:
    """A snapshot, and persisting it behind the job [h]."""
    if isinstance(options, Direct):
        given_h = options.transfer
        return (facts.to_peer(name).mean_h if given_h is None else given_h), 0.0
    assert isinstance(options, WholeSaveOptions | Paths)
    copy_h = pieces.snapshot_h(facts, options.snapshot, name)
    if isinstance(options, WholeSaveOptions):
        return copy_h, pieces.persist_h(facts, options.persist)
    if options.other_paths is None:
        raise ParameterError(f"{name} writes over several paths: give `other_paths`, a bandwidth")
    all_paths = options.other_paths + facts.needed("remote_bytes_per_h", name)
    return copy_h, facts.all_bytes(name) / all_paths


def _window_h(preset: AsynchronousPreset, facts: JobFacts, options: AsynchronousOptions) -> float:
    if options.window is not None:
        return options.window
    if preset.hidden_steps in (0.0, inf):
        return preset.hidden_steps
    return preset.hidden_steps * facts.needed("step_h", "a snapshot that training hides")


def checkfreq_steps(
    step_h: float, save_h: float, stall_h: float, budget_fraction: float = BUDGET
) -> int:
    """Steps between saves as CheckFreq chooses them.

    Parameters
    ----------
    step_h : time of a training step, t [h]
    save_h : from the start of a save to its commit, t_f [h]
    stall_h : of that, what training waits for, the overhead [h]
    budget_fraction : most that saves may stall, as a share of the hours of training

    Raises
    ------
    ParameterError
        the step takes no time

    Notes
    -----
    ``k = max(1, ceil((t_f - overhead)/t))``, then two steps more as long as ``overhead/(k t)``
    exceeds the budget: 5 % in the code, 3.5 % in the paper (Mohan et al. 2021; rule and 5 %
    published, 3.5 % recalled).
    """
    if not step_h > 0.0:
        raise ParameterError(f"a step of {step_h} h takes no time")
    steps = max(1, ceil((save_h - stall_h) / step_h - pieces.ROUNDING))
    over = stall_h / (budget_fraction * step_h) - steps
    return steps + MORE_STEPS * max(0, ceil(over / MORE_STEPS - pieces.ROUNDING))


BEHIND = Family.BEHIND
SYSTEMS: tuple[System, ...] = (
    System(
        name="async",
        runs_as="PyTorch DCP async_save",
        summary="a snapshot stalls the job, and is written behind it",
        source="PyTorch's distributed checkpoints, `async_save`: mechanism published",
        options=WholeSaveOptions, plan=planned(AsynchronousPreset()), interval="every",
        family=BEHIND, cited="PyTorch DCP", mark=Provenance.PUBLISHED,
    ),
    System(
        name="checkfreq",
        summary="training hides the snapshot for a step; the interval keeps to a budget of stall",
        source="Mohan et al. 2021 (FAST): rule and budget of the code published, the rest recalled",
        options=WholeSaveOptions, plan=planned(AsynchronousPreset(hidden_steps=1.0, tuned=True)),
        interval="every", family=BEHIND, cited="FAST'21", mark=Provenance.PUBLISHED,
    ),
    System(
        name="datastates",
        runs_as="DeepSpeed (DataStates)",
        summary="lazy copies while the state does not change: training hides them for a step",
        source="DataStates-LLM (HPDC 2024): mechanism recalled",
        options=WholeSaveOptions, plan=planned(AsynchronousPreset(hidden_steps=1.0)),
        interval="every", family=BEHIND, cited="HPDC'24", mark=Provenance.RECALLED,
    ),
    System(
        name="pccheck",
        summary="several saves on their way at once; the job waits only for room for one more",
        source="PCcheck (ASPLOS 2025): mechanism and number in flight published",
        options=InFlight, plan=planned(AsynchronousPreset(hidden_steps=inf)), interval="every",
        family=BEHIND, cited="ASPLOS'25", mark=Provenance.PUBLISHED,
    ),
    System(
        name="portus",
        summary="each node writes from the device to a server's persistent memory, by its own link",
        source="Portus: mechanism recalled",
        options=Direct, plan=planned(AsynchronousPreset(hidden_steps=1.0)), interval="every",
        family=BEHIND, cited="Portus", mark=Provenance.RECALLED,
    ),
    System(
        name="paracckpt",
        summary="saves are written over several paths at once",
        source="ParaCkpt: time S over the sum of the bandwidths secondary",
        options=Paths, plan=planned(AsynchronousPreset()), interval="every", family=BEHIND,
        cited="ParaCkpt", mark=Provenance.SECONDARY, needs=(("other_paths", "100 Gbit/s"),),
    ),
    System(
        name="checkbullet",
        summary="quantised saves",
        source="CheckBullet: 70 % less storage published, mechanism secondary",
        options=ByThirty, plan=planned(AsynchronousPreset()), interval="every", family=BEHIND,
        cited="CheckBullet", mark=Provenance.SECONDARY,
        not_counted="what quantised saves cost in accuracy is not priced",
    ),
    System(
        name="lc-checkpoint",
        summary="lossy saves, a 28th of the state",
        source="LC-Checkpoint: factor published, mechanism recalled",
        options=ByTwentyEight, plan=planned(AsynchronousPreset()), interval="every", family=BEHIND,
        cited="LC-Checkpoint", mark=Provenance.RECALLED,
        not_counted="what lossy saves cost in accuracy is not priced",
    ),
)  # fmt: skip
