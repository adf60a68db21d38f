"""``cprsim.backtest``: the failures of jobs that have run, under other recovery systems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from cprsim.api import public
from cprsim.api.answer import Answer, table_of
from cprsim.api.ledger import read_named
from cprsim.api.scenarios import Overrides, override_texts
from cprsim.backtesting.replaying import (
    N_DRAWS,
    N_NODES,
    Backtest,
    BacktestedLogs,
    Replayed,
    backtest_logs,
)
from cprsim.making.options import DRAWS, SEED, STATE_NODES
from cprsim.present.backtest import advice_words, document_of_backtest
from cprsim.present.document import Document
from cprsim.records import Estimate
from cprsim.results.words import count

if TYPE_CHECKING:
    import pandas as pd


class BacktestedJobs(Answer):
    """Jobs under other systems, those first where most could be saved."""

    def __init__(self, made: BacktestedLogs) -> None:
        self._made = made

    @property
    def name(self) -> str:
        return count(len(self._made.found), "job")

    @property
    def table(self) -> pd.DataFrame:
        """A row per job and system: job, system, interval_h, finished, overhead_h, saved_h, ...

        `overhead_h` and `saved_h` have the ends of their 95 % intervals beside them, `_low` and
        `_high`; `pls` and `auc_loss` are means, `auc_loss` NaN where no staleness curve belongs to
        the job.
        """
        return table_of([_row(job, one) for job in self._made.found for one in job.systems])

    @property
    def left_out(self) -> tuple[str, ...]:
        """What was left out of the logs, and which jobs, in sentences."""
        return self._made.left_out

    @property
    def recommended(self) -> str:
        """The system that costs least over all jobs."""
        return self._made.advised.system

    @property
    def advice(self) -> str:
        """What to run, what it saves, and what would reverse that."""
        return advice_words(self._made.advised)

    def _document(self) -> Document:
        return document_of_backtest(self._made)


def _row(job: Backtest, one: Replayed) -> dict[str, object]:
    return {
        "job": job.job,
        "system": one.system,
        "interval_h": one.interval_h,
        "finished": one.finished,
        **_with_ends("overhead_h", one, Estimate.of_draws(one.overhead_h)),
        **_with_ends("saved_h", one, Estimate.of_draws(job.saved_h(one.system))),
        "pls": float(one.pls.mean()),
        "auc_loss": float(one.auc_loss.mean()),
    }


def _with_ends(name: str, one: Replayed, of: Estimate) -> dict[str, float]:
    mean, low, high = of.triple if one.finished else [float("nan")] * 3
    return {name: mean, f"{name}_low": low, f"{name}_high": high}


@public
def backtest(
    *logs: str | Path,
    recovery: str | Sequence[str],
    nodes: Annotated[int, Field(**STATE_NODES)] = N_NODES,
    overrides: Overrides = (),
    draws: Annotated[int, Field(**DRAWS)] = N_DRAWS,
    time_unit: str | None = None,
    saves_every: str | None = None,
    seed: Annotated[int, Field(**SEED)] = 0,
) -> BacktestedJobs:
    """Replay the failures of jobs under other systems, as ``cprsim backtest`` does.

    Parameters
    ----------
    logs : event logs (docs/events.md), output of torchrun, CSVs of attempts, or folders of them
    recovery : strategies or systems to try, such as ``"full,gemini"`` or
        ``"{strategy: full, interval: 30 min}"``; one or several such texts
    nodes : that hold the state
    overrides : of the scenario that each job becomes: what a system needs, prices, a staleness
        curve (`accuracy.curve`)
    draws : of what the logs do not say
    time_unit : of CSVs whose times are numbers
    saves_every : work between the saves of the jobs, such as ``"30 min"``, where their logs do not
        tell it
    seed : of the draws

    Raises
    ------
    TraceError : a log can't be read: file, line, value
    ParameterError : no job can be replayed, or not under one of the systems
    """
    made = backtest_logs(
        read_named(logs, time_unit),
        [recovery] if isinstance(recovery, str) else recovery,
        saves_every=saves_every,
        n_nodes=nodes,
        overrides=override_texts(overrides),
        n_draws=draws,
        seed=seed,
    )
    return BacktestedJobs(made)
