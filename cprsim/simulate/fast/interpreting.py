"""The compiled loop as Python runs it: the same rows to the last bit, and no compiler to wait for.

The same source does the same operations on the same numbers in the same order. Arrays are handed in
as what Python reads quickly one by one: memory views, and objects for records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprsim.simulate.fast.replications import run
from cprsim.simulate.fast.state import RECOVERY
from cprsim.simulate.numbers import as_objects


def interpreted(
    numbers: NDArray[Any], drawn: Any, strikes: Any, rows: Any, scratch: Any, slots: Any,
    hours: Any, counts: Any, losses: NDArray[Any], keeps: bool,
    of: Callable[..., int] = run.py_func,  # type: ignore[attr-defined]  # what was marked
) -> int:  # fmt: skip
    """As `replications.run`, whose `scratch` stays as it is."""
    job, lost = as_objects(scratch[0]), [as_objects(one) for one in losses]
    job.recoveries = Recoveries(job.recoveries)
    with np.errstate(all="ignore"):
        n_losses = of(
            [as_objects(numbers[0])], type(drawn)(*(memoryview(one) for one in drawn)),
            type(strikes)(strikes.until_h, *(memoryview(one) for one in strikes[1:])),
            memoryview(rows), [job], Slots(slots), memoryview(hours), memoryview(counts),
            lost, keeps,
        )  # fmt: skip
    for name in losses.dtype.names or ():
        losses[name] = [getattr(one, name) for one in lost]
    return n_losses


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
