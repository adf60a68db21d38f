"""Check before a measurement that a user's trainer follows the protocol.

One run without failures continues from its copied state a second time, and is made and trained once
more from the start. Equal runs that do not end equal are noise in every loss that is measured.
"""

from __future__ import annotations

import numpy as np

from cprsim.errors import ParameterError
from cprsim.job.records import Ints
from cprsim.training.measuring.expectation import Expected
from cprsim.training.measuring.own_model import OwnModel, quality_of
from cprsim.training.measuring.protocol import OwnTable, Predictions

N_TRIED = 8  # rows of each table that are written and read back
ROWS_COMPARED_AT_ONCE = 1 << 16  # rows compared at once


def check_trainer(model: OwnModel, again: OwnModel) -> Expected:
    """Try a trainer; `again` is the same, made anew. Noise: the most by which equal runs differ."""
    for name, table in model.trainer.tables.items():
        _require_rows(name, table)
    half = model.on_grid(model.n_samples / 2)
    _require_noted(model, half)
    state = model.state()
    model.run()
    evaluated = model.trainer.evaluate()
    first = quality_of(evaluated)
    model.restore(state)
    model.run()
    forked = model.evaluate()
    again.run()
    second = again.evaluate()
    if first == second != forked:
        raise ParameterError(
            f"the trainer's state is not whole: put back to sample {half} it ends at AUC "
            f"{forked.auc:.6f}, and at {first.auc:.6f} without; `state` has to copy "
            "everything that decides the rest of the run (weights, optimiser, position, randomness)"
        )
    repeated = (forked, second)
    n_clicks = (
        int(np.asarray(evaluated.label).sum()) if isinstance(evaluated, Predictions) else None
    )
    return Expected(
        first.auc,
        first.log_loss,
        n_test_clicks=n_clicks,
        noise=max(abs(quality.auc - first.auc) for quality in repeated),
        log_loss_noise=max(abs(quality.log_loss - first.log_loss) for quality in repeated),
    )


def _require_rows(name: str, table: OwnTable) -> None:
    """Check that rows are read back as they were written, twice."""
    n = min(N_TRIED, table.n_rows)
    rows: Ints = np.unique(np.linspace(0, table.n_rows - 1, n).astype(np.int64))
    before = [np.array(part) for part in table.get_rows(rows)]
    if not before or any(len(part) != len(rows) for part in before):
        shapes = [part.shape for part in before]
        raise ParameterError(f"table {name!r}: get_rows gave {shapes} for {len(rows)} rows")
    written = [part[::-1] + np.ones(1, part.dtype) for part in before]
    table.set_rows(rows, written)
    after = [np.asarray(part) for part in table.get_rows(rows)]
    table.set_rows(rows, before)
    back = [np.asarray(part) for part in table.get_rows(rows)]
    for expected, read in ((written, after), (before, back)):
        if not all(map(np.array_equal, expected, read)):
            raise ParameterError(f"table {name!r}: get_rows does not give what set_rows wrote")


def _require_noted(model: OwnModel, until: int) -> None:
    """Train on, and check that every row that moved was noted."""
    before = model.weights.copy()
    model.run(until)
    for number, name in enumerate(model.trainer.tables):
        of = model.layout.of(number)
        for first in range(of.start, of.stop, ROWS_COMPARED_AT_ONCE):
            rows = np.arange(first, min(first + ROWS_COMPARED_AT_ONCE, of.stop))
            pairs = zip(before.read(rows), model.weights.read(rows), strict=True)
            moved = np.zeros(len(rows), bool)
            for old, new in pairs:
                moved |= (old != new).reshape(len(rows), -1).any(axis=1)
            unnoted = moved & (model.changed[rows] == 0)
            if unnoted.any():
                row = int(rows[unnoted][0]) - of.start
                raise ParameterError(
                    f"table {name!r}: row {row} moved, and no batch noted that it was looked up; "
                    "where a step moves other rows too, `moves_only_accessed` has to be False"
                )
