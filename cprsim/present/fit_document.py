"""A fit of a failure log as a document: the verdict, each kind of times, the fragment."""

from __future__ import annotations

from cprsim.fitting.likelihood import Parameter
from cprsim.fitting.trace_fit import Subject
from cprsim.present.document import Block, Column, Document, Facts, ListingBlock, Section, Table
from cprsim.present.document import Words as Sentences
from cprsim.present.fit import TITLES, FitReport, ranking_cells

HEADINGS = ("log-lik.", "AIC", "BIC", "KS", "p", "RMSE")


def document_of_fit(report: FitReport, name: str) -> Document:
    """Everything about one fit.

    Parameters
    ----------
    name : of the log
    """
    fitted = report.fitted
    notes = [f"note: {warning}" for warning in fitted.warnings]
    return Document(
        title=f"Failures of {name}",
        question=f"How often does a job on {report.n_job_nodes} nodes of this log fail, and how?",
        answer=[*report.verdict.sentences, *report.more],
        sections=[
            Section("What is fitted", [block for one in fitted.subjects for block in _blocks(one)]),
            Section("What is known of the log", [Sentences([*fitted.observation.lines(), *notes])]),
            Section("For a scenario", _fragments(report)),
        ],
    )


def _blocks(subject: Subject) -> list[Block]:
    """The families by AIC, and the parameters of each."""
    times, ranking = subject.lifetimes, subject.ranking
    caption = (
        f"{TITLES[subject.name]}: {times.n_observed} ended, {times.n - times.n_observed} censored"
    )
    if ranking is None:
        return [Sentences([f"{caption}; not fitted: {subject.why_not}."])]
    columns = [Column("family", is_number=False), *map(Column, HEADINGS)]
    rows = [ranking_cells(one) for one in ranking.judged]
    parameters = [
        (one.fit.family, ", ".join(map(_said, (*one.fit.parameters, one.fit.mean))))
        for one in ranking.judged
    ]
    return [Table(caption, columns, rows), Facts(parameters)]


def _said(one: Parameter) -> str:
    return f"{one.name} {one.mean:.4g} ({one.low:.4g} to {one.high:.4g})"


def _fragments(report: FitReport) -> list[Block]:
    simpler = report.simpler
    more = [] if simpler is None else [ListingBlock("simpler, without groups and lemons", simpler)]
    return [ListingBlock("the section failures, with intervals", report.text), *more]
