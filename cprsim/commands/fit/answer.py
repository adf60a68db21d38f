"""A fit to a log of failures, or of saves and loads: distributions, and a scenario's section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cprsim.commands.fit.figures import nodes_figure, subject_figure
from cprsim.errors import ParameterError, one_line
from cprsim.job.records import NO_NUMBER
from cprsim.logs.fit.cost_fit import CostFit
from cprsim.logs.fit.fragments import Fragment, job_fragment, unit_of
from cprsim.logs.fit.observation import WORST_FRACTION
from cprsim.logs.fit.report import Fitted, frames_of, sentences
from cprsim.pages.answer import Answer
from cprsim.pages.document import Block, Document, ListingBlock, Picture, Section, Table, Words
from cprsim.results.words import count, percent, suited

TITLES = {"gaps": "Gaps between failures", "uptimes": "Up-times of nodes", "repairs": "Repairs"}
OF_FIT = (  # values of the answer
    "mtbf_h", "n_job_nodes", "job_share", "n_failures", "cause", "share_of_zero_gaps",
    "weekly_dispersion", "share_of_worst", "worst_nodes", "contradictions",
)  # fmt: skip
OF_LOG = ("n_nodes", "node_hours", "window_h", "balance")
NEXT = "The page has the fragment for a scenario; --save FILE writes it."
Frames = dict[str, pd.DataFrame]


def answer_of_fit(fitted: Fitted, fragment: Fragment | str, files: Sequence[Path] = ()) -> Answer:
    """The answer of a fit: distributions, and the fragment or why it is missing."""
    frames = {name: pd.DataFrame(rows) for name, rows in fitted.frames.items()}
    written = None if isinstance(fragment, str) else fragment
    of_job = written
    with suppress(ParameterError):
        of_job = job_fragment(fitted)
    sections = {} if written is None else written.sections
    values = {
        **{name: getattr(fitted, name) for name in OF_FIT},
        **{name: getattr(fitted.outages, name) for name in OF_LOG},
        "n_instants": len(fitted.groups),
        "group_sizes": fitted.larger_groups.tolist(),
        "worst_fraction": WORST_FRACTION,
        "trend": {**asdict(fitted.trend), "differs": fitted.trend.differs},
        "warnings": list(fitted.warnings),
        "fragment": None if written is None else str(written),
        "failures": sections.get("failures", {}),
        "job_fragment": None if of_job is None else str(of_job),
        "job_failures": {} if of_job is None else of_job.sections["failures"],
        "why_no_fragment": fragment if isinstance(fragment, str) else None,
    }
    scenario: list[Block] = [Words([f"There is no fragment: {fragment}."])]
    if written is not None:
        scenario = [ListingBlock("The fragment", str(written))]
    if of_job is not None and str(of_job) != str(written):
        scenario.append(ListingBlock("Simpler, without groups and lemons", str(of_job)))
    make_document = partial(_of_failures, fitted, frames, scenario, [] if files else [NEXT])
    rows = {"uptimes": _uptimes(fitted)}
    return Answer("fit", fitted.origin, make_document, frames, values, rows, files=files)


def _uptimes(fitted: Fitted) -> pd.DataFrame:
    """A row per up-time: node, hours, whether a failure ended it, age when it came into view."""
    times, names = fitted.uptimes.lifetimes, fitted.outages.node_names
    unnamed = range(len(names), fitted.outages.n_nodes)  # those that never failed
    node = np.array([*names, *map(str, unnamed)], dtype=object)[times.unit]
    columns = {"hours": times.duration_h, "failed": times.observed, "entry_h": times.entry_h}
    return pd.DataFrame({"node": node, **columns}, copy=False)


def answer_of_costs(
    fits: Sequence[CostFit],
    origin: str,
    fragment: Fragment,
    notes: Sequence[str],
    files: Sequence[Path] = (),
) -> Answer:
    """Costs of saves and loads by a log; `notes` name the rows that were left out."""
    frames = {name: pd.DataFrame(rows) for name, rows in frames_of(fits).items()}
    warnings = [*(note for fit in fits for note in fit.notes), *notes]
    costs = fragment.sections["costs"]
    values = {"warnings": warnings, "fragment": str(fragment), "costs": costs}
    bandwidths = [fit.bandwidth.in_words(fit.name) for fit in fits if fit.bandwidth]
    remarks = sentences([*warnings, *bandwidths, *([] if files else [NEXT])])
    make_document = partial(_of_costs, origin, frames, remarks, str(fragment))
    return Answer("fit", origin, make_document, frames, values, files=files)


# ------------------------------------------------------------------------------ tables


def _table(frame: pd.DataFrame, caption: str, headings: Mapping[str, str]) -> Table:
    """Some columns of a frame, an estimate with its interval; grouped by `times`."""
    present = {name: text for name, text in headings.items() if name in frame}
    rows = [[_cell(row, name) for name in present] for row in frame.to_dict("records")]
    words = [
        text
        for name, text in present.items()
        if any(isinstance(value, str) for value in frame[name])
    ]
    return Table(caption, [*present.values()], rows, words, grouped="times" in present)


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
    per_hour, unit = unit_of(row["mean_h"])
    return NO_NUMBER if isnan(row["mean_h"]) else _spread(row, "mean_h", per_hour, f" {unit}")


def _best(times: pd.DataFrame) -> Table:
    """A row per kind of times: how many, and the best family."""
    rows = [
        [row["times"], f"{row['n_observed']:,}", row["family"], _cell(row, "p_value"), _mean(row),
         _spread(row, "shape")]
        for row in times.to_dict("records")
    ]  # fmt: skip
    headings = ["times", "number", "family", "p", "mean (95 %)", "shape (95 %)"]
    return Table("The best family by AIC; p by parametric bootstrap", headings, rows, ["family"])


def _what_fits(frames: Frames) -> list[Block]:
    """All families of each kind of times, and their parameters."""
    families = {
        "times": "", "family": "family", "log_likelihood": "log-lik.", "aic": "AIC", "bic": "BIC",
        "ks": "KS", "p_value": "p", "rmse_survival": "RMSE", "extrapolated": "extrapolated",
    }  # fmt: skip
    parameters = {"times": "", "family": "family", "parameter": "parameter", "value": "value"}
    words = {r"_h$": "", r"^hazard_from_(.*)$": r"hazard from age \1, 1/h", "_": " "}
    in_words = frames["parameters"].replace({"parameter": words}, regex=True)  # none, if all fixed
    not_fitted = frames["times"].query("not_fitted != ''")
    return [
        _table(frames["families"], "Families, the best by AIC first", families),
        _table(in_words, "Parameters, times in hours (95 %)", parameters),
        Words([f"Not fitted to {row.times}: {row.not_fitted}." for row in not_fitted.itertuples()]),
    ]


# ------------------------------------------------------------------------------ the documents


def _of_failures(
    fitted: Fitted, frames: Frames, scenario: Sequence[Block], following: Sequence[str]
) -> Document:
    dots = "Each failure as a dot over time, a row for each node."
    curves = "Survival with the fitted families, hazard over age, and quantiles."
    pictures = [
        Picture("Failures over time", dots, partial(nodes_figure, fitted), "failures"),
        *(Picture(title, curves, partial(subject_figure, subject, title), subject.name)
          for subject, title in zip(fitted.subjects, TITLES.values(), strict=True)
          if subject.ranking is not None),
    ]  # fmt: skip
    return Document(
        title=f"How often a job fails: {fitted.origin}",
        question=f"How often does a job on {fitted.n_job_nodes} nodes of this log fail, and how?",
        answer=[*filter(None, [fitted.much_left_out]), *fitted.answer],
        table=_best(frames["times"]),
        remarks=[*fitted.remarks, *following],
        sections=[
            Section("For the scenario", scenario),
            Section("What fits", [*_what_fits(frames), *pictures]),
            Section("Limits of a single distribution", [Words(_correlation(fitted))]),
        ],
    )


def _of_costs(origin: str, frames: Frames, remarks: Sequence[str], fragment: str) -> Document:
    rows = frames["times"].to_dict("records")
    means = [
        f"{count(n := row['n_observed'], row['times'])} take{'s' if n == 1 else ''} {_mean(row)}"
        for row in rows
    ]
    return Document(
        title=f"What saves and loads cost: {origin}",
        question="What do the saves and loads of this log cost?",
        answer=[f"{'; '.join(means)} on average, with 95 % intervals."],
        table=_best(frames["times"]),
        remarks=remarks,
        sections=[
            Section("For the scenario", [ListingBlock("The section costs", fragment)]),
            Section("What fits", _what_fits(frames)),
        ],
    )


def _correlation(fitted: Fitted) -> list[str]:
    lines = [f"{percent(fitted.share_of_zero_gaps)} of the gaps are zero (simultaneous failures)."]
    if fitted.correlated is None:
        lines.append(f"Nodes that differ: not fitted: {fitted.why_not_correlated}.")
    elif left_out := fitted.correlated.left_out:
        lines.append(f"At the border, so no frailty by this log: {', '.join(left_out)}.")
    return lines
