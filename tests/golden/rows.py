"""Rows of replications, of fleets and of sweeps; of each column the mean, see `plain.table`."""

from typing import Any

import cprsim
from tests.golden.plain import NO_DATA, Golden, shipped, table

WHOLE = ""
N = 12  # replications
STRATEGIES = ["none", "full", "partial"] + [
    {"strategy": name, "target_pls": 0.07}
    for name in ("cpr", "cpr-scar", "cpr-mfu", "cpr-ssu", "cpr-round-robin")
]
SLOW = "failure-analysis"  # draws the failures of 400 days
ALL = {path.stem: name for path, name in shipped().items() if path.stem != SLOW}
CHANGES = {
    "as it is": {},
    "saves in the background": {"costs.save": "{stall: 60 s, background: 30 min}"},
    "failures of all roles": {"failures.role": "any", "failures.mtbf": "6 h"},
    "several at once": {"failures.together": "3", "failures.mtbf": "9 h"},
    "aged by uptime": {"failures.clock": "uptime", "failures.mtbf": "9 h"},
    "aged by progress": {"failures.clock": "progress", "failures.mtbf": "9 h"},
    "finite spares": {"cluster.spares": "1", "cluster.repair": "7 h", "failures.mtbf": "9 h"},
    "one trainer": {"cluster.trainers": "1", "failures.role": "any", "failures.mtbf": "9 h"},
    "priority saving": {
        "recovery": "[{strategy: cpr-mfu, target_pls: 0.1}]",
        "costs.save": "{stall: 60 s, background: 10 min}",
        "failures.mtbf": "9 h",
    },
    "loads that share the storage": {
        "costs.load": "transfer",
        "cluster.shard_size": "200 GB",
        "storage": "{bandwidth: 4 Gbit/s}",
        "failures.mtbf": "3 h",
        "failures.together": "2",
    },
    "costs that vary": {
        "costs.save": "{family: lognormal, mean: 4 min, sigma: 0.8}",
        "costs.load": "{family: lognormal, mean: 20 min, sigma: 0.8}",
        "costs.detect": "{family: lognormal, mean: 2 min, sigma: 0.8}",
        "costs.reschedule": "{family: lognormal, mean: 9 min, sigma: 0.8}",
        "failures.mtbf": "6 h",
    },
}
FEW = {"fleet.jobs": 6, "fleet.kinds": 3, "unknown": None}
FLEETS: dict[str, tuple[dict[str, list[Any]] | None, dict[str, Any]]] = {
    "as it is": (None, {}),
    "spares": ({"spares": [0, 2, 4]}, {}),
    "nodes": ({"fleet.nodes": [80, 160]}, {"fleet.jobs": 8}),
    "no limit": (None, {"fleet.nodes": None, "fleet.spares": None}),
    "histories": (None, {"fleet.histories": 3}),
    "systems": (None, {"recovery": ["full", "partial", "none"]}),
    "intervals": ({"recovery.1.target_pls": [0.02, 0.2]}, {}),
    "often": (None, {"failures.mtbf": "5 h"}),
    "unknown": (None, {"unknown": {"prices.node_hour": {"low": "0.5 USD", "high": "4 USD"}}}),
    "slow storage": ({"storage.bandwidth": ["5 Gbit/s"]}, {"fleet.spares": 1}),
}
SWEEPS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "rates": ("quickstart", {"failures.mtbf": ["4 h", "12 h"], "costs.save": "1 s:4 min:log3"}, {}),
    "one at a time": ("production", {"failures.count": [2, 9], "costs.detect": ["0 s", "9 min"]},
                      {"mode": "one-at-a-time"}),
    "systems": ("llm", {"cluster.spares": [0, 2], "failures.mtbf": ["6 h"]}, {}),
    "accuracy": ("criteo-kaggle", {"failures.together": [1, 2]}, {}),
    "seeds": ("moe", {"simulation.seed": [1, 2, 3]}, {}),
}  # fmt: skip


def rows(name: str, scenario: str, sets: Any, n: int = N) -> Golden:
    """A row per strategy and replication."""
    found = cprsim.run(scenario, sets, replications=n).rows["replications"]
    for strategy, mine in found.groupby("strategy", sort=False):
        yield f"{name} {strategy}", table(mine.drop(columns="replication"), to_the_bit=True)


def quick() -> Golden:
    for name, where in ALL.items():
        yield from rows(f"{where}{name}", name, {})


def slow() -> Golden:
    if not NO_DATA:
        yield from rows(f"data {SLOW}", SLOW, {}, 3)
    for name, where in ALL.items():
        known = STRATEGIES[:2] if name in ("llm", "moe", "goodput") else STRATEGIES
        yield from rows(f"{where}{name} also", name, {"recovery": known})
    for change, sets in CHANGES.items():
        yield from rows(
            f"quickstart {change}", "quickstart", {"failures.clock": "wall"} | sets, 200
        )
    for name, (over, sets) in FLEETS.items():
        found = cprsim.fleet("planning", over or (), FEW | sets, workers=1)
        yield f"fleet {name}", table(found.frames["options"])
        parts = found.frames["parts"].groupby("part")
        yield f"fleet {name}, parts", {str(part): table(mine) for part, mine in parts}
    for name, (scenario, axes, how) in SWEEPS.items():
        swept = cprsim.sweep(scenario, axes, replications=N, workers=1, **how).rows["quantities"]
        for quantity, mine in swept.groupby("quantity", sort=False):
            yield f"sweep {name} {quantity}", table(mine[["mean", "low", "high", "difference"]])
