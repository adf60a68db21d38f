"""CPR keeps its target PLS, whatever a failure takes: drawn scenarios, simulated."""

from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from cprsim.job.records import Floats
from cprsim.results.metrics import replication_rows
from cprsim.results.pipeline import simulate
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.reading import load_scenario
from cprsim.scenario.yaml_text import dump_plain

TARGET, MOST, FEWEST_INTERVALS = 0.05, 1.05, 5
ERROR = 0.0125  # of the target: four standard errors are the 5 % that are allowed
N_PILOT = 400  # that say how many replications the error takes
SEEDS = 45  # of which at least 30 have as many intervals, and recover partially


def drawn(seed: int) -> dict[str, Any]:
    """A recommendation job whose failures take shards, racks and all of it; half await spares."""
    rng = np.random.default_rng(seed)
    trainers, emb_ps = int(rng.integers(0, 40)), int(rng.integers(2, 33))
    mtbf_h, useful_h = float(rng.uniform(4, 40)), float(rng.uniform(200, 700))
    rack, all_of_it, process = rng.uniform(0, 0.2), rng.uniform(0, 0.1), rng.uniform(0, 0.5)
    shares = {"process": process, "rack": rack, "all": all_of_it}
    shares["node"] = 1 - sum(shares.values())
    save_min = float(rng.uniform(0.2, 6))
    stall: Any = f"{save_min} min"
    if rng.random() < 0.4:
        stall = {"stall": f"{save_min / 5} min", "background": f"{save_min} min"}
    names = ["emb_ps", "any"] if trainers else ["any"]
    clock = str(rng.choice(["wall", "uptime", "progress"]))
    scopes: list[dict[str, Any]] = [
        {"name": name, "share": share, "reach": name} for name, share in shares.items()
    ]
    if rng.random() < 0.3:  # racks fail on their own
        scopes[-1]["share"] += scopes[1].pop("share")
        own_h = f"{rng.uniform(50, 200)} h"
        own = {"kind": "job", "family": "exponential", "mtbf": own_h, "clock": clock}
        scopes[1]["failures"] = own
    cluster: dict[str, Any] = {
        "trainers": trainers,
        "emb_ps": emb_ps,
        "rack": int(rng.integers(2, 17)),
    }
    if rng.random() < 0.5:
        repair = {"family": str(rng.choice(["exponential", "lognormal"])), "mean": "12 h"}
        repair |= {"sigma": 1.0} if repair["family"] == "lognormal" else {}
        cluster |= {"spares": int(rng.integers(0, 5)), "repair": repair}
    return {
        "name": f"drawn-{seed}",
        "job": {"useful": f"{useful_h} h"},
        "cluster": cluster,
        "failures": {
            "kind": "job", "family": "exponential", "mtbf": f"{mtbf_h} h",
            "role": str(rng.choice(names)), "clock": clock,
        },
        "scopes": scopes,
        "costs": {"save": stall, "load": "4 min", "detect": "1 min", "reschedule": "3 min"},
        "recovery": [{"strategy": "cpr", "target_pls": TARGET}],
        "simulation": {"seed": seed, "replications": N_PILOT},
    }  # fmt: skip


def pls_of(experiment: Experiment) -> Floats:
    """Of each replication, over the target."""
    return np.asarray(replication_rows(simulate(experiment))["pls"] / TARGET, np.float64)


def test_cpr_keeps_its_target_whatever_a_failure_takes(tmp_path: Path) -> None:
    n_tried, path = 0, tmp_path / "drawn.yaml"
    for seed in range(SEEDS):
        path.write_text(dump_plain(drawn(seed)))
        experiment = assemble(load_scenario(path))
        (policy,) = experiment.policies
        if not policy.leaves_stale or experiment.useful_h / policy.interval_h < FEWEST_INTERVALS:
            continue
        n_tried += 1
        n = ceil((pls_of(experiment).std(ddof=1) / ERROR) ** 2)
        mean = pls_of(experiment.simulated(replications=n)).mean()
        assert mean <= MOST, f"seed {seed}: {mean:.3f} of the target, n = {n}"
    assert n_tried >= 30
