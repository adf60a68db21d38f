"""Outages as a reader of events gathers them, one by one, and the log that they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cprsim.failures.outages import Outages, outages_of
from cprsim.failures.traces.asked import LogOptions
from cprsim.failures.traces.reading import checked, guesses, n_observed, trace_error
from cprsim.failures.traces.times import date_h, written


class Spell(NamedTuple):
    """One node that was down, or failed at an instant."""

    node: str
    start_h: float  # since 1970
    end_h: float  # NaN where none is known
    cause: str
    line: int


class Watched(NamedTuple):
    """What the file itself says of the observation; each may be unknown."""

    from_h: float | None = None
    to_h: float | None = None
    nodes: frozenset[str] = frozenset()  # also those that never failed


NOTHING_SAID = Watched()


def outages_of_spells(
    path: Path,
    spells: list[Spell],
    asked: LogOptions,
    *,
    points: bool,
    counted: Counter[str],
    watched: Watched = NOTHING_SAID,
) -> Outages:
    """The log that some spells make.

    Parameters
    ----------
    path : of the file, for messages
    spells : in any order
    asked : the options
    points : whether spells without an end are instants (unless `asked.repair_h` says how long they
        last); otherwise such a node was down until its next failure
    counted : what is to be said, with how often
    watched : what the file says of the observation

    Raises
    ------
    TraceError
        where there is no spell in the period, or one ends before it begins.
    """
    if not spells:
        raise trace_error(path, None, "holds no failure of a node")
    start_h = np.array([spell.start_h for spell in spells])
    end_h = np.array([spell.end_h for spell in spells])
    _require_order(path, spells)
    from_h, to_h = _window(path, start_h, end_h, asked, watched)
    late = start_h >= to_h if asked.period[1] is not None else np.zeros(len(spells), dtype=bool)
    counted["outage(s) from the end of the period on left out"] += int(late.sum())
    in_time = [spell for spell, is_late in zip(spells, late.tolist(), strict=True) if not is_late]
    names = sorted({spell.node for spell in in_time} | watched.nodes)
    number = {name: place for place, name in enumerate(names)}
    known_nodes = len(names) if watched.nodes else None
    outages = outages_of(
        np.array([number[spell.node] for spell in in_time], dtype=np.int64),
        start_h[~late] - from_h,
        end_h[~late] - from_h,
        [spell.cause for spell in in_time],
        n_nodes=n_observed(asked.n_nodes, len(names), path),
        window_h=to_h - from_h,
        origin=written(from_h),
        node_names=tuple(names),
        notes=(
            *guesses(asked.n_nodes or known_nodes, _known(asked, watched)),
            *(f"{n} {what}" for what, n in counted.items() if n),
        ),
        window_given=tuple(instant is not None for instant in _known(asked, watched)),  # type: ignore[arg-type]
        unended_h=asked.repair_h if asked.repair_h is not None else 0.0 if points else None,
    )
    return checked(outages, path)


def _known(asked: LogOptions, watched: Watched) -> tuple[float | str | None, float | str | None]:
    """Begin and end of the observation where the user or the file says them."""
    given = asked.period
    return (
        given[0] if given[0] is not None else watched.from_h,
        given[1] if given[1] is not None else watched.to_h,
    )


def _require_order(path: Path, spells: Collection[Spell]) -> None:
    for spell in spells:
        if spell.end_h < spell.start_h:
            message = f"the outage of '{spell.node}' ends before it begins"
            raise trace_error(path, spell.line, message, "end")


def _window(
    path: Path, start_h: np.ndarray, end_h: np.ndarray, asked: LogOptions, watched: Watched
) -> tuple[float, float]:
    """Begin and end of the observation [h since 1970]."""
    first, last = _known(asked, watched)
    from_h = float(start_h.min())
    to_h = float(max(start_h.max(), np.fmax.reduce(end_h, initial=-np.inf)))
    if first is not None:
        from_h = first if isinstance(first, float) else date_h(str(first), path, asked.tz)
    if last is not None:
        to_h = last if isinstance(last, float) else date_h(str(last), path, asked.tz)
    if from_h > to_h or (from_h == to_h and asked.period != (None, None)):
        raise trace_error(
            path, None, "the period ends before it begins, or before the log", "period"
        )
    return from_h, to_h
