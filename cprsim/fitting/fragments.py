"""Fits as YAML to paste into a scenario, each number with its interval and its origin."""

from __future__ import annotations

from cprsim.errors import ParameterError
from cprsim.failures.correlated import Shocks
from cprsim.failures.frailty import GammaFrailty, Lemons
from cprsim.failures.piecewise import PiecewiseHazard
from cprsim.fitting.circle import CorrelatedFit
from cprsim.fitting.families import Fit
from cprsim.fitting.frailty_fit import FrailtyFit
from cprsim.fitting.goodness import Judged, Ranking
from cprsim.fitting.likelihood import Estimate
from cprsim.fitting.trace_fit import TraceFit

WORTH_AIC = 10.0  # by how much unequal nodes have to be better to be asked for


def fragment(fitted: TraceFit, origin: str) -> str:
    """The section `failures` that the data ask for.

    Nodes that differ and shocks (kind `correlated`) where nodes failed together or differ; else
    the gaps of the cluster (kind `job`).

    Parameters
    ----------
    fitted : the log
    origin : what it is, for the comment

    Raises
    ------
    ParameterError
        where nothing that a scenario can simulate was fitted.
    """
    if asks_for_correlation(fitted):
        return correlated_fragment(fitted, origin)
    return job_fragment(fitted, origin)


def asks_for_correlation(fitted: TraceFit) -> bool:
    """Whether nodes failed together, or differ, by more than one distribution can say."""
    if fitted.correlated is None or fitted.outages.n_nodes < 2:
        return False
    aic = {form.name: form.aic for form in fitted.correlated.forms}
    differ = aic["alike"] - min(aic.values()) > WORTH_AIC
    return differ or fitted.correlated.shocks is not None


def correlated_fragment(fitted: TraceFit, origin: str) -> str:
    """Nodes that differ, and shocks; raises ParameterError where they could not be fitted."""
    correlated = fitted.correlated
    if correlated is None:
        raise ParameterError("nodes that differ could not be fitted")
    best = correlated.forms[0]
    lifetime = best.lifetime.simulable()
    scale_h = best.parameters[1]
    lines = [
        f"# fitted to {origin}",
        f"# {fitted.outages.n_outages} outages of {correlated.n_nodes} nodes in "
        f"{correlated.watched_h:.6g} h; nodes: {best.name}, AIC {best.aic:.1f}",
        "failures:",
        "  kind: correlated",
        f"  mtbf: {lifetime.mean_h:.6g} h  # of a node with factor 1",
        f"  mtbf_95: {_times(scale_h, lifetime.mean_h / scale_h.estimate)}  # as the scale's",
        f"  shape: {lifetime.shape:.6g}",
        f"  spread_95: {_numbers(best.parameters[0])}",
        *_frailty_lines(best),
        *_shock_lines(correlated),
        "  start: fresh  # every node counts as new when the log begins",
        f"  watched: {correlated.watched_h:.6g} h  # the job starts somewhere in the log",
        "  clock: wall",
    ]
    return "\n".join([*lines, *_repair_lines(fitted)]) + "\n"


def job_fragment(fitted: TraceFit, origin: str) -> str:
    """Gaps between failures of the whole cluster that was observed.

    Raises ParameterError where no family of theirs could be fitted and simulated.
    """
    ranking = fitted.gaps.ranking
    if ranking is None:
        raise ParameterError(f"there is no fit of the gaps to write: {fitted.gaps.why_not}")
    judged = best_for_scenario(ranking)
    n_nodes, zero = fitted.outages.n_nodes, fitted.together.share_of_zero_gaps
    lines = [
        f"# fitted to {origin}",
        f"# {judged.fit.n_observed} gaps between failures of {n_nodes} nodes, "
        f"{judged.fit.family}: AIC {judged.fit.aic:.1f}, KS {judged.ks:.3f}",
        f"# {zero:.1%} of all gaps are zero (nodes that failed together) and not part of the fit",
        f"# a job of n nodes fails n/{n_nodes} as often: mtbf and mtbf_95 times {n_nodes}/n",
        "failures:",
        "  kind: job",
        *_family_lines(judged.fit),
        "  role: any",
        "  start: stationary",
        "  clock: wall",
    ]
    return "\n".join([*lines, *_repair_lines(fitted)]) + "\n"


def best_for_scenario(ranking: Ranking) -> Judged:
    """The best family that can be simulated. Raises ParameterError where none can."""
    for judged in ranking.judged:
        try:
            judged.fit.distribution.simulable()
        except ParameterError:
            continue
        return judged
    raise ParameterError("no fitted family can be simulated")


def _family_lines(fit: Fit) -> list[str]:
    if isinstance(fit.distribution, PiecewiseHazard):
        ages = ", ".join(f"{age_h:.6g} h" for age_h in fit.distribution.from_h)
        hazards = ", ".join(f"{rate:.6g} failures/h" for rate in fit.distribution.rates_per_h)
        return ["  family: piecewise", f"  ages: [{ages}]", f"  hazards: [{hazards}]"]
    mtbf = [f"  mtbf: {fit.mean.estimate:.6g} h", f"  mtbf_95: {_times(fit.mean)}"]
    lines = [f"  family: {fit.family}", *mtbf]
    shape = _shape(fit)
    if shape is not None:
        lines.append(f"  {shape.name}: {shape.estimate:.6g}")
        lines.append(f"  spread_95: {_numbers(shape)}")
    return lines


def _shape(fit: Fit) -> Estimate | None:
    """Shape of Weibull and gamma, sigma of lognormal."""
    for parameter in fit.parameters:
        if parameter.name in ("shape", "sigma"):
            return parameter
    return None


def _frailty_lines(best: FrailtyFit) -> list[str]:
    frailty, lines = best.frailty, []
    by_name = {parameter.name: parameter for parameter in best.parameters}
    if isinstance(frailty, Lemons):
        factor = _interval(by_name["lemon_factor"])
        share = f"{100 * frailty.share:.6g} %"
        lines.append(
            f"  lemons: {{share: {share}, factor: {frailty.factor:.6g}}}  # factor {factor}"
        )
        frailty = frailty.others
    if isinstance(frailty, GammaFrailty):
        interval = _interval(by_name["frailty_shape"])
        lines.append(f"  frailty: {{shape: {frailty.shape:.6g}}}  # {interval}")
    return lines


def _shock_lines(correlated: CorrelatedFit) -> list[str]:
    shocks = correlated.shocks
    if shocks is None:
        return []
    sizes = ", ".join(f"{size}: {n}" for size, n in _counts(shocks, correlated.watched_h))
    every = f"every: {1 / shocks.rate_per_h:.6g} h"
    return [f"  shocks: {{{every}, sizes: {{{sizes}}}, nodes: {shocks.n_nodes}}}"]


def _counts(shocks: Shocks, watched_h: float) -> list[tuple[int, float]]:
    """How often each size was seen."""
    seen = shocks.rate_per_h * watched_h
    return [
        (size, float(round(share * seen)))
        for size, share in zip(shocks.sizes, shocks.shares, strict=True)
    ]


def _repair_lines(fitted: TraceFit) -> list[str]:
    """The repair times as a comment: they belong to another section."""
    ranking = fitted.repairs.ranking
    if ranking is None:
        return [f"# no repair times: {fitted.repairs.why_not}"]
    named = [one for one in ranking.judged if not isinstance(one.fit.distribution, PiecewiseHazard)]
    try:
        best = best_for_scenario(Ranking(tuple(named), ())).fit
    except ParameterError as error:
        return [f"# no repair times: {error}"]
    text = f"family: {best.family}, mean: {best.mean.estimate:.6g} h"
    shape = _shape(best)
    if shape is not None:
        text += f", {shape.name}: {shape.estimate:.6g}"
    return [f"# under cluster, with spares: repair: {{{text}}}"]


def _interval(estimate: Estimate) -> str:
    return f"95 %: {estimate.low:.4g} to {estimate.high:.4g}"


def _times(estimate: Estimate, factor: float = 1.0) -> str:
    """Its 95 % interval as a scenario reads times."""
    return f"[{estimate.low * factor:.4g} h, {estimate.high * factor:.4g} h]"


def _numbers(estimate: Estimate) -> str:
    """Its 95 % interval as a scenario reads numbers."""
    return f"[{estimate.low:.4g}, {estimate.high:.4g}]"
