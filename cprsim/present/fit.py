"""What ``cprsim fit`` and ``cprsim presets`` print: tables for people, one object for scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from cprsim.codec import finite_or_none
from cprsim.errors import CprsimError, ParameterError
from cprsim.failures.presets import PRESETS
from cprsim.fitting.causes import AGES_H, RESTART_H, SAVE_H, CauseFragment, OfCause
from cprsim.fitting.correlated_fit import FrailtyFit
from cprsim.fitting.correlation import WORST_FRACTION
from cprsim.fitting.fragments import (
    fragment,
    job_fragment,
    nodes_of_job,
)
from cprsim.fitting.goodness import P_REJECTED, Judged
from cprsim.fitting.lifetimes import Lifetimes
from cprsim.fitting.likelihood import Parameter
from cprsim.fitting.observation import Observation, n_failures, node_hours
from cprsim.fitting.posterior_check import Compared, check_by_simulation
from cprsim.fitting.rate_change import Change
from cprsim.fitting.since_last import Since
from cprsim.fitting.trace_fit import FitVerdict, Subject, TraceFit, verdict
from cprsim.fitting.trend import Trend
from cprsim.foreign import one_line
from cprsim.present.as_json import interval
from cprsim.present.terminal import say

TITLES = {
    "gaps": "Gaps between failures of the cluster",
    "uptimes": "Up-times of the nodes",
    "repairs": "Repair times",
}


MONTH_H = 720.0  # of 30 days


@dataclass(frozen=True, slots=True)
class FitReport:
    """A fit with what is made of it for the reader."""

    fitted: TraceFit
    n_job_nodes: int
    fragment: str | None
    why_no_fragment: str
    simpler: str | None  # kind job, where `fragment` is none
    circle: tuple[Compared, ...]
    why_no_circle: str  # empty where there is one, or none was asked for
    verdict: FitVerdict
    more: tuple[str, ...] = ()  # sentences that belong to the verdict

    @classmethod
    def of(
        cls, fitted: TraceFit, origin: str, *, n_job_nodes: int | None, circle_seed: int | None
    ) -> FitReport:
        """Make the fragments, and close the circle.

        Parameters
        ----------
        fitted : the log
        origin : what it is called
        n_job_nodes : nodes of the job that the fragments are for; None for all of the log's
        circle_seed : of the simulation; None for no circle
        """
        written, why_no_fragment = _or_reason(fragment, fitted, origin, n_job_nodes)
        simpler = None
        if fitted.asks_for_correlation:
            simpler, _ = _or_reason(job_fragment, fitted, origin, n_job_nodes)
        circle, why_no_circle = _circle(fitted, circle_seed)
        n_job = nodes_of_job(n_job_nodes, fitted.outages.n_nodes)
        said = verdict(fitted, n_job)
        return cls(fitted, n_job, written, why_no_fragment, simpler, circle, why_no_circle, said)

    @property
    def text(self) -> str:
        """The fragment, or why there is none."""
        return self.fragment or f"# no fragment: {self.why_no_fragment}\n"


def print_fit(console: Console, report: FitReport) -> None:
    """Print all tables, the warnings and the fragment."""
    fitted = report.fitted
    for line in (*report.verdict.sentences, *report.more):
        say(console, line)
    for line in fitted.observation.lines():
        say(console, line)
    for warning in fitted.warnings:
        say(console, f"note: {warning}")
    for subject in fitted.subjects:
        _print_subject(console, subject)
    _print_correlation(console, fitted)
    if report.circle:
        _print_circle(console, report.circle)
        if fitted.observation.cause is not None:
            say(
                console,
                "  simulated: this cause alone, whose clocks no other cause's repair renews",
            )
    if report.why_no_circle:
        say(console, f"\nno circle: {report.why_no_circle}")
    _print_text(console, "\n" + report.text)
    if report.simpler is not None:
        _print_text(console, f"# or, simpler, without groups and lemons:\n{report.simpler}")


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


def fit_as_json(report: FitReport, figures: list[Path]) -> dict[str, Any]:
    """Everything as one object; numbers that there are not are null."""
    fitted = report.fitted
    drawn = fitted.portrait
    forms = fitted.correlated.forms if fitted.correlated else ()
    return {
        "verdict": {
            "sentences": list(report.verdict.sentences),
            "mtbf_of_job_h": finite_or_none(report.verdict.mtbf_h.mean),
            "low_h": finite_or_none(report.verdict.mtbf_h.low),
            "high_h": finite_or_none(report.verdict.mtbf_h.high),
        },
        "exposure": {
            "failures": n_failures(fitted.outages),
            "instants": len(fitted.together.sizes),
            "node_hours": node_hours(fitted.outages),
        },
        "observation": _observation_object(fitted.observation),
        **{subject.name: _subject_object(subject) for subject in fitted.subjects},
        "groups": {
            "share_of_zero_gaps": fitted.together.share_of_zero_gaps,
            "sizes": fitted.together.larger.tolist(),
        },
        "weekly_dispersion": finite_or_none(drawn.weekly_dispersion),
        "concentration": {"worst_fraction": WORST_FRACTION, "share": drawn.concentration},
        "nodes": [
            {
                "name": form.name,
                "log_likelihood": form.log_likelihood,
                "aic": form.aic,
                "parameters": {p.name: _interval(p) for p in form.parameters},
                "mean_h": finite_or_none(form.lifetime.mean_h),
                "extrapolated": _is_beyond(form, fitted),
                "fitted_every": form.fitted_every,
            }
            for form in forms
        ],
        "trend": _trend_object(fitted.trend),
        "circle": [_compared_object(one) for one in report.circle],
        "no_circle": report.why_no_circle or None,
        "notes": list(fitted.warnings),
        "fragment_for": {
            "nodes": report.n_job_nodes,
            "of_nodes": fitted.outages.n_nodes,
            "share_of_failures": fitted.together.share_of_job(
                report.n_job_nodes, fitted.outages.n_nodes
            ),
        },
        "fragment": report.text,
        "job_fragment": report.simpler or report.text,
        "figures": [str(path) for path in figures],
    }


def _observation_object(observed: Observation) -> dict[str, Any]:
    facts = {
        "nodes": observed.n_nodes,
        "begins": observed.begins,
        "ends": observed.ends,
        "ages": observed.ages,
    }
    return {
        **{
            name: {"value": fact.value, "source": fact.source.value, "how": fact.how}
            for name, fact in facts.items()
        },
        "window_h": observed.window_h,
        "cause": observed.cause,
    }


def _trend_object(trend: Trend) -> dict[str, Any]:
    return {
        "first_half": trend.first_half,
        "second_half": trend.second_half,
        "differs": trend.differs,
        "p_value": finite_or_none(trend.p_value),
        "p_laplace": finite_or_none(trend.p_laplace),
        "p_pieces": finite_or_none(trend.p_pieces),
        "laplace_z": finite_or_none(trend.laplace_z),
        "borders_h": list(trend.borders_h),
        "rates_per_h": list(trend.rates_per_h),
    }


def _compared_object(one: Compared) -> dict[str, Any]:
    numbers = {"trace": one.trace, **one.simulated.by_name}
    known = {name: finite_or_none(value) for name, value in numbers.items()}
    return {"name": one.name, **known, "inside": one.inside}


def _is_beyond(form: FrailtyFit, fitted: TraceFit) -> bool:
    return form.lifetime.mean_h > fitted.outages.window_h


def print_presets(console: Console) -> None:
    """Print the presets with their sources."""
    for one in PRESETS:
        shape = "" if one.shape is None else f", shape {one.shape:.3g}"
        say(console, f"{one.name}: {one.family}, mean {one.mean_h:.4g} h{shape}, per {one.of}")
        say(console, f"    {one.note} ({one.mark}; {one.source})")


def _print_text(console: Console, text: str) -> None:
    """Print YAML as it is: never wrapped."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _table(first: str, *others: str) -> Table:
    """A table whose first column names the row, all others being numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first)
    for heading in others:
        table.add_column(heading, justify="right")
    return table


def _or_reason(
    write: Callable[[TraceFit, str, int | None], str],
    fitted: TraceFit,
    origin: str,
    n_job_nodes: int | None,
) -> tuple[str | None, str]:
    try:
        return write(fitted, origin, n_job_nodes), ""
    except ParameterError as error:
        return None, str(error)


def _print_subject(console: Console, subject: Subject) -> None:
    times = subject.lifetimes
    say(
        console,
        f"\n{TITLES[subject.name]}: {times.n_observed} ended, {times.n - times.n_observed} "
        f"censored, {times.n_zero} of zero left out",
    )
    if subject.ranking is None:
        say(console, f"  not fitted: {subject.why_not}")
        return
    table = _table("family", "log-lik.", "AIC", "BIC", "KS", "p", "RMSE")
    for judged in subject.ranking.judged:
        table.add_row(*ranking_cells(judged))
    console.print(table)
    if subject.ranking.none_fits:
        say(
            console,
            f"  none fits: every p is below {P_REJECTED:g}; the first is the least bad by AIC",
        )
    say(console, "  with 95 % intervals, times in hours:")
    for judged in subject.ranking.judged:
        beyond = times.extrapolates(judged.fit.mean.mean)
        say(console, f"  {_parameters(judged)}{' (extrapolated)' if beyond else ''}")
    if any(times.extrapolates(judged.fit.mean.mean) for judged in subject.ranking.judged):
        say(
            console,
            f"  extrapolated: beyond {times.longest_h:.6g} h, the longest time watched; what the "
            f"log supports is one end in {times.hours_per_end:.4g} h of watching",
        )
    for _, reason in subject.ranking.failed:
        say(console, f"  {reason}")


def ranking_cells(judged: Judged) -> list[str]:
    """Family, log-likelihood, AIC, BIC, KS distance, p-value, RMSE of survival."""
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
    return f"{judged.fit.family}: {_intervals((*judged.fit.parameters, judged.fit.mean))}"


def _intervals(parameters: Iterable[Parameter]) -> str:
    return ", ".join(f"{p.name} {p.mean:.4g} [{p.low:.4g}, {p.high:.4g}]" for p in parameters)


def _print_correlation(console: Console, fitted: TraceFit) -> None:
    drawn, larger = fitted.portrait, fitted.together.larger
    say(
        console,
        f"\nTogether: {fitted.together.share_of_zero_gaps:.1%} of the gaps are zero; "
        f"{len(larger)} groups of more than one node, the largest of "
        f"{larger.max() if len(larger) else 1}\n"
        f"Per week: {_weekly(drawn.weekly_dispersion)}\n"
        f"Nodes: the worst {WORST_FRACTION:.0%} hold {drawn.concentration:.1%} of the failures\n"
        f"Halves of the log: {fitted.trend.first_half} and {fitted.trend.second_half} failures; "
        f"trend: {_trend(fitted.trend)}",
    )
    if fitted.correlated is not None:
        for form in fitted.correlated.forms:
            numbers = "  ".join(
                f"{p.name} {p.mean:.3g} [{p.low:.3g}, {p.high:.3g}]" for p in form.parameters
            )
            beyond = ""
            if _is_beyond(form, fitted):
                beyond = f" (extrapolated: mean {form.lifetime.mean_h:.3g} h)"
            say(console, f"Weibull nodes, {form.name}: AIC {form.aic:.1f}  {numbers}{beyond}")
    else:
        say(console, f"Weibull nodes: not fitted: {fitted.why_not_correlated}")


def _weekly(dispersion: float) -> str:
    if not isfinite(dispersion):
        return "nothing can be said of so short a log"
    return f"variance over mean {dispersion:.2f} (1 for Poisson)"


def _trend(trend: Trend) -> str:
    if not isfinite(trend.p_value):
        return "nothing can be said of so few failures"
    return (
        f"p {trend.p_value:.2g} (of a rise or fall {trend.p_laplace:.2g}, of three pieces "
        f"{trend.p_pieces:.2g})"
    )


def _print_circle(console: Console, compared: tuple[Compared, ...]) -> None:
    """The log's statistics beside those of logs simulated from its fit."""
    table = _table("statistic", "log", "simulated", "95 % of them", "inside")
    for one in compared:
        mean, low, high = one.simulated.triple
        numbers = (f"{one.trace:.4g}", f"{mean:.4g}", f"{low:.4g} to {high:.4g}")
        inside = {True: "yes", False: "no", None: "can't be told"}[one.inside]
        table.add_row(one.name, *(number.replace("nan", "–") for number in numbers), inside)
    console.print(table)


def _subject_object(subject: Subject) -> dict[str, Any]:
    ranking = subject.ranking
    return {
        "n_observed": subject.lifetimes.n_observed,
        "n_censored": subject.lifetimes.n - subject.lifetimes.n_observed,
        "n_zero": subject.lifetimes.n_zero,
        "longest_h": subject.lifetimes.longest_h,
        "hours_per_end": finite_or_none(subject.lifetimes.hours_per_end),
        "none_fits": None if ranking is None else ranking.none_fits,
        "fitted_every": 1 if ranking is None else ranking.fitted_every,
        "resampled_every": 1 if ranking is None else ranking.resampled_every,
        "families": []
        if ranking is None
        else [_judged_object(one, subject.lifetimes) for one in ranking.judged],
        "not_fitted": {"": subject.why_not} if ranking is None else dict(ranking.failed),
    }


def _judged_object(judged: Judged, times: Lifetimes) -> dict[str, Any]:
    fit = judged.fit
    return {
        "name": fit.family,
        "log_likelihood": fit.log_likelihood,
        "aic": fit.aic,
        "bic": fit.bic,
        "ks": judged.ks,
        "p_value": finite_or_none(judged.p_value),
        "rmse_survival": judged.rmse_survival,
        "parameters": {p.name: _interval(p) for p in fit.parameters},
        "mean_h": _interval(fit.mean),
        "extrapolated": times.extrapolates(fit.mean.mean),
    }


def _interval(estimate: Parameter) -> dict[str, float | None]:
    return {
        **interval(estimate, mean="estimate"),
        "standard_error": finite_or_none(estimate.standard_error),
        "clustered_error": finite_or_none(estimate.clustered_error),
    }


# --------------------------------------------------------------------------- causes


def print_causes(
    console: Console, causes: tuple[OfCause, ...], written: tuple[CauseFragment, ...], n_job: int
) -> None:
    """The tables, and the fragments below them."""
    say(console, f"\nCauses, for a job on {n_job} node(s), the one to fix first on top:")
    table = _table("cause", "failures", "of the job per 30 days", "repair [h]", "overhead saved")
    for one in causes:
        table.add_row(*_costs(one))
    console.print(table)
    say(
        console,
        f"  overhead saved: what full recovery with saves at Young's interval would cost less "
        f"without the cause;\n  assumed: a save and a restart take {SAVE_H * 60:g} and "
        f"{RESTART_H * 60:g} min. With 95 % intervals, as if failures did not bunch.",
    )
    say(console, "Up-times to each cause, the others censoring, and the share it strikes first:")
    for one in causes:
        say(console, f"  {_fit_line(one)}")
    for each in written:
        _print_text(
            console, "\n" + (each.text or f"# {one_line(each.cause)}: no fragment: {each.why_not}")
        )


def causes_as_json(
    causes: tuple[OfCause, ...], written: tuple[CauseFragment, ...]
) -> list[dict[str, Any]]:
    """The same for scripts, in the same order."""
    return [
        {
            "cause": one.name,
            "n_failures": one.n_failures,
            "job_rate_per_h": _triple(*one.job_rate_per_h.triple),
            "mean_repair_h": finite_or_none(one.mean_repair_h),
            "overhead_saved": one.saved,
            "uptimes": None
            if one.uptimes is None
            else {p.name: _triple(*p.triple) for p in (*one.uptimes.parameters, one.uptimes.mean)},
            "not_fitted": one.why_not or None,
            "cumulative_incidence": {f"{age_h:g} h": one.incidence.at(age_h) for age_h in AGES_H},
            "fragment": each.text or f"# no fragment: {each.why_not}\n",
        }
        for one, each in zip(causes, written, strict=True)
    ]


def _triple(estimate: float, low: float, high: float) -> dict[str, float]:
    return {"estimate": estimate, "low": low, "high": high}


def _costs(one: OfCause) -> list[str]:
    rate, low, high = (per_h * MONTH_H for per_h in one.job_rate_per_h.triple)
    repair = f"{one.mean_repair_h:.3g}" if isfinite(one.mean_repair_h) else "–"
    rates = f"{rate:.3g} [{low:.3g}, {high:.3g}]"
    return [one_line(one.name, 30), str(one.n_failures), rates, repair, f"{one.saved:.2%}"]


def _fit_line(one: OfCause) -> str:
    shares = ", ".join(f"{one.incidence.at(age_h):.2%} by {age_h / 24:g} d" for age_h in AGES_H)
    if one.uptimes is None:
        return f"{one_line(one.name)}: not fitted: {one.why_not}; {shares}"
    numbers = _intervals((*one.uptimes.parameters, one.uptimes.mean))
    return f"{one_line(one.name)}: weibull: {numbers}; {shares}"


# --------------------------------------------------------------------------- since an earlier fit


def since_sentences(since: Since) -> list[str]:
    """What has changed, in words."""
    one = since.plain
    best = since.allowing or one
    verb = "has changed" if best.is_change else "has not visibly changed"
    return [
        f"Since {since.before.ends} the rate of failures {verb}: {one.n_since} in "
        f"{one.since_h:.4g} node-hours against {one.n_before} in {one.before_h:.4g}, "
        f"{one.ratio.mean:.3g} times the rate "
        f"[{best.ratio.low:.3g}, {best.ratio.high:.3g}], p {best.p_value:.2g}"
        + (f" (bunching of {since.dispersion:.2g} allowed for; p {one.p_value:.2g} without)."
           if since.allowing else "."),
        f"A doubled rate would have been noticed with a probability of {best.power_of_doubling:.0%}"
        + (f"; 80 % is reached from {best.least_noticed:.3g} times on."
           if isfinite(best.least_noticed) else "; no rate up to 100 times reaches 80 %."),
    ]  # fmt: skip


def since_as_json(since: Since) -> dict[str, Any]:
    """The same for scripts."""
    return {
        "since": since.before.ends,
        "plain": _change_object(since.plain),
        "bunching": since.dispersion,
        "allowing_for_bunching": since.allowing and _change_object(since.allowing),
    }


def _change_object(one: Change) -> dict[str, Any]:
    ratio, low, high = one.ratio.triple
    found = {"ratio": ratio, "low": low, "high": high} | {
        name: getattr(one, name) for name in ("p_value", "power_of_doubling", "least_noticed")
    }
    return {
        "n_before": one.n_before, "n_since": one.n_since, "is_change": one.is_change,
        **{name: finite_or_none(value) for name, value in found.items()},
    }  # fmt: skip
