"""What ``cprsim fit`` says as a `Document`, for terminals and pages."""

from __future__ import annotations

from functools import partial
from math import isfinite
from typing import TYPE_CHECKING

from cprsim.errors import one_line
from cprsim.fitting.causes import AGES_H, RESTART_H, SAVE_H, ByCause, OfCause
from cprsim.fitting.correlated_fit import FrailtyFit
from cprsim.fitting.correlation import WORST_FRACTION
from cprsim.fitting.families import Fit
from cprsim.fitting.goodness import P_REJECTED, Judged, Ranking
from cprsim.fitting.lifetimes import Lifetimes
from cprsim.fitting.posterior_check import Compared
from cprsim.fitting.report import FitReport
from cprsim.fitting.trace_fit import Subject, TraceFit
from cprsim.fitting.trend import Trend
from cprsim.present.document import (
    Block,
    Document,
    ListingBlock,
    Picture,
    Section,
    Table,
    Words,
    row_columns,
)
from cprsim.records import NO_NUMBER, Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADINGS = {"gaps": "Gaps", "uptimes": "Up-times", "repairs": "Repairs"}
TITLES = {
    "gaps": "Gaps between failures of the cluster",
    "uptimes": "Up-times of the nodes",
    "repairs": "Repair times",
}
MONTH_H = 720.0  # of 30 days


def document_of_fit(report: FitReport) -> Document:
    """All that a log says: how often a job fails, what fits, and the section `failures`."""
    fitted = report.fitted
    return Document(
        title=f"Failures of {report.origin}",
        question=f"How often does a job on {report.n_job_nodes} nodes of this log fail, and how?",
        answer=report.verdict.sentences,
        sections=[
            Section("The log", [Words(_of_log(fitted)), _failures_picture(fitted)]),
            *(Section(HEADINGS[one.name], _subject_blocks(one)) for one in fitted.subjects),
            Section("What one distribution can't say", [Words(_correlation_lines(fitted))]),
            Section("Simulated again", _circle_blocks(report)),
            Section("For the scenario", _fragment_blocks(report)),
            *(
                [Section("Causes", _cause_blocks(report.by_cause, report.n_job_nodes))]
                if report.by_cause
                else []
            ),
        ],
    )


def blocks_of_fit(report: FitReport) -> list[Block]:
    """The document on a terminal."""
    document = document_of_fit(report)
    return [Words([*document.answer, *_of_log(report.fitted)]), *document.blocks[1:]]


def _of_log(fitted: TraceFit) -> list[str]:
    return [*fitted.observation.lines(), *(f"note: {warning}" for warning in fitted.warnings)]


def _failures_picture(fitted: TraceFit) -> Picture:
    caption = "Each failure as a dot over time, a row for each node."
    return Picture("Failures over time", caption, partial(_drawn, fitted))


def _drawn(of: TraceFit | Subject) -> Figure:
    from cprsim.plots.fit import nodes_figure, subject_figure  # a terminal needs no matplotlib

    return nodes_figure(of) if isinstance(of, TraceFit) else subject_figure(of)


def _fragment_blocks(report: FitReport) -> list[Block]:
    if report.simpler is None:
        return [ListingBlock("The section failures", report.text)]
    simpler = f"# or, simpler, without groups and lemons:\n{report.simpler}"
    return [ListingBlock("The section failures", report.text), ListingBlock("Simpler", simpler)]


def _subject_blocks(subject: Subject) -> list[Block]:
    times, ranking = subject.lifetimes, subject.ranking
    counted = (
        f"{TITLES[subject.name]}: {times.n_observed} ended, {times.n - times.n_observed} "
        f"censored, {times.n_zero} of zero left out"
    )
    if ranking is None:
        return [Words([counted, f"not fitted: {subject.why_not}"])]
    return [
        Words([counted]),
        Table(
            f"{TITLES[subject.name]}: families, the best by AIC first",
            row_columns("family", "log-lik.", "AIC", "BIC", "KS", "p", "RMSE"),
            [_cells(judged) for judged in ranking.judged],
        ),
        Words(_parameter_lines(times, ranking)),
        Picture(
            TITLES[subject.name],
            "Survival with the fitted families, hazard over age, and quantiles.",
            partial(_drawn, subject),
        ),
    ]


def _parameter_lines(times: Lifetimes, ranking: Ranking) -> list[str]:
    """Parameters with their intervals, and what has to be known with them."""
    lines = []
    if ranking.none_fits:
        lines.append(
            f"none fits: every p is below {P_REJECTED:g}; the first is the least bad by AIC"
        )
    beyond = [times.extrapolates(judged.fit.mean.mean) for judged in ranking.judged]
    lines.append("with 95 % intervals, times in hours:")
    lines += [
        f"  {_parameters(judged)}{' (extrapolated)' if is_so else ''}"
        for judged, is_so in zip(ranking.judged, beyond, strict=True)
    ]
    if any(beyond):
        lines.append(
            f"extrapolated: beyond {times.longest_h:.6g} h, the longest time watched; what the "
            f"log supports is one end in {times.hours_per_end:.4g} h of watching"
        )
    return [*lines, *(reason for _, reason in ranking.failed)]


def _cells(judged: Judged) -> list[str]:
    """Family, log-likelihood, AIC, BIC, KS distance, p-value, RMSE of survival."""
    fit = judged.fit
    return [
        fit.family,
        f"{fit.log_likelihood:.1f}",
        f"{fit.aic:.1f}",
        f"{fit.bic:.1f}",
        f"{judged.ks:.3f}",
        f"{judged.p_value:.3f}" if isfinite(judged.p_value) else NO_NUMBER,
        f"{100 * judged.rmse_survival:.1f} %",
    ]


def _parameters(judged: Judged) -> str:
    return f"{judged.fit.family}: {_intervals(judged.fit)}"


def _intervals(fit: Fit) -> str:
    """Parameters and mean, each with its interval."""
    return ", ".join(f"{p.name} {_in_brackets(p, digits=4)}" for p in (*fit.parameters, fit.mean))


def _in_brackets(estimate: Estimate, factor: float = 1.0, *, digits: int = 3) -> str:
    """``1.23 [0.98, 1.55]``, in another unit by a factor."""
    mean, low, high = (f"{value * factor:.{digits}g}" for value in estimate.triple)
    return f"{mean} [{low}, {high}]"


def _correlation_lines(fitted: TraceFit) -> list[str]:
    drawn, larger = fitted.portrait, fitted.together.larger
    lines = [
        f"Together: {fitted.together.share_of_zero_gaps:.1%} of the gaps are zero; "
        f"{len(larger)} groups of more than one node, the largest of "
        f"{larger.max() if len(larger) else 1}",
        f"Per week: {_weekly(drawn.weekly_dispersion)}",
        f"Nodes: the worst {WORST_FRACTION:.0%} hold {drawn.concentration:.1%} of the failures",
        f"Halves of the log: {fitted.trend.first_half} and {fitted.trend.second_half} failures; "
        f"trend: {_trend(fitted.trend)}",
    ]
    if fitted.correlated is None:
        return [*lines, f"Weibull nodes: not fitted: {fitted.why_not_correlated}"]
    return [*lines, *(_form_line(form, fitted) for form in fitted.correlated.forms)]


def _form_line(form: FrailtyFit, fitted: TraceFit) -> str:
    numbers = "  ".join(f"{p.name} {_in_brackets(p)}" for p in form.parameters)
    beyond = ""
    if form.extrapolates(fitted.outages.window_h):
        beyond = f" (extrapolated: mean {form.lifetime.mean_h:.3g} h)"
    return f"Weibull nodes, {form.name}: AIC {form.aic:.1f}  {numbers}{beyond}"


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


def _circle_blocks(report: FitReport) -> list[Block]:
    """The log's statistics beside those of logs simulated from its fit."""
    if report.why_no_circle:
        return [Words([f"no circle: {report.why_no_circle}"])]
    if not report.circle:
        return []
    alone = "simulated: this cause alone, whose clocks no other cause's repair renews"
    return [
        Table(
            "The log beside logs simulated from its fit",
            row_columns("statistic", "log", "simulated", "95 % of them", "inside"),
            [_compared_cells(one) for one in report.circle],
        ),
        Words([alone] if report.fitted.observation.cause is not None else []),
    ]


def _compared_cells(one: Compared) -> list[str]:
    mean, low, high = one.simulated.triple
    numbers = (f"{one.trace:.4g}", f"{mean:.4g}", f"{low:.4g} to {high:.4g}")
    inside = {True: "yes", False: "no", None: "can't be told"}[one.inside]
    return [one.name, *(number.replace("nan", NO_NUMBER) for number in numbers), inside]


# --------------------------------------------------------------------------- causes


def _cause_blocks(found: ByCause, n_job: int) -> list[Block]:
    """What each costs, its up-times, and the fragments."""
    first = f"Causes, for a job on {n_job} node(s), the one to fix first on top:"
    return [
        Words([first]),
        Table(
            "What each cause costs the job",
            row_columns(
                "cause", "failures", "of the job per 30 days", "repair [h]", "overhead saved"
            ),
            [_costs(one) for one in found.causes],
        ),
        Words([
            "overhead saved: what full recovery with saves at Young's interval would cost less "
            f"without the cause; assumed: a save and a restart take {SAVE_H * 60:g} and "
            f"{RESTART_H * 60:g} min. With 95 % intervals, as if failures did not bunch.",
            "Up-times to each cause, the others censoring, and the share it strikes first:",
            *(f"  {_fit_line(one)}" for one in found.causes),
        ]),
        ListingBlock("A source for each cause", found.fragment or "# no fragment"),
    ]  # fmt: skip


def _costs(one: OfCause) -> list[str]:
    repair = f"{one.mean_repair_h:.3g}" if isfinite(one.mean_repair_h) else NO_NUMBER
    rates = _in_brackets(one.job_rate_per_h, MONTH_H)
    return [one_line(one.name, 30), str(one.n_failures), rates, repair, f"{one.saved:.2%}"]


def _fit_line(one: OfCause) -> str:
    shares = ", ".join(f"{one.incidence.at(age_h):.2%} by {age_h / 24:g} d" for age_h in AGES_H)
    if one.uptimes is None:
        return f"{one_line(one.name)}: not fitted: {one.why_not}; {shares}"
    return f"{one_line(one.name)}: weibull: {_intervals(one.uptimes)}; {shares}"
