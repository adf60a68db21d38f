"""The loops of one job, as machine code or interpreted: the same rows to the last bit.

Interpreted, few replications are done before the compiler would be. The same source does the same
operations on the same numbers in the same order. Arrays are handed in as what Python reads quickly
one by one: memory views, and objects for records.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprsim.records import Floats, Ints
from cprsim.simulate.fast import batch, replications
from cprsim.simulate.fast.params import Params
from cprsim.simulate.fast.state import RECOVERY, Drawn
from cprsim.simulate.numbers import as_objects
from cprsim.simulate.strikes import ScopedStrikes


class Recoveries(list[Any]):
    """Recoveries as objects, which are copied as those of an array are."""

    def __setitem__(self, place: Any, record: Any) -> None:
        own = self[place]
        for name in RECOVERY.names or ():
            setattr(own, name, getattr(record, name))


class Slots(dict[int, Any]):
    """The slots of a job as objects, made as they are asked for."""

    def __init__(self, slots: NDArray[Any]) -> None:
        self._slots = slots

    def __missing__(self, slot: int) -> Any:
        found = self[slot] = as_objects(self._slots[slot])
        return found


class Machine:
    """The loops of one job, compiled, with what they keep from call to call.

    Parameters
    ----------
    numbers, scratch, slots : as of `replications.run`
    """

    def __init__(self, numbers: NDArray[Any], scratch: NDArray[Any], slots: NDArray[Any]) -> None:
        self._numbers, self._scratch, self._slots = numbers, scratch, slots

    def run(
        self, drawn: Drawn, strikes: ScopedStrikes, rows: Ints,
        hours: Floats, counts: Ints, losses: NDArray[Any], keeps: bool,
    ) -> int:  # fmt: skip
        """As `replications.run`."""
        return replications.run(
            self._numbers, drawn, strikes, rows, self._scratch, self._slots, hours, counts,
            losses, keeps,
        )  # fmt: skip

    def lose(
        self, params: Params, strikes: ScopedStrikes, rows: Ints, progress_h: Floats,
        whole_h: Floats, hours: Floats, counts: Ints, losses: NDArray[Any], keeps: bool,
    ) -> int:  # fmt: skip
        """As `batch.lose`."""
        return batch.lose(
            params, strikes, rows, progress_h, whole_h, hours, counts, losses, keeps,
            self._slots, self._scratch,
        )  # fmt: skip

    line_up = staticmethod(batch.line_up)

    def run_batch(
        self, params: Params, strikes: ScopedStrikes, rows: Ints, n_strikes: Ints,
        hours: Floats, counts: Ints, unsure: Ints, progress_h: Floats, whole_h: Floats,
    ) -> tuple[int, int]:  # fmt: skip
        """As `batch.run_batch`."""
        chunk, failure = np.empty((2, batch.BATCH), np.int64)
        return batch.run_batch(
            params, strikes, rows, n_strikes, hours, counts, unsure, progress_h, whole_h,
            np.empty(batch.END), chunk, failure,
        )  # fmt: skip


class Interpreted:
    """The same, interpreted; what is handed in is only read."""

    def __init__(self, numbers: NDArray[Any], scratch: NDArray[Any], slots: NDArray[Any]) -> None:
        self._num, self._job = as_objects(numbers[0]), as_objects(scratch[0])
        self._job.recoveries = Recoveries(self._job.recoveries)
        self._slots = Slots(slots)

    def run(
        self, drawn: Drawn, strikes: ScopedStrikes, rows: Ints,
        hours: Floats, counts: Ints, losses: NDArray[Any], keeps: bool,
    ) -> int:  # fmt: skip
        """As `replications.run`."""
        lost = _room(losses)
        n_lost = _py(replications.run)(
            [self._num], Drawn(*map(memoryview, drawn)), _viewed(strikes), memoryview(rows),
            [self._job], self._slots, memoryview(hours), memoryview(counts), lost, keeps,
        )  # fmt: skip
        _write(losses, lost, n_lost)
        return int(n_lost)

    def line_up(
        self, strikes: ScopedStrikes, rows: Ints, lined_up: Ints, n_strikes: Ints
    ) -> None:
        """As `batch.line_up`."""
        _py(batch.line_up)(_viewed(strikes), *map(memoryview, (rows, lined_up, n_strikes)))

    def run_batch(
        self, params: Params, strikes: ScopedStrikes, rows: Ints, n_strikes: Ints,
        hours: Floats, counts: Ints, unsure: Ints, progress_h: Floats, whole_h: Floats,
    ) -> tuple[int, int]:  # fmt: skip
        """As `batch.run_batch`."""
        with np.errstate(all="ignore"):
            found = _py(batch.run_batch)(
                params, _viewed(strikes),
                *map(memoryview, (rows, n_strikes, hours, counts, unsure, progress_h, whole_h)),
                [0.0] * batch.END, [0] * batch.BATCH, [0] * batch.BATCH,
            )  # fmt: skip
        return int(found[0]), int(found[1])

    def lose(
        self, params: Params, strikes: ScopedStrikes, rows: Ints, progress_h: Floats,
        whole_h: Floats, hours: Floats, counts: Ints, losses: NDArray[Any], keeps: bool,
    ) -> int:  # fmt: skip
        """As `batch.lose`."""
        lost = _room(losses)
        n_lost = _py(batch.lose)(
            params, _viewed(strikes),
            *map(memoryview, (rows, progress_h, whole_h, hours, counts)),
            lost, keeps, self._slots, [self._job],
        )  # fmt: skip
        _write(losses, lost, n_lost)
        return int(n_lost)


Loops = Machine | Interpreted


def _py(loop: Any) -> Any:
    return loop.py_func


def _viewed(strikes: ScopedStrikes) -> Any:
    return ScopedStrikes(strikes.until_h, *map(memoryview, strikes[1:]))


def _room(losses: NDArray[Any]) -> list[Any]:
    return [as_objects(loss) for loss in losses]


def _write(losses: NDArray[Any], lost: list[Any], n_lost: int) -> None:
    names = losses.dtype.names or ()
    for name in names:
        losses[name][:n_lost] = [getattr(one, name) for one in lost[:n_lost]]
