"""``calibrate``: a scenario from the logs of jobs, compared with their later half."""

from __future__ import annotations

from pathlib import Path

from cprsim.commands import command, options
from cprsim.commands.calibrate.answer import answer_of_calibrate
from cprsim.commands.calibrate.calibrating import calibrate as calibrated
from cprsim.commands.calibrate.calibrating import predict
from cprsim.commands.ledger import read_named, saving_every
from cprsim.errors import ParameterError, watch
from cprsim.files import require_new, write_new
from cprsim.logs.jobs.ledger import ledgers, notes_on_ends
from cprsim.pages.answer import Answer


@command("cprsim calibrate events.jsonl --save mine.yaml")
def calibrate(
    *logs: options.Logs,
    nodes: options.StateNodes = 8,
    save: options.FileName = None,
    bootstrap: options.Bootstrap = 0,
    time_unit: options.TimeUnit | None = None,
    saves_every: options.SavesEvery = None,
    seed: options.DrawsSeed = 0,
) -> Answer:
    """Make a scenario from logs of jobs.

    Each number has its origin. The scenario is compared with the logs: the earlier half of all
    hours predicts the later one.

    Parameters
    ----------
    *logs : str or Path
        Event logs (docs/events.md), output of torchrun, CSVs of attempts, or folders of them.
    nodes : int, default 8
        Nodes that hold the state of the job.
    save : str or Path, optional
        Write the scenario to this file, a new one.
    bootstrap : int, default 0
        Samples behind each p-value of a fit; 0 for none.
    time_unit : str, optional
        Unit of times that are numbers, in CSVs of attempts: ms, s, min, h, d.
    saves_every : str, optional
        Work between the saves of the jobs, such as '30 min', where their logs don't tell.
    seed : int, default 0
        Seed of all draws.

    Returns
    -------
    Answer
        ``values["text"]``: the scenario as YAML, for `load` and `run`. ``frames["origins"]`` of
        its numbers; ``["prediction"]``: ETTR of the later half, predicted (90 %) and observed.

    Raises
    ------
    TraceError
        A log can't be read: file, line, value.
    ParameterError
        Too few failures to make a scenario of.
    """
    if save is not None:
        require_new(Path(save))
    events = read_named(logs, time_unit)
    watch.doing("fitting")
    jobs = saving_every(ledgers(events, seed=seed), saves_every)
    calibration = calibrated(jobs, n_nodes=nodes, n_bootstrap=bootstrap, seed=seed)
    try:
        predicted, why_not = predict(jobs, n_nodes=nodes, seed=seed), ""
    except ParameterError as error:
        predicted, why_not = None, str(error)
    if save is not None:
        write_new(Path(save), str(calibration.scenario))
    notes = [*map(str, events.notes), *calibration.notes, *notes_on_ends(jobs)]
    files = [] if save is None else [Path(save)]
    answer = answer_of_calibrate(calibration, predicted, why_not, notes, files)
    return answer.beginning_with(events.much_left_out)
