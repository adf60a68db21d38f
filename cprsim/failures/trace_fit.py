"""All that a failure log says: gaps, up-times, repairs, and what one distribution can't say."""

from __future__ import annotations

from dataclasses import dataclass

from cprsim.errors import ParameterError
from cprsim.failures.circle import CorrelatedFit, fit_correlated
from cprsim.failures.correlation import Togetherness, Trend, togetherness, trend
from cprsim.failures.goodness import Judged, Ranking, rank
from cprsim.failures.lifetimes import FirstUptime, Lifetimes, gaps, repair_times, uptimes
from cprsim.failures.likelihood import NotConvergedError
from cprsim.failures.outages import Outages

SIMULATED = ("exponential", "weibull", "gamma", "lognormal")  # families that a scenario can name


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


def best_for_scenario(ranking: Ranking) -> Judged:
    """The best family that a scenario can name and simulate.

    Raises
    ------
    ParameterError
        where none of them can be simulated.
    """
    for judged in ranking.judged:
        if judged.fit.family in SIMULATED:
            try:
                judged.fit.distribution.simulable()
            except ParameterError:
                continue
            return judged
    raise ParameterError("no fitted family can be simulated")


def fragment(fitted: TraceFit, origin: str) -> str:
    """YAML to paste into a scenario: failures of the whole cluster that was observed.

    Parameters
    ----------
    fitted : of the log; its gaps have to be fitted
    origin : what the log is, for the comment

    Raises
    ------
    ParameterError
        where the gaps could not be fitted, or no family of theirs can be simulated.
    """
    ranking = fitted.gaps.ranking
    if ranking is None:
        raise ParameterError(f"there is no fit of the gaps to write: {fitted.gaps.why_not}")
    judged = best_for_scenario(ranking)
    best, mean = judged.fit, judged.fit.mean
    n_nodes, zero = fitted.outages.n_nodes, fitted.together.share_of_zero_gaps
    lines = [
        f"# fitted to {origin}",
        f"# {best.n_observed} gaps between failures of {n_nodes} nodes, {best.family}: "
        f"AIC {best.aic:.1f}, KS {judged.ks:.3f}",
        f"# {zero:.1%} of all gaps are zero (nodes that failed together) and not part of the fit",
        "failures:",
        "  kind: job",
        f"  family: {best.family}",
        f"  mtbf: {mean.estimate:.6g} h  # 95 %: {mean.low:.4g} to {mean.high:.4g} h; of all "
        f"{n_nodes} nodes: a job of n nodes takes {n_nodes}/n times as long",
    ]
    shapes = {"weibull": "shape", "gamma": "shape", "lognormal": "sigma"}
    if best.family in shapes:
        name = shapes[best.family]
        shape = best.parameter(name)
        interval = f"{shape.low:.4g} to {shape.high:.4g}"
        lines.append(f"  {name}: {shape.estimate:.6g}  # 95 %: {interval}")
    lines += ["  role: any", "  start: stationary", "  clock: wall"]
    return "\n".join([*lines, *_repair_lines(fitted)]) + "\n"


def _repair_lines(fitted: TraceFit) -> list[str]:
    """The repair times as a comment: they belong to another section."""
    ranking = fitted.repairs.ranking
    if ranking is None:
        return [f"# no repair times: {fitted.repairs.why_not}"]
    try:
        best = best_for_scenario(ranking).fit
    except ParameterError as error:
        return [f"# no repair times: {error}"]
    text = f"family: {best.family}, mean: {best.mean.estimate:.6g} h"
    if best.family == "lognormal":
        text += f", sigma: {best.parameter('sigma').estimate:.6g}"
    elif best.family != "exponential":
        text += f", shape: {best.parameter('shape').estimate:.6g}"
    return [f"# under cluster, with spares: repair: {{{text}}}"]
