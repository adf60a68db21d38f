"""``backtest``: the failures of jobs that have run, under other recovery systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from annotated_types import Ge, Le

from cprsim.commands import command, options
from cprsim.commands.backtest.answer import answer_of_backtest
from cprsim.commands.backtest.replaying import backtests
from cprsim.commands.ledger import read_named, saving_every
from cprsim.errors import watch
from cprsim.logs.jobs.ledger import ledgers
from cprsim.pages.answer import Answer


@command(
    "cprsim backtest attempts.csv --recovery none --saves-every '30 min' --set costs.save='20 s'"
)
def backtest(
    *logs: options.Logs,
    recovery: Annotated[
        str | Sequence[str], options.CliOption("--recovery", "ENTRY", many=True, complete="system")
    ],
    nodes: options.StateNodes = 8,
    overrides: options.Overrides = (),
    draws: Annotated[int, Ge(2), Le(400)] = 200,
    time_unit: options.TimeUnit | None = None,
    saves_every: options.SavesEvery = None,
    seed: options.DrawsSeed = 0,
) -> Answer:
    r"""Replay the failures of jobs under other recovery systems.

    The system that ran is replayed too. Set with --set: prices, and the inputs of a system that
    the logs lack (cluster.link, cluster.shard_size or cluster.state, storage.bandwidth).

    Parameters
    ----------
    *logs : str or Path
        Event logs (docs/events.md), output of torchrun, CSVs of attempts, or folders of them.
    recovery : str or sequence of str
        A strategy or system to try, such as gemini, 'full,gemini' or '{strategy: full, interval:
        30 min}'; may be repeated.
    nodes : int, default 8
        Nodes that hold the state of the job.
    overrides : mapping or sequence of str, optional
        Overrides of the scenario that is made of each job.
    draws : int, default 200
        Draws of values missing from the logs.
    time_unit : str, optional
        Unit of times that are numbers, in CSVs of attempts: ms, s, min, h, d.
    saves_every : str, optional
        Work between the saves of the jobs, such as '30 min', where their logs lack it.
    seed : int, default 0
        Seed of the draws.

    Returns
    -------
    Answer
        ``frames["systems"]``: a row per job and system; ``["jobs"]``: a row per job, from
        its logs; ``["bills"]`` of all jobs, where there are prices.

    Raises
    ------
    TraceError
        A log can't be read: file, line, value.
    ParameterError
        No job can be replayed, or not under one of the systems.

    Examples
    --------
    >>> _ = Path("attempts.csv").write_text(
    ...     "job,start,end,last_step,last_saved_step,step_seconds,node\n"
    ...     "clicks,2026-03-02T08:00Z,2026-03-02T14:10Z,2180,2000,10,n3\n"
    ...     "clicks,2026-03-02T14:25Z,2026-03-02T22:50Z,5000,5000,10,\n"
    ... )
    >>> hourly = "{strategy: full, interval: 1 h}"
    >>> answer = cprsim.backtest("attempts.csv", recovery=[hourly], saves_every="30 min",
    ...     overrides={"costs.save": "20 s"})
    >>> answer.frames["systems"]["system"].tolist()
    ['as it ran', 'full']
    """
    events = read_named(logs, time_unit)
    watch.doing("replaying the failures")
    jobs = saving_every(ledgers(events, seed=seed), saves_every)
    replayed, left_out = backtests(
        jobs,
        [recovery] if isinstance(recovery, str) else recovery,
        n_nodes=nodes,
        overrides=options.assignments(overrides),
        n_draws=draws,
        seed=seed,
    )
    answer = answer_of_backtest(replayed, left_out, list(map(str, events.notes)))
    return answer.beginning_with(events.much_left_out)
