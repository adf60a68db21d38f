"""The whole state of a run as arrays by name, live: to compare runs, and to go on from a copy."""

from __future__ import annotations

import numpy as np

from cprsim.kernel.saving import Saver, Stateful, copy_state

State = dict[str, np.ndarray]


class Held:
    """Arrays as the state of something."""

    def __init__(self, arrays: State) -> None:
        self.arrays = arrays

    def state(self) -> State:
        return self.arrays


def of_saver(saver: Saver) -> State:
    """What decides its later saves and failures. Raises RuntimeError while a save is under way."""
    saver.saved._require_idle()
    stored = saver.saved.weights
    names = ("table", "row_state", "dense", "dense_state")
    tracker = {} if saver.tracker is None else saver.tracker.state()
    saved = {f"saved/{name}": getattr(stored, name) for name in names}
    return saved | tracker | {"saved/bytes": saver._bytes}


def joint_state(*parts: Stateful | Saver) -> State:
    """The live arrays of all parts together."""
    joint: State = {}
    for part in parts:
        state = of_saver(part) if isinstance(part, Saver) else part.state()
        assert not joint.keys() & state.keys()
        joint |= state
    return joint


def take(*parts: Stateful | Saver) -> State:
    """A copy of the state of parts of a run."""
    return {name: np.array(array) for name, array in joint_state(*parts).items()}


def restore(state: State, *parts: Stateful | Saver) -> None:
    """Make parts of a run what they, or their like, were."""
    copy_state(Held(state), Held(joint_state(*parts)))
