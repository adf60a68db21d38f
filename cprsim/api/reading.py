"""``cprsim.read``: a finished result, as the function that makes it returns it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cprsim.api import public
from cprsim.api.answer import Answer, table_of
from cprsim.api.curves import Curve
from cprsim.api.fleets import Fleet
from cprsim.api.keeping import ResultsPlace
from cprsim.api.selecting import Selection
from cprsim.api.sweeping import Sweep
from cprsim.present.document import Block, Document, Picture
from cprsim.present.kinds import KINDS, kind_of
from cprsim.present.reproduction import document_of_reproduction
from cprsim.present.run import answer_of_run
from cprsim.present.systems import answer_of_systems
from cprsim.reproduce.runner import Reproduced
from cprsim.results.manifest import MANIFEST, results_in

if TYPE_CHECKING:
    import pandas as pd


class Reproduction(Answer):
    """A result of a paper, ours beside the paper's, judged."""

    def __init__(self, made: Reproduced) -> None:
        self._made = made

    @property
    def name(self) -> str:
        return self._made.name

    @property
    def table(self) -> pd.DataFrame:
        """A row per comparison: quantity, paper, provenance, ours (with interval), verdict."""
        rows = [
            {"quantity": row.quantity, "paper": row.paper, "provenance": row.mark,
             "ours": row.ours, "verdict": str(row.verdict)}
            for row in self._made.summary.rows
        ]  # fmt: skip
        return table_of(rows)

    def _document(self) -> Document:
        return document_of_reproduction(self._made)

    def _brief(self) -> list[Block]:
        """The comparisons and every figure."""
        pictures = (one for one in self.document.blocks if isinstance(one, Picture))
        return [*super()._brief(), *pictures]


@public
def read(
    result: str | Path,
) -> Answer | Sweep | Selection | Fleet | Curve | Reproduction:
    """Read a finished result: a results folder, or the file of a staleness curve.

    Parameters
    ----------
    result : of any kind that ``cprsim report`` shows, or the folder that holds it alone

    Raises
    ------
    ResultError : it is no finished result, or is damaged
    """
    path = Path(result)
    inside = results_in(path)
    if len(inside) == 1 and not (path / MANIFEST).exists():
        path = inside[0]
    place = ResultsPlace(path.parent)
    kind = kind_of(path)
    name = next(name for name, one in KINDS.items() if one is kind)
    made: dict[str, Callable[[Any], Any]] = {
        "run": lambda loaded: answer_of_run(loaded, folder=path, holds=loaded),
        "sweep": lambda loaded: Sweep(loaded, place),
        "selection": lambda loaded: Selection(loaded, place),
        "comparison of systems": lambda loaded: answer_of_systems(
            loaded, folder=path, holds=loaded
        ),
        "fleet": lambda loaded: Fleet(loaded, place),
        "curve": lambda loaded: Curve(loaded, path),
        "reproduction": Reproduction,
    }
    return made[name](kind.load(path))  # type: ignore[no-any-return]
