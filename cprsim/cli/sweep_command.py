"""``cprsim sweep``: a scenario at every combination of some values."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
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


class Mode(StrEnum):
    """How the axes go together."""

    grid = "grid"
    one_at_a_time = "one-at-a-time"


def sweep(
    scenario: ScenarioFile,
    over: Annotated[
        list[str],
        typer.Option(
            "--over",
            metavar="KEY=VALUES",
            help="Vary one value, e.g. costs.save='30 s:10 min:log12', cluster.emb_ps=4:64:lin5 or "
            "failures.mtbf='14 h,28 h'; may be repeated. Default: the scenario's section sweep.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    mode: Annotated[
        Mode | None,
        typer.Option(
            help="grid: every combination; one-at-a-time: each alone. Default: the scenario's, or "
            "grid.",
            show_default=False,
        ),
    ] = None,
    overrides: Overrides = [],  # noqa: B006
    seed: SimulationSeed = None,
    replications: Annotated[
        int | None,
        typer.Option(help="Replications of each point, instead of the scenario's number."),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Replications until the 95 % interval of every mean overhead is so narrow: 0.5%.",
        ),
    ] = None,
    workers: NumberOfWorkers = None,
    backend: BackendName = Backend.local,
    address: Address = None,
    as_json: AsJson = False,
    out: OutFolder = RESULTS,
) -> None:
    """Simulate a scenario at every combination of some values, for every strategy.

    All points meet the same failures where their failures are the same. Finished points are kept as
    they come: the same command goes on where it was stopped, a longer axis computes its new points.
    """
    started = datetime.now(UTC)
    from cprsim.errors import ParameterError
    from cprsim.scenario import load_scenario
    from cprsim.workers import Workers

    by = Workers(workers, backend.value, address)
    if replications is not None and precision is not None:
        raise ParameterError("--replications and --precision: give one of them")
    all_overrides = [*overrides, *shortcuts(seed, replications)]
    all_overrides += [f"simulation.precision={precision}"] if precision is not None else []
    all_overrides += [f"sweep.mode={mode.value}"] if mode is not None else []
    loaded = load_scenario(scenario, all_overrides, over)
    from cprsim.cli.finished import target_of
    from cprsim.cli.unforeseen import telling_what_is_kept
    from cprsim.cli.watching import ON_STDERR
    from cprsim.making.sweeping import sweep_into
    from cprsim.present.sweep import sweep_as_json, sweep_blocks

    target = target_of(out, loaded, started, "sweep")
    with telling_what_is_kept() as kept:
        result, n_computed = sweep_into(target, loaded, by, ON_STDERR, keeps=kept.hold)
    show(
        lambda: sweep_as_json(result, n_computed),
        lambda: sweep_blocks(result, n_computed),
        as_json=as_json,
    )
