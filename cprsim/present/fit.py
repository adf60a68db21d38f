"""A fit to a log of failures: how often a job fails, what fits, and the section `failures`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from math import isfinite, isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from cprsim.errors import one_line
from cprsim.fitting.causes import AGES_H, RESTART_H, SAVE_H, ByCause
from cprsim.fitting.correlation import WORST_FRACTION
from cprsim.fitting.cost_fragment import UNITS, unit_of
from cprsim.fitting.goodness import Judged
from cprsim.fitting.likelihood import Parameter
from cprsim.fitting.observation import node_hours
from cprsim.fitting.report import FitReport
from cprsim.fitting.trace_fit import Subject, TraceFit
from cprsim.present.answer import Answer
from cprsim.present.document import (
    Block,
    Column,
    Document,
    ListingBlock,
    Picture,
    Section,
    Table,
    Words,
)
from cprsim.records import NO_NUMBER, Estimate
from cprsim.results.words import count, suited
from cprsim.scenario import read_yaml

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MONTH_H = 720.0  # of 30 days
FACTS = ("n_nodes", "begins", "ends", "ages")
KINDS = {"gaps": "gap", "uptimes": "up-time", "repairs": "repair"}
TITLES = {"gaps": "Gaps between failures", "uptimes": "Up-times of nodes", "repairs": "Repairs"}
SHAPES = ("shape", "sigma")
NONE = Estimate(nan)
NEXT = "The page has the fragment for a scenario; --save FILE writes it."


def answer_of_fit(report: FitReport, files: Sequence[Path] = ()) -> Answer:
    """What a log of failures says."""
    fitted, outages = report.fitted, report.fitted.outages
    saved, of_job = sections_in(report.to_save), sections_in(report.simpler or report.fragment)
    each = [one for subject in fitted.subjects for one in entries(subject, lambda of: of.fit.mean)]
    frames = frames_of(map(times_of, fitted.subjects), [*each, *_nodes(fitted)])
    facts = {name: getattr(fitted.observation, name) for name in FACTS}
    frames["observation"] = pd.DataFrame(
        [{"fact": name, **asdict(one)} for name, one in facts.items()]
    )
    if report.by_cause is not None:
        frames["causes"] = _causes(report.by_cause)
    values = {
        "mtbf_h": report.verdict.mtbf_h,
        "n_job_nodes": report.n_job_nodes,
        "n_nodes": outages.n_nodes,
        "job_share": fitted.together.share_of_job(report.n_job_nodes, outages.n_nodes),
        "n_failures": int((outages.in_window & outages.chosen).sum()),
        "n_instants": len(fitted.together.sizes),
        "node_hours": node_hours(outages),
        "window_h": fitted.observation.window_h,
        "cause": fitted.observation.cause,
        "share_of_zero_gaps": fitted.together.share_of_zero_gaps,
        "group_sizes": fitted.together.larger.tolist(),
        "weekly_dispersion": fitted.portrait.weekly_dispersion,
        "worst_fraction": WORST_FRACTION,
        "share_of_worst": fitted.portrait.concentration,
        "trend": {**asdict(fitted.trend), "differs": fitted.trend.differs},
        "warnings": list(fitted.warnings),
        "fragment": report.to_save,
        "failures": saved.get("failures", {}),
        "scopes": saved.get("scopes", []),
        "job_fragment": report.simpler or report.fragment,
        "job_failures": of_job.get("failures", {}),
        "why_no_fragment": report.why_no_fragment or None,
    }
    tells = partial(_document, report, frames, [] if files else [NEXT])
    return Answer("fit", report.origin, tells, frames, values, files=files)


def sections_in(fragment: str | None) -> dict[str, Any]:
    """The sections of a fragment as data."""
    data = None if fragment is None else read_yaml(fragment, "fragment")[0]
    return data if isinstance(data, dict) else {}


# ------------------------------------------------------------------------------ frames

Entry = tuple[str, str, dict[str, Any], dict[str, Estimate]]
"""Kind of times, family, how well it fits, its parameters by name (times in hours)."""


def entries(subject: Subject, mean: Callable[[Judged], Estimate]) -> Iterator[Entry]:
    """The families fitted to one kind of times, the best by AIC first."""
    for one in subject.ranking.judged if subject.ranking else ():
        fit = one.fit
        numbers = {
            "log_likelihood": fit.log_likelihood, "aic": fit.aic, "bic": fit.bic, "ks": one.ks,
            "p_value": one.p_value, "rmse_survival": one.rmse_survival,
            "extrapolated": subject.lifetimes.extrapolates(fit.mean.mean),
        }  # fmt: skip
        yield subject.name, fit.family, numbers, _named(fit.parameters) | {"mean_h": mean(one)}


def _named(parameters: Iterable[Parameter]) -> dict[str, Estimate]:
    return {one.name: one for one in parameters}


def _nodes(fitted: TraceFit) -> Iterator[Entry]:
    """Weibull nodes that may differ."""
    for one in fitted.correlated.forms if fitted.correlated else ():
        beyond = one.extrapolates(fitted.outages.window_h)
        numbers = {"log_likelihood": one.log_likelihood, "aic": one.aic, "extrapolated": beyond}
        mean = {"mean_h": Estimate(one.lifetime.mean_h)}
        yield "nodes", one.name, numbers, _named(one.parameters) | mean


def frames_of(times: Iterable[dict[str, Any]], fits: Iterable[Entry]) -> dict[str, pd.DataFrame]:
    """Kinds of times, the families fitted to each, and their parameters."""
    families, parameters = [], []
    for kind, family, numbers, by_name in fits:
        families.append({"times": kind, "family": family, **numbers})
        parameters += [
            {"times": kind, "family": family, "parameter": name, **one.columns("value"),
             **{error: getattr(one, error, nan) for error in ("standard_error", "clustered_error")}}
            for name, one in by_name.items()
        ]  # fmt: skip
    each = {"times": list(times), "families": families, "parameters": parameters}
    return {name: pd.DataFrame(rows) for name, rows in each.items()}


def times_of(subject: Subject) -> dict[str, Any]:
    """One kind of times, with the family that describes it best."""
    times, ranking = subject.lifetimes, subject.ranking
    best = ranking.best if ranking else None
    shapes = [one for one in best.fit.parameters if one.name in SHAPES] if best else []
    failed = [why for _, why in ranking.failed] if ranking else [subject.why_not]
    return {
        "times": subject.name,
        "n_observed": times.n_observed,
        "n_censored": times.n - times.n_observed,
        "n_zero": times.n_zero,
        "longest_h": times.longest_h,
        "hours_per_end": times.hours_per_end,
        "family": best.fit.family if best else "none",
        "p_value": best.p_value if best else nan,
        **(best.fit.mean if best else NONE).columns("mean_h"),
        **(shapes[0] if shapes else NONE).columns("shape"),
        "none_fits": ranking.none_fits if ranking else None,
        "not_fitted": "; ".join(failed),
    }


def _causes(found: ByCause) -> pd.DataFrame:
    """A row per cause, the one to fix first on top."""
    return pd.DataFrame([
        {
            "cause": one.name,
            "n_failures": one.n_failures,
            **one.job_rate_per_h.columns("job_rate_per_h"),
            "mean_repair_h": one.mean_repair_h,
            "overhead_saved_fraction": one.saved,
            **{f"struck_within_{age_h:g}_h": one.incidence.at(age_h) for age_h in AGES_H},
            **{column: value for number in ((*one.uptimes.parameters, one.uptimes.mean)
                                             if one.uptimes else ())
               for column, value in number.columns(f"uptime_{number.name}").items()},
            "not_fitted": one.why_not,
            "fragment": fragment if isinstance(fragment, str) else f"# no fragment: {fragment}\n",
        }
        for one, fragment in zip(found.causes, found.fragments, strict=True)
    ])  # fmt: skip


# ------------------------------------------------------------------------------ tables


def table_of(frame: pd.DataFrame, caption: str, headings: Mapping[str, str]) -> Table:
    """Some columns of a frame, an estimate with its interval; grouped by `times`."""
    known = {name: text for name, text in headings.items() if name in frame}
    rows = [[_cell(row, name) for name in known] for row in frame.to_dict("records")]
    words = {name for name in known if frame[name].map(lambda value: isinstance(value, str)).any()}
    columns = [Column(text, is_number=name not in words) for name, text in known.items()]
    return Table(caption, columns, rows, grouped="times" in known)


def _cell(row: Mapping[Any, Any], name: str) -> str:
    value = row[name]
    if isinstance(value, str):
        return one_line(value, 60)
    if isinstance(value, bool):
        return "yes" if value else ""
    if f"{name}_low" in row:
        return spread(Estimate(value, row[f"{name}_low"], row[f"{name}_high"]))
    if value is None or isnan(value):
        return NO_NUMBER
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3g}"


def spread(one: Estimate, unit: str = "") -> str:
    """``33.4 h (25.8 to 43.1)``, with the digits that the interval deserves."""
    value, low, high = suited(*one.triple)
    if isfinite(one.mean) and not 0.1 <= abs(one.mean) < 1e7:
        value, low, high = (NO_NUMBER if isnan(end) else f"{end:.3g}" for end in one.triple)
    value = f"{value} {unit}" if unit and value != NO_NUMBER else value
    return value if low == high == NO_NUMBER else f"{value} ({low} to {high})"


def best_table(times: pd.DataFrame) -> Table:
    """A row per kind of times: how many, the best family, its p-value, mean and shape."""
    means = times[["mean_h", "mean_h_low", "mean_h_high"]].itertuples(index=False)
    shown = times.assign(
        what=[count(n, KINDS.get(one, one))
              for n, one in zip(times["n_observed"], times["times"], strict=True)],
        mean=[in_unit(Estimate(*each)) for each in means],
    )  # fmt: skip
    return table_of(
        shown,
        "The best family by AIC; p: share of samples from it that lie further from it",
        {"what": "", "family": "family", "p_value": "p", "mean": "mean (95 %)",
         "shape": "shape or sigma (95 %)"},
    )  # fmt: skip


def in_unit(time_h: Estimate) -> str:
    """A time in the unit that suits it."""
    unit = unit_of(time_h.mean)
    return spread(time_h.times(UNITS[unit][0]), unit)


def families_tables(frames: Mapping[str, pd.DataFrame]) -> list[Block]:
    """Kinds of times, all families of each, the best first, and their parameters."""
    times = {
        "times": "", "n_observed": "ended", "n_censored": "censored", "n_zero": "of zero",
        "longest_h": "longest, h", "hours_per_end": "hours watched per end",
        "resolution_h": "step of the log, h", "not_fitted": "not fitted",
    }  # fmt: skip
    families = {
        "times": "", "family": "family", "log_likelihood": "log-lik.", "aic": "AIC", "bic": "BIC",
        "ks": "KS", "p_value": "p", "rmse_survival": "RMSE", "extrapolated": "extrapolated",
    }  # fmt: skip
    parameters = {"times": "", "family": "family", "parameter": "parameter", "value": "value"}
    return [
        table_of(frames["times"], "Times", times),
        table_of(frames["families"], "Families, the best by AIC first", families),
        table_of(frames["parameters"], "Parameters, times in hours", parameters),
    ]


# ------------------------------------------------------------------------------ the document


def _document(
    report: FitReport, frames: Mapping[str, pd.DataFrame], following: Sequence[str]
) -> Document:
    fitted, (how_often, how_sure, what_not) = report.fitted, report.verdict.sentences
    best = best_table(frames["times"])
    n_notes = len(fitted.outages.notes)
    warned = sentences([*fitted.warnings[n_notes:], *fitted.warnings[:n_notes]])
    careful = [what_not, *_extrapolated(fitted), *warned]
    remarks = [*careful[:2], *following, *careful[2:]]
    answer, table = [how_often, how_sure], best
    causes: list[Block] = []
    if report.by_cause is not None:
        first = report.by_cause.causes[0]
        fix = (
            f"Fix {one_line(first.name, 30)} first: without it, full recovery would cost "
            f"{100 * first.saved:.2f} % of useful time less."
        )
        answer, remarks = [how_often, fix], [how_sure, *remarks]
        table, causes = _causes_table(frames["causes"], report.n_job_nodes), _uptimes(frames)
    dots = "Each failure as a dot over time, a row for each node."
    curves = "Survival with the fitted families, hazard over age, and quantiles."
    return Document(
        title=f"Failures of {report.origin}",
        question=f"How often does a job on {report.n_job_nodes} nodes of this log fail, and how?",
        answer=answer,
        table=table,
        remarks=remarks,
        sections=[
            Section("For the scenario", [
                *([ListingBlock("The fragment", report.to_save)] if report.to_save
                  else [Words([f"There is no fragment: {report.why_no_fragment}."])]),
                *([ListingBlock("Simpler, without groups and lemons", report.simpler)]
                  if report.simpler else []),
            ]),
            Section("Causes", causes),
            Section("The log", [
                Words(fitted.observation.lines()),
                Picture("Failures over time", dots, partial(_drawn, fitted), "failures"),
            ]),
            Section("What fits", [
                *([best] if causes else []),
                *families_tables(frames),
                *(Picture(TITLES[one.name], curves, partial(_drawn, one), one.name)
                  for one in fitted.subjects if one.ranking is not None),
            ]),
            Section("What one distribution can't say", [Words(_correlation(fitted))]),
        ],
    )  # fmt: skip


def _drawn(of: TraceFit | Subject) -> Figure:
    from cprsim.plots.fit import nodes_figure, subject_figure  # a terminal needs no matplotlib

    return nodes_figure(of) if isinstance(of, TraceFit) else subject_figure(of)


def sentences(warnings: Iterable[str]) -> list[str]:
    """Warnings as sentences."""
    return [f"{one[:1].upper()}{one[1:].rstrip('.')}." for one in warnings]


def _extrapolated(fitted: TraceFit) -> list[str]:
    return [
        f"{TITLES[one.name]}: the mean is extrapolated beyond {one.lifetimes.longest_h:,.6g} h, "
        f"the longest time watched; the log has one end in {one.lifetimes.hours_per_end:,.4g} h."
        for one in fitted.subjects
        if one.ranking and one.lifetimes.extrapolates(one.ranking.best.fit.mean.mean)
    ]


def _correlation(fitted: TraceFit) -> list[str]:
    larger, course, drawn = fitted.together.larger, fitted.trend, fitted.portrait
    of_trend = [
        NO_NUMBER if isnan(p) else f"{p:.2g}"
        for p in (course.p_value, course.p_laplace, course.p_pieces)
    ]
    lines = [
        f"Together: {fitted.together.share_of_zero_gaps:.1%} of the gaps are zero; "
        f"{count(len(larger), 'group')} of more than one node, the largest of "
        f"{larger.max() if len(larger) else 1}.",
        f"Nodes: the worst {WORST_FRACTION:.0%} hold {drawn.concentration:.1%} of the failures.",
        f"Halves of the log: {course.first_half} and {course.second_half} failures; trend: p "
        "{} (of a rise or fall {}, of three pieces {}).".format(*of_trend),
    ]
    if isfinite(drawn.weekly_dispersion):
        lines.append(f"Per week: variance over mean {drawn.weekly_dispersion:.2f} (1: Poisson).")
    if fitted.correlated is None:
        lines.append(f"Weibull nodes: not fitted: {fitted.why_not_correlated}.")
    return lines


def _causes_table(causes: pd.DataFrame, n_job: int) -> Table:
    columns = ["job_rate_per_h", "job_rate_per_h_low", "job_rate_per_h_high"]
    rates = causes[columns].itertuples(index=False)
    return table_of(
        causes.assign(
            per_month=[spread(Estimate(*each).times(MONTH_H)) for each in rates],
            saved=causes["overhead_saved_fraction"] * 100,
        ),
        f"What each cause costs a job on {count(n_job, 'node')}, the one to fix first on top",
        {"cause": "cause", "n_failures": "failures", "per_month": "of the job per 30 days (95 %)",
         "mean_repair_h": "repair, h", "saved": "overhead saved, %"},
    )  # fmt: skip


def _uptimes(frames: Mapping[str, pd.DataFrame]) -> list[Block]:
    """How long nodes last until each cause."""
    lives = table_of(
        frames["causes"],
        "Up-times to each cause, the others censoring (Weibull), and the share it strikes first",
        {"cause": "cause", "uptime_shape": "shape (95 %)", "uptime_mean_h": "mean, h (95 %)",
         **{f"struck_within_{age_h:g}_h": f"by {age_h / 24:g} d" for age_h in AGES_H},
         "not_fitted": "not fitted"},
    )  # fmt: skip
    assumed = (
        "Overhead saved: what full recovery with saves at Young's interval would cost less without "
        f"the cause; assumed: a save and a restart take {SAVE_H * 60:g} and {RESTART_H * 60:g} "
        "min. 95 % intervals as if failures did not bunch."
    )
    return [lives, Words([assumed])]
