"""``cprsim train``: the failures of one simulated replication, on a real model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cprsim.cli.options import (
    RESULTS,
    AllowCode,
    AsJson,
    OutFolder,
    Overrides,
    ScenarioFile,
)
from cprsim.cli.pulse import pulse
from cprsim.cli.saying import show
from cprsim.errors import ScenarioError
from cprsim.making.options import require_replication


def train(
    scenario: ScenarioFile,
    overrides: Overrides = [],  # noqa: B006
    replay: Annotated[
        int, typer.Option(metavar="N", help="The replication whose failures strike.")
    ] = 0,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Leave bad lines of the click log out, and count them."),
    ] = False,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
    out: OutFolder = RESULTS,
) -> None:
    """Train a small model with the failures of one replication, and show its accuracy.

    It is trained once without failures and once per strategy: it saves where the simulated job
    saved and loses the shards that it lost. The scenario's section `kernel` says what is trained,
    its section `sync` on how many replicas. A trainer of your own takes its place where
    `kernel.trainer` names one; it notes no loss on its way, so that there is no figure.
    """
    from cprsim.scenario import load_scenario

    skipping = ["kernel.clicks.skip_bad=true"] if skip_bad else []
    loaded = load_scenario(scenario, [*overrides, *skipping])
    from cprsim.measuring.own_code import require_allowed

    require_allowed(loaded, allow_code, Path.cwd())
    from cprsim.cli.terminal import training
    from cprsim.experiments.accuracy import built_in, measure
    from cprsim.experiments.assemble import assemble
    from cprsim.experiments.proxy_model import proxy_model
    from cprsim.experiments.train_in_step import team_of
    from cprsim.measuring.training import own_runs
    from cprsim.plots.loss import loss_figure
    from cprsim.plots.save import save_figure
    from cprsim.present.train import accuracy_as_json, accuracy_blocks
    from cprsim.results.folder import require_writable

    require_replication(replay)
    own = loaded.scenario.kernel is not None and loaded.scenario.kernel.trainer is not None
    if own and loaded.scenario.sync is not None:
        message = "trains replicas of the built-in model; remove it, or `kernel.trainer`"
        raise ScenarioError.at(loaded.place("sync"), message, "sync")
    if not own:
        require_writable(out)
    experiment = assemble(loaded)
    figures: Sequence[Path] = ()
    with training() as on_progress:
        if own:
            measured = measure(experiment, replay, *own_runs(loaded, experiment, on_progress))
        else:
            what = proxy_model(loaded)
            team = None if loaded.scenario.sync is None else team_of(loaded, what)
            runs = built_in(experiment, what, on_progress, team)
            measured = measure(experiment, replay, what, runs, team)
    if not own:
        pulse.doing("drawing the figure")
        out.mkdir(parents=True, exist_ok=True)
        stem = out / f"{loaded.scenario.name}-loss-{replay}"
        figures = save_figure(loss_figure(measured, loaded.scenario.name), stem)
    show(
        lambda: accuracy_as_json(measured) | {"figures": [str(path) for path in figures]},
        lambda: accuracy_blocks(measured, experiment.useful_h),
        as_json=as_json,
        files=figures,
    )
