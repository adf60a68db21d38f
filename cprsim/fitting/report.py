"""All that is said of a log: its fit, the verdict for a job, and the fragments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cprsim.errors import ParameterError
from cprsim.fitting.causes import ByCause
from cprsim.fitting.fragments import fragment, job_fragment
from cprsim.fitting.trace_fit import FitVerdict, TraceFit, verdict


@dataclass(frozen=True, slots=True)
class FitReport:
    """A fit with what is made of it for the reader."""

    fitted: TraceFit
    n_job_nodes: int
    origin: str
    verdict: FitVerdict
    fragment: str | None
    why_no_fragment: str
    simpler: str | None  # kind job, where `fragment` is none
    by_cause: ByCause | None  # where it was asked for

    @property
    def to_save(self) -> str | None:
        """What a file gets: the fragment of what was asked for."""
        return self.fragment if self.by_cause is None else self.by_cause.fragment


def report_of(
    fitted: TraceFit, origin: str, n_job_nodes: int, by_cause: ByCause | None = None
) -> FitReport:
    """Write the fragments for a job on some of the nodes."""
    written, why_not = _or_reason(lambda: fragment(fitted, origin, n_job_nodes))
    simpler = None
    if fitted.asks_for_correlation:
        simpler, _ = _or_reason(lambda: job_fragment(fitted, origin, n_job_nodes))
    said = verdict(fitted, n_job_nodes)
    return FitReport(fitted, n_job_nodes, origin, said, written, why_not, simpler, by_cause)


def _or_reason(write: Callable[[], str]) -> tuple[str | None, str]:
    """What is written, or why it can't be."""
    try:
        return write(), ""
    except ParameterError as error:
        return None, str(error)
