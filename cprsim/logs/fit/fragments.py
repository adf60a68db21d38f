"""Fits as sections of a scenario: data with remarks, and one writer of both as YAML.

Every value written here is valid in a scenario: see `failures.limits`. A fit that is not is
replaced by the next best valid one, and a comment says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, TypeVar

from cprsim.errors import ParameterError, one_line
from cprsim.failures import limits
from cprsim.failures.frailty import failures_of_a_node
from cprsim.job.distributions import Distribution, PiecewiseHazard, Weibull, with_mean
from cprsim.job.records import Estimate
from cprsim.logs.fit.goodness import P_OF_REJECTED_FIT
from cprsim.logs.fit.lifetimes import Lifetimes
from cprsim.logs.fit.likelihood import Fit
from cprsim.logs.fit.report import Fitted

FIRST_H = 100.0  # of a job, for which a comment says how often it fails
WIDEST_WITH_REMARK = 100  # characters of a line that has its remark behind it
MOST_LINE = 300  # characters of a comment
SHORT_UNITS = ((3600.0, "s"), (60.0, "min"))
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fragment:
    """Sections of a scenario, with comments on them."""

    sections: Mapping[str, Any]  # as a scenario reads them
    above: Sequence[str] = ()
    remarks: Mapping[str, str] = field(default_factory=dict)  # by key of a section
    below: Sequence[str] = ()

    def __str__(self) -> str:
        """As YAML, with the remarks as comments."""
        lines = [f"# {one_line(line, MOST_LINE)}" for line in self.above]
        for name, section in self.sections.items():
            if isinstance(section, str):
                lines.append(f"{name}: {section}")
                continue
            lines.append(f"{name}:")
            if isinstance(section, list):
                for entry in section:
                    first, *others = _block(entry, {}, "    ")
                    lines += [f"  - {first.strip()}", *others]
            else:
                lines += _block(section, self.remarks, "  ")
        lines += [f"# {one_line(line, MOST_LINE)}" for line in self.below]
        return "\n".join([*lines, ""])


def _block(section: Mapping[str, Any], remarks: Mapping[str, str], indent: str) -> Iterator[str]:
    for key, value in section.items():
        line, remark = f"{indent}{key}: {_flow(value)}", remarks.get(key, "")
        if remark and len(line) + len(remark) > WIDEST_WITH_REMARK:
            yield f"{indent}# {remark}"
            remark = ""
        yield f"{line}  # {remark}" if remark else line


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_flow(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return str(value)


def _digits(value: float) -> float:
    """As many as are written."""
    return float(f"{value:.6g}")


def failures_fragment(fitted: Fitted) -> Fragment:
    """Kind `correlated` where nodes failed together or differ, and a scenario takes it; else `job`.

    Raises ParameterError where nothing that a scenario can simulate was fitted.
    """
    if not fitted.asks_for_correlation:
        return job_fragment(fitted)
    try:
        return _correlated_fragment(fitted)
    except ParameterError as error:
        fragment = job_fragment(fitted)
        note = f"nodes that differ are asked for, but can't be written: {error}"
        return replace(fragment, above=[note, *fragment.above])


def fragment_of(fitted: Fitted) -> Fragment | str:
    """Return the fit as a section of a scenario, or the reason why it can't be one."""
    try:
        return failures_fragment(fitted)
    except ParameterError as error:
        return str(error)


def _correlated_fragment(fitted: Fitted) -> Fragment:
    """Kind `correlated`: nodes that differ, and shocks. Raises as `failures_fragment`."""
    correlated, outages = fitted.correlated, fitted.outages
    assert correlated is not None  # nodes that differ were asked for
    forms = [(form.family, form) for form in correlated.forms]
    best, passed_over = _first(forms, _check_form)
    lifetime, (shape, scale_h, *frailty_numbers) = best.distribution, best.parameters
    assert isinstance(lifetime, Weibull)
    mean_h = lifetime.mean_h
    mean = scale_h.times(mean_h / scale_h.mean)
    section: dict[str, Any] = {
        "kind": "correlated", **_time(mean), "shape": _digits(shape.mean), **_spread(shape)
    }  # fmt: skip
    remarks = {
        "mtbf": "of a node with factor 1; the interval is the scale's",
        "start": "every node counts as new when the log begins",
        "watched": "the job starts somewhere in the log",
    }
    frailty, by_name = best.frailty, {number.name: number for number in frailty_numbers}
    if frailty.share:
        share = f"{100 * frailty.share:.6g} %"
        section["lemons"] = {"share": share, "factor": _digits(frailty.factor)}
        remarks["lemons"] = f"factor {interval(by_name['lemon_factor'])}"
    if frailty.shape < inf:
        section["frailty"] = {"shape": _digits(frailty.shape)}
        remarks["frailty"] = interval(by_name["frailty_shape"])
    if (shocks := correlated.shocks) is not None:
        counts = zip(shocks.sizes, shocks.shares, strict=True)
        n_shocks = shocks.rate_per_h * outages.window_h  # how often each size was
        sizes = {size: float(round(share * n_shocks)) for size, share in counts}
        every = f"{1 / shocks.rate_per_h:.6g} h"
        section["shocks"] = {"every": every, "sizes": sizes, "nodes": shocks.n_nodes}
    section |= {"start": "fresh", "watched": f"{correlated.ages_h:.6g} h", "clock": "wall"}
    n_job, n_nodes = fitted.n_job_nodes, outages.n_nodes
    failures_of_node = failures_of_a_node(lifetime, best.frailty, FIRST_H, correlated.ages_h)
    events = 0.0 if shocks is None else shocks.striking(n_job)[0]
    mtbf_h = FIRST_H / (n_job * failures_of_node + events * FIRST_H)
    part = f" ({n_job / n_nodes:.4g} of the nodes)" if n_job < n_nodes else ""
    above = [
        f"{outages.n_outages} outages of {n_nodes} nodes in {outages.window_h:.6g} h; nodes: "
        f"{best.family}, AIC {best.aic:.1f}",
        *passed_over,
        f"holds for any job on up to {n_nodes} of these nodes: each has its own clock. A job on "
        f"{n_job} of {n_nodes}{part}",
        f"fails every {mtbf_h:.4g} h on average over its first {FIRST_H:g} h",
        *_support(fitted.uptimes.lifetimes, mean_h, "node-hours"),
    ]
    return _of_failures(fitted, section, above, remarks)


def _check_form(form: Fit) -> None:
    """Raise ParameterError where a scenario does not take nodes that differ so."""
    limits.writable(form.distribution)
    limits.writable_factors(form.frailty)


def job_fragment(fitted: Fitted) -> Fragment:
    """Kind `job`: gaps between failures of the cluster, over the share that strikes the job.

    Raises as `failures_fragment`.
    """
    gaps, n_nodes, n_job = fitted.gaps, fitted.outages.n_nodes, fitted.n_job_nodes
    if gaps.ranking is None:
        raise ParameterError(f"there is no fit of the gaps to write: {gaps.why_not}")
    longer = 1 / fitted.job_share
    fit, passed_over = best_for_scenario(gaps.ranking.judged, limits.MTBF_H, longer)
    distribution = stretched(fit.distribution, longer)
    mean, spread = fit.mean.times(longer), fit.spread
    section: dict[str, Any] = {"kind": "job", "nodes": n_job, "family": fit.family}
    remarks = {"nodes": "of the job with this rate"}
    if isinstance(distribution, PiecewiseHazard):
        remarks["family"] = f"mean {mean.mean:.6g} h, {interval(mean)} h"
        section["ages"] = [f"{age_h} h" for age_h in _apart(distribution.from_h, 6)]
        section["hazards"] = [f"{rate:.6g} failures/h" for rate in distribution.rates_per_h]
    else:
        section |= _time(mean)
        section |= {} if spread is None else {spread.name: _digits(spread.mean), **_spread(spread)}
    section |= {"role": "any", "start": "stationary", "clock": "wall"}
    scaled = f": times are the log's times {longer:.4g}, hazards over it" if longer > 1 else ""
    above = [
        f"{fit.n_observed} gaps between failures of {n_nodes} nodes, {fit.family}: AIC "
        f"{fit.aic:.1f}, KS {fit.ks:.3f}",
        *passed_over,
        f"{fitted.share_of_zero_gaps:.1%} of all gaps are zero (nodes that failed "
        "together) and not part of the fit",
        f"for a job on {n_job} of the {n_nodes} nodes of the log, whose share of the failures is "
        f"{fitted.job_share:.4g}{scaled}",
        *_support(gaps.lifetimes, mean.mean, "h", longer),
    ]
    return _of_failures(fitted, section, above, remarks)


def best_for_scenario(
    judged: Sequence[Fit], mean_h: limits.Bounds = limits.MTBF_H, longer: float = 1.0
) -> tuple[Fit, list[str]]:
    """Return the best family valid in a scenario with times x `longer`, and why not better ones."""

    def check(fit: Fit) -> None:
        limits.writable(stretched(fit.distribution.simulable(), longer), mean_h)

    return _first(((fit.family, fit) for fit in judged), check)


def _first(candidates: Iterable[tuple[str, T]], check: Callable[[T], None]) -> tuple[T, list[str]]:
    """The first that a check does not refuse, and why those before it were."""
    reasons = []
    for name, candidate in candidates:
        try:
            check(candidate)
        except ParameterError as error:
            reasons.append(f"not {name}: {error}")
            continue
        return candidate, reasons
    raise ParameterError("no fitted family can stand in a scenario: " + "; ".join(reasons))


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


def _of_failures(
    fitted: Fitted, section: Mapping[str, Any], above: list[str], remarks: Mapping[str, str]
) -> Fragment:
    """With the log that it is of, what speaks against a fit of it, and the repairs."""
    cause, lines = fitted.cause, [f"fitted to {fitted.origin}"]
    words = "{value} ({source}: {how})"
    fact = {name: words.format_map(of) for name, of in fitted.observation.items()}
    if cause is not None:
        lines.append(f"only causes with {cause!r}; other outages censor up-times")
    lines += [
        f"nodes: {fact['n_nodes']}",
        f"window: {fitted.outages.window_h:.6g} h, from {fact['begins']} to {fact['ends']}",
        f"ages: {fact['ages']}",
    ]
    if fitted.gaps.ranking is not None and fitted.gaps.ranking.none_fits:
        lines.append(
            f"none fits: of the gaps, every family's p-value is below {P_OF_REJECTED_FIT:g}; "
            "the family here is the least bad"
        )
    if fitted.trend.differs:
        lines.append(fitted.trend.in_words())
    return Fragment({"failures": section}, [*lines, *above], remarks, [_repairs(fitted)])


def _repairs(fitted: Fitted) -> str:
    """The repair times as a comment: they belong to another section."""
    ranking = fitted.repairs.ranking
    if ranking is None:
        return f"no repair times: {fitted.repairs.why_not}"
    parametric = [fit for fit in ranking.judged if fit.family != PiecewiseHazard.family]
    try:
        best, _ = best_for_scenario(parametric, limits.REPAIR_H)
    except ParameterError as error:
        return f"no repair times: {error}"
    doubt = "; none fits the repair times" if ranking.none_fits else ""
    repair = duration(best, f"{best.mean.mean:.6g} h")
    return f"under cluster, with spares: repair: {_flow(repair)}{doubt}"


def _support(times: Lifetimes, mean_h: float, unit: str, longer: float = 1.0) -> list[str]:
    """Return remarks on the rate that the log supports, if the mean is extrapolated."""
    if not times.extrapolates(mean_h / longer):
        return []
    return [
        f"the mean of {mean_h:.4g} h is extrapolated: nothing was watched for longer than "
        f"{times.longest_h * longer:.4g} h;",
        f"the log supports one failure in {times.hours_per_end * longer:.4g} {unit}",
    ]


def duration(fit: Fit, mean: str) -> dict[str, Any]:
    """A duration as a scenario names it."""
    spread = fit.spread
    shape = {} if spread is None else {spread.name: _digits(spread.mean)}
    return {"family": fit.family, "mean": mean} | shape


def _apart(values: Sequence[float], n_digits: int) -> list[str]:
    """Increasing numbers in as few digits, `n_digits` at least, as keep them apart; or nothing."""
    written = ([f"{value:.{n}g}" for value in values] for n in range(n_digits, 18))
    return next((texts for texts in written if len(set(texts)) == len(texts)), [])


def interval(estimate: Estimate) -> str:
    """The 95 % interval in a comment."""
    return f"95 %: {estimate.low:.4g} to {estimate.high:.4g}"


def _time(mean: Estimate) -> dict[str, Any]:
    """Return an MTBF, with its interval if its ends still differ within a scenario's bounds."""
    ends = _ends(mean, limits.MTBF_H)
    interval_95 = {"mtbf_95": [f"{end} h" for end in ends]} if ends else {}
    return {"mtbf": f"{mean.mean:.6g} h", **interval_95}


def _spread(spread: Estimate) -> dict[str, Any]:
    ends = _ends(spread, limits.SPREAD_95)
    return {"spread_95": [float(end) for end in ends]} if ends else {}


def _ends(estimate: Estimate, bounds: limits.Bounds) -> list[str]:
    """Return the ends of an interval, cut at a scenario's bounds; empty if that leaves a point."""
    return _apart([min(max(end, bounds[0]), bounds[1]) for end in estimate.triple[1:]], 4)


def count(n: int, kind: str) -> str:
    """``1 save``, ``60 saves``."""
    return f"{n} {kind}{'' if n == 1 else 's'}"


def unit_of(time_h: float) -> tuple[float, str]:
    """Units in an hour, and the unit in which people say a time: up to 120 s, up to 120 min, h."""
    return next((unit for unit in SHORT_UNITS if not time_h * unit[0] >= 120), (1.0, "h"))
