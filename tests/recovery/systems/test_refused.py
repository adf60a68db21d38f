"""What makes no sense of each system, or what it lacks of a job, is one message."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from tests.recovery.systems.by_hand import SCOPES, facts, planned

ANNOUNCED = tuple(replace(scope, notice_h=0.5) for scope in SCOPES)
FREE = {"save_stall": Constant(0.0), "save_background": None}
REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [  # of the job, options, message
    ("async", {"save_background": None}, {}, "give `snapshot`"),
    ("async", {}, {"every": 0.0}, "`every` of async is 0"),
    ("async", {"mtbf_h": inf, "step_h": None}, {"persist": 0.0, "snapshot": 0.0},
     "saves of async take no time here: give `every`"),
    ("datastates", {"step_h": None}, {}, r"give `job\.step`"),
    ("paracckpt", {}, {}, "paracckpt: give `other_paths`, a bandwidth"),
    ("ssdc", {}, {}, "ssdc: give `fraction`, a share"),
    ("check-n-run", {}, {"chain": "twice"},
     "`chain` of check-n-run is `twice`; it must be one of `intermittent`"),
    ("check-n-run", {}, {"bits": 64}, "`bits` of check-n-run is 64"),
    ("check-n-run", {}, {"every": 0.0}, "`every` of check-n-run is 0"),
    ("check-n-run", {}, {"growth": 0.0}, "no whole save follows 100000 increments"),
    ("check-n-run", {}, {"growth": -0.1}, "`growth` of check-n-run is -0.1; it must be 0 or more"),
    ("scr", {}, {}, "scr: give `disk`, a bandwidth"),
    ("scr", {}, {"disk": 8.0, "every": (1.0, 2.0)}, "a positive one for each of its 3 levels"),
    ("veloc", {}, {"disk": 8.0, "every": (0.0, 1.0)}, "`every` of veloc is .* positive"),
    ("fti", {}, {"disk": 8.0, "data": 3, "parity": 2}, "8 nodes of `worker` make no groups of 5"),
    ("fti", {}, {"disk": 8.0, "data": 4, "parity": 0}, "`parity` of fti is 0"),
    ("fti", {}, {"disk": 8.0, "data": 0, "parity": 4}, "`data` of fti is 0"),
    ("ml-flashpoint", {}, {"copies": 3},
     "`copies` of ml-flashpoint is 3; it must be 2 or more and a divisor of the nodes, .* 8"),
    ("ml-flashpoint", {}, {"copies": 1}, "`copies` of ml-flashpoint is 1"),
    ("reft", {}, {"group": 9}, "`group` of reft is 9"),
    ("pmem", {}, {}, "pmem: give `disk`, a bandwidth"),
    ("dlrover-flash", {}, {"remote_every": 0.0}, "`remote_every` of dlrover-flash is 0"),
    ("byterobust", {}, {"pool_fraction": 1.0},
     "`pool_fraction` of byterobust is 1.0; it must be above 0 and below 1"),
    ("gemini", {}, {"copies": 1}, "`copies` of gemini is 1"),
    ("gemini", {}, {"copies": 9},
     "`copies` of gemini is 9; it must be between 2 and all nodes, of which there are 8"),
    ("gemini", {}, {"copies": 3}, "make no groups of 3: give `placement: ring`"),
    ("gemini", {}, {"placement": "random"}, "`placement` of gemini is `random`"),
    ("gemini", {}, {"every": 0.0}, "`every` of gemini is 0.0"),
    ("gemini", {}, {"idle": 0.0}, "`idle` of gemini is 0.0"),
    ("gemini", {}, {"idle": 0.75}, "at most a step, 0.0625 h"),
    ("gemini", {}, {"remote_every": 0.0}, "`remote_every` of gemini is 0.0"),
    ("gemini", {"step_h": None}, {}, "the time of a training step"),
    ("gemini", {"step_h": None}, {"every": 0.5, "idle": 0.1}, "`idle` of gemini needs"),
    ("gemini", {"state_bytes": None}, {}, "gemini needs the state of a node"),
    ("gemini", {"node_bytes_per_h": None}, {}, "gemini needs the bandwidth between nodes"),
    ("ecrec", {}, {"data": 4}, "8 nodes of `worker` make no groups of 5: give `data`"),
    ("ecrec", {}, {"data": 0}, "`data` of ecrec is 0"),
    ("ecrec", {}, {"parity": 0}, "`parity` of ecrec is 0"),
    ("ecrec", {}, {"data": 3, "tax": -0.1}, "`tax` of ecrec is -0.1"),
    ("ecrec", {}, {"data": 3, "speed_meanwhile": 0.0},
     "`speed_meanwhile` of ecrec is 0.0; it must be above 0 and at most 1"),
    ("ecrec", {}, {"data": 3, "speed_meanwhile": 1.1}, "`speed_meanwhile` of ecrec is 1.1"),
    ("ecrec", {}, {"data": 3, "backstop": 0.0}, "`backstop` of ecrec is 0"),
    ("ecrec", {}, {"data": 3, "rebuild": -1.0}, "`rebuild` of ecrec is -1.0"),
    ("ecrec", {}, {"data": 3, "rebuild": 1.0, "encoding": 1.0}, "both say how long"),
    ("ecrec", {"state_bytes": None}, {"data": 3}, "without `rebuild` needs the state of a node"),
    ("ecrec", {"node_bytes_per_h": None}, {"data": 3}, "without `rebuild` needs the bandwidth"),
    ("hsdp", {"replicas": 2}, {"group": 2}, "2 replicas on 8 nodes of `worker` take 4 nodes each"),
    ("hsdp", {}, {"group": 3}, "8 nodes of `worker` make no replica groups of 3"),
    ("hsdp", {}, {"group": 8}, "leaves two or more"),
    ("hsdp", {}, {"group": 0}, "no replica groups of 0"),
    ("hsdp", {}, {"stall": -1.0}, "`stall` of hsdp is -1.0"),
    ("hsdp", {}, {"speed": 1.5}, "`speed` of hsdp is 1.5"),
    ("hsdp", {}, {"backstop": 0.0}, "`backstop` of hsdp is 0"),
    ("hsdp", {}, {"copy": -1.0}, "`copy` of hsdp is -1.0; it must be 0 or more"),
    ("hsdp", {"state_bytes": None}, {}, "hsdp without `copy` needs the state of a node"),
    ("just-in-time", {}, {"group": 3}, "8 nodes of `worker` make no replica groups of 3"),
    ("flashrecovery", {}, {"backstop": 0.0}, "`backstop` of flashrecovery is 0"),
    ("checkmate", {}, {}, "checkmate: give `shadow_nodes`, a count"),
    ("adacheck", {}, {"unique": 0.0}, "`unique` of adacheck is 0"),
    ("swift", {}, {"replay_speed": 0.0}, "`replay_speed` of swift is 0"),
    ("swift", {}, {"tax": -0.1}, "`tax` of swift is -0.1"),
    ("moc", {}, {}, "moc: give `experts`, a count"),
    ("moc", {}, {"experts": 4, "saved_each": 5}, "5 of 4 experts"),
    ("moc", {}, {"experts": 4, "saved_each": 0}, "`saved_each` of moc is 0"),
    ("moc", {}, {"experts": 4, "expert_share": 1.5},
     "`expert_share` of moc is 1.5; it must be between 0 and 1"),
    ("moc", {}, {"experts": 4, "every": 0.0}, "`every`"),
    ("moc", {}, {"experts": 4, "persist": -1.0}, "`persist`"),
    ("moc", {}, {"experts": 4, "snapshot": 0.0, "persist": 0.0}, "give `every`"),
    ("spare", {}, {"stacked": 9}, "`stacked` of spare is 9"),
    ("spare", {}, {"speed": 0.0}, "`speed` of spare is 0"),
    ("recycle", {}, {"pipelines": 1}, "`pipelines` of recycle is 1"),
    ("recycle", {}, {"pipelines": 3},
     "`pipelines` of recycle is 3"),
    ("lazarus", {}, {"copies": 3},
     "`copies` of lazarus is 3"),
    ("lazarus", {}, {}, "lazarus: give `copies`, a count .nodes that hold each expert"),
    ("bamboo", {}, {"reconfigure": -1.0}, "`reconfigure` of bamboo is -1"),
    *(
        (name, {}, options, message)
        for name in ("oobleck", "varuna")
        for options, message in (
            ({"unit_nodes": 3}, "`unit_nodes` of .* is 3; it must be a divisor of the nodes, .* 8"),
            ({"throughput": (1.0,) * 10}, "at most 9"),
            ({"throughput": (0.0, 0.0)}, "positive with all units"),
            ({"throughput": (1.0, inf)}, "positive with all units"),
            ({"throughput": (1.0, 2.0)}, "begin with the number for all units"),
            ({"unit_nodes": 0}, "`unit_nodes` of .* is 0"),
            ({"every": 0.0}, "positive"),
        )
    ),
    ("oobleck", {}, {"reconfigure": -1.0}, "`reconfigure` of oobleck is -1.0"),
    ("oobleck", {"step_h": None}, {}, r"job\.step"),
    ("varuna", {}, {"restart": -1.0}, "`restart` of varuna is -1.0"),
    ("varuna", {"step_h": None}, {}, r"job\.step"),
    ("varuna", {}, {"restart": 1.0, "restarts": (1.0,)}, "both say what one takes"),
    ("varuna", {}, {"restarts": (1.0, -1.0)}, "`restarts` of varuna"),
    ("on-notice", {}, {}, "no failure is announced"),
    ("on-notice", {"scopes": ANNOUNCED, **FREE}, {}, "give `every`"),
    ("parcae", {"scopes": ANNOUNCED}, {"migrate": 0.75}, "is announced as long before"),
    ("parcae", {}, {}, "give `notice` to one of `scopes`"),
    ("prm", {}, {}, "prm: give `rebuild`, a time"),
    ("prm", {}, {"rebuild": 1.0, "model": "any"}, "`model` of prm is `any`; it must be one of"),
    ("prm", {}, {"rebuild": 1.0, "less": 1.1}, "`less` of prm is 1.1"),
    ("prm", {}, {"rebuild": 1.0}, "no other role of the job is called `reader`"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "options", "message"), REFUSED)
def test_what_makes_no_sense_is_refused(
    name: str, changes: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        planned(name, facts(**changes), **options)


NEED_REPLICAS = (
    "adacheck", "flashrecovery", "hsdp", "just-in-time", "oobleck", "recycle", "spare",
    "swift-undo", "torchft",
)  # fmt: skip


@pytest.mark.parametrize("name", [*NEED_REPLICAS, "bamboo", "lazarus"])
def test_embedding_shards_exist_once(name: str) -> None:
    copies = {"copies": 2} if name == "lazarus" else {}
    with pytest.raises(ParameterError, match="needs replicas; shards of embedding servers exist"):
        planned(name, facts(is_emb_ps=True, replicas=1), **copies)


@pytest.mark.parametrize("name", NEED_REPLICAS)
def test_a_state_that_is_sharded_over_all_nodes_exists_once(name: str) -> None:
    with pytest.raises(ParameterError, match="the 8 nodes of `worker` hold the state once"):
        planned(name, facts(replicas=1))
