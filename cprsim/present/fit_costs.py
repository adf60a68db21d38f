"""A fit to a log of saves and loads: what they cost, and the section `costs`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.fitting.cost_fit import CostFit, mean_of
from cprsim.fitting.cost_fragment import bandwidth_of, verdict_of
from cprsim.fitting.goodness import Ranking
from cprsim.fitting.trace_fit import Subject
from cprsim.present.answer import Answer
from cprsim.present.document import Document, ListingBlock, Section
from cprsim.present.fit import (
    NEXT,
    Entry,
    best_table,
    entries,
    families_tables,
    frames_of,
    sections_in,
    sentences,
    times_of,
)


def answer_of_costs(
    fits: Sequence[CostFit],
    origin: str,
    fragment: str,
    notes: Sequence[str],
    files: Sequence[Path] = (),
) -> Answer:
    """What saves and loads cost by a log; notes are of the rows that were left out."""
    frames = frames_of(map(_times, fits), [entry for one in fits for entry in _entries(one)])
    warnings = [*(note for one in fits for note in one.notes), *notes]
    costs = sections_in(fragment).get("costs", {})
    values = {"warnings": warnings, "fragment": fragment, "costs": costs}
    said = [*warnings[:2], *([] if files else [NEXT]), *warnings[2:]]
    tells = partial(_document, fits, origin, frames, said, fragment)
    return Answer("fit", origin, tells, frames, values, files=files)


def _entries(one: CostFit) -> Iterator[Entry]:
    """A fixed time where it is the choice, then the families."""
    if one.fixed is not None:
        numbers = {"log_likelihood": 1 - one.fixed_aic / 2, "aic": one.fixed_aic}
        yield one.kind, "fixed", numbers, {"time_h": one.fixed}
    yield from entries(Subject(one.kind, one.durations, one.ranking), mean_of)


def _times(one: CostFit) -> dict[str, Any]:
    """A kind of cost; the family is the one that the scenario gets."""
    best = None if one.best is None else Ranking((one.best,), ())
    of, failed = one.bandwidth, one.ranking.failed if one.ranking else ()
    row = times_of(Subject(one.kind, one.durations, best)) | {
        "family": one.family, **one.mean.columns("mean_h"), "resolution_h": one.resolution_h,
        "not_fitted": "; ".join(why for _, why in failed),
    }  # fmt: skip
    return row if of is None else row | {
        "n_with_bytes": of.n, **of.rate.columns("bytes_per_h"), "mean_bytes": of.mean_bytes,
        "duration_cv": of.duration_cv, "per_byte_cv": of.per_byte_cv,
    }  # fmt: skip


def _document(
    fits: Sequence[CostFit],
    origin: str,
    frames: dict[str, pd.DataFrame],
    said: Sequence[str],
    fragment: str,
) -> Document:
    table = best_table(frames["times"])
    each = [f"{row[0]} take {row[3]}" for row in table.rows]
    bandwidths = [
        bandwidth_of(one.kind, of)
        + ("" if isnan(of.duration_cv) else f"; {verdict_of(one.kind, of)}")
        for one in fits
        if (of := one.bandwidth) is not None
    ]
    return Document(
        title=f"Costs of {origin}",
        question="What do the saves and loads of this log cost?",
        answer=[f"{'; '.join(each)} on average, with 95 % intervals."],
        table=table,
        remarks=sentences([*said, *bandwidths]),
        sections=[
            Section("For the scenario", [ListingBlock("The section costs", fragment)]),
            Section("What fits", families_tables(frames)),
        ],
    )
