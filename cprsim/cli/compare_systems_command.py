"""``cprsim compare-systems``: which recovery system for a job."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cprsim.cli import completing
from cprsim.cli.options import (
    RESULTS,
    AsJson,
    NumberOfWorkers,
    OutFolder,
    Overrides,
    ScenarioFile,
    SimulationSeed,
)
from cprsim.cli.pulse import pulse
from cprsim.cli.showing import show
from cprsim.making.options import shortcuts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cprsim.scenario import LoadedScenario


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
            autocompletion=completing.systems,
        ),
    ] = [],  # noqa: B006
    over: Annotated[
        list[str],
        typer.Option(
            "--map",
            metavar="KEY=VALUES",
            help="Say which system is cheapest where, over two inputs: give it twice, e.g. "
            "failures.mtbf=2h:50h:log8 and cluster.state='50 GB:1 TB:log6'.",
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
    workers: NumberOfWorkers = None,
    as_json: AsJson = False,
    out: OutFolder = RESULTS,
) -> None:
    """Compare all recovery systems that the scenario's job can run, each at its best interval.

    Those that the scenario lists take the options given there, all others their defaults. All meet
    the same failures, and each is compared with the cheapest of those that lose no accuracy.
    """
    started = datetime.now(UTC)
    all_overrides = [*overrides, *shortcuts(seed, None)]
    if over:
        _map(
            scenario,
            all_overrides,
            over,
            replications,
            (fixed, only, available),
            workers,
            out,
            started,
            as_json,
        )
        return
    from cprsim.cli.finished import target_of
    from cprsim.cli.watching import ON_STDERR
    from cprsim.making import comparing_systems
    from cprsim.present.systems import comparison_as_json, systems_blocks
    from cprsim.scenario import load_scenario

    rules = comparing_systems.Rules(fixed, tuple(only), available)
    asked = comparing_systems.asked(
        lambda more: load_scenario(scenario, [*all_overrides, *more]), replications, rules
    )
    target = target_of(out, asked.loaded, started, rules.named("systems"))
    comparison, there = comparing_systems.compare_into(target, asked, ON_STDERR)
    show(
        lambda: comparison_as_json(comparison),
        lambda: systems_blocks(
            comparison, found_again=there, everything=everything, verbose=pulse.verbose
        ),
        as_json=as_json,
    )


def _map(
    scenario: Path,
    overrides: list[str],
    over: list[str],
    replications: int | None,
    how: tuple[bool, list[str], bool],
    workers: int | None,
    out: Path,
    started: datetime,
    as_json: bool,
) -> None:
    from cprsim.cli.finished import target_of
    from cprsim.cli.interrupts import telling_what_is_kept
    from cprsim.cli.watching import ON_STDERR
    from cprsim.making import comparing_systems
    from cprsim.present.systems_map import map_as_json, map_blocks
    from cprsim.scenario import load_scenario
    from cprsim.workers import Workers

    def load(more: Sequence[str]) -> LoadedScenario:
        grid = [*overrides, *more, "sweep.mode=grid"]
        return load_scenario(scenario, grid, over, axes_option="--map")

    rules = comparing_systems.Rules(how[0], tuple(how[1]), how[2])
    asked = comparing_systems.map_asked(load, replications, rules)
    target = target_of(out, asked.loaded, started, rules.named("systems-map"))
    with telling_what_is_kept() as kept:
        by = Workers(workers)
        made, there = comparing_systems.map_into(target, asked, by, ON_STDERR, kept.hold)
    show(
        lambda: map_as_json(made),
        lambda: map_blocks(made, found_again=there),
        as_json=as_json,
    )
