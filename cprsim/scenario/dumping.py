"""From a scenario back to YAML text that loads to an equal scenario, and the schema for editors."""

from __future__ import annotations

from math import inf
from typing import Any

import yaml

from cprsim.scenario.recovery import Recovery
from cprsim.scenario.schema import Scenario
from cprsim.scenario.yaml_text import scalar


class _Dumper(yaml.SafeDumper):
    """Quotes the texts that our reader would take for numbers or truth values."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if scalar(text) == text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def dump_scenario(scenario: Scenario) -> str:
    """The resolved scenario as YAML: every key with its value, defaults spelled out, with units."""
    plain = scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def dump_entry(entry: Recovery, options: dict[str, Any]) -> str:
    """An entry of `recovery` with other options, as one line of YAML."""
    plain = entry.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"options"})
    if plain["name"] == plain["strategy"]:
        del plain["name"]
    if options:
        plain["options"] = options
    line: str = yaml.dump(
        plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=True,
        width=inf,
    )  # fmt: skip
    return line.strip()


def json_schema() -> dict[str, Any]:
    """JSON Schema of a scenario: meaning and unit of every key."""
    schema = Scenario.model_json_schema(mode="validation")
    schema["required"] = [key for key in schema["required"] if key != "name"]  # by the file's name
    schema["$defs"]["Recovery"]["required"] = ["strategy"]  # a name by default too
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
