"""``cprsim calibrate``: a scenario from the logs of jobs that have run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cprsim.cli.log_options import Logs, PageFile, SavesEvery, Seed, StateNodes, TimeUnit
from cprsim.cli.options import AsJson, Bootstrap, settled
from cprsim.cli.pulse import pulse
from cprsim.cli.saying import say, show, write_document
from cprsim.errors import ParameterError


def calibrate(
    logs: Logs,
    nodes: StateNodes = 8,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", metavar="FILE", help="Write the scenario to a new file.", callback=settled
        ),
    ] = None,
    bootstrap: Bootstrap = 0,
    page: PageFile = None,
    time_unit: TimeUnit = None,
    saves_every: SavesEvery = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Make a scenario of the logs of jobs, with the origin of each number.

    Then the scenario is held to the logs: the earlier half of all hours predicts the later one.
    """
    from cprsim.backtesting.calibrating import calibrate_logs
    from cprsim.files import write_over
    from cprsim.history.reading import read_logs
    from cprsim.present.calibration import (
        calibration_as_json,
        calibration_blocks,
        document_of_calibration,
    )

    if save is not None and save.exists():
        raise ParameterError(f"--save {save}: is there already; name a new file")
    pulse.doing("reading the logs")
    events = read_logs(logs, time_unit)
    pulse.doing("fitting")
    made = calibrate_logs(
        events,
        saves_every=saves_every,
        n_nodes=nodes,
        n_bootstrap=bootstrap,
        seed=seed,
    )
    if save is not None:
        write_over(save, made.found.text)
    pages = [] if page is None else [write_document(document_of_calibration(made), page)]
    show(
        lambda: calibration_as_json(made), lambda: calibration_blocks(made), as_json=as_json,
        files=pages,
    )  # fmt: skip
    if save is not None and not as_json:
        say(save)
