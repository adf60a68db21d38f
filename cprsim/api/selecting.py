"""``cprsim.select``: which strategy, at which interval, within the accuracy that may be lost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cprsim.api import public
from cprsim.api.answer import Draw
from cprsim.api.keeping import WATCH, KeptAnswer, ResultsPlace, now
from cprsim.api.scenarios import Overrides, ScenarioLike, source_of
from cprsim.making.options import shortcuts
from cprsim.making.selecting import (
    asked,
    said_of_curve,
    said_of_limits,
    select_into,
)
from cprsim.plots.selection import selection_figures
from cprsim.present.document import Document
from cprsim.present.selection import document_of_selection, entries_text
from cprsim.selector.folder import Selected, candidate_rows

if TYPE_CHECKING:
    import pandas as pd


class Selection(KeptAnswer[Selected]):
    """What to run, and what it rests on."""

    @property
    def recommended(self) -> str:
        """The strategy to run."""
        return self._made.selection.chosen.strategy

    @property
    def interval_h(self) -> float:
        """How often it saves [h]; infinite where it never does."""
        return self._made.selection.chosen.policy.interval_h

    @property
    def recovery(self) -> str:
        """The section `recovery` of a scenario that runs every strategy as selected, as YAML."""
        return entries_text(self._made.selection)

    @property
    def table(self) -> pd.DataFrame:
        """A row per candidate: overhead, PLS, loss and benefit with intervals, held, keeps.

        Column `part`: `full` and `best` are each strategy at its best, `front` all that were tried.
        """
        return candidate_rows(self._made.selection)

    def _document(self) -> Document:
        return document_of_selection(self._made)

    def _drawings(self) -> Mapping[str, Draw]:
        return selection_figures(self._made.selection, self._made.name)


@public
def select(
    scenario: ScenarioLike,
    overrides: Overrides = (),
    *,
    max_auc_loss: float | None = None,
    max_log_loss: float | None = None,
    target_pls: float | None = None,
    max_loss: Mapping[str, float] | None = None,
    confidence: float | None = None,
    risk: float | str | None = None,
    curve: str | Path | None = None,
    seed: int | None = None,
    replications: int | None = None,
    folder: str | Path | None = None,
) -> Selection:
    """Choose strategy and interval within a limit of accuracy, as ``cprsim select`` does.

    Parameters
    ----------
    scenario, overrides : see `cprsim.load`
    max_auc_loss, max_log_loss, target_pls, max_loss : what may be lost, the last in other metrics
        of the curve by name, as ``{"ne": 5e-4}``; at most one of them, in place of the
        scenario's
    confidence : the limit holds at this upper bound; None: the scenario's, or 0.95
    risk : ``"mean"``, or the share of single jobs that keeps the limit
    curve : the staleness curve: a file (.json, .csv) or the name of a shipped one
    seed : instead of the scenario's
    replications : of each candidate; None: as many as tell candidates apart
    folder : keep the results folder in this one; None: nothing is kept

    Raises
    ------
    CprsimError : what is wrong, or what a selection lacks
    """
    started, place = now(), ResultsPlace(folder)
    limits = {
        "max_auc_loss": max_auc_loss,
        "max_log_loss": max_log_loss,
        "target_pls": target_pls,
        "max_loss": max_loss,
    }
    source = source_of(scenario, overrides)
    named = None if curve is None else str(curve)
    said = [*shortcuts(seed, None), *said_of_limits(limits, confidence, risk)]
    source = source.changed([*said, *said_of_curve(named, source.path)])
    wanted = asked(source.read, replications)
    target = place.target(wanted.loaded, started, "select")
    made, _ = select_into(target, wanted, WATCH, draws=place.keeps)
    return Selection(made, place)
