"""Incremental saves of embedding tables: only rows that changed are written, behind the job.

Check-N-Run saves each 30 min, quantised: whole, then increments of the rows touched since the whole
one, until the next whole one writes no more than they do (*intermittent*), or never (*one-shot*),
or of the rows touched since the save before (*consecutive*, of which a restore reads all). IncrCP
has consecutive increments too, laid out so that a restore reads each row once. SSDC writes the rows
that changed by more than a threshold.

Records of policies know no bytes by age: each save and each load takes the mean of its kind over
the job or over the period of the rule. The shape of the increments, 0.26 i^0.28 of the model, is a
fit of others to the paper's workload (secondary): give your own as `first` and `growth`.

Assumptions: values of 32 bits before they are quantised. All of the state is embedding tables. A
snapshot of the whole model stalls the job, as tracking rows costs nothing.

Not modelled: bytes that grow from save to save, of which the mean is taken; what tracking rows
costs; what quantised values and stale rows cost in accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass

from cprsim.analytic.systems import increment_fraction, increments_before_whole
from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.policy import Capture, Policy, Tax
from cprsim.recovery.system import Family, JobFacts, Provenance, System, option

BITS = 32
BITS_BY_RESTORES = ((1.0, 2), (3.0, 3), (20.0, 4))  # at most so many restores: bits (secondary)
MOST_BITS = 8


@dataclass(frozen=True, slots=True)
class Written:
    """What a whole save takes."""

    snapshot: float | None = option(
        None, "time", "of a copy to host memory; default: the stall of the job's saves"
    )
    persist: float | None = option(
        None, "time", "of writing a whole save; default: the background of the job's saves"
    )


@dataclass(frozen=True, slots=True)
class Intermittent(Written):
    """How often it saves, what increments hold, and with how many bits."""

    every: float = option(0.5, "time", "progress between saves (published)")
    chain: str = option("intermittent", "word", "`intermittent`, `one-shot` or `consecutive`")
    first: float = option(
        0.26, "share", "of the model, that the first increment holds (secondary; a workload's)"
    )
    growth: float = option(
        0.28, "number", "exponent by which increments since a whole save grow (secondary)"
    )
    bits: int | None = option(
        None, "count", "of each value; default: by the failures expected, 2 to 8 (secondary)"
    )


@dataclass(frozen=True, slots=True)
class Consecutive(Written):
    """How often it saves, and what increments hold."""

    every: float | None = option(
        None, "time", "progress between saves; default: Young's, no shorter than one is written"
    )
    first: float = option(
        0.26, "share", "of the model, that an increment holds (secondary; a workload's)"
    )


@dataclass(frozen=True, slots=True)
class Threshold(Written):
    """How often it saves, and how much lies above the threshold."""

    every: float | None = option(
        None, "time", "progress between saves; default: Young's, no shorter than one is written"
    )
    fraction: float | None = option(None, "share", "of the model, above the threshold; needed")


def check_n_run(facts: JobFacts, options: Intermittent, name: str) -> Policy:
    pieces.require_positive(name, every=options.every)
    bits = options.bits
    if bits is None:
        bits = bits_for(facts.useful_h / facts.mtbf_h)
    if not 1 <= bits <= BITS:
        raise ParameterError(f"`bits` of {name} is {bits}; it must lie between 1 and {BITS}")
    n_saves = max(1, round(facts.useful_h / options.every))
    written, read = mean_fractions(options.chain, options.first, options.growth, n_saves)
    return _policy(facts, options, name, written * bits / BITS, read * bits / BITS)


def incrcp(facts: JobFacts, options: Consecutive, name: str) -> Policy:
    """Consecutive increments, of which a restore reads each row once."""
    return _policy(facts, options, name, options.first, 1.0)


def ssdc(facts: JobFacts, options: Threshold, name: str) -> Policy:
    if options.fraction is None:
        raise ParameterError(f"{name} writes rows above a threshold: give `fraction`, their share")
    return _policy(facts, options, name, options.fraction, 1.0)


def _policy(
    facts: JobFacts,
    options: Intermittent | Consecutive | Threshold,
    name: str,
    written: float,
    read: float,
) -> Policy:
    """A system whose saves write, and whose loads read, these shares of a whole one."""
    stall_h = pieces.snapshot_h(facts, options.snapshot, name)
    behind_h = written * pieces.persist_h(facts, options.persist)
    every_h = pieces.interval_h(facts, options.every, stall_h, behind_h, name)
    load = facts.load if read == 1.0 else Constant(read * facts.load.mean_h)
    return Policy(
        name,
        rules=(pieces.back_to_remote(facts),),
        tiers=(pieces.remote_tier(facts, load),),
        captures=(
            Capture(pieces.REMOTE, every_h, stall=Constant(stall_h), background=Constant(behind_h)),
        ),
        tax=Tax(memory=1.0),
    )


def bits_for(n_restores: float) -> int:
    """Bits of a value by the restores expected: 2, 3, 4 up to 1, 3, 20 of them, else 8.

    Source: Check-N-Run (Eisenman et al. 2022), secondary.
    """
    return next((bits for most, bits in BITS_BY_RESTORES if n_restores <= most), MOST_BITS)


def mean_fractions(chain: str, first: float, growth: float, n_saves: int) -> tuple[float, float]:
    """What a save writes and what a restore reads on average, as shares of the model.

    Parameters
    ----------
    chain : `intermittent`, `one-shot` or `consecutive`
    n_saves : of the job, the whole one before them included

    Raises
    ------
    ParameterError
        there is no such chain, or increments that grow by no rule

    Notes
    -----
    A failure strikes after each of the saves alike. Sizes as in `analytic.systems`. Source:
    derived here.
    """
    if chain == "intermittent":
        n_saves = min(n_saves, 1 + increments_before_whole(first, growth))
    elif chain == "consecutive":
        later = first * (n_saves - 1)
        return (1.0 + later) / n_saves, 1.0 + later / 2.0
    elif chain != "one-shot":
        raise ParameterError(
            f"`chain` is `{chain}`; it is `intermittent`, `one-shot` or `consecutive`"
        )
    later = sum(increment_fraction(i, first, growth) for i in range(1, n_saves))
    return (1.0 + later) / n_saves, 1.0 + later / n_saves


SYSTEMS = (
    System(
        name="check-n-run",
        summary="rows touched since a whole save, quantised, behind the job",
        source="Eisenman et al. 2022 (NSDI): mechanism and interval published, sizes and bits "
        "secondary",
        options=Intermittent, plan=check_n_run, interval="every", family=Family.DELTAS,
        cited="NSDI'22", mark=Provenance.PUBLISHED,
        not_counted="what quantised saves cost in accuracy is not priced",
    ),
    System(
        name="incrcp",
        summary="rows touched since the last save; a restore reads each row of the chain once",
        source="IncrCP (PVLDB 2025): mechanism secondary",
        options=Consecutive, plan=incrcp, interval="every", family=Family.DELTAS,
        cited="PVLDB'25", mark=Provenance.SECONDARY,
    ),
    System(
        name="ssdc",
        summary="rows that changed by more than a threshold",
        source="SSDC (ISCAS 2024): mechanism secondary",
        options=Threshold, plan=ssdc, interval="every", family=Family.DELTAS,
        cited="ISCAS'24", mark=Provenance.SECONDARY, needs=(("fraction", 0.3),),
        not_counted="what rows below the threshold, which stay stale, cost in accuracy is not "
        "priced",
    ),
)  # fmt: skip
