"""A user's trainer as a model that saves, forks and failures can act on, with fused rows.

Tables of several widths, with their own optimiser state per row, lie one after the other; row i
of the second table is fused row i + rows of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cprsim.errors import ParameterError
from cprsim.job.losses import Metric
from cprsim.job.model_shape import TableLayout
from cprsim.job.records import Ints
from cprsim.training.kernel.loops import Array
from cprsim.training.kernel.metrics import Quality, quality
from cprsim.training.kernel.trackers import ABSENT
from cprsim.training.kernel.weights import Parcel, room_for
from cprsim.training.measuring.protocol import OwnTable, Predictions

ALWAYS_GIVEN = ("auc", "log_loss")


def quality_of(result: Predictions | Mapping[str, float]) -> Quality:
    """AUC, log-loss and further metrics, from predictions or as reported."""
    if isinstance(result, Mapping):
        return _reported(result)
    label, logit = np.asarray(result.label), np.asarray(result.logit)
    if label.shape != logit.shape or label.ndim != 1:
        raise ParameterError(f"the trainer predicts logits {logit.shape} of labels {label.shape}")
    if not np.isfinite(logit).all():
        raise ParameterError("the trainer predicts a logit that is not finite: has it diverged?")
    group = None if result.group is None else np.asarray(result.group)
    if group is not None and group.shape != label.shape:
        raise ParameterError(f"the trainer predicts groups {group.shape} of labels {label.shape}")
    return quality(label, logit, group)


def _reported(reported: Mapping[str, float]) -> Quality:
    for name in ALWAYS_GIVEN:
        if name not in reported:
            has = ", ".join(map(str, reported)) or "nothing"
            raise ParameterError(f"the trainer reports {has}; `{name}` is missing")
    for name, value in reported.items():
        if not np.isfinite(value):
            raise ParameterError(f"the trainer reports `{name}`: {value}; has it diverged?")
    further = {
        str(Metric(name)): float(value)
        for name, value in reported.items()
        if name not in ALWAYS_GIVEN
    }
    return Quality(float(reported["auc"]), float(reported["log_loss"]), further)


class ModelWeights:
    """Rows and dense state of a trainer; without one, of a copy of it.

    Its slices are one part of rows within one table: 0 the weights, then the optimiser state.
    """

    def __init__(
        self, tables: Iterable[OwnTable], layout: TableLayout, trainer: Any = None,
        dense: bytes = b"", part: int = 0,
    ) -> None:  # fmt: skip
        self.tables, self.layout, self._part = [*tables], layout, part
        self._trainer, self._dense = trainer, dense
        first = np.zeros(1, np.int64)
        self.row_bytes = [sum(part.nbytes for part in t.get_rows(first)) for t in self.tables]

    @property
    def table(self) -> ModelWeights:
        """Itself: slices of it are vectors."""
        return self

    @property
    def momentum(self) -> ModelWeights | None:
        """The first part of each row's optimiser state."""
        none = np.zeros(0, np.int64)
        has_any = all(len(table.get_rows(none)) > 1 for table in self.tables)
        return ModelWeights(self.tables, self.layout, part=1) if has_any else None

    def __getitem__(self, some: slice) -> Array:
        start, stop, step = some.indices(self.layout.n_rows)
        number = int(np.searchsorted(self.layout.first_row, start, side="right")) - 1
        first = int(self.layout.first_row[number])
        rows = self.tables[number].get_rows(np.arange(start, stop, step) - first)
        return np.asarray(rows[self._part])

    def _by_table(self, rows: Ints) -> Iterator[tuple[OwnTable, Ints]]:
        """Each table that has any of the rows, and their numbers in it."""
        number = np.searchsorted(self.layout.first_row, rows, side="right") - 1
        for table in np.unique(number).tolist():
            yield self.tables[table], rows[number == table] - self.layout.first_row[table]

    def read(self, rows: Ints) -> Parcel:
        return tuple(
            np.asarray(part)
            for table, within in self._by_table(rows)
            for part in table.get_rows(within)
        )

    def write(self, rows: Ints, parcel: Parcel) -> None:
        left = list(parcel)
        for table, within in self._by_table(rows):
            n_parts = len(table.get_rows(within[:0]))
            table.set_rows(within, left[:n_parts])
            del left[:n_parts]

    def bytes_of(self, rows: slice | Ints) -> int:
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(self.layout.n_rows))
        counts = np.histogram(rows, self.layout.first_row)[0]
        return int(counts @ np.array(self.row_bytes))

    def read_dense(self) -> bytes:
        return self._dense if self._trainer is None else bytes(self._trainer.get_dense())

    def write_dense(self, parcel: bytes) -> None:
        if self._trainer is None:
            self._dense = parcel
        else:
            self._trainer.set_dense(parcel)

    @property
    def dense_bytes(self) -> int:
        return len(self.read_dense())

    def copy(self) -> ModelWeights:
        tables = map(CopiedTable.of, self.tables)
        return ModelWeights(tables, self.layout, dense=self.read_dense())


@dataclass(frozen=True, slots=True, eq=False)
class CopiedTable:
    """The rows of one table and their optimiser state, copied."""

    parts: tuple[Array, ...]  # (n_rows, ...) each

    @classmethod
    def of(cls, table: OwnTable, at_once: int = 1 << 16) -> CopiedTable:
        """A copy, made in pieces: a table on another device need not fit twice."""
        shaped = [np.asarray(part) for part in table.get_rows(np.zeros(0, np.int64))]
        parts = tuple(room_for((table.n_rows, *like.shape[1:]), like.dtype) for like in shaped)
        for first in range(0, table.n_rows, at_once):
            rows = np.arange(first, min(first + at_once, table.n_rows))
            for part, values in zip(parts, table.get_rows(rows), strict=True):
                part[rows[0] : rows[-1] + 1] = values
        return cls(parts)

    @property
    def n_rows(self) -> int:
        return len(self.parts[0])

    def get_rows(self, rows: Ints) -> list[Array]:
        return [part[rows] for part in self.parts]

    def set_rows(self, rows: Ints, parts: Sequence[Array]) -> None:
        for stored, values in zip(self.parts, parts, strict=True):
            stored[rows] = values


class OwnModel:
    """A trainer of the user's own as a `TrainableModel`, at the start of its run."""

    def __init__(self, trainer: Any, seed: int) -> None:
        self.trainer, self.seed = trainer, seed
        self.layout = TableLayout(tuple(table.n_rows for table in trainer.tables.values()))
        self.weights = ModelWeights(trainer.tables.values(), self.layout, trainer)
        self.changed: Array = np.zeros(self.layout.n_rows, np.uint8)
        self.observe: Callable[[Array], None] | None = None
        self.n_samples, self.position = int(trainer.n_samples), 0
        self._column = {name: number for number, name in enumerate(trainer.tables)}

    def on_grid(self, samples: float) -> int:
        return int(self.trainer.on_grid(min(max(samples, 0), self.n_samples)))

    def note(self, accessed: Mapping[str, Array]) -> None:
        """A batch has looked up these rows, by table; see `fused_rows`."""
        rows = fused_rows(accessed, self._column, self.layout)
        self.changed[rows[rows != ABSENT]] = 1
        if self.observe is not None:
            self.observe(rows)

    def run(self, until: int | None = None) -> float:
        last = self.n_samples if until is None else until
        if last > self.position:
            self.trainer.train(self.position, last, self.note)
            if not self.trainer.moves_only_accessed:
                self.changed[:] = 1
            self.position = last
        return float("nan")

    def evaluate(self) -> Quality:
        return quality_of(self.trainer.evaluate())

    def state(self) -> Any:
        return self.position, self.trainer.state()

    def restore(self, state: Any) -> None:
        self.position = state[0]
        self.trainer.restore(state[1])


def fused_rows(
    accessed: Mapping[str, Array], column: Mapping[str, int], layout: TableLayout
) -> Array:
    """Rows by table, (n,) or (n, k) each, as fused rows (n, n_tables) or (n, k, n_tables)."""
    if unknown := accessed.keys() - column.keys():
        raise ParameterError(
            f"the trainer noted rows of {min(unknown)!r}, which is not one of its tables"
        )
    by_table = {name: np.asarray(rows) for name, rows in accessed.items()}
    n = {len(rows) for rows in by_table.values()}
    if len(n) != 1:
        raise ParameterError(f"the trainer noted {sorted(n)} samples of one batch")
    k = max(rows.reshape(len(rows), -1).shape[1] if len(rows) else 1 for rows in by_table.values())
    fused = np.full((n.pop(), k, len(column)), ABSENT, np.int64)
    for name, rows in by_table.items():
        number = column[name]
        by_sample = rows.reshape(len(rows), -1) if len(rows) else rows.reshape(0, 1)
        n_rows = layout.rows[number]
        if by_sample.size and by_sample.max() >= n_rows:
            raise ParameterError(
                f"the trainer noted row {by_sample.max()} of {name!r}, which has {n_rows}"
            )
        fused_of_table = np.where(by_sample >= 0, by_sample + layout.first_row[number], ABSENT)
        fused[:, : by_sample.shape[1], number] = fused_of_table
    return fused[:, 0, :] if k == 1 else fused
