"""``cprsim run``: a scenario file in, what failures cost out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from cprsim.cli.options import (
    RESULTS,
    AsJson,
    OutFolder,
    Overrides,
    ScenarioFile,
    SimulationSeed,
)
from cprsim.cli.saying import show
from cprsim.making.options import replay_number, require_replication, shortcuts

if TYPE_CHECKING:
    from cprsim.results import Result


def run(
    scenario: ScenarioFile,
    overrides: Overrides = [],  # noqa: B006
    seed: SimulationSeed = None,
    replications: Annotated[
        int | None, typer.Option(help="Number of replications, instead of the scenario's.")
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(
            metavar="N|median|p95|worst",
            help="Run and draw one replication alone: by number, or by its overhead among all.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    out: OutFolder = RESULTS,
) -> None:
    """Simulate a job under several recovery strategies and show what failures cost.

    The results go into a folder of their own under DIR; the same command finds it again.
    """
    started = datetime.now(UTC)
    from cprsim.scenario import load_scenario

    loaded = load_scenario(scenario, [*overrides, *shortcuts(seed, replications)])
    from cprsim.experiments.assemble import assemble

    experiment = assemble(loaded)  # what is wrong with the input is said before all else loads
    from cprsim.cli.finished import target_of
    from cprsim.cli.watching import ON_STDERR
    from cprsim.making.running import simulate_into
    from cprsim.present.run import run_as_json, run_blocks

    def made(number: int | None) -> tuple[Result, bool]:
        """The result of a whole run or of one replication, and whether it was there already."""
        require_replication(number)
        target = target_of(out, loaded, started, replay=number)
        return simulate_into(target, loaded, experiment, ON_STDERR)

    result, there = made(replay_number(replay, lambda: made(None)[0]))
    show(
        lambda: run_as_json(result),
        lambda: run_blocks(result, found_again=there),
        as_json=as_json,
    )
