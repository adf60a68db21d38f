"""``ledger``: where the hours of jobs that have run went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cprsim.commands import command
from cprsim.commands.ledger.answer import answer_of_ledger
from cprsim.commands.ledger.slurm import answer_of_slurm
from cprsim.commands.options import DrawsSeed, Logs, TimeUnit, positive
from cprsim.errors import ParameterError, watch
from cprsim.files.units import TIME
from cprsim.logs.jobs.ledger import JobLedger, ledgers, notes_on_ends, without_stops
from cprsim.logs.jobs.reading import Events, read_logs
from cprsim.logs.jobs.slurm_jobs import read_attempts, tables_of
from cprsim.pages.answer import Answer


@command("cprsim ledger attempts.csv")
def ledger(
    *logs: Logs,
    time_unit: TimeUnit | None = None,
    node_hour: str | None = None,
    seed: DrawsSeed = 0,
) -> Answer:
    r"""Book the hours of jobs from their logs.

    Hours are split into useful work, saves, and the costs of failures.
    Values missing from the logs are drawn from those of other incidents; 95 % intervals show the
    uncertainty of the draws, and inferred values are counted.

    Parameters
    ----------
    *logs : str or Path
        Event logs (docs/events.md), output of torchrun, CSVs of attempts, or folders of them; or
        tables of ``sacct``, whose answer is node-hours.
    time_unit : str, optional
        Unit of times that are numbers, in CSVs of attempts.
    node_hour : str, optional
        Price of a node-hour, for a table of Slurm's jobs, e.g. ``2 USD``.
    seed : int, default 0
        Seed of the draws of values missing from the logs.

    Returns
    -------
    Answer
        ``frames["hours"]`` (part, hours [h] of all jobs), ``["jobs"]``, ``["incidents"]`` (the
        costliest first). Of ``sacct``: ``["months"]``, ``["quarters"]``, ``["nodes"]`` (the worst
        first), ``["states"]``.

    Raises
    ------
    TraceError
        A log can't be read: file, line, value.

    Examples
    --------
    >>> _ = Path("attempts.csv").write_text(
    ...     "job,start,end,last_step,last_saved_step,step_seconds,node\n"
    ...     "clicks,2026-03-02T08:00Z,2026-03-02T14:10Z,2180,2000,10,n3\n"
    ...     "clicks,2026-03-02T14:25Z,2026-03-02T22:50Z,5000,5000,10,\n"
    ... )
    >>> hours = cprsim.ledger("attempts.csv").frames["hours"].set_index("part")["hours"]
    >>> f"useful {hours['useful']:.1f} h, lost {hours['lost']:.1f} h"
    'useful 13.9 h, lost 0.5 h'
    """
    if tables := tables_of([Path(log) for log in logs]):
        watch.doing("reading the logs")
        return answer_of_slurm(*read_attempts(tables), node_hour)
    if node_hour is not None:
        message = "these logs do not say on how many nodes they ran"
        raise ParameterError(message, option="--node-hour")
    events = read_named(logs, time_unit)
    watch.doing("booking the hours")
    jobs = ledgers(events, seed=seed)
    answer = answer_of_ledger(jobs, [*map(str, events.notes), *notes_on_ends(jobs)])
    return answer.beginning_with(events.much_left_out)


def read_named(logs: Sequence[str | Path], time_unit: str | None) -> Events:
    """The events of the logs that a function was given, at least one."""
    if not logs:
        raise ParameterError("logs: name at least one")
    watch.doing("reading the logs")
    return read_logs([Path(log) for log in logs], time_unit)


def saving_every(jobs: Sequence[JobLedger], every: str | None) -> tuple[JobLedger, ...]:
    """Jobs without planned stops, whose saves are so far apart in work; None: as the logs say."""
    jobs = tuple(map(without_stops, jobs))
    if every is None:
        return jobs
    every_s = 3600.0 * positive("--saves-every", every, TIME.parse)
    return tuple(replace(job, save_every=every_s / job.step_s) for job in jobs)
