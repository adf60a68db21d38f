"""``cprsim.ledger``: where the hours of jobs that have run went."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from cprsim.api import public
from cprsim.api.answer import Answer, table_of
from cprsim.errors import ParameterError
from cprsim.history.ledger import JobLedger, ledgers
from cprsim.history.reading import read_logs
from cprsim.history.summing import of_all, worst
from cprsim.making.options import SEED
from cprsim.present.document import Document
from cprsim.present.ledger import document_of_ledger, inferred_lines
from cprsim.results.words import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from cprsim.history.table import Events
    from cprsim.records import Estimate


class Ledger(Answer):
    """The hours of jobs, with 95 % intervals of what their logs do not say."""

    def __init__(self, jobs: tuple[JobLedger, ...], notes: tuple[str, ...]) -> None:
        self._jobs, self._notes = jobs, notes

    @property
    def name(self) -> str:
        return count(len(self._jobs), "job")

    @property
    def table(self) -> pd.DataFrame:
        """A row per job and part of its hours: job, part, mean, low, high [h].

        Parts: `useful`, then `lost`, `save`, `load` and so on, as in simulation.
        """
        return _hours(
            (job.job, {"useful": job.useful_h, **job.parts}, ("job",)) for job in self._jobs
        )

    @property
    def hours(self) -> pd.DataFrame:
        """The hours of all jobs together: part, mean, low, high [h]."""
        return _hours([("", of_all(self._jobs).hours, ())])

    @property
    def jobs(self) -> pd.DataFrame:
        """A row per job: job, wall_h, ettr, ettr_low, ettr_high, failures, saves, ended."""
        return table_of([_job(job) for job in self._jobs])

    @property
    def incidents(self) -> pd.DataFrame:
        """A row per incident, the costliest first: job, at_h, hours, low, high, node, cause."""
        n = sum(len(job.incidents) for job in self._jobs)
        return table_of(
            [
                {"job": one.job, "at_h": one.at_h, "hours": one.hours.mean, "low": one.hours.low,
                 "high": one.hours.high, "failures": one.n_failures, "node": one.node,
                 "cause": one.cause}
                for one in worst(self._jobs, n)
            ]
        )  # fmt: skip

    @property
    def inferred(self) -> tuple[str, ...]:
        """What was left out of the logs, and what was inferred, in sentences."""
        return tuple(inferred_lines(self._jobs, self._notes))

    def _document(self) -> Document:
        return document_of_ledger(self._jobs, self._notes)


def _hours(
    asked: Iterable[tuple[str, dict[str, Estimate], tuple[str, ...]]],
) -> pd.DataFrame:
    return table_of(
        [
            {**dict.fromkeys(columns, name), "part": part, "mean": one.mean, "low": one.low,
             "high": one.high}
            for name, parts, columns in asked
            for part, one in parts.items()
        ]
    )  # fmt: skip


def _job(job: JobLedger) -> dict[str, object]:
    ettr = job.ettr
    return {
        "job": job.job,
        "wall_h": job.wall_h,
        "ettr": ettr.mean,
        "ettr_low": ettr.low,
        "ettr_high": ettr.high,
        "failures": job.n_failures,
        "saves": job.n_saves,
        "ended": job.ended,
    }


@public
def ledger(
    *logs: str | Path, time_unit: str | None = None, seed: Annotated[int, Field(**SEED)] = 0
) -> Ledger:
    """Book the hours of jobs from their logs, as ``cprsim ledger`` does.

    Parameters
    ----------
    logs : event logs (docs/events.md), output of torchrun, CSVs of attempts, or folders of them
    time_unit : of CSVs whose times are numbers
    seed : of the draws of what the logs do not say

    Raises
    ------
    TraceError : a log can't be read: file, line, value
    """
    events = read_named("ledger", logs, time_unit)
    return Ledger(ledgers(events, seed=seed), tuple(events.notes))


def read_named(function: str, logs: Sequence[str | Path], time_unit: str | None) -> Events:
    """The events of the logs that a function was given, at least one."""
    if not logs:
        raise ParameterError(f"{function}: name at least one log")
    return read_logs([Path(log) for log in logs], time_unit)
