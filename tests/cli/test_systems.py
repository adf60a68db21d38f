"""``cprsim systems`` without a comparison: the list, one system explained, both for a job."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import cprsim as program
from cprsim.present.answer import Answer
from cprsim.present.systems_listing import MADE_UP_SCENARIO
from tests.recovery.systems.by_hand import OF_LITERATURE

GOES_BACK_TO = {  # where a process dies, a node is lost, two are
    "none policy": ("start", "start", "start"),
    "full prm check-n-run incrcp ssdc async checkfreq datastates pccheck portus paracckpt "
    "checkbullet lc-checkpoint on-notice varuna": ("remote", "remote", "remote"),
    "partial cpr": ("stale", "stale", "stale"),
    "ecrec": ("goes on", "goes on", "remote"),
    "gemini ml-flashpoint transom reft adacheck fftrainer": ("memory", "memory", "remote"),
    "dlrover-flash moc": ("memory", "remote", "remote"),
    "byterobust": ("memory", "memory", "memory"),
    "nvrx-local fti": ("disk", "disk", "disk"),
    "fastpersist pmem": ("disk", "remote", "remote"),
    "scr veloc": ("disk", "disk", "remote"),
    "parcae trainmover": ("remote", "goes on", "remote"),
    "just-in-time checkmate flashrecovery swift-undo torchft recycle oobleck spare": (
        "step", "step", "step"),
    "swift": ("replay", "replay", "remote"),
    "hsdp": ("goes on", "goes on", "goes on"),
    "bamboo lazarus": ("step", "step", "remote"),
}  # fmt: skip
NEEDS = {
    "none full partial cpr prm portus": "spares",
    "ecrec": "parity 4+1, spares",
    "check-n-run incrcp ssdc async checkfreq datastates paracckpt checkbullet lc-checkpoint "
    "dlrover-flash": "host memory 1x, spares",
    "pccheck gemini ml-flashpoint transom byterobust fftrainer": "host memory 2x, spares",
    "reft": "host memory 1.14x, spares",
    "nvrx-local fastpersist scr fti veloc": "node disks, spares",
    "pmem": "persistent memory, spares",
    "on-notice": "notice, spares",
    "parcae bamboo lazarus spare": "copies on other nodes",
    "trainmover": "copies on other nodes, 1 more node, spares",
    "just-in-time flashrecovery swift-undo": "replicas, spares",
    "checkmate": "4 more nodes, spares",
    "adacheck": "host memory 0.333x, spares",
    "moc": "host memory 0.153x, spares",
    "swift": "host memory, spares",
    "hsdp torchft recycle oobleck": "replicas",
    "varuna policy": "",
}


def of(answer: Answer, name: str) -> Any:
    return answer.frames["systems"].set_index("system").loc[name]


def test_the_list_names_every_system() -> None:
    listed = program.systems()
    names = {*OF_LITERATURE, "none", "full", "partial", "cpr"}
    assert {*listed.frames["systems"]["system"]} >= names
    assert {line.split()[0] for line in str(listed).splitlines() if line.strip()} >= names
    after = listed.frames["systems"].set_index("system")
    places = after[["after_process", "after_node", "after_two_nodes"]].agg(tuple, axis=1)
    assert places.to_dict() == one_by_one(GOES_BACK_TO)
    assert after["needs"].to_dict() == one_by_one(NEEDS)
    gemini = of(listed, "gemini")
    assert gemini["mark"] == "published"
    assert "no time beside the transfers" in gemini["assumed"]
    assert of(listed, "check-n-run")["not_counted"].endswith("is not priced")
    options = listed.frames["options"].set_index(["system", "option"])
    assert options.loc[("gemini", "remote_every"), "default"] == 3.0


def one_by_one(groups: dict[str, Any]) -> dict[str, Any]:
    """What groups of systems have, by system."""
    return {name: has for names, has in groups.items() for name in names.split()}


@pytest.mark.parametrize("name", ["gemini", "hsdp", "oobleck", "swift", "moc", "on-notice", "scr"])
def test_what_is_explained_can_stand_in_a_scenario(name: str) -> None:
    table = program.systems(explain=name).document.table
    assert table is not None
    kinds = ("tiers", "captures", "rules")
    written = {
        kind: [str(row[1]) for row in table.rows if row[0] == kind] for kind in kinds
    }  # fmt: skip
    options = ", ".join(f"{kind}: [{', '.join(all_of)}]" for kind, all_of in written.items())
    text = f"recovery: [{{strategy: policy, options: {{{options}}}}}]"
    made_up = re.sub("recovery: .*", text, MADE_UP_SCENARIO)
    assert program.load(made_up).strategies == ("policy",)


def test_a_scenario_s_job_with_its_own_options(cprsim: Any) -> None:
    said = " ".join(cprsim("systems", "llm", "--explain", "hsdp").stdout.split())
    assert "{groups: {size: 8, tolerates: 7, strided: true}}" in said  # `group: 16` of 128
    changed = program.systems("llm", {"cluster.link": "100 Gbit/s"}, explain="gemini")
    assert "background: 8 s" in str(changed)


def test_a_job_that_a_system_can_t_serve_says_what_is_missing(cprsim: Any, scenario: Any) -> None:
    said = " ".join(cprsim("systems", scenario, "--explain", "nvrx-local").stdout.split())
    assert "It can't serve small: " in said
    assert "give `disk`, a bandwidth" in said
    said = json.loads(cprsim("systems", scenario, "--list", "--json").stdout)
    assert said["values"]["job"] == "small"
    refused = {one["system"]: one["cannot_serve"] for one in said["frames"]["systems"]}
    assert "give `snapshot`" in refused["async"]
    assert refused["full"] == ""
