"""All that a failure log says: gaps, up-times, repairs, and what one distribution can't say."""

from __future__ import annotations

from dataclasses import dataclass

from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages
from cprsim.fitting.circle import CorrelatedFit, fit_correlated
from cprsim.fitting.correlation import Togetherness, Trend, togetherness, trend
from cprsim.fitting.goodness import Ranking, rank
from cprsim.fitting.lifetimes import FirstUptime, Lifetimes, gaps, repair_times, uptimes
from cprsim.fitting.likelihood import NotConvergedError


@dataclass(frozen=True, slots=True)
class Subject:
    """One kind of times from the log, and the families fitted to it."""

    name: str  # gaps, uptimes or repairs
    lifetimes: Lifetimes
    ranking: Ranking | None
    why_not: str = ""  # where there is no ranking


@dataclass(frozen=True, slots=True)
class TraceFit:
    """What a log of failures says."""

    outages: Outages
    gaps: Subject
    uptimes: Subject
    repairs: Subject
    together: Togetherness
    trend: Trend
    correlated: CorrelatedFit | None
    warnings: tuple[str, ...]

    @property
    def subjects(self) -> tuple[Subject, ...]:
        return self.gaps, self.uptimes, self.repairs


def fit_trace(
    outages: Outages,
    *,
    first: FirstUptime = FirstUptime.NEW,
    n_bootstrap: int = 199,
    seed: int = 0,
) -> TraceFit:
    """Fit everything that can be fitted to a log; what can't says why.

    Parameters
    ----------
    outages : the log
    first : how the first up-time of each node counts, see `lifetimes.uptimes`
    n_bootstrap, seed : of the p-values, see `goodness.rank`

    Raises
    ------
    ParameterError
        where nothing at all can be fitted.
    """
    n_instants = len(togetherness(outages).sizes)
    if n_instants < 2:
        raise ParameterError(
            f"nothing can be fitted to this log: its {int(outages.in_window.sum())} failure(s) "
            f"all begin at the same instant; two instants at least are needed"
        )
    of_gaps = _subject("gaps", gaps(outages), n_bootstrap, seed)
    of_uptimes = _subject("uptimes", uptimes(outages, first), n_bootstrap, seed)
    if of_gaps.ranking is None and of_uptimes.ranking is None:
        raise ParameterError(f"nothing can be fitted to this log: {of_gaps.why_not}")
    halves = trend(outages)
    try:
        correlated = fit_correlated(outages)
    except (ParameterError, NotConvergedError):
        correlated = None
    return TraceFit(
        outages=outages,
        gaps=of_gaps,
        uptimes=of_uptimes,
        repairs=_subject("repairs", repair_times(outages), n_bootstrap, seed),
        together=togetherness(outages),
        trend=halves,
        correlated=correlated,
        warnings=_warnings(outages, of_gaps, halves),
    )


def _subject(name: str, lifetimes: Lifetimes, n_bootstrap: int, seed: int) -> Subject:
    try:
        ranking = rank(lifetimes, n_bootstrap=n_bootstrap, seed=seed)
    except ParameterError as error:
        zeros = f" ({lifetimes.n_zero} of zero length)" if lifetimes.n_zero else ""
        return Subject(name, lifetimes, None, f"{error}{zeros}")
    return Subject(name, lifetimes, ranking)


def _warnings(outages: Outages, of_gaps: Subject, halves: Trend) -> tuple[str, ...]:
    warnings = list(outages.notes)
    if halves.differs:
        warnings.append(
            f"the first half of the log has {halves.first_half} failures, the second "
            f"{halves.second_half}: a trend that no distribution here describes; choose a period"
        )
    if of_gaps.lifetimes.n_observed < 20:
        warnings.append(f"only {of_gaps.lifetimes.n_observed} gaps: the intervals are wide")
    return tuple(warnings)
