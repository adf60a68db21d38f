"""The loops of one job, as machine code or interpreted: the same rows to the last bit.

Interpreted, few replications are done before the compiler would be. The same source does the same
operations on the same numbers in the same order. Arrays are handed in as what Python reads quickly
one by one: memory views, and objects for records.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprsim.compiling import Compiled
from cprsim.records import Floats, Ints
from cprsim.simulate.fast import batch, replications
from cprsim.simulate.fast.params import Params
from cprsim.simulate.fast.state import RECOVERY, Drawn
from cprsim.simulate.numbers import as_objects
from cprsim.simulate.strikes import ScopedStrikes


class Loops:
    """The loops of one job by machine code, with what they keep from call to call.

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
        n_losses: int = self._do(
            replications.run, self._numbers, drawn, strikes, rows, self._scratch, self._slots,
            hours, counts, losses, keeps,
        )  # fmt: skip
        return n_losses

    def line_up(self, strikes: ScopedStrikes, rows: Ints, lined_up: Ints, n_strikes: Ints) -> None:
        """As `batch.line_up`."""
        self._do(batch.line_up, strikes, rows, lined_up, n_strikes)

    def run_batch(
        self, params: Params, strikes: ScopedStrikes, rows: Ints, n_strikes: Ints,
        hours: Floats, counts: Ints, unsure: Ints, progress_h: Floats, whole_h: Floats,
    ) -> int:  # fmt: skip
        """As `batch.run_batch`; how many are unsure."""
        _, n_unsure = self._do(
            batch.run_batch, params, strikes, rows, n_strikes, hours, counts, unsure, progress_h,
            whole_h, *self._room,
        )  # fmt: skip
        return int(n_unsure)

    def lose(
        self, params: Params, strikes: ScopedStrikes, rows: Ints, progress_h: Floats,
        whole_h: Floats, hours: Floats, counts: Ints, losses: NDArray[Any], keeps: bool,
    ) -> int:  # fmt: skip
        """As `batch.lose`."""
        n_losses: int = self._do(
            batch.lose, params, strikes, rows, progress_h, whole_h, hours, counts, losses, keeps,
            self._slots, self._scratch,
        )  # fmt: skip
        return n_losses

    @cached_property
    def _room(self) -> tuple[Any, Any, Any]:
        """To work in, of `run_batch`."""
        return np.empty(batch.END), np.empty(batch.BATCH, np.int64), np.empty(batch.BATCH, np.int64)

    def _do(self, loop: Any, *given: Any) -> Any:
        return loop(*given)


class Interpreted(Loops):
    """The same, interpreted; what is kept from call to call is kept here."""

    @cached_property
    def _room(self) -> tuple[Any, Any, Any]:
        return [0.0] * batch.END, [0] * batch.BATCH, [0] * batch.BATCH

    def _do(self, loop: Compiled, *given: Any) -> Any:
        seen = [self._seen(one) for one in given]
        with np.errstate(all="ignore"):
            found = loop.py_func(*seen)
        for one, objects in zip(given, seen, strict=True):
            if isinstance(objects, Losses):
                objects.write(one)
        return found

    def _seen(self, given: Any) -> Any:
        """What a loop is given, as Python reads it quickly."""
        if isinstance(given, ScopedStrikes | Drawn):
            return type(given)(*map(self._seen, given))
        if not isinstance(given, np.ndarray):
            return given
        if given.dtype.names is None:
            return memoryview(given)  # type: ignore[arg-type]  # numpy's types hide the buffer
        for mine, seen in (
            (self._numbers, "_num"), (self._scratch, "_job"), (self._slots, "_of_slots"),
        ):  # fmt: skip
            if given is mine:
                return getattr(self, seen)
        return Losses(as_objects(one) for one in given)

    @cached_property
    def _num(self) -> list[Any]:
        return [as_objects(self._numbers[0])]

    @cached_property
    def _job(self) -> list[Any]:
        job = as_objects(self._scratch[0])
        job.recoveries = Recoveries(job.recoveries)
        return [job]

    @cached_property
    def _of_slots(self) -> Slots:
        return Slots(self._slots)


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


class Losses(list[Any]):
    """Room for losses, as objects."""

    def write(self, losses: NDArray[Any]) -> None:
        """Put them into the array that they stand for."""
        for name in losses.dtype.names or ():
            losses[name] = [getattr(one, name) for one in self]
