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

from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.options import Option
from cprsim.recovery.policy import Capture, Policy, Tax
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options

BITS = 32
BITS_BY_RESTORES = ((1.0, 2), (3.0, 3), (20.0, 4))  # at most so many restores: bits (secondary)
MOST_BITS = 8
MOST_INCREMENTS = 100_000


FIRST = "of the model, that an increment holds (secondary; a workload's)"
CHAIN = {
    "every": Option(0.5, "time", "progress between saves (published)"),
    "chain": Option("intermittent", "word", "`intermittent`, `one-shot` or `consecutive`"),
    "first": Option(0.26, "share", FIRST),
    "growth": Option(
        0.28, "number", "exponent by which increments since a whole save grow (secondary)"
    ),
    "bits": Option(
        None, "count", "of each value; default: by the failures expected, 2 to 8 (secondary)"
    ),
}
THRESHOLD = Option(None, "share", "of the model, above the threshold; needed")


def check_n_run(facts: JobFacts, o: Any, name: str) -> Policy:
    pieces.require_positive(name, every=o.every)
    bits = o.bits
    if bits is None:
        bits = bits_for(facts.useful_h / facts.mtbf_h)
    if not 1 <= bits <= BITS:
        raise ParameterError(f"`bits` of {name} is {bits}; it must lie between 1 and {BITS}")
    n_saves = max(1, round(facts.useful_h / o.every))
    written, read = mean_fractions(o.chain, o.first, o.growth, n_saves)
    return _policy(facts, o, name, written * bits / BITS, read * bits / BITS)


def incrcp(facts: JobFacts, o: Any, name: str) -> Policy:
    """Consecutive increments, of which a restore reads each row once."""
    return _policy(facts, o, name, o.first, 1.0)


def ssdc(facts: JobFacts, o: Any, name: str) -> Policy:
    if o.fraction is None:
        raise ParameterError(f"{name} writes rows above a threshold: give `fraction`, their share")
    return _policy(facts, o, name, o.fraction, 1.0)


def _policy(facts: JobFacts, o: Any, name: str, written: float, read: float) -> Policy:
    """A system whose saves write, and whose loads read, these shares of a whole one."""
    stall_h = pieces.snapshot_h(facts, o.snapshot, name)
    behind_h = written * pieces.persist_h(facts, o.persist)
    every_h = pieces.interval_h(facts, o.every, stall_h, behind_h, name)
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

    A failure strikes after each of the saves alike. Source: derived here.
    """
    if not (0.0 <= first <= 1.0 and growth >= 0.0):
        raise ParameterError(f"increments of {first} i^{growth} of the model make no sense")
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


SYSTEMS = (
    System(
        "check-n-run", "rows touched since a whole save, quantised, behind the job",
        "Eisenman et al. 2022 (NSDI): mechanism and interval published, sizes and bits secondary",
        options("snapshot persist", CHAIN), check_n_run, interval="every", family=Family.DELTAS,
        cited="NSDI'22", mark=Provenance.PUBLISHED,
        not_counted="what quantised saves cost in accuracy is not priced",
    ),
    System(
        "incrcp", "rows touched since the last save; a restore reads each row of the chain once",
        "IncrCP (PVLDB 2025): mechanism secondary",
        options("every snapshot persist", {"first": CHAIN["first"]}), incrcp, interval="every",
        family=Family.DELTAS, cited="PVLDB'25", mark=Provenance.SECONDARY,
    ),
    System(
        "ssdc", "rows that changed by more than a threshold",
        "SSDC (ISCAS 2024): mechanism secondary",
        options("every snapshot persist", {"fraction": THRESHOLD}), ssdc, interval="every",
        family=Family.DELTAS, cited="ISCAS'24", mark=Provenance.SECONDARY,
        needs=(("fraction", 0.3),),
        not_counted="what rows below the threshold, which stay stale, cost in accuracy is not "
        "priced",
    ),
)  # fmt: skip
