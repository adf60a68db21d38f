"""Asynchronous saves, of the whole state or of a part.

A save is first a snapshot in host memory, then it is persisted on a storage that survives the
nodes, while the job continues. After a failure all slots roll back to the newest persisted save.
Sizes are means over the job, as policies have no sizes by age.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil, inf
from typing import Any

from cprsim.errors import ParameterError
from cprsim.job.distributions import Constant
from cprsim.job.intervals import ROUNDING
from cprsim.job.options import POSITIVE, time
from cprsim.job.policy import Policy, Tax
from cprsim.recovery import building_blocks as build
from cprsim.recovery.building_blocks import PUBLISHED, RECALLED, SECONDARY, row
from cprsim.recovery.system import Family, JobProfile

BUDGET = 0.05  # of the time, that CheckFreq's saves may stall: its code (published); .035 the paper
MORE_STEPS = 2  # between saves, while they stall more than that (code, published)
BITS = 32
BITS_BY_RESTORES = ((1.0, 2), (3.0, 3), (20.0, 4))  # at most so many restores: bits (secondary)
MOST_BITS = 8
MOST_INCREMENTS = 100_000
Shares = Callable[[JobProfile, Any], tuple[float, float]]


def of_size(job: JobProfile, o: Any) -> tuple[float, float]:
    """Size of a save and of a load, as fractions of the state."""
    return o.size, o.size


def chained(job: JobProfile, o: Any) -> tuple[float, float]:
    """Check-N-Run's quantised increments, on average."""
    bits = bits_for(job.useful_h / job.mtbf_h) if o.bits is None else o.bits
    n_saves = max(1, round(job.useful_h / o.every))
    written, read = mean_fractions(o.chain, o.first, o.growth, n_saves)
    return written * bits / BITS, read * bits / BITS


def async_save(
    job: JobProfile, o: Any, *, hides: float = 0.0, tuned: bool = False, direct: bool = False,
    shares: Shares = of_size,
) -> Policy:  # fmt: skip
    """A snapshot stalls the job unless `hides` steps of training hide it, and is written behind it.

    `tuned`: the interval is CheckFreq's. `direct`: it goes to a server by each node's own link.
    """
    written, read = shares(job, o)
    if direct:
        copy_h, write_h = max(o.transfer, job.all_bytes / o.server), 0.0
    else:
        copy_h, write_h = o.snapshot, o.persist
    if o.other_paths is not None:  # over several paths at once
        write_h = job.all_bytes / (o.other_paths + job.needed("remote_bytes_per_h"))
    hidden_h = o.window
    if hidden_h is None:
        hidden_h = hides
        if 0.0 < hides < inf:
            hidden_h *= job.needed("step_h", "a snapshot that training hides")
    stall_h = max(0.0, copy_h - hidden_h)
    behind_h = copy_h - stall_h + written * write_h
    if tuned and o.every is None:
        step_h = job.needed("step_h", "without `every` it")
        every_h = step_h * checkfreq_steps(step_h, stall_h + behind_h, stall_h)
    else:
        alone_h = min(behind_h, written * (job.write_h or 0.0))
        busy_h = max(behind_h / o.in_flight, alone_h)
        every_h = o.every or build.interval_h(job, stall_h, busy_h)
        if every_h < busy_h:  # the saves in flight share the storage's bandwidth
            behind_h = max(behind_h, o.in_flight * alone_h)
    load = Constant(copy_h) if direct else job.load
    return Policy(
        o.name,
        rules=(build.back_to_remote(job),),
        tiers=(build.remote_tier(job, load if read == 1.0 else Constant(read * load.mean_h)),),
        captures=(
            build.periodic_capture(build.REMOTE, every_h, stall_h, behind_h, in_flight=o.in_flight),
        ),
        tax=Tax(memory=0.0 if direct else float(o.in_flight)),
    )


def checkfreq_steps(step_h: float, save_h: float, stall_h: float) -> int:
    """Steps between saves as CheckFreq chooses them.

    ``k = max(1, ceil((t_f - overhead)/t))``, then two steps more as long as ``overhead/(k t)``
    exceeds the budget: 5 % in the code, 3.5 % in the paper (Mohan et al. 2021; rule and 5 %
    published, 3.5 % recalled).
    """
    steps = max(1, ceil((save_h - stall_h) / step_h - ROUNDING))
    over = stall_h / (BUDGET * step_h) - steps
    return steps + MORE_STEPS * max(0, ceil(over / MORE_STEPS - ROUNDING))


def bits_for(n_restores: float) -> int:
    """Bits of a value by the restores expected: 2, 3, 4 up to 1, 3, 20 of them, else 8.

    Source: Check-N-Run (Eisenman et al. 2022), secondary.
    """
    return next((bits for most, bits in BITS_BY_RESTORES if n_restores <= most), MOST_BITS)


def mean_fractions(chain: str, first: float, growth: float, n_saves: int) -> tuple[float, float]:
    """Mean size of a save and of a restore, as fractions of the model.

    A failure strikes after each of the saves alike. Source: derived here.
    """
    if chain == "intermittent":
        n_saves = min(n_saves, 1 + increments_before_whole(first, growth))
    elif chain == "consecutive":
        later = first * (n_saves - 1)
        return (1.0 + later) / n_saves, 1.0 + later / 2.0
    later = sum(increment_fraction(i, first, growth) for i in range(1, n_saves))
    return (1.0 + later) / n_saves, 1.0 + later / n_saves


def increment_fraction(i: int, first: float, growth: float) -> float:
    """Size of the i-th increment since the last whole save, as a share of the model.

    Check-N-Run has ``0.26 i^0.28`` (Eisenman et al. 2022; the fit is secondary).
    """
    return float(min(1.0, first * i**growth))


def increments_before_whole(first: float, growth: float) -> int:
    """How many increments the rule makes after a whole save before the next one is whole.

    After i increments the next save is whole if ``1 + sum_{j<=i} S_j <= (i + 1) S_i``: if the saves
    since the last whole one were on average no larger than the last of them. Source: Check-N-Run
    (Eisenman et al. 2022), recalled.
    """
    written = 1.0
    for i in range(1, MOST_INCREMENTS + 1):
        last = increment_fraction(i, first, growth)
        written += last
        if written <= (i + 1) * last:
            return i
    raise ParameterError(
        f"no whole save follows {MOST_INCREMENTS} increments of {first} i^{growth}"
    )


OF_SNAPSHOTS = "every window snapshot persist"
_row = partial(
    row, family=Family.BEHIND, interval="every",
    assumed="a disk that is written to outlives its node. Several simultaneous saves are persisted "
    "as fast as one. A snapshot that training hides ends within a step.",
    not_modelled="the slowdown of training and its network by background writes; loads that read "
    "each part once and share it; saves that adapt to the storage's load.",
)  # fmt: skip
ALL_TABLES = (
    "all of the state is embedding tables, of 32 bits a value. A snapshot of the whole model "
    "stalls the job."
)
INCREMENTS = (
    f"{ALL_TABLES} Increments are 0.26 i^0.28 of the model, a fit of others to the paper's "
    "workload (secondary): give your own as `first` and `growth`."
)
_rows = partial(
    row, family=Family.DELTAS, interval="every",
    not_modelled="bytes that grow from save to save (their mean is taken); what tracking rows "
    "costs; the accuracy of quantised values and stale rows.",
)  # fmt: skip
SYSTEMS = (
    _row(
        "async", OF_SNAPSHOTS, async_save, {}, "PyTorch DCP", PUBLISHED,
        "a snapshot stalls the job, and is written in the background",
        source="PyTorch's distributed checkpoints, `async_save`: mechanism published",
        runs_as="PyTorch DCP async_save",
    ),
    _row(
        "checkfreq", OF_SNAPSHOTS, async_save, {"hides": 1, "tuned": True}, "FAST'21", PUBLISHED,
        "the snapshot overlaps with a step of training; the interval follows from a limit of stall",
        source="Mohan et al. 2021 (FAST): rule and budget of the code published, the rest recalled",
    ),
    _row(
        "datastates", OF_SNAPSHOTS, async_save, {"hides": 1}, "HPDC'24", RECALLED,
        "lazy copies while the state does not change: training hides them for a step",
        source="DataStates-LLM (HPDC 2024): mechanism recalled", runs_as="DeepSpeed (DataStates)",
    ),
    _row(
        "pccheck", f"{OF_SNAPSHOTS} in_flight", async_save, {"hides": inf}, "ASPLOS'25", PUBLISHED,
        "several saves in flight simultaneously; the job waits only for room for one more",
        source="PCcheck (ASPLOS 2025): mechanism and number in flight published",
        overrides={"in_flight": 2},
    ),
    _row(
        "portus", "every window transfer server", async_save,
        {"hides": 1, "direct": True}, "Portus",
        RECALLED,
        "each node writes from the device to a server's persistent memory, by its own link",
        source="Portus: mechanism recalled; all nodes share the server's link (derived)",
    ),
    _row(
        "paracckpt", "every window snapshot other_paths", async_save, {},
        "ParaCkpt", SECONDARY, "saves are written over several paths simultaneously",
        source="ParaCkpt: time S over the sum of the bandwidths secondary",
    ),
    _row(
        "checkbullet", f"{OF_SNAPSHOTS} size", async_save, {}, "CheckBullet", SECONDARY,
        "quantised saves",
        source="CheckBullet: 70 % less storage published, mechanism secondary",
        overrides={"size": 0.3},
        not_counted="the accuracy loss of quantised saves is unknown",
    ),
    _row(
        "lc-checkpoint", f"{OF_SNAPSHOTS} size", async_save, {}, "LC-Checkpoint", RECALLED,
        "lossy saves, a 28th of the state",
        source="LC-Checkpoint: factor published, mechanism recalled", overrides={"size": 1 / 28},
        not_counted="the accuracy loss of lossy saves is unknown",
    ),
    _rows(
        "check-n-run", "snapshot persist every chain first growth bits", async_save,
        {"shares": chained}, "NSDI'22", PUBLISHED,
        "rows touched since a whole save, quantised, in the background",
        source="Eisenman et al. 2022 (NSDI): mechanism and interval published, sizes and bits "
        "secondary",
        overrides={"every": time("progress between saves (published)", 0.5, POSITIVE)},
        assumed=INCREMENTS, runs_as="TorchRec, DeepRec, TorchEasyRec",
        not_counted="the accuracy loss of quantised saves is unknown",
    ),
    _rows(
        "incrcp", "every snapshot persist first", async_save,
        {"shares": lambda job, o: (o.first, 1.0)}, "PVLDB'25", SECONDARY,
        "rows touched since the last save; a restore reads each row of the chain once",
        source="IncrCP (PVLDB 2025): mechanism secondary", assumed=INCREMENTS,
    ),
    _rows(
        "ssdc", "every snapshot persist fraction", async_save,
        {"shares": lambda job, o: (o.fraction, 1.0)}, "ISCAS'24", SECONDARY,
        "rows that changed by more than a threshold",
        source="SSDC (ISCAS 2024): mechanism secondary", assumed=ALL_TABLES,
        not_counted="the accuracy loss of stale rows below the threshold is unknown",
    ),
)  # fmt: skip
