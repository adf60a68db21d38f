"""What is asked of the recovery systems: statements, the papers' numbers, and tolerances.

Written before the simulations that it judges (`systems.py`), by the rules of `verdicts`; the
tolerance of each target is said, for it is narrower than a tenth.

Marks: published, secondary, recalled, derived. What the executed artifact of a paper prints is
derived from it, and says so.
"""

from __future__ import annotations

from typing import NamedTuple

from cprsim.studies.estimates import StudyEstimate
from cprsim.studies.verdicts import (
    DERIVED,
    PUBLISHED,
    RECALLED,
    SECONDARY,
    SOLID,
    Basis,
    Claim,
    Reported,
    Tested,
    Tolerance,
    about,
    agreement,
    at_most,
    compare,
)

ROUNDING = 1e-9
EXACT, PRINTED, HUNDREDTH, QUARTER, POINT = (  # printed: with four decimals; points of a percentage
    Tolerance(size, absolute=True) for size in (ROUNDING, 5e-5, 0.01, 0.25, 1.0)
)
NO_FURTHER = Tolerance(1e-6, absolute=True)
ERRORS = Tolerance(None)  # 4 standard errors
PERCENT, TWO, FORTIETH, FIVE, TENTH, FIFTEEN = map(Tolerance, (0.01, 0.02, 0.025, 0.05, 0.1, 0.15))


class Target(NamedTuple):
    """A quantity of a system, and what is reported of it."""

    quantity: str
    reported: Reported
    basis: Basis = SOLID

    def claim(self, ours: StudyEstimate) -> Claim:
        """Ours beside it; without noise with five digits."""
        what = f"{self.quantity} ({self.reported.tolerance_shown})"
        low, high = ours.ends
        if high - low > ROUNDING * max(1.0, abs(ours.mean)):
            return compare(what, self.reported, ours, self.basis)
        value = 0.0 if abs(ours.mean) < ROUNDING else ours.mean
        shown = f"{value:.5g} {self.reported.unit}".rstrip()
        tested = Tested(agreement(self.reported, ours), shown, ours)
        return compare(what, self.reported, tested, self.basis)


def assumed(*inputs: str) -> Basis:
    """Inputs without which nothing can be told."""
    return Basis("", inputs, decides=False)


BAMBOO = {0.01: 148.0, 0.05: 134.9, 0.1: 131.3, 0.25: 114.6, 0.5: 83.3}  # by chance per hour
# GEMINI: probabilities that hosts' memory survives (derived from its formula, which is secondary),
# by placement of two copies, machines, and how many are lost.
SURVIVES = {
    ("groups", 16, 2): 0.9333, ("groups", 16, 3): 0.8000, ("groups", 16, 4): 0.6154,
    ("groups", 1000, 2): 0.9990, ("groups", 1000, 3): 0.9970,
    ("ring", 16, 2): 0.8667, ("ring", 16, 3): 0.6286, ("ring", 16, 4): 0.3626,
}  # fmt: skip
# Means of the goodput lab's rules over seeds 1 to 4,000, of which it prints those of 20. Added
# after the first run, in which all four lay 0.6 to 0.7 points above the printed ones. The rules
# were run in the lab's order of draws: seeds 1 to 20 give its printed numbers to the digit.
GOODPUT_MEANS = {"baseline": 80.21, "interval": 85.67, "stall": 92.28, "hangs": 81.11}

TARGETS: dict[str, Target] = {
    f"gemini {place} {n} {k} {how}": Target(
        f"GEMINI: {k} of {n} machines lost, 2 copies in {place}, {shown}",
        about(p, "", DERIVED, tolerance),
    )
    for (place, n, k), p in SURVIVES.items()
    for how, shown, tolerance in (
        ("exact", "its formula", PRINTED),
        ("simulated", "simulated", ERRORS),
    )
    if how == "simulated" or place == "groups"
}
TARGETS |= {
    "gemini wasted": Target("GEMINI: 530e9 parameters lost from memory, wasted time",
        about(105.0, "min", SECONDARY, PERCENT)),
    "gemini wasted simulated": Target("the same, simulated (106.0 by the bytes)",
        about(106.0, "min", DERIVED, PERCENT)),
    "pccheck in flight": Target(
        "PCcheck: work lost beyond its own formula, over half of a save's writing",
        about(1.0, "", DERIVED, FIVE)),
    "pccheck throughput": Target(
        "PCcheck: saves per hour with 2 in flight that take 3 intervals each",
        about(2 / 3, "per interval", DERIVED, PERCENT, text="0.667 per interval")),
    "checkfreq steps": Target("CheckFreq: steps between saves for t_f 10.5, overhead .6, t 1",
        about(12.0, "steps", DERIVED, EXACT, text="12 steps by its code's rule")),
    "check-n-run period": Target("Check-N-Run: saves from one whole one to the next",
        about(9.0, "saves", DERIVED, EXACT)),
    "check-n-run size": Target("Check-N-Run: models written per save",
        about(0.4515, "", DERIVED, PRINTED)),
    "check-n-run consecutive": Target("Check-N-Run: models stored after 11 consecutive increments",
        about(3.86, "", SECONDARY, EXACT)),
    "ecrec": Target("ECRec: overhead over its closed form p + λ (D + A + B (1 - v))",
        about(1.0, "", DERIVED, PERCENT)),
    "ecrec no failures": Target("ECRec: overhead without failures, p = 5 %",
        about(5.0, "%", DERIVED, EXACT)),
    "moc bytes": Target("MoC: bytes of a save with 8 of 64 experts",
        about(0.14 + 0.86 / 8, "", DERIVED, EXACT, text="0.2475 by its shares")),
    "moc overhead": Target("MoC: overhead over s I_tot/I + n_f (R + I/2)",
        about(1.0, "", SECONDARY, PERCENT)),
    "moc staleness": Target("MoC: intervals that experts lose at 4 of 16",
        about(1.5, "", DERIVED, ERRORS)),
    "moc plt": Target("MoC: portion of lost tokens", at_most(3.75, "%", PUBLISHED),
        assumed("its formula", "its failures")),
    "swift full redo": Target("Swift: lost per failure at replay speed 1, over half an interval",
        about(1.0, "", DERIVED, ERRORS)),
    "swift replica": Target(
        "Swift: the same at replay speed 1e9", about(0.0, "", DERIVED, NO_FURTHER)),
    "just-in-time": Target("just-in-time over periodic saves at the break-even rate",
        about(1.0, "", DERIVED, ERRORS)),
    "hsdp stall 10": Target(
        "FT-HSDP: effective time, a failure each 18 min, 10 min of stall, evenly spaced",
        about(0.444, "", PUBLISHED, HUNDREDTH, text="44 % (1 - 10/18)")),
    "hsdp stall 3": Target("FT-HSDP: the same with 3 min of stall",
        about(0.833, "", DERIVED, HUNDREDTH, text="0.833 (1 - 3/18)")),
    "hsdp stall 3 published": Target("FT-HSDP: the same, with the speed of the absent group",
        about(0.80, "", PUBLISHED, HUNDREDTH), assumed("share of absent groups")),
    "hsdp poisson wall": Target("FT-HSDP: 10 min, Poisson on wall time",
        about(0.574, "", DERIVED, HUNDREDTH)),
    "hsdp poisson uptime": Target("FT-HSDP: 10 min, Poisson on uptime",
        about(0.643, "", DERIVED, HUNDREDTH)),
    "spare mu 3": Target(
        "SPARe: failures until a shard is lost, 200 shards on 3 of 200 groups, over its formula",
        about(1.0, "", DERIVED, FIVE)),
    "levels formula": Target("levels of 5 s and 5 min, 1/5 h and 1/100 h: overhead by the formula",
        about(0.0644, "", RECALLED, PRINTED)),
    "levels simulated": Target("the same, simulated (the number is another event simulation's)",
        about(0.0672, "", DERIVED, TWO)),
    "goodput baseline": Target("goodput lab: productive time, 5-min saves each 30 min",
        about(79.6, "%", PUBLISHED, POINT)),
    "goodput interval": Target(
        "goodput lab: saves each 91 min", about(85.1, "%", PUBLISHED, POINT)),
    "goodput stall": Target("goodput lab: a stall of 30 s", about(91.7, "%", PUBLISHED, POINT)),
    "goodput hangs": Target(
        "goodput lab: hangs found in 5 min", about(80.6, "%", PUBLISHED, POINT)),
}  # fmt: skip
TARGETS |= {
    f"goodput {name} expected": Target(
        f"goodput lab: {name}, expected",
        about(mean, "%", DERIVED, QUARTER, text=f"{mean} % (its rules, 4,000 seeds)"),
    )
    for name, mean in GOODPUT_MEANS.items()
}
TARGETS |= {
    f"bamboo {p:g}": Target(
        f"Bamboo: BERT-large, samples/s, {p:.0%} of its nodes taken per hour",
        about(rate, "", PUBLISHED, FIFTEEN),
    )
    for p, rate in BAMBOO.items()
}

GAPS_MIN = {"6 h": 360.0, "3 h": 180.0, "1 h": 60.0, "30 min": 30.0, "10 min": 10.02}
OOBLECK, VARUNA = (287.1, 286.9, 286.3, 285.2, 282.1), (260.1, 256.5, 246.0, 232.8, 173.5)
ELASTIC = {
    f"{name} {gap}": Target(
        f"{name.capitalize()}: BERT-large, samples/s, a node leaves each {gap}",
        about(rate, "", DERIVED, tolerance, text=f"{rate} (its artifact)"),
    )
    for name, rates, tolerance in (("oobleck", OOBLECK, PERCENT), ("varuna", VARUNA, FORTIETH))
    for gap, rate in zip(GAPS_MIN, rates, strict=True)
}
ELASTIC["oobleck gcp"] = Target(
    "Oobleck: BERT-large, samples/s on GCP's spot nodes",
    about(243.7, "", DERIVED, TENTH, text="243.7 (its artifact)"),
)
# SPARe, 600,000 H100, secondary: groups, by replication r = 3, by SPARe
AVAILABILITY = ((200, 61.7, 87.0), (600, 79.9, 93.9), (1000, 84.4, 96.5))
