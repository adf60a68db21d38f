"""Results folders: a finished one is found again, else it is made."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from cprsim import watch
from cprsim.results.folder import ResultTarget, finished_or_make
from cprsim.results.identity import Identity, identity_of

if TYPE_CHECKING:
    from cprsim.scenario.reading import LoadedScenario

Made = TypeVar("Made")


@dataclass(frozen=True)
class Kept(Generic[Made]):
    """What a results folder holds, and how that came about."""

    made: Made
    path: Path
    folder: Path | None  # where it is kept
    found_again: bool
    temporary: Any  # the folder around it goes when this goes

    def about(self) -> dict[str, Any]:
        """What an `Answer` knows of its folder."""
        return {"folder": self.folder, "found_again": self.found_again, "holds": self}


class _Temporary:
    """A folder that goes with this object."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="cprsim-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def kept(
    folder: str | Path | None,
    loaded: LoadedScenario,
    read: Callable[[Path], Made],
    make: Callable[[ResultTarget], Made],
    *,
    kind: str = "",
    replay: int | None = None,
    identity: Identity | None = None,
    alone: bool = False,
) -> Kept[Made]:
    """The results folder of a scenario.

    Parameters
    ----------
    folder : of results folders; None: nothing is kept, and figures are drawn when asked for
    read, make : what a finished folder holds; what is to be kept in `ResultTarget.folder`
    kind, replay, identity : see `cprsim.results.identity`
    alone : no other process may make the same at once
    """
    temporary = None if folder is not None else _Temporary()
    root = Path(str(folder)) if temporary is None else temporary.path
    about = {"seed": loaded.scenario.simulation.seed, "command": watch.command()}
    target = ResultTarget(
        root, identity or identity_of(loaded, kind, replay), datetime.now(UTC), about
    )
    made, there = finished_or_make(target.folder, read, lambda: make(target), alone=alone)
    kept_in = None if temporary is not None else target.folder
    return Kept(made, target.folder, kept_in, there, temporary)
