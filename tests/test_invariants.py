"""What holds in every replication of any legal scenario.

Each scenario is drawn from a seed of its own: all kinds of failures, clocks, families, strategies,
costs, spares and algorithms that keep trainers in step.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import yaml

from cprsim.results.metrics import replication_rows
from cprsim.results.pipeline import Outcome, simulate
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.reading import load_scenario
from cprsim.simulation.folding import FOLDED
from tests.simulators import CLOSE, assert_cluster_agrees

pytestmark = pytest.mark.long

N_SCENARIOS, N_REPLICATIONS = 220, 4
Section = dict[str, Any]
Choose = Callable[..., Any]
FAMILIES: list[Section] = [
    {"family": "exponential"}, {"family": "gamma", "shape": 0.67},
    {"family": "weibull", "shape": 3.0}, {"family": "lognormal", "sigma": 1.2},
]  # fmt: skip
SYNC = {"iteration": "50 ms", "dense_size": "8 MB", "trainer_bandwidth": "25 Gbit/s",
        "algorithm": "shadow-easgd", "servers": 2, "server_bandwidth": "25 Gbit/s"}  # fmt: skip

SAVING = ("full", "partial", "cpr", "cpr-mfu", "cpr-ssu", "cpr-scar")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch) -> None:
    """Failures drawn for few replications at once: most of the time would go into drawing more."""
    monkeypatch.setattr("cprsim.failures.block.FIRST_REPLICATIONS", 8)


@pytest.mark.parametrize("number", range(N_SCENARIOS))
def test_invariants_hold_compiled_and_on_the_cluster(number: int, tmp_path: Path) -> None:
    experiment = experiment_of(drawn(number), tmp_path)
    check(simulate(experiment))
    assert_cluster_agrees(experiment, N_REPLICATIONS)


def test_all_simulators_stop_a_job_that_comes_back_to_the_same_instant_at_the_same_failure(
    tmp_path: Path, monkeypatch
) -> None:
    """A log that repeats itself strikes the job at the same work each time, up to rounding."""
    monkeypatch.setattr("cprsim.failures.block.FIRST_REPLICATIONS", 4000)
    tree: Section = {
        "name": "repeated",
        "job": {"useful": "24 h"},
        "cluster": {"trainers": 2, "emb_ps": 9},
        "failures": {"kind": "trace", "file": "outages.csv", "format": "tidy", "time_unit": "h",
                     "nodes": 17},
        "costs": {"save": "3 min", "load": "0.1 h", "detect": "0.02 h", "reschedule": "0.1 h"},
        "recovery": [{"strategy": "full", "interval": "48 h"}],
        "simulation": {"seed": 46, "replications": 10},
    }  # fmt: skip
    experiment = experiment_of(tree, tmp_path)
    assert_cluster_agrees(experiment, 10)
    wall_h = simulate(experiment).strategies[0].costs.wall_h
    assert (wall_h < 2400).any(), "none was stopped for want of progress"


def check(outcome: Outcome) -> None:
    """Every replication of every strategy."""
    rows = replication_rows(outcome)
    parts = rows[[f"{part}_h" for part in FOLDED if f"{part}_h" in rows]]
    parts = parts.fillna({"degraded_h": 0.0})  # of strategies whose others do not go on
    assert (parts >= 0).all(axis=None)
    np.testing.assert_allclose(parts.sum(axis=1) + rows["useful_h"], rows["wall_h"], CLOSE, CLOSE)
    done_h = rows["useful_h"][rows["finished"]]
    np.testing.assert_allclose(done_h, outcome.useful_h, CLOSE, CLOSE)
    assert rows["pls_net"].between(0, np.minimum(rows["pls"], 1) + CLOSE).all()


def experiment_of(tree: Section, folder: Path) -> Experiment:
    """The scenario as a user would have written it, read and assembled."""
    (folder / "outages.csv").write_text(outages(Random("outages")), "utf-8")
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(tree, sort_keys=False), "utf-8")
    return assemble(load_scenario(path))


# ---------------------------------------------------------------------------- scenarios


def drawn(number: int) -> Section:
    """Scenario `number`: legal, and small enough to be run event by event."""
    random = Random(f"invariants {number}")
    one_of: Choose = lambda *choices: random.choice(choices)  # noqa: E731
    useful_h = one_of(2.0, 6.0, 13.0, 24.0)
    role_nodes = {"emb_ps": one_of(1, 2, 4, 9), "trainer": one_of(0, 1, 3, 8)}
    tree: Section = {"name": f"drawn-{number}", "job": {"useful": f"{useful_h} h"}}
    if role_nodes["trainer"] > 1 and one_of(True, False):
        tree["sync"], role_nodes["sync_ps"] = SYNC, 2
    tree["cluster"] = {
        "trainers": role_nodes["trainer"], "emb_ps": role_nodes["emb_ps"],
        "shard_size": one_of("1 GB", "50 GB"),
    }  # fmt: skip
    nodes = {role: n for role, n in role_nodes.items() if n}
    tree["failures"] = failures(one_of, nodes, useful_h)
    if one_of(True, False, False):
        tree["cluster"]["spares"] = one_of(0, 1, 2, 5)
        if tree["failures"]["kind"] != "trace":
            tree["cluster"]["repair"] = duration(one_of, one_of(0.5, 2.0))
    tree["storage"] = {"bandwidth": "10 Gbit/s"} | one_of({}, {"per_server": "4 Gbit/s"})
    save: Section = {"stall": one_of("transfer", "3 s", duration(one_of, 0.05))}
    background = one_of("transfer", duration(one_of, 0.1), duration(one_of, 1.0))
    tree["costs"] = {
        "save": save | one_of({}, {}, {"background": background}),
        "load": one_of("transfer", duration(one_of, 0.1), duration(one_of, 0.1)),
        "detect": duration(one_of, 0.02),
        "reschedule": duration(one_of, 0.1),
    }
    n_strategies = one_of(1, 2, 3, 4)
    tree["recovery"] = [strategy(one_of, place, useful_h) for place in range(n_strategies)]
    tree["simulation"] = {"seed": number, "replications": N_REPLICATIONS}
    return tree


def failures(one_of: Choose, nodes: dict[str, int], useful_h: float) -> Section:
    n_nodes, mtbf_h = sum(nodes.values()), useful_h / one_of(0.2, 1.0, 2.0, 4.0)
    role = one_of(*nodes, "any")
    together = one_of(*range(1, 1 + nodes.get(role, n_nodes)))
    at = [f"{share * useful_h} h" for share in one_of((0.0, 0.001, 0.9), (0.25, 0.5, 0.5001))]
    watched = n_nodes + one_of(0, 3)
    shocks = {"every": f"{mtbf_h * 3} h", "sizes": {1: 2.0, watched: 1.0}, "nodes": watched}
    ages = {"clock": one_of("progress", "uptime", "wall"), "start": one_of("fresh", "stationary")}
    job = {"kind": "job", **lifetime(one_of, mtbf_h), "role": role, "together": together, **ages}
    each = f"{mtbf_h * n_nodes} h"
    return one_of(
        job,
        job,
        {"kind": "node", **ages, "roles": {
            one: lifetime(one_of, mtbf_h * n_nodes) for one in nodes if one in (role, "emb_ps")}},
        {"kind": "correlated", "mtbf": each, "shape": one_of(0.5, 1.0, 2.0), **ages}
        | one_of({}, {"frailty": {"shape": one_of(0.5, 2.0)}})
        | one_of({}, {"lemons": {"share": "20 %", "factor": 5.0}})
        | one_of({}, {"shocks": shocks}),
        {"kind": "injected", "role": role, "together": together}
        | one_of({"at": at}, {"count": one_of(1, 2, 5)}),
        {"kind": "injected", "role": "emb_ps", "at": at, "servers": [*range(nodes["emb_ps"])]},
        {"kind": "trace", "file": "outages.csv", "format": "tidy", "time_unit": "h",
         "nodes": max(10, n_nodes)},
    )  # fmt: skip


def lifetime(one_of: Choose, mtbf_h: float) -> Section:
    pieces = {"ages": ["0 h", f"{mtbf_h / 2} h"],
              "hazards": [f"{2 / mtbf_h} failures/h", f"{0.5 / mtbf_h} failures/h"]}  # fmt: skip
    spread = [one | {"mtbf": f"{mtbf_h} h"} for one in FAMILIES]
    return dict(one_of(*spread, {"family": "piecewise", **pieces}))


def duration(one_of: Choose, mean_h: float) -> Any:
    return one_of("3 s", f"{mean_h} h", one_of(*FAMILIES) | {"mean": f"{mean_h} h"})


def strategy(one_of: Choose, place: int, useful_h: float) -> Section:
    name = one_of("none", *SAVING)
    entry: Section = {"strategy": name, "name": f"{name} {place}"}
    at_most = max(useful_h / 20, 0.1)
    own = [f"{share * useful_h} h" for share in (0.1, 0.3333, 0.5, 1.0, 2.0)] + [f"{at_most} h"]
    if name == "none":
        return entry
    if name in ("full", "partial"):
        return entry | {"interval": one_of(*own, "1 h", "2 h")}
    entry |= {"target_pls": one_of(0.02, 0.1, 0.5)}
    entry |= one_of({}, {"interval": one_of(*own, "cpr-undivided")})
    sub_saves = {"fraction": one_of(0.125, 0.5, 1.0), "latency": one_of("0 s", "9 s"),
                 "small_tables": one_of("interval", "sub-save")}  # fmt: skip
    return entry | ({} if name == "cpr" else one_of({}, {"sub_saves": sub_saves}))


def outages(random: Random) -> str:
    """A log of 40 outages of 10 nodes."""
    lines, at_h = ["node,start,end"], 0.0
    for _ in range(40):
        at_h += random.expovariate(0.5)
        lines.append(f"n{random.randrange(10)},{at_h:.3f},{at_h + random.expovariate(1):.3f}")
    return "\n".join(lines) + "\n"
