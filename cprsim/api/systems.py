"""``cprsim.systems``: the recovery systems that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cprsim.api import public
from cprsim.api.answer import Answer, table_of
from cprsim.api.scenarios import Overrides, ScenarioLike, source_of
from cprsim.errors import ParameterError
from cprsim.present.document import Document
from cprsim.present.systems_listing import (
    ListedJob,
    entry_of,
    listing,
    made_up_job,
    plain_entry,
    scenario_job,
)
from cprsim.present.systems_words import document_of_listing, explained

if TYPE_CHECKING:
    import pandas as pd


class Systems(Answer):
    """The recovery systems: what each does, needs and survives, for one job."""

    def __init__(self, job: ListedJob) -> None:
        self._job, self._entries = job, listing(job)

    @property
    def name(self) -> str:
        return self._job.words

    @property
    def names(self) -> tuple[str, ...]:
        """What an entry of `recovery` may call its strategy."""
        return tuple(entry.name for entry in self._entries)

    @property
    def table(self) -> pd.DataFrame:
        """A row per system.

        Columns: name, family, summary, source, mark, needs, what a failure of each size
        takes the job back to (`after_process`, `after_node`, ...), cannot_serve (why; else empty).
        """
        kept = ("name", "family", "summary", "source", "mark")
        rows = []
        for entry in map(plain_entry, self._entries):
            after = {
                f"after_{case.replace(' ', '_')}": back
                for case, back in entry["goes_back_to"].items()
            }
            more = {"needs": ", ".join(entry["needs"]), **after}
            plain = {name: entry[name] or "" for name in (*kept, "cannot_serve")}
            rows.append({**plain, **more})
        return table_of(rows)

    def explain(self, name: str) -> str:
        """What one system does, in words. Raises ParameterError where there is none of the name."""
        return "\n".join(explained(entry_of(name, self._job), self._job))

    def _document(self) -> Document:
        return document_of_listing(self._entries, self._job)


@public
def systems(scenario: ScenarioLike | None = None, overrides: Overrides = ()) -> Systems:
    """List the recovery systems, as ``cprsim systems`` does.

    Parameters
    ----------
    scenario, overrides : the job that they are for, see `cprsim.load`; None: a made-up one

    Raises
    ------
    CprsimError : what is wrong with the scenario
    """
    if scenario is None:
        if overrides:
            raise ParameterError("overrides: change a scenario; name one")
        return Systems(made_up_job())
    return Systems(scenario_job(source_of(scenario, overrides).read()))
