"""Ten drawn jobs whose overhead first-order arithmetic gives: saves, lost work, stages, waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from cprsim.results.metrics import replication_rows
from cprsim.results.pipeline import simulate
from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import load_scenario
from cprsim.scenario.yaml_text import dump_plain

DETECT, RESCHEDULE, LOAD = 1 / 60, 4 / 60, 3 / 60  # hours
STATE_GB, LINK_GB_PER_H, REMOTE_H = 100.0, 400 / 8 * 3600, 3.0
CLOSE = 0.15  # of the arithmetic: none of the ten is further off


class Drawn(NamedTuple):
    """A job: nodes, MTBF, save and interval are drawn from the seed; hours."""

    seed: int
    entry: dict[str, Any]  # of `recovery`; of a strategy the interval is drawn
    share: tuple[str, float] | None = None  # a scope beside `node`, and its share of the failures
    spares: int | None = None  # None: always a free one
    repair_h: float = 0.0


JOBS = [
    Drawn(1, {"strategy": "full"}),
    Drawn(2, {"strategy": "full"}, spares=0, repair_h=2.0),
    Drawn(3, {"strategy": "full"}, ("rack", 0.1), spares=4, repair_h=6.0),
    Drawn(4, {"strategy": "partial"}),
    Drawn(5, {"strategy": "partial"}, spares=0, repair_h=1.0),
    Drawn(6, {"strategy": "cpr", "target_pls": 0.02}),
    Drawn(7, {"strategy": "gemini"}),
    Drawn(8, {"strategy": "gemini"}, ("all", 0.1)),
    Drawn(9, {"strategy": "hsdp"}),
    Drawn(10, {"strategy": "hsdp"}, spares=0, repair_h=3.0),
]


def scenario(job: Drawn) -> tuple[dict[str, Any], dict[str, float]]:
    """What is written, and the numbers that were drawn for it."""
    rng = np.random.default_rng(job.seed)
    n_nodes = 8 * int(np.geomspace(1, 512, 10)[rng.permutation(10)[0]])
    own = {"n": n_nodes, "mtbf": rng.uniform(8, 40), "save": rng.uniform(0.5, 4) / 60}
    own["every"] = float(np.sqrt(2 * own["save"] * own["mtbf"]) * rng.uniform(0.7, 1.4))
    is_llm = job.entry["strategy"] in ("gemini", "hsdp")
    nodes: dict[str, Any] = {"emb_ps": n_nodes // 2, "trainers": n_nodes // 2}
    if is_llm:
        nodes = {"workers": n_nodes, "state": f"{STATE_GB} GB", "link": "400 Gbit/s", "replicas": 4}
    name, share = job.share or ("node", 0.0)
    scopes = [{"name": "node", "share": 1 - share, "reach": "node"}]
    scopes += [{"name": name, "share": share, "reach": name}] if share else []
    given = (
        {"interval": f"{own['every']} h"} if job.entry["strategy"] in ("full", "partial") else {}
    )
    written: dict[str, Any] = {
        "name": f"derived-{job.seed}",
        "job": {"useful": "600 h", "step": "10 s"},
        "cluster": {**nodes, "rack": 8, "repair": f"{job.repair_h} h"},
        "failures": {"kind": "job", "family": "exponential", "mtbf": f"{own['mtbf']} h"},
        "scopes": scopes,
        "storage": {"bandwidth": "100 TB/s"},  # so that a remote load takes no time beside the rest
        "costs": {
            "save": f"{own['save']} h", "load": f"{LOAD} h", "detect": f"{DETECT} h",
            "reschedule": f"{RESCHEDULE} h",
        },
        "recovery": [job.entry | given],
        "simulation": {"seed": job.seed, "replications": 1000},
    }  # fmt: skip
    written["failures"]["role"] = "any"
    if job.spares is not None:
        written["cluster"]["spares"] = job.spares
    return written, own


def derived(job: Drawn, own: dict[str, float]) -> float:
    """Overhead by first-order arithmetic: shares of useful time."""
    n, mtbf_h, save_h, every_h = (own[key] for key in ("n", "mtbf", "save", "every"))
    name, share = job.share or ("", 0.0)
    wait_h = 0.0
    if job.spares is not None:  # nobody waits for the first ones
        n_struck = {"": 1, "rack": 8, "all": n}[name]
        waiting = (1.0 if job.spares < 1 else 0.0) * (1 - share) + share * (job.spares < n_struck)
        wait_h = waiting * job.repair_h
    restart_h = DETECT + wait_h + RESCHEDULE
    match job.entry["strategy"]:
        case "full":
            return save_h / every_h + (restart_h + LOAD + every_h / 2) / mtbf_h
        case "partial":  # half of the failures strike a server, which loads its shard
            return save_h / every_h + (restart_h + LOAD / 2) / mtbf_h
        case "cpr":
            every_h = 2 * float(job.entry["target_pls"]) * (n / 2) * (2 * mtbf_h)
            return save_h / every_h * (every_h < 600) + (restart_h + LOAD / 2) / mtbf_h
        case "gemini":  # a step is lost, or half of the interval of remote saves
            peer_h = STATE_GB / LINK_GB_PER_H
            lost_h = (1 - share) * peer_h + share * (REMOTE_H / 2 + LOAD)
            return (restart_h + lost_h) / mtbf_h
    # hsdp: 3 min for all, then one of 4 groups is missing until its node is back
    return (3 / 60 + (wait_h + RESCHEDULE + STATE_GB / LINK_GB_PER_H) / 4) / mtbf_h


@pytest.mark.parametrize("job", JOBS, ids=lambda job: f"{job.seed}-{job.entry['strategy']}")
def test_overhead_is_that_of_first_order_arithmetic(job: Drawn, tmp_path: Path) -> None:
    written, own = scenario(job)
    path = tmp_path / "derived.yaml"
    path.write_text(dump_plain(written))
    rows = replication_rows(simulate(assemble(load_scenario(path))))
    simulated, by_hand = rows["wall_h"].mean() / 600 - 1, derived(job, own)
    assert simulated == pytest.approx(by_hand, rel=CLOSE), own
