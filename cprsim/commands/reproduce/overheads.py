"""Simulated costs of failures: the emulation, its sensitivity to inputs, and production scale.

The emulation: 56 h on 8 embedding servers with two failures, on two Criteo data sets.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from json import dumps
from math import floor, log, nan
from typing import Any, TypeVar

import numpy as np

from cprsim.commands.reproduce.estimates import StudyEstimate, series, stack
from cprsim.commands.reproduce.study import Summary, Work
from cprsim.commands.reproduce.verdicts import TOLERANCE, Ours, Tested
from cprsim.files import finite_or_none
from cprsim.job.intervals import full_overhead_fraction, partial_overhead_fraction
from cprsim.job.policy import ROLL_BACK, Policy
from cprsim.pages.chart import Band, Panel, Series
from cprsim.pages.figures import OVERHEAD_LABEL
from cprsim.recovery.systems import SYSTEMS, shipped_systems
from cprsim.results.metrics import IN_TABLES, share_of, summarise
from cprsim.results.pipeline import simulate
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.reading import LoadedScenario

Case = TypeVar("Case", bound=Hashable)
Values = Mapping[str, Mapping[str, Sequence[float | None]]]  # strategy, quantity: mean, low, high
Labels = Mapping[str, str]  # by strategy
KAGGLE, PRODUCTION = "criteo-kaggle.yaml", "production.yaml"
FULL, PARTIAL = {"full": "full recovery"}, {"partial": "naive partial"}
CPR_FORMS = {"cpr": "divided", "cpr-undivided": "undivided"}
OF_FORMS = {form: f"CPR, {label}" for form, label in CPR_FORMS.items()}


@dataclass(frozen=True, slots=True)
class Simulated:
    """Means and 95 % intervals of the costs of one scenario's strategies."""

    values: Values

    def __getitem__(self, key: tuple[str, str]) -> StudyEstimate:
        strategy, quantity = key
        triple = self.values[strategy][quantity]
        mean, low, high = (nan if value is None else value for value in triple)
        return StudyEstimate(mean, low, high)

    def percent(self, strategy: str, quantity: str = "overhead_fraction") -> StudyEstimate:
        """A share in percent."""
        return self[strategy, quantity].times(100)

    def removed_percent(self, strategy: str) -> StudyEstimate:
        """Share of full recovery's mean overhead that another strategy removes, in percent.

        Its interval takes the two means as independent; common failures make it narrower in truth.
        """
        left = self[strategy, "overhead_fraction"].over(self["full", "overhead_fraction"])
        return StudyEstimate.around(100 * (1 - left.mean), 100 * left.half_width)

    def cells(self, strategies: Labels) -> dict[str, str]:
        """The overheads of strategies, by their labels."""
        return {f"{label}, %": self.percent(name).text() for name, label in strategies.items()}

    def chosen(self, form: str, label: str, pls: str) -> dict[str, str]:
        """T_save in hours, whether CPR went back to full recovery, and the PLS."""
        full = "" if self[form, "chose_partial"].mean else " (full)"
        return {
            f"{label}: T_save, h": f"{self[form, 'save_interval_h'].mean:.3g}{full}",
            pls: f"{self[form, 'pls'].mean:.3f}",
        }

    def stack(self, label: Labels) -> tuple[Series, ...]:
        """Stacked bars of mean overhead by cause, in percent; the interval is that of the total."""
        shares = {part: [self.percent(name, share_of(part)).mean for name in label]
                  for part in IN_TABLES}  # fmt: skip
        parts = {part: of for part, of in shares.items() if any(share > 0 for share in of)}
        return stack(parts, label.values(), map(self.percent, label))


def simulate_cases(
    work: Work, scenario: str, cases: Mapping[Case, Sequence[str]]
) -> dict[Case, Simulated]:
    """Simulate one of the study's scenarios under the overrides of each case."""
    parts = {case: partial(_simulated, work, scenario, sets) for case, sets in cases.items()}
    return {case: Simulated(values) for case, values in work.compute(parts).items()}


def _simulated(work: Work, scenario: str, overrides: Sequence[str]) -> Values:
    """Mean, low and high of every metric of every strategy; its interval and its decision."""
    experiment = assemble(work.scenario(scenario, overrides))
    summary = summarise(simulate(experiment))
    values: dict[str, dict[str, Sequence[float | None]]] = {}
    for policy in experiment.policies:
        is_partial = policy.decision is None or policy.decision.chosen == "partial"
        values[policy.name] = {
            **{name: [*map(finite_or_none, x.triple)] for name, x in summary[policy.name].items()},
            "save_interval_h": [finite_or_none(policy.interval_h), None, None],
            "chose_partial": [float(is_partial), None, None],
        }
    return values


def overheads_over(
    title: str, x_label: str, cases: Mapping[Any, Simulated], strategies: Labels, **scales: Any
) -> Panel:
    """A panel with the overhead of some strategies, by their labels, over an input."""
    lines = tuple(
        series(label, cases, [simulated.percent(name) for simulated in cases.values()])
        for name, label in strategies.items()
    )
    return Panel(title, x_label, OVERHEAD_LABEL, lines, **scales)


# --------------------------------------------------------------------------- the emulation

CRITEO_TITLES = {"criteo-kaggle": "Kaggle", "criteo-terabyte": "Terabyte"}
PAPERS = ("full", "partial", "cpr-mfu", "cpr-ssu")  # whose overheads the paper has
IN_EMULATION = FULL | {
    "partial": "naive partial recovery",
    "cpr": "CPR, whole saves",
    "cpr-mfu": "CPR-MFU",
    "cpr-ssu": "CPR-SSU",
    "cpr-scar": "CPR-SCAR",
}


def fig_overheads(work: Work) -> Summary:
    """Overheads by the paper's first-order formula, counted, and simulated; other failures.

    Counting corrects the formula where the job is no whole number of intervals; other failures also
    strike saves and recoveries. The user's own recovery systems come last, where they can run.
    """
    estimates: dict[str, Ours] = {}
    rows, panels = [], []
    for name, title in CRITEO_TITLES.items():
        file = f"{name}.yaml"
        own, listed = own_systems(work.scenario(file))
        shown = IN_EMULATION | dict(zip(own, own, strict=True))
        cases = {f"{name}{case}": [*sets, *listed] for case, sets in work.study.cases.items()}
        injected, exponential = simulate_cases(work, file, cases).values()
        reported = {}
        for strategy in PAPERS:
            quantity = f"{title}: {IN_EMULATION[strategy]}, overhead"
            estimates[quantity] = injected.percent(strategy)
            reported[strategy] = work.study.claims[quantity]
        estimates[f"{title}: CPR with whole saves, overhead"] = injected.percent("cpr")
        estimates[f"{title}: removed by CPR-MFU"] = injected.removed_percent("cpr-mfu")
        estimates |= {f"{title}: {each}, overhead in %": injected.percent(each) for each in own}
        experiment = assemble(work.scenario(file))
        formulas = {
            policy.name: [f"{100 * of:.2f}" for of in by_formula(experiment, policy)]
            for policy in experiment.policies
        }
        rows += [
            {
                "scenario": name,
                "strategy": strategy,
                "paper, %": str(reported.get(strategy, "")),
                "first order, %": formulas.get(strategy, ("", ""))[0],
                "counted, %": formulas.get(strategy, ("", ""))[1],
                "simulated, %": injected.percent(strategy).text(),
                "exponential, wall, %": exponential.percent(strategy).text(),
            }
            for strategy in shown
        ]
        papers = [
            series(f"paper ({mark})", [IN_EMULATION[strategy] for strategy in marked],
                   [reported[strategy].low for strategy in marked], kind="paper")
            for mark in ("published", "recalled")
            for marked in [[key for key, target in reported.items() if target.mark == mark]]
        ]  # fmt: skip
        drawn = (*injected.stack(shown), *papers)
        panels.append(Panel(f"Criteo {title}", "", OVERHEAD_LABEL, drawn))
    return work.study.summary(
        estimates, {"The same in detail, in % of useful time:": rows}, *panels
    )


def own_systems(loaded: LoadedScenario) -> tuple[list[str], list[str]]:
    """The user's own systems, and the override that adds them to the scenario's entries."""
    names = [name for name in SYSTEMS if name not in shipped_systems()]
    entries: Any = loaded.data["recovery"]
    return names, [f"recovery={dumps([*entries, *names])}"] if names else []


def by_formula(experiment: Experiment, policy: Policy) -> tuple[float, float]:
    """Overhead as a share of useful time: by the paper's formula, and with saves counted whole.

    Counted: injected failures at uniformly random progress. With n = floor(T / T_save) saves and a
    remainder r, a uniform instant is ``(n T_save^2 + r^2) / (2 T)`` from the last save on average.
    Sub-saves count as parts of a save. Exact on the progress clock.
    """
    costs, useful_h, interval_h = experiment.costs, experiment.useful_h, policy.interval_h
    n_servers, rolls_back = experiment.cluster.n_emb_ps, policy.on_failure == ROLL_BACK
    load_h = costs.mean_h(costs.load, n_servers if rolls_back else 1)
    save_h = costs.mean_h(costs.save_stall, n_servers)
    recovery_h = costs.detect.mean_h + costs.reschedule.mean_h + load_h
    mtbf_h = experiment.failures.expected(experiment.cluster, useful_h).mtbf_h
    n_saves: float = floor(useful_h / interval_h) if interval_h < useful_h else 0
    remainder_h = useful_h - n_saves * interval_h
    loss_h = (n_saves * interval_h**2 + remainder_h**2) / (2.0 * useful_h) if rolls_back else 0.0
    if (parts := policy.sub_saves) is not None:
        n_saves = floor(useful_h / (parts.fraction * interval_h) + 1e-9) * parts.cost_share
    formula = full_overhead_fraction if rolls_back else partial_overhead_fraction
    counted = (n_saves * save_h + useful_h / mtbf_h * (recovery_h + loss_h)) / useful_h
    return formula(interval_h, save_h, recovery_h, mtbf_h), counted


# --------------------------------------------------------------------------- its sensitivity

N_EMB_PS = 8
TOGETHER = (1, 2, 4)  # of 8 servers: 12.5, 25 and 50 %
USUAL = 0.1  # target PLS, recalled
COMPARED = FULL | PARTIAL | OF_FORMS


def sensitivity(work: Work) -> Summary:
    """Run the emulation on Kaggle over failures, servers failing together, and targets."""
    runs: dict[str, dict[float, Simulated]] = {}
    for case, simulated in simulate_cases(work, KAGGLE, work.study.cases).items():
        of, _, value = case.rpartition(" ")
        runs.setdefault(of, {})[float(value)] = simulated
    shares = {100 * k / N_EMB_PS: simulated for k, simulated in runs["servers"].items()}
    failing = "servers failing, %"
    by_form = [
        series(label, shares, [simulated[form, "pls"] for simulated in shares.values()])
        for form, label in OF_FORMS.items()
    ]
    formula = series("k times the target (derived)", shares, [USUAL * k for k in TOGETHER],
                     kind="paper")  # fmt: skip
    return work.study.summary(
        {
            **_over_failures(runs["failures"][2], runs["failures"][40]),
            **{_pls(form, k): runs["servers"][k][form, "pls"]
               for k in TOGETHER for form in CPR_FORMS},
            **{f"10 intervals: {_pls('cpr', k)}": runs["ten intervals, servers"][k]["cpr", "pls"]
               for k in TOGETHER},
        },
        {
            title: [
                {heading: f"{value:g}"}
                | simulated.cells(COMPARED)
                | simulated.chosen("cpr", "divided", "divided: PLS")
                | simulated.chosen("cpr-undivided", "undivided", "undivided: PLS")
                for value, simulated in runs[heading].items()
            ]
            for title, heading in (
                ("Over the number of failures:", "failures"),
                ("Over the servers that fail together (2 failures):", "servers"),
                ("Over the target PLS (2 failures of 1 server):", "target PLS"),
            )
        },
        overheads_over("Over the number of failures in 56 h", "failures per job",
                       runs["failures"], COMPARED, x_log=True),
        overheads_over("Over the servers that fail together (2 failures)", failing, shares,
                       COMPARED),
        overheads_over("Over the target PLS (2 failures): what it costs", "target PLS",
                       runs["target PLS"], {"cpr": "CPR, 1 server failing"}, x_log=True),
        Panel("PLS, target 0.1", failing, "PLS", (*by_form, formula)),
    )  # fmt: skip


def _over_failures(few: Simulated, many: Simulated) -> dict[str, Ours]:
    form = "cpr-undivided"
    before, after = (simulated.removed_percent(form) for simulated in (few, many))
    before_h, after_h = (simulated[form, "save_interval_h"].mean for simulated in (few, many))
    chose = "partial" if many[form, "chose_partial"].mean else "full"
    return {
        "removed by CPR at 40 failures against 2": Tested(
            after.ends[1] < before.ends[0], f"{after.text('%')} against {before.text('%')}"
        ),
        "what CPR does at 40 failures": Tested(
            after_h < before_h or chose == "full",
            f"{chose} recovery, T_save {after_h:.3g} h instead of {before_h:.3g} h",
        ),
    }


def _pls(form: str, n_together: int) -> str:
    """The PLS by the formula: the target, or k times it where the interval is undivided."""
    return f"PLS, {100 * n_together / N_EMB_PS:g} % of the servers failing, {OF_FORMS[form]}"


# --------------------------------------------------------------------------- more nodes

NODES = (8, 16, 32, 64, 128)
FEWEST, MOST = NODES[0], NODES[-1]
NODE_MTBF_H = 8 * 28.0  # so that 8 nodes have the emulation's MTBF of 28 h
LINEAR, WEIBULL = "MTBF falling as 1/n", "independent new nodes, Weibull 0.7"
INDEPENDENT = "independent nodes, exponential"
SHRINKING = f"{LINEAR}, each server loads its own share"
FAILURE_TEXTS = {
    LINEAR: "{{kind: job, family: exponential, mtbf: {job_h} h, role: emb_ps}}",
    INDEPENDENT: "{{kind: node, roles: {{emb_ps: {{family: exponential, mtbf: {node_h} h}}}}}}",
    WEIBULL: "{{kind: node, start: fresh, roles: "
        "{{emb_ps: {{family: weibull, shape: 0.7, mtbf: {node_h} h}}}}}}",
}  # fmt: skip
FAILURE_TEXTS[SHRINKING] = FAILURE_TEXTS[LINEAR]
SCALED = FULL | PARTIAL | {"cpr": "CPR"}
TABLES_GB = 400.0  # any size: the bandwidth below makes a save of all of it take 5.62 min
STORAGE_BANDWIDTH = f"{TABLES_GB * 8 / (5.62 * 60)!r} Gbit/s"


def scalability(work: Work) -> Summary:
    """Run the emulation on Kaggle with more and more embedding servers.

    Full recovery's overhead grows; whether CPR's does depends on loading. Failures three ways: of
    the job as a whole with an MTBF that falls as 1/n; of independent exponential nodes; of
    independent new nodes that fail most when young (Weibull).
    """
    replications = f"simulation.replications={work.pick(500, 4000, 40_000)}"
    cases = {(kind, n): [*_scaled(kind, n), replications] for kind in FAILURE_TEXTS for n in NODES}
    simulated = simulate_cases(work, KAGGLE, cases)
    runs = {kind: {n: simulated[kind, n] for n in NODES} for kind in FAILURE_TEXTS}
    cpr, full = (
        {kind: [case.percent(name) for case in runs[kind].values()] for kind in runs}
        for name in ("cpr", "full")
    )
    # of the partial strategy, which adds next to no wall time
    failures = [case["cpr", "failures"].mean / case["cpr", "wall_h"].mean
                for case in runs[LINEAR].values()]  # fmt: skip
    slope = -np.polyfit([log(n) for n in NODES], np.log(failures), 1)[0]
    grows = all(less.ends[1] < more.ends[0] for less, more in pairwise(full[LINEAR]))

    def from_to(values: Sequence[StudyEstimate]) -> str:
        return f"{values[0].text('%')} to {values[-1].text('%')} from {FEWEST} to {MOST} nodes"

    def stays(values: Sequence[StudyEstimate]) -> Tested:
        """Its overhead at most nodes is within a tenth of that at fewest."""
        is_met = values[-1].ends[0] <= (1 + TOLERANCE) * values[0].ends[1]
        return Tested(is_met, from_to(values))

    return work.study.summary(
        {
            "slope of log MTBF over log nodes":
                Tested(bool(abs(slope + 1) < TOLERANCE), f"{slope:.3f}"),
            f"full recovery, {LINEAR}": Tested(grows, from_to(full[LINEAR])),
            **{f"CPR, {kind}": stays(cpr[kind]) for kind in (LINEAR, SHRINKING)},
            **{f"{MOST} nodes, full recovery: {kind} over {LINEAR}":
               full[kind][-1].over(full[LINEAR][-1]) for kind in (INDEPENDENT, WEIBULL)},
        },
        {
            f"{kind[0].upper()}{kind[1:]}:": (
                {"nodes": str(n), "failures per job": f"{case['cpr', 'failures'].mean:.2f}"}
                | case.cells(SCALED)
                | case.chosen("cpr", "CPR", "PLS")
                for n, case in over_nodes.items()
            )
            for kind, over_nodes in runs.items()
        },
        *(overheads_over(kind, "embedding servers", cases, SCALED, x_log=True, y_log=True)
          for kind, cases in runs.items()),
    )  # fmt: skip


def _scaled(kind: str, n: int) -> list[str]:
    overrides = [
        f"cluster.emb_ps={n}",
        f"failures={FAILURE_TEXTS[kind].format(job_h=NODE_MTBF_H / n, node_h=NODE_MTBF_H)}",
        "recovery=[full, partial, {strategy: cpr, target_pls: 0.1}]",
    ]
    if kind == SHRINKING:
        overrides += [
            f"cluster.shard_size={TABLES_GB / n!r} GB",
            f"storage={{bandwidth: {STORAGE_BANDWIDTH}}}",
            "costs.save=transfer",
            "costs.load=transfer",
        ]
    return overrides


# --------------------------------------------------------------------------- production scale

STORAGES = {  # in all, and per server
    "25 Gbit/s in all": ("25 Gbit/s", "25 Gbit/s"),
    "100 Gbit/s in all": ("100 Gbit/s", "25 Gbit/s"),
    "25 Gbit/s per server": ("450 Gbit/s", "25 Gbit/s"),  # 18 servers, each its own
}
RESCHEDULE_MIN = (1, 2, 5)
TYPICAL = ("25 Gbit/s in all", 2)  # the shipped scenario as it is
LABELS_AT_SCALE = FULL | {"partial": "naive partial recovery"} | OF_FORMS
IN_WORDS = {True: "yes", False: "no", None: "open"}
LEFT_OPEN = {
    (storage, minutes): [
        f"storage.bandwidth={STORAGES[storage][0]}",
        f"storage.per_server={STORAGES[storage][1]}",
        f"costs.reschedule={minutes} min",
        "simulation.replications=1000",
    ]
    for storage, minutes in product(STORAGES, RESCHEDULE_MIN)
}


def production(work: Work) -> Summary:
    """Simulate the shipped production scenario over storage, rescheduling and interval form.

    The paper says how large the job was and how it failed, not what its checkpoints weighed or
    cost: the share is a table over the plausible range; nothing in it is tuned.
    """
    simulated = simulate_cases(work, PRODUCTION, LEFT_OPEN)
    typical = simulated[TYPICAL]
    by_formula = {
        (*choice, policy.name): first_order_removed(policy)
        for choice, sets in LEFT_OPEN.items()
        for policy in assemble(work.scenario(PRODUCTION, sets)).policies
        if policy.name in CPR_FORMS
    }
    removed = {case: simulated[case[:2]].removed_percent(case[2]) for case in by_formula}
    over_91 = work.study.claims["overhead removed by CPR"]
    met_by_case = {case: over_91.met_by(share) for case, share in removed.items()}
    reached = [
        f"{storage}, O_res {minutes} min, {CPR_FORMS[form]}"
        for (storage, minutes, form), is_met in met_by_case.items()
        if is_met
    ]
    by_reschedule = tuple(
        series(f"{storage}, {CPR_FORMS[form]}", RESCHEDULE_MIN,
               [removed[storage, minutes, form] for minutes in RESCHEDULE_MIN])
        for form in CPR_FORMS for storage in STORAGES
    )  # fmt: skip
    return work.study.summary(
        {
            "overhead removed by CPR": [*removed.values()],
            "full recovery, overhead of the shipped scenario": typical.percent("full"),
            **{f"CPR ({form}), likewise": typical.percent(cpr) for cpr, form in CPR_FORMS.items()},
        },
        {
            "Share of full recovery's overhead that CPR removes; 50 GB per server and target PLS "
            "0.1 are assumed:": (
                {
                    "storage bandwidth": storage,
                    "O_res, min": str(minutes),
                    "interval": CPR_FORMS[form],
                    "T_save, h": f"{simulated[storage, minutes][form, 'save_interval_h'].mean:.3g}",
                    "PLS": f"{simulated[storage, minutes][form, 'pls'].mean:.3f}",
                    "removed, first order": f"{100 * share:.1f} %",
                    "removed, simulated": f"{removed[storage, minutes, form].mean:.1f} %",
                    "over 91 %": IN_WORDS[met_by_case[storage, minutes, form]],
                }
                for (storage, minutes, form), share in by_formula.items()
            )
        },
        Panel(
            f"Overhead of the shipped scenario ({TYPICAL[0]}, O_res {TYPICAL[1]} min)",
            "", OVERHEAD_LABEL, typical.stack(LABELS_AT_SCALE),
        ),
        Panel(
            "Removed by CPR, over what the paper leaves open", "rescheduling O_res, min",
            "overhead removed, % of full recovery's", by_reschedule,
            (Band(f"paper: {over_91}", over_91.low, over_91.low),), y_from_zero=False,
        ),
        n_reached=len(reached),
        n_cases=len(removed),
        reached="; ".join(reached),
    )  # fmt: skip


def first_order_removed(policy: Policy) -> float:
    """Share of full recovery's overhead that a CPR policy removes, by the paper's formulas."""
    decision = policy.decision
    assert decision is not None, "CPR's policies carry their decision"
    full = decision.full_overhead_fraction
    return 1.0 - min(decision.partial_overhead_fraction, full) / full
