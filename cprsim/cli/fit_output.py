"""What ``cprsim fit`` prints: tables for people, one object for scripts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from cprsim.errors import ParameterError
from cprsim.failures.presets import PRESETS
from cprsim.fitting.circle import Compared
from cprsim.fitting.correlation import WORST_FRACTION, portrait_of
from cprsim.fitting.fragments import asks_for_correlation, fragment, job_fragment
from cprsim.fitting.goodness import Judged
from cprsim.fitting.likelihood import Estimate
from cprsim.fitting.trace_fit import Subject, TraceFit

TITLES = {
    "gaps": "Gaps between failures of the cluster",
    "uptimes": "Up-times of the nodes",
    "repairs": "Repair times",
}


def print_fit(
    console: Console, fitted: TraceFit, origin: str, compared: tuple[Compared, ...] = ()
) -> None:
    """Print all tables, the warnings and the fragment."""
    for warning in fitted.warnings:
        _say(console, f"note: {warning}")
    for subject in fitted.subjects:
        _print_subject(console, subject)
    _print_correlation(console, fitted)
    if compared:
        _print_circle(console, compared)
    _say(console, "\n" + _or_reason(fragment, fitted, origin))
    if asks_for_correlation(fitted):
        simpler = _or_reason(job_fragment, fitted, origin).splitlines()
        _say(console, "\n".join(["# or, simpler, without groups and lemons:", *simpler]))


def as_object(
    fitted: TraceFit, origin: str, compared: tuple[Compared, ...], figures: list[Path]
) -> dict[str, Any]:
    """Everything as one object; numbers that there are not are null."""
    drawn = portrait_of(fitted.outages)
    forms = fitted.correlated.forms if fitted.correlated else ()
    return {
        **{subject.name: _subject_object(subject) for subject in fitted.subjects},
        "groups": {
            "share_of_zero_gaps": fitted.together.share_of_zero_gaps,
            "sizes": fitted.together.larger.tolist(),
        },
        "weekly_dispersion": _number(drawn.weekly_dispersion),
        "concentration": {"worst_fraction": WORST_FRACTION, "share": drawn.concentration},
        "nodes": [
            {
                "name": form.name,
                "log_likelihood": form.log_likelihood,
                "aic": form.aic,
                "parameters": {p.name: _interval(p) for p in form.parameters},
            }
            for form in forms
        ],
        "trend": {
            "first_half": fitted.trend.first_half,
            "second_half": fitted.trend.second_half,
            "p_value": fitted.trend.p_value,
        },
        "circle": [{**asdict(one), "inside": one.inside} for one in compared],
        "notes": list(fitted.warnings),
        "fragment": _or_reason(fragment, fitted, origin),
        "job_fragment": _or_reason(job_fragment, fitted, origin),
        "figures": [str(path) for path in figures],
    }


def print_presets(console: Console) -> None:
    """Print the presets with their sources."""
    for one in PRESETS:
        shape = "" if one.shape is None else f", shape {one.shape:.3g}"
        _say(console, f"{one.name}: {one.family}, mean {one.mean_h:.4g} h{shape}, per {one.of}")
        _say(console, f"    {one.note} ({one.mark}; {one.source})")


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _or_reason(write: Callable[[TraceFit, str], str], fitted: TraceFit, origin: str) -> str:
    try:
        return write(fitted, origin)
    except ParameterError as error:
        return f"# no fragment: {error}\n"


def _print_subject(console: Console, subject: Subject) -> None:
    times = subject.lifetimes
    _say(
        console,
        f"\n{TITLES[subject.name]}: {times.n_observed} ended, {times.n - times.n_observed} "
        f"censored, {times.n_zero} of zero left out",
    )
    if subject.ranking is None:
        _say(console, f"  not fitted: {subject.why_not}")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("family", "log-lik.", "AIC", "BIC", "KS", "p", "RMSE"):
        table.add_column(heading, justify="left" if heading == "family" else "right")
    for judged in subject.ranking.judged:
        table.add_row(*_cells(judged))
    console.print(table)
    _say(console, "  with 95 % intervals, times in hours:")
    for judged in subject.ranking.judged:
        _say(console, f"  {_parameters(judged)}")
    for _, reason in subject.ranking.failed:
        _say(console, f"  {reason}")


def _cells(judged: Judged) -> list[str]:
    fit = judged.fit
    return [
        fit.family,
        f"{fit.log_likelihood:.1f}",
        f"{fit.aic:.1f}",
        f"{fit.bic:.1f}",
        f"{judged.ks:.3f}",
        f"{judged.p_value:.3f}" if isfinite(judged.p_value) else "–",
        f"{100 * judged.rmse_survival:.1f} %",
    ]


def _parameters(judged: Judged) -> str:
    shown = (*judged.fit.parameters, judged.fit.mean)
    numbers = (f"{p.name} {p.estimate:.4g} [{p.low:.4g}, {p.high:.4g}]" for p in shown)
    return f"{judged.fit.family}: {', '.join(numbers)}"


def _print_correlation(console: Console, fitted: TraceFit) -> None:
    drawn, larger = portrait_of(fitted.outages), fitted.together.larger
    _say(
        console,
        f"\nTogether: {fitted.together.share_of_zero_gaps:.1%} of the gaps are zero; "
        f"{len(larger)} groups of more than one node, the largest of "
        f"{larger.max() if len(larger) else 1}\n"
        f"Per week: variance over mean {drawn.weekly_dispersion:.2f} (1 for Poisson)\n"
        f"Nodes: the worst {WORST_FRACTION:.0%} hold {drawn.concentration:.1%} of the failures\n"
        f"Halves of the log: {fitted.trend.first_half} and {fitted.trend.second_half} failures, "
        f"p {fitted.trend.p_value:.2g}",
    )
    if fitted.correlated is not None:
        for form in fitted.correlated.forms:
            numbers = "  ".join(
                f"{p.name} {p.estimate:.3g} [{p.low:.3g}, {p.high:.3g}]" for p in form.parameters
            )
            _say(console, f"Weibull nodes, {form.name}: AIC {form.aic:.1f}  {numbers}")


def _print_circle(console: Console, compared: tuple[Compared, ...]) -> None:
    """The log's statistics beside those of logs simulated from its fit."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("statistic", "log", "simulated", "95 % of them", "inside"):
        table.add_column(heading, justify="left" if heading == "statistic" else "right")
    for one in compared:
        numbers = (f"{one.trace:.4g}", f"{one.mean:.4g}", f"{one.low:.4g} to {one.high:.4g}")
        table.add_row(one.name, *numbers, "yes" if one.inside else "no")
    console.print(table)


def _subject_object(subject: Subject) -> dict[str, Any]:
    ranking = subject.ranking
    return {
        "n_observed": subject.lifetimes.n_observed,
        "n_censored": subject.lifetimes.n - subject.lifetimes.n_observed,
        "n_zero": subject.lifetimes.n_zero,
        "families": [] if ranking is None else [_judged_object(one) for one in ranking.judged],
        "not_fitted": {"": subject.why_not} if ranking is None else dict(ranking.failed),
    }


def _judged_object(judged: Judged) -> dict[str, Any]:
    fit = judged.fit
    return {
        "name": fit.family,
        "log_likelihood": fit.log_likelihood,
        "aic": fit.aic,
        "bic": fit.bic,
        "ks": judged.ks,
        "p_value": _number(judged.p_value),
        "rmse_survival": judged.rmse_survival,
        "parameters": {p.name: _interval(p) for p in fit.parameters},
        "mean_h": _interval(fit.mean),
    }


def _interval(estimate: Estimate) -> dict[str, float | None]:
    return {
        "estimate": _number(estimate.estimate),
        "low": _number(estimate.low),
        "high": _number(estimate.high),
        "standard_error": _number(estimate.standard_error),
        "clustered_error": _number(estimate.clustered_error),
    }


def _number(value: float) -> float | None:
    return float(value) if isfinite(value) else None
