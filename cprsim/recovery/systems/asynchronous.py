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

from dataclasses import dataclass
from functools import partial
from math import ceil, inf
from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.options import Option
from cprsim.recovery.policy import Capture, Policy, Tax
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options

BUDGET = 0.05  # of the time, that CheckFreq's saves may stall: its code (published); .035 the paper
MORE_STEPS = 2  # between saves, while they stall more than that (code, published)


@dataclass(frozen=True, slots=True)
class Behind:
    """What tells one of them from another: how it hides snapshots, and over what it writes.

    Parameters
    ----------
    hidden_steps : of training, that hide a snapshot if the user says nothing
    tuned : the interval is CheckFreq's
    direct : from the device to a server, by each node's own link
    """

    hidden_steps: float = 0.0
    tuned: bool = False
    direct: bool = False

    def plan(self, facts: JobFacts, o: Any, name: str) -> Policy:
        copy_h, write_h = self.times_h(facts, o, name)
        stall_h = max(0.0, copy_h - self._window_h(facts, o))
        size, n = getattr(o, "size", 1.0), getattr(o, "in_flight", 1)
        pieces.require_positive(name, size=size, in_flight=n)
        behind_h = copy_h - stall_h + size * write_h
        if self.tuned and o.every is None:
            step_h = facts.needed("step_h", f"{name} without `every`")
            every_h = step_h * checkfreq_steps(step_h, stall_h + behind_h, stall_h)
        else:
            every_h = pieces.interval_h(facts, o.every, stall_h, behind_h / n, name)
        load = Constant(copy_h) if self.direct else facts.load
        capture = Capture(
            pieces.REMOTE, every_h, stall=Constant(stall_h), background=Constant(behind_h),
            in_flight=n,
        )  # fmt: skip
        load = load if size == 1.0 else Constant(size * load.mean_h)
        return Policy(
            name,
            rules=(pieces.back_to_remote(facts),),
            tiers=(pieces.remote_tier(facts, load),),
            captures=(capture,),
            tax=Tax(memory=0.0 if self.direct else float(n)),
        )

    def times_h(self, facts: JobFacts, o: Any, name: str) -> tuple[float, float]:
        """A snapshot, and persisting it behind the job [h]."""
        if self.direct:
            return (facts.to_peer(name).mean_h if o.transfer is None else o.transfer), 0.0
        copy_h = pieces.snapshot_h(facts, o.snapshot, name)
        if not hasattr(o, "other_paths"):
            return copy_h, pieces.persist_h(facts, o.persist)
        if o.other_paths is None:
            raise ParameterError(
                f"{name} writes over several paths: give `other_paths`, a bandwidth"
            )
        all_paths = o.other_paths + facts.needed("remote_bytes_per_h", name)
        return copy_h, facts.all_bytes(name) / all_paths

    def _window_h(self, facts: JobFacts, o: Any) -> float:
        if o.window is not None:
            return float(o.window)
        if self.hidden_steps in (0.0, inf):
            return self.hidden_steps
        return self.hidden_steps * facts.needed("step_h", "a snapshot that training hides")


def checkfreq_steps(
    step_h: float, save_h: float, stall_h: float, budget_fraction: float = BUDGET
) -> int:
    """Steps between saves as CheckFreq chooses them.

    ``k = max(1, ceil((t_f - overhead)/t))``, then two steps more as long as ``overhead/(k t)``
    exceeds the budget: 5 % in the code, 3.5 % in the paper (Mohan et al. 2021; rule and 5 %
    published, 3.5 % recalled).
    """
    if not step_h > 0.0:
        raise ParameterError(f"a step of {step_h} h takes no time")
    steps = max(1, ceil((save_h - stall_h) / step_h - pieces.ROUNDING))
    over = stall_h / (budget_fraction * step_h) - steps
    return steps + MORE_STEPS * max(0, ceil(over / MORE_STEPS - pieces.ROUNDING))


_behind = partial(System, interval="every", family=Family.BEHIND)
WHOLE = options("every window snapshot persist")
SMALLER = "every window snapshot persist size"
OTHER_PATHS = Option(
    None, "bandwidth", "of all paths together besides the remote storage's; needed"
)
TRANSFER = Option(None, "time", "of a node's state to the server; default: by the node's own link")
SYSTEMS = (
    _behind(
        "async", "a snapshot stalls the job, and is written behind it",
        "PyTorch's distributed checkpoints, `async_save`: mechanism published", WHOLE,
        Behind().plan, cited="PyTorch DCP", mark=Provenance.PUBLISHED,
        runs_as="PyTorch DCP async_save",
    ),
    _behind(
        "checkfreq",
        "training hides the snapshot for a step; the interval keeps to a budget of stall",
        "Mohan et al. 2021 (FAST): rule and budget of the code published, the rest recalled", WHOLE,
        Behind(hidden_steps=1.0, tuned=True).plan, cited="FAST'21", mark=Provenance.PUBLISHED,
    ),
    _behind(
        "datastates", "lazy copies while the state does not change: training hides them for a step",
        "DataStates-LLM (HPDC 2024): mechanism recalled", WHOLE, Behind(hidden_steps=1.0).plan,
        cited="HPDC'24", mark=Provenance.RECALLED, runs_as="DeepSpeed (DataStates)",
    ),
    _behind(
        "pccheck", "several saves on their way at once; the job waits only for room for one more",
        "PCcheck (ASPLOS 2025): mechanism and number in flight published",
        options("every window snapshot persist in_flight"), Behind(hidden_steps=inf).plan,
        cited="ASPLOS'25", mark=Provenance.PUBLISHED,
    ),
    _behind(
        "portus",
        "each node writes from the device to a server's persistent memory, by its own link",
        "Portus: mechanism recalled", options("every window", {"transfer": TRANSFER}),
        Behind(hidden_steps=1.0, direct=True).plan, cited="Portus", mark=Provenance.RECALLED,
    ),
    _behind(
        "paracckpt", "saves are written over several paths at once",
        "ParaCkpt: time S over the sum of the bandwidths secondary",
        options("every window snapshot", {"other_paths": OTHER_PATHS}), Behind().plan,
        cited="ParaCkpt", mark=Provenance.SECONDARY, needs=(("other_paths", "100 Gbit/s"),),
    ),
    _behind(
        "checkbullet", "quantised saves",
        "CheckBullet: 70 % less storage published, mechanism secondary", options(SMALLER, size=0.3),
        Behind().plan, cited="CheckBullet", mark=Provenance.SECONDARY,
        not_counted="what quantised saves cost in accuracy is not priced",
    ),
    _behind(
        "lc-checkpoint", "lossy saves, a 28th of the state",
        "LC-Checkpoint: factor published, mechanism recalled", options(SMALLER, size=1 / 28),
        Behind().plan, cited="LC-Checkpoint", mark=Provenance.RECALLED,
        not_counted="what lossy saves cost in accuracy is not priced",
    ),
)  # fmt: skip
