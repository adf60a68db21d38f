"""``cprsim.sweep``: a scenario at every combination of some values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cprsim.api import public
from cprsim.api.answer import Draw, require_known
from cprsim.api.keeping import WATCH, KeptAnswer, ResultsPlace, now
from cprsim.api.scenarios import Overrides, ScenarioLike, source_of
from cprsim.errors import ParameterError
from cprsim.making.options import WORKERS, shortcuts
from cprsim.making.sweeping import sweep_into
from cprsim.plots.sweep import sweep_figures
from cprsim.present.document import Document
from cprsim.present.sweep import document_of_sweep
from cprsim.sweeps.folder import SweepResult
from cprsim.workers import Workers

if TYPE_CHECKING:
    import pandas as pd


class Sweep(KeptAnswer[SweepResult]):
    """A scenario over some axes: the table of all points, and where each strategy is best."""

    n_sections = 2  # extremes, and the first figure

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies, in the scenario's order."""
        return self._made.strategies

    @property
    def axes(self) -> tuple[str, ...]:
        """Columns of `table` that hold what was varied, with their units."""
        return tuple(axis.column for axis in self._made.axes)

    @property
    def table(self) -> pd.DataFrame:
        """A row per point, strategy and quantity: docs/sweeps.md names the columns."""
        return self._made.table.copy()

    def of(self, quantity: str) -> pd.DataFrame:
        """The rows of one quantity: axes, strategy, mean, low, high.

        Raises ParameterError where there is none of the name.
        """
        require_known([quantity], self._made.table["quantity"])
        return self._made.of(quantity)[[*self.axes, "strategy", "mean", "low", "high"]].copy()

    @property
    def cheapest(self) -> pd.DataFrame:
        """The cheapest strategy of each point: axes, strategy, mean, low, high.

        By the cost of a month where there are prices, else by overhead; by means alone.
        """
        rows = self._made.cheapest_by_point
        return rows[[*self.axes, "strategy", "mean", "low", "high"]].reset_index(drop=True)

    def _document(self) -> Document:
        return document_of_sweep(self._made)

    def _drawings(self) -> Mapping[str, Draw]:
        return sweep_figures(self._made)


@public
def sweep(
    scenario: ScenarioLike,
    over: Mapping[str, str | Sequence[Any]] | None = None,
    overrides: Overrides = (),
    *,
    mode: Literal["grid", "one-at-a-time"] | None = None,
    seed: int | None = None,
    replications: int | None = None,
    precision: str | float | None = None,
    workers: Annotated[int, Field(**WORKERS)] | None = None,
    folder: str | Path | None = None,
) -> Sweep:
    """Simulate a scenario at every combination of some values, as ``cprsim sweep`` does.

    Parameters
    ----------
    scenario, overrides : see `cprsim.load`
    over : what is varied, ``{"failures.mtbf": ["14 h", "28 h"], "costs.save": "1 s:9 min:log12"}``;
        None: the section `sweep` of the scenario
    mode : every combination, or each axis alone; None: the scenario's, or every combination
    seed, replications : instead of the scenario's
    precision : replications until the 95 % interval of every mean overhead is so narrow:
        ``"0.5%"``, or 0.005
    workers : processes; None: one per core
    folder : keep results and finished points in this folder; the same call goes on where it was
        stopped. None: nothing is kept

    Raises
    ------
    CprsimError : what is wrong with the scenario, an axis or any of the points
    """
    started, place = now(), ResultsPlace(folder)
    if replications is not None and precision is not None:
        raise ParameterError("replications and precision: give one of them")
    said: dict[str, Any] = {} if over is None else {"sweep.over": dict(over)}
    said |= {} if mode is None else {"sweep.mode": mode}
    if isinstance(precision, float):
        precision = f"{100 * precision:.12g} %"
    said |= {} if precision is None else {"simulation.precision": precision}
    source = source_of(scenario, overrides).changed(said)
    loaded = source.read(shortcuts(seed, replications))
    target = place.target(loaded, started, "sweep")
    result, _ = sweep_into(target, loaded, Workers(workers), WATCH, draws=place.keeps)
    return Sweep(result, place)
