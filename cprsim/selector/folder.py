"""The results folder of a selection: the selection, its candidates as a table, the figure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.errors import ResultError
from cprsim.foreign import UNUSABLE, one_line, read_json
from cprsim.results.identity import Identity
from cprsim.results.manifest import damage, write_manifest
from cprsim.results.publish import publishing
from cprsim.results.write import write_csv
from cprsim.selector.choice import Candidate, Selection
from cprsim.selector.stored import SPREADS, as_plain, from_plain

SELECTION = "selection.json"


def write_selection(
    root: Path,
    identity: Identity,
    selection: Selection,
    *,
    about: Mapping[str, Any],
    started: datetime,
    draw: Callable[[Path], object],
) -> Path:
    """Write a selection into its folder under `root`, whole or not at all.

    Parameters
    ----------
    root : folder of the results folders; made where it is missing
    identity : what decides the selection, and with it the folder's name
    about : what the manifest says of it: command, seed
    started : when it began, for the manifest
    draw : puts the figure into a folder

    Raises
    ------
    ResultError : it can't be written; nothing is left behind
    """
    final = root / identity.folder_name
    with publishing(final, damage) as folder:
        (folder / "scenario.yaml").write_text(identity.scenario_yaml, "utf-8")
        text = json.dumps(as_plain(selection), indent=2, ensure_ascii=False, allow_nan=False)
        (folder / SELECTION).write_text(text + "\n", "utf-8")
        write_csv(candidate_rows(selection), folder / "candidates.csv")
        draw(folder)
        write_manifest(folder, identity, about, started)
    return final


def read_selection(folder: Path) -> Selection:
    """The selection of a finished folder. Raises ResultError where it is none."""
    try:
        return from_plain(read_json(folder / SELECTION))
    except (OSError, *UNUSABLE) as error:
        told = one_line(str(error), 200)
        raise ResultError(f"{folder} can't be read as a selection: {told}") from error


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
        "interval_h": one.policy.save_interval_h,
        "saves": one.n_saves,
        "finished_fraction": one.finished_fraction,
        **spreads,
        "held": one.held,
        "keeps": one.keeps,
        "beyond_fraction": one.beyond_fraction,
    }
