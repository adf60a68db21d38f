"""Fits as YAML to paste into a scenario, each number with its interval and its origin.

Whatever is written here, a scenario takes: see `failures.limits`. What is not, gives way to the
next best fit that is, and a comment says so.
"""

from __future__ import annotations

from dataclasses import replace

from cprsim.errors import ParameterError
from cprsim.failures import limits
from cprsim.failures.distributions import Distribution, PiecewiseHazard, with_mean
from cprsim.failures.frailty import GammaFrailty, Lemons
from cprsim.fitting.correlated_fit import CorrelatedFit, FrailtyFit
from cprsim.fitting.families import Fit
from cprsim.fitting.goodness import P_REJECTED, Judged, Ranking
from cprsim.fitting.likelihood import Parameter
from cprsim.fitting.trace_fit import TraceFit
from cprsim.records import MAX_NODES, Cluster, Estimate, Holds, Role

FIRST_H = 100.0  # of a job, for which a comment says how often it fails


def fragment(fitted: TraceFit, origin: str, n_job_nodes: int | None = None) -> str:
    """The section `failures` that the data ask for.

    Nodes that differ and shocks (kind `correlated`) where nodes failed together or differ; else,
    or where a scenario does not take those, the gaps of the cluster (kind `job`).

    Raises ParameterError where nothing that a scenario can simulate was fitted, or the job has more
    nodes than the log.
    """
    if not fitted.asks_for_correlation:
        return job_fragment(fitted, origin, n_job_nodes)
    try:
        return correlated_fragment(fitted, origin, n_job_nodes)
    except UnwritableError as error:
        note = f"# nodes that differ are asked for, but can't be written: {error}\n"
        return note + job_fragment(fitted, origin, n_job_nodes)


class UnwritableError(ParameterError):
    """A fit that a scenario does not take."""


# ------------------------------------------------------------------------------ kind correlated


def correlated_fragment(fitted: TraceFit, origin: str, n_job_nodes: int | None = None) -> str:
    """Nodes that differ, and shocks.

    Parameters and errors as in `fragment`; `UnwritableError` where no form that was fitted can
    stand in a scenario.
    """
    correlated = fitted.correlated
    if correlated is None:
        raise ParameterError(f"nodes that differ could not be fitted: {fitted.why_not_correlated}")
    n_job = nodes_of_job(n_job_nodes, fitted.outages.n_nodes)
    best, passed_over = _writable_form(correlated)
    mean_h = best.lifetime.mean_h
    scale_h = best.parameters[1]
    lines = [
        *opening(fitted, origin),
        f"# {fitted.outages.n_outages} outages of {correlated.n_nodes} nodes in "
        f"{correlated.watched_h:.6g} h; nodes: {best.name}, AIC {best.aic:.1f}",
        *passed_over,
        *_correlated_share(replace(correlated, forms=(best,)), n_job),
        *_correlated_support(correlated, best),
        "failures:",
        "  kind: correlated",
        f"  mtbf: {_exactly(mean_h)} h  # of a node with factor 1",
        *_time_interval(scale_h, mean_h / scale_h.mean, "as the scale's"),
        f"  shape: {_exactly(best.lifetime.shape)}",
        *_spread_interval(best.parameters[0]),
        *_frailty_lines(best),
        *_shock_lines(correlated),
        "  start: fresh  # every node counts as new when the log begins",
        f"  watched: {_exactly(correlated.ages_h)} h  # the job starts somewhere in the log",
        "  clock: wall",
    ]
    return "\n".join([*lines, *repair_lines(fitted)]) + "\n"


def _writable_form(correlated: CorrelatedFit) -> tuple[FrailtyFit, list[str]]:
    """The best form by AIC that a scenario takes, and comments on those that it does not."""
    comments = []
    limit = (0.0, limits.MOST_WATCHED_H)
    try:
        limits.within("the length of the log", correlated.ages_h, limit, "h")
        limits.within("the number of nodes", correlated.n_nodes, (1, MAX_NODES))
        if correlated.shocks is not None:
            limits.within("different sizes", len(correlated.shocks.sizes), (1, limits.MOST_SIZES))
            limits.within("between shocks,", 1 / correlated.shocks.rate_per_h, limits.MTBF_H, "h")
    except ParameterError as error:
        raise UnwritableError(str(error)) from None
    for form in correlated.forms:
        reasons = []
        for candidate in (form, form.by_lemons()):
            if candidate is None:
                continue
            try:
                limits.writable(candidate.lifetime)
                limits.writable_factors(candidate.frailty)
            except ParameterError as error:
                reasons.append(str(error))
                continue
            if candidate is not form:
                comments.append(
                    f"# lemons have the factor 1 here, the others a smaller one: {reasons[0]}"
                )
            return candidate, comments
        comments.append(f"# not {form.name} (AIC {form.aic:.1f}): {reasons[0]}")
    raise UnwritableError("; ".join(comment.removeprefix("# not ") for comment in comments))


def _correlated_share(correlated: CorrelatedFit, n_job: int) -> list[str]:
    job = Cluster((Role("node", n_job, Holds.NOTHING),))
    mtbf_h = correlated.source().expected(job, FIRST_H).mtbf_h
    n_nodes = correlated.n_nodes
    return [
        f"# holds for any job on up to {n_nodes} of these nodes: each has its own clock. A job on "
        f"{n_job} of {n_nodes}",
        f"# ({n_job / n_nodes:.4g} of the nodes) fails every {mtbf_h:.4g} h on average "
        f"over its first {FIRST_H:g} h",
    ]


def _correlated_support(correlated: CorrelatedFit, best: FrailtyFit) -> list[str]:
    mean_h = best.lifetime.mean_h
    if isinstance(best.frailty, Lemons):
        # either kind of node may be the one that lives longer
        mean_h *= max(1.0, best.frailty.factor ** (-1 / best.lifetime.shape))
    if mean_h <= correlated.watched_h:
        return []
    return [
        f"# the mean of {mean_h:.4g} h is extrapolated: nothing was watched for "
        f"longer than {correlated.watched_h:.4g} h;",
        f"# the log supports one failure of a single node in {correlated.hours_per_failure:.4g} "
        "node-hours, within the time that was watched",
    ]


def _frailty_lines(best: FrailtyFit) -> list[str]:
    frailty, lines = best.frailty, []
    by_name = {parameter.name: parameter for parameter in best.parameters}
    if isinstance(frailty, Lemons):
        factor = _interval(by_name["lemon_factor"])
        share = f"{_exactly(100 * frailty.share)} %"
        lines.append(
            f"  lemons: {{share: {share}, factor: {_exactly(frailty.factor)}}}  # factor {factor}"
        )
        frailty = frailty.others
    if isinstance(frailty, GammaFrailty):
        interval = _interval(by_name["frailty_shape"])
        lines.append(f"  frailty: {{shape: {_exactly(frailty.shape)}}}  # {interval}")
    return lines


def _shock_lines(correlated: CorrelatedFit) -> list[str]:
    shocks = correlated.shocks
    if shocks is None:
        return []
    seen = shocks.rate_per_h * correlated.watched_h  # how often each size was
    counts = zip(shocks.sizes, shocks.shares, strict=True)
    sizes = ", ".join(f"{size}: {float(round(share * seen))}" for size, share in counts)
    every = f"every: {_exactly(1 / shocks.rate_per_h)} h"
    return [f"  shocks: {{{every}, sizes: {{{sizes}}}, nodes: {shocks.n_nodes}}}"]


# ------------------------------------------------------------------------------------- kind job


def job_fragment(fitted: TraceFit, origin: str, n_job_nodes: int | None = None) -> str:
    """Gaps between failures of the whole cluster that was observed, or of a job's share of it.

    Parameters and errors as in `fragment`.

    A job of n of the N nodes meets those failures that strike one of its nodes: with groups of s
    nodes a share ``1 - C(N - s, n) / C(N, n)`` of them. Its times are the log's over that share
    (hazards: times it); the shape stays.
    """
    ranking = fitted.gaps.ranking
    if ranking is None:
        raise ParameterError(f"there is no fit of the gaps to write: {fitted.gaps.why_not}")
    n_job = nodes_of_job(n_job_nodes, fitted.outages.n_nodes)
    share = fitted.together.share_of_job(n_job, fitted.outages.n_nodes)
    judged, distribution = best_for_scenario(ranking, limits.MTBF_H, stretch=1 / share)
    n_nodes, zero = fitted.outages.n_nodes, fitted.together.share_of_zero_gaps
    lines = [
        *opening(fitted, origin),
        f"# {judged.fit.n_observed} gaps between failures of {n_nodes} nodes, "
        f"{judged.fit.family}: AIC {judged.fit.aic:.1f}, KS {judged.ks:.3f}",
        *_passed_over(ranking, judged),
        f"# {zero:.1%} of all gaps are zero (nodes that failed together) and not part of the fit",
        *_job_share(n_job, n_nodes, share),
        *_job_support(fitted, judged, share),
        "failures:",
        "  kind: job",
        f"  nodes: {n_job}  # of the job with this rate",
        *_family_lines(judged.fit, distribution, 1 / share),
        "  role: any",
        "  start: stationary",
        "  clock: wall",
    ]
    return "\n".join([*lines, *repair_lines(fitted)]) + "\n"


def _job_share(n_job: int, n_nodes: int, share: float) -> list[str]:
    if n_job == n_nodes:
        return [
            f"# for a job on all {n_nodes} nodes of the log, whose share is 1: it meets every "
            "failure. On fewer it meets",
            "# fewer: `cprsim fit --job-nodes N` writes them (times over the share, hazards times "
            "it)",
        ]
    return [
        f"# for a job on {n_job} of the {n_nodes} nodes of the log: its share of the failures is "
        f"{share:.4g};",
        f"# times are the log's times {1 / share:.4g}, hazards over it; the shape stays, though "
        "failures that strike",
        "# nodes at random would come to a small job more like a Poisson process",
    ]


def _job_support(fitted: TraceFit, judged: Judged, share: float) -> list[str]:
    times = fitted.gaps.lifetimes
    if not times.extrapolates(judged.fit.mean.mean):
        return []
    return [
        f"# the mean of {judged.fit.mean.mean / share:.4g} h is extrapolated: the longest gap "
        f"seen is {times.longest_h:.4g} h (of the log);",
        f"# the log supports one failure in {times.hours_per_end / share:.4g} h",
    ]


def best_for_scenario(
    ranking: Ranking, mean_h: limits.Bounds = limits.MTBF_H, *, stretch: float = 1.0
) -> tuple[Judged, Distribution]:
    """The best family that a scenario takes, and its distribution with all times stretched.

    Raises UnwritableError where there is none.
    """
    reasons = []
    for judged in ranking.judged:
        try:
            distribution = stretched(judged.fit.distribution.simulable(), stretch)
            limits.writable(distribution, mean_h)
        except ParameterError as error:
            reasons.append(f"{judged.fit.family}: {error}")
            continue
        return judged, distribution
    raise UnwritableError("no fitted family can stand in a scenario: " + "; ".join(reasons))


def stretched(distribution: Distribution, factor: float) -> Distribution:
    """The distribution of times `factor` as long. Raises ParameterError as `with_mean` does."""
    if factor == 1:
        return distribution
    if isinstance(distribution, PiecewiseHazard):
        return PiecewiseHazard(
            tuple(age_h * factor for age_h in distribution.from_h),
            tuple(rate_per_h / factor for rate_per_h in distribution.rates_per_h),
        )
    shape = getattr(distribution, "sigma", getattr(distribution, "shape", None))
    return with_mean(distribution.family, distribution.mean_h * factor, shape)


def _passed_over(ranking: Ranking, judged: Judged) -> list[str]:
    better = ranking.judged[: ranking.judged.index(judged)]
    if not better:
        return []
    names = ", ".join(f"{one.fit.family} (AIC {one.fit.aic:.1f})" for one in better)
    return [f"# not {names}: beyond what a scenario takes"]


def _family_lines(fit: Fit, distribution: Distribution, stretch: float) -> list[str]:
    if isinstance(distribution, PiecewiseHazard):
        ages = ", ".join(f"{age_h} h" for age_h in _apart(distribution.from_h))
        hazards = ", ".join(f"{_exactly(rate)} failures/h" for rate in distribution.rates_per_h)
        mean = f"mean {distribution.mean_h:.6g} h, {_interval(fit.mean, stretch)} h"
        return [f"  family: piecewise  # {mean}", f"  ages: [{ages}]", f"  hazards: [{hazards}]"]
    mtbf = [f"  mtbf: {_exactly(distribution.mean_h)} h", *_time_interval(fit.mean, stretch)]
    lines = [f"  family: {fit.family}", *mtbf]
    shape = _shape(fit)
    if shape is not None:
        lines.append(f"  {shape.name}: {_exactly(shape.mean)}")
        lines += _spread_interval(shape)
    return lines


def _shape(fit: Fit) -> Parameter | None:
    """Shape of Weibull and gamma, sigma of lognormal."""
    for parameter in fit.parameters:
        if parameter.name in ("shape", "sigma"):
            return parameter
    return None


# --------------------------------------------------------------------------------- what both say


def nodes_of_job(n_job_nodes: int | None, n_nodes: int) -> int:
    """Nodes of the job that a fragment is for; raises ParameterError for more than the log has."""
    if n_job_nodes is None:
        return n_nodes
    if not 1 <= n_job_nodes <= n_nodes:
        raise ParameterError(
            f"a job of {n_job_nodes} nodes: the log has {n_nodes} (a log says nothing of more "
            "nodes than were watched; --nodes says how many were)"
        )
    return n_job_nodes


def opening(fitted: TraceFit, origin: str) -> list[str]:
    """From which log, which part of it, and what speaks against a fit of it."""
    lines = [f"# fitted to {_plain(origin)}"]
    cause = fitted.observation.cause
    if cause is not None:
        lines.append(f"# only causes with {_plain(cause)!r}; other outages censor up-times")
    lines += [f"# {_plain(line)}" for line in fitted.observation.lines()]
    if fitted.gaps.ranking is not None and fitted.gaps.ranking.none_fits:
        lines.append(
            f"# none fits: of the gaps, every family's p-value is below {P_REJECTED:g}; "
            "what stands here is the least bad"
        )
    if fitted.trend.differs:
        lines.append(f"# {_plain(fitted.trend.in_words())}")
    return lines


def _plain(text: str) -> str:
    """Text for a comment: on one line, nothing that a terminal would obey."""
    return "".join(char if char.isprintable() else "?" for char in text)[:300]


def repair_lines(fitted: TraceFit) -> list[str]:
    """The repair times as a comment: they belong to another section."""
    ranking = fitted.repairs.ranking
    if ranking is None:
        return [f"# no repair times: {_plain(fitted.repairs.why_not)}"]
    named = [one for one in ranking.judged if not isinstance(one.fit.distribution, PiecewiseHazard)]
    try:
        best = best_for_scenario(Ranking(tuple(named), ()), limits.REPAIR_H)[0].fit
    except ParameterError as error:
        return [f"# no repair times: {error}"]
    text = f"family: {best.family}, mean: {_exactly(best.mean.mean)} h"
    shape = _shape(best)
    if shape is not None:
        text += f", {shape.name}: {_exactly(shape.mean)}"
    doubt = "; none fits the repair times" if ranking.none_fits else ""
    return [f"# under cluster, with spares: repair: {{{text}}}{doubt}"]


def _exactly(value: float) -> str:
    return f"{value:.6g}"


def _apart(values: tuple[float, ...]) -> list[str]:
    """Increasing numbers in as few digits, six at least, as keep them apart."""
    for n_digits in range(6, 17):
        texts = [f"{value:.{n_digits}g}" for value in values]
        if len(set(texts)) == len(texts):
            return texts
    return [repr(value) for value in values]


def _interval(estimate: Estimate, factor: float = 1.0) -> str:
    return f"95 %: {estimate.low * factor:.4g} to {estimate.high * factor:.4g}"


def _time_interval(estimate: Estimate, factor: float = 1.0, remark: str = "") -> list[str]:
    """Its 95 % interval as a scenario reads times."""
    low_h, high_h = estimate.low * factor, estimate.high * factor
    return _interval_line("mtbf_95", low_h, high_h, limits.MTBF_H, " h", remark)


def _spread_interval(estimate: Estimate) -> list[str]:
    """Its 95 % interval as a scenario reads numbers."""
    return _interval_line("spread_95", estimate.low, estimate.high, limits.SPREAD_95, "", "")


def _interval_line(
    key: str, low: float, high: float, bounds: limits.Bounds, unit: str, remark: str
) -> list[str]:
    """An interval cut at what a scenario takes, with a comment where it was."""
    ends = [min(max(end, bounds[0]), bounds[1]) for end in (low, high)]
    if ends != [low, high]:
        remark = f"cut; fitted {low:.4g} to {high:.4g}{unit}" + (f", {remark}" if remark else "")
    digits = next(
        (n for n in range(4, 17) if float(f"{ends[0]:.{n}g}") < float(f"{ends[1]:.{n}g}")), 0
    )
    if digits == 0:
        return [f"  # no {key}: the interval is a point, or lies beyond what a scenario takes"]
    text = ", ".join(f"{end:.{digits}g}{unit}" for end in ends)
    return [f"  {key}: [{text}]" + (f"  # {remark}" if remark else "")]
