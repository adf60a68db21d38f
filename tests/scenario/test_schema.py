"""What a scenario comes to inside, and what its JSON Schema tells editors."""

from __future__ import annotations

import json
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from cprsim.kernel.shape import PRESETS
from cprsim.scenario.cluster import tables_bytes
from cprsim.scenario.reading import load_scenario
from cprsim.scenario.schema import json_schema
from tests.making import SCENARIOS
from tests.scenario.writing import GOOD_TEXT, load, write

AT = "failures={kind: injected, clock: wall, at: [60 h, 3 h], servers: "
TABLES = "cluster={emb_ps: 5, tables: [{rows: 1000, dimension: 16}, {rows: 10, dimension: 8, %s}]}"
INSIDE: list[tuple[str, dict[str, Any]]] = [
    # one way to say a thing stands for another, or takes its place
    ("job={samples: 7.2e9, throughput: 20000 samples/s}", {"job.useful_h": pytest.approx(100.0)}),
    ("costs.save=90 s", {"costs.save.stall": 90 / 3600, "costs.save.background": None}),
    ("costs.save={stall: 90 s}", {"costs.save.stall": 90 / 3600, "costs.save.background": None}),
    (TABLES % "bytes_per_value: 2", {"cluster.shard_bytes": (1000 * 16 * 4 + 10 * 8 * 2) / 5}),
    (AT + "[[0], [2, 3]]}", {"failures.servers_at": ((0,), (2, 3)), "failures.n_together": 2}),
    (AT + "[2, 3]}", {"failures.servers_at": (), "failures.named_servers": {"servers": (2, 3)}}),
    ("cluster.tables=criteo-kaggle", {"cluster.shard_size_bytes": None}),
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


@pytest.mark.parametrize(
    ("preset", "n_rows", "size_gb"),
    [("criteo-kaggle", 33_762_577, 2.16), ("criteo-terabyte", 49_126_297, 12.6)],
)
def test_presets_have_the_published_rows_and_bytes(
    preset: str, n_rows: int, size_gb: float
) -> None:
    assert len(PRESETS[preset].tables.rows) == 26
    assert sum(PRESETS[preset].tables.rows) == n_rows
    assert tables_bytes(preset) == pytest.approx(size_gb * 1e9, rel=2e-3)
    cluster = load("cluster.shard_size=null", f"cluster.tables={preset}").scenario.cluster
    assert cluster.shard_bytes == tables_bytes(preset) / 18


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
    of_policies = "Tier PlacementSection Groups Capture Rule Stage Elastic Tax"
    assert silent == set(of_policies.split())


def test_the_schema_that_editors_find_is_current() -> None:
    committed = (SCENARIOS / "scenario.schema.json").read_text("utf-8")
    assert json.loads(committed) == json.loads(json.dumps(json_schema())), (
        "bring it up to date: cprsim validate --schema > scenarios/scenario.schema.json"
    )
