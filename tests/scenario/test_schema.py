"""What a scenario comes to inside, and what its JSON Schema tells editors."""

import json
import re
from operator import attrgetter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cprsim.scenario.reading import load_scenario
from cprsim.scenario.schema import json_schema
from cprsim.scenario.yaml_text import read_yaml
from tests.making import SCENARIOS
from tests.scenario.writing import GOOD_TEXT, load, write

AT = "failures={kind: injected, clock: wall, at: [60 h, 3 h], servers: "
TABLES = "cluster={emb_ps: 5, tables: [{rows: 1000, dimension: 16}, {rows: 10, dimension: 8, %s}]}"
INSIDE: list[tuple[str, dict[str, Any]]] = [
    # one way to say a thing stands for another, or takes its place
    ("job={samples: 7.2e9, throughput: 20000 samples/s}", {"job.useful_h": pytest.approx(100.0)}),
    ("costs.save=90 s", {"costs.save.stall": 90 / 3600, "costs.save.background": None}),
    (TABLES % "bytes_per_value: 2", {"cluster.shard_bytes": (1000 * 16 * 4 + 10 * 8 * 2) / 5}),
    (AT + "[[0], [2, 3]]}", {"failures.servers_at": ((0,), (2, 3)), "failures.n_together": 2}),
    (AT + "[2, 3]}", {"failures.servers_at": (), "failures.named_servers": {"servers": (2, 3)}}),
    *((f"cluster.tables={preset}", {  # bytes as published, on 18 servers
        "cluster.shard_size_bytes": None,
        "cluster.shard_bytes": pytest.approx(published / 18, rel=2e-3)})
      for preset, published in (("criteo-kaggle", 2.16e9), ("criteo-terabyte", 12.6e9))),
    ("failures.at=[3 h]", {"failures.count": None}),
    ("failures.servers=[2, 5]", {"failures.n_together": 2}),
    ("simulation.precision=0.5 %", {"simulation.replications": None, "simulation.at_most": 100_000,
                                    "simulation.precision_fraction": 0.005}),
    # sections and entries are set whole or in part, missing ones are made, null takes them out
    ("costs.save={stall: 3 s, background: transfer}", {"costs.save.background": "transfer"}),
    ("cluster.others.reader=3", {"cluster.others": {"reader": 3}}),
    ("failures.at=null", {"": load().scenario}),
    ("costs.save=~;costs.save=1 s", {"costs.save.stall": 1 / 3600}),
    ("costs.load=1 h;costs.load=2 h", {"costs.load": 2.0}),
    # numbers are those of YAML 1.2
    *((f"job={{samples: {number}, throughput: 20000 samples/s}}", {"job.samples": 4e9})
      for number in ("4e9", "4.0e9", "4E+9", "4000000000", "+.4e10")),
]  # fmt: skip


@pytest.mark.parametrize(("sets", "expected"), INSIDE)
def test_what_is_said_comes_to_this_inside(sets: str, expected: dict[str, Any]) -> None:
    made = load(*sets.split(";")).scenario
    assert {key: attrgetter(key)(made) if key else made for key in expected} == expected


def test_the_name_is_the_files_by_default(tmp_path: Path) -> None:
    text = GOOD_TEXT.replace("name: good\n", "")
    assert load_scenario(write(tmp_path, text, "my job (2).yaml")).scenario.name == "my-job-2"
    assert load_scenario(write(tmp_path, text, "äöü.yaml")).scenario.name == "scenario"


def test_aliases_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    text = GOOD_TEXT.replace("load: 3 min", "load: &short 2 min").replace(
        "reschedule: 2 min", "reschedule: *short"
    )
    scenario_ = load_scenario(write(tmp_path, b"\xef\xbb\xbf" + text.encode())).scenario
    assert scenario_.costs.reschedule == scenario_.costs.load == 2 / 60


def test_every_key_says_what_it_means() -> None:
    """But those of the records of a policy, which docs/recovery.md explains."""
    silent = {
        name
        for name, section in json_schema()["$defs"].items()
        if any("description" not in key for key in section.get("properties", {}).values())
    }
    of_policies = "Tier PlacementSection Groups SaveSchedule Rule Stage Elastic Tax"
    assert silent == set(of_policies.split())


def test_the_schema_that_editors_find_is_current() -> None:
    committed = (SCENARIOS / "scenario.schema.json").read_text("utf-8")
    assert json.loads(committed) == json.loads(json.dumps(json_schema())), (
        "bring it up to date: cprsim validate --schema > scenarios/scenario.schema.json"
    )


SHIPPED = pytest.mark.parametrize(
    "path", sorted(SCENARIOS.glob("*.yaml")), ids=lambda path: path.stem
)


@SHIPPED
def test_editors_find_the_schema_and_accept_the_scenario(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.startswith("# yaml-language-server: $schema=scenario.schema.json\n")
    data, _ = read_yaml(text, path)
    jsonschema.validate(data, json_schema())
    assert data["name"] == path.stem


@SHIPPED
def test_every_number_of_job_cluster_and_costs_has_its_source_beside_it(path: Path) -> None:
    section, bare = "", []
    for line in path.read_text("utf-8").splitlines():
        if re.match(r"\w+:", line):
            section = line.split(":")[0]
        code, _, comment = line.partition("#")
        if section in ("job", "cluster", "storage", "costs") and re.search(r":.*\d", code):
            bare += [line] if not comment.strip() else []
    assert bare == []
