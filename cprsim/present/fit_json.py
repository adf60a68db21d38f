"""What ``cprsim fit`` says for scripts: one object; numbers that there are not are null."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cprsim.files import finite_or_none
from cprsim.fitting.causes import AGES_H, ByCause
from cprsim.fitting.correlation import WORST_FRACTION
from cprsim.fitting.families import Fit
from cprsim.fitting.goodness import Judged
from cprsim.fitting.lifetimes import Lifetimes
from cprsim.fitting.likelihood import Parameter
from cprsim.fitting.observation import Observation, node_hours
from cprsim.fitting.posterior_check import Compared
from cprsim.fitting.report import FitReport
from cprsim.fitting.trace_fit import Subject
from cprsim.fitting.trend import Trend
from cprsim.records import Estimate, interval


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
            "failures": int((fitted.outages.in_window & fitted.outages.chosen).sum()),
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
                "extrapolated": form.extrapolates(fitted.outages.window_h),
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
    } | (
        {}
        if report.by_cause is None
        else {
            "causes": causes_as_json(report.by_cause),
            "fragment_of_causes": report.by_cause.fragment,
        }
    )


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


def _uptimes_object(fit: Fit) -> dict[str, Any]:
    return {p.name: _plain(p) for p in (*fit.parameters, fit.mean)}


def _plain(estimate: Estimate) -> dict[str, float | None]:
    return interval(estimate, mean="estimate")


def _interval(estimate: Parameter) -> dict[str, float | None]:
    return {
        **_plain(estimate),
        "standard_error": finite_or_none(estimate.standard_error),
        "clustered_error": finite_or_none(estimate.clustered_error),
    }


def causes_as_json(found: ByCause) -> list[dict[str, Any]]:
    """An object for each cause, in the same order."""
    return [
        {
            "cause": one.name,
            "n_failures": one.n_failures,
            "job_rate_per_h": _plain(one.job_rate_per_h),
            "mean_repair_h": finite_or_none(one.mean_repair_h),
            "overhead_saved": one.saved,
            "uptimes": one.uptimes and _uptimes_object(one.uptimes),
            "not_fitted": one.why_not or None,
            "cumulative_incidence": {f"{age_h:g} h": one.incidence.at(age_h) for age_h in AGES_H},
            "fragment": each if isinstance(each, str) else f"# no fragment: {each}\n",
        }
        for one, each in zip(found.causes, found.fragments, strict=True)
    ]
