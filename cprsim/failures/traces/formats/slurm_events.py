"""Slurm's accounting of nodes: ``sacctmgr show event``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages
from cprsim.failures.traces.asked import Head, LogFormat, LogOptions
from cprsim.failures.traces.reading import trace_error
from cprsim.failures.traces.slurm import BarRow, bar_rows, expanded, local_hours
from cprsim.failures.traces.spells import Spell, outages_of_spells

NEEDED = ("nodename", "timestart", "timeend", "state")
COMMAND = "sacctmgr show event start=2024-01-01 -P"
FAILED = ("DOWN", "FAIL", "ERROR", "DRAIN", "NO_RESPOND", "UNKNOWN")  # how states begin


def read_slurm_events(path: Path, asked: LogOptions) -> Outages:
    """Outages from ``sacctmgr show event``: nodes that were down, failing or drained.

    An end ``Unknown`` is none. Events of the whole cluster, and states that are no failure
    (planned, powered down, under maintenance), are left out and counted. The cause is the state
    and the reason that somebody gave. Where one event of a node begins when another ends (a
    drained node that stops responding), they are one outage.

    Raises
    ------
    TraceError
        with file and line.
    """
    counted = Counter[str]()
    rows = [row for row in bar_rows(path, NEEDED, COMMAND, "reason") if _is_failure(row, counted)]
    if not rows:
        raise trace_error(path, None, "names no node that was down, failing or drained")
    start_h = local_hours(path, rows, "timestart", asked, required=True)
    end_h = local_hours(path, rows, "timeend", asked, required=False)
    spells = [
        Spell(name, float(start), float(end), _cause(row), row.line)
        for row, start, end in zip(rows, start_h, end_h, strict=True)
        for name in _nodes(row, path)
    ]
    return outages_of_spells(path, _joined(spells, counted), asked, points=False, counted=counted)


def _is_failure(row: BarRow, counted: Counter[str]) -> bool:
    state = row.cells["state"].upper()
    if not row.cells["nodename"]:
        counted["event(s) of the whole cluster left out"] += 1
        return False
    if not any(part.startswith(FAILED) for part in state.split("+")):  # IDLE+DRAIN
        counted[f"event(s) left out whose state is no failure ({state or 'none'})"] += 1
        return False
    return True


def _nodes(row: BarRow, path: Path) -> list[str]:
    try:
        return expanded(row.cells["nodename"])
    except ParameterError as error:
        raise trace_error(path, row.line, str(error), "nodename") from None


def _cause(row: BarRow) -> str:
    state = row.cells["state"].rstrip("*$~#!%@^-+").upper()
    reason = _without_stamp(row.cells.get("reason", ""))
    return f"{state} / {reason}" if reason else state


def _without_stamp(reason: str) -> str:
    """A reason without who wrote it and when: ``[root@2024-01-02T03:04:05]`` at its end."""
    before, bracket, stamp = reason.rpartition("[")
    return before.rstrip() if bracket and stamp.endswith("]") and "@" in stamp else reason


def _joined(spells: list[Spell], counted: Counter[str]) -> list[Spell]:
    """Spells of a node that follow each other without a gap, as one with the first's cause."""
    joined: list[Spell] = []
    for spell in sorted(spells, key=lambda one: (one.node, one.start_h, one.line)):
        before = joined[-1] if joined else None
        if before and before.node == spell.node and before.end_h == spell.start_h > before.start_h:
            joined[-1] = before._replace(end_h=spell.end_h)
            counted["event(s) that go on from the one before, part of its outage"] += 1
        else:
            joined.append(spell)
    return joined


def _looks_like(head: Head) -> str:
    cells = {cell.strip().lower() for cell in head.first_line.split("|")}
    return "the columns of `sacctmgr show event`" if cells >= set(NEEDED) else ""


FORMAT = LogFormat(
    name="slurm-events",
    what="Slurm: nodes down, failing or drained (sacctmgr)",
    commands=(COMMAND,),
    provenance="run here: Slurm 22.05.8 of Debian 12",
    options=frozenset({"--from and --to", "--tz", "--repair"}),
    looks_like=_looks_like,
    read=read_slurm_events,
    order=20,
)
