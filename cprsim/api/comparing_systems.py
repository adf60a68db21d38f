"""``cprsim.compare_systems``: which recovery system for a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, overload

from pydantic import Field

from cprsim.api import public
from cprsim.api.answer import Draw, table_of
from cprsim.api.keeping import WATCH, KeptAnswer, ResultsPlace, now
from cprsim.api.scenarios import Overrides, ScenarioLike, source_of
from cprsim.errors import ParameterError
from cprsim.making.comparing_systems import (
    Rules,
    asked,
    compare_into,
    map_asked,
    map_into,
)
from cprsim.making.options import WORKERS, shortcuts
from cprsim.plots.systems import systems_figures
from cprsim.plots.systems_map import systems_map_figures
from cprsim.present.document import Document
from cprsim.present.systems import document_of_systems, entries_text, row_of
from cprsim.present.systems_map import document_of_map
from cprsim.systems_compared.folder import Comparison
from cprsim.systems_compared.map_folder import SystemsMap
from cprsim.systems_compared.standings import BEST, standings, tied_names
from cprsim.workers import Workers

if TYPE_CHECKING:
    import pandas as pd


class SystemsComparison(KeptAnswer[Comparison]):
    """What each recovery system costs a job, and which is the cheapest."""

    def __init__(self, made: Comparison, place: ResultsPlace) -> None:
        super().__init__(made, place)
        self._found = standings(made)

    @property
    def best(self) -> str | None:
        """The cheapest that keeps the model's accuracy; None where none of those finishes."""
        return next((one.name for one in self._found if one.verdict == BEST), None)

    @property
    def cant_be_told(self) -> tuple[str, ...]:
        """Those that keep accuracy, whose difference to the best has an interval that holds 0."""
        return tuple(tied_names(self._found))

    @property
    def left_out(self) -> dict[str, str]:
        """Why a system can't run the job, by its name."""
        return dict(self._made.left_out)

    @property
    def recovery(self) -> str:
        """The section `recovery` of a scenario that runs every system as compared, as YAML."""
        return entries_text(self._found)

    @property
    def table(self) -> pd.DataFrame:
        """A row per system, the cheapest first.

        Columns: name, strategy, interval_h, overhead (`overhead_fraction`, `_low`, `_high`) and its
        parts, what it is more than the best's (`more_than_best`, `_low`, `_high`), verdict, ettr
        and ettr_paid, accuracy and auc_loss, extra nodes and memory, bytes per hour to the storage
        and to peers, what is lost at most after each kind of failure (`after_process`, ...).
        """
        return table_of([row_of(one) for one in self._found])

    def _document(self) -> Document:
        return document_of_systems(self._made)

    def _drawings(self) -> Mapping[str, Draw]:
        return systems_figures(self._made)


class MapOfSystems(KeptAnswer[SystemsMap]):
    """Which recovery system is the cheapest where, over two inputs that are not known."""

    @property
    def axes(self) -> tuple[str, ...]:
        """Columns of `table` that hold what was varied, with their units."""
        return tuple(axis.column for axis in self._made.axes)

    @property
    def bests(self) -> tuple[str, ...]:
        """The systems that are the cheapest somewhere, the most frequent first."""
        return tuple(self._made.bests)

    @property
    def table(self) -> pd.DataFrame:
        """A row per point, the last axis fastest.

        Columns: both `axes`, best, its `overhead_fraction` with low and high, its interval_h, and
        cant_be_told: names of those that can't be told from it.
        """
        return table_of(list(self._made.rows()))

    def _document(self) -> Document:
        return document_of_map(self._made)

    def _drawings(self) -> Mapping[str, Draw]:
        return systems_map_figures(self._made)


@overload
def compare_systems(
    scenario: ScenarioLike,
    overrides: Overrides = (),
    *,
    only: Sequence[str] = (),
    fixed: bool = False,
    available: bool = False,
    map: None = None,
    seed: int | None = None,
    replications: int | None = None,
    workers: Annotated[int, Field(**WORKERS)] | None = None,
    folder: str | Path | None = None,
) -> SystemsComparison: ...


@overload
def compare_systems(
    scenario: ScenarioLike,
    overrides: Overrides = (),
    *,
    only: Sequence[str] = (),
    fixed: bool = False,
    available: bool = False,
    map: Mapping[str, str | Sequence[Any]],
    seed: int | None = None,
    replications: int | None = None,
    workers: Annotated[int, Field(**WORKERS)] | None = None,
    folder: str | Path | None = None,
) -> MapOfSystems: ...


@public
def compare_systems(
    scenario: ScenarioLike,
    overrides: Overrides = (),
    *,
    only: Sequence[str] = (),
    fixed: bool = False,
    available: bool = False,
    map: Mapping[str, str | Sequence[Any]] | None = None,
    seed: int | None = None,
    replications: int | None = None,
    workers: Annotated[int, Field(**WORKERS)] | None = None,
    folder: str | Path | None = None,
) -> SystemsComparison | MapOfSystems:
    """Compare all recovery systems that a job can run, as ``cprsim compare-systems`` does.

    Parameters
    ----------
    scenario, overrides : see `cprsim.load`
    only : names of those to compare; none: all
    fixed : keep each at the scenario's interval, or at its default; else each is at its best
    available : without what a job can't run today
    map : compare at each pair of values of two inputs, ``{"failures.mtbf": ["1 h", "9 h"],
        "cluster.state": "1 GB:1 TB:log4"}``; None: at the scenario's own values
    seed : instead of the scenario's
    replications : of each system; None: as many as tell intervals apart
    workers : processes that share the points of a map; None: one per core
    folder : keep the results folder in this one; a map goes on where it was stopped. None: nothing
        is kept

    Raises
    ------
    CprsimError : what is wrong with the scenario or an axis, or a name of `only` that can't run the
        job
    """
    started, place = now(), ResultsPlace(folder)
    rules = Rules(fixed, tuple(only), available)
    source = source_of(scenario, overrides).changed(shortcuts(seed, None))
    if map is not None:
        over = source.changed({"sweep.over": dict(map), "sweep.mode": "grid"})
        of_map = map_asked(over.read, replications, rules)
        target = place.target(of_map.loaded, started, rules.named("systems-map"))
        drawn, _ = map_into(target, of_map, Workers(workers), WATCH, lambda finished: None)
        return MapOfSystems(drawn, place)
    if workers is not None:
        raise ParameterError("workers: only a map has points to share")
    wanted = asked(source.read, replications, rules)
    target = place.target(wanted.loaded, started, rules.named("systems"))
    made, _ = compare_into(target, wanted, WATCH, draws=place.keeps)
    return SystemsComparison(made, place)
