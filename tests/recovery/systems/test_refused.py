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
    ("paracckpt", {}, {}, "give `other_paths`"),
    ("ssdc", {}, {}, "give `fraction`"),
    ("check-n-run", {}, {"chain": "twice"}, "`chain` is `twice`"),
    ("check-n-run", {}, {"bits": 64}, "`bits` of check-n-run is 64"),
    ("check-n-run", {}, {"every": 0.0}, "`every` of check-n-run is 0"),
    ("check-n-run", {}, {"growth": 0.0}, "no whole save follows 100000 increments"),
    ("check-n-run", {}, {"growth": -0.1}, "make no sense"),
    ("scr", {}, {}, "give `disk`"),
    ("scr", {}, {"disk": 8.0, "every": (1.0, 2.0)}, "a positive one for each of its 3 levels"),
    ("fti", {}, {"disk": 8.0, "data": 3, "parity": 2}, r"make no groups of 3 \+ 2"),
    ("fti", {}, {"disk": 8.0, "data": 4, "parity": 0}, r"make no groups of 4 \+ 0"),
    ("fti", {}, {"disk": 8.0, "data": 0, "parity": 4}, r"make no groups of 0 \+ 4"),
    ("ml-flashpoint", {}, {"copies": 3}, "8 nodes of `worker` make no groups of 3"),
    ("ml-flashpoint", {}, {"copies": 1}, "`copies` of ml-flashpoint is 1"),
    ("reft", {}, {"group": 9}, "`group` of reft is 9"),
    ("pmem", {}, {}, "give `disk`, a bandwidth"),
    ("nvrx-local", {}, {}, "give `disk`, a bandwidth"),
    ("dlrover-flash", {}, {"remote_every": 0.0}, "`remote_every` of dlrover-flash is 0"),
    ("byterobust", {}, {"pool_fraction": 1.0}, "`pool_fraction` is 1.0"),
    ("gemini", {}, {"copies": 1}, "`copies` is 1"),
    ("gemini", {}, {"copies": 9}, "at most 8, the nodes of `worker`"),
    ("gemini", {}, {"copies": 3}, "make no groups of 3"),
    ("gemini", {}, {"placement": "random"}, "`placement` is `random`"),
    ("gemini", {}, {"every": 0.0}, "`every` is 0.0 h"),
    ("gemini", {}, {"idle": 0.0}, "`idle` is 0.0 h"),
    ("gemini", {}, {"idle": 0.75}, "at most a step, 0.0625 h"),
    ("gemini", {}, {"remote_every": 0.0}, "`remote_every` is 0.0 h"),
    ("gemini", {"step_h": None}, {}, "the time of a training step"),
    ("gemini", {"step_h": None}, {"every": 0.5, "idle": 0.1}, "`idle` of gemini needs"),
    ("gemini", {"state_bytes": None}, {}, "gemini needs the state of a node"),
    ("gemini", {"node_bytes_per_h": None}, {}, "gemini needs the bandwidth between nodes"),
    ("ecrec", {}, {"data": 4}, r"8 nodes of `worker` make no stripes of 4 \+ 1"),
    ("ecrec", {}, {"data": 0}, "not <1"),
    ("ecrec", {}, {"parity": 0}, "not <1"),
    ("ecrec", {}, {"data": 3, "tax": -0.1}, "`tax` of ecrec is -0.1"),
    ("ecrec", {}, {"data": 3, "speed_meanwhile": 0.0}, "`speed_meanwhile` is 0.0"),
    ("ecrec", {}, {"data": 3, "speed_meanwhile": 1.1}, "`speed_meanwhile` is 1.1"),
    ("ecrec", {}, {"data": 3, "backstop": 0.0}, "`backstop` of ecrec is 0"),
    ("ecrec", {}, {"data": 3, "rebuild": -1.0}, "must be finite and not negative"),
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
    ("hsdp", {}, {"copy": -1.0}, "must be finite and not negative"),
    ("hsdp", {"state_bytes": None}, {}, "hsdp without `copy` needs the state of a node"),
    ("just-in-time", {}, {"group": 3}, "8 nodes of `worker` make no replica groups of 3"),
    ("flashrecovery", {}, {"backstop": 0.0}, "`backstop` of flashrecovery is 0"),
    ("checkmate", {}, {}, "give `shadow_nodes`"),
    ("adacheck", {}, {"unique": 0.0}, "`unique` of adacheck is 0"),
    ("swift", {}, {"replay_speed": 0.0}, "`replay_speed` of swift is 0"),
    ("swift", {}, {"tax": -0.1}, "`tax` of swift is -0.1"),
    ("moc", {}, {}, "give `experts`"),
    ("moc", {}, {"experts": 4, "saved_each": 5}, "5 of 4 experts"),
    ("moc", {}, {"experts": 4, "saved_each": 0}, "0 of 4 experts"),
    ("moc", {}, {"experts": 4, "expert_share": 1.5}, "between 0 and 1"),
    ("moc", {}, {"experts": 4, "every": 0.0}, "`every`"),
    ("moc", {}, {"experts": 4, "persist": -1.0}, "`persist`"),
    ("moc", {}, {"experts": 4, "snapshot": 0.0, "persist": 0.0}, "give `every`"),
    ("spare", {}, {"stacked": 9}, "`stacked` of spare is 9"),
    ("spare", {}, {"speed": 0.0}, "`speed` of spare is 0"),
    ("recycle", {}, {"pipelines": 1}, "`pipelines` of recycle is 1"),
    ("recycle", {}, {"pipelines": 3}, "`pipelines` of recycle is 3"),
    ("lazarus", {}, {"copies": 3}, "`copies` of lazarus is 3"),
    ("lazarus", {}, {}, "lazarus copies the experts of a mixture of experts: give `copies`"),
    ("bamboo", {}, {"reconfigure": -1.0}, "`reconfigure` of bamboo is -1"),
    *(
        (name, {}, options, message)
        for name in ("oobleck", "varuna")
        for options, message in (
            ({"unit_nodes": 3}, "units of 3 nodes do not divide the 8 nodes"),
            ({"throughput": (1.0,) * 10}, "at most 9"),
            ({"throughput": (0.0, 0.0)}, "positive with all units"),
            ({"throughput": (1.0, inf)}, "positive with all units"),
            ({"throughput": (1.0, 2.0)}, "begin with the number for all units"),
            ({"every": 0.0}, "positive"),
        )
    ),
    ("oobleck", {}, {"reconfigure": -1.0}, "negative"),
    ("oobleck", {"step_h": None}, {}, r"job\.step"),
    ("varuna", {}, {"restart": -1.0}, "negative"),
    ("varuna", {"step_h": None}, {}, r"job\.step"),
    ("varuna", {}, {"restart": 1.0, "restarts": (1.0,)}, "both say what one takes"),
    ("on-notice", {}, {}, "no failure is announced"),
    ("on-notice", {"scopes": ANNOUNCED, **FREE}, {}, "give `every`"),
    ("parcae", {"scopes": ANNOUNCED}, {"migrate": 0.75}, "is announced as long before"),
    ("parcae", {}, {}, "give `notice` to one of `scopes`"),
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
    with pytest.raises(ParameterError, match="needs replicas; shards of embedding servers exist"):
        planned(name, facts(is_emb_ps=True, replicas=1))


@pytest.mark.parametrize("name", NEED_REPLICAS)
def test_a_state_that_is_sharded_over_all_nodes_exists_once(name: str) -> None:
    with pytest.raises(ParameterError, match="the 8 nodes of `worker` hold the state once"):
        planned(name, facts(replicas=1))
