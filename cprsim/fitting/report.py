"""All that is said of a log of failures: its fit, how often a job fails, and the fragments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages
from cprsim.fitting.causes import ByCause, taken_apart
from cprsim.fitting.fragments import fragment, job_fragment, nodes_of_job
from cprsim.fitting.lifetimes import FirstUptime
from cprsim.fitting.observation import Observation
from cprsim.fitting.trace_fit import FitVerdict, TraceFit, fit_trace, verdict


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a log says of a job on some of its nodes."""

    trace: TraceFit
    n_job_nodes: int
    origin: str
    verdict: FitVerdict
    fragment: str | None  # for what was asked for
    why_no_fragment: str
    job_fragment: str | None  # kind job, where it can be written
    by_cause: ByCause | None  # where it was asked for

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to be careful about, the most important first."""
        beyond = (
            f"{one.name}: the mean is extrapolated beyond {one.lifetimes.longest_h:,.6g} h, the "
            "longest time watched"
            for one in self.trace.subjects
            if one.mean is not None and one.lifetimes.extrapolates(one.mean.mean)
        )
        return *beyond, *self.trace.warnings


def fit_failures(
    outages: Outages, observed: Observation, origin: str, *, n_job_nodes: int | None,
    first: FirstUptime = FirstUptime.NEW, n_bootstrap: int, causes: bool = False,
) -> Fitted:  # fmt: skip
    """Fit a log, and each of its causes where asked for.

    Raises ParameterError for more nodes than the log has, or nothing that can be fitted.
    """
    n_job = nodes_of_job(n_job_nodes, outages.n_nodes)
    trace = fit_trace(outages, first=first, n_bootstrap=n_bootstrap, observed=observed)
    by_cause = taken_apart(outages, n_job, first, origin, observed) if causes else None
    written, why_not = _or_reason(lambda: fragment(trace, origin, n_job))
    of_job, _ = _or_reason(lambda: job_fragment(trace, origin, n_job))
    return Fitted(
        trace, n_job, origin, verdict(trace, n_job),
        written if by_cause is None else by_cause.fragment, why_not, of_job or written, by_cause,
    )  # fmt: skip


def _or_reason(write: Callable[[], str]) -> tuple[str | None, str]:
    """What is written, or why it can't be."""
    try:
        return write(), ""
    except ParameterError as error:
        return None, str(error)
