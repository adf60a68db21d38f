"""One planned failure inside a training loop of one's own: `cprsim measure --plan` lists them."""

from __future__ import annotations

import csv
import fcntl
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO

from cprsim.errors import CurveError, ParameterError, Place
from cprsim.kernel.saving import Saver
from cprsim.kernel.shards import Shards
from cprsim.measuring.elsewhere import PLANNED, RESULTS, planned_run
from cprsim.records import ShardBy
from cprsim.torch.following import Followed


class FailureInjector:
    """Saves a model as a planned run says, in memory, and takes its shards back when they fail.

    Call `step` after each step of the optimisers, and `finish` once with what the run and its twin
    reached. Rows go back with their optimiser state; if all shards fail, the layers do too.

    Parameters
    ----------
    row : of a plan, as `csv.DictReader` gives it
    module, optimizers : at the start of their run
    n_samples : of the whole run, all epochs
    shard_by : rows (row i on shard i mod n), or tables

    Raises
    ------
    ParameterError : a row that is no planned run; a module without tables
    """

    def __init__(
        self,
        row: Mapping[str, str],
        module: Any,
        optimizers: Any,
        n_samples: int,
        *,
        shard_by: str = "rows",
    ) -> None:
        self.row, self.run = dict(row), planned_run(row)
        self.n_samples, self.seen = n_samples, 0
        self._followed = Followed(module, optimizers, self.run.seed)
        shards = Shards(self._followed.layout, self.run.n_shards, ShardBy(shard_by))
        self._saver = Saver(self._followed, shards, self.run.trial.saving.sub_saves)
        self._due = list(self.run.trial.events())
        self.struck: list[float] = []  # shares of the run at which shards went back

    def step(self, n: int) -> None:
        """A step on n samples has been made; what is nearest to here happens now.

        The next batch is taken to be as large as this one: before one that is not, such as the
        last of an epoch, an event may happen a batch early or late.

        Raises ParameterError for more samples than the run has.
        """
        self._followed.step(n)
        self.seen += n
        if self.seen > self.n_samples:
            raise ParameterError(f"{self.seen} samples trained of a run of {self.n_samples}")
        nearest = (self.seen + n / 2) / self.n_samples  # an event happens between two batches
        while self._due and (self._due[0][0] < nearest or self.seen == self.n_samples):
            _, event = self._due.pop(0)
            if isinstance(event, bool):
                self._saver.save(ends_interval=event)
            else:
                self._saver.lose(event)
                self.struck.append(self.seen / self.n_samples)

    def finish(
        self,
        path: Path | str,
        *,
        auc: float,
        twin_auc: float,
        log_loss: float | None = None,
        twin_log_loss: float | None = None,
        others: Mapping[str, tuple[float, float]] = MappingProxyType({}),
    ) -> None:
        """Append the row with its results to a CSV, which is made where it is not there.

        Several processes may append to one file. `others`: further metrics by name, of the run and
        of its twin; the same names in every row.

        Raises
        ------
        ParameterError : the run is not at its end
        CurveError : the file can't be written
        """
        if self.seen != self.n_samples:
            raise ParameterError(f"the run stands at sample {self.seen} of {self.n_samples}")
        self._followed.close()
        results = dict(zip(RESULTS, (auc, twin_auc, log_loss, twin_log_loss), strict=True))
        for name, (own, twin) in others.items():
            results |= {name: own, f"twin_{name}": twin}
        append(Path(path), {name: self.row.get(name, "") for name in PLANNED} | results)


def _require_columns(file: TextIO, columns: Sequence[str], path: Path) -> None:
    """Raise CurveError where the table has others; the file stands at its end again."""
    file.seek(0)
    there = file.readline().rstrip("\r\n").split(",")
    file.seek(0, os.SEEK_END)
    if there != list(columns):
        message = f"has the columns {', '.join(there)}; the row has {', '.join(columns)}"
        raise CurveError.at(Place(path, 1), message)


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Add one row to a table of runs, whole, on the disk when this returns."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+", newline="") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0, os.SEEK_END)
            known = (*PLANNED, *RESULTS)
            columns = [*known, *(name for name in row if name not in known)]
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            if file.tell() == 0:
                writer.writeheader()
            else:
                _require_columns(file, columns, path)
            writer.writerow({name: "" if value is None else value for name, value in row.items()})
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        message = f"can't be written: {error.strerror or error}"
        raise CurveError.at(Place(path), message) from error
