"""The results folder of a selection: the selection, its candidates as a table, the figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd

from cprsim.results.folder import (
    ResultTarget,
    new_folder,
    read_manifest,
    read_record,
    write_csv,
    write_record,
)
from cprsim.selector.choice import Candidate, Selection

SELECTION = "selection.json"


def write_selection(
    target: ResultTarget, selection: Selection, draw: Callable[[Selection], object]
) -> Selection:
    """Write a selection into its folder, whole or not at all; as read back from there."""
    with new_folder(target) as folder:
        write_record(folder / SELECTION, selection)
        write_csv(candidate_rows(selection), folder / "candidates.csv")
        draw(replace(selection, path=folder, manifest={"name": target.identity.name}))
    return load_selection(target.folder)


def load_selection(folder: Path) -> Selection:
    """Read a finished selection. Raises ResultError where it is unfinished or damaged."""
    about = {"path": folder, "manifest": read_manifest(folder)}
    return read_record(Selection, folder / SELECTION, "a selection", **about)


def candidate_rows(selection: Selection) -> pd.DataFrame:
    """One row per candidate.

    Columns: part (full, best, formula RULE or front), strategy, option (of a recovery system, that
    its interval is; else empty), interval_h (infinite: never saves), n_saves, on_failure,
    finished_fraction, overhead_fraction, pls, loss, benefit_fraction (overhead less than that of
    full recovery, paired) with their 95 % intervals, upper_bound (held to the limit), keeps,
    beyond_fraction.
    """
    return pd.DataFrame([_row(part, one) for part, one in _parts(selection)])


def _parts(selection: Selection) -> Iterator[tuple[str, Candidate]]:
    yield "full", selection.full
    yield from (("best", one) for one in selection.best.values() if one is not None)
    yield from ((f"formula {one.rule}", one) for one in selection.formula)
    yield from (("front", one) for front in selection.front.values() for one in front)


def _row(part: str, one: Candidate) -> dict[str, object]:
    return {
        "part": part,
        "strategy": one.strategy,
        "option": one.option,
        "interval_h": one.policy.interval_h,
        "n_saves": one.n_saves,
        "on_failure": one.policy.on_failure,
        "finished_fraction": one.finished_fraction,
        **one.overhead.columns("overhead_fraction"),
        **one.pls.columns("pls"),
        **one.loss.columns("loss"),
        **one.benefit.columns("benefit_fraction"),
        "upper_bound": one.held,
        "keeps": one.keeps,
        "beyond_fraction": one.beyond_fraction,
    }
