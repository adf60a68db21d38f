"""All that a failure log says: gaps, up-times, repairs, and what one distribution can't say."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages
from cprsim.fitting.circle import CorrelatedFit, fit_correlated
from cprsim.fitting.correlation import Portrait, Togetherness, portrait_of, togetherness
from cprsim.fitting.families import WEIBULL, fit
from cprsim.fitting.goodness import MOST_FITTED, Ranking, rank
from cprsim.fitting.lifetimes import FirstUptime, Lifetimes, gaps, repair_times, uptimes
from cprsim.fitting.likelihood import NotConvergedError, Parameter
from cprsim.fitting.observation import Observation, Source, observation
from cprsim.fitting.trend import Trend, silences, trend

FEW_GAPS = 20
WORTH_SAYING = 1.1  # factor between two estimates
Z99 = 2.807  # 1 % at two sides, for two numbers


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
    portrait: Portrait
    trend: Trend
    correlated: CorrelatedFit | None
    why_not_correlated: str  # empty where there is a fit
    observation: Observation
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
    observed: Observation | None = None,
) -> TraceFit:
    """Fit everything that can be fitted to a log; what can't says why.

    Parameters
    ----------
    outages : the log
    first : how the first up-time of each node counts, see `lifetimes.uptimes`
    n_bootstrap, seed : of the p-values, see `goodness.rank`
    observed : from where nodes, window and ages are known; default: inferred from the log

    Raises
    ------
    ParameterError
        where nothing at all can be fitted.
    """
    together = togetherness(outages)
    if len(together.sizes) < 2:
        raise ParameterError(
            f"nothing can be fitted to this log: its {int(outages.in_window.sum())} failure(s) "
            f"all begin at the same instant; two instants at least are needed"
        )
    merged = outages.merged()
    observed = observed or observation(outages, first)
    # first what takes the most memory, while little else is held
    drawn = portrait_of(merged)
    correlated, why_not = _correlated(merged)
    on_ages = _of_ages(merged, observed)
    of_gaps = _subject("gaps", gaps(outages), n_bootstrap, seed)
    of_uptimes = _subject("uptimes", uptimes(merged, first), n_bootstrap, seed)
    if of_gaps.ranking is None and of_uptimes.ranking is None:
        raise ParameterError(f"nothing can be fitted to this log: {of_gaps.why_not}")
    of_repairs = _subject("repairs", repair_times(outages), n_bootstrap, seed)
    course = trend(outages)
    return TraceFit(
        outages=outages,
        gaps=of_gaps,
        uptimes=of_uptimes,
        repairs=of_repairs,
        together=together,
        portrait=drawn,
        trend=course,
        correlated=correlated,
        why_not_correlated=why_not,
        observation=observed,
        warnings=(
            *outages.notes,
            *_of_trend(course),
            *silences(outages),
            *_of_subjects(of_gaps, of_uptimes, of_repairs),
            *on_ages,
        ),
    )


def _correlated(outages: Outages) -> tuple[CorrelatedFit | None, str]:
    try:
        return fit_correlated(outages), ""
    except (ParameterError, NotConvergedError) as error:
        return None, str(error)


def _subject(name: str, lifetimes: Lifetimes, n_bootstrap: int, seed: int) -> Subject:
    try:
        ranking = rank(lifetimes, n_bootstrap=n_bootstrap, seed=seed)
    except ParameterError as error:
        zeros = f" ({lifetimes.n_zero} of zero length)" if lifetimes.n_zero else ""
        return Subject(name, lifetimes, None, f"{error}{zeros}")
    return Subject(name, lifetimes, ranking)


# ------------------------------------------------------------------------------------ warnings


def _of_trend(course: Trend) -> list[str]:
    if not course.differs:
        return []
    return [
        f"the first half of the log has {course.first_half} failures, the second "
        f"{course.second_half}; {course.in_words()}; choose a period"
    ]


def _of_subjects(*subjects: Subject) -> list[str]:
    warnings = []
    for subject in subjects:
        ranking, times = subject.ranking, subject.lifetimes
        if ranking is None:
            continue
        if subject.name == "gaps" and times.n_observed < FEW_GAPS:
            warnings.append(f"only {times.n_observed} gaps: the intervals are wide")
        if ranking.none_fits:
            warnings.append(f"{subject.name}: none fits, every family is rejected")
        if ranking.fitted_every > 1:
            warnings.append(
                f"{subject.name}: fitted to every {ranking.fitted_every}th of {times.n} times, for "
                "speed"
            )
        if ranking.resampled_every > 1:
            n = times.n // (ranking.fitted_every * ranking.resampled_every)
            warnings.append(f"{subject.name}: p-values by {n} of the {times.n} times, for speed")
    return warnings


def _of_ages(outages: Outages, observed: Observation) -> list[str]:
    """A warning where the ages at the beginning are unknown, and matter."""
    if observed.ages.source is not Source.INFERRED:
        return []
    try:
        new, unknown = (
            fit(WEIBULL, uptimes(outages, first).at_most(MOST_FITTED)[0])
            for first in (FirstUptime.NEW, FirstUptime.UNKNOWN)
        )
    except (ParameterError, NotConvergedError):
        return []
    if not any(_differ(*pair) for pair in zip(new.parameters, unknown.parameters, strict=True)):
        return []
    said = (
        f"shape {one.parameters[0].mean:.3g}, mean {one.mean.mean:.4g} h" for one in (new, unknown)
    )
    return [
        "the nodes' ages when the log begins are unknown, and matter: Weibull up-times have {} "
        "where nodes count as new, {} where their first up-times are left out; say which with "
        "--age new or --age unknown".format(*said)
    ]


def _differ(one: Parameter, other: Parameter) -> bool:
    """Whether two estimates of a positive number, the second of fewer data, disagree at 1 %.

    And by so much that it matters: `WORTH_SAYING`.

    Where both were right, the variance of their difference would be that of the less precise one
    less that of the other (Hausman 1978), here of the logarithms and for times of one node that may
    resemble each other.
    """
    errors = [each.clustered_error / each.mean for each in (one, other)]
    squared = abs(errors[1] ** 2 - errors[0] ** 2)
    apart = abs(log(other.mean / one.mean))
    return apart > max(Z99 * sqrt(squared), log(WORTH_SAYING))
