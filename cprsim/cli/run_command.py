"""``cprsim run``: a scenario file in, what failures cost out."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cprsim.cli.options import AsJson, OutFolder, Overrides, ScenarioFile
from cprsim.cli.saying import say_json

if TYPE_CHECKING:
    from cprsim.results import Result

RESULTS = Path("results")


def run(
    scenario: ScenarioFile,
    overrides: Overrides = [],  # noqa: B006
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random numbers, instead of the scenario's.")
    ] = None,
    replications: Annotated[
        int | None, typer.Option(help="Number of replications, instead of the scenario's.")
    ] = None,
    replay: Annotated[
        int | None,
        typer.Option(metavar="N", help="Run and draw replication N alone.", show_default=False),
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
    from cprsim.assemble import assemble

    experiment = assemble(loaded)  # what is wrong with the input is said before all else loads
    from cprsim.cli import running
    from cprsim.cli.finished import found_again
    from cprsim.results import load_result

    identity = running.identity_of(loaded, replay)
    found = found_again(out / identity.folder_name, load_result)
    result = found or running.simulate_into(out, identity, loaded, experiment, started)
    _print(result, as_json=as_json, found_again=found is not None)


def shortcuts(seed: int | None, replications: int | None) -> list[str]:
    """What ``--seed`` and ``--replications`` mean as overrides of the scenario."""
    said = []
    if seed is not None:
        said.append(f"simulation.seed={seed}")
    if replications is not None:
        said.append(f"simulation.replications={replications}")
    return said


def _print(result: Result, *, as_json: bool, found_again: bool) -> None:
    if as_json:
        from cprsim.report.as_json import run_as_json

        say_json(run_as_json(result))
        return
    from cprsim.cli.terminal import Terminal
    from cprsim.report.run_report import print_run

    print_run(Terminal(), result, found_again=found_again)
