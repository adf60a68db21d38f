"""What users write: the scenario's schema, loading with file and line, and back to text."""

from __future__ import annotations

from cprsim.scenario.loading import LoadedScenario, load_scenario
from cprsim.scenario.schema import Scenario, dump_entry, dump_scenario, json_schema

__all__ = [
    "LoadedScenario",
    "Scenario",
    "dump_entry",
    "dump_scenario",
    "json_schema",
    "load_scenario",
]
