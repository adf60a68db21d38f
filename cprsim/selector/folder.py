"""The results folder of a selection: the selection, its candidates as a table, the figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.results.folder import ResultTarget, new_folder, read_record, write_csv, write_record
from cprsim.results.manifest import read_manifest
from cprsim.selector.choice import Candidate, Selection

SELECTION = "selection.json"
SPREADS = ("overhead", "pls", "loss", "benefit")


def write_selection(
    target: ResultTarget, selection: Selection, draw: Callable[[Selection, Path], object]
) -> Selected:
    """Write a selection into its folder, whole or not at all; as read back from there."""
    with new_folder(target) as folder:
        write_record(folder / SELECTION, selection)
        write_csv(candidate_rows(selection), folder / "candidates.csv")
        draw(selection, folder)
    return load_selected(target.folder)


def read_selection(folder: Path) -> Selection:
    """The selection of a finished folder. Raises ResultError where it is none."""
    return read_record(Selection, folder / SELECTION, "a selection")


@dataclass(frozen=True, slots=True)
class Selected:
    """A selection as read from its folder."""

    path: Path
    manifest: Mapping[str, Any]
    selection: Selection

    @property
    def name(self) -> str:
        """Of the scenario."""
        return str(self.manifest["name"]).removesuffix("-select")


def load_selected(folder: Path) -> Selected:
    """Read a finished selection. Raises ResultError where it is unfinished or damaged."""
    manifest = read_manifest(folder)
    return Selected(folder, manifest, read_selection(folder))


def candidate_rows(selection: Selection) -> pd.DataFrame:
    """One row per candidate.

    Columns: part (full, best, formula or front), strategy, option (of a recovery system, that its
    interval is; else empty), interval_h (infinite: never saves), saves, finished_fraction, for
    overhead, pls, loss and benefit mean, low and high, held, keeps, beyond_fraction.
    """
    return pd.DataFrame([_row(part, one) for part, one in _parts(selection)])


def _parts(selection: Selection) -> Iterator[tuple[str, Candidate]]:
    yield "full", selection.full
    yield from (("best", one) for one in selection.best.values() if one is not None)
    yield from ((f"formula {one.rule}", one) for one in selection.formula)
    yield from (("front", one) for front in selection.front.values() for one in front)


def _row(part: str, one: Candidate) -> dict[str, object]:
    spreads = {
        f"{name}_{end}": getattr(getattr(one, name), end)
        for name in SPREADS
        for end in ("mean", "low", "high")
    }
    return {
        "part": part,
        "strategy": one.strategy,
        "option": one.option,
        "interval_h": one.policy.interval_h,
        "saves": one.n_saves,
        "finished_fraction": one.finished_fraction,
        **spreads,
        "held": one.held,
        "keeps": one.keeps,
        "beyond_fraction": one.beyond_fraction,
    }
