"""``cprsim.run``: what failures cost a job under several recovery strategies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cprsim.api import public
from cprsim.api.answer import Draw, require_known
from cprsim.api.keeping import WATCH, KeptAnswer, ResultsPlace, now
from cprsim.api.scenarios import Overrides, ScenarioLike, source_of
from cprsim.experiments.assemble import assemble
from cprsim.making.options import replay_number, require_replication, shortcuts
from cprsim.making.running import simulate_into
from cprsim.plots.run import run_figures
from cprsim.present.document import Document
from cprsim.present.run import document_of_run
from cprsim.results import Result

if TYPE_CHECKING:
    import pandas as pd


class Run(KeptAnswer[Result]):
    """What failures cost, strategy by strategy. docs/metrics.md says what each quantity means."""

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies, in the scenario's order."""
        return tuple(policy.name for policy in self._made.policies)

    @property
    def table(self) -> pd.DataFrame:
        """A row per strategy and quantity: strategy, quantity, mean, low, high (95 %), n."""
        return self._made.summary.copy()

    @property
    def rows(self) -> pd.DataFrame:
        """A row per strategy and replication: its hours, failures, saves, PLS."""
        return self._made.replications.copy()

    @property
    def events(self) -> pd.DataFrame:
        """Everything that happened in the one replication that the figure `timeline` shows."""
        return self._made.timeline.copy()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to be careful with."""
        return self._made.warnings

    def means(self, *quantities: str) -> pd.DataFrame:
        """Means with a row per strategy and a column per quantity; without names all of them.

        Raises ParameterError where there is none of a name.
        """
        require_known(quantities, self._made.summary["quantity"])
        wide = self._made.summary.pivot(index="strategy", columns="quantity", values="mean")
        names = quantities or tuple(self._made.summary["quantity"].unique())
        found = wide.reindex(index=list(self.strategies), columns=list(names))
        return found.rename_axis(columns=None)

    def _document(self) -> Document:
        return document_of_run(self._made)

    def _drawings(self) -> Mapping[str, Draw]:
        return run_figures(self._made)


@public
def run(
    scenario: ScenarioLike,
    overrides: Overrides = (),
    *,
    seed: int | None = None,
    replications: int | None = None,
    replay: int | str | None = None,
    folder: str | Path | None = None,
) -> Run:
    """Simulate a job under several recovery strategies, as ``cprsim run`` does.

    Parameters
    ----------
    scenario, overrides : see `cprsim.load`
    seed, replications : instead of the scenario's
    replay : one replication alone, by its number or by its overhead among all: ``"median"``,
        ``"p95"``, ``"worst"``
    folder : keep the results folder in this one; where it is there finished, it is read. None:
        nothing is kept

    Raises
    ------
    CprsimError : what is wrong, with file, line, key and value where a scenario says it
    """
    started, place = now(), ResultsPlace(folder)
    loaded = source_of(scenario, overrides).read(shortcuts(seed, replications))
    experiment = assemble(loaded)

    def made(number: int | None) -> Result:
        require_replication(number)
        target = place.target(loaded, started, replay=number)
        return simulate_into(target, loaded, experiment, WATCH, draws=place.keeps)[0]

    number = replay_number(None if replay is None else str(replay), lambda: made(None))
    return Run(made(number), place)
