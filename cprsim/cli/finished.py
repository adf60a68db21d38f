"""Which results folder a command means, and the one way to find it finished or to make it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from cprsim.cli.saying import complain
from cprsim.results import folder
from cprsim.results.folder import ResultTarget
from cprsim.results.identity import Identity, identity_of
from cprsim.scenario import LoadedScenario

Made = TypeVar("Made")


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

    Parameters
    ----------
    kind : of result, which ends the folder's name; empty for a run
    identity : where more decides the result than `identity_of` knows

    Raises
    ------
    ResultError : an input can't be read
    """
    about = {"command": ["cprsim", *sys.argv[1:]], "seed": loaded.scenario.simulation.seed}
    return ResultTarget(root, identity or identity_of(loaded, kind, replay), started, about)


def finished_or_make(
    target: ResultTarget,
    read: Callable[[Path], Made],
    make: Callable[[], Made],
    *,
    instead: str = "it is made anew",
    alone: bool = False,
) -> tuple[Made, bool]:
    """See `cprsim.results.folder.finished_or_make`; what is wrong with a folder is said."""
    return folder.finished_or_make(
        target.folder,
        read,
        make,
        warn=lambda wrong: complain(f"cprsim: {wrong}"),
        instead=instead,
        alone=alone,
    )
