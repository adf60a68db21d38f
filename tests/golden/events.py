"""Event logs by SimPy, of shipped scenarios and of random policies."""

from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

import cprsim
from cprsim.job.records import Activity, EventKind, Floats, Ints
from cprsim.simulation.cluster import run_one
from cprsim.simulation.job import SimulatedJob
from cprsim.simulation.spec import spec_of
from cprsim.simulation.state import Drawn
from cprsim.simulation.strikes import given_failures
from tests.golden.plain import Golden, digest, table
from tests.recovery.random_policies import random_case

WHOLE = ""
OFTEN = ["costs.detect=0 s", "failures.mtbf=3 h"]
CASES: dict[str, tuple[str, int, Any]] = {
    "quickstart 1": ("quickstart", 1, []),
    "production 0": ("production", 0, ["recovery=[{strategy: cpr, target_pls: 0.1}]"]),
    "nodes 18": (
        "quickstart", 18,
        ["failures={kind: node, roles: {emb_ps: {family: weibull, mtbf: 40 h, shape: 0.7}}}",
         "costs.save={stall: 5 s, background: 4 min}", "cluster.spares=0",
         "cluster.repair={family: lognormal, mean: 30 min, median: 20 min}",
         "recovery=[full, {strategy: cpr-mfu, target_pls: 0.05}]"],
    ),
    "often 2": ("quickstart", 2, OFTEN),
    "llm 3": ("llm", 3, ["job.useful=30 h"]),
    "moe 4": ("moe", 4, ["job.useful=40 h"]),
    "goodput 5": ("goodput", 5, ["job.useful=100 h", "job.horizon=110 h"]),
    "gamma 6": ("production-gamma", 6, []),
    "kaggle 7": ("criteo-kaggle", 7, []),
    "rehearsal 8": ("rehearsal", 8, []),
    "shared storage 9": ("planning", 9, ["failures.together=6", "failures.mtbf=4 h"]),
}  # fmt: skip
N_RANDOM = 30


class RandomDraws:
    """What varies in one replication: exponential, around a mean that belongs to the name."""

    def __init__(self, job: SimulatedJob, seed: int) -> None:
        _, tables = spec_of(job)
        self.of_saves, self.of_failures = tables.of_saves, tables.of_failures
        self.seed, self.mean_h = seed, 0.02 * job.useful_h
        tiers = [capture.tier for capture in job.policy.captures]
        keys = [crc32(f"{seed}/{tier}".encode()) for tier in tiers]
        self.keys: Ints = np.array(keys, dtype=np.int64).reshape(len(tiers), 1)

    def first(self, n: int) -> Drawn:
        """The first n draws of each cost."""
        of_saves, of_failures = (
            np.array([self.table(name, n) for name in names]).reshape(len(names), n, 1)
            for names in (self.of_saves, self.of_failures)
        )
        return Drawn(of_saves, of_failures, self.keys)

    def table(self, name: str, n: int) -> Floats:
        rng = np.random.default_rng([self.seed, crc32(f"hours/{name}".encode())])
        mean_h = self.mean_h * (0.5 + crc32(name.encode()) % 1000 / 1000)
        return -mean_h * np.log1p(-rng.random(n))


def random_log(seed: int) -> pd.DataFrame:
    """Of a random job under a random policy: the columns of the rows `events` of a run."""
    job, failures = random_case(seed)
    draws: Any = RandomDraws(job, seed)
    _, log = run_one(job, given_failures((tuple(failures[:60]),)), draws, skips=True)
    return pd.DataFrame(
        {
            "at_h": log.at_h,
            "progress_h": log.progress_h,
            "kind": [EventKind(one).name.lower() for one in log.kind],
            "activity": [Activity(one).name.lower() for one in log.activity],
            "slot": log.slot,
        }
    )


def told(log: pd.DataFrame) -> Any:
    """How many events there are, their instants, and the order of what happens."""
    words = [log[name].astype(str).str.replace(" ", "_").tolist() for name in ("kind", "activity")]
    return {"n": len(log), **table(log[["at_h", "progress_h", "slot"]]), "what": digest(words)[0]}


def quick() -> Golden:
    for name, (scenario, replication, sets) in CASES.items():
        events = cprsim.run(scenario, sets, replay=replication).rows["events"]
        for strategy, log in events.groupby("strategy", sort=False):
            yield f"{name} {strategy}", told(log)
    for seed in range(N_RANDOM):
        yield f"random {seed}", told(random_log(seed))
