"""From where ``cprsim fit`` knows what was observed: its options, the file, or what it holds."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cprsim.foreign import one_line

if TYPE_CHECKING:
    from cprsim.failures.outages import Outages
    from cprsim.fitting.lifetimes import FirstUptime
    from cprsim.fitting.observation import Observation


def observed(
    outages: Outages,
    first: FirstUptime,
    *,
    form: str,
    nodes: int | None,
    node: str | None,
    period: tuple[str | None, str | None],
    age: str | None,
    cause: str | None,
    lives: str | Path | None = None,
) -> Observation:
    """The observation of a log.

    Parameters
    ----------
    outages : as read
    first : how the first up-time of each node counts
    form : name of the log's format
    nodes, node, period, age, cause : the options; None where they were not given
    lives : from where the dates of the nodes are; None where they have none
    """
    from cprsim.fitting.observation import Source, observation

    known: dict[str, tuple[Source, str]] = {}
    if form == "lanl":
        known["n_nodes"] = Source.READ, "column nodes"
    if form == "infinitehbd":
        known["begins"] = Source.READ, "the zero of the file's times"
    if form == "prometheus":
        known["n_nodes"] = Source.READ, "a series for each node"
        known["begins"] = Source.READ, "the first sample"
        known["ends"] = Source.READ, "the last sample"
    if lives is not None:
        origin = (Source.READ, f"the nodes' own dates ({one_line(str(lives))})")
        known["n_nodes"] = known["ages"] = origin
    if nodes is not None:
        known["n_nodes"] = Source.GIVEN, "--nodes"
    if node is not None:
        known["n_nodes"] = Source.GIVEN, "--node"
    if age is not None:
        known["ages"] = Source.GIVEN, "--age"
    there = observation(outages, first)
    ends = (("begins", "--from", there.begins), ("ends", "--to", there.ends))
    for said, (name, option, fact) in zip(period, ends, strict=True):
        if said is not None and _is_at(said, str(fact.value)):
            known[name] = Source.GIVEN, option
        elif said is not None:
            known[name] = Source.INFERRED, f"what the file holds within {option} {said}"
    return observation(outages, first, cause=cause, **known)


def _is_at(said: str, found: str) -> bool:
    """Whether the window ends where the user said; a log in numbers is taken at its word."""
    try:
        instants = [datetime.fromisoformat(text).replace(tzinfo=None) for text in (said, found)]
    except ValueError:
        return True
    zoned = datetime.fromisoformat(said).tzinfo is not None
    return zoned or instants[0] == instants[1]
