"""``cprsim.compare_systems``: which recovery system for a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cprsim.api import public
from cprsim.api.answer import Draw, table_of
from cprsim.api.keeping import WATCH, KeptAnswer, ResultsPlace, now
from cprsim.api.scenarios import Overrides, ScenarioLike, source_of
from cprsim.making.comparing_systems import asked, compare_into
from cprsim.making.options import shortcuts
from cprsim.plots.systems import systems_figures
from cprsim.present.document import Document
from cprsim.present.systems import document_of_systems, entries_text, row_of
from cprsim.systems_compared.comparison import Comparison
from cprsim.systems_compared.lineup import Rules

if TYPE_CHECKING:
    import pandas as pd


class SystemsComparison(KeptAnswer[Comparison]):
    """What each recovery system costs a job, and which is the cheapest."""

    @property
    def best(self) -> str | None:
        """The cheapest that keeps the model's accuracy; None where none of those finishes."""
        return self._made.best

    @property
    def cant_be_told(self) -> tuple[str, ...]:
        """Those that keep accuracy, whose difference to the best has an interval that holds 0."""
        return tuple(self._made.tied)

    @property
    def left_out(self) -> dict[str, str]:
        """Why a system can't run the job, by its name."""
        return dict(self._made.left_out)

    @property
    def recovery(self) -> str:
        """The section `recovery` of a scenario that runs every system as compared, as YAML."""
        return entries_text(self._made.standings)

    @property
    def table(self) -> pd.DataFrame:
        """A row per system, the cheapest first.

        Columns: name, strategy, interval_h, overhead (`overhead_fraction`, `_low`, `_high`) and its
        parts, what it is more than the best's (`more_than_best`, `_low`, `_high`), verdict, ettr
        and ettr_paid, accuracy and auc_loss, extra nodes and memory, bytes per hour to the storage
        and to peers, what is lost at most after each kind of failure (`after_process`, ...).
        """
        return table_of([row_of(one) for one in self._made.standings])

    def _document(self) -> Document:
        return document_of_systems(self._made)

    def _drawings(self) -> Mapping[str, Draw]:
        return systems_figures(self._made)


@public
def compare_systems(
    scenario: ScenarioLike,
    overrides: Overrides = (),
    *,
    only: Sequence[str] = (),
    fixed: bool = False,
    available: bool = False,
    seed: int | None = None,
    replications: int | None = None,
    folder: str | Path | None = None,
) -> SystemsComparison:
    """Compare all recovery systems that a job can run, as ``cprsim compare-systems`` does.

    Parameters
    ----------
    scenario, overrides : see `cprsim.load`
    only : names of those to compare; none: all
    fixed : keep each at the scenario's interval, or at its default; else each is at its best
    available : without what a job can't run today
    seed : instead of the scenario's
    replications : of each system; None: as many as tell intervals apart
    folder : keep the results folder in this one; None: nothing is kept

    Raises
    ------
    CprsimError : what is wrong with the scenario, or a name of `only` that can't run the job
    """
    started, place = now(), ResultsPlace(folder)
    rules = Rules(fixed, tuple(only), available)
    source = source_of(scenario, overrides).changed(shortcuts(seed, None))
    wanted = asked(source.read, replications, rules)
    target = place.target(wanted.loaded, started, rules.folder)
    made, _ = compare_into(target, wanted, WATCH, draws=place.keeps)
    return SystemsComparison(made, place)
