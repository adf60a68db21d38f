"""The share of overhead that CPR removes at production scale, over what the paper leaves open.

The paper says how large the job was and how it failed, not what its checkpoints weighed or cost. So
the share is a table over the plausible range; nothing in it is tuned.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

from cprsim.assemble import assemble
from cprsim.plots.chart import Band, Chart, Panel, Series
from cprsim.records import RecoveryPolicy
from cprsim.reproduce.paper import PRODUCTION_REMOVED
from cprsim.reproduce.simulated import Simulated, removed_percent, simulated
from cprsim.reproduce.study import Part, Study, Work
from cprsim.reproduce.summary import Listing, Summary, alone, compared_over_cases
from cprsim.reproduce.verdicts import Basis, agreement

STORAGES = {
    "25 Gbit/s in all": ("25 Gbit/s", "25 Gbit/s"),
    "100 Gbit/s in all": ("100 Gbit/s", "25 Gbit/s"),
    "25 Gbit/s per server": ("450 Gbit/s", "25 Gbit/s"),  # 18 servers, each its own
}
RESCHEDULE_MIN = (1, 2, 5)
FORMS = {"cpr": "divided", "cpr-undivided": "undivided"}
REPLICATIONS = 1000
TYPICAL = ("25 Gbit/s in all", 2)  # the shipped scenario as it is
STRATEGIES = {
    "full": "full recovery",
    "partial": "naive partial recovery",
    "cpr": "CPR, divided",
    "cpr-undivided": "CPR, undivided",
}
FREE = ("shard size and storage bandwidth", "rescheduling time", "target PLS")
HEADINGS = (
    "storage bandwidth",
    "O_res, min",
    "interval",
    "T_save, h",
    "PLS",
    "removed, first order",
    "removed, simulated",
    "over 91 %",
)


def make(work: Work) -> Summary:
    """Simulate the shipped production scenario over storage, rescheduling and interval form."""
    cases = list(product(STORAGES, RESCHEDULE_MIN))
    parts = [
        Part(f"{storage}, {minutes} min", partial(_measured, work, storage, minutes))
        for storage, minutes in cases
    ]
    found = dict(zip(cases, work.each(parts), strict=True))
    ours = {case: Simulated(one["simulated"]) for case, one in found.items()}
    removed = [removed_percent(one, form) for one in ours.values() for form in FORMS]
    typical = ours[TYPICAL]
    return Summary(
        "Production scale",
        "20 trainers, 18 embedding servers, 50 h, 5 failures of 4 servers each: how much of full "
        "recovery's overhead does CPR remove?",
        (
            compared_over_cases(
                "overhead removed by CPR", PRODUCTION_REMOVED, removed, Basis(FREE)
            ),
            alone("full recovery, overhead of the shipped scenario", typical.percent("full"), "%"),
            alone("CPR (divided), likewise", typical.percent("cpr"), "%"),
            alone("CPR (undivided), likewise", typical.percent("cpr-undivided"), "%"),
        ),
        (
            Listing(
                "Share of full recovery's overhead that CPR removes; 50 GB per server and target "
                "PLS 0.1 are assumed:",
                HEADINGS,
                tuple(
                    _row(*case, form, one, ours[case])
                    for case, one in found.items()
                    for form in FORMS
                ),
            ),
        ),
        _notes(ours),
        (_chart(ours),),
    )


def _measured(work: Work, storage: str, reschedule_min: int) -> dict[str, Any]:
    bandwidth, per_server = STORAGES[storage]
    loaded = work.scenario(
        "production.yaml",
        [
            f"storage.bandwidth={bandwidth}",
            f"storage.per_server={per_server}",
            f"costs.reschedule={reschedule_min} min",
            f"simulation.replications={REPLICATIONS}",
        ],
    )
    experiment = assemble(loaded)
    first_order = {
        policy.name: first_order_removed(policy)
        for policy in experiment.policies
        if policy.name in FORMS
    }
    return {"simulated": simulated(experiment), "first order": first_order}


def first_order_removed(policy: RecoveryPolicy) -> float:
    """Share of full recovery's overhead that a CPR policy removes, by the paper's formulas."""
    decision = policy.decision
    assert decision is not None, "CPR's policies carry their decision"
    full = decision.full_overhead_fraction
    return 1.0 - min(decision.partial_overhead_fraction, full) / full


def _row(
    storage: str, minutes: int, form: str, found: dict[str, Any], ours: Simulated
) -> tuple[str, ...]:
    removed = removed_percent(ours, form)
    met = agreement(PRODUCTION_REMOVED, removed)
    return (
        storage,
        str(minutes),
        FORMS[form],
        f"{ours[form, 'save_interval_h'].value:.3g}",
        f"{ours[form, 'pls'].value:.3f}",
        f"{100 * found['first order'][form]:.1f} %",
        f"{removed.value:.1f} %",
        "open" if met is None else "yes" if met else "no",
    )


def _notes(ours: dict[tuple[str, int], Simulated]) -> tuple[str, ...]:
    reached = [
        f"{storage}, O_res {minutes} min, {FORMS[form]}"
        for (storage, minutes), one in ours.items()
        for form in FORMS
        if agreement(PRODUCTION_REMOVED, removed_percent(one, form))
    ]
    return (
        f"Over 91 % is removed in {len(reached)} of {len(ours) * len(FORMS)} cases: "
        f"{'; '.join(reached)}.",
        "What decides is rescheduling, and how far apart the loads of one server and of all are: "
        "both recoveries pay O_res at each failure, so the longer it is, the smaller the share "
        "that partial recovery can remove. The undivided form removes more because it accepts "
        "about 4 times the target PLS when 4 servers fail together.",
    )


def _chart(ours: dict[tuple[str, int], Simulated]) -> Chart:
    bars = Panel(
        f"Overhead of the shipped scenario ({TYPICAL[0]}, O_res {TYPICAL[1]} min)",
        "",
        "overhead, % of useful time",
        ours[TYPICAL].stack(STRATEGIES),
    )
    lines = [
        _removed_line(f"{storage}, {FORMS[form]}", [ours[storage, m] for m in RESCHEDULE_MIN], form)
        for form in FORMS
        for storage in STORAGES
    ]
    bound = Band(f"paper: {PRODUCTION_REMOVED}", PRODUCTION_REMOVED.low, PRODUCTION_REMOVED.low)
    removed = Panel(
        "Removed by CPR, over what the paper leaves open",
        "rescheduling O_res, min",
        "overhead removed, % of full recovery's",
        tuple(lines),
        (bound,),
        y_from_zero=False,
    )
    return Chart(
        "Production scale: 5 failures of 4 servers in 50 h",
        "Mean of 1,000 replications; error bars: 95 % interval.",
        (bars, removed),
    )


def _removed_line(label: str, cases: Sequence[Simulated], form: str) -> Series:
    values = [removed_percent(one, form) for one in cases]
    return Series(
        label,
        RESCHEDULE_MIN,
        tuple(one.value for one in values),
        tuple(one.low for one in values),
        tuple(one.high for one in values),
    )


STUDY = Study(
    "production",
    "share of overhead that CPR removes at production scale",
    make,
    ("production.yaml",),
)
