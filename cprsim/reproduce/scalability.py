"""Overhead over the number of nodes: full recovery's grows; whether CPR's does depends on loading.

The costs are those of the emulation on Kaggle; embedding servers are added. Failures three ways: of
the job as a whole with an MTBF that falls as 1/n; of independent exponential nodes; of independent
new nodes that fail most when young (Weibull).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import log
from typing import Any

import numpy as np

from cprsim.plots.chart import Chart, Panel, Series
from cprsim.reproduce.paper import Mark, words
from cprsim.reproduce.simulated import Simulated, of_scenario
from cprsim.reproduce.study import Part, Study, Work
from cprsim.reproduce.summary import Listing, Row, Summary, alone, as_shown, tested
from cprsim.reproduce.verdicts import TOLERANCE, Basis, Ours

SCENARIO = "criteo-kaggle.yaml"
NODES = (8, 16, 32, 64, 128)
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
STRATEGIES = {"full": "full recovery", "partial": "naive partial", "cpr": "CPR"}
TABLES_GB = 400.0  # any size: the bandwidth below makes a save of all of it take 5.62 min
BANDWIDTH = f"{TABLES_GB * 8 / (5.62 * 60)!r} Gbit/s"
GROWS = words("full recovery's overhead grows with the number of nodes", Mark.RECALLED)
STAYS = words("CPR's overhead does not grow with the number of nodes", Mark.RECALLED)
FALLS = words("the MTBF falls as 1/nodes", Mark.RECALLED)
BASIS = Basis(recalled=True)


def make(work: Work) -> Summary:
    """Run the emulation on Kaggle with more and more embedding servers."""
    replications = work.pick(500, 4000, 40_000)
    kinds = [*FAILURES, SHRINKING]
    parts = [
        Part(f"{kind}, {n} nodes", partial(_measured, work, kind, n, replications))
        for kind in kinds
        for n in NODES
    ]
    each = iter(map(Simulated, work.each(parts)))
    found = {kind: {n: next(each) for n in NODES} for kind in kinds}
    return Summary(
        "Scalability: overhead over the number of nodes",
        "How does overhead grow with the number of embedding servers, for 56 h of work and nodes "
        f"with an MTBF of {NODE_MTBF_H:g} h each?",
        tuple(_rows(found)),
        tuple(_listing(kind, found[kind]) for kind in kinds),
        (
            "Why CPR's overhead grows here: the costs of the emulation charge the same load at "
            "each failure, however small the failed server's share of the tables is. T_save "
            "(2 PLS N T_fail) does not change with n, so what grows is the loads, as n.",
            "The other assumption (*each server loads its own share*): the same tables spread over "
            "more servers, so that one that fails loads 1/n of them. Then the loads of partial "
            "recovery do not grow with n, and neither does CPR's overhead; full recovery's does.",
        ),
        (_chart(found),),
    )


def _measured(work: Work, kind: str, n: int, replications: int) -> dict[str, Any]:
    failures = FAILURES[LINEAR if kind == SHRINKING else kind]
    overrides = [
        f"cluster.emb_ps={n}",
        f"failures={failures.format(job_h=NODE_MTBF_H / n, node_h=NODE_MTBF_H)}",
        "recovery=[full, partial, {strategy: cpr, target_pls: 0.1}]",
        f"simulation.replications={replications}",
    ]
    if kind == SHRINKING:
        overrides += [
            f"cluster.shard_size={TABLES_GB / n!r} GB",
            f"storage={{bandwidth: {BANDWIDTH}}}",
            "costs.save=transfer",
            "costs.load=transfer",
        ]
    return of_scenario(work.scenario(SCENARIO, overrides))


# ------------------------------------------------------------------------------ comparisons


def _rows(found: dict[str, dict[int, Simulated]]) -> list[Row]:
    rows = [_falls(found[LINEAR]), _grows(LINEAR, found[LINEAR])]
    rows += [_stays(kind, found[kind]) for kind in (LINEAR, SHRINKING)]
    apart = {
        kind: _ratio(
            found[kind][NODES[-1]].percent("full"), found[LINEAR][NODES[-1]].percent("full")
        )
        for kind in FAILURES
        if kind != LINEAR
    }
    return rows + [
        alone(f"{NODES[-1]} nodes, full recovery: {kind} over {LINEAR}", ratio, "times")
        for kind, ratio in apart.items()
    ]


def _falls(cases: dict[int, Simulated]) -> Row:
    """Failures per job of the partial strategy, which adds next to no wall time, over nodes."""
    failures = [one["cpr", "failures"].value / one["cpr", "wall_h"].value for one in cases.values()]
    slope = -np.polyfit([log(n) for n in cases], np.log(failures), 1)[0]
    met = bool(abs(slope + 1) < TOLERANCE)
    return tested("slope of log MTBF over log nodes", FALLS, met, f"{slope:.3f}",
                  Basis(fitted=True))  # fmt: skip


def _grows(kind: str, cases: dict[int, Simulated]) -> Row:
    values = [one.percent("full") for one in cases.values()]
    met = all(less.ends[1] < more.ends[0] for less, more in pairwise(values))
    return tested(f"full recovery, {kind}", GROWS, met, _from_to(values), BASIS)


def _stays(kind: str, cases: dict[int, Simulated]) -> Row:
    """It does not grow if its overhead at most nodes is within the tolerance of that at fewest."""
    values = [one.percent("cpr") for one in cases.values()]
    met = values[-1].ends[0] <= (1 + TOLERANCE) * values[0].ends[1]
    return tested(f"CPR, {kind}", STAYS, met, _from_to(values), BASIS)


def _from_to(values: Sequence[Ours]) -> str:
    ends = f"{as_shown(values[0], '%')} to {as_shown(values[-1], '%')}"
    return f"{ends} from {NODES[0]} to {NODES[-1]} nodes"


def _ratio(one: Ours, other: Ours) -> Ours:
    value = one.value / other.value
    half = value * sum(((x.ends[1] - x.ends[0]) / 2 / x.value) ** 2 for x in (one, other)) ** 0.5
    return Ours(value, value - half, value + half)


# ------------------------------------------------------------------------------ how it is shown


def _listing(kind: str, cases: dict[int, Simulated]) -> Listing:
    headings = ("nodes", "failures per job", *(f"{name}, %" for name in STRATEGIES.values()))
    return Listing(
        f"{kind[0].upper()}{kind[1:]}:",
        (*headings, "CPR: T_save, h", "PLS"),
        tuple(_line(n, one) for n, one in cases.items()),
    )


def _line(n: int, one: Simulated) -> tuple[str, ...]:
    overheads = [as_shown(one.percent(name), "") for name in STRATEGIES]
    interval = f"{one['cpr', 'save_interval_h'].value:.3g}"
    interval += "" if one["cpr", "chose_partial"].value else " (full)"
    failures = f"{one['cpr', 'failures'].value:.2f}"
    return (str(n), failures, *overheads, interval, f"{one['cpr', 'pls'].value:.3f}")


def _chart(found: dict[str, dict[int, Simulated]]) -> Chart:
    return Chart(
        "Overhead over the number of embedding servers",
        "56 h of work, node MTBF 224 h, costs of the emulation on Kaggle. Means; error bars: 95 % "
        "interval.",
        tuple(_panel(kind, cases) for kind, cases in found.items()),
    )


def _panel(kind: str, cases: dict[int, Simulated]) -> Panel:
    lines = tuple(
        Series(
            label,
            tuple(float(n) for n in cases),
            tuple(one.percent(name).value for one in cases.values()),
            tuple(one.percent(name).ends[0] for one in cases.values()),
            tuple(one.percent(name).ends[1] for one in cases.values()),
        )
        for name, label in STRATEGIES.items()
    )
    return Panel(kind, "embedding servers", "overhead, % of useful time", lines,
                 x_log=True, y_log=True)  # fmt: skip


STUDY = Study(
    "scalability",
    "overhead over the number of nodes, for three kinds of failures",
    make,
    (SCENARIO,),
)
