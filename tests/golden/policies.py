"""Every recovery system as plain data: equal policies prove equal numbers."""

from collections.abc import Sequence
from typing import Any

import cprsim
from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import load_scenario
from tests.golden.plain import Golden, numbers
from tests.making import SCENARIOS

WHOLE = ""
LINKED = ("job.step=2 s", "cluster.link=100 Gbit/s")
JOBS: dict[str, tuple[str, Sequence[str]]] = {
    "llm": ("llm", ()),
    "replicas": (
        "llm",
        ("cluster.workers=120", "cluster.replicas=8", "cluster.spares=1", "failures.mtbf=3 h",
         "cluster.others={reader: 12}", "scopes.2.notice=30 s"),
    ),
    "moe": ("moe", ("cluster.workers=16", "cluster.replicas=16", "scopes.1.notice=2 min")),
    "one role": (
        "goodput",
        ("job.step=30 s", "cluster.state=40 GB", "cluster.link=200 Gbit/s",
         "storage={bandwidth: 100 Gbit/s}", "costs.save={stall: 30 s, background: 10 min}"),
    ),
    "servers": (
        "production",
        (*LINKED, "cluster.emb_ps=20", "costs.save={stall: 15 s, background: transfer}"),
    ),
    "varying": (
        "quickstart",
        (*LINKED, "cluster.emb_ps=16", "cluster.shard_size=20 GB", "storage={bandwidth: 9 Gbit/s}",
         "costs.save=90 s", "costs.load={family: lognormal, mean: 4 min, sigma: 0.6}"),
    ),
}  # fmt: skip
NEEDED: dict[str, dict[str, Any]] = {
    "paracckpt": {"other_paths": "100 Gbit/s"},
    "portus": {"server": "1600 Gbit/s"},
    "ssdc": {"fraction": 0.3},
    "scr": {"disk": "10 GB/s"},
    "fti": {"disk": "10 GB/s"},
    "veloc": {"disk": "10 GB/s"},
    "moc": {"experts": 64},
    "nvrx-local": {"disk": "10 GB/s"},
    "fastpersist": {"disk": "10 GB/s"},
    "pmem": {"disk": "10 GB/s"},
    "checkmate": {"shadow_nodes": 4},
    "prm": {"rebuild": "9 min"},
}
OTHER: dict[str, Sequence[Any]] = {
    "backstop": ["50 min"], "bits": [4], "chain": ["consecutive"], "copies": [3], "copy": ["8 s"],
    "data": [2, 8], "disk": ["3 GB/s"], "downtime": ["40 s"], "encoding": ["2 GB/s"],
    "every": ["17 min", "3 h", ["11 min", "40 min", "3 h"], ["9 min", "1 h", "2 h", "3 h"]],
    "every_steps": [25],
    "expert_share": [0.5], "experts": [16], "first": [0.4], "fraction": [0.1], "group": [4, 16],
    "growth": [0.1], "idle": ["3 s"], "in_flight": [3], "less": [0.2], "load": ["70 s"],
    "migrate": ["30 s"], "model": ["any"], "other_paths": ["40 Gbit/s"], "parity": [2],
    "server": ["9 Gbit/s"],
    "persist": ["6 min"], "pipelines": [4], "placement": ["ring", "group"],
    "pool_fraction": [0.9], "prepare": ["50 s"], "quorum": ["5 s"],
    "readers": ["worker", "trainer"], "rebuild": ["4 min"],
    "reconfigure": ["90 s"], "regroup": ["20 s"], "remote_every": ["100 min"], "replay_speed": [2],
    "restart": ["2 min"], "saved_each": [4], "shadow_nodes": [8], "size": [0.1],
    "snapshot": ["7 s"], "speed": [0.8], "speed_meanwhile": [0.6], "stacked": [2], "stall": ["9 s"],
    "tax": [0.03], "throughput": [[1, 0.9, 0.7]], "transfer": ["45 s"], "unique": [0.25],
    "unit_nodes": [2], "wake": ["15 s"], "window": ["25 s"],
}  # fmt: skip
"""Of each option, other values than its default."""
NAMES = [name for name in SYSTEMS if name not in (*STRATEGIES, "policy")]


def policy(job: str, **entry: Any) -> Any:
    """What one entry of `recovery` becomes in a job; `refused` where it can't serve it."""
    scenario, sets = JOBS[job]
    said = ", ".join(f"{key}: {value}" for key, value in entry.items())
    try:
        loaded = load_scenario(SCENARIOS / f"{scenario}.yaml", [*sets, f"recovery=[{{{said}}}]"])
        experiment = assemble(loaded)
    except cprsim.CprsimError:
        return "refused"
    (planned,) = experiment.policies
    return numbers(planned)


def quick() -> Golden:
    for job in JOBS:
        for name in STRATEGIES:
            more = {"target_pls": 0.08} if name.startswith("cpr") else {}
            yield f"{job} {name}", policy(job, strategy=name, **more)
        for name in NAMES:
            yield f"{job} {name}", policy(job, strategy=name, options=NEEDED.get(name, {}))


def slow() -> Golden:
    for job in JOBS:
        for name in NAMES:
            for option in SYSTEMS[name].options:
                for value in OTHER.get(option, ()):
                    said = NEEDED.get(name, {}) | {option: value}
                    changed = policy(job, strategy=name, options=said)
                    if changed != "refused":
                        yield f"{name} {option}={value} {job}", changed
