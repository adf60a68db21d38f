"""Event logs by SimPy, of shipped scenarios and of random policies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

import cprsim
from cprsim.records import Activity, EventKind
from cprsim.simulate.cluster import run
from cprsim.simulate.job import LogLines
from cprsim.simulate.transitions import uniform
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


@dataclass(frozen=True, slots=True)
class RandomDraws:
    """What varies in one replication; the same whoever asks, and in whatever order."""

    seed: int
    mean_h: float
    _kept: dict[str, list[float]] = field(default_factory=dict)

    def hours(self, name: str, n: int) -> float:
        """Exponential, around a mean that belongs to the name."""
        kept = self._kept.setdefault(name, [])
        if n >= len(kept):  # always the first so many of one stream
            rng = np.random.default_rng([self.seed, crc32(f"hours/{name}".encode())])
            kept[:] = rng.random(2 * n + 64).tolist()
        mean_h = self.mean_h * (0.5 + crc32(name.encode()) % 1000 / 1000)
        return float(mean_h * -np.log1p(-kept[n]))

    def uniform(self, tier: str, n: int) -> float:
        return uniform(crc32(f"{self.seed}/{tier}".encode()), n)


def random_log(seed: int) -> pd.DataFrame:
    """Of a random job under a random policy: the columns of the rows `events` of a run."""
    job, failures = random_case(seed)
    draws = RandomDraws(seed, 0.02 * job.useful_h)
    logbook = LogLines()
    run(job, iter(failures[:60]), draws, logbook)
    log = logbook.log()
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
