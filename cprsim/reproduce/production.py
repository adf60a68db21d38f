"""The share of overhead that CPR removes at production scale, over what the paper leaves open.

The paper says how large the job was and how it failed, not what its checkpoints weighed or cost. So
the share is a table over the plausible range; nothing in it is tuned.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from cprsim.experiments.assemble import assemble
from cprsim.plots.chart import Band, Chart, Panel, Series
from cprsim.recovery.policy import Policy
from cprsim.reproduce.estimates import StudyEstimate, series
from cprsim.reproduce.paper import PRODUCTION_REMOVED
from cprsim.reproduce.simulated import OVERHEAD, Simulated, simulate_cases
from cprsim.reproduce.study import Study, Work
from cprsim.reproduce.summary import Listing, Target, alone
from cprsim.reproduce.verdicts import Assumptions, agreement

SCENARIO = "production.yaml"
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


@dataclass(frozen=True, slots=True)
class ProductionCase:
    """One choice of what the paper leaves open, and of the form of CPR's interval."""

    storage: str
    reschedule_min: int
    form: str
    simulated: Simulated
    first_order: float  # share of full recovery's overhead that CPR removes, by the formulas

    @property
    def removed(self) -> StudyEstimate:
        """Share of full recovery's overhead that CPR removes, in percent."""
        return self.simulated.removed_percent(self.form)

    @property
    def met(self) -> bool | None:
        """Whether that is over the published bound."""
        return agreement(PRODUCTION_REMOVED, self.removed)


Cases = list[ProductionCase]


def numbers(work: Work) -> Cases:
    """Simulate the shipped production scenario over storage, rescheduling and interval form."""
    choices = {choice: _overrides(*choice) for choice in product(STORAGES, RESCHEDULE_MIN)}
    simulated = simulate_cases(
        work, {choice: (SCENARIO, overrides) for choice, overrides in choices.items()}
    )
    return [
        ProductionCase(*choice, policy.name, simulated[choice], first_order_removed(policy))
        for choice, overrides in choices.items()
        for policy in assemble(work.scenario(SCENARIO, overrides)).policies
        if policy.name in FORMS
    ]


def _overrides(storage: str, reschedule_min: int) -> list[str]:
    bandwidth, per_server = STORAGES[storage]
    return [
        f"storage.bandwidth={bandwidth}",
        f"storage.per_server={per_server}",
        f"costs.reschedule={reschedule_min} min",
        f"simulation.replications={REPLICATIONS}",
    ]


def first_order_removed(policy: Policy) -> float:
    """Share of full recovery's overhead that a CPR policy removes, by the paper's formulas."""
    decision = policy.decision
    assert decision is not None, "CPR's policies carry their decision"
    full = decision.full_overhead_fraction
    return 1.0 - min(decision.partial_overhead_fraction, full) / full


def _typical(cases: Cases) -> Simulated:
    return next(one.simulated for one in cases if (one.storage, one.reschedule_min) == TYPICAL)


TARGETS: list[Target[Cases]] = [
    Target(
        "overhead removed by CPR",
        PRODUCTION_REMOVED,
        lambda cases: tuple(one.removed for one in cases),
        Assumptions(FREE),
    ),
    alone(
        "full recovery, overhead of the shipped scenario",
        lambda cases: _typical(cases).percent("full"),
        "%",
    ),
    alone("CPR (divided), likewise", lambda cases: _typical(cases).percent("cpr"), "%"),
    alone("CPR (undivided), likewise", lambda cases: _typical(cases).percent("cpr-undivided"), "%"),
]


def _listings(cases: Cases) -> list[Listing]:
    in_words = {True: "yes", False: "no", None: "open"}
    return [
        Listing.of(
            "Share of full recovery's overhead that CPR removes; 50 GB per server and target PLS "
            "0.1 are assumed:",
            cases,
            ("storage bandwidth", lambda one: one.storage),
            ("O_res, min", lambda one: str(one.reschedule_min)),
            ("interval", lambda one: FORMS[one.form]),
            ("T_save, h", lambda one: f"{one.simulated[one.form, 'save_interval_h'].mean:.3g}"),
            ("PLS", lambda one: f"{one.simulated[one.form, 'pls'].mean:.3f}"),
            ("removed, first order", lambda one: f"{100 * one.first_order:.1f} %"),
            ("removed, simulated", lambda one: f"{one.removed.mean:.1f} %"),
            ("over 91 %", lambda one: in_words[one.met]),
        )
    ]


def _reached(cases: Cases) -> str:
    reached = [
        f"{one.storage}, O_res {one.reschedule_min} min, {FORMS[one.form]}"
        for one in cases
        if one.met
    ]
    return f"Over 91 % is removed in {len(reached)} of {len(cases)} cases: {'; '.join(reached)}."


def _chart(cases: Cases) -> Chart:
    def removed(form: str, storage: str) -> Series:
        line = [one for one in cases if (one.form, one.storage) == (form, storage)]
        x = [one.reschedule_min for one in line]
        return series(f"{storage}, {FORMS[form]}", x, [one.removed for one in line])

    bound = Band(f"paper: {PRODUCTION_REMOVED}", PRODUCTION_REMOVED.low, PRODUCTION_REMOVED.low)
    return Chart(
        "Production scale: 5 failures of 4 servers in 50 h",
        "Mean of 1,000 replications; error bars: 95 % interval.",
        (
            Panel(
                f"Overhead of the shipped scenario ({TYPICAL[0]}, O_res {TYPICAL[1]} min)",
                "",
                OVERHEAD,
                _typical(cases).stack(STRATEGIES),
            ),
            Panel(
                "Removed by CPR, over what the paper leaves open",
                "rescheduling O_res, min",
                "overhead removed, % of full recovery's",
                tuple(removed(form, storage) for form in FORMS for storage in STORAGES),
                (bound,),
                y_from_zero=False,
            ),
        ),
    )


STUDY = Study(
    name="production",
    shows="share of overhead that CPR removes at production scale",
    title="Production scale",
    question="20 trainers, 18 embedding servers, 50 h, 5 failures of 4 servers each: how much of "
    "full recovery's overhead does CPR remove?",
    numbers=numbers,
    targets=TARGETS,
    listings=_listings,
    notes=(
        _reached,
        "What decides is rescheduling, and how far apart the loads of one server and of all are: "
        "both recoveries pay O_res at each failure, so the longer it is, the smaller the share "
        "that partial recovery can remove. The undivided form removes more because it accepts "
        "about 4 times the target PLS when 4 servers fail together.",
    ),
    chart=_chart,
    inputs=(SCENARIO,),
)
