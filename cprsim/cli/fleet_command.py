"""``cprsim fleet``: many jobs on one cluster, in hours and money."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from cprsim.cli.options import (
    RESULTS,
    Address,
    AsJson,
    Backend,
    BackendName,
    NumberOfWorkers,
    OutFolder,
    Overrides,
    ScenarioFile,
    SimulationSeed,
)
from cprsim.cli.saying import show
from cprsim.making.options import shortcuts


def fleet(
    scenario: ScenarioFile,
    over: Annotated[
        list[str],
        typer.Option(
            "--over",
            metavar="KEY=VALUES",
            help="Options to choose from, e.g. spares=0:64:lin9 or "
            "recovery.full.interval='1 h,2 h,4 h'; may be repeated. Short for fleet.KEY: spares, "
            "nodes, storage.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    overrides: Overrides = [],  # noqa: B006
    seed: SimulationSeed = None,
    histories: Annotated[
        int | None, typer.Option(help="Histories of the fleet, instead of the scenario's number.")
    ] = None,
    workers: NumberOfWorkers = None,
    backend: BackendName = Backend.local,
    address: Address = None,
    as_json: AsJson = False,
    out: OutFolder = RESULTS,
) -> None:
    """Simulate many jobs on one cluster: what failures cost, how many spares, which strategy.

    The scenario says what a typical job is, its section `fleet` how many there are, how they
    differ and what they share. Every option meets the same failures. It ends with the cheapest
    option, what that saves per month, and which unknown input would reverse it. Finished histories
    are kept: the same command goes on where it was stopped, further options run alone.
    """
    started = datetime.now(UTC)
    from cprsim.scenario import load_scenario
    from cprsim.workers import Workers

    by = Workers(workers, backend.value, address)
    all_overrides = [*overrides, *shortcuts(seed, None)]
    all_overrides += [] if histories is None else [f"fleet.histories={histories}"]
    loaded = load_scenario(scenario, all_overrides)
    from cprsim.cli.finished import target_of
    from cprsim.cli.unforeseen import telling_what_is_kept
    from cprsim.cli.watching import ON_STDERR
    from cprsim.making.fleeting import fleet_identity, fleet_into, said_axes
    from cprsim.present.fleet import fleet_as_json, fleet_blocks

    axes = said_axes(over)
    target = target_of(out, loaded, started, identity=fleet_identity(loaded, axes))
    with telling_what_is_kept() as kept:
        result, again = fleet_into(target, loaded, axes, by, ON_STDERR, keeps=kept.hold)
    show(
        lambda: fleet_as_json(result),
        lambda: fleet_blocks(result, found_again=again),
        as_json=as_json,
    )
