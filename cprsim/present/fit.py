"""A fit to a log of failures, or of saves and loads: what fits, and the section of a scenario."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from cprsim.errors import one_line
from cprsim.fitting.causes import AGES_H, RESTART_H, SAVE_H, ByCause
from cprsim.fitting.correlated_fit import FrailtyFit
from cprsim.fitting.correlation import WORST_FRACTION
from cprsim.fitting.cost_fit import CostFit, mean_of
from cprsim.fitting.cost_fragment import UNITS, bandwidth_in_words, unit_of
from cprsim.fitting.families import Fit
from cprsim.fitting.report import Fitted
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
    row_columns,
    word_columns,
)
from cprsim.records import NO_NUMBER, Estimate
from cprsim.results.words import count, suited
from cprsim.scenario.yaml_text import read_yaml

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MONTH_H = 720.0  # of 30 days
FACTS = ("n_nodes", "begins", "ends", "ages")
SHAPES = ("shape", "sigma")
NONE = Estimate(nan)
NEXT = "The page has the fragment for a scenario; --save FILE writes it."
Frames = dict[str, pd.DataFrame]


def answer_of_fit(fitted: Fitted, files: Sequence[Path] = ()) -> Answer:
    """What a log of failures says."""
    trace, job, n_nodes = fitted.trace, fitted.n_job_nodes, fitted.trace.outages.n_nodes
    frames = _frames(trace.subjects, _nodes(trace))
    frames["observation"] = pd.DataFrame(
        [{"fact": name, **asdict(getattr(trace.observation, name))} for name in FACTS]
    )
    if fitted.by_cause is not None:
        frames["causes"] = _causes(fitted.by_cause)
    saved, of_job = _sections(fitted.fragment), _sections(fitted.job_fragment)
    values = {
        "mtbf_h": fitted.verdict.mtbf_h,
        "n_job_nodes": job,
        "n_nodes": n_nodes,
        "job_share": trace.together.share_of_job(job, n_nodes),
        "n_failures": trace.n_failures,
        "n_instants": len(trace.together.sizes),
        "node_hours": trace.node_hours,
        "window_h": trace.observation.window_h,
        "cause": trace.observation.cause,
        "share_of_zero_gaps": trace.together.share_of_zero_gaps,
        "group_sizes": trace.together.larger.tolist(),
        "weekly_dispersion": trace.portrait.weekly_dispersion,
        "worst_fraction": WORST_FRACTION,
        "share_of_worst": trace.portrait.concentration,
        "trend": {**asdict(trace.trend), "differs": trace.trend.differs},
        "warnings": list(fitted.warnings),
        "fragment": fitted.fragment,
        "failures": saved.get("failures", {}),
        "scopes": saved.get("scopes", []),
        "job_fragment": fitted.job_fragment,
        "job_failures": of_job.get("failures", {}),
        "why_no_fragment": fitted.why_no_fragment or None,
    }
    tells = partial(_of_failures, fitted, frames, [] if files else [NEXT])
    return Answer("fit", fitted.origin, tells, frames, values, files=files)


def answer_of_costs(
    fits: Sequence[CostFit],
    origin: str,
    fragment: str,
    notes: Sequence[str],
    files: Sequence[Path] = (),
) -> Answer:
    """What saves and loads cost by a log; notes are of the rows that were left out."""
    frames = _frames(fits)
    warnings = [*(note for one in fits for note in one.notes), *notes]
    costs = _sections(fragment).get("costs", {})
    values = {"warnings": warnings, "fragment": fragment, "costs": costs}
    known = [bandwidth_in_words(one.name, one.bandwidth) for one in fits if one.bandwidth]
    said = [*warnings, *known, *([] if files else [NEXT])]
    tells = partial(_of_costs, origin, frames, said, fragment)
    return Answer("fit", origin, tells, frames, values, files=files)


def _sections(fragment: str | None) -> dict[str, Any]:
    """The sections of a fragment as data."""
    data = None if fragment is None else read_yaml(fragment, "fragment")[0]
    return data if isinstance(data, dict) else {}


# ------------------------------------------------------------------------------ frames

Entry = tuple[str, str, dict[str, Any], dict[str, Estimate]]
"""Kind of times, family, how well it fits, its parameters by name (times in hours)."""


def _entries(one: Subject | CostFit) -> Iterator[Entry]:
    """A fixed time where it is the choice, then the families fitted, the best by AIC first."""
    if isinstance(one, CostFit) and one.fixed is not None:
        numbers = {"log_likelihood": 1 - one.fixed_aic / 2, "aic": one.fixed_aic}
        yield one.name, "fixed", numbers, {"time_h": one.fixed}
    for judged in one.ranking.judged if one.ranking else ():
        fit = judged.fit
        numbers = {
            "log_likelihood": fit.log_likelihood, "aic": fit.aic, "bic": fit.bic, "ks": judged.ks,
            "p_value": judged.p_value, "rmse_survival": judged.rmse_survival,
            "extrapolated": one.lifetimes.extrapolates(fit.mean.mean),
        }  # fmt: skip
        mean = mean_of(judged) if isinstance(one, CostFit) else fit.mean
        yield one.name, fit.family, numbers, {**_named(fit), "mean_h": mean}


def _nodes(trace: TraceFit) -> Iterator[Entry]:
    """Weibull nodes that may differ."""
    for one in trace.correlated.forms if trace.correlated else ():
        beyond = one.extrapolates(trace.outages.window_h)
        numbers = {"log_likelihood": one.log_likelihood, "aic": one.aic, "extrapolated": beyond}
        mean = Estimate(one.lifetime.mean_h)
        yield "nodes", one.name, numbers, {**_named(one), "mean_h": mean}


def _named(fit: Fit | FrailtyFit) -> dict[str, Estimate]:
    return {one.name: one for one in fit.parameters}


def _frames(kinds: Sequence[Subject | CostFit], besides: Iterable[Entry] = ()) -> Frames:
    """Kinds of times, the families fitted to each, and their parameters."""
    families, parameters = [], []
    for kind, family, numbers, by_name in chain(*map(_entries, kinds), besides):
        families.append({"times": kind, "family": family, **numbers})
        parameters += [
            {"times": kind, "family": family, "parameter": name, **one.columns("value"),
             **{error: getattr(one, error, nan) for error in ("standard_error", "clustered_error")}}
            for name, one in by_name.items()
        ]  # fmt: skip
    each = {"times": [_times(one) for one in kinds], "families": families, "parameters": parameters}
    return {name: pd.DataFrame(rows) for name, rows in each.items()}


def _times(one: Subject | CostFit) -> dict[str, Any]:
    """One kind of times, with the family that describes it best."""
    times, best = one.lifetimes, one.best
    shapes = [each for each in best.fit.parameters if each.name in SHAPES] if best else []
    row = {
        "times": one.name,
        "n_observed": times.n_observed,
        "n_censored": times.n - times.n_observed,
        "n_zero": times.n_zero,
        "longest_h": times.longest_h,
        "hours_per_end": times.hours_per_end,
        "family": one.family,
        "p_value": best.p_value if best else nan,
        **(one.mean or NONE).columns("mean_h"),
        **(shapes[0] if shapes else NONE).columns("shape"),
        "none_fits": one.ranking.none_fits if one.ranking else None,
        "not_fitted": one.not_fitted,
    }
    if isinstance(one, CostFit):
        row["resolution_h"] = one.resolution_h
        if (of := one.bandwidth) is not None:
            row |= {"n_with_bytes": of.n, **of.rate.columns("bytes_per_h")}
            row |= {"mean_bytes": of.mean_bytes, "duration_cv": of.duration_cv}
            row["per_byte_cv"] = of.per_byte_cv
    return row


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


def _table(frame: pd.DataFrame, caption: str, headings: Mapping[str, str]) -> Table:
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
        return _spread(row, name)
    if isnan(value):
        return NO_NUMBER
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3g}"


def _spread(row: Mapping[Any, Any], name: str, factor: float = 1.0, unit: str = "") -> str:
    """``33.4 h (25.8 to 43.1)``, in another unit."""
    ends = [factor * row[column] for column in (name, f"{name}_low", f"{name}_high")]
    value, low, high = (f"{end:.3g}" for end in ends) if abs(ends[0]) >= 1e7 else suited(*ends)
    return f"{value}{unit}" if low == high == NO_NUMBER else f"{value}{unit} ({low} to {high})"


def _mean(row: Mapping[Any, Any]) -> str:
    """The mean in the unit that suits it."""
    unit = unit_of(row["mean_h"])
    return NO_NUMBER if isnan(row["mean_h"]) else _spread(row, "mean_h", UNITS[unit][0], f" {unit}")


def _best(times: pd.DataFrame) -> Table:
    """A row per kind of times: how many, and the best family."""
    rows = [
        [row["times"], f"{row['n_observed']:,}", row["family"], _cell(row, "p_value"), _mean(row),
         _spread(row, "shape")]
        for row in times.to_dict("records")
    ]  # fmt: skip
    numbers = map(Column, ("p", "mean (95 %)", "shape (95 %)"))
    columns = [*row_columns("times", "number"), *word_columns("family"), *numbers]
    return Table("The best family by AIC; p by parametric bootstrap", columns, rows)


def _what_fits(frames: Frames) -> list[Block]:
    """All families of each kind of times, and their parameters."""
    families = {
        "times": "", "family": "family", "log_likelihood": "log-lik.", "aic": "AIC", "bic": "BIC",
        "ks": "KS", "p_value": "p", "rmse_survival": "RMSE", "extrapolated": "extrapolated",
    }  # fmt: skip
    parameters = {"times": "", "family": "family", "parameter": "parameter", "value": "value"}
    not_fitted = frames["times"].query("not_fitted != ''")
    return [
        _table(frames["families"], "Families, the best by AIC first", families),
        _table(frames["parameters"], "Parameters, times in hours (95 %)", parameters),
        Words([f"Not fitted to {one.times}: {one.not_fitted}." for one in not_fitted.itertuples()]),
    ]


def _of_causes(causes: pd.DataFrame) -> Table:
    """What each costs a job, and whether nodes wear out by it."""
    shown = causes.assign(
        monthly=[_spread(row, "job_rate_per_h", MONTH_H) for row in causes.to_dict("records")],
        saved=causes["overhead_saved_fraction"] * 100,
    )
    headings = {
        "cause": "cause", "n_failures": "failures", "monthly": "of the job per 30 days (95 %)",
        "mean_repair_h": "repair, h", "saved": "overhead saved, %",
        "uptime_shape": "shape (95 %)",
    }  # fmt: skip
    return _table(shown, "What each cause costs the job; shape of Weibull up-times", headings)


# ------------------------------------------------------------------------------ the documents


def _of_failures(fitted: Fitted, frames: Frames, following: Sequence[str]) -> Document:
    trace, (how_often, how_sure, what_not) = fitted.trace, fitted.verdict.sentences
    answer, table = [how_often, how_sure], _best(frames["times"])
    remarks, besides = [what_not, *_sentences(fitted.warnings), *following], list[Block]()
    if fitted.by_cause is not None:
        first = fitted.by_cause.causes[0]
        fix = (
            f"Fix {one_line(first.name, 30)} first: without it, full recovery would cost "
            f"{100 * first.saved:.2f} % of useful time less."
        )
        assumed = (
            "Overhead saved: of full recovery with saves at Young's interval, if a save takes "
            f"{SAVE_H * 60:g} min and a restart {RESTART_H * 60:g} min."
        )
        answer, remarks = [how_often, fix], [how_sure, assumed, *remarks]
        table, besides = _of_causes(frames["causes"]), [table]
    scenario: list[Block] = [Words([f"There is no fragment: {fitted.why_no_fragment}."])]
    if fitted.fragment is not None:
        scenario = [ListingBlock("The fragment", fitted.fragment)]
    if fitted.job_fragment is not None and fitted.job_fragment != fitted.fragment:
        scenario.append(ListingBlock("Simpler, without groups and lemons", fitted.job_fragment))
    dots = "Each failure as a dot over time, a row for each node."
    curves = "Survival with the fitted families, hazard over age, and quantiles."
    pictures = [
        Picture("Failures over time", dots, partial(_drawn, trace), "failures"),
        *(Picture(one.title, curves, partial(_drawn, one), one.name)
          for one in trace.subjects if one.ranking is not None),
    ]  # fmt: skip
    return Document(
        title=f"Failures of {fitted.origin}",
        question=f"How often does a job on {fitted.n_job_nodes} nodes of this log fail, and how?",
        answer=answer,
        table=table,
        remarks=remarks,
        sections=[
            Section("For the scenario", scenario),
            Section("What fits", [*besides, *_what_fits(frames), *pictures]),
            Section("What one distribution can't say", [Words(_correlation(trace))]),
        ],
    )


def _of_costs(origin: str, frames: Frames, said: Sequence[str], fragment: str) -> Document:
    rows = frames["times"].to_dict("records")
    each = [
        f"{count(n := row['n_observed'], row['times'])} take{'s' if n == 1 else ''} {_mean(row)}"
        for row in rows
    ]
    return Document(
        title=f"Costs of {origin}",
        question="What do the saves and loads of this log cost?",
        answer=[f"{'; '.join(each)} on average, with 95 % intervals."],
        table=_best(frames["times"]),
        remarks=_sentences(said),
        sections=[
            Section("For the scenario", [ListingBlock("The section costs", fragment)]),
            Section("What fits", _what_fits(frames)),
        ],
    )


def _drawn(of: TraceFit | Subject) -> Figure:
    from cprsim.plots.fit import nodes_figure, subject_figure  # a terminal needs no matplotlib

    return nodes_figure(of) if isinstance(of, TraceFit) else subject_figure(of)


def _sentences(warnings: Iterable[str]) -> list[str]:
    return [f"{one[:1].upper()}{one[1:].rstrip('.')}." for one in warnings]


def _correlation(trace: TraceFit) -> list[str]:
    together, course = trace.together, trace.trend
    p_value = NO_NUMBER if isnan(course.p_value) else f"{course.p_value:.2g}"
    lines = [
        f"{count(len(together.larger), 'group')} of nodes failed together, the largest of "
        f"{max(together.sizes)}: {together.share_of_zero_gaps:.1%} of the gaps are zero.",
        f"The worst {WORST_FRACTION:.0%} of the nodes have {trace.portrait.concentration:.1%} of "
        "the failures.",
        f"The halves of the log have {course.first_half} and {course.second_half} failures; p of "
        f"no trend: {p_value}.",
    ]
    unknown = [f"Nodes that differ: not fitted: {trace.why_not_correlated}."]
    return lines if trace.correlated else lines + unknown
