"""Staleness curves: what lost samples cost in accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cprsim.api import public
from cprsim.api.answer import Answer, table_of
from cprsim.api.keeping import ResultsPlace
from cprsim.curves import CurveFile, read_curve, write_curve
from cprsim.errors import ParameterError
from cprsim.present.curve import document_of_curve, with_half_width
from cprsim.present.document import Block, Document, Picture, Table, row_columns
from cprsim.records import NO_NUMBER
from cprsim.results.words import with_interval
from cprsim.staleness import Metric, Response

if TYPE_CHECKING:
    import pandas as pd

PORTIONS = (0.02, 0.05, 0.1, 0.2, 0.3)  # of the samples lost, that a short table shows


class Curve(Answer):
    """A staleness curve: what each portion of lost samples (PLS) costs in accuracy."""

    def __init__(self, file: CurveFile, path: Path, place: ResultsPlace | None = None) -> None:
        self._file, self.path, self._place = file, path, place

    @classmethod
    @public
    def read(cls, path: str | Path) -> Curve:
        """The curve of a file, .json or .csv. Raises CurveError where it can't be one."""
        return cls(read_curve(path), Path(path))

    @property
    def name(self) -> str:
        return self._file.name

    @property
    def strategies(self) -> tuple[str, ...]:
        """Those whose loss was measured; ``+``: small tables are saved with every sub-save."""
        return tuple(dict.fromkeys(one.strategy for one in self._file.responses))

    @property
    def is_fit_for_use(self) -> bool:
        """Whether `cprsim.select` takes it; `unfit` says why not."""
        return not self._file.unfit

    @property
    def unfit(self) -> tuple[str, ...]:
        """Why nothing should be decided by it, in sentences."""
        return self._file.unfit

    @property
    def table(self) -> pd.DataFrame:
        """A row per strategy, metric and measured weighted PLS: loss, low, high (95 %)."""
        return self._priced([(one, one.pls) for one in self._file.responses])

    def losses(self, pls: Sequence[float] = PORTIONS) -> pd.DataFrame:
        """What these portions of samples cost, if all are lost at average weight.

        Returns
        -------
        A row per strategy, metric and portion: loss, low, high (95 %).

        Raises
        ------
        ParameterError : portions that are no numbers
        """
        try:
            portions = np.atleast_1d(np.asarray(pls, float))
        except (TypeError, ValueError):
            raise ParameterError(f"pls: {pls!r} should be numbers, such as [0.05, 0.1]") from None
        return self._priced([(one, portions) for one in self._file.responses])

    def loss_of(
        self, failures: Sequence[tuple[float, int | Sequence[int]]], save_every: float,
        strategy: str = "partial", n_servers: int = 8,
    ) -> pd.DataFrame:  # fmt: skip
        """What given failures of one job cost.

        Parameters
        ----------
        failures : of each the share of the job that is done, and which of the servers fail (0 to
            n_servers - 1) or the number of one that does
        save_every : interval between saves, as a share of the job
        strategy : how it saves, one of `strategies`
        n_servers : over which the embedding tables are dealt out

        Returns
        -------
        A row per metric: loss, low, high (95 %).

        Raises
        ------
        ParameterError : that was not measured, or such failures can't be
        """
        from cprsim.kernel.trials import Saving, ShardFailure, Trial
        from cprsim.measuring.curve import loss_of_trial

        met = tuple(
            ShardFailure(at, (which,) if isinstance(which, int) else tuple(which))
            for at, which in failures
        )
        trial = Trial(Saving(strategy, save_every), met)
        responses = [one for one in self._file.responses if one.strategy == strategy]
        if not responses or any(not 0 <= i < n_servers for one in met for i in one.servers):
            raise ParameterError(
                f"{self.name} holds {', '.join(self.strategies)}, not {strategy}"
                if not responses
                else f"servers are 0 to {n_servers - 1}"
            )
        rows = []
        for one in responses:
            lost = loss_of_trial(one, trial, n_servers)
            low, high = lost.interval()
            rows.append({"metric": one.metric.value, "loss": lost.mean, "low": low, "high": high})
        return table_of(rows)

    def weights(self, strategy: str = "partial", metric: str = "auc") -> pd.DataFrame:
        """How much a lost sample counts.

        Returns
        -------
        The weight at shares of the job that are done at the failure; its logarithm is linear
        between them.

        Raises
        ------
        ParameterError : that was not measured
        """
        import pandas as pd

        for one in self._file.responses:
            if (one.strategy, one.metric.value) == (strategy, metric):
                return pd.DataFrame({"weight": one.weight.weight}, one.weight.at)
        raise ParameterError(f"{metric} of {strategy} was not measured by {self.name}")

    @public
    def save(self, file: str | Path) -> Path:
        """Write the curve into a file (.json), which a scenario and `cprsim.select` take.

        Raises
        ------
        CurveError : it can't be written
        ParameterError : the name does not end in .json
        """
        path = json_file(file)
        write_curve(path, self._file)
        return path

    @staticmethod
    def _priced(asked: Sequence[tuple[Response, Any]]) -> pd.DataFrame:
        rows = []
        for one, pls in asked:
            for portion, loss, half in zip(pls, *with_half_width(one, pls), strict=True):
                ends = {"loss": loss, "low": loss - half, "high": loss + half}
                known = {"strategy": one.strategy, "metric": one.metric.value, "pls": portion}
                rows.append({**known, **ends})
        return table_of(rows)

    def _document(self) -> Document:
        return document_of_curve(self._file)

    def _brief(self) -> list[Block]:
        """The figure, and the loss of AUC at a few portions."""
        return [*(one for one in super()._brief() if isinstance(one, Picture)), self._losses()]

    def _losses(self) -> Table:
        responses = [one for one in self._file.responses if one.metric == Metric.AUC]
        return Table(
            "AUC lost by the portion of samples lost (weighted PLS), ± the half-width of the 95 % "
            f"interval; {NO_NUMBER} beyond what was measured",
            row_columns("strategy", *(f"PLS {one:g}" for one in PORTIONS)),
            [[one.strategy, *(_loss(one, portion) for portion in PORTIONS)] for one in responses],
        )


def json_file(file: str | Path) -> Path:
    """The path of a curve; raises ParameterError where it would be read as another format."""
    path = Path(file)
    if path.suffix.lower() != ".json":
        raise ParameterError(f"{path}: the file of a curve ends in .json")
    return path


def _loss(response: Response, pls: float) -> str:
    if pls > response.most_pls:
        return NO_NUMBER
    loss, half = with_half_width(response, np.array([pls]))
    return with_interval(float(loss[0]), float(half[0]))
