"""Overhead over the number of nodes: full recovery's grows; whether CPR's does depends on loading.

The costs are those of the emulation on Kaggle; embedding servers are added. Failures three ways: of
the job as a whole with an MTBF that falls as 1/n; of independent exponential nodes; of independent
new nodes that fail most when young (Weibull).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log

import numpy as np

from cprsim.plots.chart import Chart
from cprsim.reproduce.estimates import StudyEstimate
from cprsim.reproduce.paper import Mark, words
from cprsim.reproduce.simulated import Simulated, overheads_over, simulate_cases
from cprsim.reproduce.study import Study, Work
from cprsim.reproduce.summary import Listing, Target, Tested, alone
from cprsim.reproduce.verdicts import FITTED, RECALLED, TOLERANCE

SCENARIO = "criteo-kaggle.yaml"
NODES = (8, 16, 32, 64, 128)
FEWEST, MOST = NODES[0], NODES[-1]
NODE_MTBF_H = 8 * 28.0  # so that 8 nodes have the emulation's MTBF of 28 h
FAILURES = {
    "MTBF falling as 1/n": "{{kind: job, family: exponential, mtbf: {job_h} h, role: emb_ps}}",
    "independent nodes, exponential": (
        "{{kind: node, roles: {{emb_ps: {{family: exponential, mtbf: {node_h} h}}}}}}"
    ),
    "independent new nodes, Weibull 0.7": (
        "{{kind: node, start: fresh, roles: "
        "{{emb_ps: {{family: weibull, shape: 0.7, mtbf: {node_h} h}}}}}}"
    ),
}
LINEAR = "MTBF falling as 1/n"
SHRINKING = f"{LINEAR}, each server loads its own share"
KINDS = (*FAILURES, SHRINKING)
STRATEGIES = {"full": "full recovery", "partial": "naive partial", "cpr": "CPR"}
TABLES_GB = 400.0  # any size: the bandwidth below makes a save of all of it take 5.62 min
BANDWIDTH = f"{TABLES_GB * 8 / (5.62 * 60)!r} Gbit/s"
GROWS = words("full recovery's overhead grows with the number of nodes", Mark.RECALLED)
STAYS = words("CPR's overhead does not grow with the number of nodes", Mark.RECALLED)
FALLS = words("the MTBF falls as 1/nodes", Mark.RECALLED)

OverNodes = dict[int, Simulated]
ByKind = dict[str, OverNodes]  # by kind of failures


def numbers(work: Work) -> ByKind:
    """Run the emulation on Kaggle with more and more embedding servers."""
    replications = f"simulation.replications={work.pick(500, 4000, 40_000)}"
    simulated = simulate_cases(
        work,
        {
            f"{kind}, {n} nodes": (SCENARIO, [*_overrides(kind, n), replications])
            for kind in KINDS
            for n in NODES
        },
    )
    return {kind: {n: simulated[f"{kind}, {n} nodes"] for n in NODES} for kind in KINDS}


def _overrides(kind: str, n: int) -> list[str]:
    failures = FAILURES[LINEAR if kind == SHRINKING else kind]
    overrides = [
        f"cluster.emb_ps={n}",
        f"failures={failures.format(job_h=NODE_MTBF_H / n, node_h=NODE_MTBF_H)}",
        "recovery=[full, partial, {strategy: cpr, target_pls: 0.1}]",
    ]
    if kind == SHRINKING:
        overrides += [
            f"cluster.shard_size={TABLES_GB / n!r} GB",
            f"storage={{bandwidth: {BANDWIDTH}}}",
            "costs.save=transfer",
            "costs.load=transfer",
        ]
    return overrides


# ------------------------------------------------------------------------------ comparisons


def _falls(runs: ByKind) -> Tested:
    """Failures per job of the partial strategy, which adds next to no wall time, over nodes."""
    cases = runs[LINEAR]
    failures = [one["cpr", "failures"].mean / one["cpr", "wall_h"].mean for one in cases.values()]
    slope = -np.polyfit([log(n) for n in cases], np.log(failures), 1)[0]
    return Tested(bool(abs(slope + 1) < TOLERANCE), f"{slope:.3f}")


def _grows(runs: ByKind) -> Tested:
    values = [one.percent("full") for one in runs[LINEAR].values()]
    met = all(less.ends[1] < more.ends[0] for less, more in pairwise(values))
    return Tested(met, _from_to(values))


def _stays(kind: str) -> Target[ByKind]:
    def tested(runs: ByKind) -> Tested:
        """It does not grow if its overhead at most nodes is within a tenth of that at fewest."""
        values = [one.percent("cpr") for one in runs[kind].values()]
        met = values[-1].ends[0] <= (1 + TOLERANCE) * values[0].ends[1]
        return Tested(met, _from_to(values))

    return Target(f"CPR, {kind}", STAYS, tested, RECALLED)


def _from_to(values: Sequence[StudyEstimate]) -> str:
    ends = f"{values[0].shown('%')} to {values[-1].shown('%')}"
    return f"{ends} from {FEWEST} to {MOST} nodes"


def _over_linear(kind: str) -> Callable[[ByKind], StudyEstimate]:
    return lambda runs: runs[kind][MOST].percent("full").over(runs[LINEAR][MOST].percent("full"))


TARGETS: list[Target[ByKind]] = [
    Target("slope of log MTBF over log nodes", FALLS, _falls, FITTED),
    Target(f"full recovery, {LINEAR}", GROWS, _grows, RECALLED),
    _stays(LINEAR),
    _stays(SHRINKING),
    *(
        alone(f"{MOST} nodes, full recovery: {kind} over {LINEAR}", _over_linear(kind), "times")
        for kind in FAILURES
        if kind != LINEAR
    ),
]


# ------------------------------------------------------------------------------ how it is shown


def _listing(kind: str, cases: OverNodes) -> Listing:
    def overhead(strategy: str) -> Callable[[int], str]:
        return lambda n: cases[n].percent(strategy).shown()

    return Listing.of(
        f"{kind[0].upper()}{kind[1:]}:",
        cases,
        ("nodes", str),
        ("failures per job", lambda n: f"{cases[n]['cpr', 'failures'].mean:.2f}"),
        *((f"{label}, %", overhead(strategy)) for strategy, label in STRATEGIES.items()),
        ("CPR: T_save, h", lambda n: cases[n].interval("cpr")),
        ("PLS", lambda n: f"{cases[n]['cpr', 'pls'].mean:.3f}"),
    )


def _chart(runs: ByKind) -> Chart:
    return Chart(
        "Overhead over the number of embedding servers",
        "56 h of work, node MTBF 224 h, costs of the emulation on Kaggle. Means; error bars: 95 % "
        "interval.",
        tuple(
            overheads_over(kind, "embedding servers", cases, STRATEGIES, x_log=True, y_log=True)
            for kind, cases in runs.items()
        ),
    )


STUDY = Study(
    name="scalability",
    shows="overhead over the number of nodes, for three kinds of failures",
    title="Scalability: overhead over the number of nodes",
    question="How does overhead grow with the number of embedding servers, for 56 h of work and "
    f"nodes with an MTBF of {NODE_MTBF_H:g} h each?",
    numbers=numbers,
    targets=TARGETS,
    listings=lambda runs: [_listing(kind, cases) for kind, cases in runs.items()],
    notes=(
        "Why CPR's overhead grows here: the costs of the emulation charge the same load at "
        "each failure, however small the failed server's share of the tables is. T_save "
        "(2 PLS N T_fail) does not change with n, so what grows is the loads, as n.",
        "The other assumption (*each server loads its own share*): the same tables spread over "
        "more servers, so that one that fails loads 1/n of them. Then the loads of partial "
        "recovery do not grow with n, and neither does CPR's overhead; full recovery's does.",
    ),
    chart=_chart,
    inputs=(SCENARIO,),
)
