"""Which results folder a command means."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

from cprsim.results.folder import ResultTarget
from cprsim.results.identity import Identity, identity_of
from cprsim.scenario import LoadedScenario


def target_of(
    root: Path,
    loaded: LoadedScenario,
    started: datetime,
    kind: str = "",
    *,
    replay: int | None = None,
    identity: Identity | None = None,
) -> ResultTarget:
    """The results folder of a scenario under `root`.

    Raises ResultError: an input can't be read.
    """
    about = {"command": ["cprsim", *sys.argv[1:]], "seed": loaded.scenario.simulation.seed}
    return ResultTarget(root, identity or identity_of(loaded, kind, replay), started, about)
