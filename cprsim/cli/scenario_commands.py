"""``cprsim validate`` and ``cprsim schema``: about scenarios, without simulating."""

from __future__ import annotations

from cprsim.cli.options import Overrides, ScenarioFile
from cprsim.cli.saying import say, say_json


def validate(scenario: ScenarioFile, overrides: Overrides = []) -> None:  # noqa: B006
    """Check a scenario and say everything that is wrong with it."""
    from cprsim.scenario import load_scenario

    loaded = load_scenario(scenario, overrides)
    from cprsim.assemble import assemble  # slow to load: what is wrong is said before

    # finds what only building the parts shows, in a failure trace for example
    experiment = assemble(loaded)
    from cprsim.results.warnings import warnings

    strategies = ", ".join(entry.name for entry in loaded.scenario.recovery)
    say(f"{scenario}: ok ({loaded.scenario.name}: {strategies})")
    for warning in warnings(experiment):
        say(f"{scenario}: warning: {warning}")


def schema() -> None:
    """Print the JSON Schema of scenarios: every key with its meaning and unit, for editors."""
    from cprsim.scenario import json_schema

    say_json(json_schema())
