"""All that a failure log says, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, isfinite, log, sqrt

from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages
from cprsim.fitting.correlated_fit import CorrelatedFit, fit_correlated
from cprsim.fitting.correlation import WEEK_H, Portrait, Togetherness, portrait_of, togetherness
from cprsim.fitting.families import WEIBULL, Fit, fit
from cprsim.fitting.goodness import MOST_FITTED, Judged, Ranking, rank
from cprsim.fitting.lifetimes import FirstUptime, Lifetimes, gaps, repair_times, uptimes
from cprsim.fitting.likelihood import NotConvergedError, Parameter
from cprsim.fitting.observation import Observation, Source, node_hours, observation
from cprsim.fitting.trend import Trend, silences, trend
from cprsim.records import ROUNDED_Z_95, Estimate

FEW_GAPS = 20
WORTH_AIC = 10.0  # by how much unequal nodes have to be better to be asked for
WORTH_SAYING = 1.1  # factor between two estimates
Z99 = 2.807  # 1 % at two sides, for two numbers


TITLES = {"gaps": "Gaps between failures", "uptimes": "Up-times of nodes", "repairs": "Repairs"}


@dataclass(frozen=True, slots=True)
class Subject:
    """One kind of times from the log, and the families fitted to it."""

    name: str  # gaps, uptimes or repairs
    lifetimes: Lifetimes
    ranking: Ranking | None
    why_not: str = ""  # where there is no ranking

    @property
    def title(self) -> str:
        """What a figure is called."""
        return TITLES[self.name]

    @property
    def best(self) -> Judged | None:
        """The best family by AIC."""
        return self.ranking.best if self.ranking else None

    @property
    def family(self) -> str:
        return self.best.fit.family if self.best else "none"

    @property
    def mean(self) -> Estimate | None:
        return self.best.fit.mean if self.best else None

    @property
    def not_fitted(self) -> str:
        """Why some families, or all, were not fitted."""
        return self.ranking.why_not if self.ranking else self.why_not


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

    @property
    def n_failures(self) -> int:
        return int((self.outages.in_window & self.outages.chosen).sum())

    @property
    def node_hours(self) -> float:
        """Hours that all nodes were observed together [h]."""
        return node_hours(self.outages)

    @property
    def asks_for_correlation(self) -> bool:
        """Whether nodes failed together, or differ, by more than one distribution can say."""
        if self.correlated is None or self.outages.n_nodes < 2:
            return False
        aic = {form.name: form.aic for form in self.correlated.forms}
        differ = aic["alike"] - min(aic.values()) > WORTH_AIC
        return differ or self.correlated.shocks is not None


def fit_trace(
    outages: Outages,
    *,
    first: FirstUptime = FirstUptime.NEW,
    n_bootstrap: int = 199,
    seed: int = 0,
    observed: Observation | None = None,
) -> TraceFit:
    """Fit everything that can be fitted to a log; what can't says why.

    Raises ParameterError where nothing at all can be fitted.
    """
    together = togetherness(outages)
    if len(together.sizes) < 2:
        raise ParameterError(
            f"nothing can be fitted to this log: its {int(outages.in_window.sum())} failure(s) "
            f"all begin at the same instant; two instants at least are needed"
        )
    observed = observed or observation(outages, first)
    course, silent = trend(outages), silences(outages)
    drawn = portrait_of(outages)
    correlated, why_not = _correlated(outages)
    other_ages = _fit_with_other_ages(outages, observed, first)
    of_uptimes = _subject("uptimes", uptimes(outages, first), n_bootstrap, seed)
    of_gaps = _subject("gaps", gaps(outages), n_bootstrap, seed)
    if of_gaps.ranking is None and of_uptimes.ranking is None:
        raise ParameterError(f"nothing can be fitted to this log: {of_gaps.why_not}")
    of_repairs = _subject("repairs", repair_times(outages), n_bootstrap, seed)
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
            *_of_trend(course),
            *silent,
            *_of_subjects(of_gaps, of_uptimes, of_repairs),
            *_of_ages(first, of_uptimes.ranking, other_ages),
            *outages.notes,
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


def _fit_with_other_ages(outages: Outages, observed: Observation, first: FirstUptime) -> Fit | None:
    """Weibull up-times if the ages at the beginning are otherwise; None where they are known."""
    if observed.ages.source is not Source.INFERRED:
        return None
    other = FirstUptime.UNKNOWN if first is FirstUptime.NEW else FirstUptime.NEW
    try:
        return fit(WEIBULL, uptimes(outages, other).at_most(MOST_FITTED)[0])
    except (ParameterError, NotConvergedError):
        return None


def _of_ages(first: FirstUptime, fitted: Ranking | None, other: Fit | None) -> list[str]:
    """A warning where the ages at the beginning are unknown, and matter."""
    weibull = [one.fit for one in fitted.judged if one.fit.family == WEIBULL.name] if fitted else []
    if other is None or not weibull:
        return []
    new, unknown = (weibull[0], other) if first is FirstUptime.NEW else (other, weibull[0])
    if not any(_differ(*pair) for pair in zip(new.parameters, unknown.parameters, strict=True)):
        return []
    sentence = (
        f"shape {one.parameters[0].mean:.3g}, mean {one.mean.mean:.4g} h" for one in (new, unknown)
    )
    return [
        "the nodes' ages when the log begins are unknown, and matter: Weibull up-times have {} "
        "where nodes count as new, {} where their first up-times are left out; say which with "
        "--age new or --age unknown".format(*sentence)
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


# -------------------------------------------------------------------------------------- the verdict

FEW_WEEKS = 8  # below, the bunching of failures can't be told
FEW_FAILURES = 20
FITS = "Nothing in the log contradicts the fit."


@dataclass(frozen=True, slots=True)
class FitVerdict:
    """How often a job fails, and what to think of that."""

    mtbf_h: Estimate  # of the job
    sentences: tuple[str, str, str]


def job_rate_per_h(outages: Outages, n_job: int) -> float:
    """Events of the chosen cause that strike a job [1/h]; nodes that fail at once strike once."""
    together = togetherness(outages)
    watched_h = node_hours(outages) / outages.n_nodes
    return len(together.sizes) * together.share_of_job(n_job, outages.n_nodes) / watched_h


def verdict(fitted: TraceFit, n_job: int) -> FitVerdict:
    """Three sentences on a log.

    The rate is that of the events that strike a job of `n_job` random nodes, while nodes are there.
    Its interval allows for bunching: the variance of a Poisson number times the failures' variance
    over mean per week, where there are `FEW_WEEKS` and it is above 1.
    """
    outages, n_events = fitted.outages, len(fitted.together.sizes)
    rate = job_rate_per_h(outages, n_job)
    bunching = fitted.portrait.weekly_dispersion
    known = isfinite(bunching) and outages.window_h >= FEW_WEEKS * WEEK_H
    wider = max(bunching, 1.0) if known else 1.0
    mtbf_h, error = 1 / rate if rate > 0 else inf, sqrt(wider / n_events)
    low_h, high_h = (mtbf_h * exp(sign * ROUNDED_Z_95 * error) for sign in (-1, 1))
    mtbf = Estimate(mtbf_h, low_h, high_h, n_events)
    how_often = (
        f"A job on {n_job} of the {outages.n_nodes} nodes meets a failure every "
        f"{_time(mtbf_h)} on average."
    )
    return FitVerdict(mtbf, (how_often, _how_sure(mtbf, wider, known=known), _what_not(fitted)))


def _how_sure(mtbf_h: Estimate, wider: float, *, known: bool) -> str:
    few = " few" if mtbf_h.n < FEW_FAILURES else ""
    bunching = (
        f"allowing for failures that bunch ({wider:.2g} times a Poisson variance)"
        if known and wider > 1
        else "as if failures did not bunch"
        + ("" if known else f", which a log under {FEW_WEEKS} weeks can't tell")
    )
    return (
        f"With 95 % it is between {_time(mtbf_h.low)} and {_time(mtbf_h.high)}, "
        f"from{few} {mtbf_h.n} failures, {bunching}."
    )


def _what_not(fitted: TraceFit) -> str:
    wrong = []
    if fitted.trend.differs:
        wrong.append("the rate changes over the log")
    none_fit = [one.name for one in fitted.subjects if one.ranking and one.ranking.none_fits]
    if none_fit:
        wrong.append(f"no family fits the {' and the '.join(none_fit)}")
    if fitted.asks_for_correlation:
        wrong.append("nodes fail together or differ, which one distribution can't say")
    said = f"What does not fit: {'; '.join(wrong)}." if wrong else FITS
    return f"{said}{_guessed(fitted.observation)}"


def _guessed(observed: Observation) -> str:
    """What the log does not say of its observation; nothing where it says all."""
    facts = (
        ("how many nodes there are", observed.n_nodes),
        ("when it begins", observed.begins),
        ("when it ends", observed.ends),
    )
    guessed = [name for name, fact in facts if fact.source is Source.INFERRED]
    if not guessed:
        return ""
    *others, last = guessed
    listed = f"{', '.join(others)} and {last}" if others else last
    return f" The log does not say {listed}: that is inferred from its failures alone."


def _time(hours: float) -> str:
    if hours >= 10_000:
        return f"{hours / 8766:.3g} years"
    return f"{hours * 60:.3g} min" if hours < 1 else f"{hours:.3g} h"
