"""``cprsim.fleet``: many jobs on one cluster, in hours and money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from cprsim.api import public
from cprsim.api.answer import Draw
from cprsim.api.keeping import WATCH, KeptAnswer, ResultsPlace, now
from cprsim.api.scenarios import Overrides, ScenarioLike, source_of
from cprsim.fleets.folder import FleetResult, option_table
from cprsim.making.fleeting import axes_of, fleet_identity, fleet_into
from cprsim.making.options import WORKERS, shortcuts
from cprsim.plots.fleet import fleet_figures
from cprsim.present.document import Document
from cprsim.present.fleet import document_of_fleet
from cprsim.workers import Workers

if TYPE_CHECKING:
    import pandas as pd


class Fleet(KeptAnswer[FleetResult]):
    """Many jobs on one cluster: what failures cost under each option, and which is the cheapest."""

    n_sections = 2  # what a month costs, and the first figure

    @property
    def best(self) -> str:
        """The cheapest option, such as ``cpr at spares 0``."""
        return self._made.decision.best

    @property
    def currency(self) -> str | None:
        """The label of all amounts; None where nothing has a price, and node-hours decide."""
        return self._made.currency

    @property
    def saves(self) -> tuple[float, float, float]:
        """What the best costs less than the present in a month: mean, and the ends of its interval.

        In cents, or in node-hours where nothing has a price.
        """
        saves = self._made.decision.saves
        return saves.mean, saves.low, saves.high

    @property
    def table(self) -> pd.DataFrame:
        """A row per option: values of the axes, statistics with intervals, node-hours, cents."""
        return option_table(self._made)

    def _document(self) -> Document:
        return document_of_fleet(self._made)

    def _drawings(self) -> Mapping[str, Draw]:
        return fleet_figures(self._made)


@public
def fleet(
    scenario: ScenarioLike,
    over: Mapping[str, str | Sequence[Any]] | None = None,
    overrides: Overrides = (),
    *,
    seed: int | None = None,
    histories: int | None = None,
    workers: Annotated[int, Field(**WORKERS)] | None = None,
    folder: str | Path | None = None,
) -> Fleet:
    """Simulate the fleet of a scenario, and say which option is the cheapest, as ``cprsim fleet``.

    Parameters
    ----------
    scenario, overrides : see `cprsim.load`; the scenario has a section `fleet`
    over : options to choose from, ``{"spares": [0, 2, 6], "fleet.nodes": "120:200:lin5"}``; None:
        the scenario's strategies at its own values
    seed, histories : instead of the scenario's
    workers : processes; None: one per core
    folder : keep results and finished histories in this folder; the same call goes on where it was
        stopped. None: nothing is kept

    Raises
    ------
    CprsimError : what is wrong with the scenario or an option
    """
    started, place = now(), ResultsPlace(folder)
    said = {} if histories is None else {"fleet.histories": histories}
    loaded = source_of(scenario, overrides).changed(said).read(shortcuts(seed, None))
    axes = axes_of((over or {}).items(), "over")
    target = place.target(loaded, started, identity=fleet_identity(loaded, axes))
    result, _ = fleet_into(
        target, loaded, axes, Workers(workers), WATCH, option="over", draws=place.keeps
    )
    return Fleet(result, place)
