"""Interface of a user's trainer, by which it can be failed and measured.

    make(seed, options) ──> OwnTrainer: trains samples a to b, and says which rows it looked up
                               ├── tables: rows by number, with their optimiser state
                               ├── dense state as one blob
                               └── its whole state, copied and restored

`cprsim measure` calls the factory that a scenario names (``kernel: {trainer: package.module:make,
options: {...}}``) in each of its workers, once per seed. All arrays are numpy's, on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cprsim.job.records import Ints
from cprsim.training.kernel.loops import Array

Note = Callable[[Mapping[str, Array]], None]


class OwnTable(Protocol):
    """One embedding table of a trainer."""

    @property
    def n_rows(self) -> int:
        """Rows of the table."""

    def get_rows(self, rows: Ints) -> Sequence[Array]:
        """Copies of rows (m,): weights (m, d) first, then each optimiser state, (m, ...)."""

    def set_rows(self, rows: Ints, parts: Sequence[Array]) -> None:
        """Set rows (m,) to values that `get_rows` gave for them before."""


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Predictions of a model for samples that it was not trained on."""

    label: Array  # (n,) 0 or 1; both must occur
    logit: Array  # (n,)
    group: Array | None = None  # (n,) whole numbers: the list that a sample ranks in, for NDCG


class OwnTrainer(Protocol):
    """A model in training on its samples, at the start of its run when it is made.

    The same seed and options make the same trainer. Its random draws during the run come from its
    own state.
    """

    @property
    def n_samples(self) -> int:
        """Samples in the whole run, all epochs."""

    @property
    def tables(self) -> Mapping[str, OwnTable]:
        """The embedding tables, by name, in an order that does not change."""

    @property
    def moves_only_accessed(self) -> bool:
        """Whether a step leaves rows as they are that its batch does not look up.

        False for optimisers with momentum over all rows, such as Adam on dense gradients: every
        save then writes each row that it may.
        """

    def on_grid(self, samples: float) -> int:
        """The position between two batches that is nearest to a number of samples."""

    def train(self, first: int, last: int, note: Note) -> None:
        """Train on samples `first` to `last`, both on the grid; the run stands at `first`.

        `note` is called after each batch with the rows that each sample looked up, by table: (n,)
        or (n, k) whole numbers, negative ones in place of none. n is the same in all tables.
        """

    def evaluate(self) -> Predictions | Mapping[str, float]:
        """Predictions on the evaluation set, or its own `auc`, `log_loss` [nats] and others.

        A further metric by any name is a loss, which rises as the model gets worse; but of `ndcg`
        more is better, and `calibration` is best at 1.
        """

    def get_dense(self) -> bytes:
        """All parameters but the tables, and their optimiser state."""

    def set_dense(self, blob: bytes) -> None:
        """Set the dense state to a value that `get_dense` gave before."""

    def state(self) -> Any:
        """A copy of everything that decides the rest of the run, position and randomness too."""

    def restore(self, state: Any) -> None:
        """Restore the trainer to a copied state, which can be used several times."""

    def describe(self) -> Mapping[str, Any]:
        """Identity of the trainer, of JSON's types: framework, versions, digest of the data."""
