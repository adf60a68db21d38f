"""What users write: the scenario's schema, reading with file and line, and back to text."""

from __future__ import annotations

from cprsim.scenario.reading import LoadedScenario, checked_data, load_scenario
from cprsim.scenario.schema import Scenario, dump_entry, dump_scenario, json_schema
from cprsim.scenario.yaml_text import Plain, dump_plain, read_yaml

__all__ = [
    "LoadedScenario",
    "Plain",
    "Scenario",
    "checked_data",
    "dump_entry",
    "dump_plain",
    "dump_scenario",
    "json_schema",
    "load_scenario",
    "read_yaml",
]
