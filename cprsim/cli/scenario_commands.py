"""``cprsim validate`` and ``cprsim schema``: about scenarios, without simulating."""

from __future__ import annotations

import typer

from cprsim.cli.options import Overrides, ScenarioFile


def validate(scenario: ScenarioFile, overrides: Overrides = []) -> None:  # noqa: B006
    """Check a scenario and say everything that is wrong with it."""
    from cprsim.scenario import load_scenario

    loaded = load_scenario(scenario, overrides)
    from cprsim.assemble import assemble  # slow to load: what is wrong is said before

    # finds what only building the parts shows, in a failure trace for example
    experiment = assemble(loaded)
    from cprsim.results.warnings import warnings

    strategies = ", ".join(entry.name for entry in loaded.scenario.recovery)
    typer.echo(f"{scenario}: ok ({loaded.scenario.name}: {strategies})")
    for warning in warnings(experiment):
        typer.echo(f"{scenario}: warning: {warning}")


def schema() -> None:
    """Print the JSON Schema of scenarios: every key with its meaning and unit, for editors."""
    import json

    from cprsim.scenario import json_schema

    typer.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
