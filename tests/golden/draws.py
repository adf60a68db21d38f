"""Draws of every source of failures: instants, slots and repairs of the first failures."""

from itertools import islice
from typing import Any

from cprsim.results.pipeline import failures_of
from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import load_scenario
from tests.golden.plain import NO_DATA, Golden, mean
from tests.making import SCENARIOS

WHOLE = ""
WEIBULL = "family: weibull, mtbf: 9 h, shape: 0.7"
SECTIONS = {
    "exponential": "{kind: job, family: exponential, mtbf: 9 h}",
    "weibull, together": f"{{kind: job, {WEIBULL}, together: 2}}",
    "gamma, stationary": "{kind: job, family: gamma, mtbf: 9 h, shape: 0.6, start: stationary}",
    "lognormal, any role": "{kind: job, family: lognormal, mtbf: 9 h, sigma: 1.1, role: any}",
    "uptime": f"{{kind: job, {WEIBULL}, clock: uptime}}",
    "progress": f"{{kind: job, {WEIBULL}, clock: progress}}",
    "nodes": f"{{kind: node, roles: {{emb_ps: {{{WEIBULL}}}, "
    "trainer: {family: exponential, mtbf: 30 h}}}",
    "fresh nodes": f"{{kind: node, start: fresh, roles: {{emb_ps: {{{WEIBULL}}}}}}}",
    "injected": "{kind: injected, count: 4, together: 2}",
    "injected at": "{kind: injected, at: [2 h, 7 h], servers: [[0], [1, 3]]}",
    "injected on the wall": "{kind: injected, count: 3, clock: wall}",
    "correlated": "{kind: correlated, mtbf: 60 h, shape: 0.8}",
    "frailty": "{kind: correlated, mtbf: 60 h, shape: 0.8, frailty: {shape: 1.5}}",
    "lemons": "{kind: correlated, mtbf: 60 h, shape: 0.8, lemons: {share: 20 %, factor: 6}}",
    "shocks": "{kind: correlated, mtbf: 60 h, shape: 0.8, "
    "shocks: {every: 20 h, nodes: 30, sizes: {2: 5, 4: 1}}}",
}  # fmt: skip
REPAIR = "cluster.repair={family: lognormal, mean: 3 h, median: 1 h}"
SCOPES = "scopes=[{name: a, share: 1, reach: node}, {name: rack, reach: rack, failures: {kind: job, family: exponential, mtbf: 30 h}}]"  # noqa: E501
CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    **{name: ("quickstart", (f"failures={text}", REPAIR)) for name, text in SECTIONS.items()},
    "several": ("quickstart", (SCOPES, "cluster.rack=2", REPAIR)),
    "data trace of LANL": ("lanl", ()),
    "data trace of InfiniteHBD": ("gpu-cluster", ()),
}
N_REPLICATIONS, N_FAILURES = 5, 40


def failures(scenario: str, sets: tuple[str, ...]) -> list[tuple[float, tuple[int, ...], Any]]:
    """The first failures of the first replications: instant [h], slots, repairs [h]."""
    experiment = assemble(load_scenario(SCENARIOS / f"{scenario}.yaml", list(sets)))
    found = []
    for replication in range(N_REPLICATIONS):
        for one in islice(failures_of(experiment, replication), N_FAILURES):
            found.append((one.at_h, one.slots, one.repair_h))
    return found


def quick() -> Golden:
    for name, case in CASES.items():
        if NO_DATA and name.startswith("data"):
            continue
        at_h, slots, repair_h = zip(*failures(*case), strict=True)
        together = [slot for some in slots for slot in some]
        yield (
            name,
            [len(at_h), mean(at_h), mean(together), mean([h for some in repair_h for h in some])],
        )
