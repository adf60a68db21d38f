"""``cprsim systems`` without a comparison: the list, one system explained, both for a job."""

import json
import re
from typing import Any

import pytest

import cprsim as program
from cprsim.commands.systems.listing import MADE_UP_SCENARIO
from tests.recovery.systems.by_hand import OF_LITERATURE


def test_the_list_names_every_system() -> None:
    listed = program.systems()
    names = {*OF_LITERATURE, "none", "full", "partial", "cpr"}
    assert {*listed.frames["systems"]["system"]} >= names
    assert {line.split()[0] for line in str(listed).splitlines() if line.strip()} >= names
    systems = listed.frames["systems"].set_index("system")
    gemini = systems.loc["gemini"]
    assert gemini["mark"] == "published"
    assert "reading it, take no time" in gemini["assumed"]
    assert systems.loc["check-n-run", "not_counted"].endswith("is unknown")
    options = listed.frames["options"].set_index(["system", "option"])
    assert options.loc[("gemini", "remote_every"), "default"] == 3.0


@pytest.mark.parametrize("name", ["gemini", "hsdp", "oobleck", "swift", "moc", "on-notice", "scr"])
def test_what_is_explained_can_stand_in_a_scenario(name: str) -> None:
    table = program.systems(explain=name).document.table
    options = ", ".join(
        f"{kind}: [{', '.join(str(row[1]) for row in table.rows if row[0] == kind)}]"
        for kind in ("tiers", "captures", "rules")
    )
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
    assert "or `snapshot`" in refused["async"]
    assert refused["full"] == ""
