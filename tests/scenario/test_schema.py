"""What a scenario comes to inside, and what its JSON Schema tells editors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cprsim.kernel.shape import PRESETS
from cprsim.recovery.paper import INTERVAL_RULES
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario import Scenario, json_schema, load_scenario
from cprsim.scenario.cluster import tables_bytes
from tests.scenario.writing import GOOD, GOOD_TEXT, changed, scenario, write

ROOT = Path(__file__).parent.parent.parent


def test_work_may_be_samples_over_throughput() -> None:
    job = scenario(job={"useful": None, "samples": 7.2e9, "throughput": "20000 samples/s"}).job
    assert job.useful_h == pytest.approx(100.0, rel=1e-14)
    assert job.samples == 7.2e9


def test_a_short_save_is_its_stall() -> None:
    costs = {"load": "1 h", "reschedule": "0 s"}
    short = scenario(costs={**costs, "save": "90 s"})
    assert short == scenario(costs={**costs, "save": {"stall": "90 s"}})
    spread = {"family": "gamma", "mean": "90 s", "shape": 2}
    assert scenario(costs={"save": spread}) == scenario(costs={"save": {"stall": spread}})
    assert short.costs.save.background is None
    assert short.costs.detect == 0.0


def test_rescheduling_has_a_default_as_detection_has(tmp_path: Path) -> None:
    absent = load_scenario(write(tmp_path, changed(("  reschedule: 2 min\n", "")))).scenario
    assert (absent.costs.reschedule, absent.costs.detect) == (0.0, 0.0)
    costs = json_schema()["$defs"]["CostsSection"]
    assert "reschedule" not in costs["required"]
    for name in ("detect", "reschedule"):
        assert costs["properties"][name]["default"] == 0.0
        assert costs["properties"][name]["description"].endswith("default 0 s.")


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
    cluster = scenario(cluster={"shard_size": None, "tables": preset}).cluster
    assert cluster.shard_bytes == tables_bytes(preset) / 18


def test_tables_are_rows_times_dimension_times_bytes() -> None:
    tables = [{"rows": 1000, "dimension": 16}, {"rows": 10, "dimension": 8, "bytes_per_value": 2}]
    cluster = scenario(cluster={"shard_size": None, "tables": tables, "emb_ps": 5}).cluster
    assert cluster.shard_bytes == (1000 * 16 * 4 + 10 * 8 * 2) / 5


def test_defaults() -> None:
    failures = scenario(failures={"kind": "job", "family": "exponential", "mtbf": "9 h"}).failures
    assert failures.kind == "job"
    assert (failures.role, failures.together) == ("emb_ps", 1)
    assert (failures.start, failures.clock) == ("fresh", "wall")
    nodes = scenario(
        failures={"kind": "node", "roles": {"trainer": {"family": "exponential", "mtbf": "99 h"}}}
    ).failures
    assert nodes.kind == "node"
    assert (nodes.start, nodes.clock) == ("stationary", "wall")
    alike = scenario(failures={"kind": "correlated", "mtbf": "9 h", "shape": 1}).failures
    assert alike.kind == "correlated"
    assert (alike.frailty, alike.lemons, alike.shocks) == (None, None, None)
    assert (alike.start, alike.watched_h, alike.clock) == ("stationary", 0.0, "wall")
    injected = scenario(failures={"kind": "injected", "count": 1}).failures
    assert injected.kind == "injected"
    assert (injected.together, injected.n_together, injected.clock) == (1, 1, "progress")


def test_injected_failures_name_their_clock_and_who_fails_when() -> None:
    at = {"kind": "injected", "clock": "wall", "at": ["60 h", "3 h"]}
    each = scenario(failures={**at, "servers": [[0], [2, 3]]}).failures
    assert each.kind == "injected"
    assert (each.clock, each.servers_at, each.n_together) == ("wall", ((0,), (2, 3)), 2)
    alike = scenario(failures={**at, "servers": [2, 3]}).failures
    assert alike.kind == "injected"
    assert (alike.servers_at, alike.named_servers) == ((), {"servers": (2, 3)})


def test_simulation_by_default_and_by_precision() -> None:
    without = Scenario.model_validate({k: v for k, v in GOOD.items() if k != "simulation"})
    assert (without.simulation.seed, without.simulation.replications) == (1, 1000)
    precise = scenario(simulation={"precision": "0.5 %", "replications": None}).simulation
    assert (precise.replications, precise.precision_fraction) == (None, 0.005)
    assert precise.at_most == 100_000


def test_the_name_is_the_files_by_default(tmp_path: Path) -> None:
    text = GOOD_TEXT.replace("name: good\n", "")
    assert load_scenario(write(tmp_path, text, "my job (2).yaml")).scenario.name == "my-job-2"
    assert load_scenario(write(tmp_path, text, "äöü.yaml")).scenario.name == "scenario"


def test_places(tmp_path: Path) -> None:
    loaded = load_scenario(write(tmp_path, GOOD_TEXT))
    lines = {
        key: loaded.place(key).line
        for key in ("", "job.useful", "cluster.emb_ps", "costs.detect", "recovery.full", "nowhere")
    }
    assert lines == {"": 1, "job.useful": 2, "cluster.emb_ps": 5, "costs.detect": 9,
                     "recovery.full": 14, "nowhere": 1}  # fmt: skip
    assert loaded.place("recovery.cpr.target_pls") == loaded.place("recovery.1.target_pls")


# ------------------------------------------------------------------ what YAML means


@pytest.mark.parametrize(
    ("text", "samples"),
    [("4e9", 4e9), ("4.0e9", 4e9), ("4E+9", 4e9), ("4000000000", 4e9), ("+.5e10", 5e9)],
)
def test_numbers_are_those_of_yaml_1_2(tmp_path: Path, text: str, samples: float) -> None:
    job = f"{{samples: {text}, throughput: 20000 samples/s}}"
    path = write(tmp_path, GOOD_TEXT.replace("{useful: 50 h}", job))
    assert load_scenario(path).scenario.job.samples == samples


def test_aliases_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    text = GOOD_TEXT.replace("load: 3 min", "load: &short 2 min").replace(
        "reschedule: 2 min", "reschedule: *short"
    )
    scenario_ = load_scenario(write(tmp_path, b"\xef\xbb\xbf" + text.encode())).scenario
    assert scenario_.costs.reschedule == scenario_.costs.load == 2 / 60


# ------------------------------------------------------------------ the JSON Schema


def properties(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every key of every section, by `Section.key`."""
    sections = {"Scenario": schema, **schema["$defs"]}
    return {
        f"{name}.{key}": said
        for name, section in sections.items()
        for key, said in section.get("properties", {}).items()
    }


def test_every_key_says_what_it_means() -> None:
    silent = [key for key, said in properties(json_schema()).items() if not said.get("description")]
    assert silent == []


def test_every_quantity_says_how_it_is_written() -> None:
    def patterns(said: Any) -> list[str]:
        here = [said["pattern"]] if isinstance(said, dict) and "pattern" in said else []
        below = said.values() if isinstance(said, dict) else said if isinstance(said, list) else ()
        return here + [pattern for part in below for pattern in patterns(part)]

    keys = properties(json_schema())
    for key, unit in {
        "Job.useful": "min", "Job.throughput": "samples/s", "ClusterSection.shard_size": "GB",
        "StorageSection.bandwidth": "Gbit/s", "CostsSection.save": "min",
        "CostsSection.detect": "min",
        "JobFailures.mtbf": "min", "RecoverySection.interval": "min", "Simulation.precision": "%",
    }.items():  # fmt: skip
        assert any(unit in pattern for pattern in patterns(keys[key])), key


def test_the_schema_knows_the_strategies_and_rules() -> None:
    text = json.dumps(json_schema())
    assert json.dumps([*SYSTEMS]) in text
    assert json.dumps(list(INTERVAL_RULES)) in text


def test_the_schema_that_editors_find_is_current() -> None:
    committed = (ROOT / "scenarios" / "scenario.schema.json").read_text("utf-8")
    assert json.loads(committed) == json.loads(json.dumps(json_schema())), (
        "bring it up to date: cprsim schema > scenarios/scenario.schema.json"
    )
