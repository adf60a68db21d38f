"""All that is said of a log: its fit, the verdict for a job, the fragments, and the circle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cprsim.errors import CprsimError, ParameterError
from cprsim.fitting.causes import ByCause
from cprsim.fitting.fragments import fragment, job_fragment, nodes_of_job
from cprsim.fitting.posterior_check import Compared, check_by_simulation
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
    circle: tuple[Compared, ...]
    why_no_circle: str  # empty where there is one, or none was asked for
    by_cause: ByCause | None  # where it was asked for

    @property
    def text(self) -> str:
        """The fragment, or why there is none."""
        return self.fragment or f"# no fragment: {self.why_no_fragment}\n"

    @property
    def to_save(self) -> str | None:
        """What a file gets: the fragment of what was asked for."""
        return self.fragment if self.by_cause is None else self.by_cause.fragment


def report_of(
    fitted: TraceFit,
    origin: str,
    *,
    n_job_nodes: int | None = None,
    circle_seed: int | None = None,
    by_cause: ByCause | None = None,
) -> FitReport:
    """Write the fragments for a job on so many of the nodes (None: all), and close the circle."""
    n_job = nodes_of_job(n_job_nodes, fitted.outages.n_nodes)
    written, why_not = _or_reason(lambda: fragment(fitted, origin, n_job))
    simpler = None
    if fitted.asks_for_correlation:
        simpler, _ = _or_reason(lambda: job_fragment(fitted, origin, n_job))
    circle, why_no_circle = _circle(fitted, circle_seed)
    return FitReport(
        fitted, n_job, origin, verdict(fitted, n_job), written, why_not, simpler, circle,
        why_no_circle, by_cause,
    )  # fmt: skip


def _or_reason(write: Callable[[], str]) -> tuple[str | None, str]:
    """What is written, or why it can't be."""
    try:
        return write(), ""
    except ParameterError as error:
        return None, str(error)


def _circle(fitted: TraceFit, seed: int | None) -> tuple[tuple[Compared, ...], str]:
    """The log beside its simulation, or why it can't be simulated."""
    if seed is None:
        return (), ""
    if fitted.correlated is None:
        why_not = fitted.why_not_correlated
        return (), f"nodes that differ could not be fitted to this log: {why_not}"
    try:
        return check_by_simulation(fitted.outages, fitted.correlated, seed=seed), ""
    except (CprsimError, ArithmeticError, ValueError) as error:
        return (), f"the fit can't be simulated: {error}"
