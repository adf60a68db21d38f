"""Where answers lie: in the folder that was asked for, or in one that goes with the answer."""

from __future__ import annotations

import shutil
import tempfile
import warnings
import weakref
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from cprsim.api import public
from cprsim.api.answer import Answer
from cprsim.making.watch import Watch
from cprsim.plots.save import save_figures
from cprsim.results.folder import ResultTarget, publishing
from cprsim.results.identity import Identity, identity_of
from cprsim.results.manifest import damage, list_again
from cprsim.scenario import LoadedScenario


class WarningWatch(Watch):
    """Says what is damaged as a warning of Python."""

    def warn(self, message: str) -> None:
        warnings.warn(message, stacklevel=2)


WATCH = WarningWatch()


class ResultsPlace:
    """A folder of results folders.

    Parameters
    ----------
    folder : where results are kept; None: in a folder that is gone when the answers in it are
    """

    def __init__(self, folder: str | Path | None) -> None:
        self.keeps = folder is not None
        if folder is None:
            root = tempfile.mkdtemp(prefix="cprsim-")
            weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)
        else:
            root = str(folder)
        self.root = Path(root)

    def target(
        self, loaded: LoadedScenario, started: datetime, kind: str = "", replay: int | None = None,
        identity: Identity | None = None,
    ) -> ResultTarget:  # fmt: skip
        """The results folder of a scenario; see `cprsim.results.identity.identity_of`.

        Parameters
        ----------
        identity : where more decides the result than `identity_of` knows
        """
        about = {"seed": loaded.scenario.simulation.seed}
        found = identity or identity_of(loaded, kind, replay)
        return ResultTarget(self.root, found, started, about)


def now() -> datetime:
    """When the work begins."""
    return datetime.now(UTC)


class InFolder(Protocol):
    """What was read from, or written to, a results folder."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> Path: ...


M = TypeVar("M", bound=InFolder)


class KeptAnswer(Answer, Generic[M]):
    """An answer that is a results folder.

    Parameters
    ----------
    made : what the folder holds
    place : that it lies in, for as long as the answer is there
    """

    def __init__(self, made: M, place: ResultsPlace) -> None:
        self._made, self._place = made, place

    @property
    def name(self) -> str:
        return self._made.name

    @property
    def folder(self) -> Path | None:
        """The results folder; None where it is not kept (`save` keeps it)."""
        return self._made.path if self._place.keeps else None

    @public
    def save(self, folder: str | Path) -> Path:
        """Keep the answer as the command would have: a results folder within `folder`.

        Returns
        -------
        the results folder, which `cprsim.read` and every command take

        Raises
        ------
        ResultError : it can't be written; nothing is left behind
        """
        final = Path(folder) / self._made.path.name
        if final.exists() and damage(final) is None:
            return final
        with publishing(final) as new:
            shutil.copytree(self._made.path, new, dirs_exist_ok=True)
            if not self._place.keeps:
                save_figures(self._drawings(), new)
                list_again(new)
        return final
