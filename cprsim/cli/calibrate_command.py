"""``cprsim calibrate``: a scenario from the logs of jobs that have run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cprsim.cli.ledger_command import (
    Logs,
    PageFile,
    SavesEvery,
    Seed,
    StateNodes,
    TimeUnit,
    show_logs,
)
from cprsim.cli.options import AsJson, Bootstrap, settled
from cprsim.cli.saying import say
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
    from cprsim.backtesting.calibrating import calibrate as calibrated
    from cprsim.backtesting.calibrating import predict
    from cprsim.backtesting.facts import saving_every
    from cprsim.history.ledger import ledgers
    from cprsim.history.reading import read_logs
    from cprsim.present.calibration import (
        calibration_as_json,
        calibration_blocks,
        document_of_calibration,
    )
    from cprsim.whole_file import write_over

    if save is not None and save.exists():
        raise ParameterError(f"--save {save}: is there already; name a new file")
    events = read_logs(logs, time_unit)
    jobs = saving_every(ledgers(events, seed=seed), saves_every)
    found = calibrated(jobs, n_nodes=nodes, n_bootstrap=bootstrap, seed=seed)
    try:
        predicted, why_not = predict(jobs, n_nodes=nodes, seed=seed), ""
    except ParameterError as error:
        predicted, why_not = None, str(error)
    if save is not None:
        write_over(save, found.text)
    notes = events.notes
    show_logs(
        page,
        as_json,
        document_of=lambda: document_of_calibration(found, predicted, why_not, notes),
        as_plain=lambda: calibration_as_json(found, predicted, why_not, notes),
        blocks_of=lambda: calibration_blocks(found, predicted, why_not, notes),
    )
    if save is not None and not as_json:
        say(save)
