"""Overhead over the number of nodes: full recovery's grows; whether CPR's does depends on loading.

The costs are those of the emulation on Kaggle; embedding servers are added. Failures three ways: of
the job as a whole with an MTBF that falls as 1/n; of independent exponential nodes; of independent
new nodes that fail most when young (Weibull).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log

import numpy as np

from cprsim.plots.chart import Chart
from cprsim.studies.estimates import StudyEstimate
from cprsim.studies.simulated import overheads_over, simulate_cases
from cprsim.studies.study import Study, Summary, Work
from cprsim.studies.verdicts import FITTED, SET_UP_RECALLED, TOLERANCE, Tested, alone, compare

SCENARIO = "criteo-kaggle.yaml"
NODES = (8, 16, 32, 64, 128)
FEWEST, MOST = NODES[0], NODES[-1]
NODE_MTBF_H = 8 * 28.0  # so that 8 nodes have the emulation's MTBF of 28 h
LINEAR, WEIBULL = "MTBF falling as 1/n", "independent new nodes, Weibull 0.7"
EXPONENTIAL, SHRINKING = (
    "independent nodes, exponential", f"{LINEAR}, each server loads its own share"
)  # fmt: skip
FAILURES = {
    LINEAR: "{{kind: job, family: exponential, mtbf: {job_h} h, role: emb_ps}}",
    EXPONENTIAL: "{{kind: node, roles: {{emb_ps: {{family: exponential, mtbf: {node_h} h}}}}}}",
    WEIBULL: "{{kind: node, start: fresh, roles: "
    "{{emb_ps: {{family: weibull, shape: 0.7, mtbf: {node_h} h}}}}}}",
}
FAILURES[SHRINKING] = FAILURES[LINEAR]
STRATEGIES = {"full": "full recovery", "partial": "naive partial", "cpr": "CPR"}
TABLES_GB = 400.0  # any size: the bandwidth below makes a save of all of it take 5.62 min
BANDWIDTH = f"{TABLES_GB * 8 / (5.62 * 60)!r} Gbit/s"
GROWS = "full recovery's overhead grows with the number of nodes"
STAYS = "CPR's overhead does not grow with the number of nodes"


def scalability(work: Work) -> Summary:
    """Run the emulation on Kaggle with more and more embedding servers."""
    replications = f"simulation.replications={work.pick(500, 4000, 40_000)}"
    cases = {(kind, n): [*_overrides(kind, n), replications] for kind in FAILURES for n in NODES}
    simulated = simulate_cases(work, SCENARIO, cases)
    runs = {kind: {n: simulated[kind, n] for n in NODES} for kind in FAILURES}
    cpr, full = (
        {kind: [one.percent(name) for one in runs[kind].values()] for kind in runs}
        for name in ("cpr", "full")
    )
    # of the partial strategy, which adds next to no wall time
    failures = [one["cpr", "failures"].mean / one["cpr", "wall_h"].mean
                for one in runs[LINEAR].values()]  # fmt: skip
    slope = -np.polyfit([log(n) for n in NODES], np.log(failures), 1)[0]
    grows = all(less.ends[1] < more.ends[0] for less, more in pairwise(full[LINEAR]))

    def from_to(values: Sequence[StudyEstimate]) -> str:
        return f"{values[0].shown('%')} to {values[-1].shown('%')} from {FEWEST} to {MOST} nodes"

    def stays(values: Sequence[StudyEstimate]) -> Tested:
        """Its overhead at most nodes is within a tenth of that at fewest."""
        met = values[-1].ends[0] <= (1 + TOLERANCE) * values[0].ends[1]
        return Tested(met, from_to(values))

    return Summary.of(
        "Scalability: overhead over the number of nodes",
        "How does overhead grow with the number of embedding servers, for 56 h of work and "
        f"nodes with an MTBF of {NODE_MTBF_H:g} h each?",
        [
            compare("slope of log MTBF over log nodes", "the MTBF falls as 1/nodes",
                    Tested(bool(abs(slope + 1) < TOLERANCE), f"{slope:.3f}"), FITTED),
            compare(f"full recovery, {LINEAR}", GROWS,
                    Tested(grows, from_to(full[LINEAR])), SET_UP_RECALLED),
            *(compare(f"CPR, {kind}", STAYS, stays(cpr[kind]), SET_UP_RECALLED)
              for kind in (LINEAR, SHRINKING)),
            *(alone(f"{MOST} nodes, full recovery: {kind} over {LINEAR}",
                    full[kind][-1].over(full[LINEAR][-1]), "times")
              for kind in (EXPONENTIAL, WEIBULL)),
        ],
        {
            f"{kind[0].upper()}{kind[1:]}:": (
                {"nodes": str(n), "failures per job": f"{one['cpr', 'failures'].mean:.2f}"}
                | {f"{label}, %": one.percent(name).shown() for name, label in STRATEGIES.items()}
                | {"CPR: T_save, h": one.interval("cpr"), "PLS": f"{one['cpr', 'pls'].mean:.3f}"}
                for n, one in over_nodes.items()
            )
            for kind, over_nodes in runs.items()
        },
        (
            "Why CPR's overhead grows here: the costs of the emulation charge the same load at "
            "each failure, however small the failed server's share of the tables is. T_save "
            "(2 PLS N T_fail) does not change with n, so what grows is the loads, as n.",
            "The other assumption (*each server loads its own share*): the same tables spread over "
            "more servers, so that one that fails loads 1/n of them. Then the loads of partial "
            "recovery do not grow with n, and neither does CPR's overhead; full recovery's does.",
        ),
        Chart(
            "Overhead over the number of embedding servers",
            "56 h of work, node MTBF 224 h, costs of the emulation on Kaggle. Means; error bars: "
            "95 % interval.",
            tuple(
                overheads_over(kind, "embedding servers", one, STRATEGIES, x_log=True, y_log=True)
                for kind, one in runs.items()
            ),
        ),
    )  # fmt: skip


def _overrides(kind: str, n: int) -> list[str]:
    overrides = [
        f"cluster.emb_ps={n}",
        f"failures={FAILURES[kind].format(job_h=NODE_MTBF_H / n, node_h=NODE_MTBF_H)}",
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


STUDY = Study(
    "scalability",
    "overhead over the number of nodes, for three kinds of failures",
    scalability,
    (SCENARIO,),
)
