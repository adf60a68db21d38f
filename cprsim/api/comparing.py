"""``cprsim.compare``: what changes from one run to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cprsim.api import public
from cprsim.api.answer import Answer
from cprsim.present.answer import Answer as NewAnswer
from cprsim.present.comparison import document_of_two
from cprsim.present.document import Document
from cprsim.results import Result, load_result, same_failures
from cprsim.results import compare as differences

if TYPE_CHECKING:
    import pandas as pd


class Difference(Answer):
    """What changes from run A to run B, strategy by strategy."""

    def __init__(self, a: Result, b: Result) -> None:
        self._a, self._b = a, b

    @property
    def name(self) -> str:
        return f"{self._a.name} and {self._b.name}"

    @property
    def is_paired(self) -> bool:
        """Whether both met the same failures; else they count as independent samples."""
        return same_failures(self._a, self._b)

    @property
    def table(self) -> pd.DataFrame:
        """A row per strategy and quantity: a, b (means), difference, low, high (95 %), n."""
        return differences(self._a, self._b)

    def _document(self) -> Document:
        return document_of_two(self._a, self._b)


@public
def compare(a: NewAnswer | str | Path, b: NewAnswer | str | Path) -> Difference:
    """Say what changes from run A to run B, as ``cprsim compare`` does.

    Parameters
    ----------
    a, b : runs, or results folders of runs

    Raises
    ------
    ResultError : a folder is no finished run
    ParameterError : no strategy is in both
    """
    of_a, of_b = (
        one.holds.made if isinstance(one, NewAnswer) else load_result(one) for one in (a, b)
    )
    found = Difference(of_a, of_b)
    _ = found.document  # says what is wrong with the two
    return found
