"""``cprsim compare-systems``: which recovery system for a job."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from cprsim.cli.options import (
    RESULTS,
    AsJson,
    OutFolder,
    Overrides,
    ScenarioFile,
    SimulationSeed,
)
from cprsim.cli.pulse import pulse
from cprsim.cli.saying import show
from cprsim.making.options import shortcuts


def compare_systems(
    scenario: ScenarioFile,
    overrides: Overrides = [],  # noqa: B006
    fixed: Annotated[
        bool,
        typer.Option(
            "--fixed", help="Keep each system at the scenario's interval, or at its default."
        ),
    ] = False,
    only: Annotated[
        list[str],
        typer.Option(
            "--only",
            metavar="NAME",
            help="Compare this one and others so named alone; may be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    available: Annotated[
        bool, typer.Option("--available", help="Compare what a job can run today alone.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show all systems, not the cheapest alone.")
    ] = False,
    seed: SimulationSeed = None,
    replications: Annotated[
        int | None,
        typer.Option(
            help="Replications of each system; default as many as tell intervals apart.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    out: OutFolder = RESULTS,
) -> None:
    """Compare all recovery systems that the scenario's job can run, each at its best interval.

    Those that the scenario lists take the options given there, all others their defaults. All meet
    the same failures, and each is compared with the cheapest of those that lose no accuracy.
    """
    started = datetime.now(UTC)
    all_overrides = [*overrides, *shortcuts(seed, None)]
    from cprsim.cli.finished import target_of
    from cprsim.cli.watching import ON_STDERR
    from cprsim.making import comparing_systems
    from cprsim.present.systems import comparison_as_json, systems_blocks
    from cprsim.scenario import load_scenario
    from cprsim.systems_compared.lineup import Rules

    rules = Rules(fixed, tuple(only), available)
    asked = comparing_systems.asked(
        lambda more: load_scenario(scenario, [*all_overrides, *more]), replications, rules
    )
    target = target_of(out, asked.loaded, started, rules.folder)
    comparison, there = comparing_systems.compare_into(target, asked, ON_STDERR)
    show(
        lambda: comparison_as_json(comparison),
        lambda: systems_blocks(
            comparison, found_again=there, everything=everything, verbose=pulse.verbose
        ),
        as_json=as_json,
    )
