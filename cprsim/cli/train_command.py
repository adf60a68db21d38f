"""``cprsim train``: the failures of one simulated replication, on a real model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cprsim.cli.options import (
    AllowCode,
    AsJson,
    OutFolder,
    Overrides,
    ScenarioFile,
)
from cprsim.cli.pulse import pulse
from cprsim.cli.saying import say, say_json
from cprsim.making.options import require_replication

FIGURES = Path("results")


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
    out: OutFolder = FIGURES,
) -> None:
    """Train a small model with the failures of one replication, and show its accuracy.

    It is trained once without failures and once per strategy: it saves where the simulated job
    saved and loses the shards that it lost. The scenario's section `kernel` says what is trained,
    its section `sync` on how many replicas.
    """
    from cprsim.scenario import load_scenario

    skipping = ["kernel.clicks.skip_bad=true"] if skip_bad else []
    loaded = load_scenario(scenario, [*overrides, *skipping])
    from cprsim.measuring.own_code import require_allowed

    require_allowed(loaded, allow_code, Path.cwd())
    from cprsim.cli.progress import training
    from cprsim.experiments.accuracy import measure
    from cprsim.experiments.assemble import assemble
    from cprsim.experiments.proxy_model import proxy_model
    from cprsim.experiments.train_in_step import team_of
    from cprsim.plots import loss_figure, save_figure
    from cprsim.present.train import accuracy_as_json, print_accuracy
    from cprsim.results.publish import require_writable

    require_replication(replay)
    require_writable(out)
    experiment = assemble(loaded)
    what = proxy_model(loaded)
    with training() as on_progress:
        team = None if loaded.scenario.sync is None else team_of(loaded, what)
        measured = measure(experiment, what, replay, on_progress, team)
    pulse.doing("drawing the figure")
    out.mkdir(parents=True, exist_ok=True)
    stem = out / f"{loaded.scenario.name}-loss-{replay}"
    figures = save_figure(loss_figure(measured, loaded.scenario.name), stem)
    if as_json:
        shown = accuracy_as_json(measured) | {"figures": [str(path) for path in figures]}
        say_json(shown)
        return
    from cprsim.cli.terminal import Terminal

    print_accuracy(Terminal(), measured, experiment.useful_h)
    for path in figures:
        say(path)
