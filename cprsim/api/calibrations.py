"""``cprsim.calibrate``: a scenario from the logs of jobs, held to their later half."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from cprsim.api import public
from cprsim.api.answer import Answer, table_of
from cprsim.api.ledger import read_named
from cprsim.api.scenarios import Scenario, load
from cprsim.backtesting.calibrating import CalibratedLogs, calibrate_logs
from cprsim.making.options import BOOTSTRAP, SEED, STATE_NODES
from cprsim.present.calibration import document_of_calibration
from cprsim.present.document import Document

if TYPE_CHECKING:
    import pandas as pd


class CalibratedScenario(Answer):
    """A scenario with the origin of each number, and how its kind predicts the logs."""

    def __init__(self, made: CalibratedLogs) -> None:
        self._made = made

    @property
    def name(self) -> str:
        return self.scenario.name

    @property
    def table(self) -> pd.DataFrame:
        """A row per number of the scenario: number, value, where."""
        columns = ("number", "value", "where")
        return table_of([dict(zip(columns, one, strict=True)) for one in self._made.found.origins])

    @property
    def prediction(self) -> pd.DataFrame:
        """Share of useful hours of the later half: predicted from the earlier one, and observed.

        Ends `low` and `high` are of a 90 % predictive interval, and of what the logs do not say.
        Empty where there are too few failures.
        """
        one = self._made.predicted
        if one is None:
            return table_of([])
        rows = {"predicted": one.predicted, "observed": one.observed}
        return table_of([{"later_half": name, **of.by_name} for name, of in rows.items()])

    @property
    def text(self) -> str:
        """The scenario as YAML, for a file."""
        return self._made.found.text

    @property
    def scenario(self) -> Scenario:
        """The scenario, for `cprsim.run` and the like."""
        return load(self.text)

    def _document(self) -> Document:
        return document_of_calibration(self._made)


@public
def calibrate(
    *logs: str | Path,
    nodes: Annotated[int, Field(**STATE_NODES)] = 8,
    bootstrap: Annotated[int, Field(**BOOTSTRAP)] = 0,
    time_unit: str | None = None,
    saves_every: str | None = None,
    seed: Annotated[int, Field(**SEED)] = 0,
) -> CalibratedScenario:
    """Make a scenario of the logs of jobs, as ``cprsim calibrate`` does.

    Parameters
    ----------
    logs : event logs (docs/events.md), output of torchrun, CSVs of attempts, or folders of them
    nodes : that hold the state
    bootstrap : samples behind each p-value of a fit; 0: none
    time_unit : of CSVs whose times are numbers
    saves_every : work between the saves of the jobs, such as ``"30 min"``, where their logs do not
        tell it
    seed : of all draws

    Raises
    ------
    TraceError : a log can't be read: file, line, value
    ParameterError : too few failures to make a scenario of
    """
    made = calibrate_logs(
        read_named(logs, time_unit),
        saves_every=saves_every,
        n_nodes=nodes,
        n_bootstrap=bootstrap,
        seed=seed,
    )
    return CalibratedScenario(made)
