"""What holds in every replication of any legal scenario, whichever engine ran it.

Each scenario is drawn from a seed of its own: all kinds of failures, clocks, families, strategies,
costs, spares and algorithms that keep trainers in step.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import yaml

from cprsim.experiments.assemble import Experiment, assemble
from cprsim.experiments.pipeline import Outcome, simulate
from cprsim.results.metrics import samples_of
from cprsim.results.rows import replication_rows
from cprsim.scenario.reading import load_scenario
from cprsim.simulate.folding import FOLDED
from tests.engines import CLOSE, assert_same

pytestmark = pytest.mark.long

N_SCENARIOS, N_REPLICATIONS = 220, 4
FAMILIES = ("exponential", "gamma", "weibull", "lognormal")
Section = dict[str, Any]

SAVING = ("full", "partial", "cpr", "cpr-mfu", "cpr-ssu", "cpr-scar")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch) -> None:
    """Failures drawn for few replications at once: most of the time would go into drawing more."""
    monkeypatch.setattr("cprsim.failures.block.FIRST_REPLICATIONS", 8)


@pytest.mark.parametrize("number", range(N_SCENARIOS))
def test_invariants_hold_in_both_engines(number: int, tmp_path: Path) -> None:
    experiment = experiment_of(drawn(number), tmp_path)
    events = simulate(experiment.simulated(engine="simpy"))
    for outcome in (events, simulate(experiment)):
        check(outcome)
        for ours, theirs in zip(outcome.strategies, events.strategies, strict=True):
            assert_same(ours.costs, theirs.costs)
            assert_same(ours.losses, theirs.losses)
            assert ours.gave_up == theirs.gave_up


def test_engines_stop_a_job_that_comes_back_to_the_same_instant_at_the_same_failure(
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
    events = simulate(experiment.simulated(engine="simpy")).strategies[0].costs
    assert_same(simulate(experiment).strategies[0].costs, events)
    assert (events.wall_h < 2400).any(), "none was stopped for want of progress"


def check(outcome: Outcome) -> None:
    """Every replication of every strategy."""
    rows = replication_rows(outcome)
    parts = rows[[f"{part}_h" for part in FOLDED if f"{part}_h" in rows]]
    parts = parts.fillna({"degraded_h": 0.0})  # of strategies whose others do not go on
    assert (parts >= 0).all(axis=None)
    assert np.allclose(parts.sum(axis=1) + rows["useful_h"], rows["wall_h"], rtol=CLOSE, atol=CLOSE)
    done_h = rows["useful_h"][rows["finished"]]
    assert np.allclose(done_h, outcome.useful_h, rtol=CLOSE, atol=CLOSE)
    for sample in samples_of(rows, outcome.cluster.n_nodes).values():
        overhead = sample.value("overhead_fraction")
        assert (overhead >= -CLOSE).all()
        assert np.allclose(sample.value("ettr"), 1 / (1 + overhead), rtol=CLOSE)
    assert (rows["pls_net"] <= rows["pls"] + CLOSE).all()
    assert (rows["pls_net"] <= 1 + CLOSE).all()
    assert (rows["pls_net"] >= 0).all()


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
    useful_h = random.choice([2.0, 6.0, 13.0, 24.0])
    tree: Section = {"name": f"drawn-{number}", "job": {"useful": f"{useful_h} h"}}
    tree["cluster"] = cluster(random)
    if random.random() < 0.25:
        tree["sync"] = in_step(random)
        tree["cluster"]["trainers"] = max(2, tree["cluster"]["trainers"])
    tree["failures"] = failures(random, tree, useful_h)
    if tree["failures"]["kind"] != "trace" and random.random() < 0.2:
        tree["cluster"] |= {"spares": random.choice([0, 1, 2, 5]), "repair": duration(random, 2.0)}
    elif random.random() < 0.2:
        tree["cluster"]["spares"] = random.choice([0, 1, 3])
        if tree["failures"]["kind"] != "trace":
            tree["cluster"]["repair"] = duration(random, 0.5)
    tree["storage"] = {"bandwidth": "10 Gbit/s"}
    if random.random() < 0.5:
        tree["storage"]["per_server"] = "4 Gbit/s"
    tree["costs"] = costs(random)
    tree["recovery"] = [
        strategy(random, place, useful_h) for place in range(random.choice([1, 2, 3, 4]))
    ]
    tree["simulation"] = {"seed": number, "replications": N_REPLICATIONS}
    return tree


def cluster(random: Random) -> Section:
    section: Section = {
        "trainers": random.choice([0, 1, 3, 8]),
        "emb_ps": random.choice([1, 2, 4, 9]),
        "shard_size": random.choice(["1 GB", "50 GB"]),
    }
    if random.random() < 0.3:
        section["others"] = {"reader": random.choice([1, 2])}
    return section


def in_step(random: Random) -> Section:
    algorithm = random.choice(["shadow-easgd", "shadow-ma", "fr-easgd", "fr-ma", "sync-sgd"])
    section: Section = {
        "algorithm": algorithm, "iteration": "50 ms", "dense_size": "8 MB",
        "trainer_bandwidth": "25 Gbit/s",
    }  # fmt: skip
    if algorithm.endswith("easgd"):
        section |= {"servers": 2, "server_bandwidth": "25 Gbit/s"}
    if algorithm.startswith("fr-"):
        section["every"] = 5
    return section


def failures(random: Random, tree: Section, useful_h: float) -> Section:
    nodes = {"emb_ps": tree["cluster"]["emb_ps"], "trainer": tree["cluster"]["trainers"]}
    nodes |= tree["cluster"].get("others", {})
    nodes["sync_ps"] = tree.get("sync", {}).get("servers", 0)
    nodes = {role: n for role, n in nodes.items() if n}
    n_nodes = sum(nodes.values())
    mtbf_h = useful_h / random.choice([0.2, 1.0, 2.0, 4.0])
    clock = random.choice(["progress", "uptime", "wall"])
    start = random.choice(["fresh", "stationary"])
    role = random.choice([*nodes, "any"])
    together = random.randint(1, n_nodes if role == "any" else nodes[role])
    kind = random.choice(["job", "job", "node", "correlated", "injected", "trace"])
    if kind == "job":
        lived = lifetime(random, mtbf_h)
        return {"kind": kind, **lived, "role": role, "together": together, "clock": clock,
                "start": start}  # fmt: skip
    if kind == "node":
        struck = random.sample(sorted(nodes), random.randint(1, len(nodes)))
        roles = {one: lifetime(random, mtbf_h * n_nodes) for one in struck}
        return {"kind": kind, "roles": roles, "clock": clock, "start": start}
    if kind == "correlated":
        section = {"kind": kind, "mtbf": f"{mtbf_h * n_nodes} h", "clock": clock, "start": start,
                   "shape": random.choice([0.5, 1.0, 2.0])}  # fmt: skip
        if random.random() < 0.5:
            section["frailty"] = {"shape": random.choice([0.5, 2.0])}
        if random.random() < 0.5:
            section["lemons"] = {"share": "20 %", "factor": 5.0}
        if random.random() < 0.5:
            watched = n_nodes + random.choice([0, 3])
            section["shocks"] = {"every": f"{mtbf_h * 3} h", "sizes": {1: 2.0, watched: 1.0},
                                 "nodes": watched}  # fmt: skip
        return section
    if kind == "injected":
        return injected(random, role, together, useful_h)
    return {"kind": "trace", "file": "outages.csv", "format": "tidy", "time_unit": "h",
            "nodes": max(10, n_nodes)}  # fmt: skip


def injected(random: Random, role: str, together: int, useful_h: float) -> Section:
    section: Section = {"kind": "injected", "role": role}
    if random.random() < 0.5:
        section["count"] = random.choice([1, 2, 5])
    else:
        shares = sorted(random.sample([0.0, 0.001, 0.1, 0.25, 0.5, 0.5001, 0.9, 0.999], 3))
        section["at"] = [f"{share * useful_h} h" for share in shares]
    if role != "any" and random.random() < 0.3:
        return section | {"servers": list(range(together))}
    return section | {"together": together}


def lifetime(random: Random, mtbf_h: float) -> Section:
    if random.random() < 0.15:
        return {"family": "piecewise", "ages": ["0 h", f"{mtbf_h / 2} h"],
                "hazards": [f"{2 / mtbf_h} failures/h", f"{0.5 / mtbf_h} failures/h"]}  # fmt: skip
    return {**family(random), "mtbf": f"{mtbf_h} h"}


def family(random: Random) -> Section:
    name = random.choice(FAMILIES)
    spread: dict[str, Section] = {
        "exponential": {},
        "gamma": {"shape": random.choice([0.67, 2.0])},
        "weibull": {"shape": random.choice([0.7, 3.0])},
        "lognormal": {"sigma": random.choice([0.3, 1.2])},
    }
    return {"family": name, **spread[name]}


def costs(random: Random) -> Section:
    save: Section = {"stall": cost(random, 0.05)}
    if save["stall"] == "0 s":
        save["stall"] = "3 s"  # Young's interval is none without a cost
    if random.random() < 0.35:
        save["background"] = cost(random, random.choice([0.1, 1.0]))
    return {
        "save": save,
        "load": cost(random, 0.1),
        "detect": duration(random, 0.02),
        "reschedule": duration(random, 0.1),
    }


def cost(random: Random, mean_h: float) -> Any:
    return "transfer" if random.random() < 0.25 else duration(random, mean_h)


def duration(random: Random, mean_h: float) -> Any:
    if random.random() < 0.3:
        return {**family(random), "mean": f"{mean_h} h"}
    return random.choice(["0 s", f"{mean_h} h", f"{mean_h / 7} h"])


def strategy(random: Random, place: int, useful_h: float) -> Section:
    name = random.choice(["none", *SAVING])
    entry: Section = {"strategy": name, "name": f"{name} {place}"}
    if name == "none":
        return entry
    at_most = max(useful_h / 20, 0.1)
    own = [f"{share * useful_h} h" for share in (0.1, 0.3333, 0.5, 1.0, 2.0)] + [f"{at_most} h"]
    if name in ("full", "partial"):
        entry["interval"] = random.choice([*own, "1 h", "2 h"])
        return entry
    entry["target_pls"] = random.choice([0.02, 0.1, 0.5])
    if random.random() < 0.6:
        entry["interval"] = random.choice([*own, "cpr-undivided"])
    if name != "cpr" and random.random() < 0.6:
        entry["sub_saves"] = {
            "fraction": random.choice([0.125, 0.5, 1.0]), "latency": random.choice(["0 s", "9 s"]),
            "small_tables": random.choice(["interval", "sub-save"]),
        }  # fmt: skip
    return entry


def outages(random: Random) -> str:
    """A log of 40 outages of 10 nodes."""
    lines, at_h = ["node,start,end"], 0.0
    for _ in range(40):
        at_h += random.expovariate(0.5)
        lines.append(f"n{random.randrange(10)},{at_h:.3f},{at_h + random.expovariate(1):.3f}")
    return "\n".join(lines) + "\n"
